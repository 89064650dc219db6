"""TCP reassembly: whatever the network did to the segments, the octets come in order, once."""

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.capture.packet import Segment
from workbench.capture.tcp import PATIENCE, Reassembler
from workbench.trace.packet_out import ACK, FIN, RST, SYN

CLIENT, BROKER = b"\x0a\0\0\1\x9c\x40", b"\x0a\0\0\2\x16\x28"
WRAP = 2**32


@dataclass
class Talk:
    """Feeds segments by stream offset; `base` is the sequence number of offset 0."""

    reassembler: Reassembler
    base: int = 100
    source: bytes = CLIENT
    destination: bytes = BROKER
    packets: int = 0

    def feed(
        self, offset: int, data: bytes, flags: int = ACK, ack: int = 0, missing: int = 0,
        window: int = 100,
    ):  # fmt: skip
        self.packets += 1
        seq = (self.base + offset) % WRAP
        segment = Segment(self.source, self.destination, seq, ack, flags, data, missing, window)
        return self.reassembler.feed(segment, self.packets, self.packets)


def octets(pieces) -> bytes:
    return b"".join(piece.data for piece in pieces)


def test_in_order_segments_pass_with_their_own_times():
    """The plain case: each segment is readable when it comes."""
    talk = Talk(Reassembler())
    assert talk.feed(-1, b"", SYN) == []
    first, second = talk.feed(0, b"AB")[0], talk.feed(2, b"CD")[0]
    assert (first.data, first.t_us, second.data, second.t_us) == (b"AB", 2, b"CD", 3)
    assert first.direction.from_start
    assert first.direction.conversation.opened_by == CLIENT


def test_a_segment_out_of_order_is_readable_when_the_hole_is_filled():
    """Octets behind a hole get the time of the packet that fills it."""
    talk = Talk(Reassembler())
    talk.feed(-1, b"", SYN)
    assert talk.feed(2, b"CD") == []
    pieces = talk.feed(0, b"AB")
    assert [(p.data, p.t_us) for p in pieces] == [(b"AB", 3), (b"CD", 3)]
    assert pieces[0].direction.out_of_order == 1


def test_repeated_and_overlapping_octets_pass_once():
    """A retransmission brings nothing new; an overlapping one only what is new."""
    talk = Talk(Reassembler())
    talk.feed(-1, b"", SYN)
    talk.feed(0, b"ABCD")
    assert talk.feed(0, b"ABCD") == []
    assert octets(talk.feed(2, b"CDEF")) == b"EF"
    assert octets(talk.feed(1, b"BCDEFG")) == b"G"
    direction = talk.reassembler.conversations[0].directions[0]
    assert (direction.duplicates, direction.octets) == (3, 7)


def test_what_a_reset_brings_is_no_octet_of_the_stream():
    """It may tell its reason [RFC 9293, 3.5.3]."""
    talk = Talk(Reassembler())
    assert octets(talk.feed(0, b"AB")) == b"AB"
    assert talk.feed(2, b"BIG-IP: no flow", RST) == []
    assert talk.reassembler.finish() == []


@pytest.mark.parametrize("base", [5, 0xF000_0000], ids=["behind", "ahead"])
@pytest.mark.parametrize("end", [FIN | ACK, RST])
def test_octets_far_away_behind_an_end_are_of_another_connection(base, end):
    """On the same ports; its SYN is not in the capture."""
    reassembler = Reassembler()
    talk = Talk(reassembler, base=0x6000_0000)
    talk.feed(0, b"AB")
    talk.feed(2, b"", end)
    pieces = Talk(reassembler, base=base).feed(0, b"CD")
    assert octets(pieces) == b"CD"
    assert [one.direction.conversation.number for one in pieces] == [2]
    assert sum(one.lost_octets for one in reassembler.conversations[1].directions) == 0


