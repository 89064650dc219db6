"""Each row in one or two sentences: what happened, who knows it, what is still on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.trace.rows import Hand, granted, last, link, race
from workbench.scenarios import run
from workbench.trace import explain
from workbench.trace.clauses import TITLES
from workbench.trace.schema import INTERNAL_EVENTS
from workbench.trace.sentences_hops import process_words


def flow_of_receiver(had: int, now: int, **frame: Any) -> str:
    hand = Hand()
    hand.sent("client", "flow", link(0, had), handle=0, delivery_count=0, link_credit=had)
    hand.sent("client", "flow", link(0, now), handle=0, delivery_count=0, link_credit=now, **frame)
    return last(hand).sentence


@pytest.mark.parametrize(
    ("had", "now", "frame", "sentence"),
    [
        (
            0,
            3,
            {},
            "The receiver grants 3: it may receive 3 more messages. The sender does not know yet.",
        ),
        (
            50,
            50,
            {},
            "The receiver states its credit again, 50: the number is absolute, so saying it twice"
            " adds nothing. The sender does not know yet.",
        ),
        (
            3,
            6,
            {},
            "The receiver raises its credit from 3 to 6: the new number takes the place of the old"
            " one, so 6 messages may come, not 9. The sender does not know yet.",
        ),
        (
            6,
            2,
            {},
            "The receiver lowers its credit from 6 to 2; what was sent before the sender hears of"
            " it may still come. The sender does not know yet.",
        ),
        (
            6,
            0,
            {"echo": True},
            "The receiver stops the link: with link-credit 0 no new message may be sent. It asks"
            " for an answer (echo). The sender does not know yet.",
        ),
        (
            6,
            6,
            {"drain": True},
            "The receiver asks for a drain: the sender shall send what it has, at most 6 messages,"
            " and give the rest of the credit back. The sender does not know yet.",
        ),
        (
            0,
            0,
            {},
            "The receiver grants nothing: link-credit stays 0. The sender does not know yet.",
        ),
    ],
)
def test_a_receivers_flow_is_told_by_what_it_changes(had, now, frame, sentence):
    """Grant, repeat, raise, lower, stop and drain are all flows; the words tell them apart."""
    assert flow_of_receiver(had, now, **frame) == sentence


def test_messages_in_flight_are_named():
    """Who knows what is where: the sender has used credit that the receiver still counts."""
    hand = Hand()
    hand.sent("client", "flow", link(0, 5), handle=0, delivery_count=0, link_credit=5)
    hand.received(0, link(0, 5, available=9))
    for message in range(2):
        hand.sent(
            "broker",
            "transfer",
            link(message + 1, 4 - message),
            handle=0,
            delivery_id=message,
        )
    assert last(hand).sentence == (
        "The sender sends message 1 and uses one credit: 3 left. 2 transfer frames are in flight,"
        " of which the receiver knows nothing yet."
    )
    hand.sent("client", "flow", link(0, 0), handle=0, delivery_count=0, link_credit=0)
    assert "2 transfer frames are still on the way to the receiver." in last(hand).sentence
    hand.received(1, link(1, -1))
    assert "2 messages" not in last(hand).sentence
    assert "1 transfer frame is still on the way to the receiver." in last(hand).sentence


def test_echo_is_answered_and_the_answer_is_known_as_one():
    """Stop: credit 0 with echo; after the answer nothing more is on the way [2.6.10]."""
    hand = Hand()
    hand.sent("client", "flow", link(2, 4), handle=0, delivery_count=2, link_credit=4)
    hand.received(0, link(2, 4))
    stop = {"handle": 0, "delivery_count": 2, "link_credit": 0, "echo": True}
    number = hand.sent("client", "flow", link(2, 0), **stop)
    assert last(hand).clause == "2.6.10"
    hand.received(number, link(2, 0))
    assert last(hand).sentence == (
        "The stop reaches the sender: it sends nothing more until it is granted credit again."
        " The receiver wants an answer. Now both ends have the same numbers."
    )
    assert last(hand).reasons[0] == "credit reaches 0"
    answer = hand.sent(
        "broker", "flow", link(2, 0), handle=0, delivery_count=2, link_credit=0, available=7
    )
    assert last(hand).sentence == (
        "The sender answers: delivery-count 2, link-credit 0, 7 messages available."
        " The receiver does not know yet."
    )
    hand.received(answer, link(2, 0, available=7))
    assert last(hand).sentence == (
        "The receiver hears the state of the sender: delivery-count 2, 7 messages available."
        " Everything sent before it has arrived."
    )


def test_a_drain_request_that_finds_credit_and_one_that_finds_none():
    """The sender gives back what it cannot use; with nothing left there is nothing to give."""
    request = {"delivery_count": 0, "link_credit": 6, "drain": True}
    assert granted(link(0, 6), link(0, 6, drain=True), **request).sentence == (
        "The drain request reaches the sender: credit that it cannot use at once it must give back;"
        " it may send 6 more messages."
    )
    assert granted(link(6, 0), link(6, 0, drain=True), **request).sentence.startswith(
        "The drain request reaches the sender: it has no credit to give back"
    )


def test_last_credit_names_what_has_to_wait():
    """The brake in words: no credit, and messages waiting."""
    hand = Hand()
    hand.sent("broker", "flow", link(0, 1, available=8), handle=0)
    hand.sent("broker", "transfer", link(1, 0, available=7), handle=0, delivery_id=3, settled=True)
    assert last(hand).sentence == (
        "The sender sends message 3 and uses one credit: none is left; 7 messages wait for a"
        " grant. It is sent settled: no acknowledgement will come. The receiver does not know yet."
    )
    assert last(hand).reasons[0] == "credit reaches 0"


def test_acknowledging_grants_nothing():
    """No disposition ever changes credit; the sentence says so [2.6.12]."""
    hand = Hand()
    extra = json.dumps({"state": {"type": "accepted"}})
    number = hand.sent(
        "client",
        "disposition",
        None,
        role="receiver",
        first=4294967295,
        last=1,
        settled=True,
        extra_json=extra,
    )
    assert last(hand).sentence == (
        "The receiver accepts messages 4294967295 to 1 (3), settles, and no longer"
        " tracks the deliveries. Credit does not change: an acknowledgement grants nothing."
    )
    hand.received(number)
    assert last(hand).sentence.startswith("The sender learns that the receiver accepts")


def extra(**fields: Any) -> str:
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("peer", "kind", "frame", "sentence"),
    [
        (
            "client",
            "protocol-header",
            {"protocol_id": 3, "major": 1, "minor": 0, "revision": 0},
            "The client asks to log in with SASL first.",
        ),
        (
            "broker",
            "protocol-header",
            {"protocol_id": 0, "major": 1, "minor": 0, "revision": 0},
            "The broker asks to speak AMQP 1.0.0.",
        ),
        (
            "client",
            "protocol-header",
            {"protocol_id": 9},
            "The client sends a protocol header with the unknown protocol id 9.",
        ),
        (
            "broker",
            "sasl-mechanisms",
            {"extra_json": extra(sasl_server_mechanisms=["PLAIN", "ANONYMOUS"])},
            "The broker offers the SASL mechanisms PLAIN, ANONYMOUS.",
        ),
        ("client", "sasl-init", {"mechanism": "ANONYMOUS"}, "The client logs in with ANONYMOUS."),
        (
            "client",
            "sasl-init",
            {"mechanism": "PLAIN", "initial_response": b"\0u\0p"},
            "The client logs in with PLAIN, with name and password in the clear.",
        ),
        (
            "broker",
            "sasl-challenge",
            {"challenge": b"abc"},
            "The broker asks for more: a challenge of 3 octets.",
        ),
        (
            "client",
            "sasl-response",
            {"response": b"a"},
            "The client answers the challenge with 1 octet.",
        ),
        ("broker", "sasl-outcome", {"code": 0}, "The broker lets the client in."),
        (
            "broker",
            "sasl-outcome",
            {"code": 1},
            "The broker refuses the client: name or password is wrong (code 1).",
        ),
        (
            "client",
            "open",
            {"container_id": "c", "max_frame_size": 512, "channel_max": 7, "idle_time_out": 30},
            "The client opens the connection, as container “c”; it takes frames up to 512 octets"
            " and channels up to 7; it wants to hear something every 30 ms.",
        ),
        (
            "client",
            "begin",
            {"next_outgoing_id": 5, "incoming_window": 10},
            "The client begins a session: its first transfer frame will have the id 5, and it"
            " takes 10 transfer frames.",
        ),
        (
            "client",
            "attach",
            {
                "name": "l",
                "role": "receiver",
                "extra_json": extra(source={"type": "source", "address": "/queues/q"}),
            },
            "The client attaches a link “l” as receiver from “/queues/q”.",
        ),
        (
            "client",
            "attach",
            {
                "name": "l",
                "role": "sender",
                "initial_delivery_count": 4,
                "extra_json": extra(target={"type": "target", "address": "/queues/q"}),
            },
            "The client attaches a link “l” as sender to “/queues/q”; its delivery-count begins"
            " at 4.",
        ),
        (
            "client",
            "flow",
            {"incoming_window": 0, "next_incoming_id": 3},
            "The client closes its session window: no link of this session may send it a transfer"
            " frame.",
        ),
        (
            "client",
            "flow",
            {"incoming_window": 400, "echo": True},
            "The client states its session window: it takes 400 transfer frames from now on, and"
            " asks for an answer (echo).",
        ),
        (
            "broker",
            "transfer",
            {"handle": 0, "aborted": True},
            "The sender aborts the message: the frames already sent are dropped, and the delivery"
            " is settled.",
        ),
        (
            "client",
            "disposition",
            {
                "role": "receiver",
                "first": 2,
                "extra_json": extra(
                    state={"type": "rejected", "error": {"type": "error", "condition": "amqp:x"}}
                ),
            },
            "The receiver rejects message 2, not yet settled (amqp:x). Credit does not change: an"
            " acknowledgement grants nothing.",
        ),
        (
            "broker",
            "disposition",
            {"role": "sender", "first": 2, "last": 4, "settled": True},
            "The sender settles messages 2 to 4 (3) and no longer tracks the deliveries.",
        ),
        (
            "client",
            "detach",
            {"handle": 0},
            "The client detaches the link “l”, which may be attached again.",
        ),
        (
            "client",
            "detach",
            {"handle": 0, "closed": True},
            "The client closes the link “l” for good.",
        ),
        (
            "broker",
            "detach",
            {
                "handle": 0,
                "closed": True,
                "extra_json": extra(
                    error={
                        "type": "error",
                        "condition": "amqp:link:transfer-limit-exceeded",
                        "description": "credit 0",
                    }
                ),
            },
            "The broker closes the link “l” with an error: amqp:link:transfer-limit-exceeded,"
            " “credit 0”.",
        ),
        ("client", "end", {}, "The client ends the session."),
        (
            "broker",
            "end",
            {"extra_json": extra(error={"condition": "amqp:session:window-violation"})},
            "The broker ends the session with an error: amqp:session:window-violation.",
        ),
        ("client", "close", {}, "The client closes the connection."),
        (
            "client",
            "heartbeat",
            {"channel": 0},
            "The client sends an empty frame: it says no more than that it is alive.",
        ),
        ("client", "teleport", {}, "The client sends teleport."),
    ],
)
def test_every_kind_of_frame_has_a_sentence(peer, kind, frame, sentence):
    """Seen in a capture the sentence is the fact; at an end it adds who does not know it yet."""
    captured = Hand()
    captured.observed(peer, kind, None, **frame)
    assert last(captured).sentence == sentence
    live = Hand()
    number = live.sent(peer, kind, None, **frame)
    sent = last(live).sentence
    live.received(number)
    received = last(live).sentence
    assert sent.startswith(sentence.split(".")[0][:30])
    for told in (sent, received):
        assert told[0].isupper()
        assert told.endswith(".")
        assert "None" not in told
    assert sent != received
    assert last(live).clause is None or last(live).clause in TITLES


def test_the_second_of_a_pair_is_an_answer():
    """open/open, begin/begin, attach/attach, ...: each side says it once, the second answers."""
    hand = Hand()
    for kind, words in (
        ("protocol-header", "agrees to"),
        ("open", "opens its side of the connection too"),
        ("begin", "begins its side of the session too"),
        ("detach", "its end of the link “l” too"),
        ("end", "ends its side of the session too"),
        ("close", "closes its side of the connection too"),
    ):
        frame = {"protocol_id": 0} if kind == "protocol-header" else {}
        first = hand.sent("client", kind, None, **frame)
        assert words not in last(hand).sentence
        hand.received(first)
        second = hand.sent("broker", kind, None, **frame)
        assert words in last(hand).sentence
        hand.received(second)
        assert words in last(hand).sentence


def test_a_refused_link_is_told_as_such():
    """An answering attach without its own terminus is a refusal [2.6.3]."""
    for role, terminus in (("sender", "source"), ("receiver", "target")):
        hand = Hand(sender="broker" if role == "sender" else "client")
        hand.sent("client", "attach", None, name="l", role="receiver")
        hand.sent("broker", "attach", None, name="l", role=role)
        assert f"refuses the link “l”: its attach names no {terminus}" in last(hand).sentence
        hand = Hand()
        hand.sent("client", "attach", None, name="l", role="receiver")
        found = extra(**{terminus: {"type": terminus, "address": "q"}})
        hand.sent("broker", "attach", None, name="l", role=role, extra_json=found)
        assert "no message may be sent" in last(hand).sentence


def test_an_attach_after_a_detach_asks_again():
    """A link that is attached a second time is asked for again, not answered."""
    hand = Hand()
    for kind in ("attach", "detach", "attach"):
        for peer in ("client", "broker"):
            hand.sent(peer, kind, None, name="l", role="receiver", extra_json=extra(source={}))
    sentences = [told.sentence for told in explain(hand.rows)]
    assert "attaches a link" in sentences[0]
    assert "refuses" in sentences[1]
    assert "attaches a link" in sentences[4]


def test_several_links_are_named():
    """With more than one link, `the sender` alone would be nobody in particular."""
    hand = Hand()
    hand.sent("client", "flow", link(0, 1), handle=0, link_credit=1)
    hand.link = "m"
    hand.sent("client", "flow", link(0, 2), handle=1, link_credit=2)
    assert last(hand).sentence.startswith("The receiver of “m” grants 2")


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"rabbitmq:active": True}, "Of the consumers of its queue this is the active one."),
        (
            {"rabbitmq:active": False},
            "Another consumer of its queue is the active one: this one waits its turn.",
        ),
        ({"rabbitmq:active": "who knows"}, ""),
        ([], ""),
    ],
)
def test_a_queue_that_has_one_active_consumer_says_whose_turn_it_is(properties, sentence):
    """RabbitMQ tells it in a property of its flow, where it changes; another's says nothing."""
    hand = Hand()
    its = json.dumps({"properties": properties})
    hand.sent("broker", "flow", link(0, 1), handle=0, link_credit=1, extra_json=its)
    told = last(hand).sentence
    assert sentence in told
    assert ("active one" in told) == bool(sentence)


