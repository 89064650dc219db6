"""Channels of AMQP 0-9-1: declarations, consumers, prefetch, confirms, transactions, errors."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.amqp091 import values as v091
from workbench.amqp091.errors import ReplyCode
from workbench.amqp091.frame import Frame
from workbench.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicQosOk,
    BasicRecover,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpen,
    ConfirmSelect,
    ConnectionClose,
    ConnectionUpdateSecret,
    ConnectionUpdateSecretOk,
    ExchangeBind,
    ExchangeDeclare,
    ExchangeDeclareOk,
    ExchangeDelete,
    ExchangeDeleteOk,
    ExchangeUnbind,
    ExchangeUnbindOk,
    Properties,
    QueueBind,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
    QueuePurge,
    QueuePurgeOk,
    QueueUnbind,
    QueueUnbindOk,
    TxCommit,
    TxCommitOk,
    TxRollback,
    TxSelect,
)
from workbench.amqp091.states import ChannelState
from workbench.amqp091.values import Byte
from workbench.presets import get as preset_of

from .rig091 import RMQ40, RMQ43, RMQ355, RMQ384, Rig091, said

CLASSIC, QUORUM = {"x-queue-type": "classic"}, {"x-queue-type": "quorum"}
STREAM = {"x-queue-type": "stream"}
EVERY_RABBIT = pytest.mark.parametrize(
    "preset", [RMQ355, RMQ384, RMQ40, RMQ43], ids=lambda preset: preset.name
)
SINGLE = {"x-single-active-consumer": True}
KINDS = pytest.mark.parametrize("arguments", [{}, QUORUM], ids=["classic", "quorum"])


def ready(
    count: int = 0, preset: Any = RMQ43, arguments: Any = None, **numbers: Any
) -> tuple[Rig091, Any, Any]:
    """A client with a channel, and a queue with messages m0, m1, ..."""
    rig = Rig091(preset, **numbers)
    client, channel = rig.channel()
    channel.send(QueueDeclare(queue="q", durable=True, arguments=arguments or {}))
    for number in range(count):
        channel.publish("", "q", b"m%d" % number)
    rig.rest()
    return rig, client, channel


def consume(rig: Rig091, channel: Any, tag: str = "t", **terms: Any) -> None:
    channel.send(BasicConsume(queue="q", consumer_tag=tag, **terms))
    rig.rest()


def do(rig: Rig091, channel: Any, *methods: Any) -> None:
    for method in methods:
        channel.send(method)
    rig.rest()


def refusal(client: Any) -> tuple[str, int, str]:
    """How the broker has ended the channel or the connection."""
    (method,) = client.methods(ChannelClose, ConnectionClose)
    return method.NAME.partition(".")[0], method.reply_code, method.reply_text


# -- declaring ------------------------------------------------------------------------------


def test_a57_queue_declare_tells_how_many_messages_and_consumers_there_are() -> None:
    """Passive too, and basic.get with what it brings: it costs a round trip."""
    rig, client, channel = ready(3)
    do(rig, channel, QueueDeclare(queue="q", passive=True), BasicGet(queue="q", no_ack=True))
    told = client.methods(QueueDeclareOk)[-1]
    assert (told.message_count, told.consumer_count) == (3, 0)
    assert client.messages()[-1].method.message_count == 2
    consume(rig, channel)
    do(rig, channel, QueueDeclare(queue="q", passive=True))
    assert client.methods(QueueDeclareOk)[-1].consumer_count == 1


def test_queues_exchanges_and_bindings_are_made_and_unmade() -> None:
    """Through two exchanges into a queue, and no more when unbound."""
    rig, client, channel = ready()
    do(
        rig,
        channel,
        ExchangeDeclare(exchange="e", type="topic"),
        ExchangeDeclare(exchange="f", type="fanout"),
        ExchangeBind(source="e", destination="f", routing_key="a.*"),
        QueueBind(queue="q", exchange="f", routing_key=""),
    )
    channel.publish("e", "a.b", b"in")
    channel.publish("e", "b.b", b"out")
    rig.rest()
    assert rig.queue().ready == 1
    do(rig, channel, QueuePurge(queue="q"), QueueUnbind(queue="q", exchange="f", routing_key=""))
    assert client.methods(QueuePurgeOk)[-1].message_count == 1
    channel.publish("e", "a.b", b"out")
    rig.rest()
    assert rig.queue().ready == 0
    do(rig, channel, ExchangeDelete(exchange="f"), QueueDelete(queue="q"))
    assert len(client.methods(ExchangeDeclareOk, ExchangeDeleteOk, QueueDeleteOk)) == 4
    assert "q" not in rig.broker.queues


def test_a_server_named_queue_is_the_one_that_is_meant_without_a_name() -> None:
    """The last one declared on the channel."""
    rig, client, channel = ready()
    do(rig, channel, QueueDeclare(queue="", exclusive=True), BasicGet(queue=""))
    name = client.methods(QueueDeclareOk)[-1].queue
    assert name.startswith("amq.gen-")
    assert len(client.methods(BasicGetEmpty)) == 1
    client.amqp.close()
    rig.rest()
    assert name not in rig.broker.queues  # it was exclusive


@pytest.mark.parametrize("preset", [RMQ384, RMQ40, RMQ43], ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_only_a_classic_queue_is_named_by_the_server_since_3_9(preset, kind) -> None:
    """`rabbit_amqqueue.erl:is_server_named_allowed`; measured on 3.10.8."""
    rig = Rig091(preset)
    client, channel = rig.channel()
    do(rig, channel, QueueDeclare(durable=True, arguments={"x-queue-type": kind}))
    if kind == "classic" or preset is RMQ384:
        assert client.methods(QueueDeclareOk)[0].queue.startswith("amq.gen")
        return
    text = f"PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_{kind}_queue"
    assert refusal(client) == ("channel", 406, text)


def test_a_binding_without_names_is_of_the_last_queue_by_its_name() -> None:
    """To bind and to unbind; with a queue's name an empty key is empty [0-9-1, queue.bind]."""
    rig, _, channel = ready()
    do(rig, channel, QueueBind(queue="", exchange="amq.direct"))
    for key, ready_now in (("q", 1), ("", 1)):
        channel.publish("amq.direct", key, b"m")
        rig.rest()
        assert rig.queue().ready == ready_now
    do(rig, channel, QueueBind(queue="q", exchange="amq.direct"))
    do(rig, channel, QueueUnbind(queue="", exchange="amq.direct"))
    for key, ready_now in (("q", 1), ("", 2)):
        channel.publish("amq.direct", key, b"m")
        rig.rest()
        assert rig.queue().ready == ready_now


@pytest.mark.parametrize(
    ("method", "scope", "code", "text"),
    [
        (
            QueueDeclare(queue="q"), "channel", 406,
            "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current"
            " is 'true'",
        ),
        (
            QueueDeclare(queue="q", durable=True, arguments={"x-max-length": Byte(5)}),
            "channel", 406, "received the value '5' of type 'byte' but current is none",
        ),
        (
            QueueDeclare(queue="q", durable=True, arguments=QUORUM), "channel", 406,
            "received 'quorum' but current is 'classic'",
        ),
        (
            QueueDeclare(queue="x", arguments={"x-max-length": True}), "channel", 406,
            "x-max-length has the value 'true' of type 'bool'; legal: an integer",
        ),
        (QueueDeclare(queue="", passive=True), "channel", 404, "no queue '' in vhost '/'"),
        (QueueDeclare(queue="x", passive=True), "channel", 404, "no queue 'x' in vhost '/'"),
        (QueueDeclare(queue="amq.x"), "channel", 403, "reserved prefix 'amq.*'"),
        (QueueBind(queue="q", exchange="x"), "channel", 404, "no exchange 'x' in vhost '/'"),
        (QueueBind(queue="x", exchange="x"), "channel", 404, "no exchange 'x' in vhost '/'"),
        (QueueBind(queue="x", exchange=""), "channel", 403, "not permitted on the default"),
        (ExchangeUnbind(source="x", destination=""), "channel", 403, "not permitted on the"),
        (QueueDelete(queue="q", if_empty=True), "channel", 406, "not empty"),
        (ExchangeDeclare(exchange="amq.x"), "channel", 403, "reserved prefix 'amq.*'"),
        (
            ExchangeDeclare(exchange="amq.topic", type="fanout", durable=True), "channel", 406,
            "inequivalent arg 'type' for exchange 'amq.topic' in vhost '/': received 'fanout' but"
            " current is 'topic'",
        ),
        (
            ExchangeDelete(exchange="amq.x"), "channel", 403,
            "deletion of system exchange 'amq.x' in vhost '/' not allowed",
        ),
        (ExchangeDeclare(exchange="e", type="x"), "channel", 406, "unknown exchange type 'x'"),
        (ExchangeDeclare(exchange="", type="direct"), "channel", 403, "the default exchange"),
        (BasicConsume(queue="x"), "channel", 404, "no queue 'x'"),
        (
            BasicConsume(queue="q", arguments={"x-priority": "9"}), "channel", 406,
            "invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got"
            ' longstr"',
        ),
        (BasicQos(prefetch_size=1), "connection", 540, "prefetch_size!=0 (1)"),
        (BasicRecover(requeue=False), "connection", 540, "requeue=false"),
        (BasicAck(delivery_tag=7), "channel", 406, "unknown delivery tag 7"),
        (ChannelFlow(active=False), "connection", 540, "active=false"),
        (ChannelFlowOk(active=True), "connection", 503, "unimplemented method"),
    ],
    ids=lambda one: getattr(one, "NAME", None),
)  # fmt: skip
def test_what_cannot_be_ends_channel_or_connection_with_its_code(method, scope, code, text) -> None:
    """The others go on, and the number can be used again."""
    rig, client, channel = ready(1)
    do(rig, channel, method)
    ended, told_code, told = refusal(client)
    assert (ended, told_code) == (scope, code)
    assert told.startswith(f"{ReplyCode(code).name} - ") and text in told
    if scope == "channel":
        again = rig.open(client)
        do(rig, again, QueueDeclare(queue="q", passive=True))
        assert again.number == channel.number
        assert client.methods(QueueDeclareOk)[-1].message_count == 1


