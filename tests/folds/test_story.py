"""The story of a capture: what it says of each link, and what it takes for the worst."""

import re
from dataclasses import replace

import pytest

from tests.analysis.runs import CAPTURES, acted, capture_rows, without
from tests.capture.capture_builder import Burst, behind_attach, bursts, record
from tests.folds.test_channels import Inside
from workbench import folds
from workbench.amqp010.controls import ConnectionClose, ConnectionTuneOk
from workbench.amqp010.frame import Frame
from workbench.capture.importer import import_capture
from workbench.folds.consumers import prefetch
from workbench.folds.story import Packets, story
from workbench.scenarios.run import run
from workbench.trace.pcapng_out import export
from workbench.trace.taps import frame_row
from workbench.views.frames import summary


def lost(rows, *, end):
    """The same run, of which the trace ends before this row."""
    return [row for row in rows if row.seq < end]


@pytest.fixture(scope="module")
def late():
    """A receiver that grants twice, late, and then no more; messages are left."""
    return acted(
        "credit", "rmq4.3", {"messages": 30}, ("grant", {"link_credit": 5}),
        ("grant", {"link_credit": 7}),
    )  # fmt: skip


def test_stalls_by_brake_are_those_of_the_question():
    """Over every capture: as many, as long."""
    rows = list(capture_rows())
    by_run = {}
    for row in rows:
        by_run.setdefault(row.run, []).append(row)
    for its in by_run.values():
        found, told = folds.stalls(its), story(its)
        assert sum(one.stalls for one in told.brakes) == len(found)
        assert sum(one.lost_us for one in told.brakes) == sum(s.end_us - s.start_us for s in found)
        assert {one.brake for one in told.brakes} == {s.brake for s in found}
        if found:
            worst = max(found, key=lambda s: s.end_us - s.start_us)
            assert told.worst[1].lasted_us == worst.end_us - worst.start_us
            assert f"blocked by {told.worst[1].what}" in told.headline


def test_what_took_no_time_held_nobody():
    """A clock that stands still, as where captures are put together, shows waits of no length."""
    found = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    rows = [replace(row, t_us=0) for row in found]
    assert folds.stalls(rows)
    assert story(rows).brakes == ()
    assert [link.advice for link in story(rows).links] == [
        "Nothing that is known to have been ready had to wait."
    ]
    assert story(rows).opened_as.endswith(", no credit for no time that the trace tells")


def test_every_link_has_its_messages_and_advice(late):
    """As the summary has them; the one that waited longest comes first."""
    told = story(late)
    summary = {(s.connection, s.session, s.link, s.link_sender): s for s in folds.summarise(late)}
    for link in told.links:
        one = summary[link.key.connection, link.key.session, link.key.link, link.key.link_sender]
        assert (link.messages, link.advice) == (one.messages, one.advice)
    assert told.worst[0] is told.links[0]
    assert "granted credit 2 times" in " ".join(told.links[0].more)


def test_a_consumer_that_waits_for_ever_is_told_without_proof():
    """Its credit is used up, and no later frame shows that anything waited."""
    path = "data/captures/rmq43_b_consumer_credit.pcapng"
    rows = import_capture(path).rows
    flow = next(row for row in rows if row.kind == "flow" and row.frame["link_credit"] == 4)
    told = story([*lost(rows, end=24), replace(flow, seq=24, kind="disposition", frame={})])
    assert told.worst is not None
    assert not told.worst[1].stall or told.worst[1].seq == 11
    (link,) = told.links
    assert link.more[-1].startswith("When the trace ends it has had no credit for ")


def test_a_receiver_that_never_grants_is_named():
    """Nothing moves until it speaks."""
    (link,) = story(acted("credit", "rmq4.3", {"messages": 3})).links
    assert link.more[0] == "Its receiver never granted credit."


def test_a_closed_window_is_told_though_nobody_knows_that_anything_waited():
    """RabbitMQ closes it to a publisher in an alarm."""
    rows = import_capture(CAPTURES / "rmq43_f_memory_alarm.pcapng").rows
    publisher = next(
        one
        for one in story(rows).links
        if (one.key.connection, one.key.link_sender) == ("c1", "client")
    )
    assert (
        "Its session window was closed once, for 4.8 s at most; RabbitMQ says so to a publisher"
        " while memory or disk is short. Free some there, or consume what is queued."
    ) in publisher.more
    assert {one.what for one in publisher.intervals} == {"window closed"}
    # The transfer at 4.428 s of the frames beside the capture; the window was closed at 0.883 s.
    assert (
        "1 frame of the client passed while it was closed, 3.5 s after it was (row 46): if it had"
        " heard of that by then, it broke 2.5.6."
    ) in publisher.more


def test_what_an_end_refused_for_longer_than_the_longest_stall_is_in_the_headline():
    """A publisher that gave up in an alarm, and a consumer that did not read for a while."""
    rows = import_capture(CAPTURES / "rmq43_f_memory_alarm.pcapng").rows
    told = story(rows)
    assert told.worst[1].stall
    _, closed = told.lasting
    assert told.headline.endswith(
        f" From {closed.start_us / 1e6:.3f} s on, {told.lasting[0].key.name} had its session window"
        " closed for 4.8 s."
    )
    unread = story(rows, Packets(without_room={("c1", "broker"): [(0, 5_000_000)]}))
    assert unread.headline.endswith(" had no room at the other end for 5.0 s.")
    assert [one.lasting[0] in one.links[:2] for one in (told, unread)] == [True, True]


def test_a_subscription_of_0_10_that_gets_nothing_to_the_end_is_told(tmp_path):
    """Its credit was for four, and no frame tells whether there are more."""
    played = run("qpid_credit").then("flow", unit="octets", value=1000).then("flow", value=4)
    export(played.rows, tmp_path / "c.pcapng")
    rows = import_capture(tmp_path / "c.pcapng").rows
    told = story(rows, Packets(still_open={"c1"}, until_us=60_000_000))
    assert told.headline.endswith(
        " When the trace ends, c1/1 delivered has had no credit for 60 s."
    )
    (link,) = told.links
    assert link.more[-1].endswith("it is stalled until its receiver grants some.")


