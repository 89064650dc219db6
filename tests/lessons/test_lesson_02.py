"""What lesson 02 asks and checks: answers, beliefs and verdicts come from runs and searches."""

import pytest

from tests.lessons.asking import judged, solved
from workbench.exercises.progress import Progress
from workbench.exercises.question import judge
from workbench.exercises.recall import known
from workbench.lessons import lesson_02
from workbench.lessons.lesson_02 import CROSSING, ORDERS, acted, orders
from workbench.scenarios import beliefs, run
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkModel,
)
from workbench.scenarios.race import LINK
from workbench.sim.explorer import explore
from workbench.views.scene import parts_at
from workbench.views.stage_widget import StageWidget

ARTICLE = {"initial_delivery_count": 20, "first_credit": 3, "grants": "6"}


@pytest.fixture(scope="module")
def race():
    """The article's race before its first frame."""
    return run("race", parameters=ARTICLE)


# -- the race -----------------------------------------------------------------------------------


def test_the_article_s_race_is_five_and_five_in_both_orders(race):
    """Delivery-count 20, credit 3, a flow of 6 and one message: 20 + 6 − 21 = 5 at both ends."""
    credits = orders(race).credits
    assert [credits["spec", order] for order in CROSSING] == [(5, 5), (5, 5)]
    assert credits["spec", "apart"] == (5, 5)


def test_set_differs_where_the_frames_cross_and_add_everywhere(race):
    """A wrong rule may be right as long as one frame waits for the other."""
    both = orders(race)
    assert both.differing("spec") == []
    assert both.differing("set") == list(CROSSING)
    assert both.differing("add") == list(ORDERS)
    assert [both.credits["set", order] for order in CROSSING] == [(6, 5), (6, 5)]
    assert str(both).count("≠\u00a0differ") == len(CROSSING) + len(ORDERS)


@pytest.mark.parametrize(("answer", "belief"), [(8, "adds"), (6, "sets")])
def test_a_wrong_credit_names_the_belief_behind_it(race, answer, belief):
    """8 is 2 and 6 more, 6 is the flow as it stands; the run shows 5."""
    solution = solved(lesson_02.predict.crossing, race)
    assert solution.answer == 5
    assert "20 + 6 − 21 = 5" in solution.reason
    assert judge(answer, solution).belief == belief
    assert judge(2, solution).belief == "the flow came too late"


def test_which_order_is_read_off_the_runs(race):
    """Never for spec, only crossing for set, always for add."""
    answers = {
        rule: solved(lesson_02.predict.which_order, race, rule).answer
        for rule in ("spec", "set", "add")
    }
    assert answers == {
        "spec": "in no order",
        "set": "only if the frames cross",
        "add": "in every order",
    }


def test_bad_states_are_counted_by_the_search():
    """None by the specification's rule; more than half of 383 with set."""
    asked = lesson_02.predict.bad_states
    assert solved(asked, 10, [3, 6], "spec").answer == "none"
    solution = solved(asked, 10, [3, 6], "set")
    assert solution.answer == "half of them or more"
    assert "Of 383 states that can be reached 238 are bad" in solution.reason
    assert solved(asked, 10, [6, 1], "set").answer == "some, but fewer than half"


def test_one_grant_lets_every_rule_pass():
    """That is why a test that grants once is green; a second grant tells them apart."""
    solution = solved(lesson_02.predict.passing_rules, 10, [3])
    assert solution.answer == 3
    assert judge(1, solution).belief == "a test finds a wrong rule"
    assert solved(lesson_02.predict.passing_rules, 10, [3, 6]).answer == 1


# -- beliefs ------------------------------------------------------------------------------------


def test_every_belief_is_a_sentence_that_can_be_chosen_and_contradicted():
    """Seven beliefs, one truth; each wrong choice names its belief."""
    question = lesson_02.predict.sentence.question()
    solution = question.solve()
    assert len(question.choices) == len(set(question.choices)) == 8
    named = {
        judge(choice, solution).belief for choice in question.choices if choice != solution.answer
    }
    assert len(named) == 7
    assert named <= set(beliefs.BELIEFS)


