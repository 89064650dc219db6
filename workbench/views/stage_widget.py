"""The stage in a notebook: an anywidget that hosts `stage.js`, and acts on runs for it."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import anywidget
import traitlets

from workbench.scenarios.action import ActionError
from workbench.scenarios.branches import Branches
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.share import ShareCodeError
from workbench.scenarios.share import share_code as code_of
from workbench.trace.cut import Cut, cut_rows
from workbench.trace.fold import Scope

from .looked import looked
from .scene import MOST_ROWS, SceneMaker, packed
from .static_html import asset
from .stills import Still, scene_still

Doc = dict[str, Any]


class StageWidget(Still, anywidget.AnyWidget):
    """The picture of a run. What is done on it makes branches, here in the kernel.

    Args:
        run: a run, a part of one, a tree of runs, or rows in order of `seq`.
        at: `seq` of the row to begin at; a run begins where its set-up ends, a part of one at the
            row that it was cut for.
        acts: names of the acts that are offered; all of the scenario's if None.
        title: what the picture is called.
        link: the link whose number line comes first, or its name.
        note: what is to be said of the rows instead of the one idea.
        rules: names of misconceptions that can be shown beside the rule; those of the scenario if
            None.
        rule: the one of them that is shown at first.

    Attributes:
        scene: the scene as gzipped JSON; see `scene.schema.json`.
        cursor: place of the step shown, from 0. Follows the browser, and moves it.
        branch: the branch shown.
        told: what a note over the picture says.
        plays: it plays as soon as it is shown.
    """

    _esm = asset("stage.js")
    _css = asset("stage.css")

    scene = traitlets.Bytes().tag(sync=True)
    cursor = traitlets.Int(0, help="place of the step shown").tag(sync=True)
    branch = traitlets.Int(0, help="branch shown").tag(sync=True)
    told = traitlets.Unicode("", help="what a note says").tag(sync=True)
    plays = traitlets.Bool(False, help="it plays as soon as it is shown").tag(sync=True)

    def __init__(
        self,
        run: Any,
        *,
        at: int | None = None,
        title: str = "",
        acts: Collection[str] | None = None,
        link: Scope | str | None = None,
        note: str = "",
        rules: Collection[str] | None = None,
        rule: str = "",
    ) -> None:
        self._given = {"link": link, "acts": acts, "rules": rules, "rule": rule}
        cursor = self._load(run, at, title, note)
        branch = self.branches.current
        super().__init__(scene=packed(self._doc()), cursor=cursor, branch=branch)
        self.on_msg(lambda _widget, message, _buffers: self._answer(message))
        self.observe(self._moved, names="cursor")
        self.observe(lambda change: self.branches.select(change["new"]), names="branch")

    @property
    def branches(self) -> Branches:
        """Every run made so far."""
        return self._maker.branches

    @property
    def run(self) -> Any:
        """The run that is shown."""
        return self.branches.runs[self.branch]

    @property
    def seq(self) -> int:
        """`seq` of the row that is shown."""
        return self._maker.strip(self.branch).walk.rows[self.cursor].seq

    def show_run(self, run: Any, *, at: int | None = None, title: str = "", note: str = "") -> None:
        """Show another run, or the same as it is by now; arguments as of the class."""
        self.unobserve(self._moved, names="cursor")  # nobody has looked at a step of it yet
        cursor = self._load(run, at, title, note)
        self.show(self.branches.current, cursor)
        self.observe(self._moved, names="cursor")

    def _load(self, run: Any, at: int | None, title: str, note: str) -> int:
        """Make the scene's parts; gives the place of the step to begin at."""
        if isinstance(run, Cut):
            at = run.seq if at is None else at
        elif at is not None:
            run, note = _reaching(run, at, note)
        self._maker = SceneMaker(run, note=note, **self._given)
        self._title = title
        self._fixed = self._fixed_now()
        return self._maker.begin if at is None else self._place(at)

    def _doc(self) -> Doc:
        """The scene as it is now."""
        return self._maker.scene(self._title)

    def show(self, branch: int, cursor: int) -> None:
        """Draw the tree anew, and show a step of a branch."""
        doc = self._doc()
        self._fixed = self._fixed_now()
        with self.hold_sync():
            self.branch = branch
            self.cursor = cursor
            self.scene = packed(doc)

    def reply(self, message: Doc) -> Doc:
        """What comes of something done on the picture; a new branch stays, nothing else changes.

        Args:
            message: `{act, value, t, branch, step}`, as in `stage/types.ts`.

        Returns:
            `{"type": "branch", "branch": ...}`; `{"type": "illegal", "act": ..., "why": ...}` with
            what would be legal; `{"type": "code", "text": ..., "own": [...]}`, a share code; or
            `{"type": "verdict", ...}` where nothing is asked.
        """
        name, value = str(message.get("act")), message.get("value")
        if name in ("commit", "skip"):
            return {"type": "verdict", "verdict": None}
        if name == "share":
            return self._share(int(message["branch"]), int(message["step"]))
        here = self.branches.current
        try:
            number = self._do(name, value, int(message["branch"]), int(message["step"]))
        except (ActionError, ParameterError) as error:
            self.branches.select(here)
            return {"type": "illegal", "act": name, "why": " ".join(str(error).split())}
        return {"type": "branch", "branch": self._maker.branch(number)}

    def _share(self, branch: int, step: int) -> Doc:
        """The share code of a branch at a step, or why there is none."""
        run = self.branches.runs[branch]
        try:
            text = code_of(run, step + 1)
        except ShareCodeError as error:
            return {"type": "illegal", "act": "share", "why": f"{error}."}
        return {"type": "code", "text": text, "own": sorted(run.code)}

    def _do(self, name: str, value: Any, branch: int, step: int) -> int:
        """Act after a step of a branch; gives the number of the branch that comes of it."""
        if not 0 <= branch < len(self.branches.runs):
            raise ActionError(f"there is no branch {branch}")
        strip = self._maker.strip(branch)
        if strip.deeds is None:
            raise ActionError("these rows were recorded: nothing can be done to them")
        act, arguments = strip.deeds.act(name, value, step)
        self.branches.select(branch)
        self.branches.act(min(step, len(strip.steps) - 1), act, **arguments)
        return self.branches.current

    def _answer(self, message: Doc) -> None:
        """Send what comes of a message from the browser."""
        reply = self.reply(message)
        if reply["type"] != "branch":
            self.send(reply)
            return
        branch = reply["branch"]
        if self._fixed_now() == self._fixed:
            self.send({"gzip": True}, [packed(reply)])
            self.branch = branch["id"]
        else:  # The act brought a party or a link that the picture did not have.
            self.show(branch["id"], branch["keeps"])

    def _fixed_now(self) -> str:
        """All of the scene that a branch cannot change, as text."""
        head = self._maker.head(self._title)
        fixed = {key: value for key, value in head.items() if key not in ("ends", "pace")}
        fixed["lines"] = [
            {key: value for key, value in line.items() if key != "range"}
            for line in fixed.get("lines", ())
        ]
        fixed["acts"] = [act["id"] for act in fixed.get("acts", ())]
        return json.dumps(fixed, sort_keys=True)

    def _place(self, seq: int) -> int:
        """Place of the step that shows a row."""
        rows = self._maker.strip(self.branches.current).walk.rows
        place = next((place for place, row in enumerate(rows) if row.seq == seq), None)
        if place is None:
            shown = f"{rows[0].seq} to {rows[-1].seq}" if rows else "none"
            raise ValueError(f"at={seq!r:.40}: no row that is shown has this seq; legal: {shown}")
        return place

    def _moved(self, change: Any) -> None:
        for step in (change["old"], change["new"]):
            shown = step
            # A branch shows the steps of its parents up to where it leaves them.
            for branch in reversed(self.branches.path(self.branch)):
                rows = self._maker.strip(branch).walk.rows
                if 0 <= shown < len(rows):
                    looked.add(str(rows[shown].run), rows[shown].seq)
                fork = self.branches.fork(branch)
                shown = shown if fork is None else min(shown, fork)

    def still(self) -> str:
        """What is shown now, as text."""
        return scene_still(self._doc(), self.cursor, self.branch)

    def _still(self) -> str:
        return self.still()

    def __repr__(self) -> str:
        return self.still()


def _reaching(run: Any, at: int, note: str) -> tuple[Any, str]:
    """A run, or the part of a long one that is round a row, and what to say of it."""
    rows = getattr(run.run if isinstance(run, Branches) else run, "rows", run)
    if len(rows) <= MOST_ROWS or not rows[MOST_ROWS].seq <= at <= rows[-1].seq:
        return run, note
    first = min(at - rows[0].seq - MOST_ROWS // 2, len(rows) - MOST_ROWS)
    part = cut_rows(rows, at, first=first, end=first + MOST_ROWS)
    told = f"Rows {part.rows[0].seq:,} to {part.rows[-1].seq:,} of {len(rows):,}."
    return part, f"{note} {told}".strip()