@pytest.mark.parametrize("closes", ["detach", "end", "close"])
def test_a_consumer_that_was_closed_in_its_wait_is_told_without_proof(closes):
    """Who waits for ever is closed in the end, by a person or a timeout."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    last = next(row for row in rows if row.kind == "transfer" and row.ledger["link_credit"] == 0)
    rows = lost(rows, end=last.seq + 1)
    end = replace(last, seq=last.seq + 1, kind=closes, frame={}, from_peer="client")
    told = story([*rows, replace(end, t_us=last.t_us + 10_000_000)])
    (link,) = told.links
    assert told.headline.endswith(
        f" When it was closed, {link.key.name} had had no credit for 10 s."
    )
    assert link.more[-1] == (
        "When it was closed it had had no credit for 10 s: if messages were waiting, it was"
        " stalled until then."
    )


def test_a_consumer_that_was_cancelled_in_its_wait_is_not_said_to_be_closed():
    """Its channel stays open, and acknowledges later [the capture's frames]."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_c2_amqp091_cancel_then_ack.pcapng").rows
    first = next(one for one in story(rows).links if one.key.session == 1)
    assert first.more[-1] == (
        "When its consumer was cancelled it had had as many messages as its prefetch allows for"
        " 251 ms: if messages were waiting, it was stalled until then."
    )


@pytest.mark.parametrize(("later_us", "told_so"), [(5_000, False), (30_000, True)])
def test_who_asks_for_so_many_messages_and_goes_is_not_said_to_have_waited(
    tmp_path, later_us, told_so
):
    """It is closed with no credit, for as long as that takes."""
    played = acted("credit", "rmq4.3", {"messages": 9}, ("grant", {"link_credit": 5}))
    export(played, tmp_path / "c.pcapng")
    rows = import_capture(tmp_path / "c.pcapng").rows
    last = [row for row in rows if row.kind == "transfer"][-1]
    rows = lost(rows, end=last.seq + 1)
    gone = replace(last, seq=last.seq + 1, t_us=last.t_us + later_us, kind="detach", frame={},
                   from_peer="client", ledger=None)  # fmt: skip
    told = story([*rows, gone])
    assert ("closed" in told.headline) == told_so
    assert ("closed" in " ".join(told.links[0].more)) == told_so


def test_where_nothing_was_attached_nothing_is_said_of_senders():
    """A client that came no further than its login, or its session."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    attach = next(row.seq for row in rows if row.kind == "attach")
    told = story(lost(rows, end=attach))
    assert told.headline == "No link was attached, and no message was sent."


def test_what_has_no_length_is_not_told_as_the_longest():
    """The trace ends with the attach, or with the delivery that uses the prefetch up."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    attach = next(row.seq for row in rows if row.kind == "attach")
    told = story(lost(rows, end=attach + 1))
    assert told.headline == "No sender was without credit for any time that the trace tells."
    assert told.opened_as == f"{told.links[0].key.name}, no credit when the trace ends"
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_q1_amqp091_prefetch_and_ack.pcapng").rows
    third = [row.seq for row in rows if row.kind == "basic.deliver"][2]
    told = story(lost(rows, end=third + 1))
    assert told.headline == "Nobody is known to have been held by a prefetch, a window or an alarm."
    assert told.worst is not None  # it is where the trace is opened


def test_nothing_to_tell_is_told():
    """A sender that always had credit."""
    rows = acted("credit", "rmq4.3", {"messages": 0}, ("grant", {"link_credit": 5}))
    told = story(rows)
    assert told.brakes == ()
    assert "stall" not in told.headline or told.headline.startswith("No stall can be proved")


def test_no_credit_is_called_enough_that_nobody_knows():
    """A capture that begins behind the attach tells a link's handle alone."""
    rows = import_capture([CAPTURES / "rmq43_a_publisher_grants.pcapng"]).rows
    begun = max(row.seq for row in rows if row.kind == "attach")
    told = story([
        replace(row, link=None, link_sender=None, attach_no=None, ledger=None)
        for row in rows if row.seq > begun
    ])  # fmt: skip
    assert told.worst is None
    assert told.headline.startswith("No stall can be proved: the trace never tells the credit")
    assert (told.links, told.without_links[:9]) == ((), "None that")
    assert told.without_links.endswith(" Capture from before the client connects.")


def test_whoever_captured_half_packets_from_the_beginning_is_not_told_to_begin_earlier():
    """What makes links nameless are the octets that are missing."""
    rows = import_capture([CAPTURES / "rmq43_a_publisher_grants.pcapng"]).rows
    told = story([
        without(row) if row.kind in ("attach", "transfer")
        else replace(row, link=None, link_sender=None, attach_no=None, ledger=None)
        for row in rows
    ])  # fmt: skip
    assert told.without_links == (
        "None that can be named: no attach and no message can be read: octets are missing in the"
        " trace."
    )


def test_a_capture_that_begins_behind_the_attach_tells_who_waits(tmp_path):
    """As of a connection that was made long ago: a handle, and credit once that has run out."""
    tape, _ = record(bursts(behind_attach(4), step=500_000), handshake=False)
    capture = import_capture(tape.write(tmp_path / "late.pcapng"))
    packets = Packets(until_us=13_000_000, still_open=frozenset({"c1"}))
    (link,) = (told := story(capture.rows, packets)).links
    assert (link.key.name, link.messages) == ("c1/1 handle 0", 12)
    assert told.headline == (
        "No stall can be proved. The longest time in which a sender could not have sent:"
        " 9.5 s on c1/1 handle 0, from 3.500 s on; no credit."
    )
    assert (
        "Its attach is not in the trace: it is told by its handle, and its credit is known from"
        " 2.500 s on."
    ) in link.more
    assert link.more[-1] == (
        "When the trace ends it has had no credit for 9.5 s: if messages were waiting, it is"
        " stalled until its receiver grants some."
    )


def test_of_heartbeats_alone_nothing_is_said_to_be_well(tmp_path):
    """As of a consumer that is stuck for good: the capture has nothing but signs of life."""
    for protocol, beat in (("amqp-1.0", "0000000802000000"), ("amqp-0-9-1", "08000000000000ce")):
        octets = bytes.fromhex(beat)
        beats = [Burst(0, 9_000_000 * n, n % 2 == 0, octets, (8,)) for n in range(6)]
        tape, _ = record(beats, handshake=False)
        rows = import_capture(tape.write(tmp_path / f"{protocol}.pcapng")).rows
        assert [row.protocol for row in rows] == [protocol] * 6
        told = story(rows)
        assert told.headline == (
            "No stall can be proved: no message passed, and what came before is unknown."
        )
        assert told.without_links.startswith("None that the trace tells of: no link was attached")


def test_a_grant_of_before_the_capture_is_not_said_never_to_have_been():
    """Nobody knows what the receiver granted before."""
    rows = import_capture([CAPTURES / "rmq43_b_consumer_credit.pcapng"]).rows
    begun = max(row.seq for row in rows if row.kind == "flow" and row.from_peer == "client")
    told = story([replace(row, attach_no=None, ledger=None) for row in rows if row.seq > begun])
    (link,) = told.links
    assert link.more[0] == "No grant of its receiver is in the trace."


def test_for_how_long_a_window_was_closed_is_not_said_where_the_beginning_is_missing():
    """RabbitMQ closed it at 0.883 s; that it was known closed is told by the client at 3.422 s."""
    rows = import_capture([CAPTURES / "rmq43_f_memory_alarm.pcapng"]).rows
    begun = max(row.seq for row in rows if row.kind == "attach" and row.connection == "c1")
    told = story([
        replace(row, attach_no=None, ledger=None) if row.connection == "c1" else row
        for row in rows if row.seq > begun + 2
    ])  # fmt: skip
    publisher = next(one for one in told.links if one.key.name.startswith("c1/1 snd"))
    (closed,) = (text for text in publisher.more if text.startswith("Its session window"))
    assert " that the trace tells of" in closed
    assert " at most" not in closed
    (passed,) = (text for text in publisher.more if "passed while it was closed" in text)
    assert passed.startswith("1 frame of the client passed while it was closed (row ")


@pytest.mark.parametrize("what", ["its attach is missing", "its octets are", "it goes on", ""])
def test_a_share_of_a_life_is_told_where_all_of_it_is_known(what):
    """What is not known is not counted as without credit, so the share would be too small."""
    rows = import_capture([CAPTURES / "rmq43_h_sac_handover.pcapng"]).rows
    mine = [row for row in rows if row.connection == "c2" and row.link == "B"]
    if what == "its attach is missing":
        rows = [replace(row, attach_no=None) if row.link else row for row in rows]
    if what == "its octets are":
        rows = [without(row) if row.seq == mine[0].seq else row for row in rows]
    if what == "it goes on":
        rows = lost(rows, end=next(row.seq for row in mine if row.kind == "detach"))
    told = story(rows, Packets(still_open={"c2"}, until_us=rows[-1].t_us))
    (link,) = (one for one in told.links if one.key.connection == "c2")
    assert "waited" in link.advice
    assert ("of its life" in link.advice) == (not what)


def test_messages_that_come_back_are_counted():
    """A message that no consumer can take goes round, and looks like so many messages."""
    name = "amqp091/rmq43_q1_amqp091_prefetch_and_ack.pcapng"
    links = {one.key.name: one for one in story(import_capture(CAPTURES / name).rows).links}
    words = (
        "4 of its 14 messages had been delivered before: a consumer gave them back, or was gone."
    )
    for channel in (1, 2):
        assert words in links[f"c1/{channel} delivered"].more


def test_no_prefetch_is_called_enough_that_nobody_knows():
    """A capture that begins behind basic.qos, as of a consumer that has stalled already."""
    name = "amqp091/rmq43_q1_amqp091_prefetch_and_ack.pcapng"
    rows = import_capture(CAPTURES / name).rows
    begun = max(row.seq for row in rows if row.kind == "basic.consume-ok")
    told = story([replace(row, ledger=None) for row in rows if row.seq > begun])
    assert told.worst is None
    assert told.headline == (
        "No stall can be proved: the trace never tells the prefetch of some channel."
    )
    (link,) = (one for one in told.links if one.key.link_sender == "broker")
    assert "Its prefetch is not in the trace: whether it was used up cannot be known." in link.more
    # That it was 3 is in the frames of before.
    (hint,) = (words for words in link.more if words.startswith("At most "))
    assert hint == (
        "At most 3 messages that the trace has were unacknowledged at once, 8 times, for 2.0 s in"
        " all: if that is its prefetch, it was used up then."
    )
    assert "prefetch of some channel" not in story(rows).headline


@pytest.mark.parametrize(
    "name", ["rmq43_b_consumer_credit.pcapng", "amqp091/rmq43_q1_amqp091_prefetch_and_ack.pcapng"]
)
def test_a_connection_on_which_nothing_was_sent_is_not_said_to_lack_its_beginning(name):
    """Neither a link nor a message of it can be missing."""
    rows = [row for row in import_capture(CAPTURES / name).rows if row.session is None]
    told = story(rows)
    assert (told.links, told.without_links) == (
        (), "None: no link was attached, and no message was sent."
    )  # fmt: skip


def test_of_links_whose_octets_are_all_missing_nothing_is_said():
    """They may have been without credit: a capture of the first octets of each packet."""
    rows = import_capture([CAPTURES / "rmq43_b_consumer_credit.pcapng"]).rows
    told = story([row if row.session is None else without(row) for row in rows])
    assert told.headline == "No stall can be proved: octets are missing in the trace."
    assert told.without_links == "None that can be read: octets are missing in the trace."


def test_where_octets_are_missing_nobody_is_said_to_have_had_no_wait():
    """As in a capture of the first octets of each packet, in which deliveries cannot be read."""
    name = "amqp091/rmq43_p1_amqp091_publish_without_confirms.pcapng"
    rows = import_capture(CAPTURES / name).rows
    assert story(rows).headline.startswith("Nobody is known to have been held by ")
    told = story([*rows[:50], without(rows[50]), *rows[51:]])
    assert told.links
    assert told.headline == "No stall can be proved: octets are missing in the trace."


def test_octets_that_are_there_are_not_called_missing():
    """A broken frame may have hidden anything; all of it is in the capture."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_e1_amqp091_errors.pcapng").rows
    assert {row.event for row in rows} >= {"error"}
    assert {row.event for row in rows}.isdisjoint({"gap"})
    assert story(rows).headline.endswith(
        " No stall can be proved: some octets of the trace cannot be read."
    )


def test_what_lasted_to_the_end_is_doubted_where_octets_are_missing_within_it():
    """The flow that opened the window may be among them, and so may the first grant."""
    rows = import_capture([CAPTURES / "rmq43_f_memory_alarm.pcapng"]).rows
    opened = max(
        row.seq for row in rows
        if row.kind == "flow" and row.from_peer == "broker" and row.fields["incoming_window"]
    )  # fmt: skip
    grants = [row.seq for row in rows if row.kind == "flow" and row.from_peer == "client"]
    told = story([without(row) if row.seq in (opened, *grants) else row for row in rows])
    by_name = {link.key.name: link for link in told.links}
    publisher, consumer = by_name["c1/1 snd-0-/queues/cap_f"], by_name["c1/1 rcv-1-/queues/cap_f2"]
    assert "No grant of its receiver is in the trace." in consumer.more
    assert "Its receiver never granted credit." not in consumer.more
    for link in (publisher, consumer):
        assert link.more[-1].endswith(", and 1 wait may have ended sooner.")
    (closed,) = (text for text in publisher.more if text.startswith("Its session window"))
    assert " that the trace tells of; " in closed
    _, one = told.lasting or told.worst
    assert one.lacks
    assert told.headline.endswith("Octets are missing within it: it may have ended sooner.")


def test_a_link_that_broke_a_rule_is_told_with_what_came_late():
    """Messages beyond its credit are no reason to hide for how long it may have waited."""
    rows = import_capture([CAPTURES / "rmq43_c_drain.pcapng"]).rows
    (late,) = (one for one in story(rows).links if one.key.connection == "c1")
    assert late.advice.startswith("The broker had nothing to send when it was stopped.")
    last = max(row.seq for row in rows if row.kind == "transfer" and row.connection == "c1")
    beyond = []
    for row in rows:
        beyond.append(row)
        if row.seq == last:
            number = row.fields["delivery_id"]
            beyond += [
                replace(row, frame=dict(row.fields) | {"delivery_id": number + n})
                for n in range(1, 5)
            ]
    (link,) = (
        one for one in story([replace(row, seq=n) for n, row in enumerate(beyond)]).links
        if one.key.connection == "c1"
    )  # fmt: skip
    assert re.match(r"The broker began \d deliver(y|ies) without credit, ", link.advice)
    assert link.advice.endswith(late.advice)


def test_how_much_was_granted_is_not_told_where_messages_may_be_missing():
    """Ten messages are: 14 was told as typical of grants of 10, 4, 6 and 100."""
    rows = import_capture([CAPTURES / "rmq43_b_consumer_credit.pcapng"]).rows
    first = [row.seq for row in rows if row.kind == "transfer"][:10]
    (link,) = story([without(row) if row.seq in first else row for row in rows]).links
    assert link.more[0] == "Its receiver granted credit 4 times that the trace tells of."


def test_a_wait_in_which_octets_are_missing_is_doubted():
    """The grant that ended it may be among them."""
    rows = import_capture([CAPTURES / "rmq43_b_consumer_credit.pcapng"]).rows
    flows = [row for row in rows if row.kind == "flow" and row.from_peer == "client"]
    doubted = story([without(row) if row.seq == flows[1].seq else row for row in rows])
    assert doubted.headline.endswith("Octets are missing within it: it may have ended sooner.")
    assert doubted.links[0].more[-1] == (
        "Its connection lacks octets in 1 place: what they said is not counted here, and 1 wait may"
        " have ended sooner."
    )
    assert [one.lacks for one in doubted.links[0].intervals if one.stall].count(True) == 1
    whole = story(rows)
    assert "missing" not in whole.headline
    assert "lacks" not in " ".join(whole.links[0].more)


def test_a_receiver_that_never_grants_leaves_its_sender_without_credit():
    """From the attach to the end of the trace, though no grant was taken away again."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    told = story(lost(rows, end=next(row.seq for row in rows if row.kind == "flow")))
    assert told.worst is not None
    link, worst = told.worst
    assert (worst.what, worst.lasts) == ("no credit", True)
    assert told.headline.endswith("; no credit.")
    assert link.more[-1].startswith("When the trace ends it has had no credit for ")


@pytest.mark.parametrize(
    ("name", "end", "had", "until"),
    [
        ("rmq43_b_consumer_credit", 24, "no credit", "its receiver grants some"),
        ("amqp091/rmq43_q1_amqp091_prefetch_and_ack", 22,
         "a consumer at its prefetch limit", "some are acknowledged"),
    ],
)  # fmt: skip
def test_a_consumer_that_is_silent_has_waited_to_the_end_of_the_trace(name, end, had, until):
    """Other connections go on, or nothing at all: it is the one whom the reader looks for."""
    path = CAPTURES / f"{name}.pcapng"
    rows = lost(import_capture(path).rows, end=end)
    a_minute = 60_000_000
    told = story(rows, Packets(still_open={"c1"}, until_us=a_minute))
    (link,) = told.links
    (one,) = (one for one in link.intervals if one.lasts)
    assert (one.end_us, told.lasted_us) == (a_minute, a_minute - rows[0].t_us)
    words = f"has had {had} for 60 s"
    assert link.more[-1] == (
        f"When the trace ends it {words}: if messages were waiting, it is stalled until {until}."
    )
    if one is told.worst[1]:
        assert told.lasting is None
    else:
        assert told.headline.endswith(f" When the trace ends, {link.key.name} {words}.")
    # Of a connection that was closed, or that may have been, nobody knows more than its rows say.
    assert story(rows, Packets(until_us=a_minute)).links[0].intervals[-1].end_us == rows[-1].t_us
    ended = replace(rows[-1], seq=end, kind="close", protocol="amqp-1.0", session=None, link=None)
    if "091" in name:
        ended = replace(ended, kind="connection.close", protocol="amqp-0-9-1")
    closed = story([*rows, ended], Packets(still_open={"c1"}, until_us=a_minute))
    assert not any(one.lasts for link in closed.links for one in link.intervals)


def test_a_trace_that_tells_of_its_connections_knows_who_waits_at_its_end():
    """One of our own server's: its receiver has used its credit up, and another peer goes on."""
    rows = acted("credit", "rmq4.3", {"messages": 9}, ("grant", {"link_credit": 5}))
    connection = rows[-1].connection
    made = replace(rows[0], event="connect", connection=connection, frame=None, frame_id=None)
    gone = replace(rows[-1], event="disconnect", connection=connection, frame=None, frame_id=None)
    a_minute = 60_000_000
    later = replace(gone, seq=gone.seq + 2, t_us=a_minute, connection="c9")
    told = story([made, *rows, later])
    (link,) = told.links
    assert told.lasting is None  # it is the worst already
    (one,) = (one for one in link.intervals if one.stall and one.lasts)
    assert one.end_us == a_minute
    assert link.more[-1] == "When the trace ends it still waits."
    # What is lost waits no longer; and of a connection without its making nobody knows.
    for others in ([made, *rows, replace(gone, seq=gone.seq + 1), later], [*rows, later]):
        (link,) = story(others).links
        assert not any(one.lasts for one in link.intervals)
        assert "still waits" not in " ".join(link.more)


def test_who_is_known_to_wait_at_the_end_is_not_told_as_one_who_may():
    """The consumer is full a second longer than a message has waited for it."""
    rows = run("overload").rows
    full = next(row["seq"] for row in prefetch(rows) if row["full"])
    waits = next(row.seq for row in rows[full:] if (row.ledger or {}).get("queue_ready"))
    connection = rows[full].connection
    made = replace(rows[0], event="connect", connection=connection, frame=None, frame_id=None)
    told = story([made, *lost(rows, end=waits + 2)])
    link, worst = told.worst
    assert (worst.what, worst.seq, worst.stall) == ("prefetch", waits, True)
    (other,) = (one for one in link.intervals if one.lasts and not one.stall)
    assert other.lasted_us > worst.lasted_us
    assert told.lasting is None
    assert link.more[-1] == "When the trace ends it still waits."


def test_of_messages_that_nobody_answered_it_is_told_which_and_how_many():
    """Three of the four were fetched with basic.get, and no consumer had them."""
    path = CAPTURES / "amqp091" / "rmq43_q2_amqp091_prefetch_changed.pcapng"
    (link,) = (one for one in story(import_capture(path).rows).links if one.key.connection == "c3")
    assert link.messages == 4
    assert link.more[0] == "The one message delivered to a consumer was never acknowledged."


def test_two_consumers_of_a_channel_that_wait_alike_are_two_stalls():
    """One message for both is there: the same row begins both, and the same one ends both."""
    its = Inside()
    for act in (("basic.consume", (1, "a"), "q"), ("basic.consume", (1, "b"), "q"),
                *(("basic.deliver", (1, tag)) for tag in "abab"), ("queue", "q", 1),
                ("queue", "q", 0)):  # fmt: skip
        its.act(*act)
    assert len(folds.stalls(its.rows)) == 2
    (brake,) = story(its.rows).brakes
    assert (brake.brake, brake.stalls) == ("prefetch", 2)


def test_a_grant_in_the_last_row_has_ended_the_wait():
    """What lasts is what nothing had ended, not what ended last."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    grants = [row.seq for row in rows if row.kind == "flow" and row.from_peer == "client"]
    told = story(lost(rows, end=grants[1] + 1), Packets(still_open={"c1"}, until_us=60_000_000))
    assert told.lasting is None
    assert not any(one.lasts for one in told.links[0].intervals)


def test_a_publisher_that_an_alarm_has_silenced_waits_to_the_end_of_the_trace():
    """After connection.blocked nothing passes: it has taken no time by the rows alone."""
    path = CAPTURES / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng"
    rows = import_capture(path).rows
    blocked = next(row for row in rows if row.kind == "connection.blocked")
    rows = lost(rows, end=blocked.seq + 1)
    a_minute = 60_000_000
    told = story(rows, Packets(still_open={blocked.connection}, until_us=a_minute))
    assert told.headline == (
        f"The longest stall: 57 s on {blocked.connection} published, from 3.282 s on; blocked by"
        " alarm."
    )
    assert "alarm" not in {one.brake for one in story(rows, Packets(until_us=a_minute)).brakes}
    # Nor does the broker read then, for a moment longer: that is no other wait, and no worse one.
    full = {(blocked.connection, "client"): [(blocked.t_us - 10, None)]}
    unread = Packets(still_open={blocked.connection}, until_us=a_minute, without_room=full)
    assert story(rows, unread).headline == told.headline


def test_a_sender_to_an_end_that_does_not_read_could_not_send():
    """TCP holds it, which no frame tells; here twice, and then to the end."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_p1_amqp091_publish_without_confirms.pcapng")
    half = [row for row in rows.rows if row.t_us <= rows.rows[-1].t_us // 2]
    begin, end = half[20].t_us, half[40].t_us
    full = {("c1", "client"): [(begin, end), (end + 10, None)], ("c9", "client"): [(0, None)]}
    until_us = half[-1].t_us + 3_000_000
    told = story(half, Packets(until_us=until_us, still_open={"c1"}, without_room=full))
    (link,) = (one for one in told.links if one.key.link_sender == "client")
    spans = [(one.start_us, one.end_us, one.lasts) for one in link.intervals]
    assert spans == [(begin, end, False), (end + 10, until_us, True)]
    assert half[20].t_us <= begin < half[link.intervals[0].seq + 1].t_us
    assert told.headline.endswith("; TCP window 0.")
    assert link.more[-2:] == (
        "The other end had no room for more (a TCP window of 0) 2 times, for 3.0 s at most: it did"
        " not read.",
        "When the trace ends it has had no room at the other end for 3.0 s: if messages were"
        " waiting, it is stalled until that end reads.",
    )


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "The one message published in confirm mode was never confirmed: it had waited 10 s when"
            " the trace ended."),
        (2, "None of the 2 messages published in confirm mode was ever confirmed: the oldest had"
            " waited 10 s when the trace ended."),
        (None, "; 1 never was: it had waited 3.6 s when the trace ended."),
    ],
)  # fmt: skip
def test_how_long_a_publisher_has_waited_for_its_confirms_is_told(count, words):
    """A queue without a majority confirms nothing, and says nothing."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng").rows
    rows = [row for row in rows if row.connection == "c1"]
    sent = [row for row in rows if row.kind == "basic.publish"]
    end = rows[-1].seq + 1 if count is None else sent[count].seq
    rows = [row for row in lost(rows, end=end) if count is None or row.kind != "basic.ack"]
    if count is None:
        rows = lost(rows, end=max(row.seq for row in rows if row.kind == "basic.ack"))
    until_us = sent[0].t_us + 10_000_000
    told = story(rows, Packets(still_open={"c1"}, until_us=until_us)).links
    (channel,) = (link for link in told if link.key.link_sender == "client" and link.key.session)
    assert channel.more[0].endswith(words)
    # Whether the connection lived on is not known of a trace.
    assert "had waited" not in " ".join(story(rows).links[-1].more)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "No answer to the one message published in confirm mode is in the trace: octets are"
            " missing after it."),
        (2, "No answer to the 2 messages published in confirm mode is in the trace: octets are"
            " missing after the first."),
    ],
)  # fmt: skip
def test_an_answer_that_may_be_among_missing_octets_is_not_said_to_be_wanting(count, words):
    """A packet that the capture lacks may have confirmed all of them."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng").rows
    rows = [row for row in rows if row.connection == "c1"]
    sent = [row for row in rows if row.kind == "basic.publish"]
    head = [row for row in lost(rows, end=sent[count].seq) if row.kind != "basic.ack"]
    open_still = Packets(still_open={"c1"}, until_us=sent[0].t_us + 10_000_000)
    for gap, told_so in ((sent[count], True), (sent[0], False)):
        its = [*head, without(sent[count])] if gap is sent[count] else [
            *(without(row) if row.seq == sent[0].seq - 1 else row for row in head)
        ]  # fmt: skip
        (channel,) = (
            link for link in story(its, open_still).links
            if link.key.link_sender == "client" and link.key.session
        )  # fmt: skip
        assert (channel.more[0] == words) == told_so
        assert (" had waited " in channel.more[0]) != told_so


