"""Twice the rows take about twice the steps: nothing walks over all that was before at each row."""

from collections.abc import Iterator

import pytest

from tests.growth import steps
from workbench.folds import QUESTIONS, consumers
from workbench.trace import transcript
from workbench.trace.schema import AMQP_0_9_1, AMQP_1_0, INTERNAL, Row

MOST = 2.5
"""So many times the steps for twice the rows; what is squared takes four times."""
N = 400
OTHERS = {
    "transcript": lambda rows: [*transcript(rows)],
    "full": lambda rows: consumers.full(rows, AMQP_0_9_1),
}


def numbered(rows: Iterator[dict]) -> list[Row]:
    """Rows of a run, ten each second."""
    return [
        Row(run="r", seq=seq, t_us=100_000 * seq, frame_id=seq if "kind" in row else None, **row)
        for seq, row in enumerate(rows)
    ]


def seen(kind: str, sender: str, **more) -> dict:
    """A frame of AMQP 1.0 in a capture."""
    return {"vantage": "wire", "event": "observed", "protocol": AMQP_1_0, "connection": "c1",
            "from_peer": sender, "kind": kind, **more}  # fmt: skip


def link(session: int) -> dict:
    return {"session": session, "link": "l", "link_sender": "client", "attach_no": session}


def granted(its: dict, **fields) -> dict:
    """The broker's flow, and with it its window."""
    window = {"next_incoming_id": 0, "incoming_window": 99, "next_outgoing_id": 0}
    return seen("flow", "broker", **its, frame={"outgoing_window": 99, **window, **fields})


def attached(session: int) -> Iterator[dict]:
    for peer in ("client", "broker"):
        begin = {"next_outgoing_id": 0, "incoming_window": 99, "outgoing_window": 99}
        yield seen("begin", peer, session=session, frame=begin)
    its = link(session)
    first = {"name": "l", "handle": 0, "role": "sender", "initial_delivery_count": 0}
    yield seen("attach", "client", **its, frame=first)
    yield seen("attach", "broker", **its, frame={"name": "l", "handle": 0, "role": "receiver"})
    yield granted(its, handle=0, delivery_count=0, link_credit=9)


def session_for_each_request(n: int) -> Iterator[dict]:
    """Each with a link and a message, and ended."""
    for session in range(n):
        yield from attached(session)
        frame = {"handle": 0, "delivery_id": 0, "settled": True}
        yield seen("transfer", "client", **link(session), frame=frame, body_bytes=5)
        for peer in ("client", "broker"):
            yield seen("end", peer, session=session)


def window_that_closes(n: int) -> Iterator[dict]:
    """Again and again, with credit, for a moment."""
    yield from attached(1)
    for number in range(n):
        frame = {"handle": 0, "delivery_id": number, "settled": True}
        yield seen("transfer", "client", **link(1), frame=frame, body_bytes=5)
        for window in (0, 99):
            its = {"next_incoming_id": number + 1, "delivery_count": number + 1}
            yield granted(link(1), **its, handle=0, link_credit=9, incoming_window=window)


def questions_without_answer(n: int) -> Iterator[dict]:
    """Flows that ask, and others' frames that do not answer."""
    yield from attached(1)
    for number in range(n):
        asks = {"handle": 0, "delivery_count": 0, "link_credit": 9, "echo": True}
        yield seen("flow", "client", **link(1), frame=asks)
        yield seen("disposition", "broker", session=1, frame={"role": "receiver", "first": number})


def full_consumers_of_a_queue(n: int) -> Iterator[dict]:
    """As many consumers as messages come, each with all that it may have."""
    for kind, sender, unacknowledged in (("consume", "client", 0), ("deliver", "broker", 1)):
        for channel in range(n):
            frame = {"queue": "q"} if sender == "client" else {"delivery_tag": 1}
            yield {
                "vantage": "broker", "event": "received" if sender == "client" else "sent",
                "protocol": AMQP_0_9_1, "connection": "c1", "from_peer": sender,
                "session": channel, "consumer": "t", "kind": f"basic.{kind}", "frame_091": frame,
                "ledger": {"prefetch_count": 1, "unacknowledged": unacknowledged},
            }  # fmt: skip
    for ready in range(1, n):
        yield {"vantage": "queue:q", "event": "enqueue", "protocol": INTERNAL, "queue": "q",
               "ledger": {"queue_ready": ready}}  # fmt: skip