@pytest.mark.parametrize(
    ("preset", "strips"),
    [(RMQ355, False), (RMQ384, True), (RMQ40, True), (RMQ43, True), (preset_of("spec"), False)],
    ids=lambda one: getattr(one, "name", None),
)
def test_line_ends_in_names_are_dropped_where_something_is_declared_or_bound(
    preset, strips
) -> None:
    """`rabbit_channel.erl:strip_cr_lf`; measured on 3.10.8. Other methods mean what they say."""
    rig = Rig091(preset)
    client, channel = rig.channel()
    queue, exchange = ("q", "e") if strips else ("\r\nq\n", "\re\n")
    do(rig, channel, QueueDeclare(queue="\r\nq\n", durable=True))
    assert client.methods(QueueDeclareOk)[-1].queue == queue
    assert list(rig.broker.queues) == [queue]
    do(rig, channel, QueueDeclare(queue="\r\nq\n", passive=True))
    do(rig, channel, ExchangeDeclare(exchange="\re\n", type="direct"))
    do(rig, channel, ExchangeDeclare(exchange="\re\n", passive=True))
    do(rig, channel, QueueBind(queue="\r\nq\n", exchange="\re\n", routing_key="k\n"))
    do(rig, channel, ExchangeBind(destination="\re\n", source="amq.direct", routing_key="k\n"))
    channel.publish("amq.direct", "k\n")
    rig.rest()
    assert rig.broker.queues[queue].queue.ready == 1
    if strips:
        other = rig.open(client)
        do(rig, other, QueuePurge(queue="q\n"))
        assert refusal(client)[:2] == ("channel", 404)
    do(rig, channel, QueueUnbind(queue="\r\nq\n", exchange="\re\n", routing_key="k\n"))
    do(rig, channel, ExchangeUnbind(destination="\re\n", source="amq.direct", routing_key="k\n"))
    exchanges = rig.broker.vhost.routing.exchanges
    assert not exchanges[exchange].bindings and not exchanges["amq.direct"].bindings
    do(rig, channel, ExchangeDelete(exchange="\re\n"))
    do(rig, channel, QueueDelete(queue="\r\nq\n"))
    assert exchange not in exchanges and not rig.broker.queues


@pytest.mark.parametrize("flag", ["if-unused", "if-empty"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("classic", ("channel", 406)),
        ("quorum", ("connection", 540)),
        ("stream", None),
    ],
)
def test_a_condition_on_a_deletion_is_a_classic_queue_s_alone(kind, expected, flag) -> None:
    """A quorum queue is not deleted with one, kept or not; a stream is, whatever it says."""
    rig, client, channel = ready(1, arguments={"x-queue-type": kind})
    if flag == "if-unused":
        do(rig, channel, BasicQos(prefetch_count=1))
        consume(rig, channel)
    do(rig, channel, QueueDelete(queue="q", **{flag.replace("-", "_"): True}))
    assert ("q" in rig.broker.queues) is (expected is not None)
    if expected is not None:
        assert refusal(client)[:2] == expected
    if kind == "quorum":
        assert f"with {flag} flag set are not supported by quorum queues" in refusal(client)[2]


@pytest.mark.parametrize(("preset", "refused"), [(RMQ384, True), (RMQ40, True), (RMQ43, False)])
def test_the_mode_of_a_classic_queue_is_looked_at_until_4_3(preset, refused) -> None:
    """`default` and `lazy`; 4.3 has neither, and reads over the argument."""
    rig, _, channel = ready(preset=preset)
    for name, mode in (("a", "lazy"), ("b", "foo")):
        declare = QueueDeclare(queue=name, durable=True, arguments={"x-queue-mode": mode})
        do(rig, channel, declare)
    assert list(rig.broker.queues) == (["q", "a"] if refused else ["q", "a", "b"])


def test_a_queue_s_type_need_not_be_said_if_it_is_classic() -> None:
    """Either way round it is the same declaration."""
    rig, _, channel = ready()
    for name, one, other in (("a", {}, CLASSIC), ("b", CLASSIC, {})):
        for arguments in (one, other):
            do(rig, channel, QueueDeclare(queue=name, durable=True, arguments=arguments))
    assert channel.opened


def test_what_is_not_bound_is_unbound() -> None:
    """For want of the exchange, the queue or the binding, and whose the queue is or not."""
    rig, client, channel = ready()
    _, own = rig.channel("c2")
    do(rig, own, QueueDeclare(queue="mine", exclusive=True))
    do(
        rig,
        channel,
        QueueUnbind(queue="q", exchange="x"),
        QueueUnbind(queue="x", exchange="amq.topic"),
        QueueUnbind(queue="mine", exchange="amq.topic"),
        ExchangeUnbind(source="x", destination="x"),
    )
    assert len(client.methods(QueueUnbindOk, ExchangeUnbindOk)) == 4
    do(rig, own, QueueBind(queue="mine", exchange="amq.topic"))
    do(rig, channel, QueueUnbind(queue="mine", exchange="amq.topic"))
    assert refusal(client)[:2] == ("channel", 405)


def test_an_exclusive_queue_is_locked_for_other_connections() -> None:
    """405, in RabbitMQ's words, and it goes with its connection."""
    rig = Rig091()
    owner, channel = rig.channel()
    do(rig, channel, QueueDeclare(queue="mine", exclusive=True))
    other, second = rig.channel("c2")
    do(rig, second, BasicConsume(queue="mine"))
    assert refusal(other) == (
        "channel",
        405,
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'. It"
        " could be originally declared on another connection or the exclusive property value does"
        " not match that of the original declaration.",
    )
    owner.amqp.close()
    rig.rest()
    assert "mine" not in rig.broker.queues


@pytest.mark.parametrize(
    ("preset", "lasts"),
    [("spec", True), ("rmq1.5", True), ("rmq2.0", True), ("rmq3.5.5", False), ("rmq4.3", False)],
)
def test_whether_an_exclusive_queue_is_durable_is_read_over(preset, lasts) -> None:
    """Since 3.2.0 (`rabbit_channel.erl:handle_method`); a later declaration may say either.

    Measured on 3.10.8.
    """
    rig = Rig091(preset_of(preset))
    _, channel = rig.channel()
    for durable in (True, True, False):
        channel.send(QueueDeclare(queue="mine", durable=durable, exclusive=True))
    rig.rest()
    assert rig.broker.vhost.terms["mine"].durable == lasts
    assert channel.opened != lasts


def test_an_exclusive_consumer_is_the_only_one() -> None:
    """403 for whoever comes beside it; when it has left others may."""
    rig, client, channel = ready()
    consume(rig, channel, exclusive=True)
    second = rig.open(client)
    do(rig, second, BasicConsume(queue="q", consumer_tag="u"))
    assert refusal(client)[1:] == (403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use")
    do(rig, channel, BasicCancel(consumer_tag="t"))
    third = rig.open(client)
    consume(rig, third, "u")
    assert len(rig.queue().consumers()) == 1


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [({}, ["t"]), (SINGLE, ["u"]), (QUORUM, ["t", "u"]), (QUORUM | SINGLE, ["t", "u"])],
    ids=["classic", "single active consumer", "quorum", "quorum, single active consumer"],
)
def test_the_wish_to_be_the_only_consumer_is_heeded_by_some_queues(arguments, taken) -> None:
    """A quorum queue lets others in; one with a single active consumer refuses the wish itself."""
    rig, client, channel = ready(arguments=arguments)
    consume(rig, channel, exclusive=True)
    consume(rig, rig.open(client), "u")
    assert [one.consumer_tag for one in client.methods(BasicConsumeOk)] == taken
    assert len(rig.queue().consumers()) == len(taken)
    assert {one.reply_code for one in client.methods(ChannelClose)} <= {403}


@pytest.mark.parametrize(("preset", "code"), [(RMQ40, 503), (RMQ43, None)])
def test_a_cancel_ok_for_which_nobody_has_asked_is_a_cancel_since_4_3(preset, code) -> None:
    """Without an answer, and of a consumer that is not there without effect."""
    rig, client, channel = ready(preset=preset)
    consume(rig, channel)
    do(rig, channel, BasicCancelOk(consumer_tag="t"), BasicCancelOk(consumer_tag="none"))
    if code is None:
        assert (channel.opened, client.methods(BasicCancelOk)) == (True, [])
        assert not rig.queue().consumers()
    else:
        assert refusal(client)[:2] == ("connection", code)


def test_a_deleted_queue_cancels_its_consumers() -> None:
    """The broker sends basic.cancel to who has said that it understands."""
    rig, client, channel = ready(1)
    consume(rig, channel)
    rig.broker.delete("q")
    rig.rest()
    assert [method.consumer_tag for method in client.methods(BasicCancel)] == ["t"]
    do(rig, channel, BasicAck(delivery_tag=1))  # of what is gone
    assert channel.opened


# -- publishing -----------------------------------------------------------------------------


def test_confirms_are_gathered_and_told_as_a_range() -> None:
    """Ten messages at once: one ack, `multiple`; a single one alone without."""
    rig, client, channel = ready()
    do(rig, channel, ConfirmSelect())
    channel.publish("", "q", b"m")
    rig.rest()
    assert client.confirms == [("ack", 1, False)]
    rig.broker.queues["q"].stall()
    for _ in range(5):
        channel.publish("", "q", b"m")
    channel.publish("", "nowhere", b"m")
    rig.rest()
    assert client.confirms[1:] == [("ack", 7, False)]  # the first that is open is 2
    rig.broker.queues["q"].resume()
    rig.rest()
    assert channel.counters.unconfirmed == {}


@KINDS
def test_reject_publish_refuses_what_finds_no_room(arguments) -> None:
    """A nack, of all up to it and to be sent again; a classic queue takes as many as it holds.

    That is what RabbitMQ's nack says of each message, for want of another value.
    """
    limits = {"x-max-length": 3, "x-overflow": "reject-publish"}
    rig, client, channel = ready(arguments={**arguments, **limits})
    do(rig, channel, ConfirmSelect())
    for _ in range(10):
        channel.publish("", "q", b"m")
        rig.rest()
    kinds = [kind for kind, _, _ in client.confirms]
    assert kinds == ["ack"] * (4 if arguments else 3) + ["nack"] * (6 if arguments else 7)
    nacks = client.methods(BasicNack)
    assert {(nack.multiple, nack.requeue) for nack in nacks} == {(True, True)}


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ("nnaa", [("ack", 3, False), ("ack", 4, False), ("nack", 2, True)]),
        ("aann", [("ack", 2, True), ("nack", 3, False), ("nack", 4, False)]),
        ("ana", [("ack", 1, True), ("ack", 3, False), ("nack", 2, False)]),
    ],
)
def test_what_is_taken_is_told_before_what_is_refused(order, told) -> None:
    """Acks, then nacks, each up to the first of the others in one (`send_confirms_and_nacks`)."""
    rig, client, channel = ready(queue_enqueue_us=0)
    full = {"x-max-length": 0, "x-overflow": "reject-publish"}
    do(rig, channel, QueueDeclare(queue="n", durable=True, arguments=full), ConfirmSelect())
    queues = rig.broker.queues["n"], rig.broker.queues["q"]
    for queue in queues:
        queue.stall()
    for sort in order:
        channel.publish("", "n" if sort == "n" else "q", b"m")
    rig.rest()
    for queue in queues:
        queue.resume()
    rig.rest()
    assert client.confirms == told