@pytest.mark.parametrize("event", list(INTERNAL_EVENTS))
def test_every_internal_event_has_a_sentence(event):
    """Actors inside the broker speak too, and the queue's counters are told."""
    hand = Hand()
    hand.internal(event, "queue:q", queue="q", ledger={"queue_ready": 2})
    told = last(hand)
    assert told.sentence.endswith("2 ready.")
    assert "{" not in told.sentence


def test_a_queue_that_is_filled_says_with_how_many():
    """One row may stand for many messages."""
    hand = Hand()
    hand.internal("enqueue", queue="q", details={"count": 10})
    assert last(hand).sentence == "Queue “q” takes 10 messages."


@pytest.mark.parametrize(
    ("event", "kind", "vantage", "details", "sentence"),
    [
        (
            "publish", None, "client:app", {"count": 1},
            "The application of client app has a message to send.",
        ),
        (
            "unblock", "tcp", "client:c1", {"octets": 16_344},
            "TCP takes octets from client c1 again (16,344 octets).",
        ),
        ("alarm-set", "memory", "broker", {}, "The broker raises an alarm: memory."),
    ],
)  # fmt: skip
def test_parties_and_numbers_are_said_as_people_say_them(event, kind, vantage, details, sentence):
    hand = Hand()
    hand.internal(event, vantage, kind=kind, details=details)
    assert last(hand).sentence == sentence


