"""The bug museum: real mistakes about flow control, each played here, wrong and right.

The words and sources stand in `museum.toml` of each language; this module plays. A mistake of a
sender runs on the broker's link, found by the explorer in the shortest schedule in which it hurts;
one of a reader reads a trace; one of an AMQP 0-9-1 client is that client in scenario `sharing`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import ipywidgets as widgets

from workbench import languages, serial
from workbench.notebook import WrongValueError
from workbench.presets import UINT_MAX
from workbench.scenarios import beliefs
from workbench.scenarios.beliefs import NEVER_USED_UP, Belief
from workbench.scenarios.link_model import FLOW_ARRIVES, SEND_FLOW, LinkModel
from workbench.scenarios.race import LINK, YOURS
from workbench.scenarios.rules import RULES
from workbench.scenarios.run import Run, run
from workbench.scenarios.schedules import play, play_model
from workbench.scenarios.sharing import FIRST, PUBLISHER, SECOND
from workbench.scenarios.window_beliefs import WindowBelief
from workbench.sim.explorer import Bounds, explore
from workbench.trace.schema import BROKER
from workbench.views.scene import parts_at
from workbench.views.stage_widget import StageWidget
from workbench.views.stills import Still

from . import measure, museum_readers, recall
from .audit import audit, audited_run
from .predict import PredictionView
from .progress import Progress, progress
from .question import Prediction, Question, Solution, say
from .table import Table, table_of
from .table import say as say_here

LESSON = "11"
GUESSES = 4
BOUNDS = Bounds(states=20_000, seconds=5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A piece with its mistake, or without it.

    Attributes:
        run: what happens.
        figure: how much it hurts; 0: not at all.
        rule: a misconception whose line is drawn beside the rule's; empty if none is.
        table: what a reader says beside the truth; None if nobody reads.
        link: of the line that is shown first.
    """

    run: Run
    figure: int
    rule: str = ""
    table: Table | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A mistake and its cure.

    Attributes:
        wrong: the mistake at work, in the shortest run in which it hurts.
        right: the same without it.
        facts: what the words name.
    """

    wrong: Played
    right: Played
    facts: Mapping[str, Any] = field(default_factory=dict)


# -- mistakes of a sender


def _beyond(played: Run, allowed: int) -> int:
    """How much credit the sender has beyond what was ever allowed, at the end of a run."""
    return max(0, int(measure.credit(played.rows, BROKER) or 0) - allowed)


def _sender(rule: str, start: int = 0) -> Piece:
    """A sender with a wrong rule, in the shortest schedule in which it may send too much."""
    model = LinkModel(
        messages=4, grants=(3, 6), rule=RULES[rule].rule, initial_delivery_count=start
    )
    found = explore(model, BOUNDS, stop_at_bad=True)
    assert found.shortest is not None
    allowed = max(0, model.describe(found.bad_states[0]).allowed)
    wrong = play_model(model, found.shortest, rule)
    right = play_model(model, found.shortest, "spec")  # the same moves, by the rule
    return Piece(
        wrong=Played(run=wrong, figure=_beyond(wrong, allowed)),
        right=Played(run=right, figure=_beyond(right, allowed)),
        facts={"allowed": allowed, "start": start, "moves": len(found.shortest)},
    )


def _signed(flow_count: int, flow_credit: int, own_count: int, own_credit: int) -> int:
    """A sender that reads link-credit as two's complement."""
    signed = flow_credit - UINT_MAX - 1 if flow_credit >= serial.HALF else flow_credit
    return RULES["spec"].rule(flow_count, max(0, signed), own_count, own_credit)


def _never_sends() -> Piece:
    """The largest credit there is, read as −1."""
    moves = (SEND_FLOW, FLOW_ARRIVES)
    wrong = play(moves, messages=1, grants=(UINT_MAX,), rule=YOURS, rule_function=_signed)
    right = play(moves, messages=1, grants=(UINT_MAX,))
    missing = [UINT_MAX - int(measure.credit(one.rows, BROKER) or 0) for one in (wrong, right)]
    return Piece(
        wrong=Played(run=wrong, figure=missing[0]),
        right=Played(run=right, figure=missing[1]),
        facts={"granted": UINT_MAX, "wrong_credit": UINT_MAX - missing[0]},
    )


