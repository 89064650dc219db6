"""A client with several sessions on one connection: links on each, and windows set by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from workbench.amqp.delivery import OutgoingDelivery
from workbench.amqp.errors import LocalProtocolError
from workbench.amqp.events import DeliveryReceived, Event, FlowReceived, SessionEnded
from workbench.amqp.performatives import Error
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session
from workbench.amqp.settings import ConnectionSettings, SessionSettings
from workbench.sim import VirtualClock

from .client import ScriptedClient, nothing
from .scripted import OUTCOMES

LinkT = TypeVar("LinkT", ReceiverLink, SenderLink)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlan:
    """A link that a session shall have.

    Attributes:
        name: of the link.
        address: of its source, or of its target if it sends.
        sends: the client sends over it.
        link_credit: that it grants as soon as the link is attached; 0: by hand.
    """

    name: str
    address: str
    sends: bool = False
    link_credit: int = 0


class ManySessionsClient(ScriptedClient):
    """Begins sessions and attaches links to each; a person grants, opens windows and publishes.

    A message that is published waits until credit, window and TCP allow it. With `ignore_window`
    the window is no reason to wait, as for a client that has never heard of it.

    Args:
        clock: the run's clock.
        plans: the links of the first session.
        publish_us: how long it needs for each message that it sends.
        settings, session_settings: of this client's end.
        on_attached: called when every link of a session is attached.

    Attributes:
        sessions: in order of beginning.
        receivers: receiving links by name, once their attaches were sent.
        senders: sending links by name.
        received: messages by link name.
        ignoring: it sends whatever the window is.
        ended: why the broker ended a session, by the session's number.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        plans: Sequence[LinkPlan],
        publish_us: int = 0,
        name: str = "app",
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        on_attached: Callable[[], None] = nothing,
    ) -> None:
        super().__init__(
            name=name,
            address=plans[0].address,
            link_name=plans[0].name,
            settings=settings,
            session_settings=session_settings,
            sasl=None,
            on_attached=self._one_attached,
        )
        self.sessions: list[Session] = []
        self.receivers: dict[str, ReceiverLink] = {}
        self.senders: dict[str, SenderLink] = {}
        self.received: dict[str, int] = {}
        self.ignoring = False
        self.ended: dict[int, Error | None] = {}
        self._clock = clock
        self._publish_us = publish_us
        self._plans: dict[str, LinkPlan] = {}
        self._coming: deque[Sequence[LinkPlan]] = deque([plans])
        self._backlog: dict[str, deque[bytes]] = {}
        self._busy: set[str] = set()  # links whose next transfer is scheduled
        self._on_all_attached = on_attached

    # -- what a person may ask of it ----------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Every link of every session that is alive is attached at both ends."""
        links = [*self.receivers.values(), *self.senders.values()]
        alive = [link for link in links if link.session in self.amqp.sessions]
        return bool(links) and not self._coming and all(link.attached for link in alive)

    def begin_session(self, plans: Sequence[LinkPlan]) -> None:
        """Begin one session more, with links of its own."""
        self._coming.append(plans)
        self.amqp.begin()

    def receiver(self, name: str) -> ReceiverLink:
        """The receiving link of that name.

        Raises:
            LocalProtocolError: there is none, or it is not attached.
        """
        return _attached(self.receivers, name)

    def sender(self, name: str) -> SenderLink:
        """The sending link of that name.

        Raises:
            LocalProtocolError: there is none, or it is not attached.
        """
        return _attached(self.senders, name)

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
        """Set how many transfer frames a session takes, and tell the broker in a flow."""
        session = self.session(number)
        session.set_incoming_window(frames)
        session.flow()

    def publish(self, name: str, payloads: Iterable[bytes]) -> None:
        """Hand messages to a sending link."""
        link = self.sender(name)
        backlog = self._backlog[name]
        backlog.extend(payloads)
        link.available = len(backlog)
        self._go_on(name)

    def ignore_window(self) -> None:
        """Send from now on whatever the window is; credit is still heeded."""
        self.ignoring = True
        self._go_on_all()

    def acknowledge(self, name: str) -> int:
        """Accept everything that came over a link and is not settled; returns how many."""
        link = self.receiver(name)
        chosen = list(link.unsettled)
        if chosen:
            link.settle(chosen[0], chosen[-1], OUTCOMES["accepted"])
        return len(chosen)

    def backlog(self, name: str) -> int:
        """Messages that a sending link has not sent yet."""
        return len(self._backlog[name])

    def kick(self) -> None:
        """The transport takes octets again."""
        self._go_on_all()

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the client, its sessions and their links."""
        picture: dict[str, int | bool | str] = {
            "vantage": self.vantage,
            "attached": self.attached,
            "sessions": sum(1 for session in self.sessions if session.mapped),
            "ignoring": self.ignoring,
        }
        for name, receiver in self.receivers.items():
            picture[f"{name}.link_credit"] = receiver.credit
            picture[f"{name}.received"] = self.received[name]
            picture[f"{name}.unsettled"] = len(receiver.unsettled)
        for name, sender in self.senders.items():
            picture[f"{name}.link_credit"] = sender.credit
            picture[f"{name}.backlog"] = len(self._backlog[name])
        for number, error in self.ended.items():
            picture[f"session_{number}_ended"] = error.condition if error is not None else "ended"
        return picture

    # -- inside -------------------------------------------------------------------------------

    def _attach(self, session: Session) -> ReceiverLink | SenderLink:
        self.sessions.append(session)
        first: ReceiverLink | SenderLink | None = None
        for plan in self._coming.popleft():
            self._plans[plan.name] = plan
            link: ReceiverLink | SenderLink
            if plan.sends:
                link = self.senders[plan.name] = session.attach_sender(
                    plan.name, target=plan.address
                )
                self._backlog[plan.name] = deque()
            else:
                link = self.receivers[plan.name] = session.attach_receiver(plan.name, plan.address)
                self.received[plan.name] = 0
            first = first or link
        assert first is not None
        return first

    def _one_attached(self) -> None:
        if not self.attached:
            return
        for name, link in self.receivers.items():
            if self._plans[name].link_credit and link.attached and not link.counters.link_credit:
                link.grant(self._plans[name].link_credit)
                self._plans[name] = replace(self._plans[name], link_credit=0)
        self._on_all_attached()

    def _handle(self, event: Event) -> None:
        match event:
            case DeliveryReceived(link=link):
                self.received[link.name] += 1
            case FlowReceived():
                self._go_on_all()
            case SessionEnded(session=session):
                number = self.sessions.index(session) + 1
                self.ended[number] = session.error

    def _go_on_all(self) -> None:
        for name in self.senders:
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        """One message per clock event, so that a person may act between two.

        What comes first is waited for too: a message is made, and then it goes.
        """
        if name not in self._busy and self._sendable(name):
            self._busy.add(name)
            self._clock.call_later(self._publish_us, self._send_one, name)

    def _sendable(self, name: str) -> bool:
        link = self.senders[name]
        if not link.attached or not link.session.mapped or not self.writable:
            return False
        if link.sending is not None:
            return self.ignoring
        if not self._backlog[name]:
            return False
        return link.can_send or (self.ignoring and link.credit > 0)

    def _send_one(self, name: str) -> None:
        self._busy.discard(name)
        if self._sendable(name):
            link = self.senders[name]
            delivery = link.sending
            if delivery is None:
                self._pretend(link)
                delivery = link.send(self._backlog[name].popleft())
            self._finish(link, delivery)
        self._go_on(name)

    def _finish(self, link: SenderLink, delivery: OutgoingDelivery) -> None:
        """A client that ignores the window sends the rest of the message too."""
        while self.ignoring and not delivery.complete:
            self._pretend(link)
            link.pump()

    def _pretend(self, link: SenderLink) -> None:
        """Let one frame through a closed window; its row then shows the window closed, as it is."""
        counters = link.session.counters
        if self.ignoring and not counters.remote_incoming_window:
            counters.remote_incoming_window = 1


def _attached(links: Mapping[str, LinkT], name: str) -> LinkT:
    link = links.get(name)
    if link is None or not link.attached:
        listed = ", ".join(one for one, there in links.items() if there.attached)
        over = link is not None and link.session.error is not None
        why = "gone with its session, which the broker has ended" if over else "not attached"
        raise LocalProtocolError(
            f"link {name} is {why}; legal now: {listed or 'a link of another session'}"
        )
    return link
