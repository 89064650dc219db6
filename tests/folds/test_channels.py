"""AMQP 0-9-1 and 0-10 in the questions: what real captures' notes say, and what runs do."""

import dataclasses
import json
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.runs import CAPTURES, without
from tests.frontends.rig091 import Rig091
from workbench import folds, presets
from workbench.amqp091.methods import BasicConsume, QueueDeclare
from workbench.capture.importer import import_capture
from workbench.folds.consumers import full, prefetch
from workbench.folds.latency import latency
from workbench.folds.stalls import stalls
from workbench.folds.story import story
from workbench.folds.summary import summarise
from workbench.folds.throughput import throughput
from workbench.scenarios.run import run
from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, Row
from workbench.trace.words import duration


def captured(name):
    """The rows of a capture of RabbitMQ 4.3.6."""
    return import_capture([CAPTURES / "amqp091" / f"rmq43_{name}.pcapng"]).rows


@pytest.fixture(scope="module")
def pika():
    """300 confirmed publishes, 300 consumed with prefetch 10, and one published under an alarm."""
    return captured("k1_amqp091_client_pika")


@cache
def flooded(count=40):
    """A queue hangs; the chain before it holds four messages on each hop; then it goes on."""
    few = {"process_credit": 4, "process_regrant_after": 2}
    preset = dataclasses.replace(presets.get("rmq4.3"), **few)
    parameters = {"latency_us": 100, "message_bytes": 20, "consume": True, "prefetch": 3}
    begun = run("chain", preset, parameters)
    return begun.act_each(["stall", ("publish", {"count": count})]).then("resume").rows


@cache
def windowed(preset="qpid-cpp", **parameters):
    """A producer with a window of four fills a queue above its watermark; a consumer takes all."""
    played = run("qpid", preset, {"window": 4, **parameters})
    played = played.then("publish", count=30).then("accept", count=14, processing_us=30_000)
    return played.then("accept", count=16).rows


def on_the_wire(rows):
    """The frames of one connection as a capture at the client's machine has them."""
    return [
        dataclasses.replace(row, run="wire", event="observed", vantage="wire", ledger=ledger)
        for row in rows
        if row.is_frame and row.connection == "c1" and row.vantage.startswith("client")
        for ledger in [{k: v for k, v in (row.ledger or {}).items() if k == "incomplete_commands"}]
    ]


def renumbered(rows, first):
    """The same, with commands that are numbered from another one on."""

    def moved(row):
        if row.frame_010 is None:
            return dataclasses.replace(row, run="renumbered")
        fields = dict(row.frame_010)
        if "command_id" in fields:
            fields["command_id"] = (fields["command_id"] + first) % 2**32
        if row.kind == "session.completed":
            ranges = [[(one + first) % 2**32 for one in two] for two in row.extra["commands"]]
            fields["extra_json"] = json.dumps({"commands": ranges})
        return dataclasses.replace(row, run="renumbered", frame_010=fields)

    return [moved(row) for row in rows]


def by_direction(answer, *names):
    """Columns of an answer by who sends."""
    return {row["link_sender"]: tuple(row[name] for name in names) for row in answer}


def test_confirms_and_acknowledgements_are_timed(pika):
    """300 of each; the 301st publish waited for the end of the alarm, which the note has too."""
    found = by_direction(latency(pika), "measure", "count", "p50_us", "unanswered")
    assert found == {"client": ("confirm", 301, 133, 0), "broker": ("ack", 300, 645, 0)}
    (slowest,) = (row["max_us"] for row in latency(pika) if row["measure"] == "confirm")
    assert slowest == pytest.approx(2_289_000, abs=1000)


def test_multiple_answers_all_up_to_its_tag_and_0_all_there_are():
    """By the note each of 14 deliveries a channel is answered, in nine acknowledgements."""
    rows = captured("q1_amqp091_prefetch_and_ack")
    found = {row["session"]: (row["count"], row["unanswered"]) for row in latency(rows)}
    assert found == {1: (14, 0), 2: (14, 0)}


