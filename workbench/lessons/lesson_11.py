"""Lesson 11: what the trace of a live server says about the client that is on its wire.

A live run is not played by us, so it has no numbers to look up: everything is read off the rows
that are there when somebody asks, and a question whose answer has not happened yet gives no facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench import serial
from workbench.amqp10.messaging import AmqpValue, encode_message
from workbench.exercises import measure
from workbench.exercises.measure import number_in
from workbench.frontends import message_of
from workbench.net import LiveBroker
from workbench.notebook import WrongValueError
from workbench.scenarios.beside import counted, decided
from workbench.trace.given import not_wanted, takes
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, OWN, RECEIVED, SENT, SHADOW, Row
from workbench.views.frozen_wire import Server

from .declare import Case, Declared, Facts, case, facts

__all__ = ["check", "fill", "first_grant", "heartbeats", "predict"]

lesson = Declared("11")
predict, check, say = lesson.predict, lesson.check, lesson.say

HEARTBEAT = "heartbeat"


# -- what the notebook does with a live server


@takes
def fill(server: LiveBroker, queue: str, messages: int) -> str:
    """Put messages into a queue of a live broker, as if somebody had published them before.

    Args:
        server: what `serve` has started.
        queue: name of the queue.
        messages: how many; their bodies are 0, 1, 2, ...

    Raises:
        WrongValueError: fewer than none.
    """
    if messages < 0:
        raise WrongValueError(say("fewer-than-none", n=messages))
    payloads = [encode_message([AmqpValue(value=number)]) for number in range(messages)]

    def filled() -> int:
        process = server.listener.broker.declare(queue)
        process.fill(map(message_of, payloads))
        return int(process.queue.ready)

    return say("ready", n=server.ask(filled), queue=repr(queue))


def heartbeats(server: Any) -> str:
    """How many empty frames have arrived so far, by who got them."""
    arrived = [
        row for row in _rows(server) if row.kind == HEARTBEAT and row.event in (RECEIVED, OBSERVED)
    ]
    to_client = sum(row.from_peer == BROKER for row in arrived)
    return say("beats", n=len(arrived), clients=to_client, broker=len(arrived) - to_client)


@takes
def first_grant(rows: Sequence[Row]) -> int | None:
    """Number of the row in which a client first grants credit: from there both ends count."""
    return next((row.seq for row in _flows(rows)), None)


# -- what is asked


@lesson.asks
def first_frame(server: Any) -> Facts | None:
    """What does a client send first?"""
    rows = _consumer_rows(server)
    sent = [row for row in _sent(rows) if row.from_peer == CLIENT]
    if not sent:
        return None
    return facts(
        str(sent[0].kind),
        step=measure.step(sent[0]),
        said=", ".join(dict.fromkeys(str(row.kind) for row in sent)),
        wrong={"begins with open": "open", "begins with who I am": "sasl-init"},
        beside=decided(rows, say("first"), sent[0]),
    )


@lesson.asks
def before_attach(server: Any) -> Facts | None:
    """How many frames cross before a client names the queue?"""
    rows = _consumer_rows(server)
    sent = _sent(rows)
    kinds = [row.kind for row in sent]
    if "attach" not in kinds:
        return None
    before = sent[: kinds.index("attach")]
    by_client = sum(row.from_peer == CLIENT for row in before)
    return facts(
        len(before),
        step=measure.step(sent[len(before)]),
        client=by_client,
        broker=len(before) - by_client,
        wrong={"the queue is named at once": 1},
        beside=counted(rows, say("before"), before, end=sent[len(before)]),
    )


@lesson.asks
def first_credit(server: Any, credit: int) -> Facts | None:
    """Which link-credit does the client's first flow carry?"""
    rows = _consumer_rows(server)
    found = _flows(rows)
    if not found:
        return None
    carried, base = number_in(found[0], "link_credit"), number_in(found[0], "delivery_count")
    assert credit  # without one the client asks when it wants a message
    return facts(
        carried,
        step=measure.step(found[0]),
        base=base,
        limit=base + carried,
        wrong={"one at a time": 1, "nothing before receive": 0},
        beside=decided(rows, say("granted"), found[0]),
    )


