"""Stalls and rates of a trace that is still being written, row by row.

The same folds as for a trace that is whole, and the same answers: what `stalls` and `throughput`
would say of all rows so far; of protocols without links `latency` too, without its percentiles, and
of `prefetch` the latest. Between two batches everything is in one object, which can be kept as JSON
and taken up again.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any

from workbench.trace.schema import LOSSES, OBSERVED, RECEIVED, Row, logged_by

from .channels import Channels
from .checkpointed import from_json, to_json
from .consumers import prefetch_row
from .counters import Counters, Limit, LinkState
from .intervals import Mark
from .stalls import PARTS as STALL_PARTS
from .stalls import StallFold
from .throughput import WINDOW_US, Window, checked_us, past_windows
from .vantage import PEERS, End, LinkKey

__all__ = ["LiveFold"]

HELD_ROWS = 5_000
"""Rows of a run that wait to learn whether both ends of a connection log: with its second frame
that is clear. After so many, one end's rows stand in for the other's."""

FORGET_US = 10_000_000
"""So long after its end a connection is forgotten, for what it had sent before may arrive later."""

_Connection = tuple[str, str]


@dataclass(slots=True)
class _Views:
    """Whose rows tell what each end of a connection knows."""

    counters: dict[str, Counters | Channels]
    own: set[str] = field(default_factory=set)
    observed: bool = False
    forced: bool = False

    @property
    def channels(self) -> list[Channels]:
        """What is counted at the ends, if the connection has no links."""
        return [its for its in self.counters.values() if isinstance(its, Channels)]

    @property
    def clear(self) -> bool:
        return self.observed or self.forced or len(self.own) == len(PEERS)

    def of(self, row: Row) -> Iterator[Counters | Channels]:
        """What is counted at the ends of which it is a row."""
        for peer in PEERS:
            counters = self.counters[peer]
            if counters.end.own != (peer in self.own):  # known only now
                counters.end = replace(counters.end, own=True)
            if peer in self.own:
                mine = row.event != OBSERVED and logged_by(row) == peer
            else:
                mine = row.event == OBSERVED or not self.observed
            if mine:
                yield counters


class LiveFold:
    """Takes batches of rows in order; nothing is kept but what later rows need.

    Args:
        window_us: length of the windows in which rates are counted.

    Raises:
        WrongValueError: a window has no length.
    """

    def __init__(self, window_us: int = WINDOW_US) -> None:
        self.rows = 0
        self._stalls = StallFold()
        self._rates = _Rates(window_us)
        self._views: dict[_Connection, _Views] = {}
        self._held: dict[str, deque[Row]] = {}
        self._last: dict[str, int] = {}
        self._ended: dict[_Connection, int] = {}  # when
        self._gone: set[_Connection] = set()

    def take(self, rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
        """Take in the next rows; returns what is over.

        That is `stalls`, `rates` of past windows, and `answers` on connections that are over. A row
        that was taken before, by run and seq, is passed over.
        """
        for row in rows:
            if row.seq <= self._last.get(row.run, -1):
                continue
            self._last[row.run] = row.seq
            self.rows += 1
            connection = row.run, str(row.connection)
            if connection in self._gone:
                continue
            if row.event == "disconnect":
                self._ended[connection] = row.t_us
            self._rates.take(row)
            self._meet(row)
            self._held.setdefault(row.run, deque()).append(row)
        for run, held in self._held.items():
            self._go_on(run, held)
        answers = list(self._forget())
        over = [stall._asdict() for stall in self._stalls.found]
        self._stalls.found.clear()
        return {"stalls": over, "rates": self._rates.over(), "answers": answers}

    def now(self) -> dict[str, list[dict[str, Any]]]:
        """What would be over if the rows so far were all: beside what `take` has given.

        And in `prefetch` what each consumer of AMQP 0-9-1 has.
        """
        rows = {id(row): row for held in self._held.values() for row in held}
        whole = copy.deepcopy(self, rows)  # all but the rows, which nobody changes
        for held in whole._held.values():
            while held:
                whole._apply(held.popleft())
        whole._stalls.finish()
        return {
            "stalls": [stall._asdict() for stall in whole._stalls.found],
            "rates": whole._rates.now(),
            "answers": [row for place in whole._views for row in whole._answers(place)],
            "prefetch": [
                prefetch_row(row)
                for views in whole._views.values()
                for its in views.channels
                for row in its.consumers.values()
            ],
        }

    def kept(self) -> dict[str, Any]:
        """All of it as JSON, from which `restore` makes the same again."""
        return to_json(vars(self), PARTS)

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from where another was when it said `kept`.

        Raises:
            ValueError: that is not what a fold has kept.
        """
        state = from_json(kept, PARTS)
        if not isinstance(state, dict) or state.keys() != vars(self).keys():
            raise ValueError("not what a fold has kept: it lacks something, or has more")
        vars(self).update(state)

    def last_us(self) -> dict[str, int]:
        """By run, the time of its latest row."""
        return dict(self._rates.last_us)

    def _answers(self, connection: _Connection) -> Iterator[dict[str, Any]]:
        for its in self._views[connection].channels:
            yield from its.answers(self._rates.last_us[connection[0]])

    def _forget(self) -> Iterator[dict[str, Any]]:
        """What is over for good is not carried on, or a recorder of days could not be followed."""
        for (run, connection), t_us in list(self._ended.items()):
            if self._held[run] or self._rates.last_us[run] < t_us + FORGET_US:
                continue
            del self._ended[run, connection]
            self._gone.add((run, connection))
            if (run, connection) in self._views:
                yield from self._answers((run, connection))
                del self._views[run, connection]
            self._stalls.forget(run, connection)
            self._rates.forget(run, connection)

    def _meet(self, row: Row) -> None:
        """Whose rows there are of the connection."""
        if not row.is_frame or row.connection is None:
            return
        views = self._views.get((row.run, row.connection))
        if views is None:
            ends = (
                End(run=row.run, connection=row.connection, peer=peer, own=False, rows=())
                for peer in PEERS
            )
            counters = {end.peer: self._stalls.counted(end, row.protocol) for end in ends}
            views = self._views[row.run, row.connection] = _Views(counters)
        if row.event == OBSERVED:
            views.observed = True
        else:
            views.own.add(logged_by(row))

    def _go_on(self, run: str, held: deque[Row]) -> None:
        while held:
            views = self._views.get((run, str(held[0].connection)))
            if views is not None and not views.clear:
                if len(held) < HELD_ROWS:
                    return
                views.forced = True
            self._apply(held.popleft())

    def _apply(self, row: Row) -> None:
        views = self._views.get((row.run, str(row.connection)))
        told: Iterable[Counters | Channels] = ()
        if views is not None and row.event in LOSSES:
            told = views.counters.values()
        elif views is not None and row.is_frame:
            told = views.of(row)
        self._stalls.take(row, told)