def test_sequence_numbers_wrap():
    """The stream goes on over sequence number 2^32 - 1 (RFC 9293, 3.4)."""
    talk = Talk(Reassembler(), base=WRAP - 2)
    talk.feed(-1, b"", SYN)
    assert talk.feed(3, b"DE") == []
    assert octets(talk.feed(0, b"ABC")) == b"ABCDE"


def test_an_acknowledged_hole_is_a_gap_after_some_patience():
    """The peer has the octets, so they will not come again: the capture lost them."""
    reassembler = Reassembler()
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    talk.feed(-1, b"", SYN)
    back.feed(-1, b"", SYN | ACK)
    talk.feed(0, b"AB")
    talk.feed(5, b"FG")
    pieces = []
    for _ in range(PATIENCE):
        pieces += back.feed(0, b"", ack=107)
    assert [(p.gap, p.data) for p in pieces] == [(3, b""), (0, b"FG")]
    direction = reassembler.conversations[0].directions[0]
    assert (direction.gaps, direction.lost_octets, direction.octets) == (1, 3, 4)


def test_an_acknowledgement_of_unseen_octets_shows_a_hole():
    """What the peer says after it got octets that the capture lacks stands behind the gap."""
    reassembler = Reassembler()
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    talk.feed(-1, b"", SYN)
    back.feed(-1, b"", SYN | ACK, ack=100)
    assert back.feed(0, b"answer", ack=101) == []
    talk.feed(1, b"B", ack=506)
    assert [(p.gap, p.data) for p in reassembler.finish()] == [(1, b""), (0, b"answer"), (0, b"B")]


def test_a_gap_has_the_time_of_what_showed_it_first():
    """What was acknowledged at 3 was missing then, whenever the next octets come."""
    reassembler = Reassembler()
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    talk.feed(-1, b"", SYN)
    back.packets = 2
    back.feed(0, b"answer", ack=101)
    talk.packets = 8
    talk.feed(1, b"B")
    assert [(p.gap, p.data, p.t_us) for p in reassembler.finish()] == [
        (1, b"", 3), (0, b"answer", 3), (0, b"B", 9)
    ]  # fmt: skip


def test_a_hole_is_a_gap_wherever_the_other_end_said_something_within_it():
    """What it said between two bits that are missing knows nothing of the second."""
    reassembler = Reassembler()
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    talk.feed(-1, b"", SYN)
    back.packets = 2
    back.feed(0, b"", ack=102)
    back.feed(0, b"", ack=103)
    back.feed(0, b"answer", ack=103)
    back.feed(6, b"", ack=104)
    talk.packets = 8
    talk.feed(5, b"F")
    assert [(p.gap, p.data, p.t_us) for p in reassembler.finish()] == [
        (3, b"", 3), (0, b"answer", 5), (2, b"", 6), (0, b"F", 9)
    ]  # fmt: skip
    direction = reassembler.conversations[0].directions[0]
    assert (direction.gaps, direction.lost_octets, direction.octets) == (2, 5, 1)


def test_a_direction_without_packets_is_missing_where_the_other_acknowledges_it():
    """A capture may have one direction alone; it begins where the first acknowledgement is."""
    reassembler = Reassembler()
    talk = Talk(reassembler)
    talk.feed(-1, b"", SYN)
    talk.feed(0, b"A", ack=500)
    talk.feed(1, b"B", ack=507)
    talk.feed(2, b"C", ack=507)
    assert [(p.gap, p.data) for p in reassembler.finish()] == [(7, b""), (0, b"B"), (0, b"C")]
    silent = reassembler.conversations[0].directions[1]
    assert (silent.octets, silent.lost_octets, silent.from_start) == (0, 7, False)


def test_what_was_acknowledged_before_a_directions_first_packet_is_not_missing():
    """The capture began while it was under way: it begins at that packet."""
    reassembler = Reassembler()
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    assert octets(talk.feed(0, b"A", ack=500)) == b"A"
    assert talk.feed(1, b"B", ack=507) == []
    back.packets = 2
    assert [(p.gap, p.data) for p in back.feed(20, b"late")] == [(0, b"B"), (0, b"late")]
    assert reassembler.conversations[0].directions[1].gaps == 0


