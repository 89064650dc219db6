"""What a trace cannot tell: nothing known is listed, and nothing unknown is left out."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capture.capture_builder import Burst, Script, behind_attach, bursts, record
from workbench.capture.importer import CaptureError, import_capture
from workbench.scenarios.run import run
from workbench.trace.schema import FRAME_EVENTS, RECEIVED, SENT
from workbench.trace.unknowns import told_once, unknowns

CAPTURES = (
    "rmq43_a_publisher_grants", "rmq43_b_consumer_credit", "rmq43_c_drain",
    "rmq43_e_large_message_split", "rmq43_f_memory_alarm", "rmq43_h_sac_handover",
    "rmq40_a_publisher_grants", "rmq40_b_consumer_credit", "rmq40_c_drain",
    "rmq40_f_memory_alarm",
)  # fmt: skip
TLS_HEADER, TLS_HELLO = b"AMQP\x02\x01\x00\x00", b"\x16\x03\x01\x00\x05hello"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("unknowns")


def words(found) -> set[str]:
    return {one.what for one in found}


def of(found, what):
    return [one for one in found if one.what == what]


def captured(repo, name):
    return import_capture(repo / "data" / "captures" / f"{name}.pcapng").rows


@pytest.fixture(scope="module")
def own():
    """A run of our own: both ends' rows, and what happens inside."""
    played = run("credit", "rmq4.3", {"messages": 9})
    played = played.act(len(played.rows) - 1, "grant", link_credit=4)
    return played.act(len(played.rows) - 1, "drain").rows


# -- the captures of real brokers


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_from_the_start_lacks_what_no_capture_has(repo, name):
    """One place, nothing of the inside; but each beginning, and every counter, is there."""
    found = unknowns(captured(repo, name))
    connections = {one.connection for one in found} - {None}
    for what in ("vantage", "inside"):
        assert {one.connection for one in of(found, what)} == connections
    assert not words(found) & {"beginning", "counter", "gap", "unreadable", "payload", "rows"}
    assert words(found) <= {
        "rows", "clock", "others", "vantage", "inside", "reckoned", "beginning", "gap",
        "unreadable", "encrypted", "payload", "counter", "waiting", "confirmed", "ending",
    }  # fmt: skip


def test_what_a_queue_tells_is_the_inside_of_each_connection_that_leads_to_it(repo):
    """Its rows are about no connection."""
    rows = captured(repo, CAPTURES[0])
    queue = replace(rows[-1], seq=rows[-1].seq + 1, connection=None, event="enqueue", kind=None,
                    vantage="queue:q", protocol="internal", frame=None, session=None, link=None,
                    frame_id=None, ledger={"queue_ready": 1})  # fmt: skip
    assert of(unknowns(rows), "inside")
    assert not of(unknowns([*rows, queue]), "inside")


@pytest.mark.parametrize("name", CAPTURES)
def test_available_is_known_when_it_was_told_and_not_between(repo, name):
    """Each link with messages is listed; the sentence counts what its sender has told."""
    rows = captured(repo, name)
    told = {}
    moved = set()
    for row in rows:
        key = (row.connection, row.session, row.link, row.link_sender, row.attach_no)
        if row.kind == "transfer":
            moved.add(key)
        if row.kind == "flow" and row.link and row.from_peer == row.link_sender:
            told[key] = told.get(key, 0) + ((row.frame or {}).get("available") is not None)
    found = {
        (one.connection, one.session, one.link, one.link_sender, one.attach_no): one.why
        for one in of(unknowns(rows), "waiting")
    }
    assert set(found) == moved
    for key, why in found.items():
        times = told.get(key, 0)
        said = "never tells" if not times else "once" if times == 1 else f"{times} times"
        assert said in why


def test_messages_sent_settled_are_counted(repo):
    """A publisher that settles at once never hears what a queue has taken."""
    rows = captured(repo, "rmq43_a_publisher_grants")
    settled = [row for row in rows if row.kind == "transfer" and row.frame.get("settled")]
    found = of(unknowns(rows), "confirmed")
    assert settled
    assert {one.link for one in found} == {row.link for row in settled}
    counted = sum(1 for row in settled if row.link == found[0].link)
    assert f"{counted} of" in found[0].unknown


@pytest.mark.parametrize("name", ["c" + "1" * 5_000, "c3000000", "c-1", "c²"])
def test_a_name_that_looks_like_a_number_counts_nothing(repo, name):
    """A connection may have any name in a trace that somebody else has written."""
    rows = captured(repo, CAPTURES[0])
    renamed = [replace(row, connection=row.connection and name) for row in rows]
    assert not of(unknowns(renamed), "others")


