"""Writes the recorded answers of lesson 10: `python -m workbench.exercises.spark_record`.

They stand in for Spark where there is no Java. The same questions are asked of the same traces as
in the lesson; a test asks them again and compares.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from workbench.scenarios.shift import shift_parts
from workbench.trace import files
from workbench.trace.copies import write_copies

from .spark_answers import RECORDED
from .spark_desk import QUESTIONS, SparkDesk
from .spark_traces import captured_rows, folder, plan

CAPTURED = ("stalls", "brakes")
"""What the lesson asks of the captures."""


def answers(desk: SparkDesk) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Every answer that the lesson shows, by trace and question.

    Args:
        desk: one with Spark.
    """
    captured, large = folder() / "record-captures.parquet", folder() / "record-shift.parquet"
    files.write(captured, captured_rows(), raw=False)
    write_copies(large, shift_parts(plan()))
    return {
        "captures": {name: desk.rows(name, captured) for name in CAPTURED},
        "shift": {name: desk.rows(name, large) for name in QUESTIONS},
    }


def as_text(found: dict[str, Any]) -> str:
    """The file: one row a line, so that a change is seen in a diff."""
    traces = []
    for trace, questions in found.items():
        parts = []
        for name, rows in questions.items():
            lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
            parts.append(f'   "{name}": [\n{lines}\n   ]')
        traces.append(f'  "{trace}": {{\n' + ",\n".join(parts) + "\n  }")
    made = '"python -m workbench.exercises.spark_record"'
    return '{\n "made_by": ' + made + ',\n "answers": {\n' + ",\n".join(traces) + "\n }\n}\n"


def main() -> int:
    """Ask, and write the file."""
    desk = SparkDesk()
    if desk.session() is None:
        sys.stderr.write(f"nothing was recorded: {desk.why_not}\n")
        return 1
    RECORDED.parent.mkdir(parents=True, exist_ok=True)
    text = as_text(answers(desk))
    RECORDED.write_text(text, encoding="utf-8")
    sys.stderr.write(f"{RECORDED}: {len(text):,} octets\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