def _believed(belief: Belief | WindowBelief, counter: str) -> Piece:
    """A rule drawn beside the right one, in the shortest schedule in which they part."""
    found = beliefs.counterexample(belief)
    assert found is not None
    played = found.run()
    link = LINK if played.scenario.name == "race" else None
    parts = parts_at(played, belief.name, link)
    assert parts is not None
    told = measure.counter(played.rows, BROKER, counter, upto=played.rows[parts].seq)
    return Piece(
        wrong=Played(
            run=played, figure=abs(found.believed - found.actual), rule=belief.name, link=link
        ),
        # What the broker's own link has where they part: no model has a say in it.
        right=Played(run=played, figure=abs(int(told) - found.actual), link=link),
        facts={"believed": found.believed, "actual": found.actual},
    )


# -- mistakes of a reader


def _reader(
    make: type[museum_readers.RightReader], start: int = 0, played: Run | None = None
) -> Piece:
    """A reader beside the truth, in a run with everything in it that one can trip over."""
    played = played or audited_run(3, initial_delivery_count=start)

    def read(kind: type[museum_readers.RightReader]) -> Played:
        found = audit(played, kinds=(kind,))
        first = found.first_wrong(kind.name)
        lines = found.table.lines
        if first is not None:
            # Up to the first frame that it gets wrong, and one more.
            upto = next(n for n, line in enumerate(found.lines) if line.seq == first)
            lines = lines[: upto + 2]
        reader, frames = say_here(f"museum.{kind.name}"), len(found.lines)
        table = table_of("museum", lines, reader=reader, last=len(lines), frames=frames)
        return Played(run=played, figure=found.wrong(kind.name), table=table)

    return Piece(
        wrong=read(make),
        right=read(museum_readers.RightReader),
        facts={"start": start, "frames": len(audit(played).lines)},
    )


def _drained_late() -> Run:
    """A drain is asked for, and messages that were ready come before its answer."""
    held = run("credit", parameters={"messages": 2}).then("hold", direction="c2b")
    asked = held.then("grant", link_credit=5).then("drain")
    return asked.then("release", direction="c2b")


# -- mistakes of an AMQP 0-9-1 client


def _sharing(**parameters: Any) -> Run:
    return run("sharing", parameters=parameters)


def _consumer(played: Run, name: str) -> Any:
    return played.world.peers["c2"].tasks[name]


def _held(played: Run) -> int:
    return sum(len(_consumer(played, name).unacknowledged) for name in (FIRST, SECOND))


def _blocked_ignored() -> Piece:
    def flood(heeds: bool) -> Played:
        short = _sharing(messages=0, heeds_blocked=heeds).then("alarm")
        played = short.then("publish", count=1).then("publish", count=8)
        return Played(run=played, figure=_limbo(played)[2])

    wrong, right = flood(False), flood(True)
    published, read, _ = _limbo(wrong.run)
    return Piece(wrong=wrong, right=right, facts={"published": published, "read": read})


def _limbo(played: Run) -> tuple[int, int, int]:
    """How many were published, how many the broker read whole, how many came after its alarm."""
    published = played.world.peers["c1"].tasks[PUBLISHER].published
    read = sum(_is(row, "content-body", "received") for row in played.rows if row.vantage == BROKER)
    told = next(row.seq for row in played.rows if _is(row, "connection.blocked", "received"))
    late = [row for row in played.rows[told:] if _is(row, "basic.publish", "sent")]
    return published, read, len(late)


def _is(row: Any, kind: str, event: str) -> bool:
    return (row.kind, row.event) == (kind, event)


def _alarm_unheard() -> Piece:
    silent = _sharing(messages=0).then("alarm")
    probed = silent.then("publish", count=1)

    def unheard(played: Run) -> int:
        told = played.world.peers["c1"].amqp.blocked
        return len(played.world.broker.alarms) if told is None else 0

    return Piece(
        wrong=Played(run=silent, figure=unheard(silent)),
        right=Played(run=probed, figure=unheard(probed)),
        facts={
            "alarms": " and ".join(f"a {name} alarm" for name in silent.world.broker.alarms),
            "wrong_told": silent.world.peers["c1"].amqp.blocked or "nothing",
        },
    )


def _prefetch_shared() -> Piece:
    prefetch = 3
    wrong, right = (
        _sharing(messages=12, prefetch=prefetch, shared=shared) for shared in (False, True)
    )
    return Piece(
        wrong=Played(run=wrong, figure=max(0, _held(wrong) - prefetch)),
        right=Played(run=right, figure=max(0, _held(right) - prefetch)),
        facts={"prefetch": prefetch, "wrong_held": _held(wrong)},
    )


