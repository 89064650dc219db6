"""How fast a capture becomes rows, against Wireshark's dissector on the same file.

Run: python benchmarks/decode_capture.py [frames]

One pcapng is made with one AMQP frame per TCP segment, one with eight; both hold a consumer's
traffic: transfers of 100-byte messages, a flow and a disposition now and then. Each is read by
`import_capture` and by `tshark -T ek`; the best of three is taken and the ratio printed.
"""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from workbench.amqp10.frame import Frame, ProtocolHeader, encode_item
from workbench.amqp10.messaging import Accepted
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Disposition,
    Flow,
    Open,
    Role,
    Transfer,
)
from workbench.amqp10.terminus import Source, Target
from workbench.capture.importer import import_capture
from workbench.trace.packet_out import Address, PcapngWriter, TcpTalk

PORT = 5672
BODY = b"\x00\x53\x75\xa0\x64" + bytes(100)
Sent = tuple[bool, bytes]


def opening() -> Iterator[Sent]:
    """Headers, open, begin, attach; True is from the client."""

    def both(client: object, broker: object) -> Iterator[Sent]:
        yield True, encode_item(client if isinstance(client, ProtocolHeader) else Frame(0, client))
        yield False, encode_item(broker if isinstance(broker, ProtocolHeader) else Frame(0, broker))

    yield from both(ProtocolHeader(), ProtocolHeader())
    yield from both(Open(container_id="a"), Open(container_id="b", max_frame_size=131072))
    window = {"next_outgoing_id": 0, "incoming_window": 2048, "outgoing_window": 2048}
    yield from both(Begin(**window), Begin(remote_channel=0, **window))
    ends = {"name": "q", "handle": 0, "source": Source(address="/queues/q"), "target": Target()}
    yield from both(
        Attach(role=Role.RECEIVER, **ends),
        Attach(role=Role.SENDER, initial_delivery_count=0, **ends),
    )


def traffic(frames: int) -> Iterator[Sent]:
    """A consumer that tops its credit up at half and settles by ranges."""
    for number in range(frames):
        if number % 50 == 0:
            flow = Flow(
                next_incoming_id=number,
                incoming_window=2048,
                next_outgoing_id=0,
                outgoing_window=2048,
                handle=0,
                delivery_count=number,
                link_credit=100,
            )
            yield True, encode_item(Frame(0, flow))
            if number:
                done = Disposition(
                    role=Role.RECEIVER,
                    first=number - 50,
                    last=number - 1,
                    settled=True,
                    state=Accepted(),
                )
                yield True, encode_item(Frame(0, done))
        transfer = Transfer(
            handle=0,
            delivery_id=number,
            delivery_tag=number.to_bytes(4, "big"),
            message_format=0,
            settled=False,
        )
        yield False, encode_item(Frame(0, transfer, BODY))


def write(path: Path, frames: int, per_packet: int) -> None:
    """A capture with so many frames of one direction per segment."""
    with path.open("wb") as stream:
        talk = TcpTalk(
            PcapngWriter(stream),
            Address(ip="10.0.0.1", port=40000),
            Address(ip="10.0.0.2", port=PORT),
        )
        talk.open(0)
        t_us = 0
        for from_client, data in opening():
            t_us += 10
            talk.send(t_us, data, from_client=from_client)
        waiting: list[bytes] = []
        side = True
        for from_client, data in traffic(frames):
            if waiting and (from_client != side or len(waiting) == per_packet):
                t_us += 10
                talk.send(t_us, b"".join(waiting), from_client=side)
                waiting.clear()
            side = from_client
            waiting.append(data)
        talk.send(t_us + 10, b"".join(waiting), from_client=side)


def best(task: Callable[[], object], times: int = 3) -> float:
    """Shortest wall time of several runs, in seconds."""
    spans = []
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        task()
        spans.append(time.perf_counter() - start)
    return min(spans)


def main() -> None:
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    tshark = shutil.which("tshark")
    with tempfile.TemporaryDirectory() as folder:
        for per_packet, target in ((1, 5.0), (8, 1.5)):
            path = Path(folder) / f"{per_packet}.pcapng"
            write(path, frames, per_packet)
            rows = len(import_capture(path).rows)
            ours = best(lambda path=path: import_capture(path))
            line = f"{per_packet} frames per packet: {rows} rows, {rows / ours:,.0f} frames/s"
            if tshark is None:
                print(f"{line}; tshark is not installed, no ratio")
                continue
            command = [tshark, "-r", str(path), "-T", "ek"]
            theirs = best(
                lambda command=command: subprocess.run(command, check=True, capture_output=True)
            )
            print(
                f"{line}; tshark -T ek {rows / theirs:,.0f} frames/s; "
                f"ratio {theirs / ours:.2f} (wanted {target})"
            )


if __name__ == "__main__":
    main()
