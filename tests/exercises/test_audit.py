"""Readers of a trace that make a known mistake, beside the ledgers, which make none."""

import dataclasses
from pathlib import Path

import pytest

from workbench import presets
from workbench.capture.importer import import_capture
from workbench.exercises.audit import (
    LEDGERS,
    audit,
    audit_starts,
    audited_run,
)
from workbench.exercises.museum_readers import RightReader
from workbench.exercises.readers import BelievesTheFlow, CountsFromZero, source_of
from workbench.notebook import PlainError
from workbench.scenarios import run

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
ZERO, FLOW = CountsFromZero.name, BelievesTheFlow.name
STARTS = (0, 20, 2**31, 2**32 - 2)


def says(audited, reader: str, kind: str = "transfer") -> list:
    """What a reader says after each frame of a kind."""
    return [line.credit[reader] for line in audited.lines if line.kind == kind]


def three_transfers(start: int):
    """Credit 3, three messages: the shortest trace that uses credit up."""
    queue = run("credit", parameters={"messages": 3, "initial_delivery_count": start})
    return audit(queue.act(queue.start_seq, "grant", link_credit=3))


def test_a_misspelt_name_is_right_only_by_luck():
    """The reader that finds no initial count is right where the count begins at 0 anyway."""
    assert [three_transfers(start).noticed(ZERO) for start in STARTS] == [1, 0, 0, 0]
    assert [three_transfers(start).noticed(LEDGERS) for start in STARTS] == [1, 1, 1, 1]
    assert says(three_transfers(20), ZERO) == [22, 21, 20]
    assert says(three_transfers(2**32 - 2), ZERO)[0] == 2**32 - 2 + 3 - 1


def test_an_elided_more_is_a_message_that_ends():
    """The common encoding leaves `more` out; who counts only what is said aloud sees 3, 3, 3, 3."""
    audited = three_transfers(0)
    assert [line.credit[FLOW] for line in audited.lines][-4:] == [3, 3, 3, 3]
    assert [line.credit[LEDGERS] for line in audited.lines][-4:] == [3, 2, 1, 0]
    assert audited.stalls(FLOW) == []


def test_what_says_more_aloud_is_counted_by_both():
    """The same reader is right where a sender spells out `more=false`."""
    reader = BelievesTheFlow()
    reader.read("flow", {"link-credit": 2}, False)
    reader.read("transfer", {"more": True}, True)
    assert reader.credit == 2
    reader.read("transfer", {"more": False}, True)
    reader.read("transfer", {"more": False}, True)
    assert (reader.credit, reader.used_up) == (0, True)


def test_a_flow_that_crosses_a_transfer_is_believed_by_one_reader():
    """Credit doubles while one message is under way: 2 × 3 on the flow, one less by the formula."""
    audited = audit(audited_run(3, initial_delivery_count=20))
    crossing = next(
        line for line in audited.lines if "delivery-count=23, link-credit=6" in line.says
    )
    assert (crossing.credit[LEDGERS], crossing.credit[FLOW]) == (5, 6)


def test_after_a_drain_the_second_exhaustion_is_missed():
    """The sender's own flow tells the count; a reader that takes 0 there loses the thread."""
    audited = audit(audited_run(3))
    assert len(audited.stalls()) == 2
    assert audited.stalls(ZERO) == audited.stalls()[:1]
    drained = next(line for line in audited.lines if line.says.startswith("← flow"))
    assert (drained.credit[LEDGERS], drained.credit[ZERO]) == (0, 9)


@pytest.mark.parametrize("link_credit", [1, 3, 7])
def test_the_ledgers_say_the_same_whatever_the_start(link_credit):
    """Initial delivery-count 0, 20, 2^31 and 2^32 − 2: one story, one verdict [RFC 1982]."""
    audits = audit_starts(STARTS, link_credit).audits
    stories = [
        [(line.seq, line.kind, line.credit[LEDGERS], LEDGERS in line.used_up) for line in one.lines]
        for one in audits.values()
    ]
    assert stories.count(stories[0]) == len(STARTS)
    assert len({len(one.stalls()) for one in audits.values()}) == 1


def test_neither_reader_survives_all_starts():
    """Each of the two is wrong somewhere in every story, and a false alarm is called one."""
    starts = audit_starts(STARTS, 3)
    for one in starts.audits.values():
        assert one.wrong(ZERO)
        assert one.wrong(FLOW)
        assert one.wrong(LEDGERS) == 0
    assert "1 false alarm" in str(starts)
    assert starts._repr_html_().count("<tr>") == len(STARTS) + 1


