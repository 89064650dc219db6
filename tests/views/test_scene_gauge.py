"""The stage's picture of AMQP 0-10: a window that slides, and a queue with watermarks."""

from dataclasses import replace

import jsonschema
import pytest

from tests.views.stage_runs import RUNS
from workbench.capture.importer import import_capture
from workbench.scenarios import run
from workbench.trace.cut import cut_rows
from workbench.trace.pcapng_out import export
from workbench.views.frames import fields_of
from workbench.views.scene import resolved, scene, schema


def made(*acts, **parameters):
    """The scene of a run of `qpid`, and its state at each step."""
    played = run("qpid", parameters=parameters)
    for name, arguments in acts:
        played = played.then(name, **arguments)
    doc = scene(played, octets=False)
    jsonschema.validate(doc, schema())
    return doc, list(resolved(doc))


def last(states, node="client:p1"):
    return states[-1]["nodes"][node], states[-1]["gauges"]["queue"]


def test_a_full_window_blocks_and_what_the_queue_holds_is_marked_in_both():
    """Of four places three are complete and not told, one is held."""
    doc, states = made(("publish", {"count": 9}), window=4)
    producer, queue = last(states)
    assert producer["items"] == [["5", "full"], ["6", "full"], ["7", "full"], ["8", "held"]]
    assert producer["blocked"] == "blocked: window is full"
    assert producer["sub"] == "window 4, 1 to send"
    assert (queue["stopped"], queue["text"]) == (True, "completes nothing: 1 held")
    assert (queue["items"], queue["held"]) == ([str(n) for n in range(1, 9)], ["8"])
    (gauge,) = doc["gauges"]
    assert [(mark["at"], mark["kind"]) for mark in gauge["marks"]] == [(7, "high"), (5, "low")]
    assert "holds 1 completion" in doc["branches"][0]["steps"][-1]["in_words"]


def test_the_octets_of_a_frame_are_explained_in_the_terms_of_0_10():
    """Header, code, packing flags and fields of the specification, each with its octets."""
    rows = run("qpid").then("publish", count=1).rows
    frame = next(row for row in rows if row.kind == "message.transfer")
    told = {name: (value, frame.raw[start:end].hex())
            for name, value, start, end, _ in fields_of(frame)}  # fmt: skip
    assert told["frame.flags"] == ("first segment, first frame, last frame", "0b")
    assert told["frame.segment-type"] == ("1 (command)", "01")
    assert told["frame.track"] == ("1", "01")
    assert told["message.transfer.class-code"] == ("0x04", "04")
    assert told["message.transfer.session-header"][1] in ("0100", "0101")
    named = told["message.transfer.packing-flags"][0].split(", ")
    assert named[0] == "destination"
    assert told["message.transfer.destination"][1] == "0a" + b"amq.direct".hex()


def test_below_the_low_mark_the_window_empties_at_once():
    """Held until four are left; then every place is free in one step."""
    _, states = made(("publish", {"count": 8}), ("accept", {"count": 3}), window=4)
    assert last(states)[0]["items"][-1] == ["8", "held"]
    _, states = made(("publish", {"count": 9}), ("accept", {"count": 4}), window=4)
    held = [[how for _, how in state["nodes"]["client:p1"]["items"]] for state in states[-60:]
            if "items" in state["nodes"]["client:p1"]]  # fmt: skip
    ended = held.index(["empty"] * 4)
    assert held[ended - 1] == ["full"] * 4
    assert not last(states)[1]["stopped"]


def test_between_its_marks_a_queue_that_holds_is_not_called_above_the_high_one():
    """Eight above a mark of seven; then it holds down to below five."""
    said = []
    for taken in range(5):
        acts = [("publish", {"count": 8}), ("accept", {"count": taken})][: 2 if taken else 1]
        doc, _ = made(*acts, window=4)
        in_words = doc["branches"][-1]["steps"][-1]["in_words"]
        said.append(
            [words for words in ("above its high", "not below its low") if words in in_words]
        )
    assert said == [["above its high"], *[["not below its low"]] * 3, []]


def test_a_message_is_one_frame_that_flies_and_its_other_parts_are_no_steps():
    """The parts of a message come with its transfer, and have its number."""
    doc, _ = made(("publish", {"count": 3}))
    flown = [frame for frame in doc["branches"][0]["frames"] if frame["kind"] == "message"]
    assert [frame["short"] for frame in flown] == ["transfer 1", "transfer 2", "transfer 3"]
    told = [step for step in doc["branches"][0]["steps"] if "sentence" not in step]
    assert len(told) == (3 + 1) * 2 * 2  # the first is delivered, too


