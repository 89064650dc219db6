"""Runs of lesson 04 that several cells share: frames, windows, alarms, a second session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.presets import Preset
from workbench.scenarios.run import Run, run
from workbench.scenarios.windows import OUT, OUT_EXPRESS, QUEUE, RECEIVERS, TARGET
from workbench.trace.braking import blocked_us, held_by, links_of
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT, Row
from workbench.trace.words import count

from . import measure
from .table import Table

FIRST = RECEIVERS[0]
PRESET = "rmq4.3"  # whose broker the lesson is about
GENEROUS = 2_147_483_647  # the largest credit that RabbitMQ's sessions survive


def at_start(played: Run, act: str, **arguments: Any) -> Run:
    """The run in which somebody acts as soon as the links are attached."""
    return played.act(played.start_seq, act, **arguments)


def transfers(
    rows: Sequence[Row], peer: str = BROKER, event: str = SENT, *, link: str = "", after: int = -1
) -> list[Row]:
    """Transfer frames of a peer; of one link, if it is named."""
    found = measure.frames(rows, "transfer", event=event, from_peer=peer, after=after)
    return [row for row in found if not link or row.link == link]


def whole(rows: Sequence[Row]) -> int:
    """How many of these transfer frames end a message."""
    return sum(1 for row in rows if not (row.frame or {}).get("more"))


def arrived(played: Run, link: str = FIRST) -> int:
    """Messages that have come completely over a receiving link."""
    return whole(transfers(played.rows, BROKER, RECEIVED, link=link))


def in_queue(played: Run, name: str = QUEUE) -> int:
    """Messages that nobody has got, by the last row of the queue; 0 before it has told."""
    found = 0
    for row in played.rows:
        if row.vantage == f"queue:{name}":
            found = int((row.ledger or {}).get("queue_ready", found))
    return found


def taken(played: Run) -> int:
    """Messages of the client that the broker's queue has taken in."""
    return in_queue(played, TARGET)


def session_flows(rows: Sequence[Row], peer: str = BROKER, *, after: int = -1) -> list[Row]:
    """Flows of a peer that name no link: they tell windows alone."""
    found = measure.frames(rows, "flow", from_peer=peer, after=after)
    return [row for row in found if (row.frame or {}).get("handle") is None]


def field(row: Row, name: str) -> int:
    """A field of a frame that holds a number; 0 where the wire did not carry it."""
    return int(measure.numbers(row, name)[name] or 0)


def ledger(row: Row, name: str) -> int:
    """A counter of the end that logged a row."""
    return int((row.ledger or {})[name])


def window_before(rows: Sequence[Row], flow: Row) -> int:
    """The broker's incoming-window as it was before it sent a flow."""
    found = 0
    for row in rows:
        if row.seq >= flow.seq:
            break
        if row.vantage == BROKER and row.session == flow.session and row.ledger:
            found = int(row.ledger.get("incoming_window", found))
    return found


def announced(rows: Sequence[Row], peer: str) -> int:
    """The incoming-window in a peer's begin."""
    return field(measure.frames(rows, "begin", from_peer=peer)[0], "incoming_window")


def held_in_session(rows: Sequence[Row]) -> list[int]:
    """How many messages the broker's first session said it holds, at each change."""
    return [
        ledger(row, "mailbox")
        for row in rows
        if row.kind == "buffer" and row.vantage == "session:c1/1"
    ]


def halfway(played: Run, number: int, frames: int) -> Run:
    """The run in which the client opens its window when so many frames have come, not all."""
    at = transfers(played.rows, BROKER, RECEIVED)[number - 1].seq
    return played.act(at, "open_window", frames=frames)


def told_at(played: Run) -> int:
    """`seq` of the client's last flow that names no link."""
    return session_flows(played.rows, CLIENT)[-1].seq


def heard(played: Run, flow: Row) -> Row:
    """The row at which a flow reaches the other end."""
    return next(
        row for row in played.rows if row.frame_id == flow.frame_id and row.event == RECEIVED
    )


def disobeyed(run_: Run, publish: int) -> Run:
    """An alarm, messages that wait for its end, and a client that sends them all the same."""
    alarmed = at_start(run_, "alarm").then("publish", count=publish)
    return alarmed.then("ignore_window")


def rabbit_cut(rows: Sequence[Row]) -> Row:
    """The flow of a capture that sets link-credit to 0 in the middle of a message.

    Raises:
        ValueError: if there is none.
    """
    unfinished = False
    for row in rows:
        if row.kind == "transfer" and row.from_peer == BROKER:
            unfinished = bool((row.frame or {}).get("more"))
        elif row.kind == "flow" and row.from_peer == CLIENT and unfinished and _cuts(row):
            return row
    raise ValueError("no flow in this trace takes credit away in the middle of a message")