def test_a_real_broker_that_begins_just_below_the_wrap_around():
    """RabbitMQ 4.0 begins at 4294967291: neither reader notices any of the three stops."""
    audited = audit(import_capture(CAPTURES / "rmq40_b_consumer_credit.pcapng"))
    assert len(audited.stalls()) == 3
    assert (audited.noticed(ZERO), audited.noticed(FLOW)) == (0, 0)
    late = next(line for line in audited.lines if "delivery-count=7, link-credit=6" in line.says)
    assert (late.credit[LEDGERS], late.credit[FLOW]) == (4, 6)


def test_a_real_broker_can_hide_both_mistakes():
    """RabbitMQ 4.3 begins at 0 and writes `more=false`: only the crossing flow gives one away."""
    audited = audit(import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng"))
    assert audited.stalls(ZERO) == audited.stalls()
    assert audited.noticed(FLOW) == len(audited.stalls()) - 1
    at = next(line for line in audited.lines if line.seq == audited.first_wrong(FLOW))
    assert "delivery-count=12, link-credit=6" in at.says
    assert (at.credit[LEDGERS], at.credit[FLOW]) == (4, 6)


def test_what_a_reader_has_not_said_is_not_wrong():
    """Before the attach a reader has no number, which is no wrong number."""
    audited = three_transfers(0)
    assert audited.lines[0].credit[FLOW] is None
    assert audited.first_wrong(FLOW) == audited.lines[3].seq
    assert audited.first_wrong(LEDGERS) is None


def test_the_audit_is_a_table_for_page_and_terminal():
    """Every wrong cell carries a sign, not a colour, and a sentence sums it up."""
    audited = three_transfers(20)
    text = str(audited)
    assert "23 ✘" in text
    assert "0 used up" in text
    assert "used up 1 time in 6 frames" in text
    assert "“counts from zero”: noticed 0 of 1" in text
    assert audited._repr_html_().count("<tr>") == len(audited.lines) + 1


def test_a_trace_without_messages_cannot_be_audited():
    """Nothing moved, so nothing was used up."""
    with pytest.raises(ValueError, match="nothing to audit"):
        audit(run("credit"))


def test_the_code_of_a_reader_can_be_read():
    """The mistake stands in it, and no comment points at it."""
    text = str(source_of(ZERO, FLOW))
    assert 'fields.get("initial-delivery_count", 0)' in text
    assert 'fields.get("more") is False' in text
    assert "#" not in text
    assert "&quot;more&quot;" in source_of(FLOW)._repr_html_()
    with pytest.raises(ValueError, match="counts from zero, believes the flow"):
        source_of("nobody")


def test_a_message_in_several_frames_uses_up_credit_once():
    """The frames after the first find credit 0 already; the audit calls that one stop, not many."""
    small = dataclasses.replace(presets.get("spec"), client_max_frame_size=512)
    queue = run("credit", small, {"messages": 1, "message_bytes": 2000})
    audited = audit(queue.act(queue.start_seq, "grant", link_credit=1))
    assert sum(line.kind == "transfer" for line in audited.lines) > 2
    assert len(audited.stalls()) == 1


@pytest.mark.parametrize("link_credit", [0, -1])
def test_a_run_without_credit_is_refused_by_the_name_that_was_given(link_credit):
    """Not by that of the act or parameter behind it."""
    with pytest.raises(PlainError, match=r"^link_credit is .*; legal: 1 or more$"):
        audited_run(link_credit)


def test_no_start_gives_a_table_without_lines():
    """And no mistake of ours."""
    assert len(str(audit_starts([], link_credit=3)).splitlines()) == 1


@pytest.mark.parametrize(
    "capture",
    [
        "rmq40_f_memory_alarm",
        "rmq43_e_large_message_split",
        "rmq43_f_memory_alarm",
        "rmq43_c_drain",
    ],
)
def test_who_reads_as_the_specification_says_is_right_in_every_frame_of_a_real_broker(
    capture,
):
    """Also where links of two connections share a name, and where messages have many frames."""
    audited = audit(import_capture(CAPTURES / f"{capture}.pcapng"), kinds=[RightReader])
    assert audited.wrong(RightReader.name) == 0
    assert any(line.kind == "transfer" for line in audited.lines)


def test_a_publisher_s_link_is_read_as_its_own_end_saw_it():
    """A client is known by a name of its own, such as `client:app`."""
    played = run("publishers").then("publish", count=3)
    audited = audit(played, kinds=[RightReader])
    assert (says(audited, LEDGERS), audited.wrong(RightReader.name)) == ([99, 98, 97], 0)
