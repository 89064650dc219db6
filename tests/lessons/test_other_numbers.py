"""Every number of a cell may be changed: what cannot be said of such a run is told in one line."""

import inspect
from pathlib import Path

import pytest

from workbench import recall, run, stage
from workbench.exercises.mystery import mystery
from workbench.exercises.question import Prediction, Question, Verdict
from workbench.exercises.spark_answers import Answer
from workbench.exercises.spark_shows import dip_table, held_over_time, rate_over_time
from workbench.exercises.timeout import timed_get
from workbench.lessons import (
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_06,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_12,
)
from workbench.notebook import PlainError

NEVER = "^This run never comes to what is asked here"
ALONE = run("publishers", "rmq4.3", {"max_link_credit": 1000})
BUSY = ALONE.then("publish", count=40)
CREDIT = run("credit")
RARE = run("windows", "rmq4.3", {"messages": 0})
STORED = lesson_06._stored(0)["run"].parameters
MIRRORED = run("mirrors", "rmq3.5.5", {"credit": 40, "more_after": 10})
HUGE = run("windows", "rmq4.3", {"link_credit": 4_000_000_000})
EQUAL = {"n1": 5, "n2": 5, "n3": 5, "n4": 5, "n5": 5}
GRACEFUL = run("handover", parameters={"way": "graceful"})
ODD = run("publishers", "rmq4.3", {"max_link_credit": 171})
FEW_CREDITS = run("publishers", "rmq4.3", {"max_link_credit": 10})
FIVE = run("quorum", "rmq4.3", {"replicas": "5"})
MARKS = lesson_09.full(stop=7, resume=5, window=4)
PREFETCH, MEMORY = run("prefetch", "rmq4.3"), run("memory", "rmq4.3")
CHAIN = lesson_06._small(0)
BESIDE = lesson_06._beside(0)["run"]
MIXED = {"messages": 20_000, "target": 8_000, "held": 5_000}
FEW = {"messages": 3_000, "target": 2_000}
SMALL = {"message_bytes": 10}
BARE = lesson_09.full(stop=0, resume=0, most=10, window=0)


