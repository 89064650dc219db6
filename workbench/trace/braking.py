"""What holds a link's sender at every step of a run: a fold over the rows, for one link.

A row says what holds its own link's sender when it is logged. But a window closes with a flow that
names no link, an alarm is set at the other end, and TCP stops without any frame: between two rows
of the link the brake may change. Here every row counts, and the one pure function of `brakes`
decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import brakes
from .fold import Scope, State, link_scope, observed_end
from .schema import BROKER, CLIENT, GROUP_OF, LINK, OBSERVED, SESSION, WIRE_VANTAGE, Row, peer_of

LinkKey = tuple[str | None, int | None, str | None, str | None, int | None]
"""Connection, session, link, link_sender, attach_no; in the order in which a `Scope` has them."""


def link_key(row: Row) -> LinkKey:
    """The link that a row concerns, if it concerns one."""
    return row.connection, row.session, row.link, row.link_sender, row.attach_no


@dataclass(slots=True)
class Outside:
    """What holds senders and shows in no counter of theirs.

    Attributes:
        alarms: resource alarms that are on at the broker, in order of beginning.
        unconfirmed: links from which the broker withholds credit for want of confirms.
        full: connections and peers whose transport takes no more octets.
    """

    alarms: dict[str, None] = field(default_factory=dict)
    unconfirmed: set[LinkKey] = field(default_factory=set)
    full: set[tuple[str | None, str | None]] = field(default_factory=set)

    def take(self, row: Row) -> None:
        """A row that is no frame: something of this begins or ends."""
        begins = row.event in ("alarm-set", "block")
        if row.event in ("alarm-set", "alarm-clear"):
            name = row.kind or row.vantage
            self.alarms.pop(name, None)
            if begins:
                self.alarms[name] = None
        elif row.event in ("block", "unblock") and row.kind == brakes.UNCONFIRMED:
            (self.unconfirmed.add if begins else self.unconfirmed.discard)(link_key(row))
        elif row.event in ("block", "unblock") and row.kind == brakes.TCP:
            place = row.connection, peer_of(row.vantage)
            (self.full.add if begins else self.full.discard)(place)

    def holds(self, link: LinkKey) -> dict[str, bool]:
        """What of it holds a link's sender, as `brakes` takes it."""
        connection, _, _, sender, _ = link
        return {
            "unconfirmed": link in self.unconfirmed,
            # An alarm closes the broker's incoming windows, so it holds the clients that send.
            "alarm": bool(self.alarms) and sender == CLIENT,
            "tcp": (connection, sender) in self.full,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What holds one link's sender after a row, and the counters from which that follows.

    What is None is not known, or was not told yet.

    Attributes:
        link_credit: the sender's own, in messages.
        available: messages it has to send.
        window: remote-incoming-window of its session, in transfer frames.
        in_message: frames of a message that it has begun are still to be sent.
        unconfirmed: messages of the link that no queue has confirmed, as the receiver counts them.
        withheld: the receiver grants nothing more for want of confirms.
        alarms: resource alarms that are on, in order of beginning.
        full: the sender's transport takes no more octets.
        known: the sender has told its counters at least once; before there is nothing to name.
        brakes: everything that holds it, in the order of `brakes.ORDER`.
    """

    link_credit: int | None = None
    available: int | None = None
    window: int | None = None
    in_message: bool = False
    unconfirmed: int | None = None
    withheld: bool = False
    alarms: tuple[str, ...] = ()
    full: bool = False
    known: bool = False
    brakes: tuple[str, ...] = ()

    @property
    def brake(self) -> str:
        """The binding one: the first that holds, or `none`."""
        return brakes.first(self.brakes)


class Braking:
    """Takes rows one after the other and knows what holds one link's sender.

    Args:
        link: which link.
        start: the state just before the first row, for a slice.
        blocking: earlier rows that began what blocks a sender still.

    Attributes:
        now: as it is after the last row.
    """

    def __init__(
        self, link: Scope, start: State | None = None, blocking: Iterable[Row] = ()
    ) -> None:
        self.link = link
        self.now = Held()
        self._key, self._outside = link[1:6], Outside()
        for row in blocking:
            self._change(self._internal(row))
        if start is not None:
            self._change(self._begun(start))

    def apply(self, row: Row) -> Held:
        """Take in one row."""
        return self._change({**self._internal(row), **self._counters(row)})

    def _change(self, told: Mapping[str, object]) -> Held:
        changed = {name: value for name, value in told.items() if getattr(self.now, name) != value}
        if changed:
            now = replace(self.now, **changed)  # type: ignore[arg-type]
            self.now = replace(now, brakes=self._decide(now))
        return self.now

    def _begun(self, start: State) -> dict[str, object]:
        """What the counters before a slice tell."""
        found: dict[str, object] = {}
        session = Scope(SESSION, self.link.connection, self.link.session)
        for (vantage, scope), counters in start.ledgers.items():
            if scope == self.link and counters.get("unconfirmed") is not None:
                found["unconfirmed"] = counters["unconfirmed"]
            if vantage != WIRE_VANTAGE and peer_of(vantage) != self.link.link_sender:
                continue
            if scope == self.link:
                found |= {"known": True} | {
                    name: counters.get(name) for name in ("link_credit", "available")
                }
            elif scope in (session, session._replace(link_sender=self.link.link_sender)):
                found["window"] = counters.get("remote_incoming_window")
        return found

    def _decide(self, now: Held) -> tuple[str, ...]:
        if not now.known:
            return ()
        return brakes.brakes(
            link_credit=now.link_credit,
            available=now.available,
            remote_incoming_window=now.window,
            in_message=now.in_message,
            **self._outside.holds(self._key),
        )

    def _internal(self, row: Row) -> dict[str, object]:
        """What a row tells that is no frame."""
        if row.is_frame:
            return {}
        self._outside.take(row)
        holds = self._outside.holds(self._key)
        alarms = tuple(self._outside.alarms)
        return {"alarms": alarms, "withheld": holds["unconfirmed"], "full": holds["tcp"]}

    def _counters(self, row: Row) -> dict[str, object]:
        """What a row's ledger tells of this link, or of its session at the sender's end."""
        ledger = row.ledger or {}
        if not ledger and not row.unknown:
            return {}
        found: dict[str, object] = {}
        here = link_scope(row) == self.link
        if here and "unconfirmed" in ledger:
            found["unconfirmed"] = ledger["unconfirmed"]
        if not self._by_sender(row):
            return found
        fields = {"remote_incoming_window": "window"}
        if here:
            fields |= {"link_credit": "link_credit", "available": "available"}
            # A link of AMQP 0-10 has credit of other kinds, which other brakes speak of.
            if any(GROUP_OF.get(name) == LINK for name in (*ledger, *row.unknown)):
                found["known"] = True
        if here and row.kind == "transfer" and row.from_peer == self.link.link_sender:
            found["in_message"] = row.goes_on
        for counter, name in fields.items():
            if counter in ledger:
                found[name] = ledger[counter]
            elif counter in row.unknown:
                found[name] = None
        return found

    def _by_sender(self, row: Row) -> bool:
        """Whether a row has counters of the link's sender, or of its end of the session."""
        link = self.link
        if (row.connection, row.session) != (link.connection, link.session):
            return False
        if row.event == OBSERVED:
            return link_scope(row) == link or observed_end(row) == link.link_sender
        return peer_of(row.vantage) == link.link_sender


_OWN = (brakes.TCP, brakes.QPID_WINDOW, brakes.ALARM, brakes.LINK_CREDIT)
"""What a publisher's end tells of itself: an alarm that it was told of by channel.flow; the last is
credit that a broker of AMQP 0-10 gives."""


class PublishingBraking:
    """Takes rows one after the other and knows what holds whoever publishes on a connection.

    This is for AMQP 0-9-1, where a connection is held as a whole: by its reader, which credit or an
    alarm has stopped, by the client itself when the broker has asked it to stop (channel.flow), and
    by the client's socket when that is full; and for AMQP 0-10, where a producer holds itself by
    its window, and Qpid's Java broker by credit.

    Args:
        connection: which one.

    Attributes:
        brakes: everything that holds it now, in the order of `brakes.ORDER`.
    """

    def __init__(self, connection: str) -> None:
        self.brakes: tuple[str, ...] = ()
        self._connection = connection
        self._on: set[str | None] = set()

    @property
    def brake(self) -> str:
        """The binding one: the first that holds, or `none`."""
        return brakes.first(self.brakes)

    def apply(self, row: Row) -> str:
        """Take in one row; returns the binding brake."""
        if row.event in ("block", "unblock") and row.connection == self._connection:
            reader = row.vantage == f"reader:{self._connection}"
            if reader or (row.kind in _OWN and peer_of(row.vantage) == CLIENT):
                (self._on.add if row.event == "block" else self._on.discard)(row.kind)
                told = self._on & {*_OWN, brakes.CREDIT_FLOW}
                self.brakes = tuple(one for one in brakes.ORDER if one in told)
        return self.brake


def held_by(rows: Iterable[Row], link: Scope) -> list[Held]:
    """What holds the link's sender after each row, in order; rows of no consequence share one."""
    braking = Braking(link)
    return [braking.apply(row) for row in rows]


def links_of(rows: Iterable[Row], *, sender: str | None = None) -> list[Scope]:
    """The links that rows tell of, in order of appearance.

    Args:
        rows: of one run.
        sender: `client` or `broker`: only links over which that peer sends; all if None.
    """
    found: dict[Scope, None] = {}
    for row in rows:
        scope = link_scope(row)
        if scope is not None and scope.link_sender in ((sender,) if sender else (CLIENT, BROKER)):
            found[scope] = None
    return list(found)


def blocked_intervals(rows: Sequence[Row], held: Sequence[Held]) -> list[tuple[int, int, str]]:
    """When the sender had something to send and a brake was on, in us: begin, end, brake.

    Args:
        rows: of one run.
        held: what held the sender after each of them.
    """
    found = []
    since, binding = 0, brakes.NONE
    steps = [(row.t_us, now.brake) for row, now in zip(rows, held, strict=True)]
    steps += [(t_us, brakes.NONE) for t_us, _ in steps[-1:]]  # where the run ends, so does the last
    for t_us, brake in steps:
        if brake != binding:
            if brakes.is_blocked(binding) and t_us > since:
                found.append((since, t_us, binding))
            since, binding = t_us, brake
    return found


def blocked_us(rows: Sequence[Row], held: Sequence[Held]) -> dict[str, int]:
    """How long each brake blocked the sender, in us, in the order of `brakes.ORDER`."""
    total: dict[str, int] = {}
    for begin, end, brake in blocked_intervals(rows, held):
        total[brake] = total.get(brake, 0) + end - begin
    return {brake: total[brake] for brake in brakes.ORDER if brake in total}
