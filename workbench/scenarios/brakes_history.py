"""The history of RabbitMQ's emergency brake in one table, which comes out of runs of five presets.

The same overload meets each release three times: with a publisher that stops when it is asked to,
with one that says so and goes on, and with one that does not even answer. A channel that opens
while the alarm is on is a fourth run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench import presets
from workbench.trace.brakes import NONE
from workbench.trace.braking import PublishingBraking
from workbench.trace.schema import RECEIVED, SENT, Row

from .emergency_brake import APP, COOPERATIVE, HEEDLESS, SILENT, WORKER, memory_of
from .run import Run, run

RELEASES = ("rmq1.5", "rmq1.8", "rmq2.0", "rmq3.5.5", "rmq4.3")
SCENARIO = "emergency_brake"
DIES, WAITS = "the broker dies", "nothing, until the alarm is over"
OPENING = ("channel.open-ok", "channel.flow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """What one release does when memory runs short.

    Attributes:
        preset: its name.
        counts, watermark: what it compares, and with which part of the memory.
        asks: what it sends to the publisher's connection because of the first alarm.
        most_octets: in use at most, with the publisher that stops.
        heedless, silent: what comes of the publishers that go on: what closes them, by what they
            are held, or that the broker dies.
        taken: messages that the broker takes from the heedless one while the first alarm is on.
        late: what a channel that opens meanwhile on the consumer's connection hears.
    """

    preset: str
    counts: str
    watermark: float
    asks: tuple[str, ...]
    most_octets: int
    heedless: str
    silent: str
    taken: int
    late: tuple[str, ...]


def history() -> tuple[Brake, ...]:
    """The table: a row for each release, in order."""
    return tuple(brake(name) for name in RELEASES)


def brake(preset: str) -> Brake:
    """One row of the table."""
    obedient, heedless, silent = (
        run(SCENARIO, preset, {"client": client}) for client in (COOPERATIVE, HEEDLESS, SILENT)
    )
    alarmed = first_alarm(heedless.rows)
    numbers = presets.get(preset)
    return Brake(
        preset=preset,
        counts=numbers.memory_counts,
        watermark=numbers.memory_high_watermark,
        asks=tuple(
            told(row)
            for row in first_alarm(obedient.rows)
            if row.event == SENT and row.vantage == "broker" and row.connection == APP
        ),
        most_octets=memory_of(obedient.world).most,
        heedless=outcome(heedless),
        silent=outcome(silent),
        taken=sum(row.event == "enqueue" for row in alarmed),
        late=_late(obedient),
    )


def told(row: Row) -> str:
    """A method as the table has it: `channel.flow(active=false)`, `channel.close 406`."""
    fields = row.fields
    if "active" in fields:
        return f"{row.kind}(active={str(fields['active']).lower()})"
    code = fields.get("reply_code")
    return f"{row.kind} {code}" if code else row.kind or ""


def outcome(played: Run) -> str:
    """What has come of a publisher that goes on: the first thing that stops it."""
    if any(row.event == "crash" for row in played.rows):
        return DIES
    held = PublishingBraking(APP)
    for row in played.rows:
        closed = row.kind in ("channel.close", "connection.close") and row.connection == APP
        if closed and row.event == RECEIVED:
            return told(row)
        if held.apply(row) != NONE:
            return f"held by {' and '.join(_all_brakes(played))}"
    return NONE


def _all_brakes(played: Run) -> list[str]:
    """Everything that ever holds the publisher's connection, in order of appearance."""
    held = PublishingBraking(APP)
    found: dict[str, None] = {}
    for row in played.rows:
        held.apply(row)
        found |= dict.fromkeys(held.brakes)
    return list(found)


def first_alarm(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows while the first alarm is on."""
    begin = next(row.seq for row in rows if row.event == "alarm-set")
    over = (row.seq for row in rows if row.event in ("alarm-clear", "crash"))
    return rows[begin : next(over, len(rows))]


def _late(played: Run) -> tuple[str, ...]:
    """What a channel hears that opens a second after the alarm was set, before it is over."""
    alarmed = first_alarm(played.rows)
    at = next(row for row in alarmed if row.t_us >= alarmed[0].t_us + 500_000)
    late = played.act(at.seq, "open_channel", connection=WORKER, count=0)
    heard = tuple(
        told(row)
        for row in first_alarm(late.rows)
        if row.event == RECEIVED
        and (row.connection, row.session) == (WORKER, 2)
        and row.kind in OPENING
    )
    return heard or (WAITS,)