def test_who_waits_at_the_end_stands_before_those_who_waited_less():
    """A page tells of the first links alone."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    other = [
        replace(row, connection="c2", seq=row.seq + len(rows), frame_id=row.frame_id + len(rows))
        for row in lost(rows, end=24)
    ]
    told = story([*rows, *other], Packets(still_open={"c2"}, until_us=60_000_000))
    assert [link.key.connection for link in told.links] == ["c2", "c1"]
    assert told.worst[0] is told.links[1]
    assert told.lasting[0] is told.links[0]


def test_a_grant_of_which_nobody_knows_how_much_it_is_worth_is_told_without_a_number():
    """The sender's attach, which tells its delivery-count, comes behind it."""
    rows = import_capture(CAPTURES / "rmq43_f_memory_alarm.pcapng").rows
    (late,) = (row for row in rows if row.kind == "attach" and row.from_peer == "broker"
               and row.link == "rcv-1-/queues/cap_f2")  # fmt: skip
    (grant,) = (row for row in rows if row.link == late.link and row.kind == "flow"
                and row.from_peer == "client")  # fmt: skip
    swapped = {late.seq: grant, grant.seq: late}
    told = story([replace(swapped.get(row.seq, row), seq=row.seq, t_us=row.t_us) for row in rows])
    (link,) = (link for link in told.links if link.key.link == late.link)
    assert "Its receiver granted credit once." in link.more


