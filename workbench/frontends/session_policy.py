"""What the broker does where RabbitMQ's sessions depart from the specification.

`SessionPolicy` is the plain reading of the specification: `Connection.answer` does nearly all.
`RabbitPolicy` is `rabbit_amqp_session.erl`: a line of output per session, two credit loops for a
consumer, the client's own numbers for channels and handles, and no answer to an echo that does not
come from a consumer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote

from msgspec import structs

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.events import (
    DeliveriesUpdated,
    FlowReceived,
    LinkDetached,
    OpenReceived,
    ProtocolViolation,
    SessionBegun,
)
from workbench.amqp10.frame import Frame, WireItem
from workbench.amqp10.link import Link
from workbench.amqp10.messaging import (
    DeleteOnClose,
    Released,
    Source,
    Target,
    TerminusDurability,
    TerminusExpiryPolicy,
)
from workbench.amqp10.performatives import End, Error, ReceiverSettleMode, Role, SenderSettleMode
from workbench.amqp10.receiver import IncomingDelivery, ReceiverLink
from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.session import Session
from workbench.amqp10.settings import ConnectionSettings, CreditOverrun
from workbench.amqp10.states import LinkState
from workbench.amqp10.values import Array, Symbol
from workbench.broker.queue_process import QueueProcess
from workbench.broker.virtual_host import VirtualHost
from workbench.presets import Preset
from workbench.queues.arguments import STREAM
from workbench.sim import Notes

from .address_resolver import OUTCOMES, TEMPORARY, AddressResolver, PlainResolver, RabbitResolver
from .destinations import Destination
from .incoming_link import IncomingLink
from .management_link import Responses
from .message_sections import fault_of_message
from .outgoing_link import CreditRule, OutgoingLink
from .outgoing_pending import OutgoingPending
from .processes import Processes
from .rabbit_faults import (
    agreed_channel_max,
    fault_of_open,
    fault_of_outcome,
    rabbit_fault,
    undefined_sum,
)
from .rabbit_hearing import Heard, heard
from .rabbit_outgoing_link import RabbitOutgoingLink, RabbitOwner

FILTERS = ("AMQP_FILTEX_PROP_V1_0", "AMQP_FILTEX_SQL_V1_0")


def dynamic_terms(queue: str) -> dict[str, Any]:
    """What the answer says of a terminus whose queue was made for its link."""
    return {
        "address": f"/queues/{quote(queue, safe='')}",
        "durable": TerminusDurability.NONE,
        "expiry_policy": TerminusExpiryPolicy.LINK_DETACH,
        "timeout": 0,
        "dynamic_node_properties": {
            Symbol("lifetime-policy"): DeleteOnClose(),
            Symbol("supported-dist-modes"): Array("symbol", (Symbol("move"),)),
        },
        "capabilities": (TEMPORARY,),
    }


class Host(RabbitOwner, Protocol):
    """The connection, as its policy sees it."""

    amqp: Any
    processes: Processes

    @property
    def hosts(self) -> Mapping[Link, object]:
        """Of the links that are attached."""


class SessionPolicy:
    """The plain reading of the specification.

    Args:
        owner: the connection.
        preset: every number.
    """

    opens_early = False  # a session's window is opened before a link's credit is granted
    hangs_up = False  # on a client whose SASL response cannot be read
    has_management = False  # a node that makes queues, exchanges and bindings
    numbers_as_client = False  # a link has the client's handle, so one highest is for both
    full_transfers = False  # every frame of a message has what its first one has
    # Credit is never cut here, so a publisher that sends without any has broken the rule [2.6.7].
    credit_overrun = CreditOverrun.DETACH
    in_use = ErrorCondition.RESOURCE_LOCKED  # a queue has a consumer that wants to be its only one

    def __init__(self, owner: Host, preset: Preset) -> None:
        self.owner = owner
        self.preset = preset

    def settings(self) -> ConnectionSettings:
        """What the broker's open says."""
        preset = self.preset
        properties = {"product": preset.product, "version": preset.version}
        return ConnectionSettings(
            max_frame_size=preset.max_frame_size,
            first_max_frame_size=preset.first_max_frame_size,
            channel_max=preset.channel_max,
            idle_time_out_ms=preset.idle_time_out_ms or None,
            offered_capabilities=preset.offered_capabilities or None,
            properties=properties if preset.version else None,
        )

    def heard(self, item: WireItem) -> Heard:
        """What this broker makes of a frame before the endpoint has applied it.

        Returns:
            The frame as the endpoint is to see it, and what this broker alone has against it.
        """
        return item, None

    def fault_of_message(self, delivery: IncomingDelivery) -> ProtocolViolation | None:
        """What this broker has against the octets of a message."""
        return None

    def left(self, frame: Frame, session: Session | None, link: Link | None) -> None:
        """The broker has sent a detach, end or close."""

    def detached(self, event: LinkDetached) -> None:
        """A client has detached a link: answer."""
        self.owner.amqp.answer(event)

    def channel(self, event: SessionBegun) -> int | None:
        """The number for a session that the client begins; None takes the lowest free one."""
        return None

    def handle(self, link: Link) -> int | None:
        """The number for a link that the client attaches."""
        return None

    def resolver(self, vhost: VirtualHost, connection: str) -> AddressResolver:
        """What finds the node that a link is attached to."""
        return PlainResolver(vhost, self.preset)

    def target_terms(self, link: ReceiverLink, destination: Destination) -> dict[str, Any]:
        """What the answer to a publisher's attach says."""
        return {}

    def out(self, session: Session) -> OutgoingPending:
        """The line in which what the broker sends on a session waits."""
        raise NotImplementedError

    def source_terms(self, link: SenderLink, queue: QueueProcess) -> dict[str, Any]:
        """What the answer to a consumer's attach says."""
        source = link.source
        assert isinstance(source, Source)
        return {
            "source": Source(address=source.address, default_outcome=Released(), outcomes=OUTCOMES)
        }

    def consumer(
        self,
        name: str,
        link: SenderLink,
        queue: QueueProcess,
        notes: Notes,
        rule: CreditRule | None,
    ) -> OutgoingLink:
        """The consumer for an attach that is about to be answered."""
        return OutgoingLink(name, link, queue, self.owner, notes, rule)

    def publisher(self, link: ReceiverLink, **given: Any) -> IncomingLink:
        """The publisher for an attach that is answered; `given` as of `IncomingLink`."""
        return IncomingLink(link, **given)

    def flow(self, event: FlowReceived, host: OutgoingLink | Responses | None) -> None:
        """A flow came; `host` if it is about a link on which the broker sends."""
        if host is None:
            self.owner.amqp.answer(event)
        else:
            event.session.pump()
            host.flow_received(event.frame)

    def refused(self, link: Link, error: Error) -> None:
        """An attach cannot be."""
        link.refuse(error)

    def fault_of(self, event: DeliveriesUpdated) -> ProtocolViolation | None:
        """What is wrong with what a client says of deliveries."""
        return None

    def updated(self, event: DeliveriesUpdated) -> None:
        """What a client says of deliveries has taken effect: answer."""
        self.owner.amqp.answer(event)

    def opened(self, event: OpenReceived) -> None:
        """A client's open: answer."""
        self.owner.amqp.answer(event)

    def translated(self, event: ProtocolViolation, frame: Frame | None) -> ProtocolViolation | None:
        """The violation by a frame as this broker names it; None if it lets it pass."""
        return event

    def pump(self) -> None:
        """The transport takes octets again."""

    @property
    def held_octets(self) -> int:
        """What waits in the sessions, and nowhere else."""
        return 0


