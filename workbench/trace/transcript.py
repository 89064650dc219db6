"""A run as text, one line a step: for the terminal, a screen reader, print and tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import attrgetter

from workbench.languages import has, phrase

from .explain import Explainer, Explanation
from .fold import Change
from .given import takes
from .schema import OBSERVED, Row, peer_of
from .words import frame_text, spec_name, value_text, visible

say = partial(phrase, "steps")
known = partial(has, "steps")


def line(row: Row, explanation: Explanation) -> str:
    """One step in one line.

    Session counters are told only where the row is about no link, for they move with every
    transfer; an actor's counters stand in its sentence.

    `row 12  t=1.234 ms  client:receiver sent flow(...): sentence; sender's credit 3 → 2`
    """
    text = say(
        "line.step",
        number=row.seq, time=f"{row.t_us // 1000}.{row.t_us % 1000:03d} ms" if row.timed else "?",
        vantage=visible(row.vantage), event=visible(row.event),
    )  # fmt: skip
    if row.is_frame:
        text += f" {frame_text(row)}"
    text += f": {explanation.sentence}"
    changes = [
        change_text(row, change)
        for change in explanation.changes
        if change.scope.group == "link" or (change.scope.group == "session" and row.link is None)
    ]
    if changes:
        text = f"{text.removesuffix('.')}; {', '.join(changes)}"
    if explanation.formula is not None and row.kind == "flow":
        text += f"  [{explanation.formula}]"
    return text


def change_text(row: Row, change: Change) -> str:
    """`sender's credit 3 → 2`; without the arrow for a counter that is new."""
    name = say("line.credit") if change.field == "link_credit" else spec_name(change.field)
    owner = _owner(row, change)
    whose = say(
        f"whose.{owner}" if known(f"whose.{owner}") else "whose.other", owner=owner, name=name
    )
    before = "" if change.before is None else f"{value_text(change.before)} → "
    return f"{whose} {before}{value_text(change.after)}".strip()


def _owner(row: Row, change: Change) -> str:
    scope = change.scope
    if scope.group == "link" and scope.link_sender is not None:
        if row.event == OBSERVED:
            return "sender"
        return "sender" if peer_of(change.vantage) == scope.link_sender else "receiver"
    return scope.link_sender or visible(change.vantage)


@takes
def transcript(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of a run, whose rows are in order, or of several runs one after the other."""
    for _, run in groupby(rows, key=attrgetter("run")):
        explainer = Explainer()
        for row in run:
            yield line(row, explainer.explain(row))