def test_a_first_grant_that_comes_at_once_ends_no_wait():
    """Each link is without credit until then."""
    rows = acted("credit", "rmq4.3", {"messages": 3}, ("grant", {"link_credit": 10}))
    (link,) = story(rows).links
    assert "no credit" not in {one.what for one in link.intervals}


def test_no_more_credit_is_asked_for_than_there_were_messages():
    """The messages of a grant come in one burst; its pace is not the sender's."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    (asked,) = folds.grants(rows)
    assert asked["credit_needed"] > asked["messages"] == 25
    (link,) = story(rows).links
    assert link.more[0] == (
        "Its receiver granted credit 4 times, typically up to 4, when all was used up."
    )


def test_a_window_that_frames_have_used_up_is_not_taken_for_an_alarm():
    """A broker short of memory says so itself, with a window of 0."""
    rows = import_capture(CAPTURES / "rmq43_e_large_message_split.pcapng").rows
    turned = {"client": "broker", "broker": "client", None: None}
    rows = [
        replace(row, from_peer=turned[row.from_peer], link_sender=turned[row.link_sender])
        for row in rows
    ]
    told = " ".join(text for link in story(rows).links for text in link.more)
    assert "Its session window was closed once, for 401 ms at most." in told


def test_a_wait_that_began_when_nothing_was_to_be_sent_is_told_so():
    """The broker had answered a drain, and a message came half a second later."""
    rows = import_capture(CAPTURES / "rmq43_c_drain.pcapng").rows
    told = story(rows)
    assert told.headline.startswith("No stall can be proved. The longest time in which a message ")
    assert "501 ms on c1/1" in told.headline
    assert told.links[0].advice == (
        "The broker had nothing to send when it was stopped. Messages came later and may have"
        " waited, 2 times, for 501 ms at most."
    )


def test_what_held_a_connection_is_told_of_its_channels_too():
    """An alarm stops all that a client publishes on it."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng").rows
    links = {one.key.name: one for one in story(rows).links}
    whole, channel = links["c1 published"], links["c1/1 published"]
    assert whole.messages == channel.messages == 4
    assert channel.advice == "Nothing held it but what held its connection: see c1 published."
    told = {(one.connection, one.session, one.link_sender): one for one in folds.summarise(rows)}
    assert told["c1", 1, "client"].advice == channel.advice


