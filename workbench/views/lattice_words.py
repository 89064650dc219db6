"""What the lattice shows, in words: counts, depths, a state, and a schedule move by move.

The page without a kernel, the screen reader and the picture's hover all take their text from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from workbench.languages import phrase
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkView,
)
from workbench.sim.explorer import Exploration

GOOD, BAD = "good", "bad"
say = partial(phrase, "lattice")


def summary(found: Exploration[Any, Any]) -> str:
    """What was found, in a sentence or two."""
    text = say("found.bad" if found.bad else "found.none-bad", n=found.states, bad=found.bad)
    if not found.complete:
        return f"{text} {say('found.incomplete', why=found.stopped)}"
    if found.shortest is None:
        return f"{text} {say('found.proof')}"
    return f"{text} {say('found.shortest', n=len(found.shortest))}"


def bad_levels(found: Exploration[Any, Any]) -> list[int]:
    """How many bad states there are at each depth."""
    depths = found.depths()
    counts = [0] * (max(depths) + 1)
    for index in found.bad_at:
        counts[depths[index]] += 1
    return counts


def words(found: Exploration[Any, Any]) -> str:
    """The picture in words: how many states at each depth, and the shortest bad schedule."""
    lines = [summary(found), ""]
    lines += [f"{say('column.moves'):>10} {say('column.states'):>8} {say('column.bad'):>5}"]
    lines += [
        f"{depth:>10} {states:>8} {bad:>5}"
        for depth, (states, bad) in enumerate(zip(found.levels(), bad_levels(found), strict=True))
    ]
    if found.shortest is not None:
        lines += ["", say("found.schedule", moves=", ".join(map(str, found.shortest)))]
        lines += sentences(found.model, found.shortest)
    return "\n".join(lines)


def verdict(found: Exploration[Any, Any], index: int) -> str:
    """`good` or `bad`."""
    return BAD if found.model.bad(found.ordered[index]) else GOOD


def state_words(found: Exploration[Any, Any], index: int) -> str:
    """A state in a line."""
    return "; ".join(state_parts(found.model, found.ordered[index]))


def state_parts(model: Any, state: Any) -> tuple[str, ...]:
    """A state of a link as sender, receiver and wire; any other state as it prints."""
    view = _view(model, state)
    if view is None:
        return (str(state),)
    at, credit = view.snd_delivery_count, view.snd_link_credit
    sender = say("state.sender", at=at, credit=credit, left=view.messages_left)
    receiver = say("state.receiver", at=view.rcv_delivery_count, limit=view.furthest_limit)
    return sender, receiver, say("state.wire", flying=wire_words(view))


def wire_words(view: LinkView) -> str:
    """What is in flight."""
    transfers = view.transfers_in_flight
    flying = [say("state.transfers", n=transfers)] if transfers else []
    flying += [f"flow({counted}, {credit})" for counted, credit in view.flows_in_flight]
    return ", ".join(flying) or say("state.nothing")


def sentences(model: Any, moves: Iterable[Any]) -> list[str]:
    """A schedule move by move, with its numbers; and in the end what is bad, if it is."""
    state, told = model.initial, []
    for number, move in enumerate(moves, start=1):
        after = dict(model.successors(state))[move]
        told.append(f"{number}. {_move_words(model, state, move, after)}")
        state = after
    view = _view(model, state)
    if view is not None and view.snd_link_credit > view.allowed:
        told.append(overrun(view))
    return told


def overrun(view: LinkView) -> str:
    """What is bad about a state in which the sender may send too much."""
    at, credit = view.snd_delivery_count, view.snd_link_credit
    limit, allowed = view.furthest_limit, max(0, view.allowed)
    return say("state.overrun", at=at, credit=credit, limit=limit, allowed=allowed)


def _view(model: Any, state: Any) -> LinkView | None:
    describe = getattr(model, "describe", None)
    return None if describe is None else describe(state)


def _move_words(model: Any, state: Any, move: Any, after: Any) -> str:
    was, now = _view(model, state), _view(model, after)
    if was is None or now is None:
        return str(move)
    if move == SEND_FLOW:
        counted, credit = now.flows_in_flight[-1]
        return say("move.send-flow", count=counted, credit=credit, limit=now.furthest_limit)
    if move == FLOW_ARRIVES:
        counted, credit = was.flows_in_flight[0]
        makes = {"now": now.snd_link_credit, "was": was.snd_link_credit}
        return say("move.flow-arrives", count=counted, credit=credit, **makes)
    if move == SEND_TRANSFER:
        at, credit = now.snd_delivery_count, now.snd_link_credit
        return say("move.send-transfer", count=at, credit=credit)
    if move == TRANSFER_ARRIVES:
        return say("move.transfer-arrives", count=now.rcv_delivery_count)
    return str(move)
