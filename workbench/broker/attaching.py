"""What becomes of an attach: a host for the link, or a refusal.

The host stands between a link and what it leads to: a consumer's queue, a publisher's exchange, or
the management node.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.amqp.link import Link
from workbench.amqp.messaging import Source, Target
from workbench.amqp.performatives import SenderSettleMode
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sender import SenderLink
from workbench.amqp.settings import CreditOverrun
from workbench.presets import RABBITMQ

from .conduct import Conduct
from .consumer_link import ConsumerLink
from .consumer_terms import read_filters
from .destinations import Destination
from .hosts import Hosts, LinkHost
from .link_pairs import LinkPairs
from .management_link import ManagementError, is_management
from .publisher_link import PublisherLink
from .queue_process import QueueProcess
from .termini import CrashError, RefusedError

if TYPE_CHECKING:
    from .broker import Broker
    from .connection import BrokerConnection


class Attaching:
    """Answers the attaches of one connection.

    Args:
        owner: the connection.
        broker: whose nodes they are about.
        conduct: how this broker behaves.
        hosts: of the links that are attached; filled here.
    """

    def __init__(
        self,
        owner: BrokerConnection,
        broker: Broker,
        conduct: Conduct,
        hosts: Hosts,
    ) -> None:
        self._owner = owner
        self._broker = broker
        self._preset = broker.preset
        self._conduct = conduct
        self._hosts = hosts
        self._termini = conduct.termini(broker.nodes, owner.name)
        self._pairs = LinkPairs(
            broker.nodes,
            owner.name,
            owner.unanswered,
            deprecated=broker.preset.deprecated_queues,
        )
        self._made: dict[Link, str] = {}  # queues that were made for a link alone

    def attach(self, link: SenderLink | ReceiverLink) -> None:
        """Answer a client's attach."""
        try:
            if self._preset.conduct == RABBITMQ and is_management(link):
                self._management(link)
            elif isinstance(link, SenderLink):
                self._consumer(link)
            else:
                self._publisher(link, self._termini.published(link))
        except (RefusedError, ManagementError) as refused:
            self._conduct.refused(link, refused.error)
        except CrashError as crash:
            self._owner.crashed(link.session, str(crash))

    def forget(self, link: Link) -> None:
        """A link is over: a queue that was made for it goes too."""
        self._pairs.forget(link)
        made = self._made.pop(link, None)
        if made in self._broker.nodes.queues:
            self._broker.nodes.delete(made)

    def _consumer(self, link: SenderLink) -> None:
        queue = self._termini.consumed(link)
        kind = queue.arguments.queue_type
        filters = read_filters(link.source, kind, self._preset)
        fault = filters.fault(kind, self._preset)
        if fault is not None:
            self._conduct.refused(link, fault)
            return
        host = self._conduct.consumer(self._name(link), link, queue, self._broker.credit_rule)
        settled = link.snd_settle_mode is SenderSettleMode.SETTLED
        link.available = 0 if queue.queue.active is not None else queue.queue.ready
        self._note_made(link, queue.name)
        terms = self._conduct.source_terms(link, queue)
        terms["source"] = replace(terms["source"], filter=filters.in_force)
        link.accept(
            handle=self._conduct.handle(link),
            initial_delivery_count=self._preset.initial_delivery_count,
            **terms,
        )
        link.counters.rule = self._broker.credit_rule
        self._hosts[link] = host
        host.attach(settled, filters, self._broker.clock.epoch_us)

    def _publisher(self, link: ReceiverLink, destination: Destination) -> None:
        self._note_made(link, destination.name)
        # Credit is never cut here, so who sends without any has broken the rule [2.6.7].
        link.accept(
            handle=self._conduct.handle(link),
            max_message_size=self._preset.max_message_size or None,
            credit_overrun=CreditOverrun.DETACH,
            **self._conduct.target_terms(link, destination),
        )
        host = self._owner.publisher(link, destination)
        self._hosts[link] = host
        host.attach()

    def _management(self, link: SenderLink | ReceiverLink) -> None:
        host = self._pairs.attach(link, self._conduct.out(link.session))
        self._hosts[link] = host
        host.attach(self._conduct.handle(link), self._preset)

    def _note_made(self, link: SenderLink | ReceiverLink, name: str) -> None:
        terminus = link.source if link.is_sender else link.target
        if isinstance(terminus, Source | Target) and terminus.dynamic:
            self._made[link] = name

    def _name(self, link: Link) -> str:
        return f"{self._owner.name}/{link.session.ordinal}/{link.name}/{link.attach_no}"


def ended_by(hosts: Hosts, queue: QueueProcess) -> list[tuple[Link, LinkHost]]:
    """The links that end because a queue is deleted.

    A session that neither consumes from the queue nor has sent it a message is not told: its
    publishers stay, and what they send then finds no queue (`rabbit_amqp_session.erl`,
    `handle_stashed_eol`).
    """
    known = set()
    for link, host in hosts.items():
        if isinstance(host, ConsumerLink):
            knows = host.queue is queue
        else:
            knows = isinstance(host, PublisherLink) and host.destination.gone(queue)
        if knows:
            known.add(link.session)
    return [
        (link, host)
        for link, host in hosts.items()
        if link.session in known and _leads_to(host, queue)
    ]


def _leads_to(host: LinkHost, queue: QueueProcess) -> bool:
    if isinstance(host, ConsumerLink):
        return host.queue is queue
    return isinstance(host, PublisherLink) and host.destination.ends_with(queue)
