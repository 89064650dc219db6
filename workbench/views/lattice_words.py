"""What the lattice shows, in words: counts, depths, a state, and a schedule move by move.

The page without a kernel, the screen reader and the picture's hover all take their text from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.languages import count
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkView,
)
from workbench.sim.explorer import Exploration

GOOD, BAD = "good", "bad"
BAD_MEANS = (
    "Bad is a state in which the sender's delivery-count + link-credit lies beyond the furthest"
    " limit that the receiver ever granted: it could send what nobody allowed."
)


def summary(found: Exploration[Any, Any]) -> str:
    """What was found, in a sentence or two."""
    bad = f"{found.bad:,} of them bad" if found.bad else "none of them bad"
    text = f"{found.states:,} states, {bad}"
    if not found.complete:
        return f"{text}. The search is not complete: {found.stopped}. It proves nothing."
    if found.shortest is None:
        return f"{text}. That is every state there is, so no schedule leads to a bad one: a proof."
    moves = count(len(found.shortest), "move")
    return f"{text}. That is every state there is. A shortest bad schedule has {moves}."


def bad_levels(found: Exploration[Any, Any]) -> list[int]:
    """How many bad states there are at each depth."""
    depths = found.depths()
    counts = [0] * (max(depths) + 1)
    for index in found.bad_at:
        counts[depths[index]] += 1
    return counts


def words(found: Exploration[Any, Any]) -> str:
    """The picture in words: how many states at each depth, and the shortest bad schedule."""
    lines = [summary(found), "", "moves made   states   bad"]
    lines += [
        f"{depth:>10} {states:>8} {bad:>5}"
        for depth, (states, bad) in enumerate(zip(found.levels(), bad_levels(found), strict=True))
    ]
    if found.shortest is not None:
        lines += ["", f"A shortest bad schedule: {', '.join(map(str, found.shortest))}."]
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
    return (
        f"sender at {view.snd_delivery_count} with credit {view.snd_link_credit},"
        f" {view.messages_left} left",
        f"receiver at {view.rcv_delivery_count}, limit {view.furthest_limit}",
        f"on the wire: {wire_words(view)}",
    )


def wire_words(view: LinkView) -> str:
    """What is in flight."""
    flying = [count(view.transfers_in_flight, "transfer")] if view.transfers_in_flight else []
    flying += [f"flow({counted}, {credit})" for counted, credit in view.flows_in_flight]
    return ", ".join(flying) or "nothing"


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
    return (
        f"The sender holds link-credit {view.snd_link_credit} at delivery-count"
        f" {view.snd_delivery_count}; the furthest limit ever granted is {view.furthest_limit}, so"
        f" only {max(0, view.allowed)} may still be sent."
    )


def _view(model: Any, state: Any) -> LinkView | None:
    describe = getattr(model, "describe", None)
    return None if describe is None else describe(state)


def _move_words(model: Any, state: Any, move: Any, after: Any) -> str:
    was, now = _view(model, state), _view(model, after)
    if was is None or now is None:
        return str(move)
    if move == SEND_FLOW:
        counted, credit = now.flows_in_flight[-1]
        return (
            f"The receiver sends flow(delivery-count={counted}, link-credit={credit});"
            f" its furthest limit is {now.furthest_limit}."
        )
    if move == FLOW_ARRIVES:
        counted, credit = was.flows_in_flight[0]
        return (
            f"flow(delivery-count={counted}, link-credit={credit}) reaches the sender, which makes"
            f" link-credit {now.snd_link_credit} of it (was {was.snd_link_credit})."
        )
    if move == SEND_TRANSFER:
        return (
            f"The sender sends a message: delivery-count {now.snd_delivery_count}, link-credit"
            f" {now.snd_link_credit}."
        )
    if move == TRANSFER_ARRIVES:
        return f"The message arrives: the receiver's delivery-count is {now.rcv_delivery_count}."
    return str(move)