def _huge_prefetch() -> Piece:
    messages, prefetch = 12, 3

    def helped(prefetch: int) -> Played:
        played = _sharing(messages=messages, prefetch=prefetch, later=True, works=True)
        played = played.then("consume")
        most = messages - len(_consumer(played, FIRST).unacknowledged)
        stuck = 0 if _consumer(played, SECOND).received else messages - most
        return Played(run=played, figure=stuck)

    wrong = helped(0)
    return Piece(
        wrong=wrong,
        right=helped(prefetch),
        facts={
            "messages": messages,
            "held": len(_consumer(wrong.run, FIRST).unacknowledged),
            "wrong_got": _consumer(wrong.run, SECOND).received,
        },
    )


def _cancel_order() -> Piece:
    begun = _sharing(messages=6, prefetch=2, later=True, works=True).then("cancel")

    def late(played: Run) -> Played:
        order = _consumer(played, SECOND).order
        turned = sum(a > b for n, a in enumerate(order) for b in order[n + 1 :])
        return Played(run=played, figure=turned)

    wrong = late(begun.then("consume").then("give_back"))
    right = late(begun.then("give_back").then("consume"))
    order = ", ".join(map(str, _consumer(wrong.run, SECOND).order))
    return Piece(wrong=wrong, right=right, facts={"wrong_order": order})


PIECES: Mapping[str, Callable[[], Piece]] = {
    "adds": lambda: _sender("add"),
    "never-used-up": lambda: _believed(NEVER_USED_UP, "link_credit"),
    "signed": _never_sends,
    "no-wrap": lambda: _sender("naive", start=UINT_MAX),
    "drain-kept": lambda: _believed(beliefs.ALL["drain is pause"], "link_credit"),
    "window-messages": lambda: _believed(
        beliefs.ALL["the window counts messages"], "remote_incoming_window"
    ),
    "from-zero": lambda: _reader(museum_readers.CountsFromZero, start=20),
    "takes-the-flow": lambda: _reader(museum_readers.TakesTheFlow),
    "absent-more": lambda: _reader(museum_readers.NeedsMore),
    "forgets-the-drain": lambda: _reader(museum_readers.ForgetsTheDrain),
    "drain-at-once": lambda: _reader(museum_readers.GivesUpAtOnce, played=_drained_late()),
    "counts-down": lambda: _reader(museum_readers.CountsDown, start=20),
    "blocked-ignored": _blocked_ignored,
    "alarm-unheard": _alarm_unheard,
    "prefetch-shared": _prefetch_shared,
    "huge-prefetch": _huge_prefetch,
    "cancel-order": _cancel_order,
}


@cache
def piece(name: str) -> Piece:
    """A piece of the museum, played once.

    Raises:
        WrongValueError: if there is none of that name; the text lists them.
    """
    if name not in PIECES:
        raise WrongValueError(
            say_here("museum.no-piece", name=repr(name), listed=", ".join(PIECES))
        )
    return PIECES[name]()


def words() -> Mapping[str, Mapping[str, Any]]:
    """What the museum says of each piece."""
    return languages.words("museum")


def told(name: str, text: str) -> str:
    """A text of a piece, with its numbers: `looks`, `hurts` or `cure`."""
    found = piece(name)
    return languages.told(words()[name][text], {**found.facts, "figure": found.wrong.figure})


def guesses(name: str, form: int = 0) -> tuple[str, ...]:
    """The labels among which the learner chooses: this piece's and others, by the form."""
    names = list(PIECES)
    here = names.index(name)
    rest = [*names[here + 1 :], *names[:here]]
    # The right one stands in each place in turn.
    others = [rest[(step + form) % len(rest)] for step in (2, 5, 9)][: GUESSES - 1]
    others.insert((here + form) % GUESSES, name)
    return tuple(str(words()[one]["label"]) for one in others)


def question(name: str) -> Question:
    """What is wrong here? Asked before the label is shown."""
    return _asked(name, say("museum", looks=told(name, "looks")), "hurts")


def _again(name: str, form: int) -> Question:
    """The mistake by what it did, without a picture: for later lessons."""
    return _asked(name, say("museum-again", hurts=told(name, "hurts")), "cure", form)


def _asked(name: str, text: str, reason: str, form: int = 0) -> Question:
    return Question(
        name=f"{LESSON}/museum-{name}",
        text=text,
        choices=guesses(name, form),
        solve=lambda: Solution(answer=str(words()[name]["label"]), reason=told(name, reason)),
    )


