"""Real captures with packets lost, doubled, late or left out: what is certain stays true."""

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.capture.capture_builder import blocks
from workbench.capture.importer import CaptureError, import_capture
from workbench.folds.story import story
from workbench.folds.violations import violations

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
PACKET = b"\x06\0\0\0"
SEEDS = 3
NEAR_US = 2_000
"""A packet that is lost may have begun a stall; the next one did soon after."""


def lost(packets, chance):
    return [one for one in packets if chance.random() > 0.05]


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


@pytest.mark.parametrize("how", [lost, doubled, late, begun_late, stopped_early])
@pytest.mark.parametrize("capture", sorted(CAPTURES.rglob("*.pcapng")), ids=lambda path: path.stem)
def test_what_is_certain_of_a_disturbed_capture_is_true_of_the_whole_one(capture, how, tmp_path):
    """No rule is said to be broken, and no stall proved, that the whole capture does not show."""
    its = list(blocks(capture))
    packets = [block for block in its if block[:4] == PACKET]
    begun, ended = its.index(packets[0]), its.index(packets[-1])
    rows = import_capture(capture).rows
    whole, stalls = broken(rows), proved(story(rows))
    for seed in range(SEEDS):
        chance = random.Random(f"{capture.stem} {seed}")
        disturbed = tmp_path / f"{seed}.pcapng"
        kept = how(packets, chance)
        disturbed.write_bytes(b"".join([*its[:begun], *kept, *its[ended + 1 :]]))
        try:
            found = import_capture(disturbed).rows
        except CaptureError:
            continue
        assert not broken(found) - whole
        if how in (begun_late, stopped_early):
            continue  # its times count from another packet, and what lasts ends sooner
        for name, what, start_us, end_us in proved(story(found)):
            assert any(
                known[:2] == (name, what)
                and known[2] <= start_us + NEAR_US
                and end_us <= known[3] + NEAR_US
                for known in stalls
            )


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
