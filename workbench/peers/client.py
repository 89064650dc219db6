"""An AMQP 1.0 client of a run: a connection, its sessions, and their links.

What the client does is said by its links and its send policy: which links there are, how each
grants credit, what each publishes, and when a message goes. A person may grant, publish and open
windows by hand as well.

A client goes through SASL, open, begin and attach one step at a time, each waiting for the answer,
so that a learner sees who says what first. Frames could be pipelined; nothing here needs it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from workbench.amqp10.connection import Connection
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import (
    DeliveriesUpdated,
    Event,
    FlowReceived,
    LinkAttached,
    OpenReceived,
    SessionBegun,
    SessionEnded,
)
from workbench.amqp10.frame import WireItem
from workbench.amqp10.link import Link
from workbench.amqp10.performatives import Error
from workbench.amqp10.sasl import SaslClient
from workbench.amqp10.scope import ItemScope
from workbench.amqp10.sender import OutgoingDelivery
from workbench.amqp10.session import Session
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.sim import Clock, Wire

from .links import ClientLink, Consumer, Overview, Publisher
from .sending import OneByOne, SendPolicy

LinkT = TypeVar("LinkT", Consumer, Publisher)


def _nothing() -> None:
    """Does nothing: a callback that is not needed."""


class Client:
    """The client's end of a wire.

    Args:
        clock: the run's clock.
        links: of the first session, in the order of attaching.
        name: of the client; its container-id.
        sending: when a message goes.
        settings, session_settings: of this client's end.
        on_attached: called whenever every link is attached: those of the first session, and later
            those of a session or a link that came after it.

    Attributes:
        amqp: the protocol endpoint.
        consumers: receiving links by name, once their session has begun.
        publishers: sending links by name, once their session has begun.
        sessions: in order of beginning.
        ended: why the broker ended a session, by the session's number.
        writable: False while the transport takes no message; other frames, which are few, still go.
    """

    from_peer = "client"
    ledger_source = "own"

    def __init__(
        self,
        clock: Clock,
        links: Sequence[ClientLink],
        *,
        name: str = "app",
        sending: SendPolicy | None = None,
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        on_attached: Callable[[], None] = _nothing,
    ) -> None:
        self.clock = clock
        self.sending: SendPolicy = sending or OneByOne()
        self.vantage = f"client:{name}"
        self.consumers: dict[str, Consumer] = {}
        self.publishers: dict[str, Publisher] = {}
        self.sessions: list[Session] = []
        self.ended: dict[int, Error | None] = {}
        self.writable = True
        self.wire: Wire | None = None
        self._links: list[ClientLink] = []
        self._beginning: deque[Sequence[ClientLink]] = deque([links])
        self._on_attached = on_attached
        self.amqp = Connection(
            container_id=name,
            is_client=True,
            emit=self._emit,
            settings=settings,
            session_settings=session_settings,
            sasl=SaslClient(),
        )
        for link in links:
            link.join(self)

    # -- what a person may ask of it ----------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Whether every link of every session that has begun and not ended is attached."""
        alive = [
            one
            for one in self._links
            if one.link is not None and one.link.session in self.amqp.sessions
        ]
        return bool(alive) and all(one.attached for one in alive)

    @property
    def beginning(self) -> bool:
        """Whether a session is on its way to being begun."""
        return bool(self._beginning)

    def begin_session(self, links: Sequence[ClientLink]) -> None:
        """Begins one session more, with links of its own."""
        for link in links:
            link.join(self)
        self._beginning.append(links)
        self.amqp.begin()

    def consumer(self, name: str) -> Consumer:
        """The attached receiving link of that name.

        Raises:
            LocalProtocolError: there is none, or it is not attached.
        """
        return _attached(self.consumers, name)

    def publisher(self, name: str) -> Publisher:
        """The attached sending link of that name.

        Raises:
            LocalProtocolError: there is none, or it is not attached.
        """
        return _attached(self.publishers, name)

    def session(self, number: int) -> Session:
        """The first, second, ... session.

        Raises:
            LocalProtocolError: it is not begun, or it has ended.
        """
        alive = [n for n, one in enumerate(self.sessions, start=1) if one.mapped]
        if number not in alive:
            listed = ", ".join(map(str, alive)) or "none"
            raise LocalProtocolError(f"session {number} is not there; legal now: {listed}")
        return self.sessions[number - 1]

    def open_window(self, number: int, frames: int) -> None:
        """Sets how many transfer frames a session takes, and tells the broker in a flow."""
        session = self.session(number)
        session.set_incoming_window(frames)
        session.flow()

    def ignore_window(self) -> None:
        """Sends from now on whatever the window is; credit is still heeded."""
        for publisher in self.publishers.values():
            publisher.ignores_window = True
        self._go_on()

    @property
    def ignoring(self) -> bool:
        """Whether it sends whatever the window is."""
        return any(publisher.ignores_window for publisher in self.publishers.values())

    def stop(self) -> None:
        """Ends every endless publisher."""
        for publisher in self.publishers.values():
            publisher.stop()

    def close(self) -> None:
        """Closes the connection."""
        self.amqp.close()

    def overview(self) -> Overview:
        """Flat picture of the client, its sessions, and each of its links under its name."""
        picture: Overview = {
            "vantage": self.vantage,
            "attached": self.attached,
            "writable": self.writable,
            "sessions": sum(1 for session in self.sessions if session.mapped),
        }
        for number, error in self.ended.items():
            picture[f"session_{number}_ended"] = error.condition if error is not None else "ended"
        for one in self._links:
            picture |= {f"{one.name}.{key}": value for key, value in one.overview().items()}
        return picture

    # -- an end of a wire ---------------------------------------------------------------------

    def connect(self, wire: Wire) -> None:
        """Takes the wire and begins to talk."""
        self.wire = wire
        self.amqp.start()

    def apply(self, item: WireItem) -> list[Event]:
        """Works a frame into the state; nothing is sent."""
        return self.amqp.apply(item)

    def react(self, events: Iterable[Event]) -> None:
        """Answers, and takes the next step towards attached links."""
        for event in events:
            self.amqp.answer(event)
            self.handle(event)
        for one in self._links:
            if not one.attached:
                one.lost()

    def kick(self) -> None:
        """The transport takes octets again: every link may go on."""
        self._go_on()

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the frame concerns, with this client's counters."""
        return self.amqp.scope(item, outgoing)

    # -- inside -------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Acts on an event that has been answered."""
        match event:
            case OpenReceived():
                self.amqp.begin()
            case SessionBegun(session=session, by_peer=False):
                self._attach(session)
            case SessionEnded(session=session):
                self.ended[self.sessions.index(session) + 1] = session.error
            case LinkAttached(link=link, refused=False):
                self._link_attached(link)
            case DeliveriesUpdated(settled=True):
                self._tell_outcomes(event)
            case _:
                for one in self._of(getattr(event, "link", None)):
                    one.handle(event)
                if isinstance(event, FlowReceived):
                    self._go_on()

    def _attach(self, session: Session) -> None:
        self.sessions.append(session)
        for link in self._beginning.popleft():
            self._links.append(link)
            if isinstance(link, Consumer):
                self.consumers[link.name] = link
            elif isinstance(link, Publisher):
                link.ignores_window = self.ignoring
                self.publishers[link.name] = link
            link.attach(session)

    def _link_attached(self, link: Link) -> None:
        for one in self._of(link):
            one.answered = True
        if not all(one.answered for one in self._links):
            return
        waiting = [one for one in self._links if not one.begun and one.attached]
        for one in waiting:
            if isinstance(one, Consumer):
                one.begin()
        self._on_attached()
        for one in waiting:
            if isinstance(one, Publisher):
                one.begin()

    def _of(self, link: Link | None) -> Iterable[ClientLink]:
        return [one for one in self._links if one.link is link]

    def _tell_outcomes(self, event: DeliveriesUpdated) -> None:
        for delivery in event.deliveries:
            if isinstance(delivery, OutgoingDelivery):
                for one in self.publishers.values():
                    if one.link is delivery.link:
                        one.settled(delivery, event.state)

    def _go_on(self) -> None:
        self.sending.go_on(self.publishers.values())

    def _emit(self, item: WireItem) -> None:
        assert self.wire is not None, "connect the client to a wire first"
        self.wire.send(self, item)


def _attached(links: dict[str, LinkT], name: str) -> LinkT:
    one = links.get(name)
    if one is not None and one.attached:
        return one
    over = one is not None and one.link is not None and one.link.session.error is not None
    why = "gone with its session, which the broker has ended" if over else "not attached"
    listed = ", ".join(there.name for there in links.values() if there.attached)
    otherwise = "a link of another session" if over else "wait until it is"
    raise LocalProtocolError(f"link {name} is {why}; legal now: {listed or otherwise}")