def test_what_is_never_acknowledged_is_unanswered():
    """By the note five deliveries of each of two channels."""
    rows = captured("c2_amqp091_cancel_then_ack")
    assert sum(row["unanswered"] for row in latency(rows)) == 10


def test_what_need_not_be_acknowledged_is_not_asked_for():
    """A consumer without acknowledgements, and what basic.get brings."""
    rows = captured("c1_amqp091_get_and_passive_declare")
    assert [row for row in latency(rows) if row["measure"] == "ack"] == []
    for no_ack in (False, True):
        rig = Rig091()
        _, channel = rig.channel()
        channel.send(QueueDeclare(queue="q", durable=True))
        channel.publish("", "q", b"1")
        channel.send(BasicConsume(queue="q", consumer_tag="t", no_ack=no_ack))
        rig.rest()
        found = [row["unanswered"] for row in latency(rig.recorder.rows) if row["measure"] == "ack"]
        assert found == ([] if no_ack else [1])


def test_messages_frames_and_octets_are_counted_once(pika):
    """A message is a method, its header and its bodies, in one window."""
    found = Counter()
    for row in throughput(pika, window_us=100_000):
        assert row["link"] is None
        for name in ("messages", "frames", "body_bytes"):
            found[row["link_sender"], name] += row[name]
    bodies = sum(row.body_bytes or 0 for row in pika if row.from_peer == "client")
    assert found["client", "messages"] == 301
    assert found["broker", "messages"] == 300
    assert found["client", "frames"] == 903
    assert found["client", "body_bytes"] == bodies > 0
    large = throughput(captured("c1_amqp091_get_and_passive_declare"))
    assert max(row["frames"] / row["messages"] for row in large if row["messages"]) > 3


def test_a_consumer_that_has_its_prefetch_is_held_until_it_acknowledges(pika):
    """All but the first ten of 300 waited for the acknowledgement before them."""
    found = [stall for stall in stalls(pika) if stall.brake == "prefetch"]
    assert len(found) == 290
    assert {(one.link_sender, one.session, one.evidence) for one in found} == {
        ("broker", 1, "later-frames")
    }
    released = {row.frame_id: row.kind for row in pika}
    assert {released[one.release_frame_id] for one in found} == {"basic.ack"}


def test_an_alarm_holds_what_is_published_on_the_connection(pika):
    """From connection.blocked to connection.unblocked."""
    (alarm,) = (stall for stall in stalls(pika) if stall.brake == "alarm")
    assert (alarm.session, alarm.link_sender) == (None, "client")
    assert alarm.end_us - alarm.start_us == pytest.approx(2_288_000, abs=1000)


def test_a_reader_without_credit_is_a_stall_by_credit_flow():
    """While the queue hangs; one place, as an operator sees it."""
    rows = flooded()
    found = [stall for stall in stalls(rows) if stall.brake == "credit-flow"]
    blocks = [row for row in rows if (row.event, row.kind) == ("block", "credit-flow")]
    readers = [row.seq for row in blocks if row.vantage == "reader:c1"]
    assert [stall.seq for stall in found] == readers != []
    assert max(stall.end_us - stall.start_us for stall in found) > 0


def test_what_a_consumer_has_is_told_frame_by_frame():
    """Of the note: three are out, one is acknowledged, the next comes."""
    rows = captured("q1_amqp091_prefetch_and_ack")
    found = [row for row in prefetch(rows) if row["session"] == 1 and row["consumer"]]
    had = [row["unacknowledged"] for row in found]
    limits = {row["prefetch_count"] for row in found[1:]}
    assert limits == {3}
    assert max(had) == 3
    assert all(row["full"] is (row["unacknowledged"] == 3) for row in found[1:])


def test_without_a_prefetch_nobody_is_full_whatever_is_out():
    """A limit of 0 is none; of another it must be known how many deliveries there are."""
    rows = captured("q1_amqp091_prefetch_and_ack")
    (told, *_) = [row for row in rows if row.consumer and row.kind == "basic.deliver"]
    for limit, full_ in ((0, False), (3, None)):
        ledger = {"prefetch_count": limit}
        assert prefetch([dataclasses.replace(told, ledger=ledger)])[0]["full"] is full_


