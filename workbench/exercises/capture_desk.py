"""A capture of one's own in a notebook: hand a file over, see what happened on its links."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import ipywidgets as widgets
from IPython.display import HTML, display

from workbench.notebook import WrongValueError
from workbench.trace.words import visible
from workbench.views.controls import on_enter, status
from workbench.views.opening import stage_of
from workbench.views.stills import Still

from .table import say

LARGEST_MB = 100
"""A browser hands a file over in one piece."""
QUOTES = " \t'\""
"""What a path may stand in that was copied from elsewhere."""


class CaptureDesk(Still, widgets.VBox):
    """A button that takes a capture, and below it what `look` says of it, with the stage.

    Attributes:
        look: of the latest file; None before the first.
        kept: told the headline, so that a saved notebook has it; None where nobody is.
    """

    still_is_prose = True

    def __init__(self) -> None:
        self.look: Any = None
        self.kept: Any = None
        self.upload = widgets.FileUpload(
            accept=".pcap,.pcapng,.gz,.log,.txt,.parquet", multiple=False,
            description=say("capture.button"), tooltip=say("capture.button-tip"),
        )  # fmt: skip
        self.path = widgets.Text(
            placeholder=say("capture.path"), tooltip=say("capture.path-tip"),
            layout={"width": "32em"},
        )  # fmt: skip
        self.line = widgets.HTML(status(say("capture.ask")))
        self.report = widgets.HTML()
        self.steps = widgets.VBox()
        super().__init__(
            children=[
                widgets.HBox([self.upload, self.path]), self.line, self.report, self.steps,
            ]
        )  # fmt: skip
        self.upload.observe(self._chosen, names="value")
        on_enter(self.path, lambda: self.look_at(self.path.value))

    def look_at(self, path: str | Path) -> None:
        """Look at a file; what is wrong with it is told in the line above the report."""
        with self._told():
            name = str(path).strip(QUOTES)
            if not name:
                raise WrongValueError(say("capture.ask"))
            place = Path(name).expanduser()
            if not place.exists():
                # A bare name does not say in which folder it was looked for.
                raise WrongValueError(say("capture.nowhere", place=visible(place.absolute(), 300)))
            self._show(place)

    def _chosen(self, change: Any) -> None:
        from workbench.aside import aside

        for file in change["new"]:
            with self._told(), aside() as folder:
                if file["size"] > LARGEST_MB * 1_000_000:
                    told = {"name": file["name"], "size": file["size"], "most": LARGEST_MB}
                    raise WrongValueError(say("capture.too-large", **told))
                place = folder / (PurePath(file["name"]).name or "capture")
                place.write_bytes(file["content"])
                self._show(place)
        self.upload.value = ()  # the same file may be chosen again

    @contextmanager
    def _told(self) -> Iterator[None]:
        from workbench.cli.looking import LookError

        try:
            yield
        except (LookError, ValueError, OSError) as error:
            self.look, self.report.value, self.steps.children = None, "", ()
            self.line.value = status(str(error))
        if self.kept is not None:
            self.kept.update(HTML(status("" if self.look is None else repr(self.look))))

    def _show(self, place: Path) -> None:
        from workbench.cli.looking import look

        self.line.value = status(say("capture.reading", name=place.name))
        found = look(place, _progress(self.line))
        self.look = found
        self.report.value = found._repr_html_()
        self.steps.children = (stage_of(found.opened, title=found.name),)
        self.line.value = status(say("capture.read", name=found.name))

    def __repr__(self) -> str:
        return say("capture.ask") if self.look is None else "\n".join(self.look.text())


def _progress(line: widgets.HTML) -> Any:
    """Says in a line how far it is."""
    from workbench.cli.console import Progress

    class InLine(Progress):
        def show(self, told: str, done: int, total: int | None) -> None:
            line.value = status(f"{self.label}: {told}")

    return InLine()


def capture_desk() -> CaptureDesk:
    """A place for a capture of your own."""
    desk = CaptureDesk()
    desk.kept = display(HTML(""), display_id=True)
    return desk
