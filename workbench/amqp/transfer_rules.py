"""What may be wrong with a transfer frame that comes over a link [2.6.14, 2.7.5].

Each function looks at one frame and changes nothing; the receiving link asks them in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.amqp.delivery import IncomingDelivery
from workbench.amqp.errors import ErrorCondition
from workbench.amqp.events import ProtocolViolation
from workbench.amqp.performatives import ReceiverSettleMode, SenderSettleMode, Transfer
from workbench.amqp.settings import CreditOverrun

if TYPE_CHECKING:
    from workbench.amqp.receiver import ReceiverLink

__all__ = ["fault_of_first", "fault_of_next", "fault_of_settling"]


def fault_of_first(link: ReceiverLink, frame: Transfer) -> ProtocolViolation | None:
    """What is wrong with the first frame of a delivery [2.7.5]."""
    if frame.delivery_id is None:
        return link.session.violated(
            ErrorCondition.INVALID_FIELD,
            f"the first transfer of a delivery on link {link.name} has no delivery-id",
        )
    if frame.delivery_id in link.session.incoming:
        return link.session.violated(
            ErrorCondition.INVALID_FIELD,
            f"delivery-id {frame.delivery_id} on link {link.name} is in use by an unsettled "
            "delivery",
        )
    if frame.delivery_tag is None:
        return link.violated(
            ErrorCondition.INVALID_FIELD,
            f"the first transfer of delivery {frame.delivery_id} has no delivery-tag",
        )
    if frame.resume:
        return link.violated(
            ErrorCondition.NOT_IMPLEMENTED, "deliveries of an earlier attach are not resumed"
        )
    if (
        frame.rcv_settle_mode is ReceiverSettleMode.SECOND
        and link.rcv_settle_mode is ReceiverSettleMode.FIRST
    ):
        return link.violated(
            ErrorCondition.INVALID_FIELD,
            f"delivery {frame.delivery_id} has rcv-settle-mode second; the link has first, "
            "which no transfer may change",
        )
    if link.counters.link_credit == 0 and link.credit_overrun is CreditOverrun.DETACH:
        return link.violated(
            ErrorCondition.TRANSFER_LIMIT_EXCEEDED,
            f"delivery {frame.delivery_id} came at link-credit 0, delivery-count "
            f"{link.counters.delivery_count}",
        )
    return None


def fault_of_settling(
    link: ReceiverLink, frame: Transfer, delivery: IncomingDelivery
) -> ProtocolViolation | None:
    """Whether the delivery is settled as the link's snd-settle-mode promises [2.7.5].

    A delivery that is aborted is free of the promise.
    """
    mode = link.snd_settle_mode
    if frame.aborted:
        return None
    if mode is SenderSettleMode.UNSETTLED and frame.settled:
        said = "is sent settled; the link has snd-settle-mode unsettled"
    elif mode is SenderSettleMode.SETTLED and not (frame.more or delivery.remote_settled):
        said = "ends unsettled; the link has snd-settle-mode settled"
    else:
        return None
    return link.violated(
        ErrorCondition.INVALID_FIELD, f"delivery {delivery.delivery_id} {said} [2.7.5]"
    )


def fault_of_next(
    link: ReceiverLink, frame: Transfer, delivery: IncomingDelivery
) -> ProtocolViolation | None:
    """What is wrong with a further frame of a delivery [2.6.14, 2.7.5]."""
    if frame.delivery_id is not None and frame.delivery_id != delivery.delivery_id:
        return link.violated(
            ErrorCondition.INVALID_FIELD,
            f"delivery {frame.delivery_id} begins while delivery {delivery.delivery_id} is not "
            "complete: deliveries of one link may not interleave",
        )
    if frame.delivery_tag is not None and frame.delivery_tag != delivery.delivery_tag:
        return link.violated(
            ErrorCondition.INVALID_FIELD,
            f"delivery {delivery.delivery_id} began with delivery-tag "
            f"{delivery.delivery_tag.hex()} and goes on with {frame.delivery_tag.hex()}",
        )
    if frame.message_format is not None and frame.message_format != delivery.message_format:
        return link.violated(
            ErrorCondition.INVALID_FIELD,
            f"delivery {delivery.delivery_id} began with message-format "
            f"{delivery.message_format} and goes on with {frame.message_format}",
        )
    return None
