"""The learner's log in a notebook: see it, keep it in a file, take it up again."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from .progress import FILE_NAME, Progress, ProgressError, progress


class ProgressView(widgets.VBox):
    """What was predicted and checked, and three ways to keep it.

    Args:
        log: what is shown.
        folder: where `Keep` writes.
    """

    def __init__(self, log: Progress, folder: Path) -> None:
        self._log = log
        self._path = folder / FILE_NAME
        self.text = widgets.HTML()
        self.keep = widgets.Button(
            description="Keep", tooltip=f"write {FILE_NAME} beside this notebook"
        )
        self.fresh = widgets.Button(description="Refresh", tooltip="show what was answered since")
        self.upload = widgets.FileUpload(
            accept=".json", description="Restore", tooltip="take up a log that you downloaded"
        )
        self.line = widgets.HTML(layout={"min_height": "28px"})
        super().__init__(
            children=[
                self.text,
                widgets.HBox([self.fresh, self.keep, self.upload]),
                self.line,
            ]
        )
        self.keep.on_click(lambda _button: self._keep())
        self.fresh.on_click(lambda _button: self.show())
        self.upload.observe(self._uploaded, names="value")
        self._take_up()
        self.show()

    def show(self) -> None:
        """Show the log as it is now."""
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in self._log.lines())
        self.text.value = (
            f'<ul style="line-height:1.5;list-style:none;padding:0">{lines}</ul>{self._link()}'
        )

    def _link(self) -> str:
        if not self._log.entries:
            return ""
        data = base64.b64encode(self._log.to_json().encode()).decode()
        return (
            f'<a download="{FILE_NAME}" href="data:application/json;base64,{data}">'
            "Download it</a> (on Binder: the server forgets, your disk does not)"
        )

    def _take_up(self) -> None:
        try:
            count = self._log.load(self._path)
        except ProgressError as error:
            self._say(str(error))
        else:
            if count:
                self._say(f"{count} answers taken up from {FILE_NAME}.")

    def _keep(self) -> None:
        self.show()
        try:
            path = self._log.save(self._path)
        except ProgressError as error:
            self._say(str(error))
        else:
            self._say(f"Kept in {path.name}; the map of the lessons shows it.")

    def _uploaded(self, change: Any) -> None:
        for file in change["new"]:
            try:
                count = self._log.restore(bytes(file["content"]).decode("utf-8"))
            except UnicodeDecodeError:
                self._say(f"{file['name']}: not a saved progress: no text in it")
            except ProgressError as error:
                self._say(f"{file['name']}: {error}")
            else:
                self._say(f"{count} answers taken up from {file['name']}.")
        self.show()

    def _say(self, text: str) -> None:
        self.line.value = f'<div role="status">{html.escape(text)}</div>'

    def __repr__(self) -> str:
        return str(self._log)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = str(self._log)
            data["text/html"] = f"<pre>{html.escape(str(self._log))}</pre>"
        return bundle


def progress_log(folder: str | Path | None = None) -> ProgressView:
    """What you predicted and checked in this kernel, and what you kept before.

    Args:
        folder: where it is kept; the notebook's own folder if None.
    """
    return ProgressView(progress, Path.cwd() if folder is None else Path(folder))
