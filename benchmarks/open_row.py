"""How long it takes to open one row of a large trace, with the state of all that came before it.

    python3 benchmarks/open_row.py [ROWS ...]      default: 1,000,000

Once of one run of so many rows, where the fold begins at the first row, and once of as many runs as
come to so many rows, where only the row groups of one run are read. The second row opened of the
long run goes on from what was kept of the first. Then the long run again, where nobody reads what
the last copy but one of the run sends: its frames are in flight for ever and are looked up.
"""

import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.grown import tile
from workbench.scenarios.run import run
from workbench.trace.cut import cut
from workbench.trace.files import to_table
from workbench.trace.schema import RECEIVED, arrow_schema

GROUP_ROWS = 50_000


def one_long_run(path, rows, size, unread=-1):
    """Copies of a run behind each other, as one run with one busy link; of one nothing arrives."""
    table, schema = to_table(rows, raw=False), arrow_schema()
    by = {
        name: pc.max(table[name]).as_py() + 1 for name in ("seq", "t_us", "frame_id")
    }  # so far each copy is moved
    written = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while written < size:
            copy = table
            for name, step in by.items():
                place = schema.get_field_index(name)
                moved = pc.add(copy[name], pa.scalar(step * (written // len(rows)), pa.int64()))
                copy = copy.set_column(place, schema.field(place), moved)
            if written // len(rows) == unread:
                copy = copy.filter(pc.not_equal(copy["event"], RECEIVED))
            writer.write_table(copy, row_group_size=GROUP_ROWS)
            written += len(rows)
    return written


def timed(what, path, seq, name=None):
    """Open a row and say how long it took."""
    began, cpu = time.perf_counter(), time.process_time()
    found = cut(path, seq, name)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(f"  {what:<38} row {seq:>11,}  {seconds:6.2f} s, {cpu:6.2f} s of CPU"
          f"  ({len(found.rows)} rows shown)")  # fmt: skip


def main(sizes):
    parameters = {"messages": 10_000, "policy": "top-up-at-half", "n": 100, "acknowledge": "auto"}
    rows = run("credit", "rmq4.3", parameters).rows
    short = run("credit", "rmq4.3", parameters | {"messages": 100}).rows
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / f"one-{size}.parquet"
            count = one_long_run(path, rows, size)
            print(f"one run of {count:,} rows")
            timed("near the end, nothing kept", path, count - 1_000)
            timed("in the middle, a fold is kept", path, count // 2)
            path = Path(folder) / f"unread-{size}.parquet"
            one_long_run(path, rows, size, unread=(count - 1) // len(rows) - 1)
            timed("near the end, 200 frames in flight", path, count - 1_000)
            path = Path(folder) / f"many-{size}.parquet"
            count = tile(path, [short], size)
            last = count // len(short) - 1
            print(f"{last + 1:,} runs, {count:,} rows together")
            timed("in the last run", path, len(short) // 2, f"{short[0].run}#{last}")


if __name__ == "__main__":
    main([int(word.replace(",", "").replace("_", "")) for word in sys.argv[1:]] or [1_000_000])
