"""What both ends of a link have in common: attaching, detaching, and what was agreed [2.6].

A link is named by its name, its direction and the two containers. The two ends number it with
handles of their own. `SenderLink` and `ReceiverLink` add the flow of messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.amqp.errors import ErrorCondition, LocalProtocolError, Scope
from workbench.amqp.events import ProtocolViolation
from workbench.amqp.messaging import Source, Target
from workbench.amqp.performatives import (
    Attach,
    Detach,
    Error,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
)
from workbench.amqp.scope import Ledger
from workbench.amqp.settings import UINT_MAX, check_range
from workbench.amqp.settlement import in_range
from workbench.amqp.states import LINK_TABLE, Input, LinkState, require
from workbench.amqp.values import Described

if TYPE_CHECKING:
    from workbench.amqp.session import Session

__all__ = ["Link", "LinkTerms", "as_source", "as_target"]

ATTACHED = LinkState.ATTACHED
ULONG_MAX = 18446744073709551615


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTerms:
    """What an end says of a link in its attach, beyond name, handle and role [2.7.3].

    Attributes:
        source: where the messages come from; null in the attach of a sender that refuses.
        target: where they go; null in the attach of a receiver that refuses.
        snd_settle_mode: the sender's way; a receiver's is only a wish.
        rcv_settle_mode: the receiver's way; a sender's is only a wish.
        initial_delivery_count: a sender's; any serial number.
        max_message_size: the largest message this end takes, in octets; None or 0 is no limit.
        unsettled: deliveries of an earlier attach, by delivery-tag.
        properties: of the link.
        offered_capabilities: of this end.
        desired_capabilities: of the peer.
    """

    source: Source | Described | None = None
    target: Target | Described | None = None
    snd_settle_mode: SenderSettleMode | None = None
    rcv_settle_mode: ReceiverSettleMode | None = None
    initial_delivery_count: int = 0
    max_message_size: int | None = None
    unsettled: Mapping[Any, Any] | None = None
    properties: Mapping[Any, Any] | None = None
    offered_capabilities: tuple[str, ...] | None = None
    desired_capabilities: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_range("initial-delivery-count", self.initial_delivery_count, 0, UINT_MAX)
        if self.max_message_size is not None:
            check_range("max-message-size", self.max_message_size, 0, ULONG_MAX)


def as_source(value: Source | Described | str | None) -> Source | Described | None:
    """A source, or the source with this address."""
    return Source(address=value) if isinstance(value, str) else value


def as_target(value: Target | Described | str | None) -> Target | Described | None:
    """A target, or the target with this address."""
    return Target(address=value) if isinstance(value, str) else value


class Link:
    """One attachment of a link, as this end sees it; a re-attach is a new object.

    Attributes:
        session: on which it is attached.
        name: of the link.
        attach_no: 1, 2, ... each time name and direction are attached again on the session.
        handle: this end's number for it, None until this end's attach is sent.
        remote_handle: the peer's number for it, None until its attach has come.
        state: of the attachment.
        terms: what this end said in its attach, None until it is sent.
        remote_attach: what the peer said, None until it has come.
        unsettled: deliveries that this end has not settled, by delivery-id, oldest first.
        error: why it was detached, by either end.
        closed: whether it was detached for good, by either end.
    """

    ROLE: ClassVar[Role]

    def __init__(self, session: Session, name: str, attach_no: int) -> None:
        self.session = session
        self.name = name
        self.attach_no = attach_no
        self.handle: int | None = None
        self.remote_handle: int | None = None
        self.state = LinkState.DETACHED
        self.terms: LinkTerms | None = None
        self.remote_attach: Attach | None = None
        self.unsettled: dict[int, Any] = {}
        self.error: Error | None = None
        self.closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.state.value}>"

    # -- what was agreed ------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        """Of this end."""
        return self.ROLE

    @property
    def in_message(self) -> bool:
        """This end sends, and frames of a message that it has begun are still to be sent."""
        return False

    @property
    def attached(self) -> bool:
        """Both ends are attached."""
        return self.state is ATTACHED

    @property
    def is_sender(self) -> bool:
        """Whether this end sends the messages."""
        return self.ROLE is Role.SENDER

    @property
    def source(self) -> Source | Described | None:
        """The source: the sender's word, or the receiver's wish until that has come."""
        return self._agreed("source", self.is_sender)  # type: ignore[no-any-return]

    @property
    def target(self) -> Target | Described | None:
        """The target: the receiver's word, or the sender's wish until that has come."""
        return self._agreed("target", not self.is_sender)  # type: ignore[no-any-return]

    @property
    def snd_settle_mode(self) -> SenderSettleMode:
        """The sender's word, or the receiver's wish until that has come."""
        mode = self._agreed("snd_settle_mode", self.is_sender)
        return SenderSettleMode.MIXED if mode is None else mode

    @property
    def rcv_settle_mode(self) -> ReceiverSettleMode:
        """The receiver's word, or the sender's wish until that has come."""
        mode = self._agreed("rcv_settle_mode", not self.is_sender)
        return ReceiverSettleMode.FIRST if mode is None else mode

    def _agreed(self, field: str, decided_here: bool) -> Any:
        own, peer = self.terms, self.remote_attach
        first, second = (own, peer) if decided_here else (peer, own)
        if first is not None:
            return getattr(first, field)
        return None if second is None else getattr(second, field)

    # -- attaching ------------------------------------------------------------------------------

    def _mirrored(self, given: Mapping[str, Any]) -> LinkTerms:
        """Terms that echo the peer's attach [2.6.3], but for what the owner gives."""
        peer = self.remote_attach
        if peer is None:
            raise LocalProtocolError(
                f"link {self.name} was not attached by the peer: there is nothing to accept"
            )
        terms: dict[str, Any] = {
            "source": peer.source,
            "target": peer.target,
            "snd_settle_mode": peer.snd_settle_mode,
            "rcv_settle_mode": peer.rcv_settle_mode,
        }
        terms.update(given)
        terms["source"], terms["target"] = as_source(terms["source"]), as_target(terms["target"])
        return LinkTerms(**terms)

    def _send_attach(self, terms: LinkTerms, handle: int | None) -> None:
        """Sends this end's attach; `handle` None takes the lowest free one."""
        session = self.session
        state = require(LINK_TABLE, self.state, Input.SEND_ATTACH, f"link {self.name}")
        session.require(Input.SEND_FRAME)
        number = session.free_handle(handle)
        attach = Attach(
            name=self.name,
            handle=number,
            role=self.ROLE,
            snd_settle_mode=terms.snd_settle_mode,
            rcv_settle_mode=terms.rcv_settle_mode,
            source=terms.source,
            target=terms.target,
            unsettled=None if terms.unsettled is None else dict(terms.unsettled),
            initial_delivery_count=terms.initial_delivery_count if self.is_sender else None,
            max_message_size=terms.max_message_size,
            offered_capabilities=terms.offered_capabilities,
            desired_capabilities=terms.desired_capabilities,
            properties=None if terms.properties is None else dict(terms.properties),
        )
        if self.state is LinkState.DETACHED:
            session.register(self)  # type: ignore[arg-type]
        self.state = state
        self.terms = terms
        self.handle = number
        session.handles[number] = self
        self._attach_sent(terms)
        session.emit(attach, link=self)

    def _attach_sent(self, terms: LinkTerms) -> None:
        """What else begins with this end's attach."""

    def attach_received(self, frame: Attach) -> None:
        """Takes in the peer's attach, whose step the table has allowed."""
        self.remote_attach = frame
        self.remote_handle = frame.handle

    def refuse(self, error: Error, *, handle: int | None = None) -> None:
        """Answers the peer's attach with a no: attach with null terminus, then detach [2.6.3].

        What the peer has sent for the link before it hears of this is dropped.

        Args:
            error: why.
            handle: this end's number for the link; None takes the lowest free one.

        Raises:
            LocalProtocolError: the link is not waiting for this end's attach.
        """
        terminus = "source" if self.is_sender else "target"
        self._send_attach(self._mirrored({terminus: None}), handle)
        self._detach(closed=True, error=error, step=Input.SEND_DETACH)

    def refused_by(self, frame: Attach) -> bool:
        """Whether the peer's attach has a null terminus, and a detach will follow [2.6.3]."""
        return (frame.target if self.is_sender else frame.source) is None

    # -- detaching ------------------------------------------------------------------------------

    def detach(self, *, closed: bool | None = None, error: Error | None = None) -> None:
        """Detaches the link: suspends it, or closes it for good.

        With an error nothing but the peer's detach may come any more [2.6.5].

        Args:
            closed: for good; None is not, and leaves the field out.
            error: why.

        Raises:
            LocalProtocolError: this end is not attached.
        """
        step = Input.SEND_DETACH if error is None else Input.SEND_ERROR_DETACH
        self._detach(closed=closed, error=error, step=step)

    def close(self, error: Error | None = None) -> None:
        """Detaches the link for good."""
        self.detach(closed=True, error=error)

    def _detach(self, *, closed: bool | None, error: Error | None, step: Input) -> None:
        session = self.session
        state = require(LINK_TABLE, self.state, step, f"link {self.name}")
        session.require(Input.SEND_FRAME)
        assert self.handle is not None
        frame = Detach(handle=self.handle, closed=closed, error=error)
        self.state = state
        self.closed = self.closed or bool(closed)
        self.error = self.error or error
        session.handles.pop(self.handle, None)
        self.stop()
        session.forget_link(self)
        session.emit(frame, link=self)

    def stop(self) -> None:
        """Drops what was half sent or half received."""

    # -- for session and tap --------------------------------------------------------------------

    def require(self, step: Input) -> None:
        """Asks all three tables whether this end may send a frame of the link.

        Raises:
            LocalProtocolError: it may not.
        """
        if step not in LINK_TABLE[self.state]:  # the words only for who needs them
            require(LINK_TABLE, self.state, step, f"link {self.name}")
        self.session.require(step)

    def violated(self, condition: ErrorCondition, description: str) -> ProtocolViolation:
        """The event for a rule of the link that the peer broke."""
        return ProtocolViolation(
            scope=Scope.LINK,
            condition=condition,
            description=f"link {self.name}: {description}",
            session=self.session,
            link=self,
        )

    def ledger(self) -> Ledger:
        """The link's counters at this end."""
        raise NotImplementedError

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the link."""
        picture: dict[str, int | bool | str] = {
            "name": self.name,
            "role": self.ROLE.name.lower(),
            "state": self.state.value,
            "attach_no": self.attach_no,
            "closed": self.closed,
            **self.ledger(),
        }
        if self.handle is not None:
            picture["handle"] = self.handle
        if self.remote_handle is not None:
            picture["remote_handle"] = self.remote_handle
        return picture

    def _chosen(self, first: int, last: int, known: Mapping[int, Any]) -> list[Any]:
        """This link's unsettled deliveries out of a range of the session's.

        Raises:
            LocalProtocolError: there is none, or another link's is among them.
        """
        chosen = []
        for delivery in in_range(known, first, last):
            if delivery.delivery_id not in self.unsettled:
                other = delivery.link
                raise LocalProtocolError(
                    f"delivery-id {delivery.delivery_id} in {first}..{last} belongs to link "
                    f"{other.name}: a disposition speaks for the whole session [2.7.6]; legal now: "
                    "ranges without it"
                )
            chosen.append(delivery)
        if not chosen:
            raise LocalProtocolError(
                f"no unsettled delivery of link {self.name} in {first}..{last}; legal now: "
                + (", ".join(map(str, list(self.unsettled)[:10])) or "none: all are settled")
            )
        return chosen