@pytest.mark.parametrize(
    "name", ["q1_amqp091_prefetch_and_ack", "k1_amqp091_client_pika", "overload"]
)
def test_a_consumer_is_full_where_its_own_rows_say_so(name):
    """Counted from deliveries and answers, it is what the ledger of each of its rows tells."""
    rows = run(name).rows if name == "overload" else captured(name)
    asked = [row for row in prefetch(rows) if row["consumer"]]
    gone = min((row.seq for row in rows if row.kind == "basic.cancel"), default=len(rows))
    spans = [
        (key.connection, key.session, first.seq, last.seq + lasts)
        for key, its in full(rows, AMQP_0_9_1).items()
        for one in its
        for (first, last), lasts in one.told
    ]
    for row in asked:
        if row["seq"] < gone:
            place = row["connection"], row["session"]
            here = any(span[:2] == place and span[2] <= row["seq"] < span[3] for span in spans)
            assert here == row["full"], row
    assert {row["full"] for row in asked} == {False, True}


LIMIT = 2
ACTS = st.sampled_from(
    [
        *(("basic.deliver", consumer) for consumer in "ab" for _ in range(8)),
        *(("basic.ack", tag, multiple) for tag in range(5) for multiple in (False, True)),
        ("basic.nack", 0, True), ("basic.reject", 1), ("basic.reject", 2),
        ("basic.recover",), ("basic.cancel", "b"),
    ]
)  # fmt: skip


class Book:
    """A channel with two consumers of prefetch 2, as the standard has it, and its rows."""

    def __init__(self):
        self.rows, self.out, self.there, self.tag = [], {}, {"a", "b"}, 0

    def has(self, consumer):
        return sum(one == consumer for one in self.out.values())

    def act(self, kind, *arguments):
        if kind == "basic.deliver":
            (consumer,) = arguments
            if consumer in self.there and self.has(consumer) < LIMIT:
                self.tag += 1
                self.out[self.tag] = consumer
                self.row(kind, consumer, "broker", delivery_tag=self.tag)
        elif kind == "basic.recover":
            self.out = {}
            self.row(kind, None, "client")
        elif kind == "basic.cancel":
            self.there -= {*arguments}
            self.row(kind, arguments[0], "client")
            self.row("basic.cancel-ok", arguments[0], "broker")
        else:
            tag, multiple = (*arguments, False)[:2]
            consumer = self.out.get(tag)
            covers = (lambda one: one <= tag or tag == 0) if multiple else tag.__eq__
            self.out = {one: who for one, who in self.out.items() if not covers(one)}
            self.row(kind, consumer, "client", delivery_tag=tag, multiple=multiple)

    def row(self, kind, consumer, peer, **fields):
        seq = len(self.rows)
        ledger = {"prefetch_count": LIMIT, "unacknowledged": self.has(consumer)}
        self.rows.append(
            Row(run="r", seq=seq, t_us=seq, vantage="wire", event="observed", frame_id=seq,
                protocol="amqp-0-9-1", connection="c1", session=1, kind=kind, consumer=consumer,
                from_peer=peer, frame_091=fields, ledger=ledger)
        )  # fmt: skip


@given(st.lists(ACTS, min_size=10, max_size=30))
def test_a_consumer_is_full_to_the_end_where_that_many_are_unanswered(acts):
    """Whoever acknowledged them, one by one or many, or gave them back; not if it was cancelled."""
    book = Book()
    for act in acts:
        book.act(*act)
    found = [one for its in full(book.rows, AMQP_0_9_1).values() for one in its]
    assert sum(one.lasts for one in found) == sum(book.has(who) >= LIMIT for who in book.there)


