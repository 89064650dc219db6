"""`workbench explore`: what programs and people read, and what is refused."""

import json
import re

import pytest

from workbench.cli.main import main


def explored(capsys, *words):
    """The JSON of one exploration."""
    assert main(["explore", *words, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("rule", "states", "bad", "moves"),
    [("spec", 145, 0, None), ("set", 383, 238, 5), ("add", 197, 136, 4)],
)
def test_json_has_states_bad_shortest_and_complete(capsys, rule, states, bad, moves):
    """The counts of an independent search come out of the command."""
    found = explored(capsys, "--messages", "10", "--grants", "3,6", "--rule", rule)
    assert (found["states"], found["bad"], found["complete"]) == (states, bad, True)
    assert (None if found["shortest"] is None else len(found["shortest"])) == moves
    assert sum(found["levels"]) == states


def test_a_bound_is_kept_and_told(capsys):
    """An unfinished search is no proof, and says so."""
    found = explored(capsys, "--messages", "40", "--grants", "10,10,10,10", "--max-states", "500")
    assert (found["states"], found["complete"]) == (500, False)
    assert "500 states" in found["stopped"]
    assert main(["explore", "--messages", "40", "--max-states", "20"]) == 0
    assert "proves nothing" in capsys.readouterr().out


def test_people_read_the_shortest_bad_schedule_with_its_numbers(capsys):
    """Each move with what the sender then believes."""
    assert main(["explore", "--rule", "add"]) == 0
    told = capsys.readouterr().out
    assert "shortest bad schedule" in told
    assert told.count("furthest limit") == told.count("link-credit") > 0
    last = "the sender may now send 9 from 0 on: beyond 6, and no flow granted more"
    assert told.splitlines()[-1] == last
    assert main(["explore"]) == 0
    assert "all were visited" in capsys.readouterr().out


@pytest.mark.parametrize("start", ["20", "2147483648", "4294967294"])
def test_the_first_delivery_count_changes_no_verdict(capsys, start):
    """Counts, schedule and levels are those from 0."""
    words = ("--rule", "set", "--grants", "3,6")
    assert explored(capsys, *words, "--initial-delivery-count", start) == explored(capsys, *words)


def test_an_interrupt_ends_it_with_one_line(capsys, monkeypatch):
    """Ctrl-C: no traceback, nothing half printed, the exit code of an interrupted program."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.sim.explorer.explore", interrupted)
    assert main(["explore", "--format", "json"]) == 130
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "workbench explore: stopped\n"


def test_long_work_tells_on_stderr_how_far_it_is(capsys, monkeypatch):
    """Where somebody watches; standard output holds the answer alone."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    words = ["explore", "--messages", "20", "--grants", "5,5,5,5", "--format", "json"]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "exploring" in told.err
    assert re.search(r"[\d,]+ states", told.err)
    assert json.loads(told.out)["complete"]