def test_the_end_of_a_session_is_told_and_large_windows_and_queues_are_numbers():
    """506; fifty places are not drawn, and of fifty-seven messages it is told how many are held."""
    _, states = made(("publish", {"count": 14}), stop=0, resume=0, most=10, window=0)
    producer, queue = last(states)
    assert producer["blocked"] == "session ended: 506"
    assert queue["level"] == 10
    _, states = made(("publish", {"count": 90}), window=50)
    producer, queue = last(states)
    assert (producer["sub"], producer["facts"]) == ("50 of 50 out", ["33 to send"])
    assert "items" not in producer
    assert "items" not in queue
    assert (queue["level"], queue["held"]) == (57, 50)


def test_a_slice_begins_with_what_blocks_the_producer_and_the_queue():
    """Both were blocked before its first row, and no counter of the slice tells."""
    rows = RUNS["gauge"]().then("accept", count=9).rows
    first = 1 + next(
        n for n, row in enumerate(rows) if (row.event, row.kind) == ("block", "queue-flow")
    )
    later = next(row for row in rows[first:] if (row.connection, row.kind) == ("c1", "body"))
    states = list(resolved(scene(cut_rows(rows, later.seq, first=first))))
    assert states[0]["gauges"]["queue"]["stopped"]
    counted = next(state for state in states if state["nodes"]["client:p1"].get("blocked"))
    assert counted["nodes"]["client:p1"]["blocked"] == "blocked: window is full"
    producer, queue = last(states)
    assert (producer["blocked"], queue["stopped"]) == (None, False)


def test_acts_are_done_on_the_party_that_they_are_of():
    """Publish on the producer, accept on the queue; a queue that is not used has no marks."""
    doc, _ = made(("publish", {"count": 1}))
    found = {act["id"]: act["on"] for act in doc["acts"]}
    assert (found["publish:q1"], found["accept:q1"]) == ("client:p1", "broker")
    assert not [name for name in found if name.endswith(":q2")]


def test_a_subscriber_s_credit_is_a_limit_that_a_flow_moves_on():
    """Two and two: the limit stands at four; octets are a number beside it."""
    played = run("qpid_credit").then("flow", unit="octets", value=200)
    doc = scene(played.then("flow", value=2).then("flow", value=2), octets=False)
    jsonschema.validate(doc, schema())
    states = list(resolved(doc))
    (line,) = states[-1]["lines"].values()
    assert line["ends"]["broker"] == [4, 4]
    assert "6 ready" in states[-1]["nodes"]["broker"]["facts"]
    messages = [frame for frame in doc["branches"][0]["frames"] if frame["kind"] == "message"]
    assert [frame["short"] for frame in messages] == [f"message {n}" for n in (1, 2, 3, 4)]
    named = {one["name"]: states[-1]["counters"][one["id"]] for one in doc["counters"]["rows"]}
    assert named["credit in messages"] == [0, None]
    assert named["credit in octets"] == [132, None]
    # Four transfers; a subscribe and three flows: nobody has said what is complete.
    assert named["incomplete commands"] == [4, 4]
    assert "credit for 0 more; in octets: 132" in doc["branches"][0]["steps"][-1]["in_words"]


def test_the_mode_of_a_subscription_s_credit_is_told_and_begins_as_a_window():
    """In the picture and in words: by the mode a completion gives credit back, or does not."""
    doc = scene(run("qpid_credit").then("set_flow_mode", mode="credit"), octets=False)
    modes = []
    for state in resolved(doc):
        told = state["nodes"]["client:subscriber"].get("sub")
        modes += [told] if told not in modes else []
    assert modes == [None, "subscriber, in window mode", "subscriber, in credit mode"]
    said = [step["in_words"] for branch in doc["branches"] for step in branch["steps"]]
    assert "In credit mode what is used is gone." in said[-1]


def test_of_a_captured_subscription_the_depth_of_the_queue_is_not_known(tmp_path):
    """It is in no frame; nor is credit, before a flow has given some."""
    export(run("qpid_credit").then("flow", value=4).rows, tmp_path / "c.pcapng")
    doc = scene(import_capture(tmp_path / "c.pcapng"), octets=False)
    jsonschema.validate(doc, schema())
    first, *_, last_state = (state["nodes"]["broker"] for state in resolved(doc))
    assert (first["facts"], first["items"]) == ([], None)
    assert (last_state["facts"], last_state["items"]) == (["credit in octets: none"], None)
    assert doc["branches"][0]["steps"][0]["in_words"].startswith("Subscriber: ")


