"""What all commands share: one line for whatever goes wrong, exit codes, pipes, interruptions."""

import argparse
import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from tests.patience import TIMEOUT_S
from workbench.cli import main
from workbench.cli.console import (
    CommandError,
    Progress,
    UsageError,
    as_json,
    cell,
    one_line,
    suggestion,
    table,
    tell,
)
from workbench.cli.main import MODULES, commands, parser
from workbench.cli.main import main as real_main
from workbench.cli.places import show_command

REPO = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def broken(monkeypatch):
    """Make `workbench scenarios` raise what a test wants."""

    def install(error: BaseException) -> None:
        def command(_arguments: argparse.Namespace) -> int:
            raise error

        monkeypatch.setattr(commands("scenarios")["scenarios"], "command", command)

    return install


def failure(capsys, *argv: str) -> tuple[int, str]:
    """Run a command that must fail; give its exit code and its one line."""
    code = main(argv)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith("\n")
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err
    return code, said.err.rstrip("\n")


@pytest.mark.parametrize(
    ("argv", "telling"),
    [
        ([], "COMMAND"),
        (["rnu"], "invalid choice: 'rnu'"),
        (["run"], "-o, or ask for --share"),
        (["run", "credit", "--frobnicate", "-o", "x.parquet"], "--frobnicate"),
        (["show", "x.parquet", "--at", "soon"], "invalid int value: 'soon'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(capsys, argv, telling):
    """argparse's own complaints come without its usage, and name the help."""
    code, line = failure(capsys, *argv)
    assert code == 2
    assert telling in line
    assert "--help" in line


def lost_by_ctrl_c(error: Exception) -> Exception:
    """An error in tidying up, as of Py4J, whose connections Ctrl-C closes."""
    error.__context__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (CommandError("no such thing"), 1, "workbench scenarios: no such thing"),
        (UsageError("not so"), 2, "workbench scenarios: not so"),
        (
            PermissionError(errno.EACCES, "Permission denied", "there"),
            1,
            "workbench scenarios: there: Permission denied",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), 1,
         "workbench scenarios: No space left on device"),
        (MemoryError(), 1, "workbench scenarios: not enough memory for this"),
        (KeyboardInterrupt(), 130, "workbench scenarios: stopped"),
        (lost_by_ctrl_c(Py4JNetworkError("Answer from Java side is empty")), 130,
         "workbench scenarios: stopped"),
        (lost_by_ctrl_c(ConnectionRefusedError()), 130, "workbench scenarios: stopped"),
        (lost_by_ctrl_c(PermissionError(errno.EACCES, "Permission denied", "there")), 1,
         "workbench scenarios: there: Permission denied"),
        (ModuleNotFoundError("No module named 'msgspec'", name="msgspec"), 1,
         f"workbench scenarios: {sys.executable} has no msgspec; `python3 wb.py scenarios` takes"
         " the workbench's own Python"),
        (CommandError("two\nlines\x1b[2J"), 1, r"workbench scenarios: two lines\x1b[2J"),
    ],
)  # fmt: skip
def test_whatever_goes_wrong_is_told_in_one_line(capsys, broken, error, code, line):
    """Nobody sees a traceback for a full disk, a missing right or a pressed Ctrl-C."""
    broken(error)
    assert failure(capsys, "scenarios") == (code, line)