def test_a_mandatory_message_without_a_queue_comes_back_before_its_confirm() -> None:
    """312, with body and properties."""
    rig, client, channel = ready()
    do(rig, channel, ConfirmSelect())
    channel.publish("", "nowhere", b"m", Properties(message_id="7"), mandatory=True)
    channel.publish("", "nowhere", b"n")
    rig.rest()
    (returned,) = client.messages()
    assert isinstance(returned.method, BasicReturn)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.body, returned.properties.message_id) == (b"m", "7")
    first = next(one for one in client.events if isinstance(getattr(one, "method", 0), BasicAck))
    assert client.events.index(returned) < client.events.index(first)
    assert channel.counters.unconfirmed == {}


def test_what_no_queue_gets_is_confirmed_before_the_channel_goes_on() -> None:
    """One ack for each, behind its return; measured on 3.10.8 with one segment."""
    rig = Rig091()
    client, channel = rig.channel()
    do(rig, channel, ConfirmSelect())
    before = len(said(rig))
    for mandatory in (True, False, True):
        channel.publish("", "nowhere", b"m", mandatory=mandatory)
    channel.send(BasicQos())
    rig.rest()
    assert client.confirms == [("ack", 1, False), ("ack", 2, False), ("ack", 3, False)]
    assert [one for one in said(rig)[before:] if not one.startswith("content")] == [
        "basic.return 312", "basic.ack", "basic.ack", "basic.return 312", "basic.ack",
        "basic.qos-ok",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("publish", "properties", "scope", "code", "text"),
    [
        ({"immediate": True}, {}, "connection", 540, "immediate=true"),
        ({"exchange": "x"}, {}, "channel", 404, "no exchange 'x'"),
        ({"exchange": "amq.rabbitmq.trace"}, {}, "channel", 403, "internal exchange"),
        ({}, {"expiration": "soon"}, "channel", 406, "invalid expiration"),
        ({}, {"user_id": "eve"}, "channel", 406, "authenticated user was 'guest'"),
        ({}, {"headers": {"CC": "a"}}, "channel", 406, "CC header"),
    ],
    ids=["immediate", "exchange", "internal", "expiration", "user", "cc"],
)
def test_a_message_that_cannot_be_published(publish, properties, scope, code, text) -> None:
    """The code of each, and nothing in the queue."""
    rig, client, channel = ready()
    method = BasicPublish(**{"exchange": "", "routing_key": "q", **publish})
    channel.send_content(method, b"m", Properties(**properties))
    rig.rest()
    assert refusal(client)[:2] == (scope, code)
    assert text in refusal(client)[2]
    assert rig.queue().ready == 0


def test_cc_and_bcc_are_routing_keys_and_bcc_is_not_told() -> None:
    """Three queues get the message, each once."""
    rig, client, channel = ready()
    for name in ("c", "b"):
        do(rig, channel, QueueDeclare(queue=name, durable=True))
    headers = {"CC": ["c", "q"], "BCC": ["b"], "k": 1}
    channel.publish("", "q", b"m", Properties(headers=headers))
    rig.rest()
    assert [rig.queue(name).ready for name in "qcb"] == [1, 1, 1]
    do(rig, channel, BasicGet(queue="q", no_ack=True))
    assert dict(client.messages()[-1].properties.headers) == {"CC": ["c", "q"], "k": 1}


@EVERY_RABBIT
def test_what_is_no_string_among_cc_is_no_routing_key(preset) -> None:
    """`rabbit_basic.erl:header_routes`: the strings count, and the header stays as it came."""
    rig, client, channel = ready(preset=preset)
    headers = {"CC": ["q", 3], "BCC": [None, "q"]}
    channel.publish("", "nowhere", b"m", Properties(headers=headers))
    do(rig, channel, BasicGet(queue="q", no_ack=True))
    assert dict(client.messages()[-1].properties.headers) == {"CC": ["q", 3]}


def test_ttl_priority_and_dead_letters_are_as_for_any_message() -> None:
    """Expired after its own ttl, and told in x-death, without the ttl."""
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    rig, client, channel = ready(arguments={**arguments, "x-max-priority": 5})
    do(rig, channel, QueueDeclare(queue="dead", durable=True))
    channel.publish("", "q", b"old", Properties(expiration="10"))
    rig.rest()
    rig.clock.call_later(20_000, lambda: None)
    rig.rest()
    do(rig, channel, BasicGet(queue="dead", no_ack=True))
    (message,) = client.messages()
    (death,) = message.properties.headers["x-death"]
    assert message.properties.expiration is None
    assert (death["queue"], death["reason"], death["original-expiration"]) == ("q", "expired", "10")
    for priority in (1, 5):
        channel.publish("", "q", b"p%d" % priority, Properties(priority=priority))
    consume(rig, channel)
    assert client.bodies[1:] == [b"p5", b"p1"]


def dead_of(preset: Any, headers: Any, **arguments: str) -> Any:
    """The headers of a message that has died in q, as a consumer of `dead` gets them."""
    names = {f"x-dead-letter-{name.replace('_', '-')}": value for name, value in arguments.items()}
    rig, client, channel = ready(0, preset, {"x-message-ttl": 1, **names})
    do(
        rig,
        channel,
        ExchangeDeclare(exchange="all", type="fanout"),
        QueueDeclare(queue="dead", durable=True),
        QueueBind(queue="dead", exchange="all"),
    )
    channel.publish("", "q", b"m", Properties(headers=headers))
    rig.rest()
    rig.clock.call_later(20_000, lambda: None)
    rig.rest()
    do(rig, channel, BasicGet(queue="dead", no_ack=True))
    return client.messages()[-1].properties.headers


@EVERY_RABBIT
def test_a_death_tells_cc_and_no_bcc(preset) -> None:
    """`mc.erl:record_death`, `rabbit_dead_letter.erl:make_msg`: BCC stays blind."""
    headers = {"CC": ["c"], "BCC": ["b"]}
    for key in ({}, {"routing_key": "k"}):
        (death,) = dead_of(preset, headers, exchange="all", **key)["x-death"]
        assert death["routing-keys"] == ["q", "c"]


@EVERY_RABBIT
def test_a_dead_letter_with_a_key_of_its_queue_s_had_no_cc_in_rabbitmq_3(preset) -> None:
    """`rabbit_dead_letter.erl:make_msg` up to 3.12 takes it off; `mc.erl` leaves it there."""
    headers = {"CC": ["c"]}
    assert dead_of(preset, headers, exchange="all")["CC"] == ["c"]
    told = dead_of(preset, headers, exchange="all", routing_key="k")
    assert ("CC" in told) is (preset in (RMQ40, RMQ43))


@EVERY_RABBIT
def test_the_last_death_has_headers_of_its_own_since_3_13(preset) -> None:
    """`mc.erl:record_death`; the first one's are older."""
    told = dead_of(preset, {}, exchange="all")
    assert told["x-first-death-queue"] == "q"
    assert ("x-last-death-queue" in told) is (preset in (RMQ40, RMQ43))


# -- consuming ------------------------------------------------------------------------------


def streaming(preset: Any = RMQ43, **numbers: Any) -> tuple[Rig091, Any, Any]:
    """A stream with m0, m1 and m2, each two seconds after the one before, and a prefetch of 9."""
    rig, client, channel = ready(0, preset, STREAM, **numbers)
    for number in range(3):
        channel.publish("", "q", b"m%d" % number)
        rig.rest()
        rig.clock.call_later(2_000_000, lambda: None)
        rig.rest()
    do(rig, channel, BasicQos(prefetch_count=9))
    return rig, client, channel


@pytest.mark.parametrize(
    ("offset", "came"),
    [
        ({}, []),
        ({"x-stream-offset": "next"}, []),
        ({"x-stream-offset": "first"}, [0, 1, 2]),
        ({"x-stream-offset": "last"}, [2]),
        ({"x-stream-offset": 1}, [1, 2]),
        ({"x-stream-offset": v091.Long(2)}, [2]),
        ({"x-stream-offset": -1}, [0, 1, 2]),
        ({"x-stream-offset": "5s"}, [1, 2]),
        ({"x-stream-offset": v091.Timestamp(3)}, [2]),
        ({"x-stream-offset": v091.Timestamp(2**63)}, []),
    ],
)
def test_a_stream_is_read_from_where_the_consumer_says(offset, came) -> None:
    """Each message tells its offset, as a long: `rabbit_stream_queue.erl:parse_offset_arg`."""
    rig, client, channel = streaming()
    consume(rig, channel, arguments=offset)
    assert client.bodies == [b"m%d" % number for number in came]
    told = [one.properties.headers["x-stream-offset"] for one in client.messages()]
    assert told == came
    assert {type(one) for one in told} <= {v091.Long}


@pytest.mark.parametrize(
    ("preset", "offset", "scope", "code"),
    [
        (RMQ43, "somewhere", "channel", 406),
        (RMQ43, "0s", "channel", 406),
        (RMQ43, True, "channel", 406),
        (RMQ43, [1], "channel", 406),
        (RMQ43, "9" * 5_000 + "s", "channel", 406),
        (RMQ40, "somewhere", "connection", 541),
    ],
)
def test_an_offset_that_is_no_place_in_a_stream_is_refused(preset, offset, scope, code) -> None:
    """`rabbit_amqqueue.erl:check_stream_offset_arg`; up to 4.1 the channel crashes over it."""
    rig, client, channel = streaming(preset)
    consume(rig, channel, arguments={"x-stream-offset": offset})
    assert refusal(client)[:2] == (scope, code)
    assert "invalid arg 'x-stream-offset' for queue 'q' in vhost '/': " in refusal(client)[2]
    assert rig.queue().consumers() == ()


@pytest.mark.parametrize(
    ("arguments", "refused"), [(SINGLE, False), (QUORUM, False), (QUORUM | SINGLE, True)]
)
def test_a_quorum_queue_with_a_single_active_consumer_is_not_got_from(arguments, refused) -> None:
    """405, whether that consumer is there or not: `rabbit_fifo.erl:apply`, dequeue."""
    rig, client, channel = ready(1, arguments=arguments)
    do(rig, channel, BasicGet(queue="q"))
    assert len(client.methods(BasicGetOk)) == (0 if refused else 1)
    if refused:
        assert refusal(client) == (
            "channel",
            405,
            "RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost '/'. basic.get"
            " operations are not supported by quorum queues with single active consumer",
        )
        assert rig.queue().ready == 1


OFFSET, TIMEOUT = {"x-stream-offset": "first"}, {"x-consumer-timeout": 9}
FAILOVER = "x-cancel-on-ha-failover"


