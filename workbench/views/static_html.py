"""HTML files that stand alone, and a run as one: the stepper and its document. No network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import tempfile
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from workbench.trace.schema import Row

from .stepper_doc import build

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script type="module">{module}</script>
</body>
</html>
"""

_BODY = """{above}<main id="stepper">
<p>This page steps through a trace and needs JavaScript for it.</p>
</main>
<script type="application/json" id="doc">{doc}</script>"""

_PAGE_STYLE = """
body { margin: 0; padding: 20px; background: #e9edf2; }
@media (prefers-color-scheme: dark) { body { background: #0b0e12; } }
#stepper { max-width: 1240px; margin: 0 auto; font-family: system-ui, sans-serif; }
@media (max-width: 960px) { body { padding: 4px; } }
"""

_MOUNT = """
const stepper = mount(document.getElementById("stepper"),
  JSON.parse(document.getElementById("doc").textContent),
  { step: Number(new URLSearchParams(location.hash.slice(1)).get("step")) || %(step)d });
stepper.el.focus({ preventScroll: true });
"""


@cache
def asset(name: str) -> str:
    """The text of a file that lies beside this module: `stepper.js`, `stepper.css`."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def script(name: str) -> str:
    """The text of a small view's script, with the functions in front of it that they share."""
    return asset("dom.js") + asset(name)


def safe_json(value: Any) -> str:
    """JSON that no HTML parser can take for markup, whatever strings it holds."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def page(doc: dict[str, Any], *, step: int = 0, above: str = "", style: str = "") -> str:
    """The HTML of a StepperDoc.

    Args:
        doc: the document.
        step: the step that is shown first, where the address names none.
        above: HTML that stands above the stepper; it may hold no script and no style.
        style: the style of that.
    """
    module = asset("stepper.js") + _MOUNT % {"step": step}
    style = asset("stepper.css") + _PAGE_STYLE + style
    body = _BODY.format(above=above, doc=safe_json(doc))
    return standing_alone(str(doc["title"]), body=body, module=module, style=style)


def standing_alone(title: str, *, body: str, module: str, style: str) -> str:
    """A page that loads nothing and runs nothing but this module.

    Args:
        title: as text.
        body: HTML in which no script runs.
        module: the script.
        style: the style sheet.
    """
    policy = (
        f"default-src 'none'; script-src {digest(module)}; style-src {digest(style)};"
        " base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy, title=html.escape(title), style=style, body=body, module=module
    )


def digest(text: str) -> str:
    """The source of a Content-Security-Policy that allows this text alone."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def export_html(
    rows: Iterable[Row],
    path: str | os.PathLike[str],
    *,
    title: str = "",
    note: str = "",
    start: Any = None,
) -> Path:
    """Write a self-contained page that steps through `rows`; it opens from `file://`.

    The file appears whole or not at all: it is written beside its place and then moved there.

    Args:
        rows: trace rows in order of `seq`.
        path: where to write; an existing file is replaced.
        title: the page's title; the run's name if empty.
        note: one sentence under the title.
        start: fold just before the first row, for a slice.

    Returns:
        The path written.
    """
    return write_page(page(build(rows, start=start, title=title, note=note)), path)


def write_page(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page, whole or not at all; an existing file is replaced."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent or ".")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target
