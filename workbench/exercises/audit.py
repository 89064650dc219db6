"""Audit the auditor: faulty readers of a trace, and beside them what the ends themselves say.

The right reader works nothing out: it takes the ledgers of the trace, which the ends or the
observer wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.notebook import WrongValueError
from workbench.presets import Preset
from workbench.scenarios.run import Run, run
from workbench.trace.fold import link_scope
from workbench.trace.given import rows_of, takes
from workbench.trace.schema import CLIENT, OBSERVED, Row

from . import measure
from .readers import FAULTY, Reader
from .table import Table, Tabled, say, table_of

WRONG = "✘"
LEDGERS = "ledgers"  # the reader that is right


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What everybody says after one frame.

    Attributes:
        seq: the row.
        step: its number on the stage.
        kind: performative.
        says: the frame in a few words.
        credit: by reader, the sender's link-credit that it believes in; None if it has none yet.
        used_up: the readers that say that this frame used up the credit.
    """

    seq: int
    step: str
    kind: str
    says: str
    credit: dict[str, int | None]
    used_up: frozenset[str]

    def wrong(self, reader: str) -> bool:
        """Whether that reader disagrees with the ledgers here, in number or in words."""
        if self.credit[reader] is None:
            return False  # it has said nothing yet
        same = self.credit[reader] == self.credit[LEDGERS]
        return not same or (reader in self.used_up) != (LEDGERS in self.used_up)


class Audit(Tabled):
    """One trace as several readers read it.

    Args:
        lines: one for each frame of the link that a reader takes in.
        readers: names of the faulty ones.
    """

    def __init__(self, lines: Sequence[Line], readers: Sequence[str]) -> None:
        self.lines = list(lines)
        self.readers = tuple(readers)

    def stalls(self, reader: str = LEDGERS) -> list[int]:
        """`seq` of the rows at which that reader says that credit is used up."""
        return [line.seq for line in self.lines if reader in line.used_up]

    def noticed(self, reader: str) -> int:
        """How many of the rows at which credit was used up that reader recognised."""
        return len(set(self.stalls()) & set(self.stalls(reader)))

    def false_alarms(self, reader: str) -> int:
        """How often that reader says that credit was used up when it was not."""
        return len(self.stalls(reader)) - self.noticed(reader)

    def first_wrong(self, reader: str) -> int | None:
        """`seq` of the first row at which that reader and the ledgers disagree; None if nowhere."""
        return next((line.seq for line in self.lines if line.wrong(reader)), None)

    def wrong(self, reader: str) -> int:
        """How many frames that reader gets wrong."""
        return sum(line.wrong(reader) for line in self.lines)

    @property
    def table(self) -> Table:
        """Frame by frame: what each says; a cross where it differs from the ledgers."""
        everybody = (LEDGERS, *self.readers)
        cells = [[self._cell(line, reader) for reader in everybody] for line in self.lines]
        lines = [
            (line.step, line.says, *each) for line, each in zip(self.lines, cells, strict=True)
        ]
        return table_of("audit", lines, (say("audit.ledgers"), *self.readers))

    def _cell(self, line: Line, reader: str) -> str:
        value = line.credit[reader]
        words = ["–" if value is None else str(value)]
        if reader in line.used_up:
            words.append(say("audit.used-up"))
        if line.wrong(reader):
            words.append(WRONG)
        return " ".join(words)

    @property
    def summary(self) -> str:
        """How often credit was used up, and how often each reader noticed."""
        said = [say("audit.used", n=len(self.stalls()), frames=len(self.lines))]
        said += [
            say("audit.reader", reader=reader, score=self.score(reader), n=self.wrong(reader))
            for reader in self.readers
        ]
        return " ".join(said)

    def score(self, reader: str) -> str:
        """How many of them it noticed, and its false alarms, in words."""
        false = self.false_alarms(reader)
        known, stalls = self.noticed(reader), len(self.stalls())
        return say("audit.alarms" if false else "audit.noticed", noticed=known, all=stalls, n=false)


