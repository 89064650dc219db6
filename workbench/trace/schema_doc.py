"""The schema as a page for people: the part of `data/README.md` that describes the columns.

`python -m workbench.trace.schema_doc data/README.md` writes it between its two marks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .fields import Field
from .schema import (
    COLUMNS,
    FRAME_EVENTS,
    INTERNAL_EVENTS,
    LEDGER_GROUPS,
    SCHEMA_VERSION,
    VERSION_KEY,
)

BEGIN = "<!-- schema: begin (kept in step with workbench/trace/schema.py) -->"
END = "<!-- schema: end -->"


def markdown() -> str:
    """The tables of columns, of the structs' fields and of the events."""
    lines = [
        BEGIN,
        "",
        f"Schema version {SCHEMA_VERSION}, in the Parquet metadata as `{VERSION_KEY}`. One row per"
        " event, the rows",
        "of a run in order of `seq`. A column that may be null is marked so; null in `frame` means"
        " that the field was absent on",
        "the wire, null in `ledger` that the counter is not in the row's scope. Numbers of unit"
        " *serial* run from",
        "0 to 2^32 − 1 and wrap around. Nothing is NaN or infinite.",
        "",
        "### Columns",
        "",
        *_table(COLUMNS),
    ]
    for column in COLUMNS:
        if column.fields:
            lines += ["", f"### Fields of `{column.name}`", "", *_table(column.fields)]
    lines += [
        "",
        "The groups of `ledger`, which a row carries as far as its event touches them:",
        "",
    ]
    lines += [
        f"- *{group}*: {', '.join(f'`{name}`' for name in names)}"
        for group, names in LEDGER_GROUPS.items()
    ]
    lines += ["", "### Events", "", "| event | meaning |", "|---|---|"]
    meanings = {
        "sent": "an end has sent the frame",
        "received": "an end has taken the frame in, and not yet done anything about it",
        "observed": "a capture saw the frame pass",
    }
    lines += [f"| `{event}` | {meanings[event]} |" for event in FRAME_EVENTS]
    lines += [f"| `{event}` | {meaning} |" for event, meaning in INTERNAL_EVENTS.items()]
    return "\n".join([*lines, "", END, ""])


def _table(fields: tuple[Field, ...]) -> list[str]:
    lines = ["| name | type | unit | null | meaning |", "|---|---|---|---|---|"]
    for field in fields:
        null = "may be" if field.nullable else "never"
        lines.append(
            f"| `{field.name}` | {field.type} | {field.unit or '–'} | {null} | {field.doc} |"
        )
    return lines


def main(path: str) -> None:
    """Bring the page at `path`, which has the two marks, up to date."""
    file = Path(path)
    head, _, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    file.write_text(head + markdown().rstrip("\n") + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
