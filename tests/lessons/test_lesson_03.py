"""What lesson 03 asks about drain, echo, stop and available: read off runs, and judged by them."""

from pathlib import Path

import pytest

from tests.lessons.asking import judged, solved, told
from workbench.amqp10.sender import SenderLink
from workbench.capture.importer import import_capture
from workbench.exercises import measure
from workbench.exercises.measure import arrival
from workbench.exercises.progress import Progress
from workbench.frontends.outgoing_link import OutgoingLink
from workbench.lessons.lesson_03 import (
    check,
    drain_cases,
    drain_line,
    drained,
    outdated,
    predict,
    rabbit_drain,
    stopped,
)
from workbench.scenarios import run
from workbench.trace.schema import BROKER, CLIENT, RECEIVED

CAPTURE = Path(__file__).resolve().parent.parent.parent / "data/captures/rmq43_c_drain.pcapng"


@pytest.fixture(scope="module")
def empty():
    """No message, and a receiver that has said nothing."""
    return run("credit", parameters={"messages": 0})


@pytest.fixture(scope="module")
def few():
    """Three messages, and a delivery-count that is not zero."""
    return run("credit", parameters={"messages": 3, "initial_delivery_count": 20})


@pytest.fixture(scope="module")
def used():
    """Four of ten messages fetched, and credit used up."""
    queue = run("credit", parameters={"messages": 10})
    return queue.act(queue.start_seq, "grant", link_credit=4)


@pytest.fixture(scope="module")
def busy():
    """A grant of 40 on a queue of 60."""
    queue = run("credit", parameters={"messages": 60})
    return queue.act(queue.start_seq, "grant", link_credit=40)


# -- predictions --------------------------------------------------------------------------------


def test_an_empty_queue_is_silent(empty):
    """A grant without drain or echo is answered by nothing [2.6.8]."""
    solution = solved(predict.silence, empty, 1)
    assert solution.answer == 0
    assert told(solution, 1).startswith("a request is answered")


def test_a_queue_that_has_a_message_is_not(few):
    """The same question about another run has another answer: nothing is written down."""
    assert solved(predict.silence, few, 1).answer == 1


@pytest.mark.parametrize(("messages", "come"), [(0, 0), (3, 3), (10, 10), (30, 10)])
def test_a_drain_brings_what_is_ready_and_no_more_than_credit(messages, come):
    """3 ready, credit 10, drain: 3 transfers [2.6.7]."""
    queue = run("credit", parameters={"messages": messages})
    assert solved(predict.drain_brings, queue, 10).answer == come


def test_drain_is_no_pause(few):
    """Who expects silence, or a wait until credit is used, hears what drain means."""
    solution = solved(predict.drain_brings, few, 10)
    assert told(solution, 0).startswith("drain is pause")
    assert told(solution, 10).startswith("drain waits until credit is used")


@pytest.mark.parametrize("start", [0, 20, 4294967291])
def test_the_unused_credit_moves_delivery_count_on(start):
    """delivery-count advances by all of the credit, across the wrap-around as well [2.6.7]."""
    queue = run("credit", parameters={"messages": 3, "initial_delivery_count": start})
    solution = solved(predict.drain_counts, queue, 10)
    assert solution.answer == (start + 10) % 2**32
    assert told(solution, (start + 3) % 2**32).startswith("counts messages only")
    assert told(solution, start).startswith("stays")


def test_drained_credit_is_gone(few):
    """Messages published after the answer do not come; those who think they do are named."""
    solution = solved(predict.after_drain, drained(few, 10), 12)
    assert solution.answer == 0
    assert told(solution, 7).startswith("drain is pause")
    assert told(solution, 12).startswith("drain is a mode")


def test_an_echo_brings_a_flow_and_no_message(used):
    """Credit is used up: the answer tells the state and grants nothing [2.6.7]."""
    solution = solved(predict.echo_brings, used)
    assert solution.answer == 0
    assert "available 6" in solution.reason
    assert "echo is set in 0 of them" in solution.reason
    assert told(solution, 4).startswith("echo grants")
    assert told(solution, 6).startswith("echo empties the queue")


