"""TCP reassembly: whatever the network did to the segments, the octets come in order, once."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversation import Conversation
from workbench.capture.packet import Segment
from workbench.capture.tcp import BUFFER_LIMIT, PATIENCE, Reassembler
from workbench.trace.packet_out import ACK, FIN, RST, SYN

ENDS = {
    "client": b"\x0a\0\0\1\x9c\x40", "broker": b"\x0a\0\0\2\x16\x28",
    "other": b"\x0a\0\0\7\x9c\x40",
}  # fmt: skip
NAMES = {end: name for name, end in ENDS.items()}
WRAP = 2**32


class Wire(Conversation):
    """Segments of a client, a broker and another client of it, each in the next packet.

    Places in a stream are counted from its first octet behind the SYN, in acknowledgements too. A
    packet's time is its number: `AB@2` are octets that could be read with the second, and `(3)@2`
    three that are lost. What is counted is shown of the ends that have any, in the connection that
    is the last to begin.
    """

    def __init__(self, limit=BUFFER_LIMIT):
        self.reassembler = Reassembler(limit)
        self.base = {"client": 100, "broker": 500, "other": 900}
        self.packet, self.ready = 0, []

    def turn_to(self, who):
        self.turn = who

    def feed(self, offset, data, flags=ACK, ack=0, missing=0, window=100):
        peer = "client" if self.turn == "broker" else "broker"
        seq, acknowledged = (self.base[self.turn] + offset) % WRAP, (self.base[peer] + ack) % WRAP
        ends, self.packet = (ENDS[self.turn], ENDS[peer]), self.packet + 1
        segment = Segment(*ends, seq, acknowledged, flags, data, missing, window)
        found = self.reassembler.feed(segment, self.packet, self.packet)
        self.ready += found
        return found

    def do_base(self, number):
        self.base[self.turn] = number

    def do_at(self, packet):
        self.packet = packet - 1

    def do_syn(self, **how):
        self.feed(-1, b"", SYN | ACK if self.turn == "broker" else SYN, **how)

    def do_send(self, offset, data="", **how):
        self.feed(offset, data.encode(), **how)

    def do_ack(self, upto, at=0, times=1):
        for _ in range(times):
            self.feed(at, b"", ack=upto)

    def do_fin(self, offset, data="", **how):
        self.feed(offset, data.encode(), FIN | ACK, **how)

    def do_reset(self, offset, data="", **how):
        self.feed(offset, data.encode(), RST, **how)

    def do_end(self):
        self.ready += self.reassembler.finish()

    def look(self, name):
        found = getattr(self, f"see_{name}", None)
        if found is not None:
            return found()
        its = {NAMES[one.source]: getattr(one, name) for one in self.latest.directions}
        return {end: value for end, value in its.items() if value}

    @property
    def latest(self):
        return self.reassembler.conversations[-1]

    def see_out(self):
        ready, self.ready = self.ready, []
        return [f"{one.data.decode() or f'({one.gap})'}@{one.t_us}" for one in ready]

    def see_connections(self):
        return [one.number for one in self.reassembler.conversations]

    def see_opened(self):
        return NAMES.get(self.latest.opened_by, "-")

    def see_ended(self):
        ended = [one.ended_by for one in self.reassembler.conversations]
        return [f"{NAMES[one[0]]}@{one[1]}" if one else "-" for one in ended]

    def see_without_room(self):
        return {
            NAMES[one.source]: f"{[*one.without_room, one.without_room_since]}".replace(" ", "")
            for one in self.latest.directions
            if one.without_room or one.without_room_since
        }


WORDS = {
    "segments in order pass with their own times": """
        client: syn; send 0 AB -> out AB@2
        send 2 CD -> out CD@3 | opened client | from_start client=True""",
    "a segment out of order is readable when the hole is filled": """
        client: syn; send 2 CD -> out -
        send 0 AB -> out AB@3 CD@3 | out_of_order client=1""",
    # A retransmission brings nothing new; an overlapping one only what is new.
    "repeated and overlapping octets pass once": """
        client: syn; send 0 ABCD; send 0 ABCD -> out ABCD@2
        send 2 CDEF; send 1 BCDEFG -> out EF@4 G@5 | duplicates client=3 | octets client=7""",
    # It may tell its reason [RFC 9293, 3.5.3].
    "what a reset brings is no octet of the stream": """
        client: send 0 AB; reset 2 BIG-IP; end -> out AB@1""",
    # The stream goes on over 2^32 - 1 [RFC 9293, 3.4].
    "sequence numbers wrap": """
        client: base -2; syn; send 3 DE -> out -
        send 0 ABC -> out ABC@3 DE@3""",
    # The peer has the octets, so they will not come again: the capture lost them.
    "an acknowledged hole is a gap after some patience": f"""
        client: syn; broker: syn; client: send 0 AB; send 5 FG -> out AB@3
        broker: ack 7 times={PATIENCE - 1} -> out -
        ack 7 -> out (3)@4 FG@4 | gaps client=1 | lost_octets client=3 | octets client=4""",
    # What the peer says after it got octets that the capture lacks stands behind the gap.
    "an acknowledgement of octets that were not seen shows a hole": """
        client: syn; broker: syn; send 0 answer ack=1 -> out -
        client: send 1 B ack=6; end -> out (1)@3 answer@3 B@4""",
    # What was acknowledged at 3 was missing then, whenever the next octets come.
    "a gap has the time of what showed it first": """
        client: syn; at 3; broker: send 0 answer ack=1; at 9; client: send 1 B
        end -> out (1)@3 answer@3 B@9""",
    # What it said between two bits that are missing knows nothing of the second.
    "a hole is a gap wherever the other end said something within it": """
        client: syn; at 3; broker: ack 2; ack 3; send 0 answer ack=3; ack 4 at=6
        at 9; client: send 5 F; end -> out (3)@3 answer@5 (2)@6 F@9
        -> gaps client=2 | lost_octets client=5 | octets client=1 broker=6""",
    # A capture may have one direction alone; it begins where the first acknowledgement is.
    "a direction without packets is missing where the other acknowledges it": """
        client: syn; send 0 A; send 1 B ack=7; send 2 C ack=7; end -> out A@2 (7)@3 B@3 C@4
        -> lost_octets broker=7 | octets client=3 | from_start client=True""",
    # The capture began while it was under way: it begins at that packet.
    "what was acknowledged before a direction's first packet is not missing": """
        client: send 0 A; send 1 B ack=7 -> out A@1
        broker: send 20 late -> out B@2 late@3 | gaps -""",
    # A capture may record the two directions out of step; who acknowledges octets has them.
    "an acknowledgement that came before its octets is no loss": """
        client: syn; at 2; broker: syn; send 0 answer ack=1 -> out -
        client: send 0 A -> out A@3 answer@3""",
    # One acknowledgement speaks of many segments [RFC 9293, 3.4].
    "two segments behind their acknowledgement are both put before it": """
        client: syn; broker: syn; send 0 answer ack=2; client: send 0 A -> out -
        send 1 B -> out A@3 B@3 answer@3""",
    # What waits behind it is of an earlier time than what they bring.
    "a hole stops other connections too": """
        client: syn; send 1 B; other: send 0 later -> out -
        client: send 0 A; other: send 5 ! -> out later@3 A@4 B@4 !@5""",
    # The acknowledgement of a FIN is one ahead of the last octet.
    "the FIN is no lost octet": """
        client: syn; broker: syn; client: fin 0 A; broker: fin 0 ack=2; end -> out A@3""",
    # A segment that is merely late must not be given up, however much passes meanwhile.
    "a hole that nobody acknowledged is waited for": f"""
        client: syn; {"; ".join(f"send {n} x" for n in range(2, 2 + 2 * PATIENCE))} -> out -
        at 999; send 0 AB -> out AB@999 {" ".join(["x@999"] * 2 * PATIENCE)}""",
    "the end of the capture gives up every hole": """
        client: syn; send 2 C; send 5 F; end -> out (2)@2 C@2 (2)@3 F@3""",
    # A retransmission would be cut at the same place, so nothing is waited for.
    "octets cut by the snapshot length are a gap at once": """
        client: syn; send 0 AB missing=2; send 4 EF -> out AB@2 (2)@2 EF@3""",
    # Without a SYN a stream begins with its first segment, and says so.
    "a capture may begin in the middle": """
        client: send 1000 mid -> out mid@1 | from_start - | opened -""",
    # Ports are used again; another initial sequence number is another connection.
    "a new SYN on the same ports is a new connection": """
        client: syn; send 0 old; reset 3; base 9000; syn; send 0 new -> out old@2 new@5
        -> connections 1 2 | octets client=3 | ended client@3 -""",
    # A capture may have them in another order; the sequence numbers tell.
    "a SYN behind its first octets is of the same connection": """
        client: send 0 AB; syn; send 2 C -> out AB@1 C@3
        -> connections 1 | opened client | from_start client=True""",
    "a SYN that was sent twice opens nothing new": """
        client: syn; syn; send 0 A -> out A@3 | connections 1""",
    # SYN and ACK together come from the end that was called.
    "a lost SYN leaves the opener to the answer": """
        broker: syn -> opened client""",
    # Nobody waits on a connection of which an end has sent FIN or RST.
    "one end is enough to end": """
        client: send 0 A -> ended -
        fin 1; broker: fin 0 -> ended client@2""",
    "a reset ends, too": """
        client: send 0 A; reset 1; broker: reset 0 -> ended client@2""",
    # Who resets or opens a connection announces none.
    "a SYN without room is no window": """
        client: syn window=0 -> without_room -""",
}


@pytest.mark.parametrize("script", WORDS.values(), ids=WORDS)
def test_octets_come_in_order_once_and_what_is_lost_is_a_gap(script):
    """Each of the rules of `capture/tcp.py`."""
    Wire().play(script)


@pytest.mark.parametrize("base", [5, 0xF000_0000], ids=["behind", "ahead"])
@pytest.mark.parametrize("ends", ["fin", "reset"])
def test_octets_far_away_behind_an_end_are_of_another_connection(base, ends):
    """On the same ports; its SYN is not in the capture."""
    Wire().play(f"""
        client: base {0x6000_0000}; send 0 AB; {ends} 2 -> out AB@1
        base {base}; send 0 CD -> out CD@3 | connections 1 2 | octets client=2 | lost_octets -""")


@pytest.mark.parametrize(
    ("acknowledged", "found", "then"),
    [("client: at 3", "", "A@20 B@20"), ("broker: ack 2", "(1)@2 B@2 ", "-")],
    ids=["may still be filled", "is lost"],
)
def test_other_connections_wait_no_longer_than_the_limit_allows(acknowledged, found, then):
    """An acknowledged hole is lost by then; one that may still be filled is passed by."""
    its = " ".join(f"abcde@{packet}" for packet in range(4, 15))
    Wire(limit=50).play(f"""
        client: syn; send 1 B; {acknowledged}
        at 4; other: {"; ".join(f"send {5 * n} abcde" for n in range(10))} -> out -
        send 50 abcde -> out {found}{its}
        at 20; client: send 0 A -> out {then}""")


def test_memory_behind_a_hole_is_bounded():
    """More than the limit behind a hole, and the hole counts as lost."""
    its = " ".join(f"abcde@{packet}" for packet in range(2, 13))
    Wire(limit=50).play(f"""
        client: syn; {"; ".join(f"send {10 + 5 * n} abcde" for n in range(10))} -> out -
        send 60 abcde -> out (10)@2 {its}""")


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
    wire = Wire()
    wire.play(f"client: base {base}; syn")
    out = [one.data for offset, piece in segments for one in wire.feed(offset, piece)]
    assert b"".join(out) == data
    direction = wire.latest.directions[0]
    assert (direction.gaps, direction.waiting, direction.waiting_octets) == (0, [], 0)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(disturbed(), st.data())
def test_lost_segments_leave_gaps_of_the_right_size(case, data):
    """Octets and gaps together are as long as the stream, and every octet is in its place."""
    stream, segments = case
    kept = [s for s in segments if data.draw(st.booleans())]
    wire = Wire()
    wire.play("client: syn")
    for offset, piece in kept:
        wire.feed(offset, piece)
    wire.do_end()
    pieces, at = wire.ready, 0
    for piece in pieces:
        at += piece.gap
        assert stream[at : at + len(piece.data)] == piece.data
        at += len(piece.data)
    present = {n for offset, piece in kept for n in range(offset, offset + len(piece))}
    assert sum(len(p.data) for p in pieces) == len(present)


@pytest.mark.parametrize(
    ("then", "room"),
    [
        ("client: send 2 window=9", "[(3,5),None]"),  # it has read
        ("broker: send 1 ?", "[3]"),  # the other asks, and nothing has changed
        ("broker: send 1 ab", "[(3,5),None]"),  # it may send: the update was lost
        ("broker: send 0 a", "[3]"),  # the same once more
        ("client: reset 2 window=0", "[(3,5),None]"),
        ("client: send 2 window=0", "[3]"),
    ],
)  # fmt: skip
def test_an_end_has_no_room_from_a_window_of_0_on(then, room):
    """Until it says otherwise, or the other sends: its window is a part of every segment."""
    Wire().play(f"""
        client: send 0 hi; broker: send 0 a; client: send 2 window=0; at 5; {then}
        -> without_room client={room}""")
