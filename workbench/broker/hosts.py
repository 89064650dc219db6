"""The hosts of one connection's links, by link; and, for each session, its consumers.

A flow may concern every consumer of its session. With a hundred links on a connection they are not
looked for among all hosts at each flow.
"""

from __future__ import annotations

from typing import TypeAlias

from workbench.amqp.link import Link
from workbench.amqp.session import Session

from .consumer_link import ConsumerLink
from .management_link import Requests, Responses
from .publisher_link import PublisherLink

LinkHost: TypeAlias = ConsumerLink | PublisherLink | Requests | Responses


class Hosts(dict[Link, LinkHost]):
    """Hosts of the links that are attached; filled by assignment, emptied by `leave`."""

    def __init__(self) -> None:
        super().__init__()
        self._consumers: dict[Session, dict[Link, ConsumerLink]] = {}

    def __setitem__(self, link: Link, host: LinkHost) -> None:
        super().__setitem__(link, host)
        if isinstance(host, ConsumerLink):
            self._consumers.setdefault(link.session, {})[link] = host

    def consumers(self, session: Session) -> list[ConsumerLink]:
        """The consumers on a session, in order of attaching."""
        return list(self._consumers.get(session, {}).values())

    def leave(self, link: Link) -> LinkHost | None:
        """A link is over; returns what its host was, if it had one."""
        known = self._consumers.get(link.session)
        if known is not None and known.pop(link, None) is not None and not known:
            del self._consumers[link.session]
        return self.pop(link, None)
