"""A recorder for long runs: rows become columns as they are made, and go to a file in batches.

It makes the rows of `Recorder`, column for column; a test compares the two. Rows of one *shape*
differ in a few numbers alone: transfers of one link at one end, say, or what a queue tells of each
message. The first row of a shape is made like any other and is its pattern; of those that follow
only the numbers are kept, as numbers. A batch is put together by Arrow, in order of `seq`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from typing import Any

from workbench.amqp10.connection import Connection
from workbench.amqp10.flow import ReceiverLinkFlow, SenderLinkFlow
from workbench.amqp10.frame import Frame
from workbench.amqp10.performatives import Transfer
from workbench.amqp10.receiver import ReceiverLink
from workbench.amqp10.sender import SenderLink

from . import brakes
from .batch_builder import Shape, Taken, table_of
from .braking import peer_of
from .fields import EXTRA_JSON
from .flatten import details_of, extra_text
from .schema import CLIENT, GROUP_OF, RECEIVED, SENT, Row
from .taps import BoundNotes, LinkKey, Recorder, frame_row, other_peer

BATCH_ROWS = 100_000
STATEFUL = frozenset({"block", "unblock", "alarm-set", "alarm-clear"})
"""Events that change what later rows say; they are few, and made like any row."""

NO_DETAILS: Mapping[str, int] = {}

FRAME_HEADER = 8
FRAME_NUMBERS = ("frame_id", "body_bytes", "frame_bytes", "frame.delivery_id")
LINK_NUMBERS = ("ledger.link_credit", "ledger.available", "ledger.unsettled")
SESSION_NUMBERS = (
    "ledger.incoming_window",
    "ledger.next_outgoing_id",
    "ledger.outgoing_window",
    "ledger.next_incoming_id",
    "ledger.remote_incoming_window",
    "ledger.remote_outgoing_window",
)
TRANSFER_NUMBERS = (
    "seq", "t_us", *FRAME_NUMBERS, *LINK_NUMBERS, "ledger.delivery_count", *SESSION_NUMBERS,
)  # fmt: skip


class ColumnNotes(BoundNotes):
    """The same by columns: of what differs in counters alone the shape is looked up once."""

    def __init__(
        self,
        tap: ColumnRecorder,
        clock: Any,
        ledger: Callable[[], Mapping[str, int | bool]] | None,
        columns: Mapping[str, Any],
    ) -> None:
        super().__init__(tap, clock, ledger, columns)
        self._recorder = tap
        self._counters = ledger or dict
        self._known: dict[tuple[str | None, ...], Shape | None] = {}

    def note(
        self,
        event: str,
        kind: str | None = None,
        *,
        extra: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> None:
        """Something happened there, now; see `Recorder.internal`."""
        key: tuple[Any, ...] = (event, kind)
        numbers: Mapping[str, int] = NO_DETAILS
        others: Mapping[str, Any] = NO_DETAILS
        if extra:
            numbers = {name: one for name, one in extra.items() if type(one) is int}
            if len(numbers) < len(extra):
                others = {name: one for name, one in extra.items() if name not in numbers}
            key = (event, kind, *numbers, None, *others)
        shape = None if columns else self._known.get(key)
        if shape is None and not columns and key not in self._known:
            shape = self._known[key] = self._shape_of(event, kind, numbers, others)
        if shape is None:
            super().note(event, kind, extra=extra, **columns)
            return
        if others:
            shape.texts.append(extra_text(others))
        counters = self._counters().values()
        told = (*counters, *numbers.values()) if numbers else counters
        self._recorder.told(shape, self._clock.now_us, told)

    def _shape_of(
        self, event: str, kind: str | None, numbers: Mapping[str, int], others: Mapping[str, Any]
    ) -> Shape | None:
        """The shape of rows like one that is noted now; None if they are made one by one."""
        ledger = self._counters()
        # A truth value is no number, and what is absent is none either.
        if any(type(one) is not int for one in ledger.values()):
            return None
        return self._recorder.shape_of(event, kind, self._columns, ledger, numbers, others)


class ColumnRecorder(Recorder):
    """A tap that hands the trace on in tables; `rows` stays empty.

    Args:
        run: name of the run.
        now: gives the run's time in microseconds.
        sink: called with an Arrow table of some 100,000 rows, again and again, without octets; and
            by `flush` with the rest.
        batch_rows: rows in a table.
        pool: where the table is made and handed on while the run goes on, one at a time; None: at
            once. Arrow compresses and writes without Python's lock.

    Attributes:
        count: rows made so far.
    """

    def __init__(
        self,
        run: str,
        *,
        now: Callable[[], int],
        sink: Callable[[Any], None],
        batch_rows: int = BATCH_ROWS,
        pool: Executor | None = None,
    ) -> None:
        super().__init__(run, now=now, keep=False)
        self._clock_us = now
        self._take = sink
        self._pool = pool
        self._writing: Future[None] | None = None
        self._batch_rows = batch_rows
        self._next_flush = batch_rows
        self._others: list[Row] = []
        self._shapes: dict[Any, Shape] = {}
        # Of a link at one end: in what its last transfer was like others, and their shape.
        self._last: dict[Any, tuple[tuple[Any, ...], Shape]] = {}

    @property
    def count(self) -> int:
        """Rows made so far."""
        return self._seq

    def flush(self) -> None:
        """Hand on what is kept, once what was handed on before is taken.

        Raises:
            BaseException: whatever `sink` raised.
        """
        kept = [shape.taken() for shape in self._shapes.values() if shape.rows]
        if self._others or kept:
            others, self._others = self._others, []
            self.wait()
            if self._pool is None:
                self._hand_on(others, kept)
            else:
                self._writing = self._pool.submit(self._hand_on, others, kept)
        self._next_flush = self._seq + self._batch_rows

    def wait(self) -> None:
        """Wait until all that was handed on is taken; raises as `flush`."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def _hand_on(self, others: list[Row], kept: list[Taken]) -> None:
        self._take(table_of(others, kept))

    # -- frames -------------------------------------------------------------------------------

    def sent(self, end: Any, flight: Any) -> None:
        """`end` has sent the frame."""
        if not self._transfer(end, flight, True):
            super().sent(end, flight)

    def received(self, end: Any, flight: Any) -> None:
        """`end` has applied the frame."""
        if flight.frame_id in self._flat or not self._transfer(end, flight, False):
            super().received(end, flight)

    def _transfer(self, end: Any, flight: Any, outgoing: bool) -> bool:
        """Keep a transfer as numbers; False if it is none, or not a plain one."""
        item = flight.item
        frame = item.performative if type(item) is Frame else None
        if (
            type(frame) is not Transfer
            or flight.octets is not None
            or frame.delivery_id is None
            or frame.delivery_tag is None
            or frame.rcv_settle_mode is not None
            or frame.state is not None
            or frame.resume is not None
            or frame.aborted is not None
            or frame.batchable is not None
        ):
            return False
        amqp = getattr(end, "amqp", None)
        if type(amqp) is not Connection:
            return False
        last: Any
        last, session, link = amqp.last_out if outgoing else amqp.last_in
        if last is not item or session is None:
            return False
        windows = session.counters
        window = windows.remote_incoming_window
        unconfirmed = held = None
        counters: SenderLinkFlow | ReceiverLinkFlow
        if type(link) is ReceiverLink:
            unconfirmed, counters = link.unconfirmed, link.counters
        elif type(link) is SenderLink:
            counters = link.counters
            free = counters.link_credit and counters.available and window and not self._full
            in_message = link.in_message
            if in_message or self._in_message:
                self._goes_on(_key(flight, session, link, end.from_peer), in_message)
            held = brakes.NONE if free else self._held(flight, session, link, end.from_peer)
        else:
            return False
        # A link at one end: transfers go over it one way alone.
        alike = (
            frame.handle, item.channel, frame.more, frame.settled, frame.message_format,
            counters.drain, held, unconfirmed is None,
        )  # fmt: skip
        known = self._last.get(link)
        if known is not None and known[0] == alike:
            shape = known[1]
        elif None in (counters.delivery_count, windows.next_incoming_id, window):
            return False  # before both ends have told everything; after that they have
        else:
            shape = self._transfers(end, flight, outgoing, link, alike, unconfirmed)
        t_us = self._clock_us()
        if t_us > self._t_us:
            self._t_us = t_us
        else:
            t_us = self._t_us
        number, tag, payload_size = frame.delivery_id, frame.delivery_tag, len(item.payload)
        # Frames of one shape that differ in numbers of one width alone have one size.
        width = len(tag) * 4 + (2 if number > 255 else 1 if number else 0)
        size = shape.sizes.get(width)
        if size is None:
            size = shape.sizes[width] = FRAME_HEADER + frame.size()
        numbers: Any = [
            self._seq, t_us, flight.frame_id, payload_size,
            size + payload_size, number, counters.link_credit, counters.available,
            len(link.unsettled),
            counters.delivery_count, windows.incoming_window, windows.next_outgoing_id,
            windows.outgoing_window, windows.next_incoming_id, window,
            windows.remote_outgoing_window,
        ]  # fmt: skip
        if unconfirmed is not None:
            numbers.append(unconfirmed)
        shape.numbers.fromlist(numbers)  # of a list: twice as quick as of a tuple
        shape.texts.append(tag)
        self._seq += 1
        if self._seq >= self._next_flush:
            self.flush()
        return True

    def _transfers(
        self,
        end: Any,
        flight: Any,
        outgoing: bool,
        link: Any,
        alike: tuple[Any, ...],
        unconfirmed: int | None,
    ) -> Shape:
        """The shape of transfers that are alike in this, on one link at one end."""
        key = (link, alike)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._pattern(end, flight, outgoing, unconfirmed)
        self._last[link] = (alike, shape)
        return shape

    def _held(self, flight: Any, session: Any, link: Any, sender: str) -> str:
        """What holds a link's sender, all of it in one text: part of a row's shape."""
        place = _key(flight, session, link, sender)
        return " ".join(
            brakes.brakes(
                link_credit=link.counters.link_credit,
                available=link.counters.available,
                remote_incoming_window=session.counters.remote_incoming_window,
                in_message=link.in_message,
                unconfirmed=place in self._unconfirmed,
                alarm=bool(self._alarms) and sender == CLIENT,
                tcp=(flight.connection, sender) in self._full,
            )
        )

    def _pattern(self, end: Any, flight: Any, outgoing: bool, unconfirmed: int | None) -> Shape:
        row = frame_row(
            flight.item,
            run=self.run,
            seq=self._seq,
            t_us=self._t_us,
            vantage=end.vantage,
            event=SENT if outgoing else RECEIVED,
            frame_id=flight.frame_id,
            from_peer=end.from_peer if outgoing else other_peer(end.from_peer),
            connection=flight.connection,
            scope=end.scope(flight.item, outgoing),
            ledger_source=end.ledger_source,
            alarm=bool(self._alarms),
            unconfirmed=self._unconfirmed,
            full=self._full,
        )
        more = () if unconfirmed is None else ("ledger.unconfirmed",)
        return Shape(row, (*TRANSFER_NUMBERS, *more), "frame.delivery_tag")

    # -- other rows ---------------------------------------------------------------------------

    def bind(
        self,
        clock: Any,
        *,
        vantage: str,
        ledger: Callable[[], Mapping[str, int | bool]] | None = None,
        **columns: Any,
    ) -> BoundNotes:
        """What makes rows that have columns in common; see `Recorder.bind`."""
        return ColumnNotes(self, clock, ledger, {"vantage": vantage, **columns})

    def told(self, shape: Shape, t_us: int, numbers: Iterable[int | bool]) -> None:
        """A row of a shape."""
        if t_us > self._t_us:
            self._t_us = t_us
        shape.numbers.fromlist([self._seq, self._t_us, *numbers])
        self._seq += 1
        if self._seq >= self._next_flush:
            self.flush()

    def shape_of(
        self,
        event: str,
        kind: str | None,
        columns: Mapping[str, Any],
        ledger: Mapping[str, Any],
        numbers: Mapping[str, int],
        others: Mapping[str, Any],
    ) -> Shape | None:
        """The shape of internal rows that differ in whole numbers, and in one text of JSON.

        Of their details, `numbers` have columns and `others` stand in the JSON; the rest is as in
        `Recorder.internal`. None if such rows are made one by one.
        """
        sender = columns.get("link_sender")
        in_columns, in_json = details_of(numbers), details_of(others)
        if (
            event in STATEFUL
            or (sender is not None and peer_of(columns["vantage"]) == sender)  # it names a brake
            or any(name not in GROUP_OF for name in ledger)
            or EXTRA_JSON in in_columns
            or (others and list(in_json) != [EXTRA_JSON])
        ):
            return None
        key = (event, kind, tuple(columns.items()), tuple(ledger), tuple(numbers), tuple(others))
        shape = self._shapes.get(key)
        if shape is None:
            made: list[Row] = []
            maker = Recorder(self.run, sink=made.append, keep=False)
            extra = {**numbers, **others}
            maker.internal(t_us=0, event=event, kind=kind, ledger=ledger, extra=extra, **columns)
            if maker.problems:
                return None
            named = [f"ledger.{name}" for name in ledger]
            named += [f"details.{name}" for name in numbers]
            text = f"details.{EXTRA_JSON}" if others else None
            shape = self._shapes[key] = Shape(made[0], ("seq", "t_us", *named), text)
        return shape

    def _add(self, row: Row) -> None:
        row.item = None  # its octets are not wanted
        self._others.append(row)
        self._count()

    def _count(self) -> None:
        self._seq += 1
        if self._seq >= self._next_flush:
            self.flush()


def _key(flight: Any, session: Any, link: Any, sender: str) -> LinkKey:
    return flight.connection, session.ordinal, link.name, link.attach_no, sender
