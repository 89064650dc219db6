"""The pair of links over which a client talks to the management node.

Both have the same name and say `paired`; on one the client's requests come in, on the other the
responses go out. Requests have a credit of their own. A response needs credit of the client's, and
waits in the session's line behind what is to be sent before it
(`rabbit_amqp_session.erl:incoming_mgmt_link_transfer`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.link import Link
from workbench.amqp10.messaging import Source, Target
from workbench.amqp10.performatives import Flow, ReceiverSettleMode, SenderSettleMode
from workbench.amqp10.receiver import IncomingDelivery, ReceiverLink
from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.session import Session
from workbench.amqp10.settings import CreditOverrun
from workbench.presets import Preset
from workbench.queues import Deliver, Message, Stored

from .address_resolver import RefusedError
from .addresses import MANAGEMENT
from .management import Management, UnexpectedRequestError
from .outgoing_pending import OutgoingPending

CREDIT, REGRANT_AT = 8, 4
"""`rabbit_amqp_session.erl`: MANAGEMENT_LINK_CREDIT_RCV, and half of it."""


class ManagementError(RefusedError):
    """A link or request that cannot be; the session ends with this error."""


Unanswered = Callable[[Session, ManagementError], None]


def is_management(link: SenderLink | ReceiverLink) -> bool:
    """Whether the client attaches one of the two links."""
    terminus = link.source if link.is_sender else link.target
    if not isinstance(terminus, Source | Target) or terminus.address != MANAGEMENT:
        return False
    return link.is_sender or link.snd_settle_mode is SenderSettleMode.SETTLED


class Requests:
    """The half on which requests come.

    Args:
        link: of a client that sends.
        management: answers.
        unanswered: told of a request that cannot be answered, to end its session.
    """

    def __init__(self, link: ReceiverLink, management: Management, unanswered: Unanswered) -> None:
        self.link = link
        self._unanswered = unanswered
        self.responses: Responses | None = None
        self._management = management
        self._pending = False  # a request is being worked on
        self._next: deque[IncomingDelivery] = deque()

    @property
    def client_address(self) -> object:
        """What the client calls its own end."""
        source = self.link.source
        return source.address if isinstance(source, Source) else None

    def attach(self, handle: int | None, preset: Preset) -> None:
        """Answer the attach, and let requests come."""
        attach = self.link.remote_attach
        assert attach is not None
        self.link.accept(
            handle=handle,
            max_message_size=preset.max_message_size or None,
            snd_settle_mode=SenderSettleMode.SETTLED,
            rcv_settle_mode=ReceiverSettleMode.FIRST,
            properties=attach.properties,
            credit_overrun=CreditOverrun.DETACH,
        )
        self.link.grant(CREDIT)

    def received(self, delivery: IncomingDelivery) -> None:
        """Answer a request when those before it are answered.

        One that is none, or whose answer has no way to the client, ends the session.
        """
        self._next.append(delivery)
        self._go_on()

    def _go_on(self) -> None:
        while self._next and not self._pending:
            try:
                self._work_on(self._next.popleft())
            except ManagementError as fault:
                self._next.clear()
                self._unanswered(self.link.session, fault)

    def _work_on(self, delivery: IncomingDelivery) -> None:
        if delivery.frames > 1:
            raise ManagementError(
                ErrorCondition.INTERNAL_ERROR,
                f"a management request came in {delivery.frames} transfer frames; legal: one",
            )
        responses = self.responses
        if responses is None or not responses.link.attached:
            raise ManagementError(
                ErrorCondition.PRECONDITION_FAILED,
                "received transfer on half open management link pair; legal now: attach a receiver"
                f" of the same name from {MANAGEMENT}",
            )
        if responses.credit <= 0:
            raise ManagementError(
                ErrorCondition.PRECONDITION_FAILED,
                f"insufficient credit ({responses.credit}) for management link from RabbitMQ to"
                " client; legal now: a flow with link-credit 1 or more before the request",
            )
        self._pending = True
        try:
            self._management.answer(delivery.payload, self._answered)
        except UnexpectedRequestError as error:
            self._pending = False
            raise ManagementError(ErrorCondition.INTERNAL_ERROR, str(error)) from None

    def _answered(self, answer: bytes) -> None:
        """The answer is there, at once or later: pass it on, and look at the next request."""
        self._pending = False
        responses = self.responses
        if responses is None or not responses.link.attached:
            return
        try:
            responses.check(answer)
        except ManagementError as fault:
            self._next.clear()
            self._unanswered(self.link.session, fault)
            return
        if self.link.attached and self.link.credit <= REGRANT_AT:
            self.link.grant(CREDIT)  # before the response, which waits in the session's line
        responses.answer(answer)
        self._go_on()

    def detach(self) -> None:
        """The link is gone; the other half waits for another."""

    def overview(self) -> dict[str, Any]:
        """Flat picture of the link."""
        return self.link.overview()


class Responses:
    """The half on which responses go out.

    Args:
        link: to a client that receives.
        out: the session's line.
    """

    def __init__(self, link: SenderLink, out: OutgoingPending) -> None:
        self.link = link
        self._out = out
        self._waiting = 0

    @property
    def client_address(self) -> object:
        """What the client calls its own end."""
        target = self.link.target
        return target.address if isinstance(target, Target) else None

    @property
    def credit(self) -> int:
        """How many more responses the client will take, those that wait left out."""
        return self.link.credit - self._waiting

    def attach(self, handle: int | None, preset: Preset) -> None:
        """Answer the attach."""
        attach = self.link.remote_attach
        assert attach is not None
        self.link.accept(
            handle=handle,
            initial_delivery_count=preset.initial_delivery_count,
            snd_settle_mode=SenderSettleMode.SETTLED,
            max_message_size=attach.max_message_size,
            properties=attach.properties,
        )

    def check(self, response: bytes) -> None:
        """See that the client takes a response of this size.

        Raises:
            ManagementError: it is larger.
        """
        attach = self.link.remote_attach
        limit = 0 if attach is None else attach.max_message_size or 0
        if limit and len(response) > limit:
            raise ManagementError(
                ErrorCondition.MESSAGE_SIZE_EXCEEDED,
                f"the response has {len(response)} octets, the receiver's max-message-size is"
                f" {limit}",
            )

    def answer(self, response: bytes) -> None:
        """Put a response into the session's line."""
        self._waiting += 1
        stored = Stored(message_id=0, message=Message(payload=response))
        self._out.push(self, Deliver(consumer=MANAGEMENT, message=stored, settled=True))

    def send(self, effect: Deliver) -> OutgoingDelivery:
        """Its turn in the line has come."""
        self._waiting -= 1
        return self.link.send(effect.message.payload, settled=True, delivery_tag=b"")

    def sent(self) -> None:
        """It has left completely."""

    def flow_received(self, frame: Flow) -> None:
        """Drain and echo are answered when what waits in the line has been sent."""
        if frame.drain or frame.echo:
            self._out.push(self, self._tell)

    def _tell(self) -> None:
        """Where the link stands; on drain all credit is given back, for nothing is left to send."""
        counters = self.link.counters
        if counters.drain:
            counters.advance()
        self.link.session.emit_flow(
            self.link,
            handle=self.link.handle,
            delivery_count=counters.delivery_count,
            link_credit=counters.link_credit,
            available=0,
            drain=counters.drain,
        )

    def detach(self) -> None:
        """The link is gone, with what waited for it."""
        self._out.forget(self)
        self._waiting = 0

    def overview(self) -> dict[str, Any]:
        """Flat picture of the link."""
        return self.link.overview()


def check_paired(link: Link) -> None:
    """A management link says that it is one of two.

    Raises:
        ManagementError: it does not.
    """
    attach = link.remote_attach
    properties = None if attach is None else attach.properties
    if not isinstance(properties, dict) or properties.get("paired") is not True:
        raise ManagementError(
            ErrorCondition.INVALID_FIELD,
            f"link property 'paired' of {link.name} is not true; legal: a sender to {MANAGEMENT}"
            " and a receiver from it, of one name, each with the property paired: true",
        )
