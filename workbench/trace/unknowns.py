"""What a trace cannot tell, link by link, and why.

A question that is answered from a capture is as good as the capture. This fold reads a trace once
and lists what nobody can know from it: beginnings that were not recorded, the one place where a
capture stands, what never travels on the wire, a clock that is too coarse, octets that are missing
or cannot be read. The definitions are in `data/README.md`, question `unknowns`.

Nothing here is about what is *wrong*; that is `violations`. And what is not listed is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from workbench.trace.schema import Row
from workbench.trace.unknown_links import Connection, Key, Link
from workbench.trace.unknown_words import SCOPES, Finding, Time, about_link, about_place, about_time

__all__ = ["Unknown", "UnknownReport", "unknowns", "unknowns_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """One thing that the trace cannot tell.

    Attributes:
        run: of which run.
        connection: of which connection; None where it is about the whole run.
        session, link, link_sender, attach_no: of which link; None where it is about the whole
            connection. A link whose attach is not in the trace has no name.
        what: one of the words in `unknown_words.WHAT`.
        unknown: what cannot be known, in words.
        why: why not, in words, with the trace's numbers.
        rows: how many rows it concerns; None where that means nothing.
        first_seq, last_seq: the first and the last of them.
    """

    run: str
    connection: str | None = None
    session: int | None = None
    link: str | None = None
    link_sender: str | None = None
    attach_no: int | None = None
    what: str = ""
    unknown: str = ""
    why: str = ""
    rows: int | None = None
    first_seq: int | None = None
    last_seq: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, in order."""
        return asdict(self)

    @property
    def place(self) -> str:
        """What it is about, in a few words."""
        if self.connection is None:
            return "the whole trace"
        if self.link_sender is None and self.session is None:
            return f"connection {self.connection}"
        name = "a link without a name" if self.link is None else f"link {self.link}"
        again = f", attach {self.attach_no}" if (self.attach_no or 1) > 1 else ""
        return f"{self.connection}/{self.session} {name} from {self.link_sender or '?'}{again}"


class _Run:
    """What has been seen of one run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.time = Time()
        self.connections: dict[str | None, Connection] = {}
        self.links: dict[Key, Link] = {}

    def see(self, row: Row) -> None:
        self.time.see(row)
        connection = self.connections.get(row.connection)
        if connection is None:
            connection = self.connections[row.connection] = Connection(row.connection)
        connection.see(row)
        # A frame that names a handle is about a link, whether its name is known or not.
        if not row.is_frame or row.connection is None:
            return
        handle = (row.frame or {}).get("handle")
        if row.link is None and (handle is None or row.session is None):
            return
        key = (row.connection, row.session, row.link, row.link_sender, row.attach_no)
        link = self.links.get(key)
        if link is None:
            link = self.links[key] = Link(key)
        link.see(row)

    def findings(self) -> Iterator[Unknown]:
        yield from (self._made(None, each) for each in about_time(self.time, self.connections))
        for name, connection in self.connections.items():
            if name is None:
                continue
            yield from (self._made(name, each) for each in about_place(connection))
            for link in self.links.values():
                if link.key[0] == name:
                    yield from (self._of(link, each) for each in about_link(link, connection))

    def _made(self, connection: str | None, found: Finding) -> Unknown:
        return Unknown(run=self.name, connection=connection, **found)

    def _of(self, link: Link, found: Finding) -> Unknown:
        values: dict[str, Any] = dict(zip(SCOPES, link.key, strict=True))
        return Unknown(run=self.name, **values, **found)


def unknowns(rows: Iterable[Row]) -> list[Unknown]:
    """What the trace cannot tell: of each run the whole first, then connections and links.

    Args:
        rows: a whole trace in order; it is read once, and no row is kept.
    """
    runs: dict[str, _Run] = {}
    for row in rows:
        run = runs.get(row.run)
        if run is None:
            run = runs[row.run] = _Run(row.run)
        run.see(row)
    return [found for run in runs.values() for found in run.findings()]


class UnknownReport:
    """The list as a page: a heading for each place, a line for each thing.

    Args:
        found: what cannot be told.
    """

    def __init__(self, found: Iterable[Unknown]) -> None:
        self.found = tuple(found)

    def __iter__(self) -> Iterator[Unknown]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        if not self.found:
            return "Everything that these questions need is in the trace."
        lines: list[str] = []
        several = len({one.run for one in self.found}) > 1
        place = None
        for one in self.found:
            here = (f"{one.run}: " if several else "") + one.place
            if here != place:
                lines.append(here)
                place = here
            lines.append(f"  {one.unknown}: {one.why}")
        return "\n".join(lines)

    __repr__ = __str__


def unknowns_report(rows: Iterable[Row]) -> UnknownReport:
    """What the trace cannot tell, as a page for a person.

    Args:
        rows: a whole trace in order.
    """
    return UnknownReport(unknowns(rows))
