"""Real captures with packets lost, doubled, late or left out: what is certain stays true."""

import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.capture.capture_builder import PACKET, blocks, lost, written
from workbench.capture.importer import CaptureError, import_capture
from workbench.capture.packet import endpoint_text, segment_of
from workbench.capture.pcap import CaptureReader
from workbench.folds.story import Packets, story
from workbench.folds.violations import violations
from workbench.scenarios import run
from workbench.trace.pcapng_out import export

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
RUNS = {
    "qpid": [("publish", {"count": 14}), ("accept", {"count": 6})],
    "qpid_credit": [
        ("flow", {"value": 5}), ("flow", {"unit": "octets", "value": 400}),
        ("complete", {"count": 3}), ("stop", {}),
        ("flow", {"value": 4}), ("flow", {"unit": "octets", "value": 90}),
        ("complete", {"count": 2}), ("set_flow_mode", {"mode": "credit"}),
        ("flow", {"value": 2}), ("flow", {"unit": "octets", "value": 90}),
        ("complete", {"count": 1}),
    ],
}  # fmt: skip
"""Of AMQP 0-10, of which there is no capture of a real broker: runs, exported."""
SEEDS = 3
NEAR_US = 2_000
"""A packet that is lost may have begun a stall; the next one did soon after."""


def doubled(packets, chance):
    return [one for one in packets for _ in range(1 + (chance.random() < 0.2))]


def late(packets, chance):
    """Neighbours have changed places, each with its own time."""
    its = list(packets)
    for at in range(len(its) - 1):
        if chance.random() < 0.15:
            its[at], its[at + 1] = its[at + 1], its[at]
    return its


def begun_late(packets, chance):
    return packets[chance.randrange(1, len(packets)) :]


def stopped_early(packets, chance):
    return packets[: chance.randrange(1, len(packets))]


PLACES = [
    # What was captured of 4.0 was done with 4.3, too.
    pytest.param(its, id=its.stem, marks=[pytest.mark.slow] if "rmq40" in its.stem else [])
    for its in sorted(CAPTURES.rglob("*.pcapng"))
]


@pytest.fixture(scope="module", params=[*PLACES, *RUNS])
def capture(request, tmp_path_factory):
    """The place of a capture, what is read of it, its broken rules, and its stalls."""
    place = request.param
    if place in RUNS:
        played = run(place, parameters={"messages": 30} if place == "qpid_credit" else {})
        for act, arguments in RUNS[place]:
            played = played.then(act, **arguments)
        place = tmp_path_factory.mktemp("exported") / f"{place}.pcapng"
        export(played.rows, place)
    whole = import_capture(place)
    return place, whole, broken(whole.rows), proved(story(whole.rows))


def by_sender(result):
    """Its frames, by who has sent them to whom."""
    ends = {one.name: {"client": (one.client, one.broker), "broker": (one.broker, one.client)}
            for one in result.report.connections}  # fmt: skip
    found = defaultdict(list)
    for row in result.rows:
        if row.is_frame:
            found[ends[row.connection][row.from_peer]].append(row)
    return found


def known_counters_are_true(found, whole):
    """Every counter that is told of a frame is that of the same frame in the whole capture."""
    true = by_sender(whole)
    for ends, rows in by_sender(found).items():
        waiting = iter(true[ends])
        for row in rows:
            same = row.kind, row.t_raw_us, row.raw
            its = next(one for one in waiting if (one.kind, one.t_raw_us, one.raw) == same)
            if its.from_peer != row.from_peer:
                continue  # it began too late to tell who the client is
            told = its.ledger or {}
            for name, value in (row.ledger or {}).items():
                # Without the link's sender the session counters are those of the other end.
                if row.link_sender == its.link_sender or name in ("link_credit", "delivery_count"):
                    assert told.get(name) == value, (name, row, its)


def broken(rows):
    """Rules that are certainly broken: by whom, on which link, how often."""
    return Counter(
        (one["link"], one["link_sender"], one["what"]) for one in violations(rows) if one["certain"]
    )


