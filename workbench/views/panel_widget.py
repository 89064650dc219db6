"""The learner's desk: acts, branches, parameters and a message line round a stepper.

Three parts, as everywhere in the views: `PanelModel` knows what is so and no widget, `PanelView`
holds widgets and knows nothing, `Panel` links the two. The controls are built from the scenario's
own declarations of its acts and parameters.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from workbench.scenarios.declare import ActionSpec, Kind, Parameter
from workbench.scenarios.run import presets

from .meter_widget import BrakeMeter
from .panel_model import PanelModel
from .share_view import ShareBox, ShareCodeError, share_code
from .stepper_widget import StepperWidget
from .stills import with_still

_FRAME = "frame_id"
_DIRECTION = "direction"
_UNITS = {"us": "µs"}
_AUTO = {"width": "auto"}


class Field:
    """One argument or parameter as a control.

    Args:
        parameter: its declaration: type, range, unit and meaning.
        value: what it shows at first.
    """

    def __init__(self, parameter: Parameter, value: Any) -> None:
        self.parameter = parameter
        self.widget = self._widget(parameter, value)

    @property
    def value(self) -> Any:
        """What stands in the control, as the declaration's type if it is one."""
        value = self.widget.value
        if self.parameter.kind is Kind.WHOLE and isinstance(value, str):
            return _whole(value)
        return value

    def offer(self, frames: Sequence[tuple[str, int]]) -> None:
        """Let the learner choose among frames in flight, if this is the number of a frame."""
        if self.parameter.name != _FRAME:
            return
        options: list[tuple[str, int | None]] = list(frames)
        if not self.parameter.required or not options:
            options.insert(0, ("–", None))
        if tuple(options) != self.widget.options:
            chosen = self.widget.value
            self.widget.options = options
            if any(number == chosen for _, number in options):
                self.widget.value = chosen

    def clear(self) -> None:
        """Choose nothing, where nothing is one of the choices."""
        if any(value is None for _, value in self.widget.options):
            self.widget.value = None

    @staticmethod
    def _widget(parameter: Parameter, value: Any) -> Any:
        label = _label(parameter)
        common = {
            "description": label,
            "tooltip": f"{parameter.doc}; legal: {parameter.legal}",
            "style": {"description_width": "initial"},
        }
        if parameter.name == _FRAME:
            return widgets.Dropdown(options=[("–", None)], layout=_AUTO, **common)
        if parameter.choices:
            options: list[Any] = [(choice, choice) for choice in parameter.choices]
            if value is None:
                # No `value` then: it would mean that nothing is chosen, and show an empty box.
                options.insert(0, ("–", None))
                return widgets.Dropdown(options=options, layout=_AUTO, **common)
            return widgets.Dropdown(options=options, value=value, layout=_AUTO, **common)
        if parameter.kind is Kind.YES_NO:
            return widgets.Checkbox(value=bool(value), indent=False, layout=_AUTO, **common)
        if parameter.kind is Kind.WHOLE:
            # A text, so that any input can be judged by the declaration and answered in words.
            shown = "" if value is None else str(value)
            width = {"width": f"{max(150, 9 * len(label) + 90)}px"}
            hint = "" if parameter.required else "default"
            return widgets.Text(value=shown, placeholder=hint, layout=width, **common)
        return widgets.Text(value=value or "", layout={"width": "260px"}, **common)


def _label(parameter: Parameter) -> str:
    """Name and unit, each said once: `latency (µs)`, `messages`."""
    words, unit = parameter.name.split("_"), parameter.unit
    if not unit or words == [unit]:
        return " ".join(words)
    if len(words) > 1 and words[-1] == unit:
        words.pop()
    return f"{' '.join(words)} ({_UNITS.get(unit, unit)})"


def _whole(text: str) -> Any:
    """A whole number, None for nothing, or the text itself, which the declaration refuses."""
    text = text.strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        return text


