"""Deliveries: one message on its way over one link, as each end sees it.

A delivery has a *delivery-id*, unique in its session and direction, and a *delivery-tag*, unique
on its link while it is unsettled. It may take several transfer frames; each of those uses one
*transfer-id*, which is on no wire and has nothing to do with the delivery-id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from workbench.amqp.messaging import Accepted, Modified, Rejected, Released
from workbench.amqp.performatives import ReceiverSettleMode

if TYPE_CHECKING:
    from workbench.amqp.receiver import ReceiverLink
    from workbench.amqp.sender import SenderLink

__all__ = ["Delivery", "IncomingDelivery", "OutgoingDelivery", "is_terminal"]

TERMINAL = (Accepted, Rejected, Released, Modified)

State: TypeAlias = object
"""A delivery state: `Accepted()`, ..., a `Described` of an extension, or None for none yet."""


def is_terminal(state: State) -> bool:
    """Whether a state is an outcome, after which no other may come [3.4]."""
    return isinstance(state, TERMINAL)


class Delivery:
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

    __slots__ = (
        "aborted",
        "complete",
        "delivery_id",
        "delivery_tag",
        "frames",
        "local_state",
        "message_format",
        "remote_settled",
        "remote_state",
        "settled",
    )

    def __init__(
        self, delivery_id: int, delivery_tag: bytes, message_format: int | None, settled: bool
    ) -> None:
        self.delivery_id = delivery_id
        self.delivery_tag = delivery_tag
        self.message_format = message_format
        self.settled = settled
        self.remote_settled = settled
        self.local_state: State = None
        self.remote_state: State = None
        self.aborted = False
        self.complete = False
        self.frames = 0

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


class OutgoingDelivery(Delivery):
    """A delivery that this end sends.

    Attributes:
        link: over which it goes.
        remaining: octets not yet sent.
    """

    __slots__ = ("link", "remaining")

    def __init__(
        self,
        link: SenderLink,
        delivery_id: int,
        delivery_tag: bytes,
        message_format: int | None,
        settled: bool,
        payload: bytes,
    ) -> None:
        super().__init__(delivery_id, delivery_tag, message_format, settled)
        self.link = link
        self.remaining: bytes | memoryview = payload


class IncomingDelivery(Delivery):
    """A delivery that this end receives.

    Attributes:
        link: over which it comes.
        rcv_settle_mode: of this delivery, if the sender gave one that is not the link's.
        parts: payload per frame.
        size: octets that have arrived.
    """

    __slots__ = ("link", "parts", "rcv_settle_mode", "size")

    def __init__(
        self,
        link: ReceiverLink,
        delivery_id: int,
        delivery_tag: bytes,
        message_format: int | None,
        settled: bool,
        rcv_settle_mode: ReceiverSettleMode | None = None,
    ) -> None:
        # As in Delivery, written out: there is one of these for each message.
        self.delivery_id = delivery_id
        self.delivery_tag = delivery_tag
        self.message_format = message_format
        self.settled = self.remote_settled = settled
        self.local_state = self.remote_state = None
        self.aborted = self.complete = False
        self.frames = 0
        self.link = link
        self.rcv_settle_mode = rcv_settle_mode
        self.parts: list[bytes] = []
        self.size = 0

    @property
    def payload(self) -> bytes:
        """What has arrived of the encoded message."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)
