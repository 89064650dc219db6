"""The broker's end of one connection: the protocol is the endpoint's, what a server does is here.

An event is handled in two steps. First the broker does what only it can do: find the queue, pass
credit on, take a message in, put messages back. Then the endpoint answers as the specification
asks. Whatever link is gone after that, by whoever's word, is cleaned up in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec.structs import replace

from workbench.amqp10.connection import Connection
from workbench.amqp10.errors import DecodeError, ErrorCondition, FrameTooLargeError
from workbench.amqp10.events import (
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
from workbench.amqp10.frame import Frame, WireItem
from workbench.amqp10.link import Link
from workbench.amqp10.messaging import Source, Target
from workbench.amqp10.performatives import Close, Detach, End, Error, Role, SenderSettleMode
from workbench.amqp10.receiver import ReceiverLink
from workbench.amqp10.sasl import SaslServer
from workbench.amqp10.scope import ItemScope
from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.session import Session
from workbench.amqp10.states import ConnectionState
from workbench.broker.broker import Broker
from workbench.broker.queue_process import QueueProcess
from workbench.broker.virtual_host import QueueInUseError
from workbench.presets import BROKER_J, RABBITMQ, SPEC, Preset
from workbench.queues.arguments import QUORUM
from workbench.sim import Clock, Notes, Tap, Wire

from .address_resolver import CrashError, RefusedError
from .broker_j import BrokerJPolicy
from .confirms import Confirms
from .consumer_terms import read_filters
from .destinations import Destination
from .incoming_link import IncomingLink
from .link_pairs import LinkPairs
from .management_link import ManagementError, Requests, Responses, is_management
from .outgoing_link import CreditRule, OutgoingLink
from .processes import Processes
from .rabbit_outgoing_link import RabbitOutgoingLink
from .session_policy import RabbitPolicy, SessionPolicy
from .windows import Windows

LinkHost: TypeAlias = OutgoingLink | IncomingLink | Requests | Responses
"""What stands between a link and what it leads to: a queue, an exchange, or the management node."""

POLICIES = {SPEC: SessionPolicy, RABBITMQ: RabbitPolicy, BROKER_J: BrokerJPolicy}
"""What a broker does besides the protocol, by the conduct of its preset."""

_ENDED = ConnectionState.END
_ENDING = (Detach, End, Close)
"""Frames of which one comes or goes whenever a link ends while the transport lives."""


class BrokerConnection:
    """One connection as the broker has it; an end of a wire.

    Args:
        broker: that the client has connected to.
        name: of the connection.
        credit_rule: how links on which the broker sends work out their credit from a flow, in place
            of the specification's way; for showing what a wrong one leads to.

    Attributes:
        name: of the connection, `c1`, `c2`, ...
        amqp: the protocol endpoint.
        wire: over which it talks.
        processes: its reader, sessions and writer.
        hosts: of the links that are attached.
        intake: takes a frame that may have to wait before it is applied; None: none has to.
        writable: False while the transport takes no more octets.
    """

    vantage = "broker"
    from_peer = "broker"
    ledger_source = "own"

    def __init__(self, broker: Broker, name: str, credit_rule: CreditRule | None = None) -> None:
        preset = broker.preset
        self.name = name
        self.wire: Wire | None = None
        self._broker = broker
        self._preset = preset
        self._faulty: dict[int, Frame] = {}  # frames that broke a rule, by the event's identity
        self._notes = broker.tap.bind(broker.clock, vantage=self.vantage, connection=name)
        self._policy = POLICIES[preset.conduct](self, preset)
        self._windows = Windows(preset, self._policy)
        self._resolver = self._policy.resolver(broker.vhost, name)
        self._credit_rule = credit_rule
        self.processes = Processes(self, preset)
        # Only a broker whose reader or sessions need time lets frames wait.
        self.intake = self.processes.intake if self.processes.buffers_input else None
        self.hosts: dict[Link, LinkHost] = {}
        self.writable = True
        # A flow may concern every consumer of its session: they are not looked for among all hosts.
        self._consumers: dict[Session, dict[Link, OutgoingLink]] = {}
        self._pairs = LinkPairs(broker.vhost, name, self.unanswered)
        self._made: dict[Link, str] = {}  # queues that were made for a link alone
        self._leaving: dict[Link, LinkDetached] = {}  # whose queue has not let them go yet
        self._some_gone = False  # a frame has come or gone that ends links
        self._came: WireItem | None = None  # the latest frame, as it came,
        self._heard: WireItem | None = None  # and as the endpoint was told of it
        self._begun_with: dict[Session, Preset] = {}
        self._confirms: dict[Session, Confirms] = {}
        self.amqp = Connection(
            container_id="broker",
            is_client=False,
            emit=self._emit,
            settings=self._policy.settings(),
            session_settings=self._windows.open,
            sasl=SaslServer(
                check=broker.login,
                anonymous=broker.anonymous,
                hangs_up=self._policy.hangs_up,
            ),
        )

    # -- an end of a wire ---------------------------------------------------------------------

    def connect(self, wire: Wire) -> None:
        """Take the wire and wait for the client's header."""
        self.wire = wire
        self.amqp.start()

    def apply(self, item: WireItem) -> list[Event]:
        """Work a frame into the state; nothing is sent."""
        heard, fault = self._policy.heard(item)
        self._came, self._heard = item, heard
        events = self.amqp.apply(heard)
        if fault is not None and not any(isinstance(e, ProtocolViolation) for e in events):
            events = [fault]
        if type(item) is Frame and type(item.performative) in _ENDING:
            self._some_gone = True
        for event in events:
            if type(event) is DeliveryReceived:
                host = self.hosts.get(event.link)
                if isinstance(host, IncomingLink):
                    host.arrived()
            elif type(event) is FlowReceived and event.link is not None:
                host = self.hosts.get(event.link)
                if isinstance(host, OutgoingLink):
                    host.heed(event.frame)
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
            self._broker.vhost.connection_over(self.name)

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
        self._policy.left(item, session, link)

    def takes(self, session: Session) -> bool:
        """Whether the transport, and the writer, take a message of this session."""
        return self.writable and not self.processes.stopped(session)

    # -- what the client says -------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        match event:
            case SessionBegun(session=session, by_peer=True) if self.amqp.can_emit():
                self._begun_with[session] = self._broker.preset
                self._windows.begin(
                    session,
                    closed=bool(self._broker.alarms),
                    channel=self._policy.channel(event),
                )
            case LinkAttaching(link=link):
                self._attach(link)
            case LinkDetached():
                self._leave(event)
            case LinkStolen(link=link):
                self.forget(link)
                self.amqp.answer(event)
            case FlowReceived():
                self._flow(event)
            case DeliveryAborted(link=link):
                host = self.hosts.get(link)
                if isinstance(host, IncomingLink):
                    host.maybe_grant()
                self.amqp.answer(event)
            case PartReceived(link=link):
                self._part(link, event)
            case DeliveriesUpdated():
                self._updated(event)
            case OpenReceived():
                self._policy.opened(event)
            case ProtocolViolation():
                named = self._policy.translated(event, self._faulty.pop(id(event), None))
                if named is not None:
                    self.amqp.answer(named)
            case _:
                self.amqp.answer(event)

    def _delivery(self, event: DeliveryReceived) -> None:
        """A message has come."""
        link, delivery = event.link, event.delivery
        host = self.hosts.get(link)
        early = self._policy.opens_early
        # RabbitMQ tells of the link first, and then of the window; both flows have it.
        opened = early and link.session.reopen()
        if isinstance(host, IncomingLink):
            fault = self._policy.fault_of_message(delivery)
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
            for link in self.hosts
            if isinstance(link, ReceiverLink) and link.receiving is not None
        )

    @property
    def held_octets(self) -> int:
        """What the connection holds of the memory, about: messages on their way in and out."""
        return self.unfinished_octets + self._policy.held_octets

    # -- attaching ------------------------------------------------------------------------------

    def _attach(self, link: SenderLink | ReceiverLink) -> None:
        """Answer a client's attach; one that takes no frame of that size loses its session."""
        try:
            self._answer_attach(link)
        except FrameTooLargeError as error:
            self.crashed(link.session, str(error), ErrorCondition.FRAME_SIZE_TOO_SMALL)

    def _answer_attach(self, link: SenderLink | ReceiverLink) -> None:
        """Answer it with a host for the link, or with a refusal."""
        try:
            if self._policy.has_management and is_management(link):
                host = self._pairs.attach(link, self._policy.out(link.session))
                self.hosts[link] = host
                host.attach(self._policy.handle(link), self._preset)
            elif isinstance(link, SenderLink):
                self._attach_consumer(link)
            else:
                self._attach_publisher(link, self._resolver.published(link))
        except RefusedError as refused:
            self._policy.refused(link, refused.error)
        except CrashError as crash:
            self.crashed(link.session, str(crash))

    def _attach_consumer(self, link: SenderLink) -> None:
        preset, policy = self._preset, self._policy
        queue = self._resolver.consumed(link)
        kind = queue.arguments.queue_type
        filters = read_filters(link.source, kind, preset)
        fault = filters.fault(kind)
        if fault is not None:
            told = preset.refuses_links
            raise RefusedError(
                ErrorCondition.PRECONDITION_FAILED if told else ErrorCondition.INTERNAL_ERROR, fault
            )
        name = f"{self.name}/{link.session.ordinal}/{link.name}/{link.attach_no}"
        try:
            self._broker.vhost.claim(queue, name, exclusive=False)
        except QueueInUseError as error:
            raise RefusedError(policy.in_use, str(error)) from None
        host = policy.consumer(name, link, queue, self._notes_of(link), self._credit_rule)
        settled = link.snd_settle_mode is SenderSettleMode.SETTLED
        link.available = 0 if queue.queue.active is not None else queue.queue.ready
        self._note_made(link, queue.name)
        terms = policy.source_terms(link, queue)
        terms["source"] = replace(terms["source"], filter=filters.in_force)
        link.accept(
            handle=policy.handle(link),
            initial_delivery_count=preset.initial_delivery_count,
            **terms,
        )
        self.hosts[link] = host
        self._consumers.setdefault(link.session, {})[link] = host
        host.attach(settled, filters, self._broker.clock.epoch_us)

    def _attach_publisher(self, link: ReceiverLink, destination: Destination) -> None:
        self._note_made(link, destination.name)
        link.accept(
            handle=self._policy.handle(link),
            max_message_size=self._preset.max_message_size or None,
            credit_overrun=self._policy.credit_overrun,
            **self._policy.target_terms(link, destination),
        )
        session = link.session
        self.hosts[link] = host = self._policy.publisher(
            link,
            destination=destination,
            preset=self._numbers_of(session),
            notes=self._notes_of(link),
            confirms=self._confirms_of(session),
        )
        host.attach()

    def _note_made(self, link: SenderLink | ReceiverLink, name: str) -> None:
        terminus = link.source if link.is_sender else link.target
        if isinstance(terminus, Source | Target) and terminus.dynamic:
            self._made[link] = name

    def _notes_of(self, link: SenderLink | ReceiverLink) -> Notes:
        """Takes rows about a link for which no frame tells."""
        return self.tap.bind(
            self.clock,
            vantage=self.vantage,
            connection=self.name,
            session=link.session.ordinal,
            link=link.name,
            attach_no=link.attach_no,
            link_sender="broker" if link.is_sender else "client",
            ledger=link.ledger,
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
        host = self.hosts.get(event.link) if event.link is not None else None
        told = host if isinstance(host, OutgoingLink | Responses) else None
        self._policy.flow(event, told)
        # Any flow may have opened the session's window, for every consumer on the session.
        _kick(self._consumers.get(event.session, {}).values())

    def _updated(self, event: DeliveriesUpdated) -> None:
        fault = self._policy.fault_of(event)
        if fault is not None:
            self.amqp.answer(fault)
            return
        if event.role is Role.RECEIVER:
            by_link: dict[Link, list[OutgoingDelivery]] = {}
            for delivery in event.deliveries:
                if isinstance(delivery, OutgoingDelivery):
                    by_link.setdefault(delivery.link, []).append(delivery)
            for link, deliveries in by_link.items():
                host = self.hosts.get(link)
                if isinstance(host, OutgoingLink):
                    host.updated(deliveries, event.state, event.settled)
        self._policy.updated(event)

    def resource_alarm(self, on: bool) -> None:
        """While an alarm is on, every session's incoming-window is 0."""
        change = self._windows.shut if on else self._windows.reopen
        for session in list(self.amqp.sessions):
            change(session)

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return self._broker.clock

    @property
    def tap(self) -> Tap:
        """Observer of what happens inside."""
        return self._broker.tap

    def sessions_stopped(self, stopped: bool, depth: int) -> None:
        """So much waits for the writer that a session stops; or all may go on."""
        self._notes.note("block" if stopped else "unblock", "tcp", extra={"frames": depth})

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
        for link in [link for link in self.hosts if not link.attached]:
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
        host = self.hosts.get(link)
        waits = isinstance(host, RabbitOutgoingLink) and host.queue.arguments.queue_type == QUORUM
        if not waits:
            self._policy.detached(event)
            return
        self._leaving[link] = event
        self.forget(link, lambda: self._left(link))

    def _left(self, link: Link) -> None:
        """The queue has let a consumer go: answer its detach."""
        event = self._leaving.pop(link, None)
        if event is not None:
            self._policy.detached(event)

    def forget(self, link: Link, done: Callable[[], None] | None = None) -> None:
        """A link is over: what it held goes back; `done` is called then."""
        host = self.hosts.pop(link, None)
        if host is None:
            return
        known = self._consumers.get(link.session)
        if known is not None and known.pop(link, None) is not None and not known:
            del self._consumers[link.session]
        if done is not None and isinstance(host, RabbitOutgoingLink):
            host.detach(done)
        else:
            host.detach()
        self._pairs.forget(link)
        made = self._made.pop(link, None)
        if made in self._broker.queues:
            self._broker.delete(made)
        if isinstance(host, OutgoingLink):
            self._broker.vhost.consumer_left(host.queue, host.name)

    def queue_deleted(self, queue: QueueProcess) -> None:
        """A queue is no more: the links to it end."""
        for link, host in self._ended_by(queue):
            if isinstance(host, IncomingLink):
                host.flush()
            if link.attached:
                link.close(
                    Error(
                        condition=ErrorCondition.RESOURCE_DELETED,
                        description=f"queue {queue.name!r} in vhost '/' was deleted",
                    )
                )
            self.forget(link)

    def _ended_by(self, queue: QueueProcess) -> list[tuple[Link, LinkHost]]:
        """The links that end because a queue is deleted.

        A session that neither consumes from the queue nor has sent it a message is not told: its
        publishers stay, and what they send then finds no queue (`rabbit_amqp_session.erl`,
        `handle_stashed_eol`).
        """
        told, leading = set(), []
        for link, host in self.hosts.items():
            if isinstance(host, OutgoingLink):
                leads = knows = host.queue is queue
            elif isinstance(host, IncomingLink):
                leads, knows = host.destination.ends_with(queue), host.destination.gone(queue)
            else:
                continue
            if knows:
                told.add(link.session)
            if leads:
                leading.append((link, host))
        return [(link, host) for link, host in leading if link.session in told]

    def kick(self) -> None:
        """Transport or writer take messages again: let the sessions send, and the queues look."""
        self._policy.pump()
        _kick(host for host in self.hosts.values() if isinstance(host, OutgoingLink))

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
        self._broker.vhost.connection_over(self.name)

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the connection and of every link on it."""
        picture: dict[str, int | bool | str] = {
            "state": self.amqp.state.value,
            "user": self.amqp.user or "",
            "sessions": len(self.amqp.sessions),
            **self.processes.overview(),
        }
        for host in self.hosts.values():
            for name, value in host.overview().items():
                picture[f"{host.link.name}.{name}"] = value
        return picture


def _kick(consumers: Iterable[OutgoingLink]) -> None:
    """Let their queues look whether somebody takes a message, each once."""
    for queue in dict.fromkeys(one.queue for one in consumers):
        queue.kick()
