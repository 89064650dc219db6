"""A run from a share code: the same one, elsewhere and later, or words that say why not."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patience import TIMEOUT_S
from workbench import presets
from workbench.peers import proton_peer
from workbench.scenarios import ActionError, run, share
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.run import step_of
from workbench.scenarios.share import ShareCodeError, open_code, share_code
from workbench.trace.hash import trace_hash
from workbench.trace.share import decode, encode

REPO = Path(__file__).resolve().parent.parent.parent


def example():
    """A run with three acts."""
    played = run("credit", parameters={"messages": 25}, seed=3)
    played = played.act(played.start_seq, "grant", link_credit=10)
    played = played.act(40, "grant", link_credit=2)
    return played.act(len(played.rows) - 1, "acknowledge", count=2, outcome="released")


def altered(code: str, **changes) -> str:
    """The same code with other contents and right checksums: an outdated one, or a forged one."""
    from dataclasses import replace

    return encode(replace(decode(code), **changes))


def test_the_run_comes_back_with_its_cursor():
    """Rows, acts, parameters, seed, and the step that was looked at."""
    played = example()
    restored = open_code(share_code(played, 41))
    assert restored.problems == ()
    assert restored.same is True
    assert restored.cursor == 41
    assert restored.run.identity() == played.identity()
    assert trace_hash(restored.run.rows) == trace_hash(played.rows)
    assert share_code(restored.run, restored.cursor) == share_code(played, 41)
    assert "It is the run that was shared" in str(restored)


def test_without_a_cursor_it_opens_where_the_set_up_ends():
    """As a panel does."""
    played = example()
    assert open_code(share_code(played)).cursor == played.start_seq + 1
    with pytest.raises(ValueError, match=f"no step -1; legal: 0 to {len(played.rows)}"):
        share_code(played, -1)


def test_the_steps_that_are_told_are_those_of_the_stage():
    """Step 1 is where the set-up ends; the steps of the set-up have no number."""
    played = example()
    last = step_of(played.rows[-1])
    told = open_code(share_code(played)).summary
    assert f"with 3 actions, at step 1 of {last}." in told
    assert f"at step {last} of {last}." in open_code(share_code(played, len(played.rows))).summary
    for cursor in (0, played.start_seq):
        assert "with 3 actions, in its set-up." in open_code(share_code(played, cursor)).summary


ACTS = st.one_of(
    st.tuples(st.just("grant"), st.fixed_dictionaries({"link_credit": st.integers(0, 12)})),
    st.tuples(st.just("publish"), st.fixed_dictionaries({"count": st.integers(1, 4)})),
    st.tuples(st.sampled_from(["drain", "echo", "stop", "acknowledge"]), st.just({})),
    st.tuples(
        st.just("set_latency"),
        st.fixed_dictionaries({"latency_us": st.sampled_from([0, 250, 5000])}),
    ),
)


@settings(max_examples=25)
@given(
    parameters=st.fixed_dictionaries(
        {
            "messages": st.integers(0, 12),
            "latency_us": st.sampled_from([0, 1000]),
            "policy": st.sampled_from(["manual", "one-at-a-time", "top-up-at-half"]),
            "initial_delivery_count": st.sampled_from([0, 4294967294]),
            "publisher": st.sampled_from(["hidden", "visible"]),
        }
    ),
    acts=st.lists(st.tuples(st.integers(0, 10**6), ACTS), max_size=5),
    window=st.sampled_from([None, 2, 4]),
)
def test_any_legal_run_comes_back_the_same(parameters, acts, window):
    """Whatever was set and done, wherever in the past it was done."""
    preset = presets.get("spec")
    if window is not None:
        from dataclasses import replace

        preset = replace(preset, client_incoming_window=window, client_incoming_window_regrant_at=1)
    played = run("credit", preset, parameters)
    for at, (name, arguments) in acts:
        try:
            played = played.act(at % (len(played.rows) + 1) - 1, name, **arguments)
        except ActionError:
            continue
    restored = open_code(share_code(played, len(played.rows)))
    assert restored.problems == ()
    assert restored.same is True
    assert restored.run.identity() == played.identity()
    assert restored.cursor == len(played.rows)


def test_a_code_gives_the_same_hash_in_a_fresh_process():
    """Nothing of this process is in it: another interpreter, with another hash seed, agrees."""
    runs = [example(), run("credit"), run("credit", parameters={"policy": "article-200-100"})]
    race = run("race", parameters={"rule": "set"})
    race = race.act(race.start_seq, "send_flow")
    runs.append(race)
    program = (
        "import json, sys\n"
        "from workbench.scenarios.share import open_code\n"
        "from workbench.trace.hash import trace_hash\n"
        "for code in json.load(sys.stdin):\n"
        "    restored = open_code(code)\n"
        "    print(restored.same, restored.cursor, trace_hash(restored.run.rows))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps([share_code(each, 5) for each in runs]),
        cwd=REPO, capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
    ).stdout.splitlines()  # fmt: skip
    assert told == [f"True 5 {trace_hash(each.rows)}" for each in runs]


def test_reading_a_code_executes_and_unpickles_nothing():
    """No `eval`, `exec`, `pickle`, `marshal` or import by name in what reads it."""
    for module in ("trace/share.py", "scenarios/share.py", "exercises/progress.py"):
        source = (REPO / "workbench" / module).read_text()
        for word in ("eval(", "exec(", "pickle", "marshal", "import_module", "__import__"):
            assert word not in source, module


# -- what cannot be restored --------------------------------------------------------------------


def piece(code: str, tag: str) -> str:
    """One part of a code."""
    return next(one for one in code.split(".")[1:] if one[0] == tag)


def broken(code: str, tag: str) -> str:
    """A code with one part damaged."""
    part = piece(code, tag)
    return code.replace(part, part[:3] + ("A" if part[3] != "A" else "B") + part[4:])


def told(restored) -> str:
    """Everything that is said about a restoring."""
    return "\n".join(restored.problems)


def test_without_its_acts_the_rest_of_the_run_is_there():
    """The part is named, and so is that the run differs."""
    restored = open_code(broken(share_code(example(), 60), "A"))
    assert restored.problems[0] == "actions: this part is damaged: its checksum does not fit."
    assert restored.run.actions == ()
    assert restored.run.parameters["messages"] == 25
    assert restored.same is False
    assert "not the one that was shared" in told(restored)
    assert "A hash tells that rows differ, not which" in told(restored)
    begins, last = restored.run.start_seq, step_of(restored.run.rows[-1])
    gone = f"there is no step {60 - begins} in this run; it opens at step {last} of"
    assert gone in told(restored)


def test_without_its_cursor_the_run_is_the_one_that_was_shared():
    """It opens where the set-up ends; the hash says that nothing else is lost."""
    restored = open_code(broken(share_code(example(), 60), "C"))
    assert restored.problems == ("cursor: this part is damaged: its checksum does not fit.",)
    assert restored.cursor == restored.run.start_seq + 1
    assert restored.same is True


def test_without_its_hash_nobody_can_say_whether_it_is_the_same():
    """The run is made; that it was not checked is said."""
    restored = open_code(broken(share_code(example(), 60), "H"))
    assert restored.same is None
    assert "cannot be told without its trace hash" in told(restored)
    assert restored.run.identity() == example().identity()


def test_without_its_scenario_the_parameters_may_tell_which_it_was():
    """Only one scenario has these parameters, and the hash agrees."""
    restored = open_code(broken(share_code(example(), 60), "S"))
    assert "scenario: taken to be credit, which alone has these parameters." in restored.problems
    assert restored.run.actions == example().actions


def test_without_scenario_and_parameters_what_is_left_is_told():
    """So that a person can make the run by hand."""
    restored = open_code(broken(broken(share_code(example(), 60), "S"), "P"))
    assert restored.run is None
    assert "the code also says: actions grant after row 26, grant after row 40" in told(restored)
    assert str(restored).startswith("Nothing could be restored.")


def test_an_unknown_scenario_is_named_with_those_there_are():
    """A newer workbench may have more."""
    restored = open_code(altered(share_code(example()), scenario="cre\u202edit"))
    assert restored.run is None
    assert r"scenario: “cre\u202edit” is unknown; there are asking, chain" in told(restored)
    assert "parameters" in told(restored)


def test_an_unknown_preset_and_unknown_numbers_are_named():
    """`spec` stands in for it; a number that cannot be is left as it is."""
    code = share_code(example())
    restored = open_code(altered(code, preset="rmq9.9"))
    assert "preset: “rmq9.9” is unknown, spec is taken; there are spec" in told(restored)
    assert restored.run.preset.name == "spec"
    changes = {"warp": 9, "incoming_window": "wide", "handle_max": -1, "messages": True}
    restored = open_code(altered(code, preset_changes=changes))
    for name in ("“warp”", "incoming_window cannot be", "handle_max cannot be", "messages cannot"):
        assert name in told(restored)
    assert restored.run is not None


def test_unknown_and_illegal_parameters_are_named_and_get_their_defaults():
    """An outdated code: one was renamed, of another the range is smaller now."""
    code = share_code(example())
    given_values = {"messages": 25, "speed": 3, "latency_us": -5, "policy": "greedy", "n": "many"}
    restored = open_code(altered(code, parameters=given_values))
    assert "parameters: credit has no “speed”." in restored.problems
    assert "latency_us is -5; legal: 0 to" in told(restored)
    assert "policy is 'greedy'; legal: one of manual" in told(restored)
    assert restored.run.parameters["messages"] == 25
    assert restored.run.parameters["latency_us"] == presets.get("spec").wire_latency_us


def test_acts_that_are_not_legal_any_more_are_left_out_one_by_one():
    """Each is named with its number and what would be legal; the others are done."""
    code = share_code(example())
    acts = [
        (26, "grant", {"link_credit": 10}),
        (26, "fly", {}),
        (30, "grant", {"link_credit": -1}),
        (40, "grant", {"link_credit": 2}),
        (9_999, "echo", {}),
    ]
    restored = open_code(altered(code, acts=acts))
    assert [action.name for action in restored.run.actions] == ["grant", "grant"]
    assert "actions: number 2, fly() after row 26, is left out: credit has no action 'fly'" in told(
        restored
    )
    assert "actions: number 3, grant(link_credit=-1) after row 30, is left out" in told(restored)
    assert "actions: number 5, echo() after row 9999, is left out: row 9999 does not exist" in told(
        restored
    )


def test_a_code_full_of_refused_acts_costs_no_more_than_a_few_runs():
    """Ten are looked at, the others are left out at once."""
    acts = [(26, "grant", {"link_credit": 1}), *[(27, "fly", {})] * 40]
    restored = open_code(altered(share_code(run("credit")), acts=acts))
    assert len([one for one in restored.problems if "is left out" in one]) == share.MOST_REFUSED
    assert "31 more are left out" in told(restored)


def test_a_run_that_went_otherwise_in_another_version_of_the_model_says_what_has_changed():
    """Only a difference is reported: an old code whose run is still the same is fine."""
    code, now = share_code(example()), share.MODEL_VERSION
    assert open_code(altered(code, model=now - 1)).problems == ()
    for made, since in ((now - 1, share.CHANGED[now]), (now + 1, "does not know")):
        restored = open_code(altered(code, model=made, trace_hash="ab" * 32))
        assert restored.same is False
        assert f"made with version {made} of the model, this is {now}; since" in told(restored)
        assert since in told(restored)
        assert "begins with" in told(restored)


def test_a_client_that_is_not_installed_here_is_replaced(monkeypatch):
    """The reason is told in the words of whoever misses it; the rest of the run is there."""
    code = altered(
        share_code(run("credit", parameters={"messages": 3})),
        parameters={**run("credit").parameters, "messages": 3, "client": "proton"},
    )

    def missing():
        raise proton_peer.ProtonMissingError("python-qpid-proton is not installed")

    monkeypatch.setattr(proton_peer, "_proton", missing)
    restored = open_code(code)
    assert "with client=proton it cannot be played here: python-qpid-proton is not" in told(
        restored
    )
    assert "client=scripted is taken instead" in told(restored)
    assert restored.run.parameters["messages"] == 3


def test_a_row_limit_is_part_of_the_run_and_bounded():
    """A run that was stopped early is stopped early again; nobody can ask for more than usual."""
    played = run("credit", parameters={"policy": "one-at-a-time"}, max_rows=50)
    restored = open_code(share_code(played))
    assert restored.same is True
    assert len(restored.run.rows) == len(played.rows) < 60
    assert open_code(altered(share_code(played), max_rows=10**12)).run.max_rows == share.MAX_ROWS


def test_code_of_a_learner_s_own_is_not_in_it_and_that_is_said():
    """With the function handed in again the run is the same; without it a rule stands in."""

    def mine(delivery_count, link_credit, own_count, own_credit):
        return max(0, delivery_count + link_credit - own_count)

    played = run("race", parameters={"rule": "yours"}, code={"rule": mine})
    code = share_code(played)
    assert "mine" not in str(decode(code))
    alone = open_code(code)
    assert "the run used code of a learner's own (rule), which is never in a share code" in told(
        alone
    )
    assert "rule=spec is taken instead" in told(alone)
    assert open_code(code, code={"rule": mine}).problems == ()


def test_a_run_with_too_many_acts_says_what_to_do():
    """No code is made that nobody can paste."""
    start = run("credit", parameters={"messages": 0}).start_seq
    acts = [
        share.Action(after_seq=start, name="grant", arguments={"link_credit": 7919 * at * at})
        for at in range(420)
    ]
    played = run("credit", parameters={"messages": 0}, actions=acts)
    with pytest.raises(ShareCodeError, match="with 420 actions the share code of this run has"):
        share_code(played)


@settings(max_examples=30)
@given(at=st.integers(0, 10**6), other=st.sampled_from("AZaz09-_.!é "))
def test_a_changed_character_is_harmless_or_reported(at, other):
    """If nothing is said, it is the run that was shared, at the step that was shared."""
    code = share_code(run("credit"), 20)
    at %= len(code)
    restored = open_code(code[:at] + other + code[at + 1 :])
    if not restored.problems:
        assert restored.same is True
        assert restored.cursor == 20


@settings(max_examples=20)
@given(length=st.integers(0, 10**6))
def test_a_code_that_was_cut_off_is_reported(length):
    """At any place."""
    code = share_code(run("credit"), 20)
    assert open_code(code[: length % len(code)]).problems


def test_where_no_code_stands_yet_none_is_called_wrong():
    """As in the cell of a lesson that nobody has filled in."""
    told = ("There is no share code yet: put one between the quotation marks.",)
    assert open_code("").problems == open_code(" \n").problems == told
    assert open_code(None).problems == told  # type: ignore[arg-type]


def test_a_number_in_place_of_a_code_is_told_to_be_none():
    """The quotation marks were forgotten; nothing is raised."""
    (problem,) = open_code(5).problems  # type: ignore[arg-type]
    assert "this is no share code" in problem


def test_a_seed_below_zero_is_not_legal_and_a_code_with_one_gets_zero():
    """Chance is seeded with a count; nothing may stand for another seed in silence."""
    with pytest.raises(ParameterError, match="seed -1 is not legal; legal: 0 or more"):
        run("credit", seed=-1)
    restored = open_code(encode(replace(decode(share_code(run("credit"))), seed=-1)))
    assert restored.run is not None
    assert restored.run.seed == 0
    assert any("-1 is no seed" in problem for problem in restored.problems)