@pytest.mark.parametrize("kinds", [("close", "close"), ("connection.close", "connection.close-ok")])
def test_a_connection_that_both_have_closed_is_not_lost(kinds):
    """What only one of them has closed is."""
    hand = Hand()
    hand.sent("client", kinds[0])
    hand.internal("disconnect", connection="c1")
    assert last(hand).sentence == "The connection is lost."
    hand.sent("broker", kinds[1])
    hand.internal("disconnect", connection="c1")
    assert last(hand).sentence == (
        "Both sides have closed the connection, and its socket is closed too."
    )


def test_an_action_is_told_with_its_arguments():
    """As it was given, and not whose it is: a lesson acts too, and so does whoever shared a run."""
    hand = Hand()
    columns = {"kind": "grant", "details": {"extra_json": extra(arguments={"link_credit": 3})}}
    hand.internal("action", "client:receiver", **columns)
    assert last(hand).sentence == "An act: grant, link-credit 3."


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("hold", {"frame_id": 14}, "hold, frame 14"),
        ("set_latency", {"latency_us": 3000}, "set latency, latency 3 ms"),
        ("wait", {"ms": 1000}, "wait, 1000 ms"),
        ("wait", {"milliseconds": 5000}, "wait, 5000 ms"),
        ("slow_disk", {"fsync_us": 2500, "node": "n2"}, "slow disk, fsync 2.5 ms, node n2"),
    ],
)
def test_an_action_is_told_in_a_reader_s_words(kind, given, told):
    """No name and no unit that stands in code alone."""
    hand = Hand()
    columns = {"kind": kind, "details": {"extra_json": extra(**given)}}
    hand.internal("action", "learner", **columns)
    assert last(hand).sentence == f"An act: {told}."
    assert last(hand).reasons[0] == "action"