def compared(question: Question, choice: object = None) -> Verdict:
    """What *Compare* says of an answer."""
    prediction = Prediction(question)
    prediction.commit(choice or (question.choices[0] if question.choices else 1))
    return prediction.compare()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: lesson_05.predict.told_in.question(lesson_05.waiting("rmq4.3", 60), messages=40),
        lambda: lesson_09.predict.survives.question(
            lesson_09.full(stop=7, resume=5, window=0), publish=5, every_us=1_000
        ),
        lambda: lesson_04.predict.stops_at.question(RARE, link_credit=9),
        lambda: lesson_05.predict.regrant.question(ALONE, publish=400),
        lambda: lesson_05.predict.changed_setting.question(BUSY, link_credit=10, publish=20),
        lambda: lesson_01.predict.after_acknowledging.question(
            CREDIT.then("grant", link_credit=100)
        ),
        lambda: lesson_03.predict.echo_brings.question(CREDIT.then("grant", link_credit=100)),
        lambda: lesson_01.predict.granted_twice.question(CREDIT, link_credit=3, publish=9),
        lambda: lesson_04.predict.more_credit.question(
            run("windows", "rmq4.3", {"messages": 1, "message_bytes": 10, "link_credit": 1}),
            link_credit=5,
        ),
        lambda: lesson_04.predict.held.question(HUGE),
        lambda: lesson_04.predict.express.question(HUGE),
        lambda: lesson_04.predict.express.question(
            run("windows", "rmq4.3", {"messages": 3, "client_window": 9, "link_credit": 3})
        ),
        lambda: lesson_07.predict.slower_sync.question(170, 5_000, times=3),
        lambda: lesson_07.predict.slower_sync.question(10_000, 5_000, times=2),
        lambda: lesson_07.predict.credit_bound.question(
            run("quorum", "rmq4.3", {"replicas": "1", "fsync_us": 50_000}), publish=500
        ),
        lambda: lesson_07.predict.who_resends.question(FIVE, pending=300),
        lambda: lesson_07.predict.twice.question(FIVE, pending=1_000),
        lambda: lesson_07.predict.overshoot.question(256, 600),
        lambda: lesson_09.predict.limit.question(
            lesson_09.full(stop=0, resume=0, most=10, window=4), publish=14
        ),
        lambda: lesson_09.predict.free_queue.question(MARKS, publish=7, free=6),
        lambda: lesson_09.predict.free_queue.question(MARKS, publish=12, free=6),
        lambda: lesson_09.predict.overshoot.question(
            lesson_09.full(stop=100, window=50, second_window=15), publish=30
        ),
        lambda: lesson_06.predict.store_takes.question(
            run("chain", "rmq4.3", {**STORED, "store_credit": 25}), publish=60
        ),
        lambda: lesson_06.predict.other_lane.question(BESIDE, publish=16, others=12),
        lambda: lesson_06.predict.other_link.question(BESIDE, publish=30, others=0),
        lambda: lesson_06.predict.too_late.question(PREFETCH, limit=5, later=0),
        lambda: lesson_06.predict.receiver.question(batch=10_000, run_ms=1, preload=20_000),
        lambda: lesson_08.predict.heedless.question(
            lesson_08.asked_to_stop("rmq1.5", client="heedless", messages=45)
        ),
        lambda: lesson_08.predict.fills.question(
            run("memory", "rmq4.3", {"message_bytes": 4_000}), publish=150
        ),
        lambda: lesson_08.predict.lost_mirror.question(MIRRORED, publish=22),
        lambda: lesson_08.predict.first_go.question(
            run("paging", "rmq3.5.5", {"messages": 40_000, "target": 8_000})
        ),
        lambda: lesson_08.predict.answers.question(messages=40),
        lambda: lesson_09.predict.stops_at.question(MARKS, publish=5),
        lambda: lesson_09.predict.goes_on_at.question(MARKS, publish=5),
        lambda: lesson_09.predict.limit.question(BARE, publish=5),
        lambda: lesson_09.predict.stops_at.question(CREDIT, publish=9),
        lambda: lesson_03.predict.silence.question(CREDIT, link_credit=0),
        lambda: lesson_06.predict.too_late.question(PREFETCH, limit=50, later=60),
        lambda: lesson_06.predict.too_late.question(PREFETCH, limit=0, later=60),
        lambda: lesson_06.predict.in_all.question(PREFETCH, limit=30),
        lambda: lesson_06.predict.chain_takes.question(CHAIN, publish=5),
        lambda: lesson_06.predict.other_lane.question(BESIDE, publish=10, others=12),
        lambda: lesson_06.predict.other_link.question(BESIDE, publish=5, others=12),
        lambda: lesson_06.predict.four_times.question(fsync_us=100, run_ms=125),
        lambda: lesson_08.predict.fills.question(MEMORY, publish=30),
        lambda: lesson_08.predict.who_is_told.question(MEMORY, publish=30),
        lambda: lesson_08.predict.goes_on.question(MEMORY, publish=30),
        lambda: lesson_08.predict.one_publish.question(MEMORY, publish=30),
        lambda: lesson_08.predict.newcomer.question(MEMORY, publish=30),
        lambda: lesson_08.predict.heedless.question(lesson_08.asked_to_stop(client="cooperative")),
        lambda: lesson_08.predict.first_go.question(run("paging", "rmq3.5.5", MIXED)),
        lambda: lesson_08.predict.first_go.question(run("paging", "rmq3.5.5", FEW)),
        lambda: lesson_08.predict.first_go.question(run("paging", "rmq3.5.5", SMALL)),
    ],
)
def test_a_run_that_never_comes_to_what_is_asked_says_so(ask):
    """Where the question is made, or where it is answered: then nothing is judged."""
    try:
        question = ask()
    except PlainError as error:
        told = str(error)
    else:
        verdict = compared(question)
        assert verdict.right is None
        told = verdict.text
    assert told.startswith(NEVER.removeprefix("^"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lesson_04.told_at(RARE, "broker"), NEVER),
        (lambda: lesson_07.confirm_table({"a": run("quorum", "rmq4.3")}), NEVER),
        (lambda: lesson_07.targets_table({"a": BUSY}, ["nope"]), NEVER),
        (lambda: lesson_09.faces(publish=8, other=6, most=10), NEVER),
        (lambda: lesson_08.alarm_in(CREDIT), NEVER),
        (lambda: lesson_03.handovers(CREDIT), NEVER),
        (lambda: stage(CREDIT, title=5), "^a text is wanted here, not int$"),
        (lambda: recall("02", "02"), "^card: what `lesson_card` gave is wanted here, not str$"),
        (
            lambda: mystery(1).change(socket=1),
            "^no setting socket; legal: one of orders_queue_us, ",
        ),
        (
            lambda: lesson_06.predict.first_after(run("handover_091", "rmq4.3"), "cansel"),
            "^way.* 'cansel'.*cancel",
        ),
    ],
)
def test_a_function_of_a_lesson_says_what_it_does_not_find(call, words):
    """In one line, too."""
    with pytest.raises(PlainError, match=words):
        call()