@lesson.asks
def brought(server: Any) -> Facts | None:
    """How many transfers wait at the gate after the first flow, and nothing else, went through?"""
    rows = _consumer_rows(server)
    flow = next(iter(_flows(rows)), None)
    arrived = [
        row.seq for row in rows if flow and (row.event, row.frame_id) == (RECEIVED, flow.frame_id)
    ]
    if flow is None or not arrived:
        return None
    heard = (
        row.seq
        for row in rows
        if row.seq > arrived[0] and row.event == RECEIVED and row.from_peer == CLIENT
        and row.kind != HEARTBEAT
    )  # fmt: skip
    waiting = measure.handed_over(rows, after=arrived[0], upto=next(heard, None))
    assert len(waiting) > 1
    return facts(
        len(waiting),
        step=measure.step(flow),
        granted=number_in(flow, "link_credit"),
        wrong={"one, and then an answer": 1},
        beside=counted(rows, say("waiting"), waiting),
    )


@lesson.asks
def next_credit(server: Any) -> Facts | None:
    """Which link-credit does the client's second flow carry?"""
    rows = _consumer_rows(server)
    found = _flows(rows)
    if len(found) < 2:
        return None
    first, second = found[:2]
    carried, base = number_in(second, "link_credit"), number_in(second, "delivery_count")
    asked = number_in(first, "link_credit")
    before = [
        row.event
        for row in rows
        if row.seq < second.seq and row.kind == "transfer" and row.from_peer == BROKER
    ]
    if RECEIVED in before:  # then it may be a message that it answers
        return None
    return facts(
        carried,
        step=measure.step(second),
        base=base,
        limit=base + carried,
        before=number_in(first, "delivery_count") + asked,
        sent=len(before),
        wrong={"asks for what it was told": asked, "has asked enough": 0},
        beside=decided(rows, say("second"), second),
    )


@lesson.asks
def stopped_at(server: Any) -> Facts | None:
    """Which frame is the first that a breakpoint on the credit holds?"""
    rows = _rows(server)
    stops = [row for row in _stops(rows) if _falls(row.extra["breakpoint"])]
    held = [row for row in _sent(rows) if stops and row.seq > stops[-1].seq]
    if not held or held[0].kind != "transfer":  # another gate has stopped the wire again
        return None
    return facts(
        str(held[0].kind),
        step=measure.step(held[0]),
        breakpoint=stops[-1].extra["breakpoint"],
    )


@lesson.asks
def whose_ledger(server: Any) -> Facts | None:
    """Where do the numbers of the client's end come from?"""
    rows = _consumer_rows(server)
    for row in rows:
        if row.ledger and row.from_peer and row.vantage.startswith(CLIENT):
            source = str(row.ledger_source)
            return facts(
                source if source in (OWN, SHADOW) else "broker",
                vantage=row.vantage,
                source=source,
                wrong={"the broker knows both ends": "broker"},
                beside=decided(rows, say("who"), row),
            )
    return None


@lesson.asks
def rows_per_frame(proxy: Any) -> Facts | None:
    """In how many rows is a frame, in the trace of a proxy?"""
    rows = [row for row in _rows(proxy) if row.frame_id is not None]
    if not rows:
        return None
    frames = len({row.frame_id for row in rows})
    return facts(
        len(rows) // frames,
        rows=len(rows),
        frames=frames,
        observed=sum(row.event == OBSERVED for row in rows),
        wrong={"both ends report": 2},
        beside=counted(
            rows,
            say("rows"),
            [row for row in rows if row.frame_id == rows[0].frame_id],
            end=next((row for row in rows if row.frame_id != rows[0].frame_id), None),
        ),
    )


# -- what is checked