def test_a_mistake_of_ours_says_so_and_how_to_see_more(capsys, broken, monkeypatch):
    """An unexpected exception is one line too; a variable brings the traceback back."""
    broken(ZeroDivisionError("division by zero"))
    code, line = failure(capsys, "scenarios")
    assert code == 1
    assert "unexpected ZeroDivisionError" in line
    assert "WORKBENCH_TRACEBACK=1" in line
    monkeypatch.setenv("WORKBENCH_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["scenarios"])


def test_a_reader_that_has_had_enough_is_no_error(tmp_path):
    """`workbench scenarios | head -1` ends without a word on stderr."""
    command = [sys.executable, "-c", PIPE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stderr) == (0, "")


PIPE = """
import os, sys
from workbench.cli import main
from workbench.cli import main as _
import workbench.cli.scenarios as scenarios
def command(arguments):
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(writing)
    os.close(reading)
    for _ in range(10_000):
        print("a line that nobody reads any more")
    return 0
scenarios.command = command
sys.exit(main(["scenarios"]))
"""


@pytest.mark.parametrize(
    ("argv", "shut", "told"),
    [
        (["scenarios", "credit"], ">&-", ""),
        (["explore"], ">&-", ""),
        (["run", "--code", "-", "-o", "x.parquet"], "<&-", "the share code is empty"),
    ],
)
def test_a_stream_that_is_closed_from_the_beginning_is_no_error(tmp_path, argv, shut, told):
    """As under a scheduler that gives a command none: what was asked for is done."""
    done = subprocess.run(
        ["sh", "-c", f'"$@" {shut}', "sh", sys.executable, "-m", "workbench", *argv],
        capture_output=True, text=True, timeout=TIMEOUT_S, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert told in done.stderr
    assert done.returncode == (1 if told else 0)


def test_octets_that_are_no_text_are_no_share_code(tmp_path):
    """Where stdin decodes strictly, too."""
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "run", "--code", "-", "-o", "x.parquet"],
        input=b"\xff\xfe", capture_output=True, timeout=TIMEOUT_S, cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8:strict"},
    )  # fmt: skip
    assert b"this is no share code" in done.stderr


@pytest.mark.parametrize(
    "argv",
    [
        ("show", ""),
        ("look", ""),
        ("import", "", "-o", "x.parquet"),
        ("export", "", "-o", "x.html"),
        ("analyze", "", "summary"),
        ("analyze", "t.parquet", "compare", ""),
    ],
    ids=" ".join,
)
def test_a_name_that_is_empty_is_no_name_of_this_folder(capsys, tmp_path, monkeypatch, argv):
    """`workbench show "$TRACE"` where the shell's variable is not set."""
    monkeypatch.chdir(tmp_path)
    code, line = failure(capsys, *argv)
    assert (code, "the name is empty" in line) == (2, True), line