@pytest.mark.parametrize(
    ("ask", "equal"),
    [
        (
            lambda: lesson_01.predict.fastest_rule.question(
                lesson_01.compare_rules(messages=400, latency_us=1000, n=400)
            ),
            "batch-then-wait and top-up-at-half",
        ),
        (
            lambda: lesson_07.predict.best_way.question(
                lesson_07.race(n=1, fsync_us=5_000, send_us=100), n=1
            ),
            "one-at-a-time and batches",
        ),
        (
            lambda: lesson_09.predict.holds_most.question(
                lesson_09.overloaded(100, 50), publish=100
            ),
            "AMQP 0-9-1 and AMQP 1.0",
        ),
    ],
)
def test_what_is_equally_large_is_not_judged(ask, equal):
    """With a batch as large as the queue all rules are one, and so on."""
    question = ask()
    for choice in question.choices:
        verdict = compared(question, choice)
        assert (verdict.right, verdict.text) == (
            None, f"With these numbers {equal} are equal: take others.",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("publish_at_us", "crossed"), [(20_000, False), (1_000, False), (5_000, True)]
)
def test_a_drain_finds_no_credit_only_where_it_crosses_the_message(publish_at_us, crossed):
    get = timed_get(publish_at_us=publish_at_us)
    question = lesson_03.predict.crossing.question(get, timeout_us=4_500, latency_us=1_000)
    assert ("whose credit is used up" in question.solve().reason) == crossed


@pytest.mark.parametrize(
    ("ask", "answer", "words"),
    [
        # 20 + 6 + 3: part of a window lies below the mark when the queue stops.
        (
            lambda: lesson_09.predict.overshoot.question(
                lesson_09.full(stop=20, resume=10, window=6, second_window=3), publish=60
            ),
            27,
            "It could have been the mark and both windows",
        ),
        (
            lambda: lesson_07.predict.trigger.question(lesson_07.disks(FIVE, EQUAL)),
            "it is on the disks of a majority, and the leader has heard so",
            "5 of 5, and 3 are a majority",
        ),
        (
            lambda: lesson_05.predict.one_confirmed.question(ODD, publish=600, confirmed=1),
            257,
            "What was granted already may still be used.",
        ),
        (
            lambda: lesson_05.predict.regrant.question(FEW_CREDITS, publish=400),
            5,
            "the publisher runs dry",
        ),
        (
            lambda: lesson_04.predict.reopens_at.question(
                run("windows", "rmq4.3", {"publisher": True, "broker_window": 10}), publish=1_000
            ),
            5,
            "and the publisher waits",
        ),
        (
            lambda: lesson_09.predict.goes_on_at.question(
                lesson_09.full(stop=7, resume=0, window=4), publish=12
            ),
            6,
            "6 messages are left: below 7",
        ),
        (
            lambda: lesson_03.predict.first_of_next.question(GRACEFUL),
            5,
            "had acknowledged 5 messages, all that came to it, so nothing went back",
        ),
        (
            lambda: lesson_03.predict.drain_counts.question(CREDIT, link_credit=3),
            3,
            "There was nothing to give back",
        ),
        (
            lambda: lesson_07.predict.slower_sync.question(170, 5_000, times=4),
            "about a quarter",
            "4,250 now",
        ),
        (
            lambda: lesson_05.predict.stall_takes.question(ODD, publish=50),
            50,
            "half of the first grant was not used, so the broker never looked",
        ),
        (
            lambda: lesson_05.predict.told_in.question(lesson_05.waiting("rmq4.3", 300), 300),
            24,
            "24 dispositions for 300 messages: each tells of what",
        ),
    ],
)  # fmt: skip
def test_what_is_told_of_other_numbers_is_so(ask, answer, words):
    """The reason says of a run what happened in it."""
    verdict = compared(ask(), answer)
    assert verdict.right
    assert words in verdict.text


@pytest.mark.parametrize(
    "ask",
    [
        lambda more: lesson_03.predict.drain_counts.question(CREDIT, link_credit=12 + more),
        lambda more: lesson_05.predict.one_confirmed.question(
            (FEW_CREDITS, ODD)[more], publish=600, confirmed=1
        ),
        lambda more: lesson_05.predict.settled_takes.question((FEW_CREDITS, ODD)[more], 600),
        lambda more: lesson_05.predict.changed_setting.question((FEW_CREDITS, ODD)[more], 5, 600),
        lambda more: lesson_06.predict.four_times.question(6_250, run_ms=20 + more),
        lambda more: lesson_07.predict.slow_disks.question(
            run("quorum", "rmq4.3", {"replicas": "35"[more]}), ["n1", "n2"], 30
        ),
    ],
)
def test_what_an_answer_depends_on_stands_in_the_question(ask):
    """So that it can be answered alone, and an answer of before is none to other numbers."""
    assert ask(0).text != ask(1).text


def test_whoever_expects_every_window_to_be_full_is_told_why_this_run_has_fewer():
    """The rule is right: it says what there may be at worst."""
    unlucky = lesson_09.full(stop=20, resume=10, window=6, second_window=3)
    verdict = compared(lesson_09.predict.overshoot.question(unlucky, publish=60), 29)
    assert "so many there may be at worst" in verdict.text