class ActRow:
    """An act: its button and its arguments in one line."""

    def __init__(self, spec: ActionSpec, preset: Any) -> None:
        self.spec = spec
        self.button = widgets.Button(
            description=spec.name.replace("_", " "), tooltip=spec.doc, layout={"width": "128px"}
        )
        self.fields = [Field(item, item.default_in(preset)) for item in spec.parameters]
        self.box = widgets.HBox([self.button, *(field.widget for field in self.fields)])
        either = [field for field in self.fields if field.parameter.name in (_FRAME, _DIRECTION)]
        if len(either) == 2:  # a frame or a direction: choosing one gives up the other
            for field, other in (either, either[::-1]):
                field.widget.observe(
                    lambda change, other=other: change["new"] is not None and other.clear(),
                    names="value",
                )

    def simplify(self, connections: int) -> None:
        """Leave out the choice of a connection where there is only one."""
        for field in self.fields:
            if field.parameter.name == "connection":
                field.widget.layout.display = "none" if connections < 2 else None

    def arguments(self) -> dict[str, Any]:
        """What was filled in; what was left empty is left to the declaration."""
        values = {field.parameter.name: field.value for field in self.fields}
        return {name: value for name, value in values.items() if value is not None}


class PanelView(widgets.VBox):
    """The widgets, laid out; it decides nothing."""

    def __init__(
        self,
        run: Any,
        stepper: StepperWidget,
        first: Sequence[str] | None,
        above: Sequence[Any] = (),
    ) -> None:
        self.acts = [ActRow(spec, run.preset) for spec in run.scenario.actions]
        self.parameters = [
            Field(parameter, run.parameters[parameter.name])
            for parameter in run.scenario.parameters
        ]
        self.preset = widgets.Dropdown(
            options=list(presets.names(run.scenario.protocol)),
            value=run.preset.name,
            description="preset",
            layout=_AUTO,
        )
        self.again = widgets.Button(
            description="run with these", tooltip="begins a new run; the earlier ones stay"
        )
        self.undo = widgets.Button(
            description="↶ undo", tooltip="to the run this branch was made from", layout=_AUTO
        )
        self.branch = widgets.Dropdown(
            description="branch",
            options=[("0: the run as it began", (0, 0))],
            layout={"width": "auto", "max_width": "560px"},
        )
        self.share = widgets.Button(
            description="share",
            tooltip="a short code with which somebody else gets this run, at this step",
            layout=_AUTO,
        )
        self.line = widgets.HTML(layout={"min_height": "28px"})
        self.code = ShareBox()
        self.stepper = stepper
        settings = widgets.Accordion(
            children=[
                widgets.VBox(
                    [
                        _flowing([field.widget for field in self.parameters]),
                        widgets.HBox([self.preset, self.again]),
                    ]
                )
            ],
            titles=("Parameters of the run",),
        )
        first = _first_acts(self.acts) if first is None else _known_acts(self.acts, first)
        more = [row.box for row in self.acts if row.spec.name not in first]
        acts = _flowing([row.box for row in self.acts if row.spec.name in first])
        place = widgets.HBox([self.branch, self.undo, self.share])
        children = [acts, place, self.line, self.code, *filter(None, above), stepper]
        if more:
            children.append(widgets.Accordion(children=[_flowing(more)], titles=("More acts",)))
        children.append(settings)
        super().__init__(children=children)

    def say(self, message: str, failed: bool) -> None:
        """Show the message line; whatever it holds is text."""
        colour, mark = ("#b3261e", "✕ ") if failed else ("inherit", "")
        self.line.value = (
            f'<div role="status" style="color:{colour};font-size:14px;line-height:1.4">'
            f"{mark}{html.escape(message)}</div>"
            if message
            else ""
        )


def _flowing(children: list[Any]) -> Any:
    """A row that goes on in the next line where the page is narrow."""
    layout = {"flex_flow": "row wrap", "grid_gap": "2px 22px", "align_items": "center"}
    return widgets.Box(children, layout=layout)


def _known_acts(acts: Sequence[ActRow], names: Sequence[str]) -> Sequence[str]:
    """The names, if they are acts of this scenario; else a ValueError that tells those that are."""
    there = [row.spec.name for row in acts]
    if isinstance(names, str) or any(name not in there for name in names):
        raise ValueError(f"acts={names!r}: a list of names is wanted; legal: {', '.join(there)}")
    return names


def _first_acts(acts: Sequence[ActRow]) -> list[str]:
    """Few controls at first: the three acts declared first, and those that take a frame."""
    names = [row.spec.name for row in acts[:3]]
    return names + [
        row.spec.name for row in acts if any(field.parameter.name == _FRAME for field in row.fields)
    ]