class RabbitPolicy(SessionPolicy):
    """RabbitMQ's sessions."""

    opens_early = True
    hangs_up = True
    has_management = True
    numbers_as_client = True
    full_transfers = True

    def __init__(self, owner: Host, preset: Preset) -> None:
        super().__init__(owner, preset)
        self._outs: dict[Session, OutgoingPending] = {}
        # `rabbit_classic_queue.erl:consume`, which had no words for it before 4.1.
        told = preset.refuses_links
        self.in_use = ErrorCondition.UNAUTHORIZED_ACCESS if told else ErrorCondition.INTERNAL_ERROR

    def settings(self) -> ConnectionSettings:
        """A heartbeat of 0 is told; links are known by their handles alone (`handle_attach`).

        No frame is measured before it is sent (`rabbit_amqp_writer.erl`).
        """
        idle_ms = self.preset.idle_time_out_ms
        return dataclasses.replace(
            super().settings(), idle_time_out_ms=idle_ms, steals_links=False, measures=False
        )

    def heard(self, item: WireItem) -> Heard:
        """Without the fields that RabbitMQ does not look at; a delivery goes on as it began."""
        return heard(item, self.owner.amqp)

    def fault_of_message(self, delivery: IncomingDelivery) -> ProtocolViolation | None:
        """A message has its sections in their order; before 4.2 it was read up to its body."""
        why = fault_of_message(delivery.payload, whole=self.preset.refuses_links)
        if why is None:
            return None
        link = delivery.link
        if self.preset.refuses_links:
            return link.violated(ErrorCondition.DECODE_ERROR, why)
        return link.session.violated(ErrorCondition.INTERNAL_ERROR, why)

    def left(self, frame: Frame, session: Session | None, link: Link | None) -> None:
        """RabbitMQ forgets a link or session that it has ended, and waits for no answer."""
        if session is None:
            return
        if type(frame.performative) is End:
            session.leave()
        elif link is not None:
            session.leave_link(link)

    def detached(self, event: LinkDetached) -> None:
        """RabbitMQ sends the client's own detach back, without its error."""
        link = event.link
        if link.session.can_emit() and link.state is LinkState.DETACH_RCVD:
            link.detach(closed=event.frame.closed)

    def channel(self, event: SessionBegun) -> int | None:
        """RabbitMQ takes the client's number."""
        return event.session.remote_channel

    def handle(self, link: Link) -> int | None:
        """RabbitMQ takes the client's number."""
        return link.remote_handle

    def resolver(self, vhost: VirtualHost, connection: str) -> AddressResolver:
        """RabbitMQ's addresses."""
        return RabbitResolver(vhost, self.preset, connection)

    def target_terms(self, link: ReceiverLink, destination: Destination) -> dict[str, Any]:
        """A receiver of RabbitMQ settles first, whatever was asked for."""
        target = link.target
        assert isinstance(target, Target)
        if target.dynamic:
            target = structs.replace(target, **dynamic_terms(destination.name))
        return {
            "rcv_settle_mode": ReceiverSettleMode.FIRST,
            "target": target,
            "offered_capabilities": self._capabilities(destination.queue),
        }

    def _capabilities(self, queue: QueueProcess | None) -> tuple[str, ...] | None:
        """What links of a stream can do, whichever way they go."""
        streams = queue is not None and queue.arguments.queue_type == STREAM
        return FILTERS if streams and self.preset.property_filters else None

    def source_terms(self, link: SenderLink, queue: QueueProcess) -> dict[str, Any]:
        """Unsettled unless settled was asked for; the client's source, and no target."""
        source, peer = link.source, link.remote_attach
        assert isinstance(source, Source)
        assert peer is not None
        settled = peer.snd_settle_mode is SenderSettleMode.SETTLED
        mode, capabilities = source.distribution_mode, source.capabilities
        if self.preset.writes_defaults:  # no queue here has capabilities of its own for a source
            mode = Symbol("copy" if queue.arguments.queue_type == STREAM else "move")
            capabilities = None
        if source.dynamic:
            source = structs.replace(source, **dynamic_terms(queue.name))
        return {
            "source": structs.replace(
                source,
                default_outcome=Released(),
                outcomes=OUTCOMES if source.outcomes is None else source.outcomes,
                distribution_mode=mode,
                capabilities=capabilities,
            ),
            "target": None,
            "snd_settle_mode": SenderSettleMode.SETTLED if settled else SenderSettleMode.UNSETTLED,
            "max_message_size": peer.max_message_size,
            "offered_capabilities": self._capabilities(queue),
        }

    def consumer(
        self,
        name: str,
        link: SenderLink,
        queue: QueueProcess,
        notes: Notes,
        rule: CreditRule | None,
    ) -> OutgoingLink:
        """A consumer behind a session that buffers."""
        if not self.preset.max_queue_credit:
            return super().consumer(name, link, queue, notes, rule)
        out = self.out(link.session)
        return RabbitOutgoingLink(name, link, queue, self.owner, notes, out, self.preset, rule)

    def out(self, session: Session) -> OutgoingPending:
        """One line for all consumers of a session."""
        for gone in [known for known in self._outs if known not in self.owner.amqp.sessions]:
            del self._outs[gone]
        if session not in self._outs:
            self._outs[session] = OutgoingPending(session, self.owner.takes, self.owner.processes)
        return self._outs[session]

    def flow(self, event: FlowReceived, host: OutgoingLink | Responses | None) -> None:
        """Consumers' flows count, others only by their session fields; then the line moves."""
        frame, session = event.frame, event.session
        if isinstance(event.link, SenderLink) and frame.link_credit is None:
            self.owner.crashed(
                session, "a flow for a consumer's link has no link-credit; legal here: a number"
            )
            return
        window, most = frame.incoming_window, self.preset.largest_grant
        if window > most:
            why = undefined_sum("incoming-window", window, "next-incoming-id", most)
            self.owner.crashed(session, why)
            return
        credit = frame.link_credit or 0
        # A queue's consumer may put the flow aside: its link looks when that takes effect.
        if isinstance(host, Responses) and credit > most:
            why = undefined_sum("link-credit", credit, "a delivery-count", most)
            self.owner.crashed(session, why)
            return
        if host is not None:
            host.flow_received(frame)
        elif self.preset.answers_every_echo:
            self.owner.amqp.answer(event)
        if session in self._outs:
            self._outs[session].pump()

    def refused(self, link: Link, error: Error) -> None:
        """Before 4.2 an attach that cannot be ends the session."""
        if self.preset.refuses_links:
            link.refuse(error, handle=self.handle(link))
            return
        session = link.session
        condition = ErrorCondition(error.condition)
        self.owner.amqp.answer(session.violated(condition, error.description or ""))

    def fault_of(self, event: DeliveriesUpdated) -> ProtocolViolation | None:
        """A session has a clause for a consumer's four outcomes, and for nothing else."""
        return fault_of_outcome(event)

    def updated(self, event: DeliveriesUpdated) -> None:
        """What is not settled yet is settled by one frame of the same range and state.

        So is a range that covers nothing, while anything else is unsettled.
        """
        if event.role is not Role.RECEIVER or event.settled or not event.session.outgoing:
            return
        links = {delivery.link for delivery in event.deliveries}
        for delivery in event.deliveries:
            if isinstance(delivery, OutgoingDelivery):
                delivery.link.updated(delivery, event.state, True)
        if event.session.can_emit():
            event.session.emit(
                structs.replace(event.frame, role=Role.SENDER, settled=True),
                link=links.pop() if len(links) == 1 else None,
            )

    def opened(self, event: OpenReceived) -> None:
        """A client may not ask for heartbeats too often, or for a virtual host that is none."""
        amqp, frame = self.owner.amqp, event.frame
        fault = fault_of_open(amqp, frame)
        if fault is not None:
            self._hang_up(fault)
            return
        amqp.settings = dataclasses.replace(
            amqp.settings, channel_max=agreed_channel_max(amqp, frame)
        )
        amqp.answer(event)

    def translated(self, event: ProtocolViolation, frame: Frame | None) -> ProtocolViolation | None:
        """RabbitMQ's conditions and scopes; before the open it hangs up without a word."""
        amqp = self.owner.amqp
        if amqp.remote_open is None:
            self._hang_up(event)
            return None
        return rabbit_fault(event, frame, amqp, self.preset)

    def _hang_up(self, fault: ProtocolViolation) -> None:
        """Nothing is sent; why it was is known here alone, as RabbitMQ logs it."""
        self.owner.amqp.error = fault.error
        self.owner.amqp.abandon()

    def pump(self) -> None:
        """Every session's line moves."""
        for out in list(self._outs.values()):
            out.pump()

    @property
    def held_octets(self) -> int:
        """What waits in the sessions' lines, and nowhere else."""
        return sum(out.held_octets for out in self._outs.values())