def test_a_connection_that_is_left_out_is_missed(repo):
    """Its number is not in the trace; connections of AMQP 0-9-1 are, and lack nothing more."""
    rows = captured(repo, "rmq43_c_drain")
    assert {row.protocol for row in rows if row.connection == "c2"} == {"amqp-0-9-1"}
    assert not of(unknowns(rows), "others")
    (one,) = of(unknowns([row for row in rows if row.connection != "c2"]), "others")
    assert "c2" in one.unknown
    assert one.connection is None


def test_many_connections_that_are_left_out_are_a_line_that_can_be_read(repo):
    """The first of them, and how many more there are."""
    rows = [replace(row, connection="c3000") if row.connection == "c2" else row
            for row in captured(repo, "rmq43_c_drain")]  # fmt: skip
    (one,) = of(unknowns(rows), "others")
    named = [f"c{n}" for n in range(2, 3000) if n not in {int(row.connection[1:]) for row in rows}]
    assert f"{', '.join(named[:6])} and {len(named) - 6} more" in one.unknown


def test_a_session_of_amqp_0_10_begins_with_its_attach_and_its_destinations_with_none():
    """Both peers' words are there, so no beginning is missed."""
    found = unknowns(run("qpid").rows)
    assert of(found, "beginning") == []
    assert {one.link for one in found} == {None}


def test_a_channel_of_amqp_0_9_1_has_no_first_ids_and_windows(repo):
    """What was said on a channel that nobody opened, or that was refused, lacks none."""
    rows = captured(repo, "amqp091/rmq43_e1_amqp091_errors")
    sessions = {(row.connection, row.session) for row in rows if row.protocol == "amqp-0-9-1"}
    assert {("c13", 2), ("c17", 12)} <= sessions
    assert not any("window" in one.unknown for one in unknowns(rows))
    (places,) = of(unknowns(rows), "unreadable")
    assert places.unknown == "what the client said in 1 place"


def test_frames_of_one_packet_have_one_time(repo):
    """So many frames as have the time of the one before."""
    rows = captured(repo, "rmq43_b_consumer_credit")
    shared = sum(a.t_raw_us == b.t_raw_us for a, b in pairwise(rows))
    (one,) = of(unknowns(rows), "clock")
    assert f"{shared} of {len(rows)} frames have the time" in one.why
    two = next([a, b] for a, b in pairwise(rows) if a.t_raw_us == b.t_raw_us)
    (one,) = of(unknowns(two), "clock")
    assert "1 of 2 frames has the time" in one.why


def test_a_clock_that_went_back_is_told_with_what_may_help(repo):
    """Captures that were appended to each other are sorted by a tool that comes with Wireshark."""
    rows = captured(repo, "rmq43_b_consumer_credit")
    back = [*rows[:20], *(replace(row, t_raw_us=row.t_raw_us - 10**9) for row in rows[20:])]
    (told,) = (one for one in of(unknowns(back), "clock") if "true time" in one.unknown)
    assert told.why.endswith(
        ". If captures were appended to each other, reordercap sorts their packets"
    )


# -- captures that lack something


@settings(max_examples=40)
@given(start=st.integers(0, 70))
def test_every_counter_that_was_unknown_is_listed_with_its_rows(folder, start):
    """From any packet on; and what is listed is no more than the rows say themselves."""
    tape, _ = record(bursts(Script().frames()), frame_by_frame=True)
    path = tape.write(folder / "middle.pcapng", tape.packets[3 + start :])
    try:
        rows = import_capture(path).rows
    except CaptureError:
        return
    wanted = {}
    for row in rows:
        if row.event in FRAME_EVENTS and (row.link or "handle" in (row.frame or {})):
            key = (row.connection, row.session, row.link, row.link_sender, row.attach_no)
            for name in {"delivery_count", "link_credit", "drain", "unsettled"} & {*row.unknown}:
                wanted.setdefault((key, name.replace("_", "-")), []).append(row.seq)
    found = {}
    for one in of(unknowns(rows), "counter"):
        key = (one.connection, one.session, one.link, one.link_sender, one.attach_no)
        found[key, one.unknown.split(" ")[0]] = (one.rows, one.first_seq, one.last_seq)
    assert found == {key: (len(places), places[0], places[-1]) for key, places in wanted.items()}