@pytest.mark.parametrize(
    ("preset", "kind", "arguments", "why"),
    [
        (RMQ43, "classic", OFFSET, " of queue type rabbit_classic_queue"),
        (RMQ40, "classic", OFFSET, " of queue type rabbit_classic_queue"),
        (RMQ384, "classic", OFFSET, None),
        (RMQ43, "quorum", {"x-stream-filter": "a"}, " of queue type rabbit_quorum_queue"),
        (RMQ43, "quorum", {"x-stream-offset": "nowhere"}, " of queue type rabbit_quorum_queue"),
        (RMQ43, "stream", {"x-priority": "9"}, " of queue type rabbit_stream_queue"),
        (RMQ384, "stream", {"x-priority": "9"}, ': "expected integer, got longstr"'),
        (RMQ384, "stream", {"x-priority": 9}, None),
        (RMQ43, "quorum", TIMEOUT, None),
        (RMQ43, "quorum", {"x-consumer-timeout": -9}, ": {value_negative,-9}"),
        (RMQ43, "quorum", {"x-consumer-timeout": "9"}, ': "expected integer, got longstr"'),
        (RMQ43, "classic", TIMEOUT, " of queue type rabbit_classic_queue"),
        (RMQ40, "classic", TIMEOUT, None),
        (RMQ384, "quorum", {FAILOVER: True}, None),
        (RMQ384, "quorum", {FAILOVER: "yes"}, ": {unacceptable_type,longstr}"),
        (RMQ355, "classic", {FAILOVER: 1}, ": {unacceptable_type,signedint}"),
        (RMQ40, "classic", {FAILOVER: 1}, None),
        (RMQ43, "classic", {"x-unheard-of": 1}, None),
    ],
)
def test_an_argument_of_a_consumer_is_for_the_types_of_queue_that_know_it(
    preset, kind, arguments, why
) -> None:
    """By version: `rabbit_amqqueue.erl:check_consume_arguments`; up to 3.9 no type is asked."""
    rig, client, channel = ready(preset=preset, arguments={"x-queue-type": kind})
    do(rig, channel, BasicQos(prefetch_count=1))
    consume(rig, channel, arguments=arguments)
    if why is None:
        assert len(rig.queue().consumers()) == 1
    else:
        (name,) = arguments
        told = f"PRECONDITION_FAILED - invalid arg '{name}' for queue 'q' in vhost '/'{why}"
        assert refusal(client) == ("channel", 406, told)
        assert rig.queue().consumers() == ()


GIVING_BACK = pytest.mark.parametrize(
    "method",
    [
        BasicNack(delivery_tag=1, requeue=True),
        BasicNack(delivery_tag=1, requeue=False),
        BasicReject(delivery_tag=1, requeue=True),
    ],
    ids=["requeue", "discard", "reject"],
)


@GIVING_BACK
def test_nack_and_reject_of_a_stream_s_message_are_acknowledgements(method) -> None:
    """Every outcome frees a place of the prefetch and changes nothing else, since 3.13."""
    rig, client, channel = streaming()
    do(rig, channel, BasicQos(prefetch_count=1))
    consume(rig, channel, arguments={"x-stream-offset": "first"})
    do(rig, channel, method)
    assert client.bodies == [b"m0", b"m1"]
    assert rig.queue().ready == 3


@GIVING_BACK
def test_the_first_streams_knew_no_nack_and_no_reject(method) -> None:
    """540, the connection's end: `rabbit_stream_queue.erl:settle`, 3.9 to 3.12."""
    rig, client, channel = streaming(RMQ384)
    consume(rig, channel, arguments={"x-stream-offset": "first"})
    do(rig, channel, BasicAck(delivery_tag=3))
    do(rig, channel, method)
    assert refusal(client)[:2] == ("connection", 540)
    assert "basic.nack and basic.reject not supported by stream queues" in refusal(client)[2]


@KINDS
def test_a33_each_acknowledgement_frees_a_place_of_the_prefetch(arguments) -> None:
    """n acks, n deliveries."""
    rig, client, channel = ready(30, arguments=arguments)
    do(rig, channel, BasicQos(prefetch_count=10))
    consume(rig, channel)
    assert len(client.bodies) == 10
    do(rig, channel, BasicAck(delivery_tag=1))
    assert len(client.bodies) == 11
    do(rig, channel, BasicAck(delivery_tag=7, multiple=True))
    assert len(client.bodies) == 17
    assert client.bodies == [b"m%d" % number for number in range(17)]


@KINDS
@pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda one: one.name)
def test_a11_a_private_prefetch_is_each_consumer_s_own_and_holds_for_those_started_later(
    arguments, preset
) -> None:
    """5 + 5, and 2 for the third, whatever was said after the first two began."""
    rig, client, channel = ready(40, preset, arguments)
    do(rig, channel, BasicQos(prefetch_count=5))
    consume(rig, channel, "a")
    consume(rig, channel, "b")
    do(rig, channel, BasicQos(prefetch_count=2))
    consume(rig, channel, "c")
    tags = [message.method.consumer_tag for message in client.messages()]
    assert {tag: tags.count(tag) for tag in "abc"} == {"a": 5, "b": 5, "c": 2}


def test_a13_a_consumer_of_two_queues_gets_from_both_until_it_cancels_one() -> None:
    """There is no way to hold one back but to cancel."""
    rig, client, channel = ready()
    do(rig, channel, QueueDeclare(queue="p", durable=True))
    consume(rig, channel)
    do(rig, channel, BasicConsume(queue="p", consumer_tag="u"))
    for queue in "qp":
        channel.publish("", queue, queue.encode())
    rig.rest()
    assert sorted(client.bodies) == [b"p", b"q"]
    do(rig, channel, BasicCancel(consumer_tag="t"))
    for queue in "qp":
        channel.publish("", queue, queue.encode())
    rig.rest()
    assert client.bodies[2:] == [b"p"]


def test_a_shared_prefetch_limits_the_channel_s_consumers_together() -> None:
    """Up to 4.2, for classic queues; basic.get is not counted, and a quorum queue refuses it."""
    rig, client, channel = ready(40, RMQ40)
    do(rig, channel, BasicQos(prefetch_count=5, global_=True))
    consume(rig, channel, "a")
    consume(rig, channel, "b")
    assert len(client.bodies) == 5
    do(rig, channel, BasicGet(queue="q"))
    assert len(client.bodies) == 6
    do(rig, channel, BasicAck(delivery_tag=2))
    assert len(client.bodies) == 7
    do(rig, channel, QueueDeclare(queue="quorum", durable=True, arguments=QUORUM))
    do(rig, channel, BasicConsume(queue="quorum"))
    assert refusal(client)[:2] == ("connection", 540)


@pytest.mark.parametrize("preset", [RMQ355, RMQ384, RMQ40], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("asked", "came", "told"),
    [
        ([(2, False), (5, True)], 2, (2, 2, 3)),
        ([(5, False), (2, True)], 2, (2, 2, 0)),
        ([(5, True), (2, False)], 2, (2, 2, 3)),
        ([(0, False), (3, True)], 3, (3, 3, 0)),
    ],
)
def test_a_consumer_s_own_prefetch_holds_beside_the_shared_one(preset, asked, came, told) -> None:
    """Whichever leaves it less; what a shared one leaves is told beside it, while there is one."""
    rig, client, channel = ready(40, preset)
    do(rig, channel, *[BasicQos(prefetch_count=most, global_=shared) for most, shared in asked])
    consume(rig, channel, "a")
    assert len(client.bodies) == came
    ends = {"client": client, "broker": rig.ends["c1"]}
    for name, end in ends.items():
        # Since 3.6.11 one that is not global ends the shared one; a client takes it so anyway.
        lasts = asked[-1][1] or (name == "broker" and preset is RMQ355)
        ledger = end.amqp.channels[1].counters.ledger("a")
        assert tuple(ledger.values()) == (told if lasts else told[:2])


@pytest.mark.parametrize(
    ("preset", "came"), [(RMQ355, 2), (RMQ384, 5), (RMQ40, 5)], ids=lambda one: str(one)[:8]
)
def test_a_prefetch_that_is_not_global_ends_the_shared_one_since_3_6_11(preset, came) -> None:
    """`rabbit_channel.erl`; measured on 3.10.8."""
    rig, client, channel = ready(40, preset)
    do(rig, channel, BasicQos(prefetch_count=2, global_=True), BasicQos(prefetch_count=5))
    consume(rig, channel, "a")
    assert len(client.bodies) == came
    books = (rig.ends["c1"].amqp.channels[1].counters, client.amqp.channels[1].counters)
    # What a client has asked for does not tell it which release it talks to.
    for counters in books if preset is not RMQ355 else books[:1]:
        told = (came, came, 0) if preset is RMQ355 else (came, came)
        assert tuple(counters.ledger("a").values()) == told


@pytest.mark.parametrize("preset", [RMQ355, RMQ384, RMQ40], ids=lambda one: one.name)
def test_what_a_get_holds_counts_for_a_shared_prefetch_that_is_set_later(preset) -> None:
    """And goes on to, acknowledged or not: `rabbit_limiter.erl`; measured on 3.10.8."""
    rig, client, channel = ready(40, preset)
    do(rig, channel, BasicGet(queue="q"), BasicQos(prefetch_count=2, global_=True))
    consume(rig, channel, "a")
    assert len(client.bodies) == 2
    do(rig, channel, BasicAck(delivery_tag=1))
    assert len(client.bodies) == 2
    do(rig, channel, BasicAck(delivery_tag=2))
    assert len(client.bodies) == 3
    do(rig, channel, BasicQos(prefetch_count=0, global_=True))
    do(rig, channel, BasicQos(prefetch_count=2, global_=True))
    assert len(client.bodies) == 40


@KINDS
def test_a_shared_prefetch_is_taken_for_a_private_one_by_4_3(arguments) -> None:
    """Answered, and then applied per consumer: 5 + 5, measured on 4.3.6."""
    rig, client, channel = ready(40, RMQ43, arguments)
    do(rig, channel, BasicQos(prefetch_count=5, global_=True))
    consume(rig, channel, "a")
    consume(rig, channel, "b")
    assert len(client.bodies) == 10


