"""`python -m workbench` and the console script are the command line."""

import sys


def main() -> int:
    """The command line; it may be interrupted while it is loaded, too. Returns the exit code."""
    try:
        from workbench.cli import main as command_line

        return command_line()
    except KeyboardInterrupt:
        sys.stderr.write("workbench: stopped\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