class Inside:
    """Two queues and three consumers on two channels, as a broker tells of them in its own rows.

    Attributes:
        rows: of the run.
        waits: what a look at the whole state after each row gives: which consumer, the row with
            which it began to wait, messages ready then, and the row that ended it.
    """

    PROTOCOL, NAME, BRAKE = "amqp-0-9-1", "consumer", "prefetch"

    def __init__(self, run="inside"):
        self.run, self.rows, self.waits = run, [], []
        self.gets, self.has, self.ready, self._since = {}, Counter(), Counter(), {}

    def act(self, kind, *arguments):
        if kind == "queue":
            queue, self.ready[queue] = arguments[0], arguments[1]
            self._row("settle", queue=queue, vantage=f"queue:{queue}",
                      ledger={"queue_ready": arguments[1]})  # fmt: skip
        elif kind == "replica":  # its own picture of the queue, which may be behind
            self._row("apply", queue=arguments[0], vantage=f"queue:{arguments[0]}@n2",
                      ledger={"queue_ready": arguments[1]})  # fmt: skip
        elif kind == "disconnect":
            self.gets.clear()
            self._row(kind, vantage="client:c1")
        elif kind in ("channel.close", "session.detach"):
            for one in [one for one in self.gets if one[0] == arguments[0]]:
                del self.gets[one]
            self._frame(kind, (arguments[0], None))
        else:
            self._of_consumer(kind, *arguments)

    def _of_consumer(self, kind, consumer, *more):
        if kind != "basic.deliver" or consumer in self.gets:
            fields = {"queue": more[0]} if kind == "basic.consume" else None
            if kind == "basic.consume":
                self.gets[consumer], self.has[consumer] = more[0], 0
            elif kind == "basic.cancel":
                self.gets.pop(consumer, None)
            elif kind == "basic.deliver":
                self.has[consumer] += 1
            else:
                self.has[consumer] = max(0, self.has[consumer] - 1)
            told = {"prefetch_count": LIMIT, "unacknowledged": self.has[consumer]}
            self._frame(kind, consumer, frame_091=fields, ledger=told)

    def _gets_none(self, consumer):
        return self.has[consumer] >= LIMIT

    def _frame(self, kind, consumer, **more):
        sent = kind in ("basic.deliver", "message.transfer")
        event, peer = ("sent", "broker") if sent else ("received", "client")
        self._row(event, kind=kind, session=consumer[0], from_peer=peer, frame_id=len(self.rows),
                  vantage="broker", protocol=self.PROTOCOL, **{self.NAME: consumer[1]},
                  **more)  # fmt: skip

    def _row(self, event, *, protocol="internal", **more):
        seq = len(self.rows)
        connection = None if "queue" in more else "c1"
        row = Row(run=self.run, seq=seq, t_us=7 * seq, event=event, protocol=protocol,
                  connection=connection, **more)  # fmt: skip
        self.rows.append(row)
        for one in {*self.gets, *self._since}:
            waits = self._gets_none(one) and self.ready[self.gets.get(one)]
            queue = self.gets.get(one) if waits else None
            if one in self._since and self._since[one][2] != queue:
                self.waits.append((one, *self._since.pop(one)[:2], row))
            if waits:
                self._since.setdefault(one, (row, waits, queue))

    def all_waits(self):
        return [*self.waits, *((one, *since[:2], None) for one, since in self._since.items())]


class Subscribed(Inside):
    """The same of three subscriptions, each in one flow mode or the other.

    Of one in window mode nobody knows after a completion whether its messages were among those.
    """

    PROTOCOL, NAME, BRAKE = "amqp-0-10", "link", "link-credit"

    def __init__(self, run="subscribed"):
        super().__init__(run)
        self.uses_up, self.without = Counter(), set()

    def _gets_none(self, consumer):
        return consumer in self.without

    def act(self, kind, *arguments):
        super().act(kind, *arguments)
        if kind == "session.detach":
            self.without -= {one for one in self.without if one[0] == arguments[0]}

    def _of_consumer(self, kind, consumer, *more):
        fields = {"destination": consumer[1]}
        if kind == "session.completed":
            self.without -= {one for one in self.without
                             if one[0] == consumer[0] and not self.uses_up[one]}  # fmt: skip
            self._frame(kind, (consumer[0], None))
            return
        if kind == "message.cancel":
            self.gets.pop(consumer, None)
            self.without.discard(consumer)
            self._frame(kind, (consumer[0], None), frame_010=fields)
            return
        if kind == "message.subscribe":
            self.gets[consumer], self.has[consumer], self.uses_up[consumer] = more[0], 0, 0
            fields["queue"] = more[0]
        elif kind == "message.set-flow-mode":
            fields["flow_mode"], self.uses_up[consumer] = more[0], more[0] == 0
        elif kind == "message.flow":
            self.has[consumer] += more[0]
        elif consumer not in self.gets:
            return
        else:
            self.has[consumer] = max(0, self.has[consumer] - 1)
        (self.without.discard if self.has[consumer] else self.without.add)(consumer)
        told = {"credit_messages": self.has[consumer], "credit_octets": 0xFFFFFFFF}
        self._frame(kind, consumer, frame_010=fields, ledger=told)