def test_a_beginning_that_is_missing_is_told_for_connection_session_and_link(folder):
    """Nothing of open, begin and attach: each is named once, with whose it is."""
    tape, _ = record(bursts(Script(rounds=4).frames()), frame_by_frame=True)
    whole = import_capture(tape.write(folder / "whole.pcapng")).rows
    first = next(row for row in whole if row.kind == "transfer").seq
    path = tape.write(folder / "late.pcapng", tape.packets[3 + first + 6 :])
    found = of(unknowns(import_capture(path, port=5672).rows), "beginning")
    assert [one.link_sender for one in found[:2]] == [None, None]
    assert "open of client and broker" in found[0].why
    assert "begin of client and broker" in found[1].why
    nameless = [one for one in found if one.link_sender and one.link.startswith("handle ")]
    assert nameless
    assert all("its attach is not in the trace" in one.why for one in nameless)


def test_a_count_that_no_end_states_is_told_with_what_else_would_tell_it(folder):
    """Of a link that was attached before the capture, and of no other."""
    tape, _ = record(bursts(behind_attach(4)), handshake=False)
    rows = import_capture(tape.write(folder / "behind.pcapng")).rows
    (one,) = (one for one in of(unknowns(rows), "counter") if one.link == "handle 0"
              and one.unknown.startswith("delivery-count"))  # fmt: skip
    assert one.why == (
        "it cannot be known until its sender states it in a flow or an attach, or is seen to have"
        " used up all that was granted; known from row 8 on"
    )


def test_lost_octets_are_told_with_the_peer_and_how_many(folder):
    """Packets that the capture lost, and no others."""
    chance = random.Random(7)
    tape, _ = record(bursts(Script(rounds=6).frames()), cut=chance)
    kept = [p for n, p in enumerate(tape.packets) if n < 3 or chance.random() > 0.1]
    rows = import_capture(tape.write(folder / "lossy.pcapng", kept)).rows
    lost = {}
    for row in rows:
        if row.event == "gap":
            peer = row.extra["from_peer"]
            octets, places = lost.get(peer, (0, 0))
            lost[peer] = octets + row.extra["octets"], places + 1
    found = of(unknowns(rows), "gap")
    assert lost
    assert len(found) == len(lost)
    for one in found:
        peer = one.unknown.split(" ")[2]
        assert f"in {lost[peer][0]:,} octets" in one.unknown
        assert one.rows == lost[peer][1]


def test_what_went_over_to_tls_is_told_for_each_peer(folder):
    """The header is the last thing that can be read."""
    burst = [
        Burst(0, 500, True, TLS_HEADER, (len(TLS_HEADER),)),
        Burst(0, 501, False, TLS_HEADER, (len(TLS_HEADER),)),
        Burst(0, 600, True, TLS_HELLO, (len(TLS_HELLO),)),
    ]
    rows = import_capture(record(burst)[0].write(folder / "tls.pcapng")).rows
    found = of(unknowns(rows), "encrypted")
    assert [one.unknown.split(" ")[3] for one in found] == ["client", "broker"]


