"""What it takes to make a trace of a capture, beside Wireshark's dissector on the same file.

    python3 benchmarks/decode_capture.py [FRAMES]      default: 100,000

Two captures: those of real brokers in `data/captures`, replayed, and the export of a run of ours,
which has one frame in each packet. Each is imported into a Parquet file, and read by `tshark -T ek`
into nothing. Told are microseconds of the processor per frame, the best of three: the clock on the
wall says less on a busy machine.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.replayed import Replay
from workbench.capture.importer import import_files
from workbench.scenarios.run import run
from workbench.trace.pcapng_out import export

STEADY = {"policy": "top-up-at-half", "n": 100, "acknowledge": "auto"}
PORTS = (5672, 56400, 56430)


def used():
    """Processor seconds of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def best(work, frames):
    """The least of three, in microseconds per frame."""
    spans = []
    for _ in range(3):
        begun = used()
        work()
        spans.append(used() - begun)
    return min(spans) / frames * 1e6


def measure(what, path, frames):
    target = path.with_suffix(".parquet")
    ours = best(lambda: import_files([path], target), frames)
    line = f"{what:<28} {frames:>9,} frames: import {ours:5.1f} us"
    if shutil.which("tshark"):
        command = ["tshark", "-n", "-r", str(path), "-T", "ek", "-Y", "amqp"]
        for port in PORTS:
            command += ["-d", f"tcp.port=={port},amqp"]
        theirs = best(lambda: subprocess.run(command, check=True, capture_output=True), frames)
        line += f", tshark -T ek {theirs:5.1f} us ({theirs / ours:.1f} times as much)"
    print(line)


def main():
    wanted = int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "replayed.pcapng")
        replay = Replay()
        measure("replayed captures", path, replay.write(path, wanted) * replay.frames)
        path = Path(folder, "exported.pcapng")
        rows = run("credit", "rmq4.3", {"messages": wanted // 3} | STEADY).rows
        measure("one frame in each packet", path, export(rows, path).frames)


if __name__ == "__main__":
    main()
