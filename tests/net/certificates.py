"""Certificates for the tests of TLS."""

import shutil
import ssl
import subprocess

import pytest

from tests.patience import TIMEOUT_S


def certificate_for(name, folder):
    """A certificate of its own authority, made with the machine's openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext"]
    command += [f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)
    assert ssl.PEM_cert_to_DER_cert(certificate.read_text())
    return certificate, key