def test_a_cure_that_cures_nothing_names_the_brake_that_still_holds_whom_it_was_for():
    """And not that of another application, which the change may have made."""
    drawn = mystery(1, level=1)
    who, brake = drawn.finding.who, drawn.finding.brake
    worse = drawn.change(mail_prefetch=1)
    told = lesson_12.check.cured_by(drawn, worse).text
    assert f"{who} still loses" in told
    assert f"by {brake}" in told


def test_a_sender_is_not_judged_by_grants_of_which_one_takes_back():
    """What the receiver asks for is then less than what it allows."""
    verdict = lesson_02.check.sender(lambda state, frame: 3, messages=10, grants=[3, 0])
    assert verdict.right is None
    assert "No grant may be less than the one before" in verdict.text


def test_one_pass_for_one_message_is_a_pass():
    """A write alone has no count beside it."""
    verdict = lesson_08.check.passes(1, messages=20_000, target=19_999, message_bytes=5_000)
    assert verdict.right
    assert "One pass for 1 message." in verdict.text


def test_a_check_sees_whose_run_it_gets_by_name_as_well():
    """The wrong one is told, and not judged."""
    race = run("race")
    for verdict in (lesson_01.check.late_arrivals(race), lesson_01.check.late_arrivals(desk=race)):
        assert verdict.right is None
        assert 'this one shows "race"' in verdict.text


def test_where_nothing_was_held_there_is_no_longest_brake():
    verdict = lesson_05.check.longest_brake("tcp", ALONE)
    assert verdict.right is None
    assert "there is nothing to judge" in verdict.text


def test_an_answer_to_another_question_of_spark_is_told():
    other = Answer(question="lost", rows=[{"brake": "tcp", "stalls": 3}], path=Path())
    for call in (rate_over_time, dip_table, lambda its: held_over_time(its, its)):
        with pytest.raises(PlainError, match="“lost” does not tell this for each window of time"):
            call(other)


def test_help_tells_the_arguments_of_a_question():
    """As for any function."""
    assert [*inspect.signature(lesson_01.predict.after_grant).parameters] == ["run", "link_credit"]
    assert lesson_01.predict.after_grant.__doc__


@pytest.mark.parametrize(
    ("ready", "link_credit", "ask", "reason"),
    [
        (0, 1, "The queue is empty", "nothing to send and nobody asked it to speak, so it sent no"),
        (1, 1, "1 message is ready", "it sent 1 frame and holds link-credit 0"),
        (5, 9, "5 messages are ready", "it sent 5 frames and holds link-credit 4"),
    ],
)
def test_a_grant_to_a_queue_that_has_messages_is_not_told_of_as_to_an_empty_one(
    ready, link_credit, ask, reason
):
    """Of what is not there a question says nothing."""
    question = lesson_03.predict.silence.question(
        run("credit", parameters={"messages": ready}), link_credit=link_credit
    )
    assert question.text.startswith(ask)
    assert reason in str(compared(question))


@pytest.mark.parametrize(
    ("publish", "told"),
    [(5, "nothing ever stopped"), (8, "the producer once"), (40, "the producer 6 times")],
)
def test_a_window_is_said_to_stop_a_producer_as_often_as_it_did(publish, told):
    """A burst that fits into it meets nothing."""
    question = lesson_09.predict.survives.question(
        lesson_09.full(window=6, most=14), publish=publish, every_us=2_000
    )
    assert told in str(compared(question))


def test_a_rule_is_known_as_the_misconception_that_it_is():
    """Whoever adds does not set; and who asks of the right rule has none."""
    race = run("race", parameters={"first_credit": 2, "grants": "9"})

    def known(question: Question) -> list[str]:
        return [one.name for one in question.solve().beliefs]

    always, rare = "a wrong rule always shows", "a race is rare"
    for rule, beliefs in (("add", ["adds"]), ("set", ["sets"]), ("spec", [])):
        wrong = [*beliefs, always] if beliefs else []
        assert known(lesson_02.predict.which_order.question(race, rule)) == wrong
        of_states = lesson_02.predict.bad_states.question(8, [2, 5], rule)
        assert known(of_states) == ([rare, *beliefs] if beliefs else [])


def test_an_answer_of_which_a_part_is_kept_says_of_how_many(tmp_path):
    """Rows beyond the kept ones are rows of the answer."""
    row = {"run": "r", "stalls": 1}
    kept = Answer(question="x", rows=[row] * 3, path=tmp_path, more=5)
    with pytest.raises(PlainError, match="of the 8 rows of this answer the first 3 can be opened"):
        kept.row(4)
    with pytest.raises(PlainError, match="rows 1 to 3, and no 4"):
        Answer(question="x", rows=[row] * 3, path=tmp_path).row(4)
