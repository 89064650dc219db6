"""Episodes for traces of any size: real runs with stalls whose brake and place are known.

Each episode is a run of our own broker in which a brake was applied, or taken off, by an act. What
came of it is not looked up in any answer: a stall ends with the frame that the act causes at the
sender, and begins with the row that the act before left the sender held at. Every brake of AMQP 1.0
has its episode, with one link and with links that take turns on one session, with counters that
wrap around, and in the middle of a message. The near-misses are runs in which a brake is on and
nothing waits. `trace.copies` writes as many copies as are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.presets import UINT_MAX
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT, Row

from .run import Run, run

__all__ = ["Episode", "Planted", "episodes"]

Act = tuple[str, dict[str, Any]]
BEFORE_WRAP = UINT_MAX - 1
"""Counters that begin here pass 2^32 with the second message or frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A stall that an act made.

    Attributes:
        link: whose sender is held.
        brake: what holds it.
        start_seq: the row with which it begins.
        end_seq: the row that ends it.
        released: that row is the frame that released it; else the run is over.
    """

    link: str
    brake: str
    start_seq: int
    end_seq: int
    released: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One run and the stalls in it; none in a near-miss.

    Attributes:
        rows: the run.
        planted: its stalls, in order.
    """

    rows: Sequence[Row]
    planted: tuple[Planted, ...]


def episodes(latency_us: int = 1_000) -> list[Episode]:
    """All of them.

    Args:
        latency_us: of the wire; a stall lasts until what releases it has crossed.
    """
    wire = {"latency_us": latency_us}
    wrap = {"broker_first_id": BEFORE_WRAP, "client_first_id": BEFORE_WRAP, **wire}
    return [
        _credit_withheld({"messages": 40, **wire}, (3, 5, 20)),
        _credit_withheld({"messages": 9, "initial_delivery_count": BEFORE_WRAP, **wire}, (2, 4)),
        _window_shut({"consumers": 1, **wrap}, (4, 2)),
        _window_shut({"consumers": 3, **wrap}, (5, 7, 3)),
        _window_shut({"message_bytes": 1_500, "max_frame_size": 512, **wrap}, (1, 2, 5)),
        _alarm({"queues": 1, **wire}, ("q1",)),
        _alarm({"queues": 3, **wire}, ("q1", "q3")),
        _unconfirmed({"queues": 1, **wire}),
        _unconfirmed({"queues": 3, **wire}),
        # A brake, and nothing that waits for it:
        _near("credit", {"messages": 4, **wire}, ("grant", {"link_credit": 4})),
        _near("credit", {"messages": 0, **wire}, ("grant", {"link_credit": 9}), ("drain", {})),
        _near(
            "windows", {"messages": 3, "client_window": 3, "link_credit": 9, **wire},
            ("open_window", {"frames": 0}), ("open_window", {"frames": 9}),
        ),
        _near("publishers", {"queues": 2, **wire}, ("alarm", {}), ("clear", {})),
        _near(
            "publishers", {"max_link_credit": 4, "rate": 0, **wire},
            ("stall", {}), ("publish", {"count": 4}), ("publish", {"count": 2}), ("resume", {}),
        ),
    ]  # fmt: skip


def _played(name: str, parameters: dict[str, Any], acts: Sequence[Act]) -> tuple[Run, list[int]]:
    """A run with acts, each at its end, and the row after which each came."""
    played = run(name, "rmq4.3", parameters)
    places = []
    for act, arguments in acts:
        places.append(len(played.rows) - 1)
        played = played.act(places[-1], act, **arguments)
    return played, places


def _credit_withheld(parameters: dict[str, Any], grants: Sequence[int]) -> Episode:
    """A receiver that grants by hand: its sender waits from its last message to the next grant."""
    acts = [("grant", {"link_credit": grant}) for grant in grants]
    played, places = _played("credit", parameters, acts)
    planted = list(_first_grants(played.rows))
    for place in places[1:]:
        start = _last(played.rows[: place + 1], SENT, "transfer", BROKER)
        end = _next(played.rows, place, RECEIVED, "flow", BROKER)
        planted.append(_stall("link-credit", start, end))
    sent = sum(1 for _ in _rows(played.rows, SENT, "transfer", BROKER))
    assert sent == sum(grants) < parameters["messages"]
    last = _last(played.rows, SENT, "transfer", BROKER)
    planted.append(_stall("link-credit", last, played.rows[-1], released=False))
    return Episode(rows=played.rows, planted=tuple(planted))