def looked_at(race):
    """Move the picture once: Compare waits for that."""
    desk = StageWidget(race)
    desk.cursor -= 1


def test_a_wrong_belief_is_shown_beside_the_rule_on_the_same_numbers(race):
    """Commit, compare, show me; another answer puts it away again."""
    looked_at(race)
    view = lesson_02.predict.crossing(race)
    view.view.field.value = "8"
    view.view.commit.click()
    assert view.place.layout.display == "none"
    view.view.compare.click()
    assert view.belief.name == "adds"
    assert view.place.layout.display is None
    view.button.click()
    assert "it stops where your rule and the rule part" in view.told.value
    assert "the misconception “adds”" in view.shown.still()
    assert {**view.shown.run.parameters, **ARTICLE} == view.shown.run.parameters
    view.view.field.value = "5"
    view.view.commit.click()
    view.view.compare.click()
    assert view.belief is None
    assert view.shown is None
    assert view.place.layout.display == "none"


@pytest.mark.parametrize("name", [*beliefs.BELIEFS])
def test_every_sentence_has_a_schedule_in_which_the_stage_shows_both_rules(name):
    """The schedule is searched; the stage's two rules part in it at its last move."""
    played = beliefs.counterexample(name).run()
    place = parts_at(played, name, link=LINK)
    assert place is not None
    assert played.rows[place].seq >= [row.seq for row in played.rows if row.event == "action"][-1]


def test_a_belief_without_a_schedule_is_shown_in_step_with_the_run(race):
    """What it expects stands beside what the sender counts."""
    looked_at(race)
    view = lesson_02.predict.crossing(race)
    view.view.field.value = "2"
    view.view.commit.click()
    view.view.compare.click()
    assert view.prediction.verdict.belief == "the flow came too late"
    view.button.click()
    assert "Beside it is what happens" in view.told.value
    assert "the misconception “the flow came too late”" in view.shown.still()


# -- checks -------------------------------------------------------------------------------------


def crossing_desk(rule: str = "spec"):
    """A desk on which the two frames have crossed."""
    desk = StageWidget(run("race", parameters={**ARTICLE, "rule": rule}))
    for act in ("send_flow", "send_transfer", "flow_arrives", "transfer_arrives"):
        desk.branches.act(desk.branches.run.last, act)
    return desk


def test_a_crossing_is_recognised_on_the_desk():
    """Whichever branch it was made in."""
    log = Progress()
    verdict = lesson_02.check.crossed(crossing_desk(), log=log)
    assert verdict.right
    assert "both ends hold link-credit 5" in verdict.text
    assert log.entries["02/crossed"].right


def test_a_crossing_under_a_wrong_rule_tells_both_numbers():
    """The check judges the crossing and says what the rule made of it."""
    verdict = judged(lesson_02.check.crossed, crossing_desk("set"))
    assert verdict.right
    assert "the ends differ: 6 and 5" in verdict.text


def test_frames_that_wait_for_each_other_do_not_cross(race):
    """One lands before the other leaves: the check says what is missing and gives hints."""
    polite = acted(race, (SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, TRANSFER_ARRIVES))
    assert not lesson_02.crosses(polite)
    verdict = lesson_02.check.crossed(polite, log=Progress(), hints=1)
    assert verdict.right is False
    assert "Neither frame may land before the other has left" in str(verdict)


def test_what_has_not_landed_has_not_crossed_yet(race):
    """Both on the wire is not enough."""
    assert not lesson_02.crosses(acted(race, (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES)))
    for order in CROSSING:
        assert lesson_02.crosses(acted(race, ORDERS[order]))


def test_ends_are_compared_when_nothing_is_on_the_wire():
    """A message more on its way makes them differ, whatever the rule."""
    waiting = acted(run("race", parameters=ARTICLE), (*ORDERS[CROSSING[0]], SEND_TRANSFER))
    verdict = judged(lesson_02.check.crossed, waiting)
    assert verdict.right is None
    assert "still on the wire" in verdict.text
    assert judged(lesson_02.check.crossed, acted(waiting, (TRANSFER_ARRIVES,))).right


