"""HTML files that stand alone: nothing in them comes from elsewhere, and no other script runs."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from importlib import resources

from workbench.languages import language, words

_PAGE = """<!doctype html>
<html lang="{language}">
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


@cache
def asset(name: str) -> str:
    """The text of a file that lies beside this module: `stage.js`, `stage.css`."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def stage_module() -> str:
    """The stage's module, with its fixed words in the learner's language before it."""
    table = json.dumps(words("stage"), ensure_ascii=False).replace("<", "\\u003c")
    return f"const WORDS = {table};\n{asset('stage.js')}"


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
        language=language(),
        policy=policy,
        title=html.escape(title),
        style=style,
        body=body,
        module=module,
    )


def digest(text: str) -> str:
    """The source of a Content-Security-Policy that allows this text alone."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