@pytest.mark.parametrize(
    ("preset", "came"),
    [(RMQ355, 23), (RMQ384, 23), (RMQ40, 21), (RMQ43, 23)],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_quorum_queue_has_a_delivery_limit_of_20_by_itself_since_4_0(preset, came) -> None:
    """`rabbit_quorum_queue.erl`: DEFAULT_DELIVERY_LIMIT. In 4.3 a nack is no failure, measured."""
    rig, client, channel = ready(1, preset, QUORUM)
    consume(rig, channel)
    for tag in range(1, 23):
        do(rig, channel, *[BasicNack(delivery_tag=tag, requeue=True)] * (tag <= len(client.bodies)))
    assert len(client.bodies) == came


@pytest.mark.parametrize(
    ("arguments", "came"), [({}, 2_010), (QUORUM, 2_000)], ids=["classic", "quorum"]
)
def test_without_a_prefetch_a_quorum_queue_holds_back_beyond_2000(arguments, came) -> None:
    """`rabbit_fifo_client.erl`: UNLIMITED_PREFETCH_COUNT; a classic queue has no limit at all."""
    rig, client, channel = ready(2_010, arguments=arguments)
    consume(rig, channel)
    assert len(client.bodies) == came
    do(rig, channel, BasicAck(delivery_tag=7, multiple=True))
    assert len(client.bodies) == min(came + 7, 2_010)


def test_b19_without_acknowledgements_no_prefetch_holds_a_consumer() -> None:
    """Everything comes; what TCP does not take waits in the queue, but for 200 a channel."""
    rig, client, channel = ready(600, capacity=None)
    do(rig, channel, BasicQos(prefetch_count=5))
    end = rig.ends["c1"]
    end.writable = False
    consume(rig, channel, no_ack=True)
    assert (len(client.bodies), rig.queue().ready) == (0, 400)
    end.writable = True
    end.kick()
    rig.rest()
    assert (len(client.bodies), rig.queue().ready) == (600, 0)


@KINDS
def test_cancelling_requeues_nothing(arguments) -> None:
    """What was delivered stays the channel's, which may settle it; nothing more comes."""
    rig, client, channel = ready(10, arguments=arguments)
    do(rig, channel, BasicQos(prefetch_count=4))
    consume(rig, channel)
    do(rig, channel, BasicCancel(consumer_tag="t"))
    assert len(client.methods(BasicCancelOk)) == 1
    assert (rig.queue().ready, rig.queue().unsettled) == (6, 4)
    do(rig, channel, BasicAck(delivery_tag=2, multiple=True))
    do(rig, channel, BasicNack(delivery_tag=3, requeue=True))
    assert (rig.queue().ready, rig.queue().unsettled, len(client.bodies)) == (7, 1, 4)
    do(rig, channel, QueueDeclare(queue="q", passive=True))
    held = client.methods(QueueDeclareOk)[-1].consumer_count
    assert held == (1 if arguments else 0)  # a quorum queue counts those that hold something
    channel.close()
    rig.rest()
    assert (rig.queue().ready, rig.queue().unsettled) == (8, 0)


def two_consumers(arguments: Any) -> tuple[Rig091, Any, Any, Any]:
    """A single active consumer that holds m0 to m4, and another that waits."""
    terms = {**arguments, "x-single-active-consumer": True}
    rig, client, channel = ready(11, arguments=terms)
    do(rig, channel, BasicQos(prefetch_count=5))
    consume(rig, channel)
    other, second = rig.channel("c2")
    do(rig, second, BasicQos(prefetch_count=100))
    consume(rig, second, "u")
    assert (len(client.bodies), len(other.bodies)) == (5, 0)
    return rig, client, channel, other


@KINDS
def test_a51_a_cancel_hands_over_without_order(arguments) -> None:
    """The next consumer gets m5 to m10, and then what the first one held."""
    rig, _, channel, other = two_consumers(arguments)
    do(rig, channel, BasicCancel(consumer_tag="t"))
    assert other.bodies == [b"m%d" % number for number in range(5, 11)]
    channel.close()
    rig.rest()
    assert other.bodies[6:] == [b"m%d" % number for number in range(5)]


@KINDS
def test_a52_a_closed_channel_hands_over_in_order(arguments) -> None:
    """Without a cancel before: m0 to m10."""
    rig, _, channel, other = two_consumers(arguments)
    channel.close()
    rig.rest()
    assert other.bodies == [b"m%d" % number for number in range(11)]


@KINDS
def test_get_brings_one_message_and_takes_an_acknowledgement(arguments) -> None:
    """Until then it is unsettled; requeued it comes again, and is said to."""
    rig, client, channel = ready(2, arguments=arguments)
    do(rig, channel, BasicGet(queue="q"))
    assert (client.bodies, rig.queue().unsettled) == ([b"m0"], 1)
    do(rig, channel, BasicReject(delivery_tag=1, requeue=True))
    assert (rig.queue().ready, rig.queue().unsettled) == (2, 0)
    do(rig, channel, BasicGet(queue="q", no_ack=True))
    assert client.bodies[-1] == b"m0" and client.messages()[-1].method.redelivered
    do(rig, channel, BasicGet(queue="q"), BasicGet(queue="q"))
    assert client.bodies[-1] == b"m1"
    assert len(client.methods(BasicGetEmpty)) == 1
    do(rig, channel, BasicAck(delivery_tag=0, multiple=True))
    assert (rig.queue().ready, rig.queue().unsettled) == (0, 0)


@KINDS
def test_nack_reject_and_recover_give_back_or_throw_away(arguments) -> None:
    """Multiple too; recover gives back all."""
    rig, client, channel = ready(4, arguments=arguments)
    consume(rig, channel)
    do(rig, channel, BasicNack(delivery_tag=2, multiple=True, requeue=False))
    assert (rig.queue().ready, rig.queue().unsettled) == (0, 2)
    do(rig, channel, BasicRecover(requeue=True))
    assert client.bodies[4:] == [b"m2", b"m3"]
    assert all(one.method.redelivered for one in client.messages()[4:])
    do(rig, channel, BasicReject(delivery_tag=5, requeue=False))
    assert (rig.queue().ready, rig.queue().unsettled) == (0, 1)


@pytest.mark.parametrize(
    ("preset", "method", "told"),
    [
        (RMQ384, BasicNack(delivery_tag=1, requeue=True), {"x-delivery-count": 1}),
        (RMQ40, BasicNack(delivery_tag=1, requeue=True), {"x-delivery-count": 1}),
        (RMQ43, BasicNack(delivery_tag=1, requeue=True), {"x-acquired-count": 1}),
        (
            RMQ43, BasicReject(delivery_tag=1, requeue=True),
            {"x-acquired-count": 1, "x-delivery-count": 1},
        ),
    ],
    ids=lambda one: getattr(one, "name", getattr(one, "NAME", None)),
)  # fmt: skip
def test_a_quorum_queue_tells_how_often_a_message_came_before(preset, method, told) -> None:
    """Since 4.3 failures apart: `rabbit_fifo_client.erl:add_delivery_count_header`."""
    rig, client, channel = ready(1, preset, arguments=QUORUM)
    consume(rig, channel)
    do(rig, channel, method)
    first, again = [one.properties.headers or {} for one in client.messages()]
    assert (first, again) == ({}, told)
    assert {type(one) for one in again.values()} == {v091.Long}


@pytest.mark.parametrize(
    ("preset", "none"), [(RMQ384, {"x-delivery-count": 0}), (RMQ40, {}), (RMQ43, {})]
)
def test_a_get_from_a_quorum_queue_told_of_no_attempts_up_to_3_13(preset, none) -> None:
    """`rabbit_quorum_queue.erl:basic_get`; measured on 3.10.8. A classic queue tells nothing."""
    rig, client, channel = ready(1, preset, arguments=QUORUM)
    channel.publish("", "q", properties=Properties(headers={"x-delivery-count": 7}))
    channel.send(QueueDeclare(queue="classic", durable=True))
    channel.publish("", "classic")
    do(rig, channel, *(BasicGet(queue=name) for name in ("q", "q", "classic")))
    headers = [one.properties.headers or {} for one in client.messages()]
    assert headers == [none, none or {"x-delivery-count": 7}, {}]


def test_priorities_decide_which_consumer_is_served() -> None:
    """The one with the higher priority has all while its prefetch lasts."""
    rig, client, channel = ready()
    do(rig, channel, BasicQos(prefetch_count=3))
    consume(rig, channel, "low")
    consume(rig, channel, "high", arguments={"x-priority": 10})
    for number in range(5):
        channel.publish("", "q", b"%d" % number)
    rig.rest()
    tags = [message.method.consumer_tag for message in client.messages()]
    assert tags == ["high"] * 3 + ["low"] * 2


@pytest.mark.parametrize("preset", ["spec", "rmq4.3"])
def test_a_client_s_channel_flow_is_answered_by_version(preset) -> None:
    """True is answered by all; false pauses deliveries up to 3.2.4 and in the specification."""
    rig, client, channel = ready(3, preset_of(preset))
    do(rig, channel, ChannelFlow(active=True))
    assert [method.active for method in client.methods(ChannelFlowOk)] == [True]
    if preset == "spec":
        do(rig, channel, ChannelFlow(active=False))
        consume(rig, channel)
        assert client.bodies == []
        do(rig, channel, ChannelFlow(active=True))
        assert len(client.bodies) == 3


# -- transactions ---------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [[], ["nowhere"], ["q"]], ids=["none", "unroutable", "routed"])
@EVERY_RABBIT
def test_a_commit_that_waits_for_no_queue_is_answered_at_once(preset, keys) -> None:
    """What comes right behind it is obeyed, else refused: `maybe_complete_tx`; so 3.10.8."""
    rig, _, channel = ready(1, preset, channel_us=10)
    do(rig, channel, TxSelect(), BasicGet(queue="q"), BasicAck(delivery_tag=1))
    before = len(said(rig))
    for key in keys:
        channel.publish("", key)
    do(rig, channel, TxCommit(), BasicQos())
    answers = ["connection.close 504"] if "q" in keys else ["tx.commit-ok", "basic.qos-ok"]
    assert said(rig)[before:] == answers


def test_a_transaction_takes_effect_at_its_commit() -> None:
    """Publishes and acknowledgements; a rollback undoes both."""
    rig, client, channel = ready(2)
    do(rig, channel, TxSelect())
    consume(rig, channel)
    channel.publish("", "q", b"new")
    do(rig, channel, BasicAck(delivery_tag=1))
    assert (rig.queue().ready, rig.queue().unsettled) == (0, 2)
    do(rig, channel, TxRollback())
    do(rig, channel, BasicAck(delivery_tag=1))  # it is unacknowledged again
    channel.publish("", "q", b"newer")
    do(rig, channel, TxCommit())
    assert len(client.methods(TxCommitOk)) == 1
    assert client.bodies == [b"m0", b"m1", b"newer"]
    assert rig.queue().unsettled == 2
    do(rig, channel, ConfirmSelect())
    assert refusal(client)[:2] == ("channel", 406)


@pytest.mark.parametrize("shared", [False, True])
def test_a_prefetch_is_used_up_until_a_transaction_is_committed(shared) -> None:
    """`rabbit_channel.erl:settle_acks` tells queues and limiter at the commit; so 3.10.8."""
    rig, client, channel = ready(3, RMQ40)
    do(rig, channel, BasicQos(prefetch_count=1, global_=shared), TxSelect())
    consume(rig, channel)
    for method, bodies in (
        (BasicAck(delivery_tag=1), 1), (TxRollback(), 1), (BasicAck(delivery_tag=1), 1),
        (TxCommit(), 2), (BasicAck(delivery_tag=2), 2), (TxCommit(), 3),
    ):  # fmt: skip
        do(rig, channel, method)
        assert len(client.bodies) == bodies, method


def test_a_shared_prefetch_is_used_up_for_new_consumers_too_until_the_commit() -> None:
    """What is acknowledged in a transaction still counts."""
    rig, client, channel = ready(3, RMQ40)
    do(rig, channel, BasicQos(prefetch_count=1, global_=True), TxSelect())
    consume(rig, channel)
    do(rig, channel, BasicAck(delivery_tag=1), BasicConsume(queue="q", consumer_tag="new"))
    assert len(client.bodies) == 1
    do(rig, channel, TxCommit())
    assert len(client.bodies) == 2


# -- direct reply-to ------------------------------------------------------------------------

REPLY_TO = "amq.rabbitmq.reply-to"


def asking(**terms: Any) -> tuple[Rig091, Any, Any]:
    """A client whose channel waits for replies, and the queue of a server."""
    rig, client, channel = ready()
    do(rig, channel, BasicConsume(queue=REPLY_TO, consumer_tag="r", no_ack=True, **terms))
    channel.publish("", "q", b"request", Properties(reply_to=REPLY_TO, correlation_id="1"))
    rig.rest()
    return rig, client, channel


def test_a_reply_comes_to_the_channel_that_has_asked() -> None:
    """Without a queue that the client has declared; by the address that the server is given."""
    rig, client, channel = asking()
    server, serving = rig.channel("c2")
    consume(rig, serving, no_ack=True)
    (request,) = server.messages()
    address = request.properties.reply_to
    assert address.startswith(f"{REPLY_TO}.")
    do(rig, serving, QueueDeclare(queue=address, passive=True), QueueDeclare(queue=address))
    assert [(one.queue, one.message_count, one.consumer_count) for one in server.methods(
        QueueDeclareOk
    )] == [(address, 0, 1)] * 2  # fmt: skip
    serving.publish("", address, b"reply", Properties(correlation_id="1"), mandatory=True)
    rig.rest()
    (reply,) = client.messages()
    assert (reply.body, reply.properties.correlation_id) == (b"reply", "1")
    told = reply.method
    assert (told.consumer_tag, told.exchange, told.routing_key) == ("r", "", address)
    assert channel.counters.unacked == {} and server.methods(BasicReturn) == []


@pytest.mark.parametrize("end", ["cancel", "channel", "connection"])
def test_no_reply_comes_to_who_is_no_longer_there(end) -> None:
    """A mandatory one comes back, and its address is not found; the channel may wait anew."""
    rig, client, channel = asking()
    server, serving = rig.channel("c2")
    consume(rig, serving, no_ack=True)
    address = server.messages()[0].properties.reply_to
    if end == "cancel":
        do(rig, channel, BasicCancel(consumer_tag="r"))
        assert client.methods(BasicCancelOk) != []
    else:
        (channel if end == "channel" else client.amqp).close()
    rig.rest()
    serving.publish("", address, b"reply", mandatory=True)
    rig.rest()
    assert [one.reply_code for one in server.methods(BasicReturn)] == [312]
    do(rig, serving, QueueDeclare(queue=address, passive=True))
    assert refusal(server)[:2] == ("channel", 404)
    assert list(rig.broker.queues) == ["q"]
    if end == "cancel":
        do(rig, channel, BasicConsume(queue=REPLY_TO, consumer_tag="r", no_ack=True))
        assert len(client.methods(BasicConsumeOk)) == 2
        assert address not in rig.broker.queues  # what comes late is for nobody


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        (BasicConsume(queue=REPLY_TO), 406, "reply consumer cannot acknowledge"),
        (BasicConsume(queue=REPLY_TO, no_ack=True), 406, "reply consumer already set"),
        (BasicGet(queue=REPLY_TO), 404, f"no queue '{REPLY_TO}' in vhost '/'"),
    ],
)
def test_replies_are_consumed_once_and_without_acknowledgement(method, code, text) -> None:
    """In RabbitMQ's words, measured on 3.10.8."""
    rig, client, channel = asking()
    do(rig, channel, method)
    assert refusal(client)[:2] == ("channel", code)
    assert refusal(client)[2].endswith(text)


