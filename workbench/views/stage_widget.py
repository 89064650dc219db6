"""The stage in a notebook: an anywidget that hosts `stage.js`, and acts on runs for it."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Any

import anywidget
import traitlets

from workbench.notebook import WrongValueError
from workbench.scenarios.action import ActionError
from workbench.scenarios.beside import Beside
from workbench.scenarios.branches import Branches
from workbench.scenarios.run import anew
from workbench.scenarios.run import run as play
from workbench.scenarios.share import ShareCodeError
from workbench.scenarios.share import share_code as code_of
from workbench.trace.cut import Cut, cut_rows
from workbench.trace.fold import Scope

from .looked import looked
from .scene import MOST_ROWS, SceneMaker, packed
from .scene_acts import PRESET, parameter_docs
from .static_html import asset, stage_module
from .stills import Still, say, scene_still

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
        beside: a misconception that is no rule of the picture's lines; it takes their place.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
        anew: whether the run can be begun anew with other values of its scenario's parameters.

    Attributes:
        scene: the scene as gzipped JSON; see `scene.schema.json`.
        cursor: place of the step shown, from 0. Follows the browser, and moves it.
        branch: the branch shown.
        tree: the tree of runs shown: 0 is that of the run as given, each of the others was begun
            anew with other values.
        told: what a note over the picture says.
        plays: it plays as soon as it is shown.
    """

    _esm = stage_module()
    _css = asset("stage.css")

    scene = traitlets.Bytes().tag(sync=True)
    # The page is ahead of its kernel: an echo of where it was would lead it back.
    cursor = traitlets.Int(0, help="place of the step shown").tag(sync=True, echo_update=False)
    branch = traitlets.Int(0, help="branch shown").tag(sync=True, echo_update=False)
    tree = traitlets.Int(0, help="tree of runs shown")
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
        beside: Beside | None = None,
        theirs: bool = False,
        anew: bool = False,
    ) -> None:
        self._given = {
            "link": link, "acts": acts, "rules": rules, "rule": rule, "beside": beside,
            "theirs": theirs,
        }  # fmt: skip
        self._anew = anew
        cursor = self._load(run, at, title, note)
        branch = self.branches.current
        super().__init__(scene=packed(self._doc()), cursor=cursor, branch=branch)
        self.on_msg(lambda _widget, message, _buffers: self._answer(message))
        self.observe(self._moved, names="cursor")
        self.observe(lambda change: self._turned(change["new"]), names="branch")

    @traitlets.validate("branch")
    def _branch_there(self, proposal: Any) -> int:
        """Of a page that has not heard yet that its run was begun anew, the place is an old one."""
        return self._known(proposal["value"])

    @traitlets.validate("cursor")
    def _step_there(self, proposal: Any) -> int:
        """A page tells branch and step together, so neither has been looked at yet."""
        return max(0, self._reached(self._known(self.branch), proposal["value"]))

    def _known(self, branch: int) -> int:
        """A branch, or the current one if there is none of that number."""
        return branch if 0 <= branch < len(self.branches.runs) else self.branches.current

    def _reached(self, branch: int, step: int) -> int:
        """A step, or the last one that the branch has."""
        return min(step, len(self._maker.strip(branch).steps) - 1)

    @property
    def branches(self) -> Branches:
        """Every run made so far."""
        return self._maker.branches

    @property
    def trees(self) -> list[Branches]:
        """What was begun so far: the run as given, then those with other values."""
        return [maker.branches for maker in self._makers]

    @property
    def run(self) -> Any:
        """The run that is shown."""
        return self.branches.runs[self.branch]

    @property
    def first_link(self) -> Scope | str | None:
        """The link whose number line was asked to come first, if it is in what is shown."""
        wanted = self._given["link"]
        name = wanted.link if isinstance(wanted, Scope) else wanted
        there = any(row.link == name for row in getattr(self.run, "rows", self.run))
        return wanted if there else None

    @property
    def seq(self) -> int:
        """`seq` of the row that is shown."""
        return self._maker.strip(self.branch).walk.rows[self.cursor].seq

    def show_run(self, run: Any, *, at: int | None = None, title: str = "") -> None:
        """Show another run, or the same as it is by now; arguments as of the class."""
        self.unobserve(self._moved, names="cursor")  # nobody has looked at a step of it yet
        cursor = self._load(run, at, title)
        self.tree = 0
        self.show(self.branches.current, cursor)
        self.observe(self._moved, names="cursor")

    def _load(self, run: Any, at: int | None, title: str, note: str = "") -> int:
        """Make the scene's parts; gives the place of the step to begin at."""
        if isinstance(run, Cut):
            at = run.seq if at is None else at
        elif at is not None:
            run, note = _reaching(run, at, note)
        self._maker = SceneMaker(run, note=note, **self._given)
        self._makers, self._left = [self._maker], dict[int, int]()
        self._title = title
        self._fixed = self._fixed_now()
        return self._maker.begin if at is None else self._place(at)

    def _doc(self) -> Doc:
        """The scene as it is now; it says its preset where that is not the given one."""
        doc = self._maker.scene(self._title)
        if self._anew and "acts" in doc:
            now, given = (tree.runs[0] for tree in (self.branches, self.trees[0]))
            doc["parameters"] = parameter_docs(now, given)
            if now.preset.name != given.preset.name:
                doc["title"] += f": {now.preset.title}"
        return doc

    def show(self, branch: int, cursor: int) -> None:
        """Draw the tree anew, and show a step of a branch."""
        doc = self._doc()
        self._fixed = self._fixed_now()
        with self.hold_sync():
            self.branch = branch
            self.cursor = cursor
            self.scene = packed(doc)

    def begin(self, values: Mapping[str, Any]) -> None:
        """Show the run of other values from its beginning; where it was begun before, as it was.

        Args:
            values: of the scenario's parameters, and `preset`, the name of one; those of the run
                that is shown if not told. Under another preset its numbers take the place of those
                that were the last one's.

        Raises:
            ValueError: a value is not legal, or they do not go together.
            ActionError: the scenario does by itself what is not legal then.
        """
        old = self.branches.runs[0]
        told = dict(values)
        named = told.pop(PRESET, old.preset.name)
        # A preset that was begun with may have numbers of its own.
        first = (one.runs[0].preset for one in self.trees)
        preset = next((one for one in first if one.name == named), str(named))
        preset, wanted = anew(old, told, preset)
        begun = [(tree.runs[0].preset, tree.runs[0].parameters) for tree in self.trees]
        if (preset, wanted) in begun:
            self.turn(begun.index((preset, wanted)))
            return
        run = play(old.scenario, preset, wanted, (), old.seed, old.max_rows, code=old.code)
        given = self._given
        if given["link"] not in {row.link for row in run.rows}:
            given = given | {"link": None}
        self._makers.append(SceneMaker(run, note=self._maker.note, **given))
        self.turn(len(self._makers) - 1)

    def turn(self, tree: int) -> None:
        """Show another tree of those that were begun, where it was left."""
        self.unobserve(self._moved, names="cursor")  # nobody has looked at a step of it yet
        self._left[self.tree] = self.cursor
        self._maker = self._makers[tree]
        self.show(self.branches.current, self._left.get(tree, self._maker.begin))
        self.observe(self._moved, names="cursor")
        self.tree = tree

    def reply(self, message: Doc) -> Doc:
        """What comes of something done on the picture; a new branch stays, nothing else changes.

        Args:
            message: `{act, value, t, branch, step}`, as in `stage/types.ts`.

        Returns:
            `{"type": "branch", "branch": ...}`; `{"type": "illegal", "act": ..., "why": ...}` with
            what would be legal; `{"type": "code", "text": ..., "own": [...]}`, a share code;
            `{"type": "done"}` where the run was begun anew; or `{"type": "verdict", ...}` where
            nothing is asked.
        """
        name, value = str(message.get("act")), message.get("value")
        if name in ("commit", "skip"):
            return {"type": "verdict", "verdict": None}
        if name == "share":
            return self._share(int(message["branch"]), int(message["step"]))
        here = self.branches.current
        try:
            if name == "begin" and self._anew:
                self.begin(value or {})
                return {"type": "done"}
            number = self._do(name, value, int(message["branch"]), int(message["step"]))
        except (ActionError, ValueError) as error:
            self.branches.select(here)
            why = self._maker.strip(here).by_name(" ".join(str(error).split()))
            return {"type": "illegal", "act": name, "why": why}
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
            raise ActionError(say("stage.no-branch", number=branch))
        strip = self._maker.strip(branch)
        if strip.deeds is None:
            raise ActionError(say("stage.recorded"))
        act, arguments = strip.deeds.act(name, value, step)
        self.branches.select(branch)
        self.branches.act(self._reached(branch, step), act, **arguments)
        return self.branches.current

    def _answer(self, message: Doc) -> None:
        """Send what comes of a message from the browser."""
        reply, asked = self.reply(message), {"view": message.get("view")}
        if reply["type"] != "branch":
            self.send(reply | asked)
            return
        branch = reply["branch"]
        if self._fixed_now() == self._fixed:
            self.send({"gzip": True} | asked, [packed(reply)])
            self.set_state({"branch": branch["id"]})  # not sent: the reply tells the page
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
            at = f"at={seq!r:.40}"
            if not rows:
                raise WrongValueError(say("stage.no-rows", at=at))
            raise WrongValueError(say("stage.no-row", at=at, first=rows[0].seq, last=rows[-1].seq))
        return place

    def _turned(self, branch: int) -> None:
        """Another branch is shown; if it has parties or links that others have not, draw anew."""
        self.branches.select(branch)
        self.cursor = self._reached(branch, self.cursor)
        if self._fixed_now() != self._fixed:
            self.show(branch, self.cursor)

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

    def __repr__(self) -> str:
        return self.still()


def _reaching(run: Any, at: int, note: str) -> tuple[Any, str]:
    """A run, or the part of a long one that is round a row, and what to say of it."""
    rows = getattr(run.run if isinstance(run, Branches) else run, "rows", run)
    if len(rows) <= MOST_ROWS or not rows[MOST_ROWS].seq <= at <= rows[-1].seq:
        return run, note
    place = bisect_left(rows, at, key=attrgetter("seq"))
    first = min(place - MOST_ROWS // 2, len(rows) - MOST_ROWS)
    part = cut_rows(rows, at, first=first, end=first + MOST_ROWS)
    told = say("stage.part", first=part.rows[0].seq, last=part.rows[-1].seq, all=len(rows))
    return part, f"{note} {told}".strip()