for _name in PIECES:
    recall.register(LESSON, f"museum-{_name}")(partial(_again, _name))


# -- what a learner sees


class PieceStage(StageWidget):
    """A piece on the stage; a rule beside the right one does not tell its name."""

    def _doc(self) -> dict[str, Any]:
        doc = super()._doc()
        for rule in doc.get("rules", ()):
            rule["name"] = say_here("museum.rule-here")  # before its label is shown
        return doc


def stage_of(played: Played, title: str) -> StageWidget:
    """A piece, wrong or right, on the stage."""
    rule = played.rule
    rules = [rule] if rule else []
    return PieceStage(
        played.run, title=title, acts=[], link=played.link, rules=rules, rule=rule, theirs=True
    )


class PieceView(Still, widgets.VBox):
    """One piece: the picture, the guess, and then the label, the source, and the right rule.

    Args:
        name: of the piece.
        log: where the guess is kept.
    """

    still_is_prose = True

    def __init__(self, name: str, log: Progress = progress) -> None:
        self.name = name
        number = list(PIECES).index(name) + 1
        self.title = say_here("museum.title", number=number, all=len(PIECES))
        played = piece(name).wrong
        self.picture = stage_of(played, self.title)
        self.asked = PredictionView(Prediction(question(name)), log)
        self.label = widgets.HTML()
        self.cure = widgets.Button(
            description=say_here("museum.cure"), tooltip=say_here("museum.cure-tip")
        )
        self.place = widgets.VBox()
        table = [] if played.table is None else [widgets.HTML(played.table._repr_html_())]
        super().__init__(children=[self.picture, *table, self.asked, self.label, self.place])
        for button in (self.asked.compare, self.asked.give_up):
            button.on_click(lambda _button: self._show())
        self.cure.on_click(lambda _button: self._cure())

    def _show(self) -> None:
        """The label, once a guess was compared."""
        verdict = self.asked.prediction.verdict
        if verdict is None or verdict.right is None or self.label.value:
            return
        about = words()[self.name]
        sources = "".join(
            f'<li><a href="{html.escape(one["url"])}" rel="noopener">{html.escape(one["project"])}'
            f"</a>, {html.escape(one['version'])}</li>"
            for one in about["sources"]
        )
        self.label.value = (
            '<div role="status" style="line-height:1.5;max-width:62em;white-space:normal">'
            f"<strong>{html.escape(self.title)}: {html.escape(about['label'])}.</strong>"
            f" {languages.on_page(told(self.name, 'cure'))}"
            f"<ul>{sources}</ul></div>"
        )
        self.place.children = (self.cure,)

    def _cure(self) -> None:
        self.cure.disabled = True
        right = piece(self.name).right
        table = [] if right.table is None else [widgets.HTML(right.table._repr_html_())]
        shown = stage_of(right, say_here("museum.cured", title=self.title))
        self.place.children = (self.cure, shown, *table)

    def __repr__(self) -> str:
        return f"{self.title}\n{self.asked!r}"


class Museum(Still, widgets.VBox):
    """All pieces, one at a time."""

    still_is_prose = True

    def __init__(self, log: Progress = progress) -> None:
        self._log = log
        self.choose = widgets.Dropdown(
            options=[
                (say_here("museum.piece", n=n), name) for n, name in enumerate(PIECES, start=1)
            ],
            description=say_here("museum.show"),
        )
        self.next = widgets.Button(
            description=say_here("museum.next"), tooltip=say_here("museum.next-tip")
        )
        self.place = widgets.VBox()
        self.shown: PieceView | None = None
        super().__init__(children=[widgets.HBox([self.choose, self.next]), self.place])
        self.choose.observe(lambda change: self._open(change["new"]), names="value")
        self.next.on_click(lambda _button: self._next())
        self._open(self.choose.value)

    def _open(self, name: str) -> None:
        old, self.shown = self.shown, PieceView(name, self._log)
        self.place.children = (self.shown,)
        if old is not None:
            old.picture.close()
            old.close()

    def _next(self) -> None:
        names = list(PIECES)
        self.choose.value = names[(names.index(self.choose.value) + 1) % len(names)]

    def __repr__(self) -> str:
        return f"{say_here('museum.pieces', n=len(PIECES))}\n{self.shown!r}"


def museum() -> Museum:
    """The bug museum: guess from the picture, then read what it was, and who made it."""
    return Museum()


__all__ = [
    "PIECES",
    "Museum",
    "PieceView",
    "museum",
    "piece",
    "words",
]