CONSUMERS = ((1, "a"), (1, "b"), (2, "a"))
QUEUED = [
    *(("queue", queue, ready) for queue in "qr" for ready in (0, 1, 5)),
    *(("replica", queue, ready) for queue in "qr" for ready in (0, 5)), ("disconnect",),
]  # fmt: skip
INSIDE = {
    Inside: [
        *QUEUED,
        *(("basic.deliver", one) for one in CONSUMERS for _ in range(6)),
        *(("basic.ack", one) for one in CONSUMERS),
        *(("basic.consume", one, queue) for one in CONSUMERS for queue in "qr"),
        *(("basic.cancel", one) for one in CONSUMERS),
        *(("channel.close", number) for number in (1, 2)),
    ],
    Subscribed: [
        *QUEUED,
        *(("message.transfer", one) for one in CONSUMERS for _ in range(4)),
        *(("message.flow", one, count) for one in CONSUMERS for count in (0, 1, 2)),
        *(("session.completed", one) for one in CONSUMERS),
        *(("message.set-flow-mode", one, mode) for one in CONSUMERS for mode in (0, 1)),
        *(("message.subscribe", one, queue) for one in CONSUMERS for queue in "qr"),
        *(("message.cancel", one) for one in CONSUMERS),
        *(("session.detach", number) for number in (1, 2)),
    ],
}  # fmt: skip
"""What may happen there."""


@pytest.mark.parametrize("inside", INSIDE)
@settings(max_examples=500)
@given(data=st.data())
def test_a_consumer_that_gets_none_waits_while_its_queue_tells_of_messages(inside, data):
    """From the row after which both are so to the one after which one is not."""
    its = inside()
    acts = data.draw(st.lists(st.sampled_from(INSIDE[inside]), min_size=20, max_size=60))
    for act in (("queue", "q", 0), *acts):
        its.act(*act)
    last_us = its.rows[-1].t_us
    wanted = [
        (one[0], first.seq, first.frame_id, last_us if last is None else last.t_us, ready,
         None if last is None else last.frame_id)
        for one, first, ready, last in its.all_waits()
    ]  # fmt: skip
    found = stalls(its.rows)
    assert {(one.brake, one.evidence, one.link_sender) for one in found} <= {
        (its.BRAKE, "internal", "broker")
    }
    assert sorted(map(str, wanted)) == sorted(
        str((one.session, one.seq, one.frame_id, one.end_us, one.messages_waiting,
             one.release_frame_id)) for one in found
    )  # fmt: skip


@given(st.lists(st.sampled_from(INSIDE[Subscribed]), min_size=10, max_size=40))
def test_a_subscription_is_without_credit_to_the_end_where_none_has_come(acts):
    """Whether its queue has messages or not, which frames alone do not tell."""
    its = Subscribed()
    for act in acts:
        its.act(*act)
    found = [one for those in full(its.rows, AMQP_0_10).values() for one in those]
    assert sum(one.lasts for one in found) == len(its.without)