def test_an_acknowledgement_that_came_before_its_octets_is_no_loss():
    """A capture may record the two directions out of step."""
    reassembler = Reassembler()
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    talk.feed(-1, b"", SYN)
    back.feed(-1, b"", SYN | ACK, ack=100)
    assert back.feed(0, b"answer", ack=101) == []
    pieces = talk.feed(0, b"A")
    assert [(p.gap, p.data) for p in pieces] == [(0, b"A"), (0, b"answer")]
    assert [p.t_us for p in pieces] == [2, 2]  # who acknowledges octets has them


def test_two_segments_behind_their_acknowledgement_are_both_put_before_it():
    """One acknowledgement speaks of many segments [RFC 9293, 3.4]."""
    reassembler = Reassembler()
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    talk.feed(-1, b"", SYN)
    back.feed(-1, b"", SYN | ACK, ack=100)
    assert back.feed(0, b"answer", ack=102) == []
    assert talk.feed(0, b"A") == []
    assert octets(talk.feed(1, b"B")) == b"ABanswer"


def other(reassembler: Reassembler, packets: int) -> Talk:
    """Another connection, seen from this packet on."""
    return Talk(reassembler, 900, b"\x0a\0\0\7\x9c\x40", BROKER, packets)


def test_a_hole_stops_other_connections_too():
    """What waits behind it is of an earlier time than what they bring."""
    reassembler = Reassembler()
    talk = Talk(reassembler)
    talk.feed(-1, b"", SYN)
    assert talk.feed(1, b"B") == []
    later = other(reassembler, 2)
    assert later.feed(0, b"later") == []
    talk.packets = 3
    pieces = [*talk.feed(0, b"A"), *later.feed(5, b"!")]
    assert [(p.data, p.t_us) for p in pieces] == [(b"later", 3), (b"A", 4), (b"B", 4), (b"!", 4)]


@pytest.mark.parametrize("acknowledged", [True, False])
def test_other_connections_wait_no_longer_than_the_limit_allows(acknowledged):
    """An acknowledged hole is lost by then; one that may still be filled is passed by."""
    reassembler = Reassembler(buffer_limit=1000)
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    talk.feed(-1, b"", SYN)
    talk.feed(1, b"B")
    if acknowledged:
        back.packets = 2
        back.feed(0, b"", ack=102)
    later = other(reassembler, 3)
    found = [later.feed(100 * n, b"x" * 100) for n in range(11)]
    assert [len(pieces) > 0 for pieces in found] == [False] * 10 + [True]
    assert [(p.gap, p.data[:1]) for p in found[-1]] == [
        *([(1, b""), (0, b"B")] if acknowledged else []), *[(0, b"x")] * 11
    ]  # fmt: skip
    talk.packets = 20
    assert octets(talk.feed(0, b"A")) == (b"" if acknowledged else b"AB")


def test_the_fin_is_no_lost_octet():
    """The acknowledgement of a FIN is one ahead of the last octet."""
    reassembler = Reassembler()
    talk, back = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    talk.feed(-1, b"", SYN)
    back.feed(-1, b"", SYN | ACK, ack=100)
    talk.feed(0, b"A", FIN | ACK, ack=500)
    back.feed(0, b"", FIN | ACK, ack=102)
    assert reassembler.finish() == []


def test_a_hole_that_nobody_acknowledged_is_waited_for():
    """A segment that is merely late must not be given up, however much passes meanwhile."""
    talk = Talk(Reassembler())
    talk.feed(-1, b"", SYN)
    for n in range(2, 2 + 2 * PATIENCE):
        assert talk.feed(n, b"x") == []
    assert octets(talk.feed(0, b"AB")) == b"AB" + b"x" * 2 * PATIENCE