def test_a_step_names_who_did_it_in_the_form_that_a_language_asks_for(speak):
    """The sender reads a grant: in German `der Sender` is `den Sender` then."""
    speak("de")
    assert list(explain(race()))[4].sentence == (
        "Der Credit erreicht den Sender: Er darf noch 5 Nachrichten senden, nicht 6, denn er hat"
        " eine gesendet, die der flow nicht mitzählt. Ein transfer-Frame ist noch unterwegs zum"
        " Empfänger, deshalb sind die Enden verschieden."
    )


@pytest.mark.parametrize(
    ("scenario", "act", "sentence"),
    [
        (
            "credit",
            "publish",
            "The broker recounts what is ready for a link without credit; no frame tells the"
            " receiver.",
        ),
        ("qpid", "delete", "Queue “q1” is deleted; 0 ready, 0 delivered and not settled."),
    ],
)
def test_what_happens_without_a_frame_is_told_in_a_sentence(
    scenario: str, act: str, sentence: str
) -> None:
    """The name of its note, as it stands in a trace, is none."""
    played = run(scenario, parameters={"messages": 0} if scenario == "credit" else {}).then(act)
    assert sentence in [told.sentence for told in explain(played.rows)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("channel:c2/1", "channel 1 of c2"),
        ("session:c1/0", "session 0 of c1"),
        ("reader:c2", "the reader of c2"),
        ("queue:q/1", "queue “q/1”"),
        ("nobody", "nobody"),
    ],
)
def test_a_process_is_called_what_it_is_of_which_connection(name, words):
    """As people say it, in sentences and in the log's filter; a slash is how a trace names it."""
    assert process_words(name) == words
