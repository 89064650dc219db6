"""A run written as a pytest file: it passes as it is, and fails when the run is another one."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.cli.console import CommandError
from workbench.cli.testing import as_test
from workbench.scenarios import run
from workbench.scenarios.race import RULE, YOURS
from workbench.scenarios.share import share_code


@pytest.fixture(scope="module")
def granted():
    """Three of ten messages, and seven that wait."""
    return run("credit").then("grant", link_credit=3)


def ran(path: Path) -> list[str]:
    """The names of the tests of a file that failed."""
    names = runpy.run_path(str(path))
    failed = []
    for name, test in names.items():
        if name.startswith("test_"):
            try:
                test()
            except AssertionError:
                failed.append(name)
    return failed


EVERYTHING = ["hash", "no-overrun", "arrived", "blocked=link-credit"]


def test_a_share_code_becomes_a_test_that_passes(folder, granted, capsys):
    """With what was chosen, and nothing else; the file needs only this project."""
    expects = [word for one in EVERYTHING for word in ("--expect", one)]
    assert main(["export", share_code(granted), "-o", "test_it.py", *expects]) == 0
    assert "4 tests" in capsys.readouterr().err
    assert ran(folder / "test_it.py") == []
    text = (folder / "test_it.py").read_text("utf-8")
    assert "arguments={'link_credit': 3}" in text
    assert "assert held == 3_000" in text
    assert "assert len(arrived) == 3" in text


def test_the_test_fails_when_the_run_is_another_one(folder, granted):
    """A message more is another hash and another count, a longer wire another time blocked."""
    text, file = as_test(granted, EVERYTHING), folder / "test_it.py"
    file.write_text(text.replace("'link_credit': 3", "'link_credit': 4"), encoding="utf-8")
    assert ran(file) == ["test_the_run_goes_as_it_went", "test_so_many_messages_arrive"]
    file.write_text(text.replace("'latency_us': 1000", "'latency_us': 1500"), encoding="utf-8")
    assert ran(file) == ["test_the_run_goes_as_it_went", "test_blocked_by_link_credit_for_so_long"]


def test_numbers_of_a_preset_that_were_changed_go_along(folder):
    """A run under another setting is written with it."""
    changed = run("publishers", "rmq4.3", {"max_link_credit": 20}).then("publish", count=30)
    (folder / "test_it.py").write_text(as_test(changed, ["hash"]), encoding="utf-8")
    assert ran(folder / "test_it.py") == []


def _ours(*counts: int) -> int:
    return counts[1]


@pytest.mark.parametrize(
    ("expects", "telling"),
    [
        (["speed"], "legal: hash, no-overrun, arrived, blocked=BRAKE"),
        (["blocked"], "legal: hash"),
        (["blocked=alarm"], "nobody with something to send was blocked by that"),
    ],
)
def test_what_is_not_true_of_the_run_is_no_test(granted, expects, telling):
    """One line that says why."""
    with pytest.raises(CommandError, match=telling):
        as_test(granted, expects)


def test_a_wrong_sender_is_no_test_of_no_overrun():
    """And a rule of one's own cannot be written down."""
    flows = ["send_flow", "send_flow", "flow_arrives", "flow_arrives", *["send_transfer"] * 9]
    wrong = run("race", parameters={"rule": "add"}).act_each(flows)
    with pytest.raises(CommandError, match="beyond-credit"):
        as_test(wrong, ["no-overrun"])
    own = run("race", parameters={"rule": YOURS}, code={RULE: _ours})
    with pytest.raises(CommandError, match="code of your own"):
        as_test(own)


@pytest.mark.parametrize("name", ["out.html", "out.pcapng"])
@pytest.mark.parametrize("piped", [False, True])
def test_a_share_code_is_told_to_be_no_trace(folder, granted, capsys, name, piped):
    """In one line without the code, with what makes a trace of it."""
    code = share_code(granted)
    assert main(["export", "-" if piped else code, "-o", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "workbench run --code CODE -o run.parquet" in line
    assert code not in line
    assert list(folder.iterdir()) == []