def test_who_waits_for_no_reply_can_ask_for_none() -> None:
    """406; whether the name is known can be asked by anybody."""
    rig, client, channel = ready()
    do(rig, channel, QueueDeclare(queue=REPLY_TO, passive=True))
    assert client.methods(QueueDeclareOk)[-1].consumer_count == 1
    channel.publish("", "q", b"request", Properties(reply_to=REPLY_TO))
    rig.rest()
    assert refusal(client) == (
        "channel", 406, "PRECONDITION_FAILED - fast reply consumer does not exist"
    )  # fmt: skip
    assert rig.queue().ready == 0


# -- connections ----------------------------------------------------------------------------


def test_a_wrong_password_is_told_to_a_client_that_understands() -> None:
    """403 of the connection; otherwise TCP ends without a word."""
    rig = Rig091()
    client = rig.connect("c1", response=b"\0guest\0wrong")
    assert refusal(client)[:2] == ("connection", 403)
    silent = rig.connect("c2", response=b"\0guest\0wrong", properties={})
    assert silent.methods(ConnectionClose) == []
    assert rig.ends["c2"].amqp.ended


@pytest.mark.parametrize(
    ("preset", "told"),
    [(RMQ355, False), (RMQ384, True), (RMQ40, True), (RMQ43, True), (preset_of("spec"), True)],
    ids=lambda one: getattr(one, "name", None),
)
def test_a_virtual_host_that_is_not_there_is_told_by_version(preset, told) -> None:
    """530 of the connection, measured on 3.10.8; before, TCP ended without a word."""
    rig = Rig091(preset)
    client = rig.connect(virtual_host="other")
    closes = client.methods(ConnectionClose)
    assert [(one.reply_code, one.reply_text) for one in closes] == (
        [(530, "NOT_ALLOWED - vhost other not found")] if told else []
    )
    assert rig.ends["c1"].amqp.ended


def test_closing_the_connection_works_off_what_was_published_before() -> None:
    """Channels finish first; then the answer comes, and exclusive queues go."""
    rig, client, channel = ready(channel_us=100)
    for _ in range(20):
        channel.publish("", "q", b"m")
    client.amqp.close()
    rig.rest()
    assert rig.queue().ready == 20
    assert client.amqp.ended and rig.ends["c1"].amqp.ended


@pytest.mark.parametrize(
    ("methods", "answers", "left"),
    [
        ([BasicAck(delivery_tag=1)], [], 0),
        ([BasicAck(delivery_tag=0, multiple=True)], [], 0),
        ([BasicReject(delivery_tag=1, requeue=True)], [], 1),
        ([BasicRecover(requeue=True)], ["basic.recover-ok"], 1),
        ([BasicAck(delivery_tag=1)] * 2, ["channel.close 406"], 0),
        ([BasicAck(delivery_tag=2)], ["channel.close 406"], 1),
        (
            [TxSelect(), BasicAck(delivery_tag=1), TxRollback(), BasicAck(delivery_tag=1)],
            ["tx.select-ok", "tx.rollback-ok"], 1,
        ),
        (
            [TxSelect(), BasicAck(delivery_tag=1), TxRollback(), BasicNack(), TxCommit()],
            ["tx.select-ok", "tx.rollback-ok", "channel.close 406"], 1,
        ),
        (
            [TxSelect(), BasicAck(delivery_tag=1), TxCommit()],
            ["tx.select-ok", "tx.commit-ok"], 0,
        ),
    ],
    ids=[
        "ack", "ack of all", "reject", "recover", "ack twice", "ack of another", "rolled back",
        "fails in a transaction", "committed",
    ],
)  # fmt: skip
@pytest.mark.parametrize("preset", [RMQ384, RMQ43, preset_of("spec")], ids=lambda one: one.name)
def test_a_delivery_may_be_settled_right_behind_its_get(preset, methods, answers, left) -> None:
    """A channel is sequential [4.7]: what names a delivery is judged when the get was answered."""
    rig, _, channel = ready(1, preset, channel_us=10)
    before = len(said(rig))
    do(rig, channel, BasicGet(queue="q"), *methods)
    assert said(rig)[before : before + 3] == ["basic.get-ok", "content-header", "content-body"]
    assert said(rig)[before + 3 :] == answers
    if channel.opened:
        channel.close()
        rig.rest()
    assert rig.queue().ready == left


def test_what_is_settled_behind_a_get_waits_for_nothing_more() -> None:
    """Both ends have it off their books, and the next tag is judged as it is read."""
    rig, _, channel = ready(2, channel_us=10)
    do(rig, channel, BasicGet(queue="q"), BasicAck(delivery_tag=1), BasicGet(queue="q"))
    server = rig.ends["c1"].amqp.channels[channel.number]
    for end in (channel, server):
        assert list(end.counters.unacked) == [2]
    do(rig, channel, BasicAck(delivery_tag=2))
    assert rig.queue().ready == 0
    assert channel.counters.unacked == server.counters.unacked == {}


@pytest.mark.parametrize("closes", ["channel", "connection"])
@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (QueueDeclare(queue="q", durable=True), "queue.declare-ok"),
        (BasicAck(delivery_tag=99), "channel.close 406"),
        (QueueDeclare(queue="absent", passive=True), "channel.close 404"),
        (TxCommit(), "channel.close 406"),
    ],
    ids=["what can be done", "an unknown tag", "an absent queue", "no transaction"],
)
@pytest.mark.parametrize("preset", [RMQ384, RMQ43, preset_of("spec")], ids=lambda one: one.name)
def test_a_close_is_answered_behind_what_came_before_it(preset, method, answer, closes) -> None:
    """Read long before the channel comes to either; so RabbitMQ 3.10.8 answers one segment."""
    rig = Rig091(preset, channel_us=10)
    client, channel = rig.channel()
    before = len(said(rig))
    channel.send(method)
    (channel if closes == "channel" else client.amqp).close()
    rig.rest()
    assert said(rig)[before:] == [answer, f"{closes}.close-ok"]
    if closes == "channel":
        assert rig.open(client).number == channel.number
    else:
        assert client.amqp.ended and rig.ends["c1"].amqp.ended


def test_every_close_on_its_way_is_answered_by_a_channel_that_fails() -> None:
    """The channel's and the connection's; another channel finishes first, too."""
    rig = Rig091(channel_us=10)
    client, channel = rig.channel()
    other = rig.open(client)
    before = len(said(rig))
    other.send(QueueDeclare(queue="q", durable=True))
    channel.send(TxCommit())
    channel.close()
    client.amqp.close()
    rig.rest()
    assert sorted(said(rig)[before:-1]) == [
        "channel.close 406", "channel.close-ok", "queue.declare-ok",
    ]  # fmt: skip
    assert said(rig)[-1] == "connection.close-ok"


WRONG_FOR_ITS_CHANNEL = pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (Frame(1, BasicQos(prefetch_size=1)), 540),
        (Frame(1, ChannelOpen()), 504),
        (Frame(1, BasicQosOk()), 503),
        (Frame(2, BasicQos()), 504),
        (Frame(2, ChannelClose()), 504),
    ],
    ids=[
        "what is not implemented", "a second open", "what a broker sends",
        "a channel that was never opened", "a close of one that was never opened",
    ],
)  # fmt: skip