def test_memory_behind_a_hole_is_bounded():
    """More than the limit behind a hole, and the hole counts as lost."""
    talk = Talk(Reassembler(buffer_limit=1000))
    talk.feed(-1, b"", SYN)
    held = [talk.feed(10 + 100 * n, b"x" * 100) for n in range(11)]
    assert [len(octets(p)) for p in held] == [0] * 10 + [1100]
    assert held[-1][0].gap == 10


def test_the_end_of_the_capture_gives_up_every_hole():
    """What waits behind holes is handed on with the gaps when no more packets come."""
    reassembler = Reassembler()
    talk = Talk(reassembler)
    talk.feed(-1, b"", SYN)
    talk.feed(2, b"C")
    talk.feed(5, b"F")
    assert [(p.gap, p.data) for p in reassembler.finish()] == [
        (2, b""),
        (0, b"C"),
        (2, b""),
        (0, b"F"),
    ]


def test_octets_cut_by_the_snapshot_length_are_a_gap_at_once():
    """A retransmission would be cut at the same place, so nothing is waited for."""
    talk = Talk(Reassembler())
    talk.feed(-1, b"", SYN)
    assert [(p.gap, p.data) for p in talk.feed(0, b"AB", missing=2)] == [(0, b"AB"), (2, b"")]
    assert octets(talk.feed(4, b"EF")) == b"EF"


def test_a_capture_may_begin_in_the_middle():
    """Without a SYN a stream begins with its first segment, and says so."""
    reassembler = Reassembler()
    pieces = Talk(reassembler).feed(1_000, b"mid")
    assert octets(pieces) == b"mid"
    assert not pieces[0].direction.from_start
    assert reassembler.conversations[0].opened_by is None


def test_a_new_syn_on_the_same_ports_is_a_new_connection():
    """Ports are used again; another initial sequence number is another connection."""
    reassembler = Reassembler()
    old = Talk(reassembler)
    old.feed(-1, b"", SYN)
    old.feed(0, b"old")
    old.feed(3, b"", RST)
    new = Talk(reassembler, base=9_000)
    new.feed(-1, b"", SYN)
    piece = new.feed(0, b"new")[0]
    assert [c.number for c in reassembler.conversations] == [1, 2]
    assert piece.direction.conversation.number == 2
    assert [one.ended_by is not None for one in reassembler.conversations] == [True, False]


def test_a_syn_behind_its_first_octets_is_the_same_connection():
    """A capture may have them in another order; the sequence numbers tell."""
    talk = Talk(Reassembler())
    assert octets(talk.feed(0, b"AB")) == b"AB"
    talk.feed(-1, b"", SYN)
    assert octets(talk.feed(2, b"C")) == b"C"
    (one,) = talk.reassembler.conversations
    assert (one.opened_by, one.directions[0].from_start) == (CLIENT, True)


def test_a_repeated_syn_is_the_same_connection():
    """A SYN that was sent twice opens nothing new."""
    reassembler = Reassembler()
    talk = Talk(reassembler)
    talk.feed(-1, b"", SYN)
    talk.feed(-1, b"", SYN)
    assert octets(talk.feed(0, b"A")) == b"A"
    assert len(reassembler.conversations) == 1


def test_a_lost_syn_leaves_the_opener_to_the_answer():
    """SYN and ACK together come from the end that was called."""
    reassembler = Reassembler()
    Talk(reassembler, 500, BROKER, CLIENT).feed(-1, b"", SYN | ACK)
    assert reassembler.conversations[0].opened_by == CLIENT


@pytest.mark.parametrize("flag", [FIN, RST])
def test_one_end_is_enough_to_end(flag):
    """Nobody waits on a connection of which an end has sent FIN or RST."""
    reassembler = Reassembler()
    talk = Talk(reassembler)
    talk.feed(0, b"A")
    assert reassembler.conversations[0].ended_by is None
    talk.feed(1, b"", flag | ACK)
    assert reassembler.conversations[0].ended_by is not None
    Talk(reassembler, 500, BROKER, CLIENT, packets=7).feed(0, b"", flag | ACK)
    assert reassembler.conversations[0].ended_by == (CLIENT, 2)


