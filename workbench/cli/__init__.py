"""The command line: `workbench COMMAND`, also `python -m workbench COMMAND`.

`main.py` has the rules that all commands share (errors, exit codes, pipes); each command is one
module that says what it takes and does it. Whatever is heavy is imported when a command needs it,
so that `workbench --help` answers at once.
"""

from .main import main

__all__ = ["main"]
