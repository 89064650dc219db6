"""The clients of a quorum queue: who they are, and what its leader tells them."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.queues.quorum_commands import Full, Logged, QuorumEffect

from .node_links import NodeLinks
from .quorum_roles import Answers, Port


class Ports:
    """Every client of one queue.

    Args:
        links: the ways to them.
    """

    def __init__(self, links: NodeLinks) -> None:
        self._links = links
        self._ports: dict[str, Port] = {}

    def join(self, port: Port) -> None:
        """A client begins to use the queue."""
        self._ports[port.client.name] = port

    def leave(self, name: str) -> None:
        """A client is no more."""
        self._ports.pop(name, None)

    def clear(self) -> None:
        """Nobody uses the queue any more."""
        self._ports.clear()

    def lead_by(self, node: str, term: int, *, at: str | None = None) -> None:
        """The leader tells that it leads: all clients, or those at one place."""
        for port in tuple(self._ports.values()):
            if at in (None, port.place):
                self._links.send(node, port.place, port.leader_is, node, term)

    def refuse(self, node: str, commands: Iterable[Logged]) -> None:
        """Tell whoever sent these commands that the node does not lead."""
        for name in {logged.client: None for logged in commands}:
            port = self._ports.get(name)
            if port is not None:
                self._links.send(node, port.place, port.not_leader, node)

    def answer(
        self,
        node: str,
        term: int,
        answers: dict[str, Answers],
        caused: list[QuorumEffect],
        *,
        at: str | None = None,
    ) -> None:
        """What the leader has to tell: to each client what concerns it.

        Args:
            node: where the leader is.
            term: in which it leads.
            answers: to commands, by client.
            caused: every effect, in order.
            at: only clients at this place are told; None: all of them.
        """
        effects: dict[str, list[QuorumEffect]] = {}
        for effect in caused:
            for name in self._concerned(effect):
                effects.setdefault(name, []).append(effect)
        for name in {**effects, **answers}:
            port = self._ports.get(name)
            if port is not None and at in (None, port.place):
                given = (answers.get(name, []), effects.get(name, []))
                self._links.send(node, port.place, port.heard, term, *given)

    def _concerned(self, effect: QuorumEffect) -> Iterable[str]:
        client = getattr(effect, "client", None)
        if client is not None:
            return (client,)
        # A full queue concerns every publisher; what was dropped, whoever tells of it: one of them.
        return self._ports if isinstance(effect, Full) else tuple(self._ports)[:1]
