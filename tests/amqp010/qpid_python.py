"""Qpid's own Python client, where it is: an oracle of what we write and read.

It lies beside the checkout, in `shared/clients/qpid-python`, or where QPID_PYTHON says.
"""

import os
import sys
from pathlib import Path
from unittest import mock

import pytest

from tests.conftest import REPO

FOLDER = Path(os.environ.get("QPID_PYTHON", REPO.parent / "shared" / "clients" / "qpid-python"))

needs_client = pytest.mark.skipif(
    not (FOLDER / "qpid").is_dir() or sys.version_info >= (3, 12),
    reason="Qpid's Python client is not here, or does not run on this Python",
)


def load():
    """Make the client's packages importable, and leave its folder as it is.

    It would keep what it has read of the specification beside it, wherever it may write.
    """
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    sys.dont_write_bytecode, kept = True, sys.dont_write_bytecode
    with mock.patch("os.access", return_value=False):
        import qpy_shim  # noqa: F401
        from qpid import framing, messaging, ops  # noqa: F401

    sys.dont_write_bytecode = kept
