"""TLS contexts from files: a server's, and that of a proxy towards the broker behind it."""

from __future__ import annotations

import os
import ssl

from .socket_server import ListenError


def server_context(
    certificate: str | os.PathLike[str], key: str | os.PathLike[str]
) -> ssl.SSLContext:
    """A context for a server that shows this certificate.

    Args:
        certificate: PEM file with the certificate, and behind it those that vouch for it.
        key: PEM file with its private key, without a passphrase.

    Raises:
        ListenError: if a file cannot be read, is none, or the two do not belong together.
    """
    for path in (certificate, key):
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise ListenError(f"{os.fspath(path)}: {error.strerror}") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except (ssl.SSLError, ValueError) as error:
        raise ListenError(
            f"{os.fspath(certificate)} and {os.fspath(key)} are no certificate with its key:"
            f" {getattr(error, 'reason', None) or error}"
        ) from None
    return context


def trust_in(authority: str | os.PathLike[str]) -> ssl.SSLContext:
    """A context for a client that trusts who shows a certificate of this authority, or this one.

    Args:
        authority: PEM file with one or more certificates.

    Raises:
        ListenError: if the file cannot be read or holds no certificate.
    """
    try:
        return ssl.create_default_context(cafile=os.fspath(authority))
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise ListenError(f"{os.fspath(authority)}: no certificates: {reason}") from None


def _no_passphrase() -> str:
    raise ValueError("the key wants a passphrase; legal: a key without one")
