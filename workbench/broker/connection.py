"""The broker's end of one connection: the protocol is the endpoint's, the conduct is here.

An event is handled in two steps. First the broker does what only it can do: find the queue, pass
credit on, take a message in, put messages back. Then the endpoint answers as the specification
asks. Whatever link is gone after that, by whoever's word, is cleaned up in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from workbench.amqp.connection import Connection
from workbench.amqp.delivery import OutgoingDelivery
from workbench.amqp.errors import DecodeError, ErrorCondition
from workbench.amqp.events import (
    DeliveriesUpdated,
    DeliveryAborted,
    DeliveryReceived,
    Event,
    FlowReceived,
    LinkAttaching,
    LinkDetached,
    LinkStolen,
    OpenReceived,
    PartReceived,
    ProtocolViolation,
    SessionBegun,
)
from workbench.amqp.frame import Frame, WireItem
from workbench.amqp.link import Link
from workbench.amqp.performatives import Close, Detach, End, Error, Role
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sasl import SaslServer
from workbench.amqp.scope import ItemScope
from workbench.amqp.session import Session
from workbench.amqp.settings import ConnectionSettings
from workbench.amqp.states import ConnectionState
from workbench.presets import RABBITMQ, Preset
from workbench.queues.arguments import QUORUM
from workbench.sim import Actor, Tap, VirtualClock, Wire

from .attaching import Attaching, ended_by
from .conduct import Conduct, RabbitConduct
from .confirms import Confirms
from .connection_notes import ConnectionNotes
from .consumer_link import ConsumerLink
from .destinations import Destination
from .hosts import Hosts
from .management_link import ManagementError, Requests, Responses
from .processes import Processes, Task
from .publisher_link import PublisherLink
from .queue_process import QueueProcess
from .rabbit_consumer import RabbitConsumerLink
from .windows import Windows

if TYPE_CHECKING:
    from .broker import Broker

_ENDED = ConnectionState.END
_ENDING = (Detach, End, Close)
"""Frames of which one comes or goes whenever a link ends while the transport lives."""


def _settings(preset: Preset) -> ConnectionSettings:
    """What the broker's open says."""
    properties = {"product": preset.product, "version": preset.version}
    return ConnectionSettings(
        max_frame_size=preset.max_frame_size,
        first_max_frame_size=preset.first_max_frame_size,
        channel_max=preset.channel_max,
        # RabbitMQ tells a 0 too, if that is its heartbeat.
        idle_time_out_ms=preset.idle_time_out_ms
        if preset.conduct == RABBITMQ
        else preset.idle_time_out_ms or None,
        offered_capabilities=preset.offered_capabilities or None,
        properties=properties if preset.version else None,
        # RabbitMQ knows links by their handles alone [rabbit_amqp_session.erl:handle_attach].
        steals_links=preset.conduct != RABBITMQ,
    )