@st.composite
def disturbed(draw):
    """A stream cut anywhere, some octets sent again, in an order shuffled a little."""
    data = draw(st.binary(min_size=1, max_size=200))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=20)))
    edges = [0, *[c for c in cuts if c < len(data)], len(data)]
    segments = [(a, data[a:b]) for a, b in itertools.pairwise(edges)]
    overlaps = draw(st.lists(st.tuples(st.integers(0, len(data)), st.integers(1, 30)), max_size=5))
    segments += [(a, data[a : a + n]) for a, n in overlaps if data[a : a + n]]
    keys = draw(st.lists(st.integers(0, 8), min_size=len(segments), max_size=len(segments)))
    order = sorted(range(len(segments)), key=lambda n: n + keys[n])
    return data, [segments[n] for n in order]


@settings(derandomize=True, max_examples=300, deadline=None)
@given(disturbed(), st.integers(0, WRAP - 1))
def test_any_cutting_repeating_and_reordering_gives_the_stream(case, base):
    """The octets that come out are the octets that went in, from any sequence number."""
    data, segments = case
    talk = Talk(Reassembler(), base=base)
    talk.feed(-1, b"", SYN)
    out = b"".join(octets(talk.feed(offset, piece)) for offset, piece in segments)
    assert out == data
    direction = talk.reassembler.conversations[0].directions[0]
    assert (direction.gaps, direction.waiting, direction.waiting_octets) == (0, [], 0)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(disturbed(), st.data())
def test_lost_segments_leave_gaps_of_the_right_size(case, data):
    """Octets and gaps together are as long as the stream, and every octet is in its place."""
    stream, segments = case
    kept = [s for s in segments if data.draw(st.booleans())]
    talk = Talk(Reassembler())
    talk.feed(-1, b"", SYN)
    pieces = [p for offset, piece in kept for p in talk.feed(offset, piece)]
    pieces += talk.reassembler.finish()
    at = 0
    for piece in pieces:
        at += piece.gap
        assert stream[at : at + len(piece.data)] == piece.data
        at += len(piece.data)
    present = {n for offset, piece in kept for n in range(offset, offset + len(piece))}
    assert sum(len(p.data) for p in pieces) == len(present)


@pytest.mark.parametrize(
    ("then", "full"),
    [
        (lambda mine, its: mine.feed(2, b"", window=9), [(3, 5)]),  # it has read
        (lambda mine, its: its.feed(1, b"?"), []),  # the other asks, and nothing has changed
        (lambda mine, its: its.feed(1, b"ab"), [(3, 5)]),  # it may send: the update was lost
        (lambda mine, its: its.feed(0, b"a"), []),  # the same once more
        (lambda mine, its: mine.feed(2, b"", RST, window=0), [(3, 5)]),
        (lambda mine, its: mine.feed(2, b"", window=0), []),
    ],
)  # fmt: skip
def test_an_end_has_no_room_from_a_window_of_0_on(then, full):
    """Until it says otherwise, or the other sends: its window is a part of every segment."""
    reassembler = Reassembler()
    mine, its = Talk(reassembler), Talk(reassembler, 500, BROKER, CLIENT)
    mine.feed(0, b"hi")
    its.feed(0, b"a")
    mine.packets = its.packets = 2
    mine.feed(2, b"", window=0)
    mine.packets = its.packets = 4
    then(mine, its)
    (direction, other) = reassembler.conversations[0].directions
    assert (direction.without_room, direction.without_room_since) == (full, None if full else 3)
    assert (other.without_room, other.without_room_since) == ([], None)


def test_a_syn_without_room_is_no_window():
    """Who resets or opens a connection announces none."""
    reassembler = Reassembler()
    Talk(reassembler).feed(-1, b"", SYN, window=0)
    assert reassembler.conversations[0].directions[0].without_room_since is None
