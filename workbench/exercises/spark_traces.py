"""The traces of lesson 10: captures of real brokers, a large one with something wrong, a small one.

They are written as Parquet into a folder of this process, which goes when the process ends: Spark
reads files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from workbench.aside import aside_until_exit
from workbench.capture.importer import import_capture
from workbench.notebook import WrongValueError
from workbench.scenarios.big_trace import episodes
from workbench.scenarios.shift import Plan, shift_parts, shop_names
from workbench.trace import files
from workbench.trace.copies import Part, write_copies
from workbench.trace.given import takes
from workbench.trace.schema import FRAME_EVENTS, RECEIVED, Row
from workbench.trace.unknowns import UnknownReport, unknowns

from .spark_answers import say
from .spark_progress import WorkBar, shown
from .table import Table, Tabled, table_of

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"
_PACKET = 6  # block type of an enhanced packet in pcapng
PUBLISHERS = "rmq43_a_publisher_grants"
"""A capture in which a client publishes, and settles at once."""


@cache
def folder() -> Path:
    """Where this process keeps its traces."""
    return aside_until_exit()


@dataclass(frozen=True, repr=False, slots=True, kw_only=True)
class LessonTrace(Tabled):
    """A trace on disk.

    Attributes:
        name: under which its answers are recorded.
        path: the Parquet file.
        table: what is in it.
        rows: how many rows.
        frames: how many frames these tell of; what both ends logged is one frame.
        parts: the distinct runs that it was written from; empty for captures.
    """

    name: str
    path: Path
    table: Table
    rows: int
    frames: int
    parts: Sequence[Part] = field(default=(), repr=False)


# -- captures of real brokers


@cache
def _imported() -> tuple[Any, ...]:
    return tuple((path, import_capture(path)) for path in sorted(CAPTURES.glob("*.pcapng")))


def captured_rows() -> Iterator[Row]:
    """The rows of all captures that come with the project."""
    for _, result in _imported():
        yield from result.rows


def real_captures() -> LessonTrace:
    """The captures that come with the project, as one trace."""
    lines, frames = [], 0
    for path, result in _imported():
        report = result.report
        frames += report.frames
        others = sum(not one.imported for one in report.connections)
        lines.append(
            (
                path.stem,
                "4.3" if path.stem.startswith("rmq43") else "4.0",
                _part(len(report.connections) - others, len(report.connections)),
                str(sum(len(one.links) for one in report.connections)),
                f"{report.frames:,}",
                f"{result.rows[-1].t_us / 1_000_000:.1f}",
            )
        )
    path = folder() / "captures.parquet"
    count = files.write(path, captured_rows(), raw=False)
    return LessonTrace(
        name="captures",
        path=path,
        rows=count,
        frames=frames,
        table=table_of("captures", lines),
    )


@takes
def cannot_tell(capture: str = PUBLISHERS, *, skip: int = 0) -> UnknownReport:
    """What one of the captures cannot tell.

    Args:
        capture: its name, without what kind of file it is.
        skip: pretend that the recorder came late, and missed so many packets.

    Raises:
        WrongValueError: there is no such capture; the text lists those there are.
    """
    for path, result in _imported():
        if path.stem == capture:
            return unknowns(late(path, skip) if skip else result.rows)
    listed = ", ".join(path.stem for path, _ in _imported())
    raise WrongValueError(say("traces.no-capture", name=repr(capture), listed=listed))


def _part(imported: int, all_: int) -> str:
    """How many connections of a capture are in the trace."""
    whole = imported == all_
    return str(imported) if whole else say("traces.part-of", imported=imported, all=all_)


def late(path: Path, skip: int) -> Sequence[Row]:
    """What is imported of a capture whose first packets the recorder has missed.

    Args:
        path: a pcapng file.
        skip: packets that are left out.
    """
    data = path.read_bytes()
    kept, at, packets = [], 0, 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        packets += kind == _PACKET
        if kind != _PACKET or packets > skip:
            kept.append(data[at : at + length])
        at += length
    short = folder() / f"{path.stem}-without-{skip}.pcapng"
    short.write_bytes(b"".join(kept))
    return import_capture(short).rows


# -- the large one


def plan() -> Plan:
    """What happens in the large trace: the plan as it is; answers are recorded of this one."""
    return Plan()


@takes
def big_trace(frames: int | None = None) -> LessonTrace:
    """The large trace; it is played and written now, and a bar tells how far that is.

    Args:
        frames: how many it has at least; there are as many shops as that takes. As many as suit a
            small machine if None.

    Raises:
        WrongValueError: less than one frame.
    """
    if frames is not None and frames < 1:
        raise WrongValueError(say("traces.too-small", frames=frames))
    with shown(WorkBar(say("traces.playing"))) as view:
        parts = shift_parts(plan(), view.step)
        if frames is not None:
            parts[0] = _as_many(parts, frames)
        view.step(1, 1, say("traces.written"))
        clients = sum(len(part.runs) for part in parts)
        sent = sum(_frames(part.rows) * len(part.runs) for part in parts)
        path = folder() / f"shift-{clients}.parquet"
        rows = write_copies(path, parts)
    return LessonTrace(
        name="shift" if frames is None else f"shift-{clients}",
        path=path,
        rows=rows,
        frames=sent,
        parts=tuple(parts),
        table=table_of(
            "large",
            [
                (
                    str(clients),
                    f"{sent:,}",
                    f"{rows:,}",
                    f"{path.stat().st_size / 1_000_000:.1f}",
                    f"{max(part.rows[-1].t_us for part in parts) / 1_000_000:.0f}",
                )
            ],
        ),
    )


def _as_many(parts: Sequence[Part], frames: int) -> Part:
    """The shops, so many of them that the whole trace has that many frames."""
    shops, *others = parts
    missing = frames - sum(_frames(part.rows) * len(part.runs) for part in others)
    return replace(shops, runs=shop_names(max(1, -(-missing // _frames(shops.rows)))))


def _frames(rows: Iterable[Row]) -> int:
    """Frames that were sent: what both ends logged is one frame."""
    return sum(row.event in FRAME_EVENTS and row.event != RECEIVED for row in rows)


# -- the small one, of which the answer is known


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTrace:
    """A small trace whose stalls were planted by acts.

    Attributes:
        path: the Parquet file.
        lost: run, link and brake to the time lost, in microseconds; from what was planted.
    """

    path: Path
    lost: dict[tuple[str, str, str], int]


@cache
def small_trace() -> SmallTrace:
    """Runs with planted stalls, and the time that each link lost by what was planted."""
    found = {f"small-{number:02}": one for number, one in enumerate(episodes(), start=1)}
    rows = [replace(row, run=name) for name, one in found.items() for row in one.rows]
    path = folder() / "small.parquet"
    files.write(path, rows, raw=False)
    lost: dict[tuple[str, str, str], int] = {}
    for name, episode in found.items():
        for one in episode.planted:
            key = (name, one.link, one.brake)
            lasted = episode.rows[one.end_seq].t_us - episode.rows[one.start_seq].t_us
            lost[key] = lost.get(key, 0) + lasted
    return SmallTrace(path=path, lost=lost)