class _Rates:
    """Messages, frames and octets by link and window; each frame counts once."""

    def __init__(self, window_us: int) -> None:
        self.window_us = checked_us(window_us)
        self.last_us: dict[str, int] = {}
        self._links: dict[LinkKey, Window] = {}
        self._sent: dict[tuple[str, str | None, str | None], int] = {}
        self._over: list[dict[str, Any]] = []

    def take(self, row: Row) -> None:
        self.last_us[row.run] = row.t_us
        if not row.is_frame or row.connection is None or not self._is_new(row):
            return
        self._over += starmap(self._row, past_windows(row, self._links, self.window_us))

    def _is_new(self, row: Row) -> bool:
        """Frames of one way are numbered in order of sending: a later one that was sent is known.

        A frame is told by `sent` and `received`; where nobody logs the first, the second counts.
        """
        way = row.run, row.connection, row.from_peer
        number = -1 if row.frame_id is None else row.frame_id
        if row.event == RECEIVED and number <= self._sent.get(way, -1):
            return False
        if row.event != RECEIVED:
            self._sent[way] = max(number, self._sent.get(way, -1))
        return True

    def forget(self, run: str, connection: str) -> None:
        """Nothing more will come of a connection: its latest windows are past."""
        for key in [one for one in self._links if one[:2] == (run, connection)]:
            its = self._links.pop(key)
            self._over.append(self._row(key, its.number, its.counts))
        for way in [one for one in self._sent if one[:2] == (run, connection)]:
            del self._sent[way]

    def over(self) -> list[dict[str, Any]]:
        """Windows that are past, once."""
        found, self._over = self._over, []
        return found

    def now(self) -> list[dict[str, Any]]:
        """The latest window of each link, as far as it has come."""
        return [self._row(key, its.number, its.counts) for key, its in self._links.items()]

    def _row(self, key: LinkKey, window: int, counts: list[int]) -> dict[str, Any]:
        messages, frames, octets = counts
        return {
            **key._asdict(),
            "window_start_us": window * self.window_us,
            "messages": messages,
            "frames": frames,
            "body_bytes": octets,
            "rate": messages * 1e6 / self.window_us,
        }


PARTS = (
    Counters, End, Limit, LinkKey, LinkState, Mark, Row, *STALL_PARTS, Window, _Rates, _Views,
)  # fmt: skip
"""Of what a fold consists: no object of another class is kept, or made of what was kept."""