def _window_shut(parameters: dict[str, Any], windows: Sequence[int]) -> Episode:
    """A client that opens its window by hand: all links wait from the last frame that it took."""
    acts = [("open_window", {"frames": frames}) for frames in windows[1:]]
    given = {"messages": 20, "link_credit": 20, "client_window": windows[0], **parameters}
    played, places = _played("windows", given, acts)
    planted = list(_first_grants(played.rows))
    links = sorted({one.link for one in planted})
    for place in places:
        start = _last(played.rows[: place + 1], SENT, "transfer", BROKER)
        end = _next(played.rows, place, RECEIVED, "flow", BROKER)
        planted += [_stall("session-window", start, end, link=link) for link in links]
    sent = sum(1 for _ in _rows(played.rows, SENT, "transfer", BROKER))
    assert sent == sum(windows)
    last = _last(played.rows, SENT, "transfer", BROKER)
    planted += [
        _stall("session-window", last, played.rows[-1], link=link, released=False) for link in links
    ]
    return Episode(rows=played.rows, planted=tuple(planted))


def _alarm(parameters: dict[str, Any], busy: Sequence[str]) -> Episode:
    """Some publishers have messages while a resource alarm keeps the session's window at 0."""
    acts: list[Act] = [("alarm", {})]
    acts += [("publish", {"queue": link, "count": 12}) for link in busy]
    played, places = _played("publishers", parameters, [*acts, ("clear", {})])
    released = _next(played.rows, places[-1], RECEIVED, "flow", CLIENT)
    planted = []
    for link in busy:
        held = played.rows[places[1] + 1 : places[-1] + 1]
        start = next(row for row in held if row.event == "publish" and row.link == link)
        planted.append(_stall("alarm", start, released, link=link))
    return Episode(rows=played.rows, planted=tuple(planted))


def _unconfirmed(parameters: dict[str, Any]) -> Episode:
    """A queue hangs: the broker withholds its publisher's credit, and no other's.

    With a setting of 4 it grants at 2 left, unless 4 are unconfirmed. The first 4 messages bring
    the second and last grant; of the next 5 two can go. The other links go on.
    """
    acts: list[Act] = [
        ("stall", {}),
        ("publish", {"queue": "q1", "count": 4}),
        ("publish", {"queue": "q1", "count": 5}),
    ]
    others = [f"q{number}" for number in range(2, parameters["queues"] + 1)]
    acts += [("publish", {"queue": link, "count": 3}) for link in others]
    given = {"max_link_credit": 4, "rate": 0, **parameters}
    played, places = _played("publishers", given, [*acts, ("resume", {})])
    held = [row for row in played.rows[: places[-1] + 1] if row.link == "q1"]
    start = _last(held, SENT, "transfer", CLIENT)
    after = [row for row in played.rows[places[-1] + 1 :] if row.link == "q1"]
    end = next(_rows(after, RECEIVED, "flow", CLIENT))
    assert sum(1 for _ in _rows(held, SENT, "transfer", CLIENT)) == 6
    return Episode(rows=played.rows, planted=(_stall("unconfirmed", start, end),))


def _near(name: str, parameters: dict[str, Any], *acts: Act) -> Episode:
    """A run without a stall, but for that before a consumer's first grant."""
    played, _ = _played(name, parameters, acts)
    return Episode(rows=played.rows, planted=tuple(_first_grants(played.rows)))


def _first_grants(rows: Sequence[Row]) -> Iterator[Planted]:
    """A queue with messages waits from its consumer's attach to the first grant."""
    for start in _rows(rows, SENT, "attach", BROKER):
        if start.link_sender != BROKER or not (start.ledger or {}).get("available"):
            continue
        its = [row for row in rows[start.seq + 1 :] if row.link == start.link]
        yield _stall("link-credit", start, next(_rows(its, RECEIVED, "flow", BROKER)))


def _stall(
    brake: str, start: Row, end: Row, *, link: str | None = None, released: bool = True
) -> Planted:
    return Planted(
        link=str(link or start.link), brake=brake, start_seq=start.seq, end_seq=end.seq,
        released=released,
    )  # fmt: skip


def _rows(rows: Sequence[Row], event: str, kind: str, peer: str) -> Iterator[Row]:
    """Such frames as that peer logged them."""
    return (
        row for row in rows
        if row.event == event and row.kind == kind and row.vantage.split(":")[0] == peer
    )  # fmt: skip


def _next(rows: Sequence[Row], place: int, event: str, kind: str, peer: str) -> Row:
    """The first such frame after a row."""
    return next(_rows(rows[place + 1 :], event, kind, peer))


def _last(rows: Sequence[Row], event: str, kind: str, peer: str) -> Row:
    """The last such frame."""
    *_, last = _rows(rows, event, kind, peer)
    return last
