"""Lesson 11: what the trace of a live server says about the client that is on its wire.

A live run is not played by us, so it has no numbers to look up: everything is read off the rows
that are there when somebody asks, and what has not happened yet is said to be so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.amqp10.messaging import AmqpValue, encode_message
from workbench.frontends import message_of
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row
from workbench.trace.words import count

from .question import NotYetError

HEARTBEAT = "heartbeat"

NOBODY = (
    "No client has been on the wire yet. Run the cell of the client, let its frames go, and press"
    " Compare again."
)


def fill(server: Any, queue: str, messages: int) -> str:
    """Put messages into a queue of a live broker, as if somebody had published them before.

    Args:
        server: what `serve` has started.
        queue: name of the queue.
        messages: how many; their bodies are 0, 1, 2, ...
    """
    payloads = [encode_message([AmqpValue(value=number)]) for number in range(messages)]
    server.ask(lambda: server.listener.broker.declare(queue).fill(map(message_of, payloads)))
    return f"{messages} messages are ready in queue {queue!r}"


def consumer_rows(server: Any) -> list[Row]:
    """The rows of the latest connection on which a client has attached a receiver, else the latest.

    Raises:
        NotYetError: if nobody has connected.
    """
    rows: list[Row] = [row for row in server.rows() if row.connection is not None]
    if not rows:
        raise NotYetError(NOBODY)
    receiving = [row.connection for row in rows if row.kind == "attach" and _receives(row)]
    wanted = receiving[-1] if receiving else rows[-1].connection
    return [row for row in rows if row.connection == wanted]


def _receives(row: Row) -> bool:
    return row.from_peer == CLIENT and row.link_sender == BROKER


def sent_by(rows: Sequence[Row], peer: str) -> list[Row]:
    """The frames that a peer has sent, in order; empty ones, which only say that it lives, not."""
    return [
        row
        for row in rows
        if row.event == SENT and row.from_peer == peer and row.kind not in (None, HEARTBEAT)
    ]


def flows(rows: Sequence[Row], event: str = SENT) -> list[Row]:
    """The client's flows about a link on which it receives."""
    return [
        row
        for row in rows
        if row.kind == "flow"
        and row.event == event
        and row.from_peer == CLIENT
        and row.link_sender == BROKER
        and (row.frame or {}).get("link_credit") is not None
    ]


def number_in(row: Row, name: str) -> int:
    """A number in a frame, as it was on the wire."""
    return int((row.frame or {})[name])


def brought_by(rows: Sequence[Row], flow: Row) -> int | None:
    """How many messages the broker sent for a flow, before it heard anything else of the client.

    None if the flow has not reached the broker yet.
    """
    arrived = next(
        (row for row in rows if row.event == RECEIVED and row.frame_id == flow.frame_id), None
    )
    if arrived is None:
        return None
    brought = 0
    for row in rows:
        if row.seq <= arrived.seq:
            continue
        if row.event == RECEIVED and row.from_peer == CLIENT and row.kind != HEARTBEAT:
            break
        if row.event == SENT and row.kind == "transfer" and row.from_peer == BROKER:
            brought += not (row.frame or {}).get("more")
    return brought


def stop_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows in which a breakpoint closed a gate."""
    return [row for row in rows if row.event == "hold" and row.extra.get("breakpoint")]


def heartbeats(server: Any) -> str:
    """How many empty frames have arrived so far, by who got them."""
    arrived = [
        row for row in server.rows() if row.kind == HEARTBEAT and row.event in (RECEIVED, OBSERVED)
    ]
    to_client = sum(row.from_peer == BROKER for row in arrived)
    return (
        f"{count(len(arrived), 'empty frame')} so far: {to_client} to clients,"
        f" {len(arrived) - to_client} to the broker"
    )
