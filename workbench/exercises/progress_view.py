"""The learner's log in a notebook: see it, take a copy away, and find one again in the browser."""

from __future__ import annotations

import base64
import html
import os
from functools import cache
from importlib import resources
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.views.controls import status
from workbench.views.stills import Still

from .progress import FILE_NAME, Progress, ProgressError, progress
from .shared_file import say

# JupyterLab shows links of widgets like any other text.
_LINK = "text-decoration:underline;color:var(--jp-content-link-color,#0b5cad)"
IDLE_END_VARIABLE = "WORKBENCH_IDLE_END_MIN"


class BrowserCopy(anywidget.AnyWidget):
    """Keeps a copy of the log in the browser's storage, and takes up what is there.

    A server that forgets, such as Binder, gives a learner a new kernel and an empty folder: then
    the answers come back from the browser. Such a server also ends while nobody does anything: the
    page warns before.

    Args:
        log: what is kept.

    Attributes:
        idle_end_min: after so many idle minutes the server ends, as `WORKBENCH_IDLE_END_MIN` says
            on it; 0 if it does not end.
    """

    _esm = resources.files(__package__).joinpath("progress.js").read_text("utf-8")

    idle_end_min = traitlets.Int(0).tag(sync=True)

    def __init__(self, log: Progress) -> None:
        minutes = int(os.environ.get(IDLE_END_VARIABLE, "0"))
        super().__init__(layout={"display": "none"}, idle_end_min=minutes)
        self._log = log
        self.on_msg(self._found)
        log.watch(self._changed)

    def _found(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and isinstance(content.get("found"), str):
            self._log.merge(content["found"].encode("utf-8", "replace"))
            self.send({"keep": self._log.text()})

    def _changed(self) -> None:
        self.send({})  # the browser tells what it holds, and is answered


@cache
def browser_copy(log: Progress) -> BrowserCopy:
    """The copy of a log; one for a whole notebook, in whatever views of it."""
    return BrowserCopy(log)


class ProgressView(Still, widgets.VBox):
    """What was predicted and checked, a copy to download, and a way back in.

    Args:
        log: what is shown; it keeps itself, this view only looks.
    """

    still_is_prose = True

    def __init__(self, log: Progress) -> None:
        self._log = log
        self.text = widgets.HTML()
        self.fresh = widgets.Button(
            description=say("view.refresh"), tooltip=say("view.refresh-tip")
        )
        self.upload = widgets.FileUpload(
            accept=".jsonl,.json",
            description=say("view.load"),
            tooltip=say("view.load-tip"),
        )
        self.line = widgets.HTML(layout={"min_height": "28px"})
        self.copy = browser_copy(log)
        buttons = widgets.HBox([self.fresh, self.upload])
        super().__init__(
            children=[self.text, buttons, self.line, self.copy], layout={"max_width": "62em"}
        )
        self.fresh.on_click(lambda _button: self._refresh())
        self.upload.observe(self._uploaded, names="value")
        log.watch(self.show)
        self._refresh()

    def show(self) -> None:
        """Show the log as it is now."""
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in self._log.lines())
        self.text.value = (
            f'<ul style="line-height:1.5;list-style:none;padding:0">{lines}</ul>{self._link()}'
        )

    def _link(self) -> str:
        if not self._log.records:
            return ""
        data = base64.b64encode(self._log.text().encode()).decode("ascii")
        address = f"data:application/jsonl;base64,{data}"
        link = (
            f'<a download="{FILE_NAME}" style="{_LINK}" href="{address}">{say("view.download")}</a>'
        )
        return f"{link} ({say('view.browser-copy')})"

    def _refresh(self) -> None:
        self._log.refresh()
        self.show()
        where = self._log.where
        kept = say("view.kept", where=where) if where is not None and self._log.records else ""
        self._say(" ".join(filter(None, [self._log.problem, kept])))

    def _uploaded(self, change: Any) -> None:
        told = [self._taken(file) for file in change["new"]]
        self.upload.value = ()  # the same file may be chosen again
        if told:
            self._say(" ".join(told))

    def _taken(self, file: Any) -> str:
        name, before = file["name"], len(self._log.records)
        try:
            found, unreadable = self._log.take_up(bytes(file["content"]))
        except ProgressError as error:
            return f"{name}: {error}."
        new = len(self._log.records) - before
        told = say("view.taken-up", name=name, n=found, new=new)
        return f"{told} {say('view.taken-up-unread', n=unreadable)}" if unreadable else told

    def _say(self, text: str) -> None:
        self.line.value = text and status(text)

    def _still(self) -> str:
        # It was made when the cell ran; that nothing was answered then says nothing of today.
        return repr(self) if self._log.records else say("view.still")

    def __repr__(self) -> str:
        return str(self._log)


def progress_log() -> ProgressView:
    """What you predicted and checked in every lesson; it is kept by itself."""
    return ProgressView(progress)
