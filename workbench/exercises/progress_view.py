"""The learner's log in a notebook: see it, download it, load it again."""

from __future__ import annotations

import base64
import html
from typing import Any

import ipywidgets as widgets

from workbench.views.stills import Still

from .progress import FILE_NAME, Progress, ProgressError, progress
from .progress_file import LARGEST_FILE, decoded

# JupyterLab shows links of widgets like any other text.
_LINK = "text-decoration:underline;color:var(--jp-content-link-color,#0b5cad)"
_DOWNLOAD = "on a server that forgets, such as Binder, your own disk does not"


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
            description="Refresh", tooltip="show what was answered since, in any notebook"
        )
        self.upload = widgets.FileUpload(
            accept=".json",
            description="Load again",
            tooltip="take up a log that you downloaded; nothing that is here is lost",
        )
        self.line = widgets.HTML(layout={"min_height": "28px"})
        super().__init__(
            children=[self.text, widgets.HBox([self.fresh, self.upload]), self.line],
            layout={"max_width": "62em"},
        )
        self.fresh.on_click(lambda _button: self._refresh())
        self.upload.observe(self._uploaded, names="value")
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
        data = base64.b64encode(self._log.to_json().encode("utf-8", "replace")).decode("ascii")
        address = f"data:application/json;base64,{data}"
        link = f'<a download="{FILE_NAME}" style="{_LINK}" href="{address}">Download a copy</a>'
        return f"{link} ({_DOWNLOAD})"

    def _refresh(self) -> None:
        self._log.refresh()
        self.show()
        where = self._log.where
        kept = f"Kept by itself in {where}." if where is not None and self._log.records else ""
        self._say(" ".join(filter(None, [self._log.problem, kept])))

    def _uploaded(self, change: Any) -> None:
        told = [self._taken(file) for file in change["new"]]
        if told:
            self.show()
            self._say(" ".join(told))

    def _taken(self, file: Any) -> str:
        name, before = file["name"], len(self._log.records)
        try:
            data = bytes(file["content"][: LARGEST_FILE + 1])
            found, problems = self._log.take_up(decoded(data))
        except ProgressError as error:
            return f"{name}: {error}."
        new = len(self._log.records) - before
        told = f"{name}: {found} answers read, {new} of them new here."
        return " ".join([told, *(f"{problem}." for problem in problems)])

    def _say(self, text: str) -> None:
        self.line.value = (
            f'<div role="status" style="line-height:1.5">{html.escape(text)}</div>' if text else ""
        )

    def __repr__(self) -> str:
        return str(self._log)


def progress_log() -> ProgressView:
    """What you predicted and checked in every lesson; it is kept by itself (`progress_place`)."""
    return ProgressView(progress)
