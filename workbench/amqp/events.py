"""Events: what `Connection.apply` tells its owner about a frame that has come.

When the owner hears of an event, the counters already include the frame, and nothing has been sent
for it. `Connection.answer(event)` does what the specification asks for; an owner may do something
else instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from workbench.amqp.delivery import Delivery, IncomingDelivery
from workbench.amqp.errors import ErrorCondition, Scope
from workbench.amqp.frame import ProtocolHeader
from workbench.amqp.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    Error,
    Flow,
    Open,
    Performative,
    Role,
    SaslCode,
)

if TYPE_CHECKING:
    from workbench.amqp.link import Link
    from workbench.amqp.receiver import ReceiverLink
    from workbench.amqp.sender import SenderLink
    from workbench.amqp.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderReceived:
    """The peer's protocol header. Answer: ours, if not sent; then SASL or open go on [2.2]."""

    header: ProtocolHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRefused:
    """The peer wants a protocol that this end does not speak now; the connection is over.

    Answer: the header that would be right (a server's), then drop the transport [2.2].
    """

    header: ProtocolHeader
    wanted: ProtocolHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslReceived:
    """A step of SASL. Answer: the next step [5.3.2]."""

    performative: Performative


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslFinished:
    """The SASL exchange is over, at the client by the server's outcome.

    Answer: at the client, after `ok`, the AMQP header (and open); else nothing: drop the transport.

    Attributes:
        code: how it ended.
        user: who the peer is or this end was; `anonymous` for ANONYMOUS.
    """

    code: SaslCode
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReceived:
    """The peer's open. Answer: ours, if not sent."""

    frame: Open


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseReceived:
    """The peer's close; all sessions are over. Answer: ours, if not sent.

    Attributes:
        error: why.
        sessions: those that ran; what their links had unsettled is in `link.unsettled`.
    """

    error: Error | None = None
    sessions: tuple[Session, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """An empty frame: the peer lives [2.4.5]. No answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBegun:
    """The peer's begin.

    Answer: if the peer began (`by_peer`), `session.accept()`; else transfers may now go out.
    """

    session: Session
    frame: Begin
    by_peer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """The peer's end; the session's links are gone. Answer: ours, if not sent.

    Attributes:
        by_peer: this end had not sent its end before.
        links: those that were there; what they had unsettled is in `link.unsettled`.
    """

    session: Session
    error: Error | None = None
    by_peer: bool = True
    links: tuple[SenderLink | ReceiverLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAttaching:
    """The peer attaches a link. Answer: `link.accept()`, or the owner's `link.refuse(error)`.

    `link` has the role of this end: a `SenderLink` where the peer wants to receive.
    """

    link: SenderLink | ReceiverLink
    frame: Attach


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAttached:
    """The peer's answer to our attach. No answer.

    Attributes:
        refused: its terminus is null: a detach with the reason follows [2.6.3].
    """

    link: SenderLink | ReceiverLink
    frame: Attach
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStolen:
    """A new attach of the same name and direction takes the link's place [2.6.1].

    Answer: detach of the old link with `amqp:link:stolen`.
    """

    link: Link


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkDetached:
    """The peer's detach. Answer: ours, if not sent, with the same `closed`.

    The link's deliveries stay in `link.unsettled` for whoever has to requeue them.

    Attributes:
        by_peer: this end had not sent its detach before.
    """

    link: Link
    frame: Detach
    closed: bool
    error: Error | None
    by_peer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowReceived:
    """The peer's flow, already worked into session and link.

    Answer: deliveries that stopped at a closed window go on; a drain that finds nothing available
    is answered with the flow that gives back the credit; an echo with the present state, unless
    such a flow has just been sent [2.5.6, 2.6.7].

    Attributes:
        link: that it names; None for the session alone.
    """

    session: Session
    link: SenderLink | ReceiverLink | None
    frame: Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReceived:
    """The last frame of a delivery. Answer: the session's window, by its `regrant_at`."""

    link: ReceiverLink
    delivery: IncomingDelivery


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReceived:
    """A frame of a delivery, and more follow. Answer: as for the last."""

    link: ReceiverLink
    delivery: IncomingDelivery


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAborted:
    """The sender took a delivery back; it counts as settled [2.7.5]. Answer: as for the last."""

    link: ReceiverLink
    delivery: IncomingDelivery


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveriesUpdated:
    """The peer's disposition.

    Answer: at the sender, outcomes that the receiver has not settled are settled [2.6.12].

    Attributes:
        role: the *peer's*: RECEIVER speaks about what this end sent.
        deliveries: those in the range that this end still knew, in order of their ids. Where the
            peer settled, they are forgotten now.
    """

    session: Session
    role: Role
    deliveries: tuple[Delivery, ...]
    state: object
    settled: bool
    frame: Disposition


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolViolation:
    """The peer broke a rule; what the frame wanted was not done.

    Answer: detach, end or close with the condition, according to the scope.

    Attributes:
        scope: what has to end.
        condition: to be told to the peer.
        description: the rule, with the numbers seen.
        session: concerned, unless the scope is the connection.
        link: concerned, if the scope is the link.
    """

    scope: Scope
    condition: ErrorCondition
    description: str
    session: Session | None = None
    link: Link | None = None

    @property
    def error(self) -> Error:
        """As it goes into a detach, end or close."""
        return Error(condition=self.condition, description=self.description)


Event: TypeAlias = (
    HeaderReceived
    | HeaderRefused
    | SaslReceived
    | SaslFinished
    | OpenReceived
    | CloseReceived
    | Heartbeat
    | SessionBegun
    | SessionEnded
    | LinkAttaching
    | LinkAttached
    | LinkStolen
    | LinkDetached
    | FlowReceived
    | DeliveryReceived
    | PartReceived
    | DeliveryAborted
    | DeliveriesUpdated
    | ProtocolViolation
)