def test_what_waits_for_a_full_consumer_is_known_inside_a_broker():
    """The first message comes a second after it is full; at the end no frame lets it go on."""
    rows = run("overload").rows
    held = [one for one in stalls(rows) if one.brake == "prefetch"]
    full = next(row["seq"] for row in prefetch(rows) if row["full"])
    ready = [row.seq for row in rows if (row.ledger or {}).get("queue_ready")]
    assert held[0].seq == min(seq for seq in ready if seq > full) > full
    assert (held[-1].end_us, held[-1].release_frame_id) == (rows[-1].t_us, None)
    waiting = [one.messages_waiting for one in held]
    assert waiting == [rows[max(seq for seq in ready if seq <= one.seq)].ledger["queue_ready"]
                       for one in held]  # fmt: skip
    assert max(waiting) > 20
    # Without the queue's word, frames that follow show it, from when the consumer was full.
    mute = [row for row in rows if "queue_ready" not in (row.ledger or {})]
    later = [one for one in stalls(mute) if one.brake == "prefetch"]
    assert [one.evidence for one in later] == ["later-frames"] * (len(held) - 1)
    assert later[0].start_us < held[0].start_us


def test_a_consumer_of_which_octets_are_missing_is_not_called_full():
    """What they acknowledged is not known, nor what it has since; what it had before is."""
    rows = captured("q1_amqp091_prefetch_and_ack")
    acks = [row.seq for row in rows if row.kind == "basic.ack" and row.session == 1]
    lossy = [without(row) if row.seq == acks[1] else row for row in rows]
    lossy = [
        row if row.seq <= acks[1] or row.consumer is None else dataclasses.replace(row, ledger=None)
        for row in lossy
    ]
    (first, second, *_) = (span for its in full(rows, AMQP_0_9_1).values() for one in its
                           for span, _ in one.told)  # fmt: skip
    found = [
        span for its in full(lossy, AMQP_0_9_1).values() for one in its for span, _ in one.told
    ]
    of_channel = [(begin.seq, end.seq) for begin, end in found if begin.session == 1]
    assert of_channel[0] == (first[0].seq, first[1].seq)
    assert of_channel[1][0] == second[0].seq
    assert len(of_channel) == 2


def test_a_consumer_that_begins_is_not_full():
    """Its channel has three messages that were got one by one, and the prefetch is 1."""
    rows = captured("q2_amqp091_prefetch_changed")
    began = [row.seq for row in rows if row.kind == "basic.consume"]
    assert not any(row["full"] for row in prefetch(rows) if row["seq"] in began)
    assert not any(stall.seq in began for stall in stalls(rows))


def test_one_protocol_can_be_held_against_the_other():
    """Messages, frames, gaps and settlements of both count."""
    old = captured("k1_amqp091_client_pika")
    new = run("credit", parameters={"messages": 5}).then("grant", link_credit=5).rows
    found = {row["measure"]: row for row in folds.compare(old, new)}
    assert (found["messages"]["left"], found["messages"]["right"]) == (601, 5)
    assert found["frames"]["left"] == 1803
    assert found["settlement_us"]["left"] > 133
    assert found["gap_us"]["effect"] is not None


def test_the_page_of_a_capture_tells_of_channels(pika):
    """Who waited, how long, and by what."""
    told = story(pika)
    assert told.headline.endswith("blocked by alarm.")
    names = {link.key.name: link for link in told.links}
    assert set(names) == {"c1 published", "c1/1 published", "c1/1 delivered"}
    confirmed, in_turn = names["c1/1 published"].more
    assert confirmed.startswith("Confirmed after 133 µs typically, 2.3 s")
    assert in_turn.startswith("The client waited 299 times, 47 ms in all, until its message was")
    assert names["c1 published"].advice.startswith(
        "The client waited 2.3 s for a resource alarm to end:"
    )
    held = names["c1/1 delivered"]
    assert held.advice.startswith("The broker waited 290 times; the longest wait, ")
    acknowledged, prefetched = held.more
    assert acknowledged.startswith("Acknowledged after 645 µs typically")
    assert prefetched.startswith("The limit was 10; it was reached 291 times")
    assert {one.brake: one.stalls for one in told.brakes} == {"alarm": 1, "prefetch": 290}


def broker_s(told):
    """What is told of deliveries, by channel."""
    return {link.key.name.split()[0]: link.more for link in told.links
            if link.key.link_sender == "broker"}  # fmt: skip


