"""A link on which the broker receives: from a publisher into a queue.

The broker grants a number from its preset, and grants it again when no more than another number is
left. Under RabbitMQ's presets there is a second condition: fewer messages than the number granted
may wait for their queue's confirm, those that were sent settled included. So a queue that stalls
holds exactly the publishers that send to it (`rabbit_amqp_session.erl:grant_link_credit`).

A message counts as unconfirmed from its last frame on until the session has worked off the queue's
confirm (see `confirms`). One that goes to no queue is released at once, by a frame of its own
(`process_routing_confirm`).
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.messaging import Accepted, Rejected, Released
from workbench.amqp10.performatives import Error
from workbench.amqp10.receiver import IncomingDelivery, ReceiverLink
from workbench.amqp10.values import Symbol
from workbench.broker.unconfirmed import CONFIRMED, Outcome, Refused
from workbench.presets import Preset
from workbench.sim import Notes

from .confirms import Confirms
from .destinations import Destination, UndeliverableError

ACCEPTED, REJECTED, RELEASED = Accepted(), Rejected(), Released()


def rejection(refused: Refused) -> Rejected:
    """The outcome that says which queue is full [RabbitMQ 4.3, `rabbit_amqp_session.erl:rejected`].

    RabbitMQ has two more reasons, a queue that is down and a limit on properties: neither is here.
    """
    return Rejected(
        error=Error(
            condition=ErrorCondition.RESOURCE_LIMIT_EXCEEDED,
            description=f"queue '{refused.queue}' exceeded maximum length",
            info={Symbol("queue"): refused.queue, Symbol("reason"): Symbol(refused.reason)},
        )
    )


class IncomingLink:
    """One publisher to a queue.

    Args:
        link: over which it sends.
        destination: that takes the messages.
        preset: how much is granted, and when.
        notes: takes rows about the link that no frame makes.
        confirms: gathers what the session tells its publishers; None: each is told alone.
    """

    def __init__(
        self,
        link: ReceiverLink,
        destination: Destination,
        preset: Preset,
        notes: Notes,
        confirms: Confirms | None = None,
    ) -> None:
        self.link = link
        self.destination = destination
        self._credit = preset.publisher_credit
        self._regrant_at = preset.credit_regrant_at
        self._gated = preset.confirms_gate_credit
        self._rejects = preset.refuses_links
        self._held = False
        self._publishing = False
        self._notes = notes
        self._confirms = confirms
        link.unconfirmed = 0

    def attach(self) -> None:
        """Let the publisher begin."""
        self.link.grant(self._credit)

    def flush(self) -> None:
        """Tell at once what is decided: the link is about to end."""
        if self._confirms is not None:
            self._confirms.flush()

    def detach(self) -> None:
        """The link is gone; what it sent stays in the queue, confirms have nobody to go to."""

    def arrived(self) -> None:
        """A message is complete: it counts from here on, settled or not."""
        self.link.unconfirmed = self.unconfirmed + 1

    def delivery_received(self, delivery: IncomingDelivery) -> None:
        """Pass the message on; the disposition follows when the queue has taken it."""
        self._publishing = True
        try:
            self.destination.publish(delivery, partial(self._settle, delivery))
        except UndeliverableError as fault:
            self._undeliverable(delivery, fault)
        finally:
            self._publishing = False
        self.maybe_grant()

    def _undeliverable(self, delivery: IncomingDelivery, fault: UndeliverableError) -> None:
        """Rejected, if the message named no place; a place of the link's own that is gone ends it.

        A settled message leaves no other way to say so than to end the link. To publish to an
        internal exchange is forbidden, which ends the link, and the session of RabbitMQ 4.0.
        """
        error = fault.error
        self.confirmed([delivery], told=not delivery.settled)
        if fault.forbidden:
            if self._rejects:
                self.link.close(error)
            else:
                self.link.session.end(error)
            return
        if fault.by_message and not delivery.settled:
            self.link.settle(delivery.delivery_id, state=Rejected(error=error))
            return
        if fault.by_message:
            tag: dict[object, object] = {Symbol("delivery-tag"): delivery.delivery_tag}
            error = replace(error, info=tag)
        if not delivery.settled:
            self.link.settle(delivery.delivery_id, state=Released())
        self.link.close(error)

    @property
    def unconfirmed(self) -> int:
        """Messages that no queue has confirmed yet, settled ones included."""
        return self.link.unconfirmed or 0

    @property
    def withheld(self) -> bool:
        """Credit is not granted because too many messages wait for their queue's confirm."""
        return self._gated and self.unconfirmed >= self._credit

    def maybe_grant(self) -> None:
        """Grant again when little is left, unless too many wait for their confirm."""
        if self.link.counters.link_credit > self._regrant_at and not self._held:
            return  # what most often is the case
        if not self.link.attached:
            return
        due = self.link.credit <= self._regrant_at
        held = due and self.withheld
        if held is not self._held:
            self._held = held
            self._notes.note("block" if held else "unblock", "unconfirmed")
        if due and not held:
            self.link.grant(self._credit)

    def _settle(self, delivery: IncomingDelivery, outcome: Outcome) -> None:
        state: object = RELEASED
        if outcome is CONFIRMED:
            state = ACCEPTED
        elif type(outcome) is Refused:
            state = rejection(outcome) if self._rejects else REJECTED
        unroutable = self._publishing and state is RELEASED  # there is no queue to be waited for
        if self._confirms is not None and not unroutable:
            self._confirms.add(self, delivery, state)
            return
        self.confirmed([delivery], told=not delivery.settled)
        if not self.link.attached:
            return
        if not delivery.settled:
            self.link.settle(delivery.delivery_id, state=state)
        self._taken()

    def _taken(self) -> None:
        """A message more has its outcome."""
        if self._gated:
            self.maybe_grant()

    def confirmed(self, deliveries: list[IncomingDelivery], *, told: bool) -> None:
        """These count no more; `told`: a frame that is about this link says so."""
        self.link.unconfirmed = self.unconfirmed - len(deliveries)
        if not told and self.link.attached:
            self._notes.note("confirm", "confirmed", extra={"count": len(deliveries)})

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture: the link's own, and what the queue has not yet taken."""
        return {
            **self.link.overview(),
            "queue": self.destination.name,
            "unconfirmed": self.unconfirmed,
        }