def test_who_publishes_and_consumes_on_one_connection_is_told_to_part_them():
    """An alarm that stops what it publishes keeps what its consumers say unread."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng").rows
    parting = {
        one.key.name for one in story(rows).links if "a connection of their own" in str(one.more)
    }
    assert parting == {"c4 published"}


def test_a_peer_that_hears_nothing_for_its_idle_time_out_has_a_reason_to_go():
    """Where octets are missing the close may be among them, and nothing is said."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    begun = [row for row in rows if row.kind != "close"]
    (opened,) = (row for row in rows if row.kind == "open" and row.from_peer == "broker")
    patience_us = 1_000 * opened.fields["idle_time_out"]
    latest_us = max(row.t_us for row in begun if row.from_peer == "client")
    for after_us, words in ((patience_us, "; nothing had come for"), (patience_us - 1, " close")):
        ended = Packets(ended={"c1": (latest_us + after_us, "broker")})
        (line,) = story(begun, ended).wrong
        assert line.startswith("c1: the broker ended it at ")
        assert words in line
        assert line.endswith(" close") == (words == " close")
        assert story(rows, ended).wrong == ()
        assert story([*begun[:-1], without(begun[-1])], ended).wrong == ()


def test_errors_are_told_in_the_words_of_who_told_them():
    """Replies to a client's mistakes; a good-bye is none."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_e1_amqp091_errors.pcapng").rows
    told = story(rows).wrong
    closes = [row for row in rows if row.kind in ("channel.close", "connection.close")]
    assert len(told) == sum(row.frame_091["reply_code"] != 200 for row in closes)
    assert told[0].endswith(": 406 PRECONDITION_FAILED - unknown delivery tag 99")


def test_what_went_wrong_comes_first_where_nobody_is_known_to_have_been_held():
    """A client that was refused waits for nothing; one that goes, when it is stopped, was not."""
    name = "rmq43_c1_amqp091_get_and_passive_declare.pcapng"
    told = story(import_capture(CAPTURES / "amqp091" / name).rows)
    assert told.headline == (
        "c1/3: channel.close of the broker, row 66: 404 NOT_FOUND - no queue 'cap_no_such_queue'"
        " in vhost '/'. Nobody is known to have been held by a prefetch, a window or an alarm."
    )
    begun = [row for row in import_capture(CAPTURES / "amqp091" / name).rows if row.seq < 20]
    for peer in ("client", "broker"):
        gone = story(begun, Packets(ended={"c1": (2_000_000, peer)}))
        assert gone.wrong == (f"c1: the {peer} ended it at 2.000 s without a close",)
        assert gone.headline.startswith(gone.wrong[0]) == (peer == "broker")


def test_an_error_and_a_heartbeat_of_amqp_0_10_are_told_like_any_other():
    """Of its controls neither has a column."""

    def sent(control, peer, seq):
        return frame_row(
            Frame(0, 0, control, *[True] * 4), run="r", seq=seq, t_us=seq, vantage="wire",
            event="observed", frame_id=seq, from_peer=peer, connection="c1",
        )  # fmt: skip

    tune = sent(ConnectionTuneOk(channel_max=1, heartbeat=2), "client", 0)
    close = sent(ConnectionClose(reply_code=501, reply_text="framing-error: bad"), "broker", 1)
    assert story([tune, close]).wrong == (
        "c1: connection.close of the broker, row 1: 501 framing-error: bad",
    )
    assert summary(close) == "reply-code 501 · reply-text framing-error: bad"
    (line,) = story([tune], Packets(ended={"c1": (9_000_000, "broker")})).wrong
    assert line.endswith("nothing had come for 9.0 s, with a heartbeat every 2 s")


@pytest.mark.parametrize("text", ["{", "[1]", '"error"', "null"])
def test_what_is_no_object_tells_no_error(text):
    """Of a trace that somebody else has written, too."""
    rows = acted("credit", "rmq4.3", {"messages": 3})
    rows = [replace(row, frame={"extra_json": text}) if row.is_frame else row for row in rows]
    assert story(rows).wrong == ()


def test_an_error_of_amqp_1_0_is_told_once_with_its_condition():
    """Both ends have logged the detach."""
    rows = acted("credit", "rmq4.3", {"messages": 3}, ("grant", {"link_credit": 5}))
    error = '{"error":{"type":"error","condition":"amqp:not-found","description":"no queue"}}'
    flows = [row for row in rows if row.kind == "flow"]
    number = flows[0].frame_id
    rows = [
        replace(row, kind="detach", frame={"extra_json": error}) if row.frame_id == number else row
        for row in rows
    ]
    assert [row.kind for row in rows].count("detach") == 2
    (line,) = (text for text in story(rows).wrong if "amqp:not-found" in text)
    assert line.endswith(": amqp:not-found: no queue")


def test_a_broken_rule_is_named_with_its_clause_and_its_first_row():
    """Here a delivery-id that is not the next one."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    first = next(row for row in rows if row.kind == "transfer")
    wrong = replace(first, frame={**first.frame, "delivery_id": 7})
    told = story([wrong if row is first else row for row in rows]).wrong
    assert (
        f"c1/1 {first.link}: the broker broke 2.6.12, delivery-id-order, once, first in row"
        in (told[0])
    )


