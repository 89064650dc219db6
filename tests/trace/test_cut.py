"""A row of a trace opens as if everything before it had been replayed."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from workbench.scenarios import registry
from workbench.scenarios.run import run
from workbench.trace import cut as cutting
from workbench.trace import files, fold
from workbench.trace.cut import cut
from workbench.trace.importer import import_capture
from workbench.trace.schema import Row
from workbench.views.reader import UNSET, Reader
from workbench.views.stepper_doc import build

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"
NAMES = (*registry.names(), *sorted(file.stem for file in CAPTURES.glob("*.pcapng")))


@cache
def rows_of(name: str) -> tuple[Row, ...]:
    """A run of the scenario, driven on by a few acts, or the rows of the capture."""
    if name in registry.names():
        return tuple(run(name).rows)
    return tuple(import_capture([CAPTURES / f"{name}.pcapng"]).rows)


def cuts_of(count: int, many: int) -> list[int]:
    """The first rows, the last, and some between."""
    draw = random.Random(count)
    return sorted({0, 1, count - 1, *(draw.randrange(count) for _ in range(many))} - {-1})


def written(folder: Path, rows: Any, group_rows: int = 40) -> Path:
    """A trace file in small row groups, so that a cut goes through several."""
    path = folder / "t.parquet"
    with files.TraceWriter(path, batch_rows=group_rows) as writer:
        for row in rows:
            writer.write(row)
    return path


def picture(reader: Reader, step: int, *, of_row: bool) -> dict[str, Any]:
    """All that the stepper shows at a step, by name and not by the document's numbers."""
    reader.go(step)
    doc = reader.doc
    shown: dict[str, Any] = {"counters": {}, "flying": {}}
    for title, _group, source, base, *names in doc["slots"]:
        cells = reader.cells[base : base + len(names)]
        told = {name: cell for name, cell in zip(names, cells, strict=True) if cell is not UNSET}
        for name, cell in told.items():
            shown["counters"].setdefault((title, source), {})[name] = cell
    for frame, held in reader.flights.items():
        words = reader.frame_words(frame), reader.octets(frame), tuple(reader.fields(frame))
        shown["flying"].setdefault(words, []).append(held)
    if of_row:
        shown["t_us"] = reader.t_us
        row = reader.row(step)
        event, vantage, kind, connection, link, clause, lane, *_more = doc["heads"][row[0]]
        shown["row"] = (
            event, vantage, kind, connection,
            doc["links"][link]["label"] if link >= 0 else "",
            doc["clauses"][clause] if clause >= 0 else "",
            doc["lanes"][lane] if lane >= 0 else "",
            reader.sentence(step), [reader.text(part) for part in row[5]],
            reader.text(row[6]) if row[6] else "",
        )  # fmt: skip
    return shown


@pytest.mark.parametrize("name", NAMES)
def test_the_state_at_a_cut_is_that_of_a_full_replay(name: str, tmp_path: Path) -> None:
    """Counters of both ends, windows, brakes and frames in flight, at many cuts of every trace."""
    rows = rows_of(name)
    path = written(tmp_path, rows)
    for seq in cuts_of(len(rows), 12):
        found = cut(path, rows[seq].seq, rows[seq].run, around=7)
        first = next(n for n, row in enumerate(rows) if row.run == found.run)
        mine = [row for row in rows if row.run == found.run]
        place = found.rows[0].seq - mine[0].seq
        want = fold(mine[:place])
        assert found.start == want, (name, seq, first)
        assert found.start.digest() == want.digest()
        assert found.row == rows[seq]


@pytest.mark.parametrize("name", NAMES)
def test_what_the_stepper_shows_of_a_cut_is_what_it_shows_of_the_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledgers, frames in flight and held, words, formulas and clauses, at each row of the slice."""
    monkeypatch.setattr(cutting, "WARM_ROWS", 30)
    rows = [row for row in rows_of(name) if row.run == rows_of(name)[0].run][:900]
    path = written(tmp_path, rows)
    whole = Reader(build(files.read(path), spans=False))
    for seq in cuts_of(len(rows), 5):
        found = cut(path, seq, around=9)
        doc = build(
            found.rows, start=found.start, earlier=found.earlier,
            explanations=found.explanations, spans=False,
        )  # fmt: skip
        reader = Reader(doc)
        begin = found.rows[0].seq
        for step in range(len(found.rows) + 1):
            shown = picture(reader, step, of_row=step > 0)
            assert shown == picture(whole, begin + step, of_row=step > 0), (name, begin + step)
