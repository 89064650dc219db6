"""A capture read many packets at a time gives the rows and the report of the plain way."""

from __future__ import annotations

import dataclasses
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.capture_builder import Script, Tape, bursts, record
from workbench.amqp10.frame import Frame, encode_item
from workbench.amqp10.messaging import Accepted, Rejected
from workbench.amqp10.performatives import Attach, Begin, Detach, Disposition, Flow, Role, Transfer
from workbench.amqp10.terminus import Source, Target
from workbench.scenarios.run import run
from workbench.trace import bulk
from workbench.trace.bulk_stretch import Stretch
from workbench.trace.files import from_table
from workbench.trace.importer import Capture, CaptureError, read_capture, read_tables
from workbench.trace.pcapng_out import export

CAPTURES = sorted((Path(__file__).parents[2] / "data" / "captures").glob("*.pcap*"))
WRAP = 2**32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bulk")


@pytest.fixture
def small(monkeypatch):
    """Few packets are worth to be read together."""
    monkeypatch.setattr(bulk, "LEAST", 4)
    monkeypatch.setattr(bulk, "FEW", 1)


@pytest.fixture
def together(monkeypatch):
    """Counts the packets that are read together."""
    counted = []
    end = Stretch._end

    def counts(self, reached):
        end(self, reached)
        counted.append(self.fast)

    monkeypatch.setattr(Stretch, "_end", counts)
    return counted


def both_ways(path: Path, port: int | None = None):
    """Rows and report, plainly and by columns; an error is its text."""
    found = []
    for way in ("batches", "tables"):
        capture = Capture(path, "x", port, False)
        try:
            parts = list(getattr(capture, way)(None, 0, 0))
        except CaptureError as error:
            found.append((str(error), None))
            continue
        rows = [row for part in parts for row in (part if way == "batches" else from_table(part))]
        found.append((rows, dataclasses.asdict(capture.report)))
    return found


def assert_the_same(path: Path, port: int | None = None) -> None:
    (rows, report), (by_columns, its_report) = both_ways(path, port)
    if isinstance(rows, str):
        assert by_columns == rows
        return
    for plain, fast in zip(rows, by_columns, strict=False):
        assert fast == plain
    assert len(by_columns) == len(rows)
    assert its_report == report


