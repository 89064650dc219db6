"""What a capture without a manifest tells of queues: their kind, what was in them, what came later.

The broker says how much is ready in each flow about a link to a consumer. So messages that it sends
after such a flow and that were not there then, and that nobody in the capture published, came from
outside between the two. They are put before the client's last flow on that link, if that came
after the broker's and that left no credit; else before the transfer that showed the first of them.

A drain or an echo that is never answered waits behind messages that a closed window holds.

Only a quorum queue of 4.3 tells a consumer whether it is active; if one is not, or hears it before
it has asked for anything, the queue has a single active consumer. Of 4.0 and of a classic queue
nothing tells the kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from workbench.amqp10.frame import ProtocolHeader
from workbench.amqp10.messaging import Accepted, Rejected
from workbench.amqp10.performatives import Attach, Begin, Detach, Disposition, Flow, Role, Transfer
from workbench.frontends import queue_name

ACTIVE = "rabbitmq:active"
BEHIND = 512  # two batches of a session's credit to a queue


@dataclass(slots=True)
class Seen:
    """One queue, as far as the frames have shown it.

    Attributes:
        ready: messages that must be in it before the first frame.
        behind: those that were never seen, and of which the broker said nothing else.
        stock: messages in it now, with `ready` as found so far.
        told_at: frame of the broker's last word on how many are ready; -1 before the first.
        wanted: credit was left then, so that a message would have been sent at once.
        events: messages that came from outside, by the frame before which they did.
    """

    ready: int = 0
    behind: int = 0
    stock: int = 0
    told_at: int = -1
    wanted: bool = False
    quorum: bool = False
    single_active: bool = False
    events: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def need(self, count: int, at: int) -> None:
        """So many are in it just before frame `at`, at least."""
        missing = count - self.stock
        if missing <= 0:
            return
        if self.told_at < 0:
            self.ready += missing
        else:
            self.events[at] += missing
        self.stock += missing


@dataclass(slots=True)
class _Link:
    queue: str
    client_flow_at: int = -1
    asked: bool = False  # by drain or echo, and not yet answered
    unsettled: dict[int, None] = field(default_factory=dict)
    delivery: int | None = None  # under way, of several frames


class Inference:
    """Reads a capture frame by frame.

    Args:
        frames: connection, whether the broker sent it, and the frame or header.
    """

    def __init__(self, frames: Iterable[tuple[str, bool, Any]]) -> None:
        self.queues: dict[str, Seen] = {}
        self._links: dict[tuple[str, int, int], _Link] = {}
        self._channel: dict[tuple[str, bool, int], int] = {}  # to the client's own number
        at = -1
        for connection, by_broker, item in frames:
            at += not isinstance(item, ProtocolHeader)
            said = getattr(item, "performative", None)
            if isinstance(said, Begin | Attach | Detach | Flow | Transfer | Disposition):
                self._read(connection, item.channel, by_broker, said, at)
        for link in self._links.values():
            self._unanswered(link)

    def declared(self) -> dict[str, dict[str, Any]]:
        """The queues, as a manifest has them."""
        return {
            name: {
                "type": "quorum" if seen.quorum else "classic",
                "single_active": seen.single_active,
                "ready": seen.ready + (seen.behind if seen.told_at < 0 else 0),
            }
            for name, seen in self.queues.items()
        }

    def events(self) -> list[dict[str, Any]]:
        """What came from outside, as a manifest has it."""
        return [
            {"before": at, "what": "publish", "queue": name, "count": count}
            for name, seen in self.queues.items()
            for at, count in seen.events.items()
        ]

    def _read(self, connection: str, channel: int, by_broker: bool, said: Any, at: int) -> None:
        if isinstance(said, Disposition):
            self._settled(connection, channel, by_broker, said)
            return
        if isinstance(said, Begin) or said.handle is None:
            return
        key = (connection, channel, said.handle)
        if isinstance(said, Attach):
            self._attached(key, by_broker, said)
        elif key not in self._links:
            return
        elif isinstance(said, Detach):
            self._detached(key)
        elif isinstance(said, Flow):
            self._flow(self._links[key], by_broker, said, at)
        else:
            self._transfer(self._links[key], by_broker, said, at)

    def _attached(self, key: tuple[str, int, int], by_broker: bool, said: Attach) -> None:
        terminus = said.source if (said.role is Role.RECEIVER) is not by_broker else said.target
        address = getattr(terminus, "address", None)
        if not by_broker and isinstance(address, str):
            name = queue_name(address)
            self.queues.setdefault(name, Seen())
            self._links[key] = _Link(name)

    def _detached(self, key: tuple[str, int, int]) -> None:
        """What the consumer had not settled is in the queue again."""
        link = self._links.pop(key)
        self._unanswered(link)
        self.queues[link.queue].stock += len(link.unsettled)

    def _unanswered(self, link: _Link) -> None:
        """A drain or echo without an answer waits behind messages that a closed window holds."""
        seen = self.queues[link.queue]
        if link.asked:
            seen.behind = BEHIND

    def _settled(self, connection: str, channel: int, by_broker: bool, said: Disposition) -> None:
        if by_broker or said.role is not Role.RECEIVER:
            return
        last = said.first if said.last is None else said.last
        for (owner, session, _), link in self._links.items():
            if (owner, session) != (connection, channel):
                continue
            for number in list(link.unsettled):
                if (number - said.first) % 2**32 <= (last - said.first) % 2**32:
                    del link.unsettled[number]
                    gone = isinstance(said.state, Accepted | Rejected)
                    self.queues[link.queue].stock += not gone

    def _flow(self, link: _Link, by_broker: bool, said: Flow, at: int) -> None:
        seen = self.queues[link.queue]
        if not by_broker:
            link.client_flow_at = at
            link.asked = bool(said.drain or said.echo)
            return
        link.asked = False
        active = (said.properties or {}).get(ACTIVE)
        seen.quorum |= active is not None
        unasked = active is not None and link.client_flow_at < 0
        seen.single_active |= active is False or unasked
        if said.available is None or active is False:  # who waits is told of nothing
            return
        # The answer to a flow: what it tells of was there when the flow came.
        since = link.client_flow_at
        seen.need(said.available, since if since > seen.told_at else at)
        seen.told_at, seen.wanted = at, bool(said.link_credit)

    def _transfer(self, link: _Link, by_broker: bool, said: Transfer, at: int) -> None:
        seen = self.queues[link.queue]
        first, link.delivery = link.delivery is None, said.delivery_id
        if not said.more:
            link.delivery = None
        if not by_broker:
            seen.stock += not said.more
        elif first:
            since = link.client_flow_at
            seen.need(1, since if since > seen.told_at and not seen.wanted else at)
            seen.stock -= 1
            if not said.settled and said.delivery_id is not None:
                link.unsettled[said.delivery_id] = None
