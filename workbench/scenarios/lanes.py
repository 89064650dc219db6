"""Who publishes to which queue, and over what: a picture of the broker's inside begins here."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.peers import Client, Client091, Consumer091, Publisher091
from workbench.presets import AMQP_0_9_1, AMQP_1_0

from .world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One way from a client to a queue, or back.

    Attributes:
        protocol: spoken on it.
        connection: of the client.
        client: its vantage.
        channel: number of the channel or the session.
        link: name of the link; empty in AMQP 0-9-1.
        queue: at the other end.
        publishes: messages go to the queue; else they come from it.
    """

    protocol: str
    connection: str
    client: str
    channel: int
    link: str = ""
    queue: str
    publishes: bool = True


def lanes_of(world: World) -> list[Lane]:
    """The lanes of a run whose clients have the names of their connections."""
    found: list[Lane] = []
    for connection, client in world.peers.items():
        if isinstance(client, Client091):
            for task in client.tasks.values():
                if isinstance(task, Publisher091 | Consumer091):
                    found.append(
                        Lane(
                            protocol=AMQP_0_9_1,
                            connection=connection,
                            client=client.vantage,
                            channel=task.channel,
                            queue=task.queue,
                            publishes=isinstance(task, Publisher091),
                        )
                    )
        elif isinstance(client, Client):
            links = [*client.publishers.values(), *client.consumers.values()]
            for link in links:
                found.append(
                    Lane(
                        protocol=AMQP_1_0,
                        connection=connection,
                        client=client.vantage,
                        channel=1,
                        link=link.name,
                        queue=link.address.rpartition("/")[2],
                        publishes=link.name in client.publishers,
                    )
                )
    return found