def test_a_subscription_without_credit_blocks_the_broker_while_messages_are_ready():
    """In window mode a completion ends it; whoever has nothing to send is not blocked."""
    played = run("qpid_credit", parameters={"messages": 3})
    for act, arguments in (
        ("flow", {"unit": "octets", "value": 1000}), ("flow", {"value": 2}), ("complete", {}),
    ):  # fmt: skip
        played = played.then(act, **arguments)
    turns = []
    for state in resolved(scene(played, octets=False)):
        one = state["nodes"]["broker"]
        turn = one.get("blocked") or one.get("going")
        if turns[-1:] != [turn]:
            turns.append(turn)
    assert turns == [
        None, "blocked: no credit", "may deliver", "blocked: no credit", None, "nothing to send",
    ]  # fmt: skip


@pytest.mark.parametrize("begins", ["before", "in the slice"])
def test_an_opened_row_of_a_subscription_shows_it_whatever_else_its_client_does(tmp_path, begins):
    """A producer's picture would tell of a queue whose depth no frame tells."""
    played = run("qpid_credit").then("flow", unit="octets", value=1000).then("flow", value=4)
    export(played.rows, tmp_path / "c.pcapng")
    rows = import_capture(tmp_path / "c.pcapng").rows
    used_up = [row.seq for row in rows if row.kind == "message.transfer"][-1]
    there = replace(rows[used_up], seq=len(rows), from_peer="client", link=None, link_sender=None)
    first = 0 if begins == "in the slice" else used_up - 3
    doc = scene(cut_rows([*rows, there], used_up, first=first), octets=False)
    jsonschema.validate(doc, schema())
    assert doc["idea"].startswith("A flow of 0-10 adds to credit")
    *_, state = resolved(doc)
    broker, client = (state["nodes"][node["id"]] for node in doc["nodes"])
    assert broker["blocked"] == "blocked: no credit"
    if begins == "in the slice":
        (line,) = state["lines"].values()
        assert line["ends"]["broker"] == [4, 4]
        assert client["facts"] == ["4 received", "0 accepted"]
    else:  # how many messages there were before nobody knows
        assert (state["lines"], client["facts"]) == ({}, [])
        assert broker["facts"][0] == "credit for no more messages"
        told = doc["branches"][0]["steps"][-1]["in_words"]
        assert told.startswith("Broker: credit for no more messages, credit in octets: ")


def test_of_a_captured_producer_neither_the_queue_s_depth_nor_its_own_is_known(tmp_path):
    """They are in no frame: nothing is said to be empty."""
    export(run("qpid").then("publish", count=3).rows, tmp_path / "c.pcapng")
    doc = scene(import_capture(tmp_path / "c.pcapng"), octets=False)
    jsonschema.validate(doc, schema())
    *_, state = resolved(doc)
    producer, broker = (state["nodes"][node["id"]] for node in (doc["nodes"][0], doc["nodes"][-1]))
    assert (producer["sub"], producer["blocked"], producer["going"]) == ("", None, None)
    assert broker["facts"] == ["depth unknown"]
    assert "no row tells how many messages it holds" in doc["branches"][0]["steps"][-1]["in_words"]


def test_a_broker_that_stops_sessions_is_drawn_as_what_it_does():
    """Broker-J: nothing is held back, the producer is stopped, and that is the idea."""
    played = run("qpid", "broker-j", {"most": 10, "window": 0}).then("publish", count=60)
    doc = scene(played, octets=False)
    producer, queue = last(list(resolved(doc)))
    assert producer["blocked"] == "blocked: stopped by the broker"
    assert (queue["stopped"], queue["text"]) == (True, "above its mark")
    assert doc["idea"].startswith("Above its maximum a queue stops the sessions")


def test_two_producers_fill_one_queue_by_the_sum_of_their_windows():
    """Each has its window, its wire and its own act; what the queue holds is of both."""
    played = RUNS["windows"]()
    doc = scene(played)
    assert [node["name"] for node in doc["nodes"]] == ["Producer p1", "Producer p2", "Queue q1"]
    assert {link["from"] for link in doc["links"]} == {"client:p1", "client:p2"}
    acts = {act["id"]: act["on"] for act in doc["acts"] if act["id"].startswith("publish")}
    assert acts == {f"publish:q1:{name}": f"client:{name}" for name in ("p1", "p2")}
    full = [state for state in resolved(doc) if state["gauges"]["queue"]["stopped"]][-1]
    held = full["gauges"]["queue"]["held"]
    for name in ("p1", "p2"):
        mine = [text for text, how in full["nodes"][f"client:{name}"]["items"] if how == "held"]
        assert [f"{name} {text}" for text in mine] == [one for one in held if one[:2] == name]
    assert {one[:2] for one in held} == {"p1", "p2"}