def set_back(rows, at, back_us):
    """The same packets where the clock was set back before the packet of row `at`."""
    raw, most, its = rows[0].t_raw_us, 0, []
    for row in rows:
        now = row.t_raw_us - (back_us if row.seq >= at else 0)
        most = max(most, now - raw)
        its.append(replace(row, t_raw_us=now, t_us=most))
    return its


@pytest.mark.parametrize("back_us", [900_000, 2_000_000])
def test_of_a_wait_in_which_the_clock_went_back_nobody_says_how_long_it_was(back_us):
    """Its number is that of a clock that stood still: by how much it is wrong no row tells."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    grants = [row.seq for row in rows if row.kind == "flow" and row.from_peer == "client"]
    at_once, longest = story(rows), story(rows).worst[1]
    its = set_back(rows, next(seq for seq in grants if seq > longest.seq), back_us)
    told = story(its)
    (link,), (brake,) = told.links, told.brakes
    assert sum(not one.timed for one in link.intervals if one.stall) >= 1
    assert told.worst[1].lasted_us < longest.lasted_us
    assert (brake.stalls, brake.untimed >= 1) == (at_once.brakes[0].stalls, True)
    assert brake.times(told.clock)[0].endswith(f", {brake.untimed} unknown")
    noun = "1 other stall" if brake.untimed == 1 else f"{brake.untimed} other stalls"
    assert told.headline.endswith(
        f" How long {noun} lasted is not known: the capture's clock went back."
    )
    assert "802 ms" not in " ".join((told.headline, link.advice, *link.more))
    assert "% of its life" not in link.advice
    (one,) = (one for one in link.intervals if one.stall and one.seq == longest.seq)
    assert one.lasted(told.clock) == "an unknown time"


def test_a_headline_says_so_where_the_clock_went_back_in_every_wait():
    """There is a stall, and that is all that can be told of it."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    its = rows
    for one in [one for one in story(rows).links[0].intervals if one.stall]:
        its = set_back(its, one.seq + 1, 1_000_000)
    told = story(its)
    assert told.headline.startswith("A stall of unknown length on c1/1 ")
    assert "The capture's clock went back within it." in told.headline
    assert told.brakes[0].times(told.clock) == ("unknown", "unknown")
    assert "the longest wait, an unknown time, was for credit" in told.links[0].advice