@WRONG_FOR_ITS_CHANNEL
def test_who_closes_the_connection_hears_why_it_would_have_ended(wrong, code) -> None:
    """Instead of close-ok: `rabbit_reader.erl:handle_exception`, `closing`; measured on 3.10.8."""
    rig = Rig091(channel_us=10)
    client, channel = rig.channel()
    do(rig, channel, QueueDeclare(queue="mine", exclusive=True))
    before = len(said(rig))
    client.amqp.emit_frame(wrong)
    client.amqp.close()
    rig.rest()
    assert said(rig)[before:] == [f"connection.close {code}"]
    assert rig.ends["c1"].amqp.ended  # the client has answered
    assert "mine" not in rig.broker.queues


@WRONG_FOR_ITS_CHANNEL
def test_what_a_channel_finds_wrong_comes_behind_what_it_has_to_do(wrong, code) -> None:
    """The channel's process finds it, and not the reader: measured on 3.10.8."""
    rig = Rig091(channel_us=10)
    client, channel = rig.channel()
    before = len(said(rig))
    channel.send(QueueDeclare(queue="q", durable=True))
    client.amqp.emit_frame(wrong)
    rig.rest()
    assert said(rig)[before:] == ["queue.declare-ok", f"connection.close {code}"]


@pytest.mark.parametrize(
    ("behind", "answers"),
    [
        ([Frame(1, BasicQos()), Frame(1, QueueDeclare(queue="q"))], ["channel.close-ok"]),
        ([Frame(1, ChannelClose())], ["channel.close-ok"] * 2),
        ([Frame(1, ChannelClose()), Frame(1, BasicQos())] * 2, ["channel.close-ok"] * 3),
        ([Frame(1, BasicQos()), Frame(1, ChannelOpen())], ["connection.close 504"]),
        ([Frame(1, b"a body of nothing")], ["connection.close 505"]),
    ],
    ids=["methods", "a close", "closes and methods", "an open", "a body of nothing"],
)
def test_what_comes_behind_a_close_of_a_channel_that_is_not_answered(behind, answers) -> None:
    """Each close has its answer, an open is too early, methods are not looked at.

    `rabbit_channel.erl`, `closing`; measured on 3.10.8.
    """
    rig = Rig091(channel_us=10)
    client, channel = rig.channel()
    before = len(said(rig))
    channel.close()
    for frame in behind:
        client.amqp.emit_frame(frame)
    client.writable = False  # it answers nothing more
    rig.rest()
    assert said(rig)[before:] == answers


@pytest.mark.parametrize("preset", [RMQ384, RMQ43], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("behind", "answers"),
    [
        ([], []),
        ([Frame(1, ChannelOpen())], ["channel.open-ok"]),
        ([Frame(1, ChannelClose())], ["connection.close 504"]),
        ([Frame(1, BasicQos())], ["connection.close 504"]),
    ],
    ids=["nothing", "an open", "a close", "a method"],
)
@pytest.mark.parametrize(
    ("before", "first"),
    [
        ([], []),
        ([Frame(1, BasicQos())], ["basic.qos-ok"]),
        ([Frame(1, BasicAck(delivery_tag=9))], ["channel.close 406", "channel.close-ok"]),
    ],
    ids=["nothing", "a method", "an error"],
)
def test_a_close_ok_behind_a_close_ends_the_channel_without_an_answer(
    preset, before, first, behind, answers
) -> None:
    """Unless an error has ended it; its number is free at once. Measured on 3.10.8.

    `rabbit_reader.erl:post_process_frame`, `rabbit_channel.erl:handle_method`, `closing`.
    """
    rig = Rig091(preset, channel_us=10)
    client, _ = rig.channel()
    said_before = len(said(rig))
    for frame in [*before, Frame(1, ChannelClose()), Frame(1, ChannelCloseOk()), *behind]:
        client.wire.send(client, frame)
    client.writable = False  # it answers nothing
    rig.rest()
    assert sorted(said(rig)[said_before:]) == sorted([*first, *answers])


def test_every_close_of_the_connection_is_answered() -> None:
    """The later ones at once (`rabbit_reader.erl:handle_method0`, `IS_STOPPING`)."""
    rig = Rig091(channel_us=10)
    client, channel = rig.channel()
    before = len(said(rig))
    channel.send(QueueDeclare(queue="q", durable=True))
    for _ in range(3):
        client.amqp.emit_frame(Frame(0, ConnectionClose()))
    client.writable = False
    rig.rest()
    assert said(rig)[before:] == [
        "connection.close-ok", "connection.close-ok", "queue.declare-ok", "connection.close-ok",
    ]  # fmt: skip
    assert rig.ends["c1"].amqp.ended
    client.wire.send(client, Frame(0, ConnectionClose()))
    rig.rest()
    assert said(rig)[-2:] == ["connection.close-ok"] * 2  # behind the first one's answer, too


@pytest.mark.parametrize("reader_us", [0, 10])
def test_a_close_behind_an_error_of_the_connection_is_answered(reader_us) -> None:
    """In one segment: the reader reads on, and of what comes it answers a close alone."""
    rig = Rig091(reader_us=reader_us)
    client, channel = rig.channel()
    do(rig, channel, QueueDeclare(queue="mine", exclusive=True))
    before = len(said(rig))
    client.amqp.emit_frame(Frame(1, b"a body of nothing"))
    channel.send(QueueDeclare(queue="other"))
    client.amqp.close()
    rig.rest()
    assert said(rig)[before:] == ["connection.close 505", "connection.close-ok"]
    assert rig.ends["c1"].amqp.ended
    assert rig.broker.queues == {}


def test_an_error_of_the_connection_ends_its_channels_at_once() -> None:
    """Whether its client answers or not: what they hold is for others."""
    rig, client, channel = ready(2)
    consume(rig, channel)
    client.writable = False
    channel.send(BasicQos(prefetch_size=1))
    client.wire.send(client, client.waiting.pop())
    rig.rest()
    assert refusal(client)[:2] == ("connection", 540)
    assert client.waiting != []  # its close-ok
    assert rig.queue().ready == 2 and rig.queue().consumers() == ()


def test_what_a_queue_is_asked_comes_after_what_was_published_before() -> None:
    """get, purge and delete call the queue's process: the channel does nothing until it answers."""
    rig = Rig091(queue_enqueue_us=500)
    client, channel = rig.channel()
    channel.send(QueueDeclare(queue="q", durable=True))
    for body in (b"1", b"2", b"3"):
        channel.publish("", "q", body)
    channel.send(BasicGet(queue="q", no_ack=True))
    channel.send(BasicQos(prefetch_count=1))
    channel.publish("", "q", b"4")
    channel.send(QueuePurge(queue="q"))
    channel.publish("", "q", b"5")
    channel.send(QueueDelete(queue="q"))
    channel.send(BasicGet(queue="q"))
    rig.rest()
    purged, deleted = client.methods(QueuePurgeOk, QueueDeleteOk)
    assert client.bodies == [b"1"]
    assert (purged.message_count, deleted.message_count) == (3, 1)
    kinds = [type(event.method) for event in client.events[-5:]]
    assert kinds == [BasicGetOk, BasicQosOk, QueuePurgeOk, QueueDeleteOk, ChannelClose]


def test_a_channel_whose_queue_is_deleted_while_it_asks_goes_on() -> None:
    """404, and the connection's other channels are not concerned."""
    rig = Rig091()
    client, channel = rig.channel()
    other = rig.open(client)
    channel.send(QueueDeclare(queue="q", durable=True))
    rig.rest()
    rig.broker.queues["q"].stall()
    channel.publish("", "q", b"1")
    channel.send(BasicGet(queue="q"))
    rig.rest()
    assert client.methods(BasicGetEmpty, BasicGetOk) == []
    rig.broker.vhost.delete("q")
    other.send(QueueDeclare(queue="other", durable=True))
    rig.rest()
    (close,) = client.methods(ChannelClose)
    assert close.reply_text == "NOT_FOUND - no queue 'q' in vhost '/'"
    assert other.opened


@pytest.mark.parametrize("no_ack", [False, True])
@KINDS
def test_a_channel_may_close_right_behind_a_cancel(arguments, no_ack) -> None:
    """What was handed out meanwhile goes back, once."""
    rig = Rig091(channel_us=100)
    client, channel = rig.channel()
    channel.send(QueueDeclare(queue="q", durable=True, arguments=arguments))
    for body in (b"1", b"2"):
        channel.publish("", "q", body)
    rig.rest()
    channel.send(BasicConsume(queue="q", consumer_tag="t", no_ack=no_ack))
    channel.send(BasicCancel(consumer_tag="t"))
    channel.close()
    rig.rest()
    assert channel.state is ChannelState.CLOSED
    seen = len(client.bodies)
    assert rig.queue().ready == (2 - seen if no_ack else 2)
    assert rig.queue().consumers() == ()


@pytest.mark.parametrize(
    ("cancelled", "consumed", "answers"),
    [
        ({}, {}, ["cancel-ok", "consume-ok"]),
        ({"nowait": True}, {}, ["consume-ok"]),
        ({}, {"nowait": True}, ["cancel-ok"]),
        ({"nowait": True}, {"nowait": True}, []),
    ],
    ids=["both are answered", "the consume", "the cancel", "neither"],
)
@pytest.mark.parametrize("queue", ["q", "r"])
@KINDS
def test_a_tag_is_free_right_behind_its_cancel(
    arguments, queue, cancelled, consumed, answers
) -> None:
    """The answers come in order; what comes bears the tag of the new consumer, until its cancel."""
    rig, client, channel = ready(1, arguments=arguments, channel_us=100)
    do(rig, channel, QueueDeclare(queue="r", durable=True))
    consume(rig, channel)
    do(
        rig,
        channel,
        BasicCancel(consumer_tag="t", **cancelled),
        BasicConsume(queue=queue, consumer_tag="t", **consumed),
    )
    told = client.methods(BasicCancelOk, BasicConsumeOk)
    assert [one.NAME.partition(".")[2] for one in told] == ["consume-ok", *answers]
    for name in ("q", "r"):
        channel.publish("", name, name.encode())
    rig.rest()
    assert client.bodies == [b"m0", queue.encode()]
    server = rig.ends["c1"].amqp.channels[1]
    assert channel.counters.consumers == server.counters.consumers
    assert channel.counters.consumers["t"].queue == queue
    do(rig, channel, BasicCancel(consumer_tag="t"))
    assert channel.counters.consumers == server.counters.consumers == {}


def test_a_tag_is_used_once() -> None:
    """530 of the connection."""
    rig, client, channel = ready()
    do(rig, channel, *[BasicConsume(queue="q", consumer_tag="t")] * 2)
    assert refusal(client) == (
        "connection",
        530,
        "NOT_ALLOWED - attempt to reuse consumer tag 't'",
    )


