"""Send policies: when a publisher's next message goes, once credit, window and TCP allow it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from .links import Publisher


class SendPolicy(Protocol):
    """When to send."""

    def go_on(self, publishers: Iterable[Publisher]) -> None:
        """Lets publishers send: there is a message, credit, a window or room that was not there."""


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Each link sends one message per clock event, so that a person may act between two.

    Args:
        pause_us: how long the client needs to make a message before it goes.
    """

    pause_us: int = 0

    def go_on(self, publishers: Iterable[Publisher]) -> None:
        """Schedules the next message of each link that can send."""
        for publisher in publishers:
            if not publisher.scheduled and publisher.can_send:
                publisher.scheduled = True
                publisher.client.clock.call_later(self.pause_us, self._send, publisher)

    def _send(self, publisher: Publisher) -> None:
        publisher.scheduled = False
        publisher.send_next()
        self.go_on((publisher,))


@dataclass(frozen=True, slots=True)
class AtOnce:
    """All that is allowed at one instant leaves in one clock event, one message per link in turn.

    Links take turns as threads do that share a connection's writer.
    """

    def go_on(self, publishers: Iterable[Publisher]) -> None:
        """Sends until no link can send any more."""
        able = list(publishers)
        while able:
            able = [publisher for publisher in able if publisher.send_next()]
