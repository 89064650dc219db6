"""A real client: a python-qpid-proton receiver, pumped in memory over the same wire.

Proton's engine is fed the octets of every frame that arrives, and the octets it produces are cut
into frames again, so that it takes part in a virtual run without a socket and without a clock.
What it hides (delivery-count, `available`, the session's ids) is worked out by an observer that
sees the same frames; its ledgers are therefore marked `shadow`.

Two of its habits differ from the specification's words. `receiver.flow(n)` *adds* n to the credit
and sends the sum. And a frame carries `credit - queued`, so credit can only be lowered safely once
every arrived delivery has been advanced, which this peer does at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.frame import WireItem, encode_item
from workbench.amqp10.framing import FrameReader
from workbench.amqp10.observer import ConnectionObserver, ObservedScope
from workbench.sim import Wire

ANY_SIZE = 2**30
INT_MAX = 2**31 - 1
OUTPUT_CHUNK = 65536


class ProtonMissingError(ImportError):
    """python-qpid-proton is not installed."""


def _proton() -> Any:
    try:
        import proton
    except ImportError as error:
        raise ProtonMissingError(
            "python-qpid-proton is not installed. It is built from source and needs a C compiler:"
            " install one (Debian and Ubuntu: apt-get install gcc python3-dev; conda: gcc), then"
            ' run: pip install "python-qpid-proton>=0.40,<0.41"'
        ) from error
    return proton


class ProtonPeer:
    """A Proton connection with one receiver, as the client's end of a wire.

    Attributes:
        receiver: Proton's own receiver; after using it directly, call `pump`.
        payloads: encoded messages in the order in which they arrived.
        attached: True from the broker's attach on.

    Raises:
        ProtonMissingError: if python-qpid-proton is not installed.
    """

    from_peer = "client"
    ledger_source = "shadow"

    def __init__(
        self,
        *,
        address: str = "q",
        on_attached: Callable[[], None] | None = None,
    ) -> None:
        proton = _proton()
        self.vantage = "client:proton"
        self.payloads: list[bytes] = []
        self.attached = False
        self.wire: Wire | None = None
        delivery = proton.Delivery
        self._states = {
            "accepted": delivery.ACCEPTED,
            "rejected": delivery.REJECTED,
            "released": delivery.RELEASED,
            "modified": delivery.MODIFIED,
        }
        self._remote_active = proton.Endpoint.REMOTE_ACTIVE
        self._unsettled: list[Any] = []
        self._settled = 0
        self._on_attached = on_attached
        self._observer = ConnectionObserver(end="client")
        self._scope: ObservedScope | None = None
        self._reader = FrameReader(ANY_SIZE)
        self._transport = proton.Transport()
        self._connection = proton.Connection()
        self._connection.container = "proton"
        self._connection.hostname = "broker"
        self._transport.sasl().allowed_mechs("ANONYMOUS")
        self._transport.bind(self._connection)
        self._connection.open()
        session = self._connection.session()
        session.open()
        self.receiver = session.receiver("receiver")
        self.receiver.source.address = address
        self.receiver.open()

    # -- what a person may ask of it ----------------------------------------------------------

    @property
    def link_credit(self) -> int:
        """Proton's idea of the credit it has granted and not seen used."""
        credit: int = self.receiver.credit
        return credit

    @property
    def unsettled(self) -> int:
        """Deliveries that arrived and are not yet acknowledged."""
        return len(self._unsettled)

    @property
    def received(self) -> int:
        """Messages that have arrived."""
        return len(self.payloads)

    def flow(self, count: int) -> None:
        """Proton's `receiver.flow(count)`: adds to the credit and sends the sum."""
        credit = self.link_credit
        if credit + count < 0:
            raise LocalProtocolError(
                f"credit {credit} cannot be lowered by {-count}; legal now: flow {-credit} or more"
            )
        if credit + count > INT_MAX:
            raise LocalProtocolError(
                f"Proton keeps its credit in 32 bits with a sign: {credit} and {count} more are"
                f" {credit + count}; legal now: flow {INT_MAX - credit} or less"
            )
        self.receiver.flow(count)
        self.pump()

    def grant(self, link_credit: int) -> None:
        """Set the credit, as the specification means it: adds the difference."""
        self.flow(link_credit - self.link_credit)

    def drain(self) -> None:
        """Ask for the present credit to be used up or given back.

        Below 0, where a cut came too late, Proton would put 4294967296 minus that on the wire.
        """
        self.receiver.drain(max(0, -self.link_credit))
        self.pump()

    def acknowledge(self, count: int | None = None, outcome: str = "accepted") -> int:
        """Settle the oldest `count` deliveries, or all, with an outcome; returns how many."""
        chosen = self._unsettled[:count]
        for delivery in chosen:
            if outcome == "modified":
                delivery.local.failed = True
            delivery.update(self._states[outcome])
            delivery.settle()
        del self._unsettled[: len(chosen)]
        self._settled += len(chosen)
        self.pump()
        return len(chosen)

    def detach(self) -> None:
        """Close the link."""
        self.receiver.close()
        self.pump()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self.pump()

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture: what Proton itself is willing to tell."""
        return {
            "vantage": self.vantage,
            "attached": self.attached,
            "link_credit": self.link_credit,
            "received": self.received,
            "unsettled": self.unsettled,
            "settled": self._settled,
            "draining": bool(self.receiver.draining()),
        }

    # -- an end of a wire ---------------------------------------------------------------------

    def connect(self, wire: Wire) -> None:
        """Take the wire and begin to talk."""
        self.wire = wire
        self.pump()

    def apply(self, item: WireItem) -> list[WireItem]:
        """Feed Proton the octets of an arriving frame; nothing goes out yet."""
        self._scope = self._observer.see(item, from_client=False)
        data = encode_item(item)
        while data:
            room = self._transport.capacity()
            if room <= 0:
                raise LocalProtocolError("Proton takes no more octets: its transport is closed")
            self._transport.push(data[:room])
            data = data[room:]
        self._take_deliveries()
        self.attached = bool(self.receiver.state & self._remote_active)
        return [item]

    def react(self, events: list[WireItem]) -> None:
        """Let Proton answer."""
        if self.attached and self._on_attached is not None:
            told, self._on_attached = self._on_attached, None
            told()
        self.pump()

    def scope(self, item: WireItem, outgoing: bool) -> ObservedScope | None:
        """What the observer knows right after this frame."""
        return self._scope

    def pump(self) -> None:
        """Put everything that Proton wants to say on the wire."""
        assert self.wire is not None, "connect the peer to a wire first"
        while (pending := self._transport.pending()) > 0:
            data = self._transport.peek(min(pending, OUTPUT_CHUNK))
            self._transport.pop(len(data))
            for raw in self._reader.feed(data):
                self._scope = self._observer.see(raw.item, from_client=True)
                self.wire.send(self, raw.item)

    def _take_deliveries(self) -> None:
        """Read and advance every complete delivery, so that `queued` stays 0."""
        while (delivery := self.receiver.current) is not None:
            if delivery.partial or not delivery.readable:
                return
            data = self.receiver.recv(delivery.pending)
            self.payloads.append(bytes(data))
            self.receiver.advance()
            if delivery.settled:
                delivery.settle()
                self._settled += 1
            else:
                self._unsettled.append(delivery)