def confirms_of_many(n: int) -> Iterator[dict]:
    """Each of the next message alone, though each might speak of several."""
    for kind, sender, frame in (
        ("publish", "client", {"exchange": ""}),
        ("ack", "broker", {"multiple": True}),
    ):
        for number in range(1, n + 1):
            its = frame | ({"delivery_tag": number} if sender == "broker" else {})
            yield seen(f"basic.{kind}", sender) | {
                "protocol": AMQP_0_9_1, "session": 1, "frame_091": its,
                "ledger": {"published": number},
            }  # fmt: skip


def connections_that_come_and_go(n: int) -> Iterator[dict]:
    """Each of them opened and closed by both."""
    for number in range(n):
        for kind in ("open", "close"):
            for peer in ("client", "broker"):
                yield seen(kind, peer, frame={}) | {"connection": f"c{number}"}
        yield {"vantage": "broker", "event": "disconnect", "protocol": INTERNAL,
               "connection": f"c{number}"}  # fmt: skip


def sessions_that_stay(n: int) -> Iterator[dict]:
    """Each with a link, whose window closes and opens."""
    for session in range(n):
        yield from attached(session)
        for window in (0, 99):
            yield granted(link(session), handle=0, link_credit=9, incoming_window=window)


def links_that_come_and_go(n: int) -> Iterator[dict]:
    """Beside messages that nobody settles; and the window closes and opens each time."""
    yield from attached(1)
    for number in range(n):
        frame = {"handle": 0, "delivery_id": number}
        yield seen("transfer", "client", **link(1), frame=frame, body_bytes=5)
    for number in range(2, n):
        other = {"session": 1, "link": "m", "link_sender": "client", "attach_no": number}
        yield seen("attach", "client", **other, frame={"handle": 1, "initial_delivery_count": 0})
        for window in (0, 99):
            its = {"next_incoming_id": n, "link_credit": 9, "incoming_window": window}
            yield granted(link(1), handle=0, **its)
        yield seen("detach", "client", **other, frame={"handle": 1})


def consumers_that_come_and_go(n: int) -> Iterator[dict]:
    """Each gets a message and is cancelled."""
    for number in range(n):
        for sender, kind in (
            ("client", "consume"), ("broker", "deliver"), ("client", "ack"), ("client", "cancel"),
        ):  # fmt: skip
            tag = {} if kind == "ack" else {"consumer": f"t{number}"}
            yield {
                "vantage": "broker", "event": "received" if sender == "client" else "sent",
                "protocol": AMQP_0_9_1, "connection": "c1", "from_peer": sender, "session": 1,
                "kind": f"basic.{kind}", "frame_091": {"delivery_tag": number + 1}, **tag,
                "ledger": {"prefetch_count": 1},
            }  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (sessions_that_stay, "stalls"),
        (links_that_come_and_go, "latency"),
        (links_that_come_and_go, "throughput"),
        (consumers_that_come_and_go, "full"),
        (session_for_each_request, "stalls"),
        (session_for_each_request, "grants"),
        (session_for_each_request, "throughput"),
        (window_that_closes, "throughput"),
        (questions_without_answer, "violations"),
        (full_consumers_of_a_queue, "stalls"),
        (confirms_of_many, "latency"),
        (connections_that_come_and_go, "transcript"),
    ],
    ids=lambda it: getattr(it, "__name__", it),
)
def test_twice_the_rows_take_twice_the_steps(shape, name):
    """Whatever there are more of: sessions, windows, consumers, connections."""
    answer = OTHERS.get(name) or QUESTIONS[name].answer
    few, many = (numbered(shape(n)) for n in (N, 2 * N))
    answer(few)  # what is made once
    assert steps(answer, many) < MOST * steps(answer, few)