def proved(told):
    """Stalls that are proved, with when they were."""
    return [
        (link.key.name, one.what, one.start_us, one.end_us)
        for link in told.links for one in link.intervals
        if one.stall and one.timed and not (one.late or one.lacks)
    ]  # fmt: skip


def stalls_are_among(found, stalls):
    """Each is one that the whole capture shows, or within one."""
    for name, what, start_us, end_us in found:
        assert any(
            known[:2] == (name, what)
            and known[2] <= start_us + NEAR_US
            and end_us <= known[3] + NEAR_US
            for known in stalls
        )


@pytest.mark.parametrize("how", [lost, doubled, late, begun_late, stopped_early])
def test_what_is_certain_of_a_disturbed_capture_is_true_of_the_whole_one(capture, how, tmp_path):
    """No rule is said to be broken, and no stall proved, that the whole capture does not show."""
    place, _, breaks, stalls = capture
    for seed in range(SEEDS):
        chance = random.Random(f"{place.stem} {seed}")
        try:
            found = import_capture(written(place, how, chance, tmp_path / f"{seed}.pcapng")).rows
        except CaptureError:
            continue
        assert not broken(found) - breaks
        if how in (begun_late, stopped_early):
            continue  # its times count from another packet, and what lasts ends sooner
        stalls_are_among(proved(story(found)), stalls)


@pytest.mark.parametrize("how", [lost, begun_late, stopped_early])
def test_counters_that_are_known_of_a_disturbed_capture_are_those_of_the_whole_one(
    capture, how, tmp_path
):
    """What was lost may have changed any of them, and then they are not known."""
    place, whole, *_ = capture
    for seed in range(SEEDS):
        chance = random.Random(f"{place.stem} {seed}")
        try:
            found = import_capture(written(place, how, chance, tmp_path / f"{seed}.pcapng"))
        except CaptureError:
            continue
        known_counters_are_true(found, whole)


@pytest.mark.parametrize("peer", ["client", "broker"])
def test_of_one_direction_alone_nothing_is_taken_for_true_that_the_other_may_have_changed(
    capture, peer, tmp_path
):
    """As a filter for the source alone keeps it: acknowledgements prove that the rest is lost."""
    place, whole, _, stalls = capture
    with place.open("rb") as file:
        sources = [endpoint_text(segment_of(one).source) for one in CaptureReader(file) if one]
    sides = {getattr(one, peer) for one in whole.report.connections}

    def from_peer(packets, _chance):
        return [one for one, source in zip(packets, sources, strict=True) if source in sides]

    found = import_capture(written(place, from_peer, None, tmp_path / "one.pcapng"))
    known_counters_are_true(found, whole)
    assert not broken(found.rows)
    told = story(found.rows, Packets(unheard=found.report.captures[0].unheard))
    stalls_are_among(proved(told), stalls)
    silent = "broker" if peer == "client" else "client"
    assert f"Nothing that the {silent} said on c1" in told.headline
    assert f"from {silent}: nothing that it said is in the capture" in found.report.text()


def test_nothing_is_told_of_credit_that_was_granted_before_the_capture(tmp_path):
    """It begins between the two attaches: the receiver's flow names a handle that nobody knows."""
    its = list(blocks(CAPTURES / "rmq43_f_memory_alarm.pcapng"))
    cut = tmp_path / "cut.pcapng"
    begun = next(at for at, one in enumerate(its) if one[:4] == PACKET)
    _, answer = [at for at, one in enumerate(its) if b"rcv-1" in one][:2]
    cut.write_bytes(b"".join([*its[:begun], *its[answer:]]))
    rows = import_capture(cut).rows
    assert rows[0].kind == "attach"
    told = story(rows)
    link = next(one for one in told.links if one.key.link == rows[0].link)
    assert link.messages == 7
    assert "No grant of its receiver is in the trace." in link.more
    assert not link.intervals
