"""A broker and clients of ours on one clock, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from tests.broker.rig import Rig
from workbench.peers import Client, ClientLink

LATENCY_US = 1000


class Net(Rig):
    """A rig whose clients are made of links."""

    def client(self, *links: ClientLink, connected: bool = True, **more: Any) -> Client:
        """A client with these links in its first session, on `c1`, attached."""
        client = Client(self.clock, links, **more)
        if connected:
            self.connect(client)
            self.rest()
            assert client.attached
        return client

    def until(self, t_us: int) -> None:
        """Lets everything happen that is due up to then."""
        self.clock.call_at(t_us, lambda: None)
        while self.clock.now_us < t_us:
            assert self.clock.step()

    def rows(self, kind: str, event: str = "sent", **columns: Any) -> list[Any]:
        """Rows of one kind, in order."""
        return [
            row
            for row in self.recorder.rows
            if (row.kind, row.event) == (kind, event)
            and all(getattr(row, name) == value for name, value in columns.items())
        ]
