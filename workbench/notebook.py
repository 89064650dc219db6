"""The notebook whose cell runs now, and what it shows of an error.

It is looked up, not imported: where there is one, IPython is.
"""

from __future__ import annotations

import os
import sys
from pathlib import PurePath
from typing import Any

SESSION = "JPY_SESSION_NAME"  # by which Jupyter's server tells a kernel its notebook


class PlainError(Exception):
    """What was asked for cannot be done; the text says why, for whoever asked.

    A notebook shows the text, and not the way through this package to the place that found it.
    """

    def _render_traceback_(self) -> list[str]:
        """The name that IPython asks for."""
        return [f"{type(self).__name__}: {self}"]


class GivenError(PlainError, TypeError):
    """What was given is not what is wanted; the text says what is."""


class WrongValueError(PlainError, ValueError):
    """A value that does not fit here; the text says which do."""


class NoSuchNameError(PlainError, AttributeError):
    """Nothing has the name that was typed; the text says which there are."""


def kernel_shell() -> Any:
    """IPython's shell in a notebook's kernel; None anywhere else."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def cell_id() -> str | None:
    """The id of the cell that runs now; None where the front end does not tell."""
    try:
        told = kernel_shell().get_parent().get("metadata", {}).get("cellId")
    except (AttributeError, LookupError):
        return None
    return str(told) if told else None


def file_stem() -> str | None:
    """The name of the notebook's file without its ending; None where nobody tells."""
    shell = kernel_shell()
    told = os.environ.get(SESSION) or getattr(shell, "user_ns", {}).get("__vsc_ipynb_file__")
    return PurePath(told).stem if shell is not None and isinstance(told, str) else None