class Busy(Script):
    """A script with much in it that a busy connection has, and some that none should have."""

    def __init__(self, chance: random.Random, steps: int) -> None:
        super().__init__(name=f"b{chance.randrange(100)}", settled=chance.random() < 0.5)
        self.chance = chance
        self.steps = steps
        self.first = chance.choice((0, 17, WRAP - 3, WRAP // 2))
        self.out, self.back = chance.choice((0, WRAP - 2)), chance.choice((0, WRAP - 9, WRAP // 2))

    def frames(self):
        self.said = []
        self._open()
        self.number = [0, 0]
        self.begun = [0, 0]
        moves = (
            (30, self._transfer), (12, self._settle), (12, self._grant), (4, self._state_it),
            (3, self._of_session), (2, self._again), (2, self._odd), (1, self._unknown),
        )  # fmt: skip
        weights, doings = zip(*moves, strict=True)
        for _ in range(self.steps):
            self.chance.choices(doings, weights)[0]()
        return self.said

    def _transfer(self) -> None:
        by_client = self.chance.random() < 0.3
        channel, handle = (5, 0) if by_client else (2, 0)
        for part in range(parts := self.chance.choice((1, 1, 1, 1, 2, 3))):
            number = self.number[by_client]
            head = {"delivery_id": number, "delivery_tag": struct.pack(">I", number)}
            if part and self.chance.random() < 0.7:
                head = {}
            more = {"more": part + 1 < parts} if parts > 1 or self.chance.random() < 0.5 else {}
            if part and self.chance.random() < 0.1:
                more["aborted"] = True
            settled = self.chance.choice((None, False, True))
            if settled is not None:
                more["settled"] = settled
            if self.chance.random() < 0.5:
                more["message_format"] = 0
            size = self.chance.choice((0, 5, 300))
            self._say(by_client, channel, Transfer(handle=handle, **head, **more), bytes(size))
            if by_client:
                self.sent += 1
            else:
                self.got += 1
        self.number[by_client] += 1
        self.begun[by_client] += 1

    def _settle(self) -> None:
        by_client = self.chance.random() < 0.7
        role = self.chance.choice((Role.RECEIVER, Role.RECEIVER, Role.SENDER))
        first = max(0, self.number[not by_client] - self.chance.randint(0, 6))
        last = self.chance.choice((None, first, first + self.chance.randint(0, 5)))
        state = self.chance.choice((None, Accepted(), Accepted(), Rejected()))
        settled = self.chance.choice((None, False, True, True))
        self._say(
            by_client, 5 if by_client else 2,
            Disposition(role=role, first=first, last=last, settled=settled, state=state),
        )  # fmt: skip

    def _numbers(self, by_client: bool) -> dict:
        mine, theirs = (self.sent, self.got) if by_client else (self.got, self.sent)
        known = {
            "next_incoming_id": ((self.back if by_client else self.out) + theirs) % WRAP,
            "incoming_window": self.chance.choice((0, 3, 2048)),
            "next_outgoing_id": ((self.out if by_client else self.back) + mine) % WRAP,
            "outgoing_window": self.chance.choice((0, 100, WRAP - 1)),
        }
        if self.chance.random() < 0.03:
            known["next_incoming_id"] = (known["next_incoming_id"] + WRAP // 2) % WRAP
        if self.chance.random() < 0.03:
            del known["next_incoming_id"]
        return known

    def _grant(self) -> None:
        by_client = self.chance.random() < 0.7
        count = (self.first + self.begun[not by_client]) % WRAP
        more = {}
        for name in ("drain", "echo"):
            if (value := self.chance.choice((None, None, False, True))) is not None:
                more[name] = value
        if self.chance.random() < 0.9:
            more["delivery_count"] = count
        if self.chance.random() < 0.95:
            more["link_credit"] = self.chance.choice((0, 1, 5, 100))
        self._say(
            by_client, 5 if by_client else 2, Flow(handle=7, **self._numbers(by_client), **more)
        )

    def _state_it(self) -> None:
        by_client = self.chance.random() < 0.5
        flow = Flow(
            handle=0, delivery_count=(self.first + self.begun[by_client]) % WRAP,
            link_credit=self.chance.randint(0, 9), available=self.chance.choice((None, 0, 4)),
            **self._numbers(by_client),
        )  # fmt: skip
        self._say(by_client, 5 if by_client else 2, flow)

    def _of_session(self) -> None:
        by_client = self.chance.random() < 0.5
        self._say(by_client, 5 if by_client else 2, Flow(**self._numbers(by_client)))

    def _again(self) -> None:
        """The consumer's link goes and comes again."""
        self._say(True, 5, Detach(handle=7))
        self._say(False, 2, Detach(handle=0))
        ends = {"name": self.name, "source": Source(address="/queues/q"), "target": Target()}
        self._say(True, 5, Attach(handle=7, role=Role.RECEIVER, **ends))
        self.first = self.chance.randrange(WRAP)
        self.begun[False] = 0
        attach = Attach(handle=0, role=Role.SENDER, initial_delivery_count=self.first, **ends)
        self._say(False, 2, attach)

    def _odd(self) -> None:
        """What the short cut does not read: an empty frame, another session, a rare field."""
        kind = self.chance.randrange(3)
        if kind == 0:
            self._say(self.chance.random() < 0.5, 0, None)
        elif kind == 1:
            self._say(True, 9, Begin(next_outgoing_id=1, incoming_window=5, outgoing_window=5))
        else:
            self._say(True, 5, Disposition(role=Role.RECEIVER, first=0, batchable=True))

    def _unknown(self) -> None:
        """A handle and a channel that nobody knows."""
        kind = self.chance.randrange(3)
        if kind == 0:
            self._say(False, 2, Transfer(handle=3, delivery_id=self.number[False]), b"x")
            self.got += 1
        elif kind == 1:
            self._say(True, 77, Transfer(handle=0, delivery_id=0, delivery_tag=b""), b"x")
        else:
            self._say(True, 5, Transfer(handle=7, delivery_id=3, delivery_tag=b"w"), b"wrong way")
            self.sent += 1


def busy(chance: random.Random) -> Tape:
    """Some connections at once; how frames lie in packets differs."""
    plan = []
    for talk in range(chance.choice((1, 1, 2, 3))):
        said = Busy(chance, chance.randint(5, 120)).frames()
        plan += bursts(said, talk, 1_000 + 3 * talk, chance.choice((10, 1_000)))
    plan.sort(key=lambda burst: burst.t_us)
    how = chance.choice(("frames", "frames", "bursts", "anywhere"))
    tape, _ = record(
        plan, cut=chance if how == "anywhere" else None, frame_by_frame=how == "frames",
        handshake=chance.random() < 0.9, initial=chance.choice((7, WRAP - 4_000)),
    )  # fmt: skip
    return tape


def disturbed(tape: Tape, chance: random.Random) -> list[tuple[int, bytes]]:
    """Packets lost, repeated, late, cut off, of another kind; or a beginning that is missing."""
    packets = list(tape.packets)
    for _ in range(chance.choice((0, 0, 1, 2, 5))):
        at = chance.randrange(len(packets))
        what = chance.randrange(6)
        t_us, data = packets[at]
        if what == 0:
            del packets[at]
        elif what == 1:
            packets.insert(min(len(packets), at + chance.randint(1, 5)), packets[at])
        elif what == 2:
            packets.insert(max(0, at - chance.randint(1, 4)), packets.pop(at))
        elif what == 3:
            packets[at] = (t_us, data[: chance.randint(10, len(data))])
        elif what == 4:
            packets.insert(at, (t_us, data[:12] + b"\x08\x06" + bytes(30)))
        elif len(data) > 60:
            place = chance.randrange(54, len(data))
            packets[at] = (t_us, data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :])
        if not packets:
            return list(tape.packets)
    if chance.random() < 0.2:
        del packets[: chance.randint(1, 1 + len(packets) // 2)]
    return packets or list(tape.packets)


@pytest.mark.slow
@settings(derandomize=True, max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_is_in_a_capture_it_gives_the_same_rows_and_report(folder, seed):
    """Several connections, links that come again, odd frames, losses, cut packets, damage."""
    chance = random.Random(seed)
    path = busy_file(folder, chance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "LEAST", chance.choice((1, 4, 32)))
        patch.setattr(bulk, "FEW", 0)
        assert_the_same(path, chance.choice((None, None, 5672)))


def busy_file(folder: Path, chance: random.Random) -> Path:
    tape = busy(chance)
    return tape.write(folder / "busy.pcapng", disturbed(tape, chance))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_a_real_broker_s_capture_gives_the_same(path, small):
    """Every capture in data/."""
    assert_the_same(path)


def test_most_of_a_busy_capture_is_read_together(folder, together):
    """And its rows are those of the plain way: without that, all of this would be for nothing."""
    steady = {"messages": 1_500, "policy": "top-up-at-half", "n": 100, "acknowledge": "auto"}
    path = folder / "steady.pcapng"
    frames = export(run("credit", "rmq4.3", steady).rows, path).frames
    assert_the_same(path)
    assert sum(together) > 0.7 * frames


@pytest.mark.parametrize("width", [4, 6])
@pytest.mark.parametrize("blocks", [True, False])
def test_both_formats_and_both_ip_versions_are_read_together(
    folder, small, together, width, blocks
):
    """pcapng and pcap; IPv6 in place of IPv4, in the same segments."""
    tape = busy(random.Random(3))
    packets = [(t_us, six(data) if width == 6 else data) for t_us, data in tape.packets]
    path = folder / f"{width}{blocks}.pcapng"
    if blocks:
        tape.write(path, packets)
    else:
        head = struct.pack(">IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
        path.write_bytes(head + b"".join(
            struct.pack(">IIII", t_us // 1_000_000, t_us % 1_000_000 * 1000, len(data), len(data))
            + data for t_us, data in packets
        ))  # fmt: skip
    assert_the_same(path)
    assert sum(together) > len(packets) // 3


def six(data: bytes) -> bytes:
    """An Ethernet packet of IPv4 as one of IPv6."""
    ip, tcp = data[14:34], data[34:]
    ends = bytes(12) + ip[12:16] + bytes(12) + ip[16:20]
    return data[:12] + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + ends + tcp


def test_secrets_are_taken_out_of_tables_too(folder):
    """With `redact` the tables have the rows of the plain way."""
    path = busy(random.Random(1)).write(folder / "secret.pcapng")
    rows = [row for part in read_capture(path, "x", redact=True) for row in part]
    tables = [from_table(table) for table in read_tables(path, "x", redact=True)]
    assert [row for part in tables for row in part] == rows


def test_a_frame_in_an_unusual_encoding_goes_the_plain_way(folder, small):
    """A list with a long count says the same, and is told with the same fields."""
    tape = busy(random.Random(5))
    usual = encode_item(Frame(5, Disposition(role=Role.RECEIVER, first=1, settled=True)))
    fields = usual[14:]
    body = b"\x00\x53\x15\xd0" + struct.pack(">II", len(fields) + 4, usual[13]) + fields
    wide = struct.pack(">IBBH", 8 + len(body), 2, 0, 5) + body
    packets = [(t_us, data.replace(usual, wide)) for t_us, data in tape.packets]
    assert_the_same(tape.write(folder / "wide.pcapng", packets))