def _cuts(row: Row) -> bool:
    return (row.frame or {}).get("link_credit") == 0


def ends(rows: Sequence[Row]) -> list[Row]:
    """The broker's end frames."""
    return measure.frames(rows, "end", from_peer=BROKER)


def refused_at(played: Run) -> int:
    """`seq` of the row at which the broker ends a session.

    Raises:
        ValueError: if it ends none.
    """
    found = ends(played.rows)
    if not found:
        raise ValueError("the broker ends no session in this run")
    return found[0].seq


def condition(row: Row) -> str:
    """The error in an end frame."""
    error = row.extra.get("error")
    return str(error.get("condition", "")) if isinstance(error, dict) else str(error or "")


# -- tables ---------------------------------------------------------------------------------


def id_table(played: Run) -> Table:
    """Both sequence numbers of a session at both ends, as they stand at the end of a run."""
    names = ("next_outgoing_id", "next_incoming_id", "incoming_window", "remote_incoming_window")
    lines = []
    for peer in (CLIENT, BROKER):
        known: dict[str, int] = {}
        for row in played.rows:
            if row.vantage.startswith(peer) and row.session == 1 and row.ledger:
                known |= {name: int(row.ledger[name]) for name in names if name in row.ledger}
        lines.append((peer, *(str(known.get(name, "?")) for name in names)))
    return Table(
        name="The session's numbers at both ends",
        head=("end", *(name.replace("_", "-") for name in names)),
        lines=lines,
    )


def lane_runs(burst: int, preset: Preset | str = PRESET, **parameters: Any) -> dict[str, Run]:
    """One urgent message behind a burst: on the same session, and on one of its own.

    The urgent message is handed over when the whole burst is on the wire.
    """
    given = {"consumers": 0, "publisher": True, **parameters}
    begun = run("windows", preset, given).then("begin_session", link_credit=0)
    busy = begun.then("publish", count=burst)
    at = transfers(busy.rows, CLIENT)[-1].seq  # all of the burst is on the wire
    return {
        "behind them, on the same session": busy.act(at, "publish", count=1, link=OUT),
        "on a second session": busy.act(at, "publish", count=1, link=OUT_EXPRESS),
    }


def lane_us(played: Run, link: str) -> int:
    """From handing the urgent message over to the broker's taking it in, in us."""
    asked = [row for row in played.rows if row.event == "action" and row.kind == "publish"][-1]
    return transfers(played.rows, CLIENT, RECEIVED, link=link)[-1].t_us - asked.t_us


def lanes(burst: int, preset: Preset | str = PRESET, **parameters: Any) -> Table:
    """How long an urgent message takes behind a burst, with one session and with two."""
    lines = []
    for words, played in lane_runs(burst, preset, **parameters).items():
        link = OUT_EXPRESS if "second" in words else OUT
        time_us = lane_us(played, link)
        lines.append((words, f"{measure.milliseconds(time_us):,.1f}", str(len(played.world.wires))))
    return Table(
        name="An urgent message behind a burst",
        head=("the urgent message goes", "taken in after (ms)", "connections"),
        lines=lines,
    )


LAYERS: dict[str, dict[str, Any]] = {
    "little credit": {"link_credit": 10},
    "small window": {"client_window": 10, "reopens": True},
    "slow writer": {"writer_us": 400},
}


def layers(messages: int, preset: Preset | str = PRESET) -> dict[str, Run]:
    """The same queue with another thing scarce in each run."""
    plenty = {"messages": messages, "link_credit": 2 * messages}
    return {name: run("windows", preset, {**plenty, **scarce}) for name, scarce in LAYERS.items()}


def layer_table(messages: int, preset: Preset | str = PRESET) -> Table:
    """Which brake bound the sender longest, and where the messages waited."""
    lines = []
    for name, played in layers(messages, preset).items():
        (link,) = links_of(played.rows, sender=BROKER)
        total = blocked_us(played.rows, held_by(played.rows, link))
        longest = max(total, key=total.__getitem__, default="none")
        lines.append(
            (
                name,
                longest,
                count(arrived(played), "message"),
                str(max(held_in_session(played.rows), default=0)),
                str(_most_written(played.rows)),
                str(in_queue(played)),
            )
        )
    return Table(
        name="What holds the sender when one thing is scarce",
        head=(
            "scarce",
            "the brake, longest",
            "arrived",
            "most in the session",
            "most in the writer",
            "left in the queue",
        ),
        lines=lines,
    )


def _most_written(rows: Sequence[Row]) -> int:
    return max((ledger(row, "mailbox") for row in rows if row.vantage == "writer:c1"), default=0)
