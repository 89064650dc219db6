"""What both ends of a link have in common: attaching, detaching, what was agreed, deliveries [2.6].

A link is named by its name, its direction and the two containers. The two ends number it with
handles of their own. `SenderLink` and `ReceiverLink` add the flow of messages.

A delivery is one message on its way over one link, as each end sees it. It has a *delivery-id*,
unique in its session and direction, and a *delivery-tag*, unique on its link while it is unsettled.
It may take several transfer frames; each of those uses one *transfer-id*, which is on no wire and
has nothing to do with the delivery-id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from msgspec import Struct

from workbench import serial
from workbench.amqp10.errors import ErrorCondition, LocalProtocolError, Scope
from workbench.amqp10.events import ProtocolViolation
from workbench.amqp10.messaging import Accepted, Modified, Rejected, Released, Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Detach,
    Error,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
)
from workbench.amqp10.scope import Ledger
from workbench.amqp10.settings import UINT_MAX, check_range
from workbench.amqp10.states import LINK_TABLE, Input, LinkState, require
from workbench.amqp10.values import Described

if TYPE_CHECKING:
    from workbench.amqp10.flow import ReceiverLinkFlow, SenderLinkFlow
    from workbench.amqp10.session import Session

__all__ = [
    "Delivery",
    "Link",
    "LinkTerms",
    "as_source",
    "as_target",
    "in_range",
    "is_terminal",
    "ranges",
    "runs",
]

ATTACHED = LinkState.ATTACHED
ULONG_MAX = 18446744073709551615

TERMINAL = (Accepted, Rejected, Released, Modified)

State: TypeAlias = object
"""A delivery state: `Accepted()`, ..., a `Described` of an extension, or None for none yet."""

D = TypeVar("D")


def is_terminal(state: State) -> bool:
    """Whether a state is an outcome, after which no other may come [3.4]."""
    return isinstance(state, TERMINAL)


class Delivery(Struct, eq=False):
    """What both ends keep of a delivery.

    Attributes:
        delivery_id: in its session and direction, a serial number.
        delivery_tag: up to 32 octets.
        message_format: as the sender says; 0 is the format of AMQP.
        settled: this end has settled it, or knows that both have: it is forgotten.
        remote_settled: the peer has settled it.
        local_state: what this end last said of it.
        remote_state: what the peer last said of it.
        aborted: the sender took it back before it was complete.
        complete: all its frames were sent, or have arrived.
        frames: how many transfer frames were sent, or have arrived.
    """

    link: Any
    delivery_id: int
    delivery_tag: bytes
    message_format: int | None
    settled: bool
    remote_settled: bool
    local_state: State = None
    remote_state: State = None
    aborted: bool = False
    complete: bool = False
    frames: int = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.delivery_id}>"

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture."""
        return {
            "delivery_id": self.delivery_id,
            "delivery_tag": self.delivery_tag.hex(),
            "settled": self.settled,
            "remote_settled": self.remote_settled,
            "local_state": type(self.local_state).__name__,
            "remote_state": type(self.remote_state).__name__,
            "aborted": self.aborted,
            "complete": self.complete,
            "frames": self.frames,
        }


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
        self.snd_settle_mode = SenderSettleMode.MIXED
        self.rcv_settle_mode = ReceiverSettleMode.FIRST
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

    def _agree(self) -> None:
        """Works out the settle modes, after an attach was sent or has come."""
        snd = self._agreed("snd_settle_mode", self.is_sender)
        rcv = self._agreed("rcv_settle_mode", not self.is_sender)
        self.snd_settle_mode = SenderSettleMode.MIXED if snd is None else snd
        self.rcv_settle_mode = ReceiverSettleMode.FIRST if rcv is None else rcv

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

    def send_attach(self, terms: LinkTerms, handle: int | None) -> None:
        """Sends this end's attach; `handle` None takes the lowest free one."""
        session = self.session
        state = require(LINK_TABLE, self.state, Input.SEND_ATTACH, f"link {self.name}")
        session.check_can_emit()
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
        session.connection.check_size(attach)
        if self.state is LinkState.DETACHED:
            session.register(self)  # type: ignore[arg-type]
        self.state = state
        self.terms = terms
        self._agree()
        self.handle = number
        session.handles[number] = self  # type: ignore[assignment]
        self._attach_sent(terms)
        session.emit(attach, link=self)

    def _attach_sent(self, terms: LinkTerms) -> None:
        """What else begins with this end's attach."""

    def attach_received(self, frame: Attach) -> None:
        """Takes in the peer's attach, whose step the table has allowed."""
        self.remote_attach = frame
        self.remote_handle = frame.handle
        self._agree()

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
        self.send_attach(self._mirrored({terminus: None}), handle)
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
        session.check_can_emit()
        if self.handle is None:  # a peer may detach a link before this end has attached it
            raise LocalProtocolError(
                f"link {self.name} is not attached here; legal now: accept it first"
            )
        frame = session.connection.fitted(Detach(handle=self.handle, closed=closed, error=error))
        self.state = state
        self.closed = self.closed or bool(closed)
        self.error = self.error or error
        session.handles.pop(self.handle, None)
        self.stop()
        session.forget_link(self)
        session.emit(frame, link=self)

    def stop(self) -> None:
        """Drops what was half sent or half received."""

    def finish(self, *, closed: bool, error: Error | None) -> None:
        """Detaches because the peer has, or has broken a rule, as far as that is possible."""
        if not self.session.can_emit():
            return
        if self.state is LinkState.ATTACH_RCVD and error is not None:
            self.refuse(error)
            return
        if self.state is LinkState.DETACH_RCVD and self.handle is None:
            self.accept()
        if Input.SEND_DETACH in LINK_TABLE[self.state]:
            self.detach(closed=closed or None, error=error)

    def accept(self) -> None:
        """Answers the peer's attach."""
        raise NotImplementedError

    def answer_attach(self) -> None:
        """Answers the peer's attach, if it still waits for that."""
        awaited = Input.SEND_ATTACH in LINK_TABLE[self.state] and self.handle is None
        if awaited and self.session.can_emit():
            self.accept()

    # -- settlement -----------------------------------------------------------------------------

    def updated(self, delivery: Any, state: object, settled: bool) -> None:
        """Takes in what the peer says of a delivery."""
        if state is not None:
            delivery.remote_state = state
        if settled:
            delivery.remote_settled = True
            self._forget(delivery)

    def _forget(self, delivery: Any) -> None:
        """Settles a delivery at this end, and drops it from what is unsettled."""
        raise NotImplementedError

    # -- for session and tap --------------------------------------------------------------------

    def can_emit(self) -> bool:
        """Whether this end may send a frame of the link: by link, session and connection."""
        session = self.session
        return self.state.sends and session.state.sends and session.connection.state.sends

    def check_can_emit(self) -> None:
        """Raises an error unless this end may send a frame of the link.

        Raises:
            LocalProtocolError: it may not; the text says by which state, and what is legal.
        """
        if not self.can_emit():
            require(LINK_TABLE, self.state, Input.SEND_FRAME, f"link {self.name}")
            self.session.check_can_emit()

    def _tell(
        self,
        counters: SenderLinkFlow | ReceiverLinkFlow,
        *,
        available: int | None = None,
        echo: bool,
        properties: Mapping[Any, Any] | None,
    ) -> None:
        """Sends a flow with this end's counters, once it may send at all."""
        self.check_can_emit()
        self.session.emit_flow(
            self,
            handle=self.handle,
            delivery_count=counters.delivery_count,
            link_credit=counters.link_credit,
            available=available,
            drain=counters.drain or None,
            echo=echo or None,
            properties=None if properties is None else dict(properties),
        )

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


