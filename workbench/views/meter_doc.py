"""What the brake meter shows at each step, as plain JSON: counters, what holds, and words.

The kernel works every step out once; the browser only looks up the step. A state is written once,
however many steps share it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from workbench.trace import brakes
from workbench.trace.braking import Held, held_by, links_of
from workbench.trace.fold import Scope
from workbench.trace.schema import CLIENT, Row

from . import theme

# The lines of the meter in the order of `brakes.ORDER`: brake, its name, unit of its counter.
LINES: tuple[tuple[str, str, str], ...] = (
    (brakes.NO_MESSAGE, "messages to send", "messages"),
    (brakes.UNCONFIRMED, "waiting for a confirm", "messages"),
    (brakes.LINK_CREDIT, "link credit", "messages"),
    (brakes.ALARM, "alarm", ""),
    (brakes.SESSION_WINDOW, "session window", "frames"),
    (brakes.TCP, "TCP", ""),
)
FREE = "Nothing holds this sender."
NOT_YET = "This link has not been heard of yet."


def counters(held: Held) -> list[Any]:
    """What stands in each line: a number, a text, or None where it is not known."""
    alarms = " and ".join(held.alarms) if held.alarms else "none"
    return [
        held.available,
        held.unconfirmed,
        held.link_credit,
        alarms,
        held.window,
        "takes no more" if held.full else "takes octets",
    ]


def _lit(held: Held) -> list[bool]:
    """Of each line that has no number: whether its bar is full."""
    return [
        (brake == brakes.ALARM and bool(held.alarms)) or (brake == brakes.TCP and held.full)
        for brake, *_ in LINES
    ]


def sentence(held: Held) -> str:
    """The binding brake in words, and what else holds."""
    if not held.known:
        return NOT_YET
    if not held.brakes:
        return FREE
    text = f"Held by {held.brake}: {brakes.WORDS[held.brake]}."
    others = ", ".join(held.brakes[1:])
    return f"{text} Also on: {others}." if others else text


def choose_link(links: Sequence[Scope], wanted: Scope | str | None) -> int:
    """The place of a link that is named, or of the first.

    Raises:
        ValueError: there is none of that name; the text lists the names.
    """
    if wanted is None:
        return 0
    for place, link in enumerate(links):
        if link == wanted or link.link == wanted:
            return place
    listed = ", ".join(str(link.link) for link in links) or "none"
    raise ValueError(f"no link {wanted!r} sends in this run; there are: {listed}")


def meter_doc(
    rows: Sequence[Row], *, link: Scope | str | None = None, every_sender: bool = False
) -> dict[str, Any]:
    """The document of a brake meter.

    Args:
        rows: of one run.
        link: which link is shown first; the first one if None.
        every_sender: links over which the broker sends, too; else those of clients alone, unless
            there are none.

    Raises:
        ValueError: the run has no such link.
    """
    found = [] if every_sender else links_of(rows, sender=CLIENT)
    links = found or links_of(rows)
    return {
        "links": [_link(rows, one) for one in links],
        "link": choose_link(links, link),
        "steps": len(rows),
        "lines": [
            {"brake": brake, "name": name, "unit": unit, **_look(brake)}
            for brake, name, unit in LINES
        ],
    }


def _look(brake: str) -> dict[str, str]:
    style = theme.BRAKE_STYLES[brake]
    return {"colour": style.colour, "hatch": style.hatch}


def _link(rows: Sequence[Row], link: Scope) -> dict[str, Any]:
    held = held_by(rows, link)
    places: dict[Held, int] = {Held(): 0}
    steps, states = [0], [0]
    for step, one in enumerate(held, start=1):
        place = places.setdefault(one, len(places))
        if place != states[-1]:
            steps.append(step)
            states.append(place)
    shown = [[counters(one), list(one.brakes), sentence(one), _lit(one)] for one in places]
    full = [
        max((value for values, *_ in shown if isinstance(value := values[line], int)), default=0)
        for line in range(len(LINES))
    ]
    session = f", session {link.session}" if link.session not in (None, 1) else ""
    return {
        "name": f"{link.link}{session}",
        "steps": steps,
        "states": states,
        "shown": shown,
        "full": full,
    }


def state_at(doc: dict[str, Any], step: int, link: int | None = None) -> list[Any]:
    """What the meter shows at a step: counters by line, brakes, the sentence, and full bars."""
    chosen = doc["links"][doc["link"] if link is None else link]
    place = bisect_right(chosen["steps"], step) - 1
    state: list[Any] = chosen["shown"][chosen["states"][max(0, place)]]
    return state


def meter_words(doc: dict[str, Any], step: int, link: int | None = None) -> str:
    """The meter at a step as text: the sentence, and a line for each brake."""
    if not doc["links"]:
        return "No link in these rows."
    number = doc["link"] if link is None else link
    chosen = doc["links"][number]
    values, on, text, _ = state_at(doc, step, number)
    lines = [f"Link {chosen['name']}, step {step} of {doc['steps']}. {text}"]
    for line, value, most in zip(doc["lines"], values, chosen["full"], strict=True):
        mark = "▶" if on and line["brake"] == on[0] else "•" if line["brake"] in on else " "
        state = {"▶": "binding", "•": "on too", " ": ""}[mark]
        lines.append(
            f"{mark} {line['name']:<22} {value_words(value, most, line['unit']):<24} {state}"
        )
    return "\n".join(line.rstrip() for line in lines)


def value_words(value: Any, most: int, unit: str) -> str:
    """A counter with what the run's largest value was, such as `85 of 170 messages`."""
    if value is None:
        return "not told"
    if isinstance(value, str):
        return value
    return f"{value} of {most} {unit}"
