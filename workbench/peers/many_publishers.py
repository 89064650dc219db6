"""A client that publishes over several links of one session, and perhaps consumes on it too."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from workbench.amqp.delivery import OutgoingDelivery
from workbench.amqp.errors import LocalProtocolError
from workbench.amqp.events import DeliveriesUpdated, DeliveryReceived, Event, FlowReceived
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session
from workbench.amqp.settings import ConnectionSettings, SessionSettings
from workbench.sim import VirtualClock

from .client import ScriptedClient, nothing

CONSUMER = "consumer"


class Publication:
    """One sending link: what its application has handed over, and what is still to come.

    Attributes:
        name: of the link.
        link: once its attach was sent.
        backlog: messages that the link could send.
        sent: messages that it has sent.
        outcomes: how many deliveries got which outcome.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.link: SenderLink | None = None
        self.backlog: deque[bytes] = deque()
        self.coming: deque[tuple[bytes, int]] = deque()  # message, us after the one before it
        self.handing = False  # the application's next message is scheduled
        self.sending = False  # the next transfer is scheduled
        self.sent = 0
        self.outcomes: dict[str, int] = {}

    @property
    def attached(self) -> bool:
        """Both ends are attached."""
        return self.link is not None and self.link.attached


class ManyLinksPublisher(ScriptedClient):
    """Publishes over several links, each as fast as application, credit, window and TCP allow.

    Args:
        clock: the run's clock.
        addresses: of the targets, by link name, in the order of attaching.
        settled: messages are sent settled: nobody tells their outcome.
        source: a queue to consume from over a link of the same session; None: it only publishes.
        keep_credit: link-credit that it keeps up on that link, renewed at half; 0: by hand.
        handed_over: told of a link when its application has handed messages over that wait.
        settings, session_settings: of this client's end.
        on_attached: called once, when every link is attached.

    Attributes:
        publications: by link name.
        consumer: the receiving link, once its attach was sent.
        received: messages that came over it.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        addresses: Mapping[str, str],
        name: str = "app",
        settled: bool = False,
        source: str | None = None,
        keep_credit: int = 0,
        handed_over: Callable[[SenderLink, int], None] = lambda link, count: None,
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        on_attached: Callable[[], None] = nothing,
    ) -> None:
        first = next(iter(addresses))
        super().__init__(
            name=name,
            address=addresses[first],
            link_name=first,
            settings=settings,
            session_settings=session_settings,
            sasl=None,
            on_attached=self._one_attached,
        )
        self.addresses = dict(addresses)
        self.publications: dict[str, Publication] = {}
        self.consumer: ReceiverLink | None = None
        self.keep_credit = keep_credit
        self.received = 0
        self._clock = clock
        self._settled_sends = settled
        self._source = source
        self._handed_over = handed_over
        self._on_all_attached = on_attached

    # -- what a person may ask of it ----------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Every link is attached at both ends."""
        links = [*(one.link for one in self.publications.values())]
        wanted = [*links, self.consumer] if self._source is not None else links
        return bool(links) and all(link is not None and link.attached for link in wanted)

    def publish(self, name: str, payloads: Sequence[bytes], every_us: int = 0) -> None:
        """Hand messages to a link, one each `every_us`; 0 hands all of them over now.

        Raises:
            LocalProtocolError: the link is not attached.
        """
        publication = self._publication(name)
        if not every_us and not publication.coming:
            publication.backlog.extend(payloads)
            self._offer(publication, len(payloads))
            return
        publication.coming.extend((payload, every_us) for payload in payloads)
        self._hand_over_next(publication)

    def open_session(self, name: str, address: str) -> None:
        """Begin another session on the same connection, with a publisher's link of its own."""
        self.addresses = {name: address}
        self._source = None
        self.amqp.begin()

    def grant(self, link_credit: int) -> None:
        """Set the credit of the receiving link.

        Raises:
            LocalProtocolError: there is none, or it is not attached.
        """
        if self.consumer is None or not self.consumer.attached:
            raise LocalProtocolError(
                "this client consumes nothing; legal in a run with a consumer on the connection"
            )
        self.consumer.grant(link_credit)

    def kick(self) -> None:
        """The transport takes octets again: every link may go on."""
        self._go_on_all()

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the client and each of its links."""
        picture: dict[str, int | bool | str] = {
            "vantage": self.vantage,
            "attached": self.attached,
            "writable": self.writable,
        }
        for name, one in self.publications.items():
            picture[f"{name}.link_credit"] = one.link.credit if one.link is not None else 0
            picture[f"{name}.backlog"] = len(one.backlog)
            picture[f"{name}.coming"] = len(one.coming)
            picture[f"{name}.sent"] = one.sent
            for outcome, count in one.outcomes.items():
                picture[f"{name}.outcome_{outcome}"] = count
        if self.consumer is not None:
            picture[f"{CONSUMER}.link_credit"] = self.consumer.credit
            picture[f"{CONSUMER}.received"] = self.received
        return picture

    # -- inside -------------------------------------------------------------------------------

    def _publication(self, name: str) -> Publication:
        found = self.publications.get(name)
        if found is None or not found.attached:
            listed = ", ".join(one.name for one in self.publications.values() if one.attached)
            raise LocalProtocolError(
                f"link {name} is not attached; legal now: {listed or 'wait until it is'}"
            )
        return found

    def _attach(self, session: Session) -> SenderLink | ReceiverLink:
        for name, address in self.addresses.items():
            one = self.publications[name] = Publication(name)
            one.link = session.attach_sender(name, target=address)
        if self._source is not None:
            self.consumer = session.attach_receiver(CONSUMER, self._source)
        link = self.publications[next(iter(self.addresses))].link
        assert link is not None
        return link

    def _one_attached(self) -> None:
        if not self.attached:
            return
        if self.consumer is not None and self.keep_credit and not self.consumer.credit:
            self.consumer.grant(self.keep_credit)
        self._on_all_attached()

    def _handle(self, event: Event) -> None:
        match event:
            case FlowReceived():
                self._go_on_all()
            case DeliveriesUpdated(settled=True):
                for delivery in event.deliveries:
                    if isinstance(delivery, OutgoingDelivery):
                        one = self.publications[delivery.link.name]
                        outcome = type(event.state).__name__.lower()
                        one.outcomes[outcome] = one.outcomes.get(outcome, 0) + 1
            case DeliveryReceived(link=link, delivery=delivery):
                self.received += 1
                if not delivery.settled:
                    link.settle(delivery.delivery_id)
                if self.keep_credit and link.credit <= self.keep_credit // 2:
                    link.grant(self.keep_credit)

    def _hand_over_next(self, publication: Publication) -> None:
        """The application's next message, when it is due."""
        if publication.coming and not publication.handing:
            publication.handing = True
            _, after_us = publication.coming[0]
            self._clock.call_later(after_us, self._handed, publication)

    def _handed(self, publication: Publication) -> None:
        publication.handing = False
        payload, _ = publication.coming.popleft()
        publication.backlog.append(payload)
        self._offer(publication, 1)
        self._hand_over_next(publication)

    def _offer(self, publication: Publication, count: int) -> None:
        link = publication.link
        assert link is not None
        link.available = len(publication.backlog)
        if count > 1 or not self._sendable(publication):
            self._handed_over(link, count)
        self._go_on(publication)

    def _go_on_all(self) -> None:
        for publication in self.publications.values():
            self._go_on(publication)

    def _go_on(self, publication: Publication) -> None:
        """One message per clock event, so that a person may act between two."""
        if not publication.sending and publication.backlog and self._sendable(publication):
            publication.sending = True
            self._clock.call_soon(self._send_one, publication)

    def _sendable(self, publication: Publication) -> bool:
        return self.writable and publication.link is not None and publication.link.can_send

    def _send_one(self, publication: Publication) -> None:
        publication.sending = False
        link = publication.link
        if publication.backlog and link is not None and self._sendable(publication):
            link.send(publication.backlog.popleft(), settled=self._settled_sends)
            publication.sent += 1
        self._go_on(publication)