def test_a_limit_is_reached_when_a_consumer_is_full_whatever_waited():
    """As often, and for as long, as the question of the prefetch says: to the end of its life."""
    rows = captured("b1_amqp091_memory_alarm")
    gone = {row.connection: row.t_us for row in rows if row.kind == "connection.close"}
    found = {}
    for row in prefetch(rows):
        found.setdefault((row["connection"], row["session"]), []).append(row)
    told = broker_s(story(rows))
    assert set(told) == {"c3/1", "c4/1"}
    for (connection, session), its in found.items():
        often = lasted_us = 0
        for row, later in pairwise([*its, {"t_us": gone[connection], "full": False}]):
            lasted_us += (later["t_us"] - row["t_us"]) * row["full"]
            often += row["full"] and not later["full"]
        assert often == 3
        assert told[f"{connection}/{session}"][1] == (
            f"The limit was 3; it was reached 3 times, for {duration(lasted_us)} in all."
        )


def test_of_a_channel_with_several_consumers_all_that_were_full_are_counted():
    """The time is theirs together: it is longer than the connection lasted."""
    told = broker_s(story(captured("q2_amqp091_prefetch_changed")))
    assert told["c1/1"][1] == (
        "The limit was 2; then it was 5; then it was 1; then there was none; it was reached 8 times"
        " by 3 consumers, for 5.5 s in all."
    )
    assert "The limit was 1; it was reached once, for 251 ms in all." in told["c3/1"]


def test_no_limit_is_not_said_to_have_held_anything_back():
    """A consumer with a prefetch of 0, and one of more than there are messages."""
    rows = [row for row in captured("q1_amqp091_prefetch_and_ack") if row.seq < 22]
    for limit, sentence in (
        (0, "There was no limit."),
        (9, "The limit was 9; it is not known to have been reached."),
    ):
        changed = [
            dataclasses.replace(row, ledger={**row.ledger, "prefetch_count": limit})
            if "prefetch_count" in (row.ledger or {}) else row for row in rows
        ]  # fmt: skip
        (link,) = story(changed).links
        assert sentence in link.more


def test_a_page_without_a_stall_says_so_in_the_protocol_s_words():
    """600 publishes without confirms: the broker said nothing at all."""
    told = story(captured("p1_amqp091_publish_without_confirms"))
    assert told.headline == "Nobody is known to have been held by a prefetch, a window or an alarm."
    assert {link.more for link in told.links} == {()}


def test_transfers_are_timed_to_their_completion_however_commands_are_numbered():
    """One of the producer when its queue is below the mark, one of the broker when accepted."""
    rows = windowed()
    told = [row for row in latency(rows) if row["measure"] == "completion"]
    found = by_direction(told, "count", "unanswered")
    assert found == {"client": (28, 2), "broker": (30, 0)}
    at = {row.seq: row for row in rows}
    slowest = next(row for row in told if row["link_sender"] == "client")
    answer = next(
        row
        for row in rows[slowest["worst_seq"] :]
        if row.kind == "session.completed"
        and row.vantage == at[slowest["worst_seq"]].vantage
        and row.t_us - at[slowest["worst_seq"]].t_us == slowest["max_us"]
    )
    assert answer.event == "received"
    for first in (2**32 - 3, 2**31 - 2):
        again = latency(renumbered(rows, first))
        assert [{**row, "run": ""} for row in again] == [{**row, "run": ""} for row in told]


def test_transfers_with_their_segments_are_counted_once():
    """A transfer, its header and its body; of either peer."""
    found = Counter()
    for row in throughput(windowed(), window_us=100_000):
        assert row["link"] is None
        for name in ("messages", "frames", "body_bytes"):
            found[row["link_sender"], name] += row[name]
    for sender in ("client", "broker"):
        assert (found[sender, "messages"], found[sender, "frames"]) == (30, 90)
        assert found[sender, "body_bytes"] == 30 * 12


