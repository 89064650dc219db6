"""Captures of any size out of real ones: their packets again and again, later and from other ports.

    python3 benchmarks/replayed.py FOLDER [--frames 1_000_000] [--files 10] [CAPTURE ...]

Default: the captures of real brokers in `data/captures`. In each copy every connection has a client
port of its own and the clocks go on, so that a copy is new traffic; octets, and how frames lie in
packets, are what the brokers sent.
"""

import argparse
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from workbench.capture.importer import import_capture
from workbench.capture.packet import Segment, segment_of
from workbench.capture.pcap import CaptureReader
from workbench.trace.packet_out import ACK, SYN, PcapngWriter

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcapng"))
FIRST_PORT, LAST_PORT = 10_000, 50_000


class Replay:
    """Packets of some captures, to be written as often as wanted.

    Attributes:
        frames: of AMQP 1.0 in one copy.
    """

    def __init__(self, captures=CAPTURES):
        self.frames = sum(import_capture(path).report.frames for path in captures)
        found, clients = [], {}
        for number, path in enumerate(captures):
            with path.open("rb") as stream:
                packets = list(CaptureReader(stream, path.name))
            for packet in packets:
                segment = segment_of(packet)
                if isinstance(segment, Segment):
                    tcp = packet.data.index(segment.source[-2:] + segment.destination[-2:], 34)
                    if segment.flags & (SYN | ACK) == SYN:
                        clients.setdefault((number, segment.source), len(clients))
                    sends = (number, segment.source) in clients
                    client = segment.source if sends else segment.destination
                    place = tcp if sends else tcp + 2
                    key = clients[number, client]
                    found.append((packet.t_us - packets[0].t_us, packet.data, place, key))
        found.sort(key=lambda one: one[0])
        self._packets, self._clients = found, len(clients)
        self._lasts_us = found[-1][0] + 1_000_000

    def write(self, path, frames, first=0):
        """Writes so many frames at least to one capture; returns how many copies.

        Args:
            path: the pcapng file.
            frames: as many at least.
            first: number of the first copy; another one makes another capture.
        """
        copies = -(-frames // self.frames)
        with Path(path).open("wb") as stream:
            writer = PcapngWriter(stream)
            for copy in range(first, first + copies):
                later = 1_700_000_000_000_000 + copy * self._lasts_us
                for t_us, data, place, key in self._packets:
                    ports = LAST_PORT - FIRST_PORT
                    port = FIRST_PORT + (copy * self._clients + key) % ports
                    moved = data[:place] + struct.pack(">H", port) + data[place + 2 :]
                    writer.packet(later + t_us, moved)
        return copies

    def write_many(self, folder, frames, files):
        """Writes so many frames to so many captures in a folder; returns how many frames."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        copies = 0
        for number in range(files):
            path = folder / f"replayed-{number:03d}.pcapng"
            copies += self.write(path, -(-frames // files), copies)
        return copies * self.frames


def number(word):
    return int(word.replace(",", "").replace("_", ""))


def main():
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("folder")
    reader.add_argument("captures", nargs="*", type=Path, default=CAPTURES)
    reader.add_argument("--frames", type=number, default=1_000_000)
    reader.add_argument("--files", type=int, default=10)
    given = reader.parse_args()
    count = Replay(given.captures or CAPTURES).write_many(given.folder, given.frames, given.files)
    print(f"{count:,} frames in {given.files} captures in {given.folder}")


if __name__ == "__main__":
    main()