@pytest.fixture
def code(capsys):
    """A short run, as a share code."""
    assert main(["run", "credit", "--act", "grant:link_credit=2", "--share"]) == 0
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    "argv",
    [
        ("look", "t.parquet", "-o", "x.html"),
        ("export", "t.parquet", "-o", "x.html"),
        ("export", "t.parquet", "-o", "x.pcapng"),
        ("export", "CODE", "--expect", "no-overrun", "-o", "test_x.py"),
        ("run", "--code", "CODE", "-o", "x.parquet"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_written_is_named_as_it_was_given(tmp_path, monkeypatch, code, argv):
    """Not the file that the program writes first; and no part of it is left [no file may grow]."""
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--code", code, "-o", "t.parquet"]) == 0
    limited = (
        "import resource, sys; from workbench.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)); sys.exit(main(sys.argv[1:]))"
    )
    words = [code if word == "CODE" else word for word in argv]
    done = subprocess.run(
        [sys.executable, "-B", "-c", limited, *words], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 1
    line = done.stderr.rstrip("\n")
    assert re.fullmatch(
        rf"workbench {argv[0]}: {argv[-1]}: (cannot write there: )?File too large", line
    )
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


@pytest.mark.parametrize("command", ["look", "export"])
def test_a_place_that_may_only_be_read_is_named_as_it_was_given(
    capsys, tmp_path, monkeypatch, code, command
):
    """As on a full disk."""
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--code", code, "-o", "t.parquet"]) == 0
    capsys.readouterr()

    really = os.open

    def refused(path: str, *more: int) -> int:
        if "x.html" in os.fspath(path):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return really(path, *more)

    monkeypatch.setattr("workbench.trace.whole.os.open", refused)
    line = f"workbench {command}: x.html: Read-only file system"
    assert failure(capsys, command, "t.parquet", "-o", "x.html") == (1, line)


@pytest.mark.parametrize("name", MODULES)
def test_each_command_teaches_itself(capsys, name, monkeypatch):
    """Help says what a command does and shows it at work, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([name, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"  workbench {name}" in told
    assert max(map(len, told.splitlines())) < 80
    alone = argparse.ArgumentParser()
    commands(name)[name].add_arguments(alone)
    assert [one.dest for one in alone._actions if not re.search(r"[a-z]{2}", one.help or "")] == []


def test_help_lists_every_command_and_the_exit_codes(capsys, monkeypatch):
    """The first thing a person types tells all there is."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) < 80
    for name in MODULES:
        assert name in told
    assert "Exit codes: 0 done; 1" in told


def test_the_design_s_commands_are_there():
    """The commands of the project, by name."""
    assert {"lab", "run", "import", "show", "export", "scenarios", "doctor"} <= set(commands())


def test_help_answers_at_once():
    """`workbench --help` loads no drawing, data or messaging package."""
    heavy = ("pyarrow", "bokeh", "ipywidgets", "networkx", "pandas", "proton", "jupyterlab", "rich")
    code = (
        "import sys; from workbench.cli.main import parser; parser().format_help();"
        f"print(*[name for name in {heavy!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_python_m_workbench_is_the_same(tmp_path):
    """The module and the console script are one program, with its exit code."""
    command = [sys.executable, "-m", "workbench", "show", str(tmp_path / "absent.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no such file" in done.stderr


@pytest.mark.parametrize("program", ["-m workbench", "the console script"])
@pytest.mark.parametrize("module", ["workbench.cli", "argparse", "workbench.cli.scenarios"])
def test_an_interruption_while_the_program_is_loaded_is_one_line_too(program, module):
    """Ctrl-C within the first tenth of a second, in an import, shows no traceback."""
    start = "import runpy; runpy.run_module('workbench', run_name='__main__')"
    if program != "-m workbench":
        declared = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
        place, _, name = declared["project"]["scripts"]["workbench"].partition(":")
        start = f"from {place} import {name}; sys.exit({name}())"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT.format(module=module, start=start), "scenarios"],
        capture_output=True, text=True, timeout=TIMEOUT_S,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout == ""
    assert re.fullmatch("workbench( scenarios)?: stopped\n", done.stderr)
    assert done.returncode == 130


INTERRUPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
class CtrlC:
    @staticmethod
    def find_spec(name, *_):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.modules.pop({module!r}, None)
sys.meta_path.insert(0, CtrlC)
{start}
"""


def test_an_old_code_page_shows_arrows_written_out(tmp_path, capsys):
    """Output goes on where a terminal knows no arrow."""
    trace = tmp_path / "credit.parquet"
    assert main(["run", "credit", "--act", "grant:link_credit=1", "-o", str(trace)]) == 0
    assert main(["show", str(trace)]) == 0
    assert "→" in capsys.readouterr().out
    code = "from workbench.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code, "show", str(trace)],
        capture_output=True, timeout=TIMEOUT_S,
        env={"PYTHONIOENCODING": "ascii:strict", "PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr
    assert b"\\u2192" in done.stdout


def test_what_hides_in_a_text_is_made_visible():
    """A name with control or direction characters cannot rearrange the line it is shown in."""
    assert one_line("a\tb\n c\x1b[1m\u202edcba") == r"a b c\x1b[1m\u202edcba"


def test_octets_of_a_name_that_are_no_text_are_shown_as_such():
    """As in the name of a run; half of a surrogate pair is no octet, and is written out."""
    assert one_line(os.fsdecode(b"caf\xe9.pcap")) == "caf\N{REPLACEMENT CHARACTER}.pcap"
    assert one_line("\ud800") == r"\ud800"


@pytest.mark.skipif(shutil.which("bash") is None, reason="for a shell that knows $'...'")
@pytest.mark.parametrize(
    "name",
    [b"my t.parquet", b"caf\xe9.parquet", b"it's \xe9\n\x1b[2J.parquet", "\u202ecaf\xe9".encode()],
)
def test_a_command_that_opens_a_row_can_be_typed_whatever_the_trace_is_called(name):
    """It is one line of harmless text, and a shell makes the same name of it."""
    command = show_command(os.fsdecode(name), "run", 7)
    assert one_line(command) == command
    assert command.startswith("workbench show ")
    given = command.removeprefix("workbench show ")
    made = subprocess.run(["bash", "-c", f"printf '%s\\0' {given}"], capture_output=True)
    assert made.stdout.split(b"\0")[:-1] == [name, b"--run=run", b"--at", b"7"]


@pytest.mark.parametrize(
    ("given", "told"),
    [("credti", "; did you mean credit?"), ("zzz", "; there are: credit, drain")],
)
def test_the_nearest_name_is_suggested(given, told):
    """A slip of the finger gets the right name, anything else the list."""
    assert suggestion(given, ["credit", "drain"]) == told


def test_progress_is_for_watchers_only(monkeypatch, capsys):
    """Nothing is drawn where stderr is a file; on a terminal the line is gone at the end."""
    with Progress("counting", 3) as progress:
        list(progress.over(range(3), every=1))
    assert capsys.readouterr().err == ""

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress("counting", 3) as progress:
        assert list(progress.over(range(3), every=1)) == [0, 1, 2]
    drawn = terminal.getvalue()
    assert "67% of 3 rows" in drawn
    assert drawn.endswith("\x1b[1A\x1b[2K")  # the line is erased


class Terminal(io.StringIO):
    """A stream that somebody watches."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def shown(rows, opened):
    """A table of two columns."""
    table(["run", "what"], rows, caption="the end", opened=opened)


def test_a_table_in_a_file_has_everything_in_a_line(capsys):
    """However long it is: who reads it looks for columns."""
    shown([["r", "[b]x[/b] \x1b[2J"], [None, "y" * 300]], ["open 1", None])
    assert capsys.readouterr().out.splitlines() == [
        f"run  {'what':<300}  open it with",
        "r    " + r"[b]x[/b] \x1b[2J".ljust(300) + "  open 1",
        f"-    {'y' * 300}  -",
        "the end",
    ]


def test_words_on_a_terminal_are_whole_and_set_in(monkeypatch, capsys):
    """What goes on in the next line stands deeper; a file gets one line, to search in."""
    monkeypatch.setenv("COLUMNS", "40")
    drawn = "\x1b[1mblocked by\x1b[0m" + " " * 28 + "\x1b[0m"
    lines = ["Links", drawn, "", "  c1/1 receiver: " + "a-long-word and " * 8 + "the end"]
    tell(lines)
    assert capsys.readouterr().out.splitlines() == lines
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    tell(lines)
    *before, first = terminal.getvalue().splitlines()[:4]
    others = terminal.getvalue().splitlines()[4:]
    assert before == lines[:3]
    assert len(others) > 3
    assert max(map(len, (first, *others))) <= 40
    assert {len(line) - len(line.lstrip()) for line in others} == {4}
    assert " ".join(line.strip() for line in (first, *others)) == lines[3].strip()


def test_a_table_on_a_terminal_fits_it(monkeypatch):
    """What is the same in every row is said once, and commands stand below, to be copied."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    shown([["r", "x " * 50], ["r", "y"]], ["workbench show " + "t" * 80, None])
    lines = re.sub(r"\x1b\[\d*m", "", terminal.getvalue()).splitlines()
    assert "in every row: run r" in lines
    assert lines[-2] == "#1: workbench show " + "t" * 80
    assert max(len(line) for line in lines if not line.startswith("#1:")) <= 60


@pytest.mark.parametrize("width", [30, 60, 200])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_no_word_of_a_table_is_on_two_lines(monkeypatch, width, count):
    """Rows that are too wide for a terminal become paragraphs."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    names = ["measure", "messages_waiting", "release_frame_id", "advice", "nothing"]
    rows = [[f"settle_us{n}", 160_000 + n, n / 2, f"{n} more", None] for n in range(count)]
    table(names, rows, caption="the end")
    told = re.sub(r"\x1b\[\d*m", "", terminal.getvalue())
    assert max(map(len, told.splitlines())) <= width
    wanted = {"messages_waiting", *(str(one) for row in rows for one in row[:2])} if rows else ()
    for word in wanted:
        assert re.search(rf"\b{word}\b", told)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(16.0, "16"), (218029.66666666666, "218030"), (2.365068156432345, "2.365"), (12.5, "12.5"),
     (11398919.0, "11398919"), (0.0, "0"), (-0.5, "-0.5"), (1e-9, "1e-09"), (True, "True"),
     (218029, "218029"), (None, "-"), ("16.0", "16.0")],
)  # fmt: skip
def test_a_number_has_as_many_digits_as_one_reads(value, shown):
    """Programs get all of them, as JSON or CSV."""
    assert cell(value) == shown


def test_the_package_s_main_is_the_command_line():
    """The console script of pyproject.toml names it."""
    assert main is real_main
    assert parser().prog == "workbench"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_json_is_json_whatever_encoding_the_output_has(encoding, monkeypatch):
    """JSON has no other encoding than UTF-8 [RFC 8259, 8.1]."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", out)
    out.write(as_json({"run": "\U0001f642ä"}))
    out.flush()
    assert json.loads(out.buffer.getvalue().decode("utf-8")) == {"run": "\U0001f642ä"}
