"""What JupyterLab's server does for the lessons: an extension that its settings name.

The settings are those of `binder/jupyter`. At the server's start each lesson gets its working copy
(`exercises.working_copies`). A notebook that is saved keeps stills in place of widgets: a widget
lives in the kernel, and a page that is opened without that kernel has an error where it was. A
lesson's own file is saved without what running its cells left there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench.exercises.working_copies import lessons_of, make_copies

WIDGET = "application/vnd.jupyter.widget-view+json"
BOKEH_JS = "application/vnd.bokehjs_load.v0+json"
RUN_IT = "A widget was here. Run the cell, and it is here again."


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    root = Path(server.root_dir)

    def saving(*, model: dict[str, Any], path: str, **_more: Any) -> None:
        if model["type"] == "notebook":
            lesson = root / path.lstrip("/")
            if lesson in lessons_of(root):
                keep_text(model["content"], lesson)
            keep_stills(model["content"])

    server.contents_manager.register_pre_save_hook(saving)
    try:
        for line in make_copies(root, renew=True):
            server.log.warning(line)
    except (OSError, ValueError) as error:
        server.log.warning(f"the lessons could not be copied into my/: {error}")


def keep_stills(notebook: dict[str, Any]) -> None:
    """Leave a notebook's outputs without widgets; what stands beside each of them stays.

    The 4 MB of BokehJS go too: the charts that it draws are widgets.
    """
    for cell in notebook["cells"]:
        if "outputs" not in cell:
            continue
        kept = [one for one in cell["outputs"] if BOKEH_JS not in one.get("data", ())]
        for data in (output.get("data") for output in kept):
            if data and data.pop(WIDGET, None) is not None and not data:
                data["text/plain"] = RUN_IT
        cell["outputs"] = kept


def keep_text(notebook: dict[str, Any], file: Path) -> None:
    """Leave a lesson with its cells' texts, and what its file says about itself."""
    notebook["metadata"] = json.loads(file.read_text(encoding="utf-8"))["metadata"]
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
