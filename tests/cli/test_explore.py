"""`workbench explore`: what programs and people read, and what is refused."""

import json

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
    assert main(["explore"]) == 0
    assert "all were visited" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["--grants", "three"],
        ["--grants", "3,6 drain"],
        ["--rule", "guess"],
        ["--messages", "-1"],
        ["--messages", "many"],
        ["--initial-delivery-count", "4294967296"],
        ["--max-states", "0"],
        ["--max-seconds", "-1"],
        ["--max-seconds", "nan"],
        ["--max-megabytes", "0"],
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(capsys, words):
    """Nothing is explored."""
    assert main(["explore", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1
