"""Events: what `Connection.apply` tells its owner about a frame that has come.

When the owner hears of an event, the counters already include the frame, and nothing has been sent
for it. `Connection.answer(event)` does what the specification asks for; an owner may do something
else instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from workbench.amqp10.errors import ErrorCondition, Scope
from workbench.amqp10.frame import ProtocolHeader
from workbench.amqp10.performatives import (
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
    from workbench.amqp10.link import Delivery, Link
    from workbench.amqp10.receiver import IncomingDelivery, ReceiverLink
    from workbench.amqp10.sender import SenderLink
    from workbench.amqp10.session import Session


class HeaderReceived(Struct, frozen=True, gc=False):
    """The peer's protocol header. Answer: ours, if not sent; then SASL or open go on [2.2]."""

    header: ProtocolHeader


class HeaderRefused(Struct, frozen=True, gc=False):
    """The peer wants a protocol that this end does not speak now; the connection is over.

    Answer: the header that would be right (a server's), then drop the transport [2.2].
    """

    header: ProtocolHeader
    wanted: ProtocolHeader


class SaslReceived(Struct, frozen=True, gc=False):
    """A step of SASL. Answer: the next step [5.3.2]."""

    performative: Performative


class SaslFinished(Struct, frozen=True, gc=False):
    """The SASL exchange is over, at the client by the server's outcome.

    Answer: at the client, after `ok`, the AMQP header (and open); else nothing: drop the transport.

    Attributes:
        code: how it ended.
        user: who the peer is or this end was; `anonymous` for ANONYMOUS.
    """

    code: SaslCode
    user: str | None = None


class OpenReceived(Struct, frozen=True, gc=False):
    """The peer's open. Answer: ours, if not sent."""

    frame: Open


class CloseReceived(Struct, frozen=True):
    """The peer's close; all sessions are over. Answer: ours, if not sent.

    Attributes:
        error: why.
        sessions: those that ran; what their links had unsettled is in `link.unsettled`.
    """

    error: Error | None = None
    sessions: tuple[Session, ...] = ()


class Heartbeat(Struct, frozen=True, gc=False):
    """An empty frame: the peer lives [2.4.5]. No answer."""


class SessionBegun(Struct, frozen=True):
    """The peer's begin.

    Answer: if the peer began (`by_peer`), `session.accept()`; else transfers may now go out.
    """

    session: Session
    frame: Begin
    by_peer: bool


class SessionEnded(Struct, frozen=True):
    """The peer's end; the session's links are gone. Answer: ours, if not sent.

    Attributes:
        by_peer: this end had not sent its end before.
        links: those that were there; what they had unsettled is in `link.unsettled`.
    """

    session: Session
    error: Error | None = None
    by_peer: bool = True
    links: tuple[SenderLink | ReceiverLink, ...] = ()


class LinkAttaching(Struct, frozen=True):
    """The peer attaches a link. Answer: `link.accept()`, or the owner's `link.refuse(error)`.

    `link` has the role of this end: a `SenderLink` where the peer wants to receive.
    """

    link: SenderLink | ReceiverLink
    frame: Attach


class LinkAttached(Struct, frozen=True):
    """The peer's answer to our attach. No answer.

    Attributes:
        refused: its terminus is null: a detach with the reason follows [2.6.3].
    """

    link: SenderLink | ReceiverLink
    frame: Attach
    refused: bool


class LinkStolen(Struct, frozen=True):
    """A new attach of the same name and direction takes the link's place [2.6.1].

    Answer: detach of the old link with `amqp:link:stolen`.
    """

    link: Link


class LinkDetached(Struct, frozen=True):
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


class FlowReceived(Struct, frozen=True):
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


class DeliveryReceived(Struct, frozen=True):
    """The last frame of a delivery. Answer: the session's window, by its `regrant_at`."""

    link: ReceiverLink
    delivery: IncomingDelivery


class PartReceived(Struct, frozen=True):
    """A frame of a delivery, and more follow. Answer: as for the last."""

    link: ReceiverLink
    delivery: IncomingDelivery


class DeliveryAborted(Struct, frozen=True):
    """The sender took a delivery back; it counts as settled [2.7.5]. Answer: as for the last."""

    link: ReceiverLink
    delivery: IncomingDelivery


class DeliveriesUpdated(Struct, frozen=True):
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


class ProtocolViolation(Struct, frozen=True):
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
