"""The article's two_senders run at full scale: counts, residuals, rows, time and memory.

    python benchmarks/two_senders.py [--run-ms 10000] [--tap off|on|both] [--rounds 1]

Ten virtual seconds of preset `blog2024` are played, each time in a process of its own: the AMQP 1.0
half alone and both halves, without a tap, and both with the full tap, whose rows go to a Parquet
file as they are made. The counts with and without a tap must be the same. **Bar: both halves take
no more than twice the processor's time of the 1.0 half alone**, without a tap; the end status is 1
where they take more. With a tap the same is told without a bar: a message has three frames over
0-9-1, each with two rows, and its channel tells of credit and mailbox. Then what was put in and
what came out is told, beside the article. Beside it, in the same run: two Proton engines that move
pre-settled messages, pumped in memory by octets, without a broker, a queue, a disk, a clock or a
trace; and `quorum_publish` (a queue alone and over AMQP 1.0) with some of its messages, unless
`--alone` is given. Wall time means little on a shared machine: CPU time is told beside it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

MOST_TIMES = 2.0
BODY = b"\x00\x53\x75\xa0\x0csome payload"
CREDIT = 170
OFF, ON, BOTH = "off", "on", "both"


def played(run_ms: int, path: str | None, protocol: str) -> dict[str, Any]:
    """One run; with a path its trace goes there."""
    from workbench.scenarios.streaming import stream
    from workbench.scenarios.two_senders import counted, queue_name, told, two_senders
    from workbench.trace.files import TraceWriter, prepare

    given = {"run_ms": run_ms, "protocol": protocol}
    if path is not None:
        prepare()
    wall, cpu = time.perf_counter(), time.process_time()
    if path is None:
        done = stream(two_senders, parameters=given)
    else:
        with TraceWriter(path, raw=False) as writer:
            done = stream(two_senders, parameters=given, take=writer.write)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "wall": wall,
        "cpu": cpu,
        "rows": done.rows,
        "events": done.events,
        "problems": list(done.problems),
        "octets": 0 if path is None else Path(path).stat().st_size,
        "messages": {
            queue_name(one.kind, one.protocol): one.messages for one in counted(done.world)
        },
        "told": told(done.world),
    }


def proton_pair(messages: int) -> dict[str, Any] | None:
    """As many pre-settled messages through two Proton engines; None where Proton is missing."""
    try:
        import proton
    except ImportError:
        return None
    out, client = proton.Transport(proton.Transport.CLIENT), proton.Connection()
    into, server = proton.Transport(proton.Transport.SERVER), proton.Connection()
    out.bind(client)
    into.bind(server)

    def pump() -> None:
        moved = True
        while moved:
            moved = False
            for one, other in ((out, into), (into, out)):
                while one.pending() > 0 and (room := other.capacity()) > 0:
                    data = one.peek(min(one.pending(), room))
                    other.push(data)
                    one.pop(len(data))
                    moved = True

    client.open()
    session = client.session()
    session.open()
    sender = session.sender("l")
    sender.snd_settle_mode = proton.Link.SND_SETTLED
    sender.open()
    pump()
    server.open()
    server.session_head(proton.Endpoint.REMOTE_ACTIVE).open()
    receiver = server.link_head(proton.Endpoint.REMOTE_ACTIVE)
    receiver.open()
    wall, cpu = time.perf_counter(), time.process_time()
    sent = received = 0
    while received < messages:
        if receiver.credit <= CREDIT // 2:
            receiver.flow(CREDIT - receiver.credit)
        pump()
        while sender.credit > 0 and sent < messages:
            delivery = sender.delivery(str(sent))
            sender.send(BODY)
            delivery.settle()
            sender.advance()
            sent += 1
        pump()
        while (found := receiver.current) is not None and found.readable:
            receiver.recv(found.pending)
            receiver.advance()
            found.settle()
            received += 1
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def apart(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    """Work in a process of its own; returns what came of it and the process's peak memory in MB."""
    ours, theirs = multiprocessing.Pipe(duplex=False)

    def do() -> None:
        done = work(*given)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        theirs.send_bytes(json.dumps([done, peak]).encode())

    process = multiprocessing.get_context("fork").Process(target=do)
    process.start()
    theirs.close()
    try:
        done, peak = json.loads(ours.recv_bytes())
    except EOFError:
        raise SystemExit("a run ended without a result; see above") from None
    finally:
        process.join()
    return done, peak


def tell(label: str, done: dict[str, Any], peak: float) -> None:
    """What one run took."""
    total = sum(done["messages"].values())
    line = (
        f"{label:<18} {total:>9,} messages  wall {done['wall']:6.1f} s  CPU {done['cpu']:6.1f} s"
        f"  {done['cpu'] / total * 1e6:5.1f} us CPU a message  peak {peak:5.0f} MB"
    )
    if done["rows"]:
        line += f"  {done['rows']:,} rows, {done['octets'] / 1e6:.0f} MB of Parquet"
    print(line, flush=True)
    for problem in done["problems"]:
        print(f"         {problem}")


def measured(run_ms: int, tap: str) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The 1.0 half, then both; and whether both took no more than they may."""
    from workbench.scenarios import two_senders as benchmark

    found = []
    for protocol in (benchmark.AMQP_1_0, benchmark.BOTH):
        with tempfile.TemporaryDirectory() as folder:
            path = None if tap == OFF else str(Path(folder) / "two_senders.parquet")
            done, peak = apart(played, run_ms, path, protocol)
        tell(f"{protocol}, tap {tap}", done, peak)
        found.append(done)
    one, both = found
    times = both["cpu"] / one["cpu"]
    kept = tap == ON or times <= MOST_TIMES
    bar = f"; bar {MOST_TIMES:g}: {'kept' if kept else 'MISSED'}" if tap == OFF else ""
    print(f"both halves, tap {tap}: {times:.2f} x the 1.0 half's CPU time{bar}", flush=True)
    return one, both, kept


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run-ms", type=int, default=10_000)
    parser.add_argument("--tap", choices=(OFF, ON, BOTH), default=BOTH)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="no rival and no quorum_publish")
    given = parser.parse_args()
    print(f"two_senders, preset blog2024, {given.run_ms / 1000:g} virtual seconds", flush=True)
    seen: list[tuple[dict[str, Any], dict[str, Any], bool]] = []
    for _ in range(given.rounds):
        taps = (OFF, ON) if given.tap == BOTH else (given.tap,)
        seen += [measured(given.run_ms, tap) for tap in taps]
    first, last, _ = seen[0]
    for one, both, _ in seen:
        if (one["messages"], both["messages"]) != (first["messages"], last["messages"]):
            raise SystemExit("two runs counted differently")
    print("\n".join(last["told"]))
    status = 0 if all(kept for *_, kept in seen) else 1
    if given.alone:
        return status
    total = sum(first["messages"].values())
    part = min(total, 100_000)
    rival, _ = apart(proton_pair, part)
    if rival is None:
        print("Proton pair: not installed")
    else:
        each = rival["cpu"] / part
        print(
            f"Proton pair, {part:,} messages: {each * 1e6:.1f} us CPU a message,"
            f" {rival['wall'] / part * total:.1f} s for as many as the 1.0 half"
        )
        ours = first["cpu"] / total
        tap = OFF if given.tap == BOTH else given.tap
        print(f"our 1.0 half with tap {tap}: {ours / each:.2f} x that")
    import quorum_publish

    sys.argv = [sys.argv[0], "--messages", "20000"]
    return quorum_publish.main() or status


if __name__ == "__main__":
    sys.exit(main())