@lesson.checks()
def crossed(server: Any) -> Case:
    """Has a flow of the client reached the broker after the broker had sent more than it tells of?

    Args:
        server: a live broker.
    """
    rows = _rows(server)
    arrived = _flows(rows, RECEIVED)
    if not arrived:
        return case("nothing")
    released = {row.extra.get("frame_id") for row in rows if row.event == "release"}
    by_hand = [row for row in arrived if row.frame_id in released]
    if not by_hand:
        return case("by-itself", flows=len(arrived))
    for row in by_hand:
        said, granted = number_in(row, "delivery_count"), number_in(row, "link_credit")
        sent = _sent_before(rows, row)
        if serial.diff(sent, said) > 0:
            step, left = measure.step(row), (row.ledger or {}).get("link_credit")
            return case(
                "right", about=row.link, step=step, said=said, granted=granted, sent=sent, left=left
            )
    last = by_hand[-1]
    return case("in-order", about=last.link, flows=len(by_hand), step=measure.step(last))


@lesson.checks()
def stopped(server: Any) -> Case:
    """Has a breakpoint on a counter stopped the wire, and did everything go on afterwards?

    Args:
        server: a live broker.
    """
    rows = _rows(server)
    stops = [row for row in _stops(rows) if "_" in row.extra["breakpoint"]]
    if not stops:
        return case("not-met")
    stop = stops[-1]
    about, condition, step = stop.connection, stop.extra["breakpoint"], measure.step(stop)
    arrived = {row.frame_id for row in rows if row.event in (RECEIVED, OBSERVED)}
    waiting = [
        row
        for row in rows
        if row.event == SENT and row.frame_id not in arrived and row.connection == stop.connection
    ]
    if waiting:
        return case(
            "client-waits" if waiting[0].from_peer == CLIENT else "broker-waits",
            about=about, condition=condition, step=step, frames=len(waiting),
        )  # fmt: skip
    later = sum(row.seq > stop.seq and row.event == RECEIVED for row in rows)
    return case(
        "right" if later else "at-its-end",
        about=about,
        condition=condition,
        step=step,
        frames=later,
    )


# -- reading a live trace


def _rows(server: Any) -> list[Row]:
    """The rows of a live broker or proxy so far.

    Raises:
        GivenError: if it is neither.
    """
    if not callable(getattr(server, "rows", None)):
        raise not_wanted(Server, server)
    rows: list[Row] = server.rows()
    return rows


def _consumer_rows(server: Any) -> list[Row]:
    """The rows of the latest connection on which a client has attached a receiver, else the latest.

    None at all if nobody has connected.
    """
    rows: list[Row] = [row for row in _rows(server) if row.connection is not None]
    receiving = [
        row.connection
        for row in rows
        if row.kind == "attach" and row.from_peer == CLIENT and row.link_sender == BROKER
    ]
    wanted = [*(row.connection for row in rows[-1:]), *receiving][-1:]
    return [row for row in rows if row.connection in wanted]


def _sent(rows: Sequence[Row]) -> list[Row]:
    """The frames that were sent, in order; not the empty ones, which only say that a peer lives."""
    return [
        row
        for row in rows
        if row.event == SENT and row.kind not in (None, HEARTBEAT) and row.connection is not None
    ]


def _flows(rows: Sequence[Row], event: str = SENT) -> list[Row]:
    """The client's flows about a link on which it receives."""
    return [
        row
        for row in measure.frames(rows, "flow", event=event, from_peer=CLIENT)
        if row.link_sender == BROKER and (row.frame or {}).get("link_credit") is not None
    ]


def _stops(rows: Sequence[Row]) -> list[Row]:
    """The rows in which a breakpoint closed a gate."""
    return [row for row in rows if row.event == "hold" and row.extra.get("breakpoint")]


def _falls(breakpoint: str) -> bool:
    """Whether it waits for credit to be used."""
    return breakpoint.startswith("link_credit") and ">" not in breakpoint


def _sent_before(rows: Sequence[Row], flow: Row) -> int:
    """The broker's delivery-count when a flow reached it."""
    found = 0
    for row in rows:
        if row.seq >= flow.seq:
            break
        same = (row.connection, row.link) == (flow.connection, flow.link)
        if same and row.vantage == BROKER and row.link_sender == BROKER:
            found = int((row.ledger or {}).get("delivery_count", found))
    return found