def test_nothing_comes_after_the_answer_to_a_stop(busy):
    """Late messages come before the answer, none after it [2.6.10]."""
    at = arrival(busy, 2)
    solution = solved(predict.after_echo, busy, at)
    assert solution.answer == 0
    late = measure.messages(stopped(busy, at).rows, event=RECEIVED, after=at)
    assert late > measure.in_flight(busy.rows, "transfer", at) > 0
    assert told(solution, late).startswith("late is late")


def test_available_may_be_stale(used):
    """Told 6, there are 11: five were published while the answer was on the wire."""
    solution = solved(predict.stale, outdated(used, 5))
    assert solution.answer == 11
    assert told(solution, 6).startswith("available is what is there")


def test_rabbitmq_drains_as_the_specification_says():
    """The answer's delivery-count is the request's plus its credit."""
    rows = import_capture(CAPTURE).rows
    request, following = rabbit_drain(rows)
    said = measure.numbers(request, "delivery_count", "link_credit", "drain")
    assert said == {"delivery_count": 1, "link_credit": 10, "drain": True}
    assert {row.connection for row in following} == {request.connection}
    solution = solved(predict.real_drain, rows)
    assert solution.answer == 11
    assert told(solution, 4).startswith("counts messages only")
    assert told(solution, 10).startswith("counts credit only")


def test_a_trace_without_such_a_drain_is_told(busy):
    """Asking for what is not there is answered in words."""
    with pytest.raises(ValueError, match="no drain in this trace"):
        rabbit_drain(busy.rows)


# -- the table of drains ------------------------------------------------------------------------


def test_the_table_shows_none_some_and_too_many():
    """delivery-count moves by credit in each, whatever came; credit is 0 in each."""
    cases = drain_cases((0, 3, 30), link_credit=10, initial_delivery_count=20)
    lines = [dict(zip(cases.head, line, strict=True)) for line in cases.lines]
    assert [line["transfers"] for line in lines] == ["0", "3", "10"]
    assert [line["credit given back"] for line in lines] == ["10", "7", "0"]
    assert {line["delivery-count"] for line in lines} == {"20 → 30"}
    assert {line["link-credit at the end"] for line in lines} == {"0"}
    assert lines[2]["the sender's flow"].startswith("none")
    assert cases._repr_html_().count("<tr>") == 4
    assert str(cases).splitlines()[1].startswith("no messages")


def test_a_drain_that_was_cut_off_says_so():
    """A run that reached its row limit has no last flow to tell of."""
    whole = drained(run("credit", parameters={"messages": 3}), 10)
    cut = run(
        whole.scenario, whole.preset, whole.parameters, whole.actions, max_rows=len(whole.rows) - 2
    )
    assert drain_line(3, cut)[-1].startswith("cut: stopped at ")


def test_the_table_counts_across_the_wrap_around():
    """What was given back is a serial distance, not a difference of numbers."""
    cases = drain_cases((3,), link_credit=10, initial_delivery_count=4294967291)
    line = dict(zip(cases.head, cases.lines[0], strict=True))
    assert (line["transfers"], line["credit given back"]) == ("3", "7")
    assert line["delivery-count"] == "4294967291 → 5"


# -- checks -------------------------------------------------------------------------------------


def test_a_drain_that_brings_some_and_gives_back_some_is_recognised(few):
    """With how many came and by how much delivery-count rose."""
    log = Progress()
    verdict = check.gave_back(drained(few, 10), log=log)
    assert verdict.right, verdict
    assert "3 messages came after it, and 7 of the credit was given back" in verdict.text
    assert "delivery-count rose by 10" in verdict.text
    assert log.entries["03/gave-back"].right