# -- ranges of delivery-ids, as dispositions name them; serial numbers may wrap [2.7.6] ------------


def in_range(known: Mapping[int, D], first: int, last: int) -> list[D]:
    """What is known under the ids from `first` to `last`, in their order.

    Takes time by the smaller of the range and what is known: a peer may name a range of any size.

    Raises:
        LocalProtocolError: `last` comes before `first`.
    """
    if first == last:
        return [known[first]] if first in known else []
    try:
        span = serial.diff(last, first)
    except serial.SerialError as error:
        raise LocalProtocolError(f"{first}..{last} is no range: {error}") from error
    if span < 0:
        raise LocalProtocolError(
            f"{first}..{last} is no range: last comes before first; legal: {last}..{first}"
        )
    if span < len(known):
        ids: Iterable[int] = (serial.add(first, step) for step in range(span + 1))
        return [known[number] for number in ids if number in known]
    distance = _from(first)
    inside = [number for number in known if 0 <= distance(number) <= span]
    return [known[number] for number in sorted(inside, key=distance)]


def _from(first: int) -> Callable[[int], int]:
    """How far a number lies behind `first`; half a circle away counts as outside."""

    def distance(number: int) -> int:
        try:
            return serial.diff(number, first)
        except serial.SerialError:
            return -1

    return distance


def runs(deliveries: Iterable[Delivery]) -> Iterator[tuple[int, int, Any]]:
    """Cuts deliveries, in order of their ids, into runs of consecutive ids of one link.

    Returns:
        For each its first and its last id, and the link.
    """
    run: tuple[int, int, Any] | None = None
    for delivery in deliveries:
        number, link = delivery.delivery_id, delivery.link
        if run is not None and run[2] is link and number == serial.following(run[1]):
            run = (run[0], number, link)
            continue
        if run is not None:
            yield run
        run = (number, number, link)
    if run is not None:
        yield run


def ranges(ids: Iterable[int], oldest: int) -> list[tuple[int, int]]:
    """Unbroken ranges of delivery-ids, first and last included, in their order.

    Args:
        ids: serial numbers, each once.
        oldest: none of them lies before it.
    """
    found: list[tuple[int, int]] = []
    for number in sorted(ids, key=lambda one: serial.steps(one, oldest)):
        if found and number == serial.following(found[-1][1]):
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