class Panel:
    """Links a `PanelModel` with a `PanelView`; displaying it shows the view.

    Its run may be a tree of branches that was made elsewhere.

    Attributes:
        model: what is so.
        view: the widgets.
    """

    def __init__(
        self,
        run: Any,
        *,
        acts: Sequence[str] | None = None,
        cursor: int | None = None,
        follow: bool = False,
        meter: bool = False,
    ) -> None:
        self.model = PanelModel(run, follow=follow)
        if cursor is not None:
            self.model.cursor = cursor
        stepper = StepperWidget(self.model.doc, cursor=self.model.cursor)
        rows = self.model.run.rows
        self.meter = BrakeMeter(rows).follow(stepper) if meter else None
        self.view = PanelView(self.model.run, stepper, acts, (self.meter,))
        self._quiet = False
        self._link()

    def _link(self) -> None:
        model, view = self.model, self.view
        for row in view.acts:
            row.button.on_click(lambda _button, row=row: self._act(row))
        view.undo.on_click(lambda _button: model.undo())
        view.again.on_click(lambda _button: self._restart())
        view.share.on_click(lambda _button: self._share())
        view.branch.observe(self._picked, names="value")
        view.stepper.observe(self._stepped, names="cursor")
        model.observe(lambda _change: self._show(), names="shown")
        model.observe(
            lambda _change: view.say(model.message, model.failed), names=["message", "failed"]
        )
        if len(model.branches.runs) > 1:  # a tree that was made elsewhere
            self._list_branches()
        self._offer()

    def _act(self, row: ActRow) -> None:
        self.model.act(row.spec.name, **row.arguments())

    def _restart(self) -> None:
        values = {field.parameter.name: field.value for field in self.view.parameters}
        self.model.restart(self.view.preset.value, **values)

    def _share(self) -> None:
        model = self.model
        try:
            code = share_code(model.run, model.cursor)
        except ShareCodeError as error:
            model.tell(f"{error}.", failed=True)
            return
        self.view.code.show(code, own=tuple(model.run.code))
        model.tell(f"The code below is branch {model.here()} at step {model.cursor}.")

    def _picked(self, change: Any) -> None:
        if not self._quiet and change["new"] is not None:
            self.model.pick(*change["new"])

    def _stepped(self, change: Any) -> None:
        self.model.cursor = change["new"]
        self._offer()

    def _show(self) -> None:
        """Another run: stepper, branches and chart follow."""
        model, view = self.model, self.view
        view.stepper.show(model.doc, model.cursor)
        if self.meter:
            self.meter.show(model.run.rows, model.cursor)
        view.code.clear()
        self._list_branches()
        self._offer()

    def _list_branches(self) -> None:
        model, view = self.model, self.view
        self._quiet = True
        view.branch.options = model.picks()
        view.branch.value = (model.tree, model.branches.current)
        self._quiet = False
        view.undo.disabled = model.branches.current == 0

    def _offer(self) -> None:
        rows = [row for row in self.view.acts if row.fields]
        frames = self.model.in_flight()
        connections = len({row.connection for row in self.model.run.rows if row.connection})
        for row in rows:
            row.simplify(connections)
            for field in row.fields:
                field.offer(frames)

    def still(self) -> str:
        """What the stepper shows now, as text, and before it what stands above it."""
        still = self.view.stepper.still()
        if self.meter is None:
            return still
        return f"{self.meter.still(self.model.cursor)}\n\n{still}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return with_still(self.view._repr_mimebundle_(**kwargs), self.still())


def panel(
    scenario_run: Any,
    *,
    acts: Sequence[str] | None = None,
    follow: bool = False,
    meter: bool = False,
) -> Panel:
    """The learner's desk for a run: act at the cursor, go back, act differently.

    Args:
        scenario_run: a run of a scenario.
        acts: names of the acts that stand above the stepper, the others are folded away; the first
            three and those that take a frame if None.
        follow: after an act show the last step of what came of it, ready for the next act; without
            it the act itself, so that one can step through what it causes.
        meter: whether a meter above the stepper says which brake is on.
    """
    return Panel(scenario_run, acts=acts, follow=follow, meter=meter)
