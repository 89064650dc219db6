"""A sender of the learner's own, tried in every order; what a green verdict is worth."""

import pytest

from workbench import serial
from workbench.exercises.own_sender import TrialView, try_sender
from workbench.exercises.trial import Trial
from workbench.scenarios import rules
from workbench.scenarios.schedules import states_along


def sets(state, frame):
    """The belief *sets*."""
    state.link_credit = frame.link_credit


def adds(state, frame):
    """The belief *adds*."""
    state.link_credit += frame.link_credit


def right(state, frame):
    """The rule of 2.6.7."""
    in_flight = serial.diff(state.delivery_count, frame.delivery_count)
    return max(0, frame.link_credit - in_flight)


def never(state, frame):
    """Safe, and useless."""
    return 0


@pytest.mark.parametrize("on_flow", [sets, adds, right])
def test_with_one_grant_every_sender_passes(on_flow):
    """So such a test cannot tell a wrong one from the right one."""
    trial = Trial(on_flow, messages=10, grants=[3])
    assert trial.passed
    assert trial.text.startswith("✔ With 1 grant nothing goes wrong")
    assert trial.alike == ("spec", "set", "add")
    assert trial.blind


@pytest.mark.parametrize("on_flow", [sets, adds])
def test_with_two_grants_a_wrong_sender_breaks_and_the_shortest_way_opens(on_flow):
    """The schedule is played on the real broker with that very function."""
    trial = Trial(on_flow, messages=10, grants=[3, 6])
    assert not trial.passed
    assert not trial.blind
    last = states_along(trial.model, trial.breaking)[-1]
    view = trial.model.describe(last)
    assert f"link-credit {view.snd_link_credit}" in trial.text
    assert len(trial.story) == len(trial.breaking) + 1
    assert trial.story[-1] in str(trial)
    assert f"this one takes {view.snd_link_credit}" in trial.broken().still()


def test_the_right_sender_passes_and_no_wrong_rule_looks_like_it():
    """All states visited, none bad; with two grants the test is worth something."""
    trial = Trial(right, messages=10, grants=[3, 6])
    assert trial.passed
    assert trial.broken() is None
    assert trial.alike == ("spec",)
    assert not trial.blind
    view = try_sender(right)
    assert view.worth not in buttons(view)
    assert view.button not in buttons(view)


def buttons(view: TrialView) -> tuple:
    """The buttons that a view offers."""
    return view.children[2].children


def test_what_a_green_verdict_is_worth_is_told_when_asked():
    """Which rules look the same, and what one grant more does to the very same sender."""
    view = try_sender(sets, messages=10, grants=[3])
    assert view.asked.children == ()
    view.worth.click()
    told, further = view.asked.children
    states = len(view.trial.found.ordered)
    assert f"“spec”, “set”, “add” reach exactly the same {states} states" in told.value
    assert further.trial.grants == (3, 6)
    assert not further.trial.passed
    assert further.button in buttons(further)


def test_what_looks_alike_comes_from_the_rules_as_they_are(monkeypatch):
    """Another rule under the name, another answer."""
    changed = {**rules.RULES, "add": rules.RULES["spec"]}
    monkeypatch.setattr(rules, "RULES", changed)
    assert Trial(right, messages=10, grants=[3, 6]).alike == ("spec", "add")


def test_a_sender_that_never_sends_is_not_called_right():
    """Safe and useless: the way to where it waits for ever opens as well."""
    trial = Trial(never, messages=3, grants=[2])
    assert not trial.passed
    assert "It waits for ever" in trial.text
    assert trial.breaking
    assert trial.broken() is not None


def test_a_receiver_that_lowers_its_credit_calls_no_sender_timid():
    """The furthest limit is then not what the receiver allows now."""
    assert Trial(right, messages=8, grants=[6, 2]).passed


def test_a_sender_that_fails_is_told_in_words():
    """Nothing is raised into the learner's face; there is nothing to open."""
    trial = Trial(lambda state, frame: 1 // 0, messages=3, grants=[1])
    assert trial.text.startswith("✘ on_flow raises ZeroDivisionError")
    assert not trial.passed
    assert trial.broken() is None
    assert buttons(TrialView(trial)) == ()
    assert Trial(5, messages=3, grants=[1]).text.startswith("✘ on_flow is 5, not a function")


def test_a_sender_that_never_ends_is_stopped_and_told():
    """The page never hangs."""

    def endless(state, frame):
        while True:
            pass

    assert "does not come to an end" in Trial(endless, messages=3, grants=[1]).text


def test_what_a_sender_prints_is_kept_for_it():
    """And shown with the verdict, as text."""

    def chatty(state, frame):
        print("<hello>")  # noqa: T201
        return frame.link_credit

    view = try_sender(chatty, messages=3, grants=[1])
    assert "<hello>" in str(view.trial)
    assert "&lt;hello&gt;" in view.printed.value


def test_the_view_opens_the_breaking_schedule_or_all_schedules():
    """One at a time; the lattice is that of the learner's own rule, with the way that breaks it."""
    view = try_sender(sets)
    view.button.click()
    assert view.place.children == (view.shown,)
    view.all.click()
    assert view.place.children == (view.shown,)
    assert view.shown.found.states == view.trial.found.states
    assert view.shown.view.path == view.trial.breaking
    view.shown.view.nearest.click()
    assert view.shown.stage is not None


def test_without_a_kernel_the_verdict_and_the_schedule_stay():
    """Move by move."""
    bundle = try_sender(adds)._repr_mimebundle_()
    texts = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "✘" in texts["text/plain"]
    assert "1. The receiver sends flow" in texts["text/plain"]
    assert "<pre" in texts["text/html"]


@pytest.mark.parametrize("grants", [(6, 3), (5, 4), (3, 6, 5), (2, 2, 1)])
@pytest.mark.parametrize("start", [0, 2**32 - 2])
def test_a_lower_grant_hides_nobody_who_sends_nothing(grants, start):
    """Before it comes, whoever holds less than was granted waits for nothing."""
    given = {"messages": 8, "grants": grants, "initial_delivery_count": start}
    assert not Trial(never, **given).passed
    assert Trial(right, **given).passed


def test_a_longer_link_is_offered_as_far_as_credit_can_be_counted():
    """Twice the largest grant would be more than serial numbers tell apart."""
    view = try_sender(right, messages=2, grants=(1_500_000_000,))
    longer = view.trial.further()
    assert longer.grants == (1_500_000_000, 2**31 - 3)
    assert longer.passed