def test_of_answers_across_a_step_of_the_clock_no_time_is_told():
    """The others' are told, and how many those were."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng").rows
    rows = [row for row in rows if row.connection == "c1"]
    acks = [row.seq for row in rows if row.kind == "basic.ack"]
    for one, words in ((True, "; of 1 the clock does not tell"), (False, "an unknown time")):
        its = rows
        for seq in acks[-1:] if one else acks:
            its = set_back(its, seq, 6_000_000)
        (channel,) = (
            link for link in story(its).links
            if link.key.link_sender == "client" and link.key.session
        )  # fmt: skip
        assert words in channel.more[0]


def test_what_is_shorter_than_a_step_of_the_clock_is_told_so():
    """A capture in whole milliseconds: `0 µs` and `5.0 ms` are more than it tells."""
    rows = import_capture(CAPTURES / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng").rows
    coarse = [
        replace(row, t_us=row.t_us // 1000 * 1000, t_raw_us=row.t_raw_us // 1000 * 1000)
        for row in rows
    ]
    (channel,) = (link for link in story(coarse).links if link.key.name == "c2/1 published")
    assert channel.more[0] == "Confirmed after 1 ms typically, 4.0 s at most."
    told = " ".join(text for link in story(coarse).links for text in (link.advice, *link.more))
    assert "µs" not in told


def test_what_the_headline_tells_as_the_longest_is_what_is_opened():
    """A stall that is proved, and a wait that may be worse: the frame is that of the longer one."""
    rows = import_capture(CAPTURES / "rmq43_f_memory_alarm.pcapng").rows
    told = story(rows)
    assert told.lasting[1].lasted_us > told.worst[1].lasted_us
    assert told.opened == told.lasting
    assert told.opened_as.endswith(", window closed for 4.8 s")
    only = story([row for row in rows if row.connection == "c1"][:40])
    assert only.opened == (only.lasting or only.worst)


def in_turns(name, message, answer, *, count, gap_us=300, answered_us=900, ahead=0):
    """Messages of a publisher, of which each waits for the answer to the one `ahead` before it.

    Args:
        name: of a capture with a message and its answer.
        message: kind of the first frame of one; the frames up to the next go with it.
        answer: kind of what answers it.
        count: how many messages.
        gap_us: from an answer to the next message.
        answered_us: from a message to its answer.
        ahead: how many are sent before the first answer is waited for.
    """
    rows = import_capture(CAPTURES / name).rows
    begun = next(row for row in rows if row.kind == message and row.from_peer == "client")
    its = [row for row in rows if row.connection == begun.connection]
    head = [row for row in its if row.seq < begun.seq]
    body = [begun, *(row for row in its if row.kind in ("content-header", "content-body")
                     and begun.seq < row.seq < begun.seq + 4)]  # fmt: skip
    reply = next(row for row in its if row.kind == answer and row.from_peer == "broker")
    reply = replace(reply, session=begun.session)
    sent = lambda n: [numbered(row, n) for row in body]  # noqa: E731
    turns = [row for n in range(ahead) for row in sent(n + 1)]
    for n in range(1, count + 1):
        turns += [*(sent(n + ahead) if n + ahead <= count else ()), numbered(reply, n)]
    t_us, made = head[-1].t_us, []
    for row in turns:
        t_us += answered_us if row.kind == answer else gap_us if row.kind == message else 0
        made.append(replace(row, t_us=t_us, t_raw_us=head[0].t_raw_us + t_us))
    return [replace(row, seq=seq) for seq, row in enumerate([*head, *made])]


def numbered(row, number):
    """The same frame about another message."""
    frame, ledger = dict(row.fields), dict(row.ledger or {})
    if row.protocol == "amqp-0-9-1":
        if row.kind == "basic.ack":
            frame["delivery_tag"] = number
        return replace(row, frame_091=frame, ledger=ledger | {"published": number})
    if row.kind == "disposition":
        frame |= {"first": number, "last": number}
        return replace(row, frame=frame)
    frame |= {"delivery_id": number, "settled": False}
    return replace(row, frame=frame, ledger=ledger | {"link_credit": 500})


CONFIRMS = ("amqp091/rmq43_b1_amqp091_memory_alarm.pcapng", "basic.publish", "basic.ack")
OUTCOMES = ("rmq43_a_publisher_grants.pcapng", "transfer", "disposition")


@pytest.mark.parametrize(
    ("kinds", "what", "answered"),
    [(CONFIRMS, "no confirm", "confirmed"), (OUTCOMES, "no outcome", "settled")],
)
def test_a_publisher_that_waits_for_the_answer_to_each_message_is_told(kinds, what, answered):
    """No brake holds it, and yet a message takes a round trip: it is told what to change."""
    told = story(in_turns(*kinds, count=20))
    (link,) = (one for one in told.links if one.in_turn)
    assert link.advice.startswith(
        f"The client waited 19 times, 17 ms in all, until its message was {answered}, and sent the"
        " next one at once: "
    )
    assert "Let it publish several before it waits" in link.advice
    assert told.headline.endswith(
        f" The client sent one message at a time on {link.key.name}: it waited for answers 19"
        " times, 17 ms in all."
    )
    assert told.opened_as == f"{link.key.name}, {what} for 900 µs"
    assert {one.brake for one in told.brakes} <= {"link-credit"}  # the first, which took less
    assert ("for its first credit" in link.more[0]) == bool(told.brakes)
    assert told.opened[1].seq == min(one.seq for one in link.in_turn)


@pytest.mark.parametrize(
    "more",
    [
        {"ahead": 1}, {"count": 9}, {"gap_us": 1_000}, {"gap_us": 30_000, "answered_us": 50_000},
    ],
)  # fmt: skip
@pytest.mark.parametrize("kinds", [CONFIRMS, OUTCOMES])
def test_who_may_have_waited_for_something_else_is_not_said_to_wait_for_answers(kinds, more):
    """Another message was on its way, too few show it, or it may have had nothing to send."""
    told = story(in_turns(*kinds, **{"count": 20, **more}))
    assert not any(link.in_turn for link in told.links)
    assert "one message at a time" not in told.headline


def test_confirms_that_were_asked_for_before_the_trace_are_told_without_their_times():
    """Without the confirm.select nobody knows the number of a message."""
    rows = in_turns(*CONFIRMS, count=20)
    asked = next(row.seq for row in rows if row.kind == "confirm.select-ok")
    late = [replace(row, ledger=None) for row in rows if row.seq > asked]
    words = "The broker confirms its messages, as it was asked to before the trace begins: "
    for its, told in ((rows, False), (late, True)):
        every = [text for link in story(its).links for text in link.more]
        assert any(text.startswith(words) for text in every) == told
        assert any(text.startswith("Confirmed after") for text in every) != told


def test_waits_for_answers_are_in_the_headline_where_no_brake_held_for_longer_in_all():
    """Many short waits are compared with many short stalls, and not with the longest of them."""
    turns = in_turns(*CONFIRMS, count=20)
    stalls = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    for faster, named in ((120, True), (60, False)):
        stalled = [
            replace(row, connection="c2", run=turns[0].run, seq=row.seq + len(turns),
                    t_us=row.t_us // faster)
            for row in stalls
        ]  # fmt: skip
        told = story([*turns, *stalled])
        (in_turn_us,) = (link.in_turn_us for link in told.links if link.in_turn)
        assert told.worst[1].stall
        assert told.worst[1].lasted_us < in_turn_us
        assert (told.in_turn is not None) == named == (told.brakes[0].lost_us < in_turn_us)


def test_answers_that_are_waited_for_behind_a_brake_are_the_brake_s():
    """A link whose credit is 1 cannot have two messages in flight."""
    rows = in_turns(*OUTCOMES, count=20)
    link = story(rows).links[0]
    first = next(row.seq for row in rows if row.kind == "transfer")
    unread = Packets(without_room={("c1", "client"): [(rows[first].t_us, None)]})
    assert not any(link.in_turn for link in story(rows, unread).links)
    assert link.in_turn
    # Without times only their order is known, and not that the next one came at once.
    assert not any(
        link.in_turn
        for link in story([replace(row, t_us=row.seq, t_raw_us=None) for row in rows]).links
    )