@pytest.mark.parametrize(("messages", "came", "back"), [(0, 0, 10), (30, 10, 0)])
def test_a_drain_with_nothing_or_too_much_is_told(messages, came, back):
    """The numbers, and what to think about."""
    queue = run("credit", parameters={"messages": messages})
    verdict = judged(check.gave_back, drained(queue, 10))
    assert verdict.right is False
    assert f"{came} came, {back} of the credit was given back" in verdict.text


def test_a_drain_without_credit_or_none_at_all_is_told(few):
    """Each with its own words."""
    nothing = few.act(few.start_seq, "drain")
    assert "link-credit 0" in judged(check.gave_back, nothing).text
    granted = few.act(few.start_seq, "grant", link_credit=2)
    assert "No flow in this branch sets drain" in judged(check.gave_back, granted).text


def test_a_drain_is_judged_by_what_the_receiver_sees(few):
    """What was on the wire when it asked comes too, so credit is what came and what is returned."""
    granted = few.act(few.start_seq, "grant", link_credit=10)
    first = arrival(granted, 1)
    verdict = judged(check.gave_back, granted.act(first, "drain"))
    assert measure.messages(granted.rows, upto=first) == 3  # all had been sent by then
    assert verdict.right
    assert "2 messages came after it, and 7 of the credit was given back" in verdict.text


@pytest.mark.parametrize("more", [("drain",), ("echo",), ("grant", "drain")])
def test_a_drain_that_did_it_counts_whatever_comes_after_it(few, more):
    """Pressed once more, asked for an echo, or another drain that brings nothing."""
    branch = drained(few, 10)
    found = judged(check.gave_back, branch).text
    for act in more:
        branch = branch.then(act, **({"link_credit": 5} if act == "grant" else {}))
    assert judged(check.gave_back, branch).text == found


def test_each_drain_is_judged_by_its_own_answer(few):
    """One brings all that it may, the next brings nothing: neither does both."""
    both = drained(few, 3).then("grant", link_credit=4).then("drain")
    verdict = judged(check.gave_back, both)
    assert verdict.right is False
    assert "had credit for 4 messages: 0 came, 4 of the credit was given back" in verdict.text


def paused_run(busy):
    """Stop at the second arrival, wait for the answer, and fetch the rest."""
    stop = stopped(busy, arrival(busy, 2))
    return stop.then("grant", link_credit=60)


def test_pause_and_resume_is_recognised(busy):
    """The same link goes on, in the queue's order [2.6.10]."""
    verdict = judged(check.paused, paused_run(busy))
    assert verdict.right, verdict
    assert "came late, and 0 after the answer" in verdict.text
    assert "all 60 messages came, in the order of the queue" in verdict.text


def test_resuming_before_the_answer_is_told(busy):
    """Then the link was never known to be quiet."""
    at = arrival(busy, 2)
    stop = stopped(busy, at)
    early = stop.act(measure.seq_of(stop.rows, "transfer", 4), "grant", link_credit=60)
    verdict = judged(check.paused, early)
    assert verdict.right is False
    assert "before the answer had come" in verdict.text


def test_a_stop_of_what_had_come_to_rest_is_no_pause():
    """Credit that was used up, or a queue that was empty, would have been quiet anyhow."""
    queue = run("credit", parameters={"messages": 40})
    granted = queue.act(queue.start_seq, "grant", link_credit=40)
    used_up = granted.then("stop").then("grant", link_credit=5)
    verdict = judged(check.paused, used_up)
    assert verdict.right is False
    assert "found the credit used up" in verdict.text
    more = queue.act(queue.start_seq, "grant", link_credit=50).then("stop")
    verdict = judged(check.paused, more.then("grant", link_credit=5))
    assert verdict.right is False
    assert "The queue had nothing left" in verdict.text


