"""Delivery states and outcomes [3.4], and the error that several of them and frames carry."""

from typing import TypeAlias

from workbench.amqp10.composite import Composite, composite
from workbench.amqp10.fields import optional, required


@composite("error", 0x1D)
class Error(Composite, frozen=True, gc=False):
    """Why a link, session or connection ended, or a message was rejected [2.8.14].

    Attributes:
        condition: an `ErrorCondition`, or another symbol.
        description: for a human.
        info: more, by symbol.
    """

    condition: str = required("symbol")
    description: str | None = optional("string")
    info: dict[object, object] | None = optional("fields")


@composite("received", 0x23, provides=("delivery-state",))
class Received(Composite, frozen=True, gc=False):
    """How much of a delivery has arrived; not terminal [3.4.1]."""

    section_number: int = required("uint")
    section_offset: int = required("ulong")


@composite("accepted", 0x24, provides=("delivery-state", "outcome"))
class Accepted(Composite, frozen=True, gc=False):
    """Processed successfully [3.4.2]."""


@composite("rejected", 0x25, provides=("delivery-state", "outcome"))
class Rejected(Composite, frozen=True, gc=False):
    """Invalid and unprocessable [3.4.3]."""

    error: Error | None = optional("error")


@composite("released", 0x26, provides=("delivery-state", "outcome"))
class Released(Composite, frozen=True, gc=False):
    """Not and never processed: may be delivered again, unchanged [3.4.4]."""


@composite("modified", 0x27, provides=("delivery-state", "outcome"))
class Modified(Composite, frozen=True, gc=False):
    """Not processed: may be delivered again after the changes named here [3.4.5].

    Attributes:
        delivery_failed: count this attempt in the header's delivery-count.
        undeliverable_here: do not deliver over this link again.
        message_annotations: to be merged into the message's.
    """

    delivery_failed: bool | None = optional("boolean")
    undeliverable_here: bool | None = optional("boolean")
    message_annotations: dict[object, object] | None = optional("fields")


Outcome: TypeAlias = Accepted | Rejected | Released | Modified
DeliveryState: TypeAlias = Received | Accepted | Rejected | Released | Modified