@pytest.mark.parametrize(
    ("preset", "close"),
    [
        (RMQ355, "connection.close 503"),
        (RMQ384, "connection.close 503"),
        (RMQ40, "channel.close 406"),
        (RMQ43, "channel.close 406"),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_an_exchange_of_a_type_that_nobody_has_is_refused_by_version(preset, close) -> None:
    """Of RabbitMQ 3 a connection dies, of 4 a channel [rabbit_exchange.erl: check_type]."""
    rig = Rig091(preset)
    client, channel = rig.channel()
    channel.send(ExchangeDeclare(exchange="e", type="x-none"))
    rig.rest()
    (said,) = client.methods(ChannelClose, ConnectionClose)
    assert f"{said.NAME} {said.reply_code}" == close
    assert said.reply_text.endswith(" - unknown exchange type 'x-none'")


def test_a_new_secret_is_taken() -> None:
    """connection.update-secret, as RabbitMQ's own users have it: nothing runs out."""
    rig = Rig091()
    client = rig.connect()
    client.amqp.send(ConnectionUpdateSecret(new_secret=b"secret", reason="soon over"))
    rig.rest()
    assert client.methods(ConnectionUpdateSecretOk) == [ConnectionUpdateSecretOk()]
    assert client.amqp.opened


@pytest.mark.parametrize("steps", range(1, 8))
@KINDS
def test_a_get_whose_connection_goes_leaves_its_message_in_the_queue(arguments, steps):
    """Whenever it goes: before the queue has come to it, or after."""
    rig, _client, channel = ready(1, arguments=arguments, queue_enqueue_us=50, queue_deliver_us=50)
    channel.send(BasicGet(queue="q"))
    for _ in range(steps):
        rig.clock.step()
    rig.ends["c1"].lost()
    rig.rest()
    queue = rig.queue()
    assert (queue.ready, queue.unsettled, queue.consumers()) == (1, 0, ())


@pytest.mark.parametrize(
    "last",
    [
        BasicAck(delivery_tag=2, multiple=True),
        BasicNack(delivery_tag=2, multiple=True),
        BasicReject(delivery_tag=2),
        BasicRecover(requeue=True),
    ],
    ids=lambda method: method.NAME,
)
def test_what_a_cancelled_consumer_of_a_stream_holds_it_may_settle(last):
    """As of every other queue: it gets nothing more, and keeps what it has."""
    rig, client, channel = ready(2, arguments=STREAM)
    do(rig, channel, BasicQos(prefetch_count=9))
    consume(rig, channel, arguments={"x-stream-offset": "first"})
    do(rig, channel, BasicCancel(consumer_tag="t"))
    assert (rig.queue().unsettled, rig.queue().consumers()) == (2, ())
    do(rig, channel, BasicAck(delivery_tag=1))
    assert rig.queue().unsettled == 1
    do(rig, channel, last)
    assert not client.methods(ChannelClose, ConnectionClose)
    assert rig.queue().unsettled == 0


@EVERY_RABBIT
def test_a_channel_that_its_client_has_closed_is_forgotten(preset):
    """Whether its number is used again or not: a client may use 65,535."""
    rig = Rig091(preset)
    client, first = rig.channel()
    others = [client.amqp.open_channel() for _ in range(3)]
    rig.rest()
    for channel in others:
        channel.close()
    rig.rest()
    shown = {name.partition(".")[0] for name in rig.ends["c1"].overview() if "channel_" in name}
    assert shown == {f"channel_{first.number}"}


@pytest.mark.parametrize("name", ["rmq1.5", "rmq2.0", "rmq3.5.5", "rmq4.0", "rmq4.3"])
def test_a_number_may_be_used_and_closed_again_while_its_channel_works_on(name):
    """Its second channel is over before the first has worked off what it was given."""
    rig, client, channel = ready(0, preset_of(name), channel_us=50, channel_content_us=50)
    for _ in range(20):
        channel.publish("", "q", b"m")
    close = ChannelClose(reply_code=200, reply_text="", class_id=0, method_id=0)
    for method in (close, ChannelCloseOk(), ChannelOpen(), close):
        client.wire.send(client, Frame(channel.number, method))
    client.writable = False
    rig.rest()
    assert not any(name.startswith("channel_") for name in rig.ends["c1"].overview())


def test_an_exchange_of_other_terms_is_told_of_whatever_its_name():
    """The kind of an error is not read out of its text."""
    rig, client, channel = ready()
    name = "no exchange type"
    do(rig, channel, *(ExchangeDeclare(exchange=name, durable=kept) for kept in (True, False)))
    assert "inequivalent arg 'durable'" in refusal(client)[2]


def test_a_quorum_queue_that_cannot_be_made_now_is_refused():
    """A node of its replicas is down; the client is told, and the broker goes on.

    The code is that of `rabbit_quorum_queue.erl:declare_queue_error`.
    """
    rig, client, channel = ready()
    rig.broker.make_cluster(3).crash("n3")
    do(rig, channel, QueueDeclare(queue="new", durable=True, arguments=QUORUM))
    scope, code, text = refusal(client)
    assert (scope, code) == ("connection", ReplyCode.INTERNAL_ERROR)
    assert "n3 down" in text


@pytest.mark.parametrize(
    ("again", "puts_off"),
    [(None, False), ({}, True), ({"passive": True}, True), ({"nowait": True}, False)],
    ids=["nobody", "declared again", "asked for", "nothing is told"],
)
@KINDS
def test_who_is_told_of_a_classic_queue_again_puts_off_that_it_expires(
    arguments, again, puts_off
) -> None:
    """`rabbit_amqqueue_process.erl`, `stat`; a quorum queue heeds only who consumes."""
    terms = {"queue": "q", "durable": True, "arguments": {**arguments, "x-expires": 10_000}}
    rig, _, channel = ready()
    do(rig, channel, QueueDelete(queue="q"), QueueDeclare(**terms))
    if again is not None:
        rig.clock.call_later(7_000_000, channel.send, QueueDeclare(**terms | again))
    done = []
    rig.clock.call_later(13_000_000, done.append, True)
    while not done:
        rig.clock.step()
    assert ("q" in rig.broker.queues) == (puts_off and arguments != QUORUM)


def test_several_consumers_without_a_tag_and_without_an_answer_are_told_apart() -> None:
    """They are named in the order in which they came, though the channel gets to them later."""
    rig = Rig091(channel_us=100)
    client, channel = rig.channel()
    for name in "ab":
        channel.send(QueueDeclare(queue=name, durable=True))
        channel.publish("", name, name.encode())
    rig.rest()
    for name in "ab":
        channel.send(BasicConsume(queue=name, consumer_tag="", nowait=True))
    rig.rest()
    assert client.bodies == [b"a", b"b"]
    server = rig.ends["c1"].amqp.channels[1]
    assert channel.counters.consumers == server.counters.consumers
    assert [one.queue for one in server.counters.consumers.values()] == ["a", "b"]


@KINDS
def test_a_consumer_without_a_tag_and_without_an_answer_gets_its_messages(arguments) -> None:
    """Under the tag that the broker has made up, of which its client hears with the first."""
    rig, client, channel = ready(2, arguments=arguments)
    do(rig, channel, BasicConsume(queue="q", consumer_tag="", nowait=True))
    assert client.bodies == [b"m0", b"m1"]
    (tag,) = {event.method.consumer_tag for event in client.messages()}
    assert tag.startswith("amq.ctag-")
    server = rig.ends["c1"].amqp.channels[1]
    assert list(server.counters.consumers) == [tag]
    assert server.counters.consumers[tag].unacked == 2
    assert channel.counters.consumers == server.counters.consumers
    do(rig, channel, BasicCancel(consumer_tag=tag))
    assert client.methods(BasicCancelOk)


def test_a_consumer_need_not_wait_for_the_cancel_of_another_on_a_stalled_queue() -> None:
    """Its tag is another, and it wants no answer: what it is given counts for it."""
    rig, client, channel = ready(arguments=QUORUM)
    do(rig, channel, QueueDeclare(queue="r", durable=True))
    consume(rig, channel)
    channel.publish("", "r", b"r")
    rig.rest()
    rig.broker.queues["q"].stall()
    do(
        rig, channel, BasicCancel(consumer_tag="t"),
        BasicConsume(queue="r", consumer_tag="u", nowait=True),
    )  # fmt: skip
    assert client.bodies == [b"r"]
    assert not client.methods(BasicCancelOk)
    rig.broker.queues["q"].resume()
    rig.rest()
    assert client.methods(BasicCancelOk)


def test_a_cancel_is_answered_though_its_quorum_queue_is_deleted_at_the_same_moment() -> None:
    """No replica is left to apply it; the tag is free again."""
    rig, client, channel = ready(arguments=QUORUM)
    other = rig.open(client)
    consume(rig, channel)
    other.send(QueueDelete(queue="q"))
    do(rig, channel, BasicCancel(consumer_tag="t"))
    assert client.methods(BasicCancelOk)
    do(rig, channel, QueueDeclare(queue="q", durable=True))
    consume(rig, channel)
    assert len(client.methods(BasicConsumeOk)) == 2


def test_a_channel_that_closes_without_a_leader_gives_its_messages_back_to_the_next() -> None:
    """Its consumer is gone for whoever leads then."""
    rig = Rig091(RMQ43)
    cluster = rig.broker.make_cluster(3)
    client, channel = rig.channel()
    do(rig, channel, QueueDeclare(queue="q", durable=True, arguments=QUORUM))
    for number in range(3):
        channel.publish("", "q", b"m%d" % number)
    rig.rest()
    consumer = rig.open(client)
    consume(rig, consumer)
    assert rig.queue().unsettled == 3
    cluster.crash(cluster.groups["q"].leader)
    consumer.close()
    rig.rest()
    queue = rig.queue()
    assert (queue.ready, queue.unsettled, queue.consumers()) == (3, 0, ())


@pytest.mark.parametrize("ask", [BasicGet(queue="q"), BasicConsume(queue="q", consumer_tag="t")])
def test_who_holds_nothing_more_of_a_quorum_queue_asks_a_new_leader_for_nothing(ask):
    """A get, or a consumer that was cancelled, is forgotten with the last that it has settled."""
    rig = Rig091(RMQ43)
    cluster = rig.broker.make_cluster(3)
    _client, channel = rig.channel()
    do(rig, channel, QueueDeclare(queue="q", durable=True, arguments=QUORUM))
    queue, group = rig.broker.queues["q"], cluster.groups["q"]
    for number in range(3):
        channel.publish("", "q", b"m%d" % number)
        do(rig, channel, ask, BasicCancel(consumer_tag="t"))
    asked = []
    for tag in range(1, 5):
        before, leader = queue.sent, group.leader
        cluster.crash(leader)
        rig.rest()
        cluster.restart(leader)
        rig.rest()
        asked.append(queue.sent - before)
        if tag < 4:
            do(rig, channel, BasicAck(delivery_tag=tag))
    assert asked == [3, 2, 1, 0]
    assert (queue.queue.ready, queue.queue.unsettled) == (0, 0)
