"""How long `credit` and `stalls` take over a trace of any size, and who does it faster.

    python3 benchmarks/spark_credit.py [ROWS ...]      default: 1,000,000

Both answers are written; the start of Java is told apart. The trace is made of real runs
(`scenarios.big_trace`), so its stalls are known by number too.
"""

import sys
import tempfile
import time
from pathlib import Path

from workbench.analysis.credit import credit
from workbench.analysis.reading import open_trace
from workbench.analysis.session import get_spark
from workbench.analysis.stalls import stalls
from workbench.analysis.writing import write_answer
from workbench.scenarios.big_trace import episodes
from workbench.scenarios.run import run
from workbench.trace.tiling import tile


def main(sizes):
    began = time.perf_counter()
    spark = get_spark(say=lambda text: print(text, file=sys.stderr))
    print(f"start of Spark: {time.perf_counter() - began:.1f} s")
    runs = [episode.rows for episode in episodes()]
    runs.append(
        run(
            "credit",
            "rmq4.3",
            {"messages": 10_000, "policy": "top-up-at-half", "n": 100, "acknowledge": "auto"},
        ).rows
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / f"{size}.parquet"
            count = tile(path, runs, size)
            trace = open_trace(spark, path)
            for question in (credit, stalls):
                began = time.perf_counter()
                name = question.__name__
                write_answer(question(chunks=trace.chunks)(trace.frame), Path(folder) / name)
                seconds = time.perf_counter() - began
                rate = count / seconds
                print(f"{name:<7} {count:>11,} rows  {seconds:7.1f} s  {rate:>10,.0f} rows/s")


if __name__ == "__main__":
    main([int(word.replace(",", "").replace("_", "")) for word in sys.argv[1:]] or [1_000_000])