def test_payload_that_was_cut_is_counted_and_left_out_octets_are_not(repo):
    """A capture with a snapshot length, against a trace written without octets."""
    rows = captured(repo, "rmq43_b_consumer_credit")
    cut = [replace(row, raw=None) if row.kind == "transfer" else row for row in rows]
    (one,) = of(unknowns(cut), "payload")
    assert one.rows == sum(row.kind == "transfer" for row in rows)
    assert not of(unknowns([replace(row, raw=None) for row in rows]), "payload")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (1_000, "1 ms"),
        (10_000, "10 ms"),
        (15_625, "15.625 ms"),
        (1_000_000, "1 s"),
        (1_500_000, "1.5 s"),
    ],
)
def test_a_clock_that_counts_in_steps_is_coarse(repo, step, words):
    """Times rounded down: what lasts less than a step is not known."""
    rows = captured(repo, "rmq43_b_consumer_credit")
    rough = [replace(row, t_raw_us=row.t_raw_us // step * step) for row in rows]
    told = [one.unknown for one in of(unknowns(rough), "clock")]
    assert any(text == f"what lasts less than {words}" for text in told)
    fine = [one.unknown for one in of(unknowns(rows), "clock")]
    assert not any("less than" in text for text in fine)


def test_a_clock_that_went_back_is_told_with_its_rows(repo):
    """The rows at which the packet clock is behind; after a step back that may be all others."""
    rows = captured(repo, "rmq43_b_consumer_credit")
    stepped = [replace(row, t_raw_us=row.t_raw_us - 3_600_000_000) for row in rows[20:]]
    (one,) = [one for one in of(unknowns(rows[:20] + stepped), "clock") if one.rows]
    assert (one.rows, one.first_seq) == (len(stepped), 20)
    rows[20] = replace(rows[20], t_raw_us=rows[20].t_raw_us - 5_000_000)
    (one,) = [one for one in of(unknowns(rows), "clock") if one.rows]
    assert (one.rows, one.first_seq) == (1, 20)


def test_a_log_without_times_says_so(repo):
    """Proton's frame log: the order is true, no time is."""
    rows = [replace(row, t_raw_us=None) for row in captured(repo, "rmq43_b_consumer_credit")]
    (one,) = of(unknowns(rows), "clock")
    assert one.unknown == "every time"


# -- traces of our own


def test_a_trace_of_both_ends_lacks_nothing_but_its_ending(own):
    """Both ends' counters and the inside are there; the link was never detached."""
    assert words(unknowns(own)) == {"ending"}


def test_one_end_alone_does_not_know_when_the_other_had_its_frames(own):
    """The client's log: what it sent may still be on its way."""
    mine = [row for row in own if not row.is_frame or (row.from_peer == "client") ==
            (row.event == SENT)]  # fmt: skip
    (one,) = of(unknowns(mine), "vantage")
    assert one.why.startswith("client alone")
    (other,) = of(
        unknowns([row for row in own if (row.from_peer == "client") == (row.event == RECEIVED)
                  and row.is_frame]), "vantage"
    )  # fmt: skip
    assert other.why.startswith("broker alone")


def test_counters_that_were_reckoned_are_told(own):
    """A client that shows none: an endpoint of ours has worked them out."""
    shown = [
        replace(row, ledger_source="shadow") if row.vantage.startswith("client") else row
        for row in own
    ]
    (one,) = of(unknowns(shown), "reckoned")
    assert one.unknown.endswith("client:receiver really has")
    assert one.rows == sum(row.ledger_source == "shadow" for row in shown if row.is_frame)


def test_a_detach_an_end_or_a_close_is_an_ending(own):
    """Any of the three ends a link for good, or for now."""
    kinds = {"detach": "detach", "end": "end", "close": "close"}
    last = next(row for row in reversed(own) if row.link and row.is_frame)
    for kind in kinds:
        more = replace(last, seq=own[-1].seq + 1, kind=kind, frame={"channel": 0})
        assert not of(unknowns([*own, more]), "ending")


def test_rows_that_were_cut_away_are_missed(own):
    """A slice of a run begins with another row than 0."""
    (one,) = of(unknowns(own[7:]), "rows")
    assert one.unknown == "the 7 rows before row 7"
    assert not of(unknowns(own), "rows")


def test_an_empty_trace_has_nothing_to_tell():
    """And says nothing that is wrong."""
    assert unknowns([]) == []
    assert "Everything" in str(unknowns([]))


def test_the_page_names_each_place_once(repo):
    """Headings for the trace, a connection and each link; below them the lines."""
    rows = captured(repo, "rmq43_c_drain")
    page = str(unknowns(rows)).splitlines()
    heads = [line for line in page if not line.startswith(" ")]
    assert heads[0] == "the whole trace"
    assert len(heads) == len(set(heads))
    told = sorted(line.strip() for line in page if line.startswith(" "))
    assert told == sorted({f"{one.unknown}: {one.why}" for one in unknowns(rows)})


def test_what_holds_for_every_connection_is_told_once(repo):
    """And what holds for some is told of these."""
    rows = captured(repo, "amqp091/rmq43_e1_amqp091_errors")
    told = {place: len(found) for place, found in told_once(unknowns(rows)).items()}
    assert told == {
        "the whole trace": 1, "each of 25 connections": 2, "connection c12": 1, "connection c24": 1,
    }  # fmt: skip
    some = [replace(one, run="r") for one in unknowns(rows) if one.connection in ("c1", "c12")]
    others = [replace(one, run="r", connection="c3") for one in some if one.what == "inside"]
    assert "connection c1, connection c12" in told_once([*some, *others[:1]])


def test_runs_are_told_apart(own, repo):
    """Several runs in one trace: the page names them, and none is mixed with another."""
    rows = [*own, *captured(repo, "rmq43_b_consumer_credit")]
    found = unknowns(rows)
    assert {one.run for one in found} == {rows[0].run, rows[-1].run}
    assert all(
        line.startswith((rows[0].run, rows[-1].run, "  "))
        for line in str(unknowns(rows)).splitlines()
    )