class BrokerConnection(ConnectionNotes):
    """One connection as the broker has it; an end of a wire.

    Attributes:
        name: of the connection, `c1`, `c2`, ...
        amqp: the protocol endpoint.
        wire: over which it talks.
        processes: its reader, sessions and writer.
        intake: takes a frame that may have to wait before it is applied; None: none has to.
    """

    vantage = "broker"
    from_peer = "broker"
    ledger_source = "own"

    def __init__(
        self, broker: Broker, name: str, users: Mapping[str, str], anonymous: bool = True
    ) -> None:
        preset = broker.preset
        self.name = name
        self.wire: Wire | None = None
        self._socket_takes = True
        self._broker = broker
        self._preset = preset
        self._faulty: dict[int, Frame] = {}  # frames that broke a rule, by the event's identity
        self._windows = Windows(preset)
        conduct = RabbitConduct if preset.conduct == RABBITMQ else Conduct
        self._conduct = conduct(self, preset)
        self.processes = Processes(self, preset)
        # Only a broker whose reader or sessions need time lets frames wait.
        self.intake = self.processes.intake if self.processes.buffers_input else None
        self._hosts = Hosts()
        self._leaving: dict[Link, LinkDetached] = {}  # whose queue has not let them go yet
        self._some_gone = False  # a frame has come or gone that ends links
        self._came: WireItem | None = None  # the latest frame, as it came,
        self._heard: WireItem | None = None  # and as the endpoint was told of it
        self._attaching = Attaching(self, broker, self._conduct, self._hosts)
        self._begun_with: dict[Session, Preset] = {}
        self._confirms: dict[Session, Confirms] = {}
        self.amqp = Connection(
            container_id="broker",
            is_client=False,
            emit=self._emit,
            settings=_settings(preset),
            session_settings=self._windows.open,
            sasl=SaslServer(
                check=lambda user, password: users.get(user) == password,
                anonymous=anonymous,
                hangs_up=self._conduct.hangs_up,
            ),
        )

    # -- an end of a wire ---------------------------------------------------------------------

    def connect(self, wire: Wire) -> None:
        """Take the wire and wait for the client's header."""
        self.wire = wire
        self.amqp.start()

    def apply(self, item: WireItem) -> list[Event]:
        """Work a frame into the state; nothing is sent."""
        heard, fault = self._conduct.heard(item)
        self._came, self._heard = item, heard
        events = self.amqp.apply(heard)
        if fault is not None and not any(isinstance(e, ProtocolViolation) for e in events):
            events = [fault]
        if type(item) is Frame and type(item.performative) in _ENDING:
            self._some_gone = True
        for event in events:
            if type(event) is DeliveryReceived:
                host = self._hosts.get(event.link)
                if type(host) is PublisherLink:
                    host.arrived()
            elif isinstance(event, ProtocolViolation) and isinstance(item, Frame):
                self._faulty[id(event)] = item
        return events

    def react(self, events: Iterable[Event]) -> None:
        """Do what the frame asks for."""
        for link in tuple(self._leaving):  # nothing that comes later is answered first
            self._left(link)
        for event in events:
            if type(event) is DeliveryReceived:
                self._delivery(event)
            else:
                self._handle(event)
        if self._some_gone:
            self._forget_gone()
        if self.amqp.state is _ENDED:
            self._broker.nodes.connection_over(self.name)

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the frame concerns, with the broker's counters."""
        heard = self._heard
        return self.amqp.scope(item if heard is None or item is not self._came else heard, outgoing)

    def _emit(self, item: WireItem) -> None:
        assert self.wire is not None, "connect the broker's end to a wire first"
        if type(item) is not Frame or type(item.performative) not in _ENDING:
            self.processes.write(self.wire, self, item)
            return
        self._some_gone = True
        _, session, link = self.amqp.last_out
        self.processes.write(self.wire, self, item)
        self._conduct.left(item, session, link)

    @property
    def writable(self) -> bool:
        """False while the transport, or the writer, takes no more messages."""
        return self._socket_takes and not self.processes.full

    @writable.setter
    def writable(self, takes: bool) -> None:
        self._socket_takes = takes

    # -- conduct ------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        match event:
            case SessionBegun(session=session, by_peer=True):
                self._begun_with[session] = self._broker.preset
                self._windows.begin(
                    session,
                    closed=bool(self._broker.alarms),
                    channel=self._conduct.channel(event),
                )
            case LinkAttaching(link=link):
                self._attaching.attach(link)
            case LinkDetached():
                self._leave(event)
            case LinkStolen(link=link):
                self.forget(link)
                self.amqp.answer(event)
            case FlowReceived():
                self._flow(event)
            case DeliveryAborted(link=link):
                host = self._hosts.get(link)
                if isinstance(host, PublisherLink):
                    host.maybe_grant()
                self.amqp.answer(event)
            case PartReceived(link=link):
                self._part(link, event)
            case DeliveriesUpdated():
                self._updated(event)
            case OpenReceived():
                self._conduct.opened(event)
            case ProtocolViolation():
                named = self._conduct.translated(event, self._faulty.pop(id(event), None))
                if named is not None:
                    self.amqp.answer(named)
            case _:
                self.amqp.answer(event)

    def _delivery(self, event: DeliveryReceived) -> None:
        """A message has come."""
        link, delivery = event.link, event.delivery
        host = self._hosts.get(link)
        early = self._conduct.opens_early
        # RabbitMQ tells of the link first, and then of the window; both flows have it.
        opened = early and link.session.reopen()
        if type(host) is PublisherLink:
            fault = self._conduct.fault_of_message(delivery)
            if fault is None:
                host.delivery_received(delivery)
            else:
                self.amqp.answer(fault)
        elif isinstance(host, Requests):
            host.received(delivery)
        if opened and link.session.can_emit():
            link.session.flow()
        if not early:
            self.amqp.answer(event)

    def _part(self, link: ReceiverLink, event: PartReceived) -> None:
        """A frame of a message has come, and others must follow: they are kept until then."""
        held, most = self.unfinished_octets, self._preset.unfinished_octets
        if held <= most:
            self.amqp.answer(event)
            return
        self.amqp.answer(
            link.session.violated(
                ErrorCondition.RESOURCE_LIMIT_EXCEEDED,
                f"unfinished deliveries hold {held} octets on this connection; legal: {most} at"
                " most; finish a message before you begin the next",
            )
        )

    @property
    def unfinished_octets(self) -> int:
        """What has come of messages whose last frame has not."""
        return sum(
            link.receiving.size
            for link in self._hosts
            if isinstance(link, ReceiverLink) and link.receiving is not None
        )

    @property
    def held_octets(self) -> int:
        """What the connection holds of the memory, about: messages on their way in and out."""
        return self.unfinished_octets + self._conduct.held_octets

    def publisher(self, link: ReceiverLink, destination: Destination) -> PublisherLink:
        """The host for a publisher's link."""
        return PublisherLink(
            link,
            destination,
            self._numbers_of(link.session),
            self.credit_held,
            self._confirms_of(link.session),
            self.confirmed,
        )

    def unanswered(self, session: Session, fault: ManagementError) -> None:
        """A request to the management node that cannot be answered ends the session."""
        self.amqp.answer(session.violated(fault.condition, str(fault)))

    def _numbers_of(self, session: Session) -> Preset:
        """The preset as it was when the session began: RabbitMQ's sessions read it then."""
        return self._begun_with.get(session, self._preset)

    def _confirms_of(self, session: Session) -> Confirms | None:
        """What gathers the session's confirms, where the preset gathers any."""
        if not self._preset.gathers_confirms:
            return None
        if session not in self._confirms:
            self._confirms[session] = Confirms(
                session, self._broker.soon, self.processes.inbox(session)
            )
        return self._confirms[session]

    def _flow(self, event: FlowReceived) -> None:
        host = self._hosts.get(event.link) if event.link is not None else None
        told = host if isinstance(host, ConsumerLink | Responses) else None
        self._conduct.flow(event, told)
        # Any flow may have opened the session's window, for every consumer on the session.
        for other in self._hosts.consumers(event.session):
            other.queue.kick()

    def _updated(self, event: DeliveriesUpdated) -> None:
        fault = self._conduct.fault_of(event)
        if fault is not None:
            self.amqp.answer(fault)
            return
        if event.role is Role.RECEIVER:
            by_link: dict[Link, list[OutgoingDelivery]] = {}
            for delivery in event.deliveries:
                if isinstance(delivery, OutgoingDelivery):
                    by_link.setdefault(delivery.link, []).append(delivery)
            for link, deliveries in by_link.items():
                host = self._hosts.get(link)
                if isinstance(host, ConsumerLink):
                    host.updated(deliveries, event.state, event.settled)
        self._conduct.updated(event)

    def close_windows(self) -> None:
        """A resource alarm begins."""
        for session in list(self.amqp.sessions):
            self._windows.shut(session)

    def open_windows(self) -> None:
        """The last resource alarm is over."""
        for session in list(self.amqp.sessions):
            self._windows.reopen(session)

    @property
    def clock(self) -> VirtualClock:
        """The run's clock."""
        return self._broker.clock

    @property
    def tap(self) -> Tap:
        """Observer of what happens inside."""
        return self._broker.tap

    @property
    def unseen(self) -> bool:
        """Nobody observes: rows need not be made."""
        return self._broker.unseen

    def actor(self, name: str, service_us: int) -> Actor[Task]:
        """A process of the broker's on behalf of this connection."""
        return self._broker.actor(name, service_us)

    def writer_is_full(self, full: bool, depth: int) -> None:
        """So much waits for the writer that the sessions stop; or they may go on."""
        self._broker.note_process(
            self.vantage,
            "block" if full else "unblock",
            "tcp",
            connection=self.name,
            extra={"frames": depth},
        )
        if not full:
            self.kick()

    def crashed(
        self, session: Session, why: str, condition: ErrorCondition = ErrorCondition.INTERNAL_ERROR
    ) -> None:
        """A session's process dies, of what the client said or of what its queue hands it."""
        self.amqp.answer(session.violated(condition, why))
        if self._some_gone:
            self._forget_gone()

    # -- links that are gone ------------------------------------------------------------------

    def _forget_gone(self) -> None:
        self._some_gone = False
        for link in [link for link in self._hosts if not link.attached]:
            self.forget(link)
        if len(self._begun_with) > len(self.amqp.sessions):
            for session in set(self._begun_with).difference(self.amqp.sessions):
                del self._begun_with[session]
                self._confirms.pop(session, None)

    def _leave(self, event: LinkDetached) -> None:
        """A client has detached a link: answer, when a quorum queue has what the link held.

        RabbitMQ's session asks the queue and waits. What another queue gets back it has at once.
        """
        link = event.link
        host = self._hosts.get(link)
        waits = isinstance(host, RabbitConsumerLink) and host.queue.arguments.queue_type == QUORUM
        if not waits:
            self._conduct.detached(event)
            return
        self._leaving[link] = event
        self.forget(link, lambda: self._left(link))

    def _left(self, link: Link) -> None:
        """The queue has let a consumer go: answer its detach."""
        event = self._leaving.pop(link, None)
        if event is not None:
            self._conduct.detached(event)

    def forget(self, link: Link, done: Callable[[], None] | None = None) -> None:
        """A link is over: what it held goes back; `done` is called then."""
        host = self._hosts.leave(link)
        if host is None:
            return
        if done is not None and isinstance(host, RabbitConsumerLink):
            host.detach(done)
        else:
            host.detach()
        self._attaching.forget(link)
        if isinstance(host, ConsumerLink):
            self._broker.nodes.consumer_left(host.queue)

    def queue_deleted(self, queue: QueueProcess) -> None:
        """A queue is no more: the links to it end."""
        for link, host in ended_by(self._hosts, queue):
            if isinstance(host, PublisherLink):
                host.flush()
            if link.attached:
                link.close(
                    Error(
                        condition=ErrorCondition.RESOURCE_DELETED,
                        description=f"queue {queue.name!r} in vhost '/' was deleted",
                    )
                )
            self.forget(link)

    def kick(self) -> None:
        """The transport takes octets again: let the sessions send, and the queues look."""
        self._conduct.pump()
        for host in list(self._hosts.values()):
            if isinstance(host, ConsumerLink):
                host.queue.kick()

    def undecodable(self, error: DecodeError) -> None:
        """Octets came that are no AMQP 1.0: close with the condition that names it [2.4.3]."""
        self.react([self.amqp.violated(error.condition, error.message)])

    def failed(self, error: Exception) -> None:
        """A mistake of ours: close with internal-error, as RabbitMQ's reader does."""
        why = f"{type(error).__name__}: {error}"
        self.amqp.answer(self.amqp.violated(ErrorCondition.INTERNAL_ERROR, why))
        self._forget_gone()

    def lost(self) -> None:
        """The transport is gone: every link with it."""
        self.processes.stop()
        self.amqp.abandon()
        self._forget_gone()
        self._broker.nodes.connection_over(self.name)

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the connection and of every link on it."""
        picture: dict[str, int | bool | str] = {
            "state": self.amqp.state.value,
            "user": self.amqp.user or "",
            "sessions": len(self.amqp.sessions),
            **self.processes.overview(),
        }
        for host in self._hosts.values():
            for name, value in host.overview().items():
                picture[f"{host.link.name}.{name}"] = value
        return picture
