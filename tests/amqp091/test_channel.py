"""What a channel counts, the same at both ends, written line by line."""

import pytest

from tests.amqp091.talk import Talk
from workbench.amqp091.counters import ChannelCounters
from workbench.amqp091.events import MethodReceived, ProtocolViolation
from workbench.amqp091.frame import Frame
from workbench.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicRecover,
    ChannelOpen,
)
from workbench.amqp091.observer import ConnectionObserver

SCRIPTS = {
    "a limit of qos holds for consumers that start afterwards": """
        qos 3; consume a; qos 5; consume b -> held a=0/3 b=0/5
        qos 1                              -> held a=0/3 b=0/5
    """,
    "a consumer without a name gets the broker's": """
        consume -> held amq.1=0/0
    """,
    "what is delivered waits for its acknowledgement": """
        qos 3; consume a            ->
        server: deliver a 3         -> unacked 1@a 2@a 3@a | held a=3/3 | ledger 3 3
        client: ack 2               -> unacked 1@a 3@a | tags 2 | held a=2/3
    """,
    "multiple acknowledges what lies before, and 0 everything": """
        consume a                   ->
        server: deliver a 6         ->
        client: ack 2; ack 4 True   -> tags 1 3 4 | unacked 5@a 6@a
        ack 0 True                  -> tags 5 6 | unacked -
        ack 0 True                  -> tags - | state OPENED
    """,
    "nack and reject settle, too": """
        consume a                   ->
        server: deliver a 4         ->
        client: reject 2            -> tags 2
        nack 3 True                 -> tags 1 3 | unacked 4@a
    """,
    "a tag that comes twice closes the channel": """
        consume a                   ->
        server: deliver a 2         ->
        client: ack 1; ack 1        -> error 406 channel unknown delivery tag 1 | state CLOSED
    """,
    "a get waits for its acknowledgement, unless it said otherwise": """
        get; server: got            -> unacked 1
        client: get True; server: got -> unacked 1 | ledger 0 1
        client: get; server: empty  -> unacked 1
    """,
    "deliveries without acknowledgement are not counted": """
        consume a True              ->
        server: deliver a 5         -> unacked - | held a=0/0
    """,
    "a consumer that is cancelled keeps what it holds": """
        consume a                   ->
        server: deliver a 2         ->
        client: cancel a            -> held - | unacked 1@a 2@a
        ack 2 True                  -> unacked - | tags 1 2
    """,
    "the broker's cancel ends a consumer at once": """
        consume a                   ->
        server: cancel a            -> held -
    """,
    "a shared limit counts the channel's deliveries": """
        consume a; consume b; qos 4 True ->
        server: deliver a 1; deliver b 2 -> ledger 4 3 1
    """,
    "recover gives everything back": """
        consume a                   ->
        server: deliver a 3         ->
        client: ack 2; recover      -> tags 1 3 | unacked - | held a=0/0
    """,
    "messages are numbered from the confirm.select on": """
        publish 2; confirm; publish 3 -> unconfirmed 1 2 3 | message 3 1 | ledger 0 0 3 0
    """,
    "confirms need not ascend": """
        confirm; publish 5          ->
        server: ack 3               -> tags 3 | unconfirmed 1 2 4 5
        ack 1; ack 2; nack 5 True   -> tags 4 5 | unconfirmed - | ledger 0 0 5 5
    """,
    "a confirm of 0 with multiple is for everything": """
        confirm; publish 3          ->
        server: ack 0 True          -> tags 1 2 3
    """,
    "a confirm of what was confirmed does nothing": """
        confirm; publish 2          ->
        server: ack 2 True; ack 1   -> tags - | ledger 0 0 2 2
    """,
    "a rollback undoes acknowledgements": """
        tx select; consume a        ->
        server: deliver a 4         ->
        client: ack 1; tx commit    -> unacked 2@a 3@a 4@a
        ack 3 True                  -> tags 2 3 | unacked 4@a
        tx rollback                 -> tags 2 3 | unacked 2@a 3@a 4@a | held a=3/0
        ack 4 True                  -> tags 2 3 4
    """,
    "an acknowledgement in a transaction counts when that is committed": """
        qos 2; tx select; consume a ->
        server: deliver a 2         -> held a=2/2 | ledger 2 2
        client: ack 2 True          -> tags 1 2 | unacked - | held a=2/2
        tx rollback                 -> unacked 1@a 2@a | held a=2/2
        ack 1                       -> unacked 2@a | held a=2/2
        tx commit                   -> unacked 2@a | held a=1/2
        ack 2; recover              -> held a=1/2
        tx commit                   -> held a=0/2
    """,
    "tx and confirm exclude each other": """
        tx select; confirm -> error 406 channel cannot switch from tx to confirm mode
    """,
    "confirm and tx exclude each other": """
        confirm; tx select -> error 406 channel cannot switch from confirm to tx mode
    """,
    "a commit wants a select before it": """
        tx commit -> error 406 channel channel is not transactional
    """,
    "a consumer counts what the one before it has left under its tag": """
        consume a                   ->
        server: deliver a 2         ->
        client: cancel a; consume a -> held a=2/0
        server: deliver a 1         -> held a=3/0 | unacked 1@a 2@a 3@a
        client: ack 2 True          -> held a=1/0
    """,
    "an empty body has no frame": """
        publish 1 0 -> message None 0 | frames basic.publish content-header
    """,
    "a body is split at frame-max": """
        publish 1 131064 -> frames basic.publish content-header content-body
        publish 1 131065 -> frames basic.publish content-header content-body content-body
    """,
    "a channel that the broker stopped does not publish": """
        server: flow False          ->
        client: publish -> refused channel 1 was stopped by channel.flow; legal now: wait for active
        server: flow True; client: publish 2 -> message None 1
    """,
    "a closed channel's number is free again": """
        close -> state CLOSED
    """,
    "a broker says that it takes no messages, and that it does again": """
        server: block -> blocked low on memory
        unblock       -> blocked None
    """,
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_both_ends_count_alike(script):
    """Counts after every line; where frames have arrived the two books are equal."""
    Talk().play(script)


def test_who_cannot_hear_of_it_is_not_told_that_messages_wait():
    """connection.blocked goes to clients with the capability [rabbit_reader.erl]."""
    talk = Talk(client={"properties": {}})
    assert not talk.server.connection.block("low on memory")
    assert not talk.server.flying


def test_a_number_that_is_used_again_has_a_new_ordinal():
    """The trace keeps both channels apart."""
    talk = Talk()
    talk.play("close -> state CLOSED")
    again = talk.client.connection.open_channel()
    talk.pump()
    assert (again.number, again.ordinal, talk.server.channel.ordinal) == (1, 2, 2)


def test_what_settles_behind_a_get_is_judged_when_its_turn_has_come():
    """A server's owner says when; a client counts it when the answer comes."""
    talk = Talk()
    client, server = talk.client.channel, talk.server.channel
    client.send(BasicGet(queue="q"))
    for tag in (1, 1):
        client.send(BasicAck(delivery_tag=tag))
    talk.pump()
    first, second = talk.server.heard(MethodReceived)[-2:]
    assert first.pending and second.pending
    assert talk.server.heard(ProtocolViolation) == []
    server.get_ok("", "q", 0, b"m")
    assert list(server.counters.unacked) == [1]
    talk.pump()
    assert server.judge(first) == MethodReceived(server, first.method, (1,))
    assert talk.counters().unacked == {}
    assert server.judge(second).text == "unknown delivery tag 1"


def test_an_answer_counts_what_was_sent_before_the_next_get_alone():
    """Of a capture, too: each acknowledgement is for what the gets before it have brought."""
    counters = ChannelCounters()
    for method in (
        BasicGet(), BasicAck(delivery_tag=0, multiple=True), BasicGet(), BasicRecover(requeue=True),
    ):  # fmt: skip
        counters.see(method, True)
    counters.see(BasicGetOk(delivery_tag=1), False)
    assert counters.unacked == {}
    counters.see(BasicGetOk(delivery_tag=2), False)
    assert counters.unacked == {}
    assert counters.delivered == 2
    counters.see(BasicGet(), True)
    counters.see(BasicGetEmpty(), False)
    assert not counters.getting


@pytest.mark.parametrize("nowait", [False, True])
def test_a_cancel_that_is_answered_late_ends_no_consumer_behind_it(nowait):
    """Answers come in the order of what they answer; what wants none is counted between them."""
    counters = ChannelCounters()
    for method in (
        BasicConsume(queue="q", consumer_tag="a"),
        BasicCancel(consumer_tag="a"),
        BasicConsume(queue="r", consumer_tag="a", nowait=nowait),
        BasicConsume(queue="s", consumer_tag="b", nowait=True),
        BasicCancel(consumer_tag="b", nowait=True),
    ):
        counters.see(method, True)
    assert counters.consumers == {}
    counters.see(BasicConsumeOk(consumer_tag="a"), False)
    assert counters.consumers["a"].queue == "q"
    counters.see(BasicCancelOk(consumer_tag="a"), False)
    if not nowait:
        assert counters.consumers == {}
        counters.see(BasicConsumeOk(consumer_tag="a"), False)
    assert {name: one.queue for name, one in counters.consumers.items()} == {"a": "r"}


def test_an_answer_whose_question_is_missing_is_counted_alone():
    """In a capture that has lost it."""
    counters = ChannelCounters()
    counters.see(BasicConsume(consumer_tag="a", nowait=True), True)
    counters.see(BasicConsume(consumer_tag="b"), True)
    counters.lost()
    counters.see(BasicConsumeOk(consumer_tag="c"), False)
    counters.see(BasicCancelOk(consumer_tag="a"), False)
    assert counters.consumers == {}
    counters.see(BasicConsume(consumer_tag="d", nowait=True), True)
    assert list(counters.consumers) == ["d"]


def test_a_get_whose_answer_is_missing_holds_no_acknowledgement_up():
    """A capture may lack it; what comes behind the gap is counted again."""
    watcher = ConnectionObserver()
    for method, from_client in (
        (ChannelOpen(), True),
        (BasicConsume(queue="q", consumer_tag="a", nowait=True), True),
        (BasicDeliver(consumer_tag="a", delivery_tag=1), False),
        (BasicDeliver(consumer_tag="a", delivery_tag=2), False),
        (BasicGet(), True),
        (BasicAck(delivery_tag=1), True),
    ):
        watcher.see(Frame(1, method), from_client)
    watcher.lost(from_client=False)
    again = Frame(1, BasicAck(delivery_tag=1))
    assert watcher.see(again, from_client=True).consumer is None
    assert watcher.see(Frame(1, BasicAck(delivery_tag=2)), from_client=True).consumer == "a"
    assert watcher.see(Frame(1, BasicAck(delivery_tag=2)), from_client=True).consumer is None