def test_a_full_window_is_a_stall_from_the_block_to_the_unblock():
    """As many wait as the producer has left to send."""
    rows = windowed()
    turns = [row for row in rows if row.kind == "qpid-window"]
    found = [stall for stall in stalls(rows) if stall.brake == "qpid-window"]
    assert [(one.seq, one.messages_waiting) for one in found] == [
        (row.seq, row.ledger["waiting_transfers"]) for row in turns if row.event == "block"
    ]
    assert [one.end_us for one in found] == [row.t_us for row in turns if row.event == "unblock"]
    assert {(one.session, one.link_sender, one.evidence) for one in found} == {
        (1, "client", "internal")
    }


def test_on_the_wire_a_sync_tells_of_a_full_window():
    """A producer that asked for completion, and sent again as soon as it came, had waited."""
    inside = [stall for stall in stalls(windowed()) if stall.brake == "qpid-window"]
    found = stalls(on_the_wire(windowed()))
    assert {(one.brake, one.evidence) for one in found} == {("qpid-window", "later-frames")}
    assert [one.start_us for one in found] == [one.start_us for one in inside]
    assert stalls(on_the_wire(windowed()), prompt_us=0) == []
    without = on_the_wire(windowed(window=0))
    assert [row for row in without if row.kind == "message.transfer"] != []
    assert stalls(without) == []


def test_a_producer_that_qpid_s_java_broker_stops_waits_for_credit():
    """Its window is one of messages, which the broker gives; a slow subscriber gives one back."""
    rows = windowed("broker-j", most=10, window=50)
    assert {(one.brake, one.session, one.link_sender) for one in stalls(rows)} == {
        ("link-credit", 1, "client"), ("link-credit", 1, "broker"),
    }  # fmt: skip
    (told,) = (
        link.advice for link in summarise(rows)
        if link.longest_brake is not None and link.link_sender == "client"
    )  # fmt: skip
    assert told.startswith("The client waited 469 ms for the broker to give it credit: ")
    assert told.endswith(
        ": a queue above its maximum stops the sessions that publish to it."
        " Consume faster, or raise the queue's maximum."
    )


def test_what_a_producer_tells_of_its_credit_is_nothing_about_a_subscriber_s():
    """Both may be of one connection; of the subscriber's frames that follow tell."""
    rows = windowed("broker-j", most=10, window=50)
    mute = [row for row in rows if "queue_ready" not in (row.ledger or {})]
    held = [one for one in stalls(mute) if one.link_sender == "broker"]
    assert {one.evidence for one in held} == {"later-frames"}
    first = next(row for row in mute if row.connection == held[0].connection and row.is_frame)
    block = next(row for row in mute if (row.event, row.kind) == ("block", "link-credit"))
    there = dataclasses.replace(block, seq=first.seq, connection=first.connection)
    both = sorted([*mute, there], key=lambda row: row.seq)
    assert [one for one in stalls(both) if one.link_sender == "broker"] == held


def test_three_protocols_can_be_held_against_each_other(pika):
    """What each carried, and how long answers took where there are any."""
    links = run("credit", parameters={"messages": 30}).then("grant", link_credit=30).rows
    totals = ("messages", "frames")
    for other, measures in ((pika, (*totals, "settlement_us")), (links, totals)):
        found = {row["measure"]: row for row in folds.compare(windowed(), other)}
        assert found["messages"]["left"] == 60
        for measure in measures:
            assert found[measure]["left"] > 0
            assert found[measure]["right"] > 0, measure
        assert found["gap_us"]["right_seq"] is not None


def test_the_page_of_a_window_says_who_waited_how_long_why_and_what_to_change():
    """Of the producer; what was delivered waited for nobody."""
    told = story(windowed())
    assert told.headline.endswith("on c1/1 published, from 0.012 s on; blocked by qpid-window.")
    names = {link.key.name: link for link in told.links}
    assert set(names) == {"c1/1 published", "c3/1 delivered"}
    held = names["c1/1 published"]
    assert held.advice.startswith(
        "The client waited 7 times; the longest wait, 131 ms, was for earlier transfers to "
    )
    assert "its window was full" in held.advice
    assert "Consume faster, or raise the watermarks" in held.advice
    completed, window = held.more
    assert completed.startswith("Completed after")
    assert completed.endswith("; 2 never were.")
    assert window.startswith("The limit was 4; it was reached 7 times")