def test_the_answer_to_another_echo_is_no_answer_to_the_stop(busy):
    """It still carries credit: what that credit lets through comes after it."""
    at = arrival(busy, 2)
    both = busy.act(at, "echo").act(at, "stop")
    flows = measure.frames(both.rows, "flow", event=RECEIVED, from_peer=BROKER, after=at)
    assert [row.frame["link_credit"] > 0 for row in flows] == [True, False]
    early = both.act(flows[0].seq, "grant", link_credit=60)
    verdict = judged(check.paused, early)
    assert verdict.right is False
    assert "before the answer had come" in verdict.text
    assert judged(check.paused, both.act(flows[1].seq, "grant", link_credit=60)).right


def test_a_pause_counts_whatever_was_stopped_besides(busy):
    """A stop before the first message, and one pressed twice, are no harm."""
    first = busy.act(busy.start_seq, "stop").then("grant", link_credit=40)
    both = first.act(arrival(first, 2), "stop").then("stop").then("grant", link_credit=60)
    assert judged(check.paused, both).right


def test_each_way_not_to_pause_is_told(busy, empty):
    """No stop, a stop too early, no resume, messages left."""
    assert "link-credit 0 and echo" in judged(check.paused, busy).text
    first = empty.act(empty.start_seq, "stop")
    assert "before the first message" in judged(check.paused, first).text
    stop = stopped(busy, arrival(busy, 2))
    assert "now resume it" in judged(check.paused, stop).text
    little = stop.then("grant", link_credit=1)
    assert "still wait in the queue" in judged(check.paused, little).text


def test_a_run_as_it_began_is_not_judged(few):
    """Who runs all cells at once is told what to do, not that they were wrong."""
    log = Progress()
    assert check.gave_back(few, log=log).right is None
    assert check.paused(few, log=log).right is None
    assert log.entries == {}


def test_published_messages_wait_after_a_drain(few):
    """The run behind the question: nothing is sent, and all of them wait."""
    branch = drained(few, 10).then("publish", count=12)
    assert measure.counter(branch.rows, BROKER, "available") == 12
    assert measure.credit(branch.rows, CLIENT) == 0


# -- nothing is written down --------------------------------------------------------------------


def shown_of_a_drain(messages: int) -> dict[str, object]:
    """What the lesson answers and shows about a drain of a fresh queue."""
    queue = run("credit", parameters={"messages": messages, "initial_delivery_count": 20})
    cases = drain_cases((messages,), link_credit=10)
    return {
        "brings": solved(predict.drain_brings, queue, 10).answer,
        "counts": solved(predict.drain_counts, queue, 10).answer,
        "afterwards": solved(predict.after_drain, drained(queue, 10), 12).answer,
        "given back": cases.lines[0][2],
        "check": judged(check.gave_back, drained(queue, 10)).right,
    }


def test_another_rule_for_drain_changes_everything_that_is_shown(monkeypatch):
    """With a sender that keeps its credit at a drain, *drain is pause* is right everywhere."""
    assert shown_of_a_drain(3) == {
        "brings": 3, "counts": 30, "afterwards": 0, "given back": "7", "check": True,
    }  # fmt: skip
    monkeypatch.setattr(SenderLink, "drain", False)  # as if no flow had ever set it
    assert shown_of_a_drain(3) == {
        "brings": 3, "counts": 23, "afterwards": 7, "given back": "0", "check": False,
    }  # fmt: skip


def test_another_rule_for_echo_changes_what_is_shown(monkeypatch, busy):
    """With an echo that grants, the question's answer is another, and so is the stop's."""
    queue = run("credit", parameters={"messages": 10})
    taken = OutgoingLink.flow_received

    def granting(self, frame):
        if frame.echo:
            self.link.counters.link_credit += 4
        taken(self, frame)

    granted = queue.act(queue.start_seq, "grant", link_credit=4)
    assert solved(predict.echo_brings, granted).answer == 0
    at = arrival(busy, 2)
    assert solved(predict.after_echo, busy, at).answer == 0
    monkeypatch.setattr(OutgoingLink, "flow_received", granting)
    assert solved(predict.echo_brings, granted).answer == 4
    assert solved(predict.after_echo, busy, at).answer == 4
