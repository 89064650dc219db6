"""How long the Spark questions take over a trace of any size, and who does it faster.

    python3 benchmarks/spark_scale.py [--rows 10_000_000] [--less 1_000_000] [--links 1000]
        [--frames 1_000_000] [--tshark 50_000] [--memory 2g] [--only PART ...] [--keep FOLDER]

Parts, in this order; all of them by default:

* `both`     `credit` and `stalls` over --rows rows, both answers written;
* `small`    the same over --less rows with the smallest heap, 512 MB;
* `hot`      both questions over one link of --rows rows, and over --links links with as many;
* `growth`   both questions over --less rows and over --rows rows;
* `others`   `credit` by DuckDB and by polars, written likewise; their numbers must be Spark's;
* `capture`  ingest and `credit` from --frames frames of replayed captures of real brokers, beside
  `tshark -T ek` read by pandas: into a DataFrame with all fields, as the trace has them, and once
  more with the needed six picked from each line by hand. What tshark needs grows with the frames
  alone, and a DataFrame of all fields of a million takes 35 GB: so it reads --tshark frames, and
  the rates are told, by the clock on the wall and of the processor.

Each measurement has a Java, or a Python, of its own; the start of Spark is told apart. The line
tells wall time, processor time of the whole process (on a busy machine the better number) and the
most memory it had. Two tasks run at a time. DuckDB and polars come with the `dev` extra.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

PARTS = ("both", "small", "hot", "growth", "others", "capture")
LEAST = "512m"
CORES = 2
STEADY = {"policy": "top-up-at-half", "n": 100, "acknowledge": "auto"}


# -- what is measured, each in a process of its own ---------------------------------------------


def ask(path, memory, *questions):
    """Seconds of each question by Spark, its answer written beside the trace."""
    from workbench.analysis.reading import open_trace

    began = time.perf_counter()
    spark, clock = started(memory)
    found = {"start": time.perf_counter() - began, "processor at start": clock()}
    trace = open_trace(spark, path)
    for name in questions:
        found[name] = timed(lambda name=name: answered(name, trace, path))
    return found | {"processor": clock(), "memory": java_peak(spark)}


def from_capture(folder, memory, frames):
    """Seconds of ingest, and of `credit` by Spark, from captures; as the command line does it."""
    from workbench.analysis.ingest import ingest
    from workbench.analysis.reading import open_trace
    from workbench.analysis.session import QUICK_ROWS

    trace = Path(folder).with_name("imported")
    shutil.rmtree(trace, ignore_errors=True)
    found = {"ingest": timed(lambda: ingest(None, [str(folder)], str(trace)))}
    used = own_use()["processor"]
    spark, clock = started(memory, quick=int(frames) <= QUICK_ROWS)
    clock(since := {})
    found["credit"] = timed(lambda: answered("credit", open_trace(spark, trace), trace))
    return found | {"processor": used + clock(since), "memory": java_peak(spark)}


def started(memory, *, quick=False):
    from workbench.analysis.session import get_spark

    spark = get_spark(say=lambda text: None, memory=memory, master=f"local[{CORES}]", quick=quick)
    return spark, processor_seconds


def processor_seconds(since=None):
    """Of this process and all below it: Java's Python workers are not ended while it runs.

    Args:
        since: a dict that this function has filled; seconds since then are given, and it is filled
            anew. What a process used that has ended meanwhile is not seen.
    """
    stats = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = place.read_text().rsplit(")", 1)[1].split()
            stats[int(place.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    below, used, found = {os.getpid()}, since if since is not None else {}, 0
    while below:
        found += sum(stats[one][1] - used.get(one, 0) for one in below if one in stats)
        below = {one for one, (parent, _) in stats.items() if parent in below}
    used.clear()
    used.update({one: ticks for one, (_, ticks) in stats.items()})
    return found / os.sysconf("SC_CLK_TCK")


def java_peak(spark):
    place = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/status")
    line = next(line for line in place.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def answered(name, trace, path):
    import importlib

    question = getattr(importlib.import_module(f"workbench.analysis.{name}"), name)
    target = Path(path).with_name(f"{Path(path).stem}-{name}")
    answer = question(chunks=trace.chunks)(trace.frame)
    answer.write.mode("overwrite").parquet(str(target))


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


SQL = """
COPY (
    WITH rows AS (
        SELECT run, connection, session, link, link_sender, attach_no, seq, frame_id, kind,
            from_peer = link_sender AS sends,
            CASE WHEN event = 'observed' OR (event = 'sent') = (from_peer = link_sender)
                THEN 'sender' ELSE 'receiver' END AS "end",
            frame.initial_delivery_count AS initial, frame.delivery_count AS stated,
            frame.link_credit AS credit,
            coalesce(frame.more, false) AND NOT coalesce(frame.aborted, false) AS more
        FROM '{trace}'
        WHERE protocol = 'amqp-1.0' AND event IN ('sent', 'received', 'observed')
            AND session IS NOT NULL AND link IS NOT NULL
    ), begun AS (
        SELECT *, sends AND kind = 'transfer' AND NOT coalesce(last_value(
            CASE WHEN sends AND kind = 'transfer' THEN more
                 WHEN sends AND kind = 'attach' THEN false END IGNORE NULLS
            ) OVER (link ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false) AS begins
        FROM rows
        WINDOW link AS (PARTITION BY run, connection, session, link, link_sender, attach_no, "end"
            ORDER BY seq)
    ), summed AS (
        SELECT *, sum(begins::INT) OVER upto AS n
        FROM begun
        WINDOW upto AS (PARTITION BY run, connection, session, link, link_sender, attach_no, "end"
            ORDER BY seq ROWS UNBOUNDED PRECEDING)
    ), latest AS (
        SELECT *,
            last_value(CASE WHEN sends AND kind = 'attach' THEN initial - n
                WHEN sends AND kind = 'flow' THEN stated - n END IGNORE NULLS) OVER upto AS base,
            last_value(CASE WHEN sends AND kind = 'attach' THEN initial END IGNORE NULLS)
                OVER upto AS began,
            last_value(CASE WHEN NOT sends AND kind = 'flow' AND credit IS NOT NULL
                THEN coalesce(stated, -1) END IGNORE NULLS) OVER upto AS granted_at,
            last_value(CASE WHEN NOT sends AND kind = 'flow' THEN credit END IGNORE NULLS)
                OVER upto AS granted
        FROM summed
        WINDOW upto AS (PARTITION BY run, connection, session, link, link_sender, attach_no, "end"
            ORDER BY seq ROWS UNBOUNDED PRECEDING)
    ), counted AS (
        SELECT *, ((base + n) & 4294967295)::BIGINT AS delivery_count FROM latest
    )
    SELECT run, connection, session, link, link_sender, attach_no, seq, frame_id, "end",
        delivery_count,
        greatest(0, coalesce(granted, 0) - CASE WHEN granted IS NULL THEN 0 ELSE
            ((delivery_count + 2147483648
                - CASE WHEN granted_at < 0 THEN began ELSE granted_at END) & 4294967295)
            - 2147483648 END)::BIGINT AS link_credit
    FROM counted
) TO '{answer}' (FORMAT parquet, COMPRESSION zstd)
"""
"""`credit` of traces that begin whole and miss nothing."""


def by_duckdb(path):
    import duckdb

    answer = str(Path(path).with_name("duckdb.parquet"))
    base = duckdb.connect(config={"threads": CORES})
    found = {"credit": timed(lambda: base.execute(SQL.format(trace=path, answer=answer)))}
    return found | own_use() | {"sums": sums(answer)}


def by_polars(path):
    os.environ["POLARS_MAX_THREADS"] = str(CORES)
    import polars as pl

    key = ["run", "connection", "session", "link", "link_sender", "attach_no", "end"]
    field = pl.col("frame").struct.field
    kind, sends = pl.col("kind"), pl.col("sends")
    attach, flow = sends & (kind == "attach"), sends & (kind == "flow")
    heard = ~sends & (kind == "flow") & pl.col("credit").is_not_null()
    by_sender = pl.col("from_peer") == pl.col("link_sender")
    own = (pl.col("event") == "observed") | ((pl.col("event") == "sent") == by_sender)
    transfer = sends & (kind == "transfer")
    turn = pl.when(transfer).then(pl.col("more")).when(attach).then(False)

    def latest(value):
        return value.forward_fill().over(key)

    def ask():
        rows = pl.scan_parquet(path).filter(
            (pl.col("protocol") == "amqp-1.0")
            & pl.col("event").is_in(["sent", "received", "observed"])
            & pl.col("session").is_not_null() & pl.col("link").is_not_null()
        )  # fmt: skip
        rows = rows.select(
            *key[:-1], "seq", "frame_id", "kind", by_sender.alias("sends"),
            pl.when(own).then(pl.lit("sender")).otherwise(pl.lit("receiver")).alias("end"),
            field("initial_delivery_count").alias("initial"),
            field("delivery_count").alias("stated"), field("link_credit").alias("credit"),
            (field("more").fill_null(False) & ~field("aborted").fill_null(False)).alias("more"),
        )  # fmt: skip
        held = turn.forward_fill().shift(1).over(key)
        rows = rows.with_columns(begins=transfer & ~held.fill_null(False))
        rows = rows.with_columns(n=pl.col("begins").cast(pl.Int64).cum_sum().over(key))
        stated = pl.when(attach).then("initial").when(flow).then("stated") - pl.col("n")
        rows = rows.with_columns(
            base=latest(stated),
            began=latest(pl.when(attach).then("initial")),
            at=latest(pl.when(heard).then(pl.col("stated").fill_null(-1))),
            granted=latest(pl.when(heard).then("credit")),
        )
        circle, half = 1 << 32, 1 << 31
        rows = rows.with_columns(delivery_count=(pl.col("base") + pl.col("n")) % circle)
        at = pl.when(pl.col("at") < 0).then("began").otherwise("at")
        used = (pl.col("delivery_count") - at + half) % circle - half
        left = pl.when(pl.col("granted").is_null()).then(0).otherwise(pl.col("granted") - used)
        rows = rows.with_columns(link_credit=pl.max_horizontal(left, 0)).select(
            *key[:-1], "seq", "frame_id", "end", "delivery_count", "link_credit"
        )
        rows.collect().write_parquet(answer, compression="zstd")

    answer = str(Path(path).with_name("polars.parquet"))
    return {"credit": timed(ask)} | own_use() | {"sums": sums(answer)}


ARGUMENT = "amqp_amqp_performative_arguments_"
PORTS = (56400, 56430)
"""Of the brokers whose captures are replayed."""


def by_tshark(path):
    """`tshark -T ek` into a DataFrame of pandas with all fields, a row per frame, and `credit`."""
    import pandas as pd

    def work():
        frame = pd.json_normalize([layers | {"amqp": layer} for layers, layer in frames_of(path)])
        numbers = {
            name: pd.to_numeric(frame[f"amqp.{ARGUMENT}{name}"])
            for name in ("handle", "deliveryCount", "linkCredit", "deliveryId")
        }
        found = pd.DataFrame({"stream": frame["tcp.tcp_tcp_stream"]} | numbers)
        counted(found).to_parquet(Path(path).with_name("tshark.parquet"))
        return len(found)

    frames = []
    return {"credit": timed(lambda: frames.append(work()))} | own_use() | {"frames": frames[0]}


def by_tshark_picked(path):
    """The same, and of each line the six fields that are needed are picked by hand."""
    import pandas as pd

    def field(layer, name):
        value = layer.get(f"{ARGUMENT}{name}")
        value = value[0] if isinstance(value, list) else value
        return None if value in (None, "") else int(value, 0)

    def work():
        rows = [
            (layers["tcp"].get("tcp_tcp_stream"), field(layer, "handle"),
             field(layer, "deliveryCount"), field(layer, "linkCredit"), field(layer, "deliveryId"))
            for layers, layer in frames_of(path)
        ]  # fmt: skip
        names = ["stream", "handle", "deliveryCount", "linkCredit", "deliveryId"]
        counted(pd.DataFrame(rows, columns=names)).to_parquet(
            Path(path).with_name("tshark.parquet")
        )
        return len(rows)

    frames = []
    return {"credit": timed(lambda: frames.append(work()))} | own_use() | {"frames": frames[0]}


def frames_of(path):
    """Of each AMQP frame that tshark sees all layers of its packet, and its own."""
    command = ["tshark", "-n", "-r", str(path), "-T", "ek", "-Y", "amqp"]
    for port in PORTS:
        command += ["-d", f"tcp.port=={port},amqp"]
    shark = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with shark:
        for line in shark.stdout:
            layers = json.loads(line).get("layers", {})
            found = layers.get("amqp", [])
            for layer in found if isinstance(found, list) else [found]:
                if isinstance(layer, dict):
                    yield layers, layer


def counted(frame):
    """`credit` by pandas, of a trace that begins whole and misses nothing."""
    key = [frame["stream"], frame["handle"]]
    frame["n"] = frame["deliveryId"].notna().groupby(key).cumsum()
    at = frame["deliveryCount"].groupby(key).ffill()
    frame["left"] = frame["linkCredit"].groupby(key).ffill() + at - frame["n"]
    assert frame["left"].notna().any()
    return frame


def own_use():
    mine = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = mine.ru_utime + mine.ru_stime + others.ru_utime + others.ru_stime
    return {"processor": used, "memory": mine.ru_maxrss / 1024}


def sums(answer):
    """Rows, and the sums of both counters: what the engines must agree in."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(answer, columns=["delivery_count", "link_credit"])
    return [table.num_rows, *(pc.sum(table[name]).as_py() for name in table.column_names)]


MEASURES = {
    "ask": ask, "from_capture": from_capture, "by_duckdb": by_duckdb, "by_polars": by_polars,
    "by_tshark": by_tshark, "by_tshark_picked": by_tshark_picked,
    "sums": lambda path: {"sums": sums(path)},
}  # fmt: skip


def apart(name, *arguments):
    """The measurement in a process of its own."""
    command = [sys.executable, __file__, "--measure", name, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        return {"failed": done.returncode}
    return json.loads(done.stdout.splitlines()[-1])


# -- traces --------------------------------------------------------------------------------------


class Traces:
    """The files, each made when it is first asked for."""

    def __init__(self, folder, links):
        self.folder, self.links = folder, links

    def mixed(self, rows):
        """Real runs with planted stalls, and a busy one."""
        from benchmarks.grown import tile
        from workbench.scenarios.big_trace import episodes
        from workbench.scenarios.run import run

        def make(path):
            runs = [episode.rows for episode in episodes()]
            runs.append(run("credit", "rmq4.3", {"messages": 10_000} | STEADY).rows)
            return tile(path, runs, rows)

        return self._made(f"mixed-{rows}", make)

    def one_link(self, rows):
        from benchmarks.grown import stretch
        from workbench.scenarios.run import run

        def make(path):
            return stretch(path, run("credit", "rmq4.3", {"messages": 3_000} | STEADY).rows, rows)

        return self._made(f"one-{rows}", make)

    def many_links(self, rows):
        from benchmarks.grown import tile
        from workbench.scenarios.run import run

        def make(path):
            messages = max(50, rows // self.links // 6)
            return tile(path, [run("credit", "rmq4.3", {"messages": messages} | STEADY).rows], rows)

        return self._made(f"many-{rows}", make)

    def captures(self, frames, files=10):
        """A folder of captures."""
        from benchmarks.replayed import Replay

        folder = self.folder / f"captures-{frames}-{files}"
        if not folder.exists():
            Replay().write_many(folder, frames, files)
        return folder

    def _made(self, name, make):
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            began = time.perf_counter()
            count = make(path)
            size = path.stat().st_size / 1e6
            took = time.perf_counter() - began
            print(f"   made {name}: {count:,} rows, {size:.0f} MB, {took:.0f} s", flush=True)
        return path


# -- the parts -----------------------------------------------------------------------------------


def line(name, found, *questions):
    if "failed" in found:
        print(f"{name:<44} failed")
        return 0.0
    took = sum(found[one] for one in questions)
    parts = " + ".join(f"{found[one]:.1f}" for one in questions)
    start = f"; start {found['start']:.1f} s" if "start" in found else ""
    print(
        f"{name:<44} {took:7.1f} s  ({parts})  processor {found['processor']:.0f} s, "
        f"{found['memory']:.0f} MB{start}",
        flush=True,
    )
    return took


QUESTIONS = ("credit", "stalls")


def both(traces, given):
    found = apart("ask", traces.mixed(given.rows), given.memory, *QUESTIONS)
    line(f"{given.rows:,} rows, heap {given.memory}", found, *QUESTIONS)


def small(traces, given):
    found = apart("ask", traces.mixed(given.less), LEAST, *QUESTIONS)
    line(f"{given.less:,} rows, heap {LEAST}", found, *QUESTIONS)


def hot(traces, given):
    for name, path in (
        (f"{given.rows:,} rows of one link", traces.one_link(given.rows)),
        (f"{given.rows:,} rows of {given.links:,} links", traces.many_links(given.rows)),
    ):
        line(name, apart("ask", path, given.memory, *QUESTIONS), *QUESTIONS)


def growth(traces, given):
    took = {}
    for rows in (given.less, given.rows):
        found = apart("ask", traces.mixed(rows), given.memory, *QUESTIONS)
        took[rows] = line(f"{rows:,} rows", found, *QUESTIONS)
    if all(took.values()):
        print(
            f"   rows grow {given.rows / given.less:.1f} times, "
            f"time {took[given.rows] / took[given.less]:.1f} times"
        )


def others(traces, given):
    path = traces.mixed(given.rows)
    spark = apart("ask", path, given.memory, "credit")
    took = line("credit by Spark", spark, "credit")
    wanted = apart("sums", path.with_name(f"{path.stem}-credit")).get("sums")
    for name in ("duckdb", "polars"):
        found = apart(f"by_{name}", path)
        theirs = line(f"credit by {name}", found, "credit")
        if theirs:
            same = "the same numbers" if found["sums"] == wanted else "OTHER NUMBERS"
            print(f"   Spark takes {took / theirs:.1f} times as long; {same}")


def capture(traces, given):
    found = apart("from_capture", traces.captures(given.frames), given.memory, given.frames)
    took = line(f"{given.frames:,} frames of capture, credit by Spark", found, "ingest", "credit")
    if not shutil.which("tshark"):
        print("   no tshark on this machine")
        return
    used = found.get("processor", 0)
    path = next(traces.captures(given.tshark, 1).glob("*.pcapng"))
    for name, words in (
        ("by_tshark", "tshark -T ek | pandas, all fields"),
        ("by_tshark_picked", "tshark -T ek | pandas, six fields"),
    ):
        theirs = apart(name, path)
        if took and line(words, theirs, "credit"):
            frames = theirs["frames"]
            for what, mine, other in (
                ("a second", took, theirs["credit"]),
                ("a second of the processor", used, theirs["processor"]),
            ):
                mine, other = given.frames / mine, frames / other
                print(f"   frames {what}: {mine:,.0f} and {other:,.0f}: {mine / other:.1f} times")


def number(word):
    return int(word.replace(",", "").replace("_", ""))


def main(words):
    if words[:1] == ["--measure"]:
        found = MEASURES[words[1]](*words[2:])
        print(json.dumps(found), flush=True)
        os._exit(0)  # Java is not waited for
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (
        ("rows", 10_000_000), ("less", 1_000_000), ("links", 1_000), ("frames", 1_000_000),
        ("tshark", 50_000),
    ):  # fmt: skip
        reader.add_argument(f"--{name}", type=number, default=default)
    reader.add_argument("--memory", default="2g")
    reader.add_argument("--only", nargs="+", action="extend", choices=PARTS)
    reader.add_argument("--keep", type=Path, help="a folder for the traces, which are left there")
    given = reader.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        place = given.keep or Path(folder)
        place.mkdir(exist_ok=True)
        traces = Traces(place, given.links)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        for part in PARTS:
            if part in (given.only or PARTS):
                print(f"-- {part}", flush=True)
                globals()[part](traces, given)


if __name__ == "__main__":
    main(sys.argv[1:])
