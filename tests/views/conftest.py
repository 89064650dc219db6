"""A small run made by hand, so that each test of a view says which rows it is about."""

from __future__ import annotations

import pytest

from workbench.trace.schema import Row

LINK = {"connection": "c1", "session": 0, "link": "q", "link_sender": "broker", "attach_no": 1}


class Story:
    """Makes rows with the right `seq` and one link; a test states only what it is about."""

    def __init__(self, link: str = "q") -> None:
        self.rows: list[Row] = []
        self.t_us = 0
        self.link = {**LINK, "link": link}

    def row(self, vantage: str, event: str, kind: str | None = None, **columns) -> Row:
        row = Row(
            run="story",
            seq=len(self.rows),
            t_us=self.t_us,
            vantage=vantage,
            event=event,
            protocol="amqp-1.0",
            kind=kind,
            **columns,
        )
        self.rows.append(row)
        return row

    def frame(self, frame_id: int, vantage: str, event: str, kind: str, **columns) -> Row:
        peer = "client" if vantage.startswith("client") else "broker"
        other = "broker" if peer == "client" else "client"
        columns.setdefault("from_peer", peer if event == "sent" else other)
        return self.row(vantage, event, kind, frame_id=frame_id, **self.link, **columns)

    def flow(self, frame_id: int, event: str, credit: int, count: int = 0, **columns) -> Row:
        vantage = "client:r" if event == "sent" else "broker"
        return self.frame(
            frame_id,
            vantage,
            event,
            "flow",
            frame={"handle": 0, "delivery_count": count, "link_credit": credit},
            ledger={"delivery_count": count, "link_credit": credit, "drain": False},
            ledger_source="own",
            brake="none" if event == "received" else None,
            **columns,
        )

    def transfer(self, frame_id: int, event: str, count: int, credit: int, **columns) -> Row:
        vantage = "broker" if event == "sent" else "client:r"
        return self.frame(
            frame_id,
            vantage,
            event,
            "transfer",
            frame={"handle": 0, "delivery_id": count - 1},
            ledger={"delivery_count": count, "link_credit": credit},
            ledger_source="own",
            brake=("none" if credit else "link-credit") if event == "sent" else None,
            body_bytes=5,
            frame_bytes=40,
            **columns,
        )


def race(link: str = "q") -> Story:
    """Three granted, two sent, and a flow of 6 that crosses a transfer."""
    story = Story(link)
    story.flow(0, "sent", 3)
    story.t_us = 500
    story.flow(0, "received", 3)
    story.t_us = 540
    story.transfer(1, "sent", 1, 2)
    story.t_us = 580
    story.transfer(2, "sent", 2, 1)
    story.t_us = 1040
    story.transfer(1, "received", 1, 2)
    story.flow(3, "sent", 6, count=1)
    story.t_us = 1080
    story.transfer(2, "received", 2, 5)
    story.t_us = 250_000
    story.row("queue:q", "enqueue", "message", queue="q", ledger={"queue_ready": 4})
    return story


@pytest.fixture
def story() -> type[Story]:
    return Story


@pytest.fixture
def racing() -> Story:
    return race()


@pytest.fixture
def make_race():
    return race