def _said(row: Row, fields: dict[str, Any]) -> str:
    told = ("initial-delivery-count", "delivery-count", "link-credit", "drain", "echo", "more")
    words = [
        f"{name}={str(fields[name]).lower()}"
        for name in told
        if name in fields and not (name in ("drain", "echo") and not fields[name])
    ]
    by = "→" if row.from_peer == CLIENT else "←"
    return f"{by} {row.kind}" + (f"({', '.join(words)})" if words else "")


def audit(
    trace: Any, link: str | None = None, kinds: Sequence[Callable[[], Reader]] = FAULTY
) -> Audit:
    """Let every reader read the frames of one link, as its sender or the capture point saw them.

    Args:
        trace: a run, an imported capture, or rows in order.
        link: name of the link, any if None; the first one with a transfer.
        kinds: make the readers.

    Raises:
        WrongValueError: if no message moved over that link.
    """
    rows = rows_of(trace)
    frames = [
        row
        for row in rows
        if row.link is not None
        and row.kind in ("attach", "flow", "transfer")
        and (row.event == OBSERVED or measure.peer(row) == row.link_sender)
        and link in (None, row.link)
    ]
    first = next((row for row in frames if row.kind == "transfer"), None)
    if first is None:
        raise WrongValueError(say("audit.nothing"))
    frames = [row for row in frames if link_scope(row) == link_scope(first)]
    readers: list[Reader] = [make() for make in kinds]
    lines: list[Line] = []
    before = 0
    for row in frames:
        fields = {
            name.replace("_", "-"): value
            for name, value in (row.frame or {}).items()
            if value is not None
        }
        for reader in readers:
            reader.read(str(row.kind), fields, row.from_peer == row.link_sender)
        truth = (row.ledger or {}).get("link_credit")
        used_up = {reader.name for reader in readers if reader.used_up}
        if row.kind == "transfer" and truth == 0 and before > 0:
            used_up.add(LEDGERS)
        before = truth if truth is not None else before
        lines.append(
            Line(
                seq=row.seq,
                step=measure.step_words(row),
                kind=str(row.kind),
                says=_said(row, fields),
                credit={LEDGERS: truth, **{reader.name: reader.credit for reader in readers}},
                used_up=frozenset(used_up),
            )
        )
    return Audit(lines, [reader.name for reader in readers])


@takes
def audited_run(
    link_credit: int, *, initial_delivery_count: int = 0, preset: Preset | str = "spec"
) -> Run:
    """A run with everything in it that a reader can trip over.

    All credit is used; a larger grant crosses a transfer on the wire; what is left is drained; and
    then all credit of one more grant is used.

    Args:
        link_credit: of the first and the last grant; the one that crosses is twice as large.
        initial_delivery_count: with which the sender begins.
        preset: every other number.

    Raises:
        WrongValueError: there is no credit to be used.
    """
    if link_credit < 1:
        raise WrongValueError(say("audit.no-credit", n=link_credit))
    given = {"messages": link_credit, "initial_delivery_count": initial_delivery_count}
    played = run("credit", preset, given)

    return (
        played.then("grant", link_credit=link_credit)
        .then("grant", link_credit=link_credit)
        .then("hold", direction="c2b")
        .then("grant", link_credit=2 * link_credit)
        .then("publish", count=1)
        .then("release", direction="c2b")
        .then("drain")
        .then("publish", count=link_credit)
        .then("grant", link_credit=link_credit)
    )


@dataclass(frozen=True, repr=False, kw_only=True)
class Starts(Tabled):
    """The same story with different first counts.

    Attributes:
        audits: by initial delivery-count.
    """

    audits: dict[int, Audit]

    @property
    def table(self) -> Table:
        """A row a start: how often credit was used up, and how often each reader noticed."""
        readers = next((audit.readers for audit in self.audits.values()), ())
        lines = [
            (
                str(start),
                say("audit.often", n=len(audit.stalls())),
                *(audit.score(reader) for reader in audit.readers),
            )
            for start, audit in self.audits.items()
        ]
        return table_of("audit-starts", lines, (say("audit.ledgers"), *readers))


@takes
def audit_starts(starts: Sequence[int], link_credit: int, preset: Preset | str = "spec") -> Starts:
    """Audit the same story with several initial delivery-counts."""
    return Starts(
        audits={
            start: audit(
                audited_run(link_credit, initial_delivery_count=start, preset=preset),
            )
            for start in starts
        }
    )