def test_an_untouched_desk_is_not_judged(race):
    """Who runs all cells at once is told what to do."""
    log = Progress()
    assert lesson_02.check.crossed(race, log=log).right is None
    assert log.entries == {}


# -- senders ------------------------------------------------------------------------------------

SIZE = {"messages": 10, "grants": [3, 6]}
STARTS = [0, 20, 2**32 - 2]


def right(state, frame):
    """The specification's rule."""
    from workbench import serial

    state.link_credit = frame.link_credit - serial.diff(state.delivery_count, frame.delivery_count)


def naive(state, frame):
    """The same without wrapping."""
    state.link_credit = max(0, frame.delivery_count + frame.link_credit - state.delivery_count)


def greedy(state, frame):
    """Rule set."""
    state.link_credit = frame.link_credit


def idle(state, frame):
    """Takes no credit at all."""
    state.link_credit = 0


def test_the_right_sender_passes_from_every_beginning():
    """Safe and of use, in every order."""
    log = Progress()
    verdict = lesson_02.check.sender(right, **SIZE, starts=STARTS, log=log)
    assert verdict.right, verdict
    assert "states visited" in verdict.text
    assert log.entries["02/sender"].right


def test_a_greedy_sender_is_told_its_shortest_bad_schedule():
    """Five moves, and the two numbers that differ."""
    verdict = judged(lesson_02.check.sender, greedy, **SIZE)
    assert verdict.right is False
    assert "It takes 5 moves to break it" in verdict.text
    assert "send-flow, send-flow, flow-arrives, send-transfer, flow-arrives" in verdict.text


def test_a_sender_that_never_sends_is_safe_and_does_not_pass():
    """The link model alone calls it good; the check asks whether it is of any use."""
    assert explore(LinkModel(messages=10, grants=(3, 6), rule=lambda *_: 0)).bad == 0
    verdict = judged(lesson_02.check.sender, idle, **SIZE)
    assert verdict.right is False
    assert "waits for ever" in verdict.text


def test_a_search_that_was_cut_short_judges_nobody():
    """None bad so far proves nothing, and accuses nobody."""
    verdict = judged(lesson_02.check.sender, right, messages=1_000, grants=[500, 1_000])
    assert verdict.right is None
    assert "take fewer than 1,000 messages" in verdict.text


def test_a_naive_sender_passes_until_the_count_wraps():
    """From 0 and 20 nothing is wrong; from 2^32 − 2 something is."""
    assert judged(lesson_02.check.sender, naive, **SIZE, starts=STARTS[:2]).right
    verdict = judged(lesson_02.check.sender, naive, **SIZE, starts=STARTS)
    assert verdict.right is False
    assert f"delivery_count={2**32 - 2}" in verdict.text


def test_an_unfinished_sender_is_not_judged():
    """Dots in the body, or a body of dots: the cell says what to do."""

    def half(state, frame):
        in_flight = ...
        state.link_credit = frame.link_credit - in_flight

    def blank(state, frame): ...

    log = Progress()
    assert lesson_02.check.sender(half, **SIZE, log=log).right is None
    assert lesson_02.check.sender(blank, **SIZE, log=log).right is None
    assert log.entries == {}


def test_a_sender_that_fails_is_told_in_words():
    """Raising, or a credit that is none: no traceback, a verdict."""

    def raises(state, frame):
        raise KeyError("credit")

    def nonsense(state, frame):
        state.link_credit = "much"

    for on_flow in (raises, nonsense):
        verdict = judged(lesson_02.check.sender, on_flow, **SIZE)
        assert verdict.right is False
        assert verdict.text


# -- recall -------------------------------------------------------------------------------------


def test_lesson_02_is_asked_again_with_other_numbers():
    """Every form has an answer worked out anew, under the name of the first asking."""
    ours = known({"02"})
    assert len(ours) >= 3
    for one in ours:
        texts = set()
        for form in (2, 3, 8):
            question = one.make(form)
            assert question.name == f"02/{one.name}"
            assert question.solve().answer is not None
            texts.add(question.text)
        assert len(texts) > 1
