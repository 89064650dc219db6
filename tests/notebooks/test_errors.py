"""What a notebook shows where what was asked for cannot be done."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

ASKED = {
    "a capture that is not there": (
        "from workbench.capture.importer import import_capture; import_capture('nowhere.pcap')",
        "CaptureError: nowhere.pcap: No such file or directory",
    ),
    "a trace that is not there": (
        "from workbench.trace import read; read('nowhere.parquet')",
        "TraceFileError: nowhere.parquet: no such file or folder",
    ),
    "a parameter out of its range": (
        "from workbench import run; run('credit', parameters={'messages': -1})",
        "ParameterError: messages is -1",
    ),
    "an action that is none": (
        "from workbench import run; run('credit').act(3, 'pray')",
        "ActionError: ",
    ),
    "captures that are not there": (
        "from workbench.analysis.places import captures; captures('nowhere/*.pcap')",
        "AnalysisError: nowhere/*.pcap: no capture there",
    ),
}


@pytest.fixture
def shell():
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("what", ASKED)
def test_the_line_is_shown_and_not_the_way_to_it(shell, capsys, what):
    code, line = ASKED[what]
    result = shell.run_cell(code)
    assert result.error_in_exec is not None
    shown = capsys.readouterr().out.strip()
    assert shown.startswith(line)
    assert "\n" not in shown


def test_of_a_mistake_in_the_code_the_way_is_shown(shell, capsys):
    shell.run_cell("from workbench import run; run('credit').rows[0].no_such_name")
    assert "Traceback" in capsys.readouterr().out
