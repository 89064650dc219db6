"""Scenarios, first half. Each says what it is about and what RabbitMQ 4.3.6 does."""

from .conversations import every_outcome, single_active_with_priority, two_priorities
from .driver import ACCEPTED, REJECTED, RELEASED, delivery_ids, modified, rejected, scenario
from .rawamqp import (
    UINT32,
    Described,
    Symbol,
    SymbolArray,
    Timestamp,
    UByte,
    UInt,
    ULong,
    composite,
    encode,
    frame,
    message,
)

FIRST_OF_STREAM = {
    Symbol("rabbitmq:stream-offset-spec"): Described(Symbol("rabbitmq:stream-offset-spec"), "first"),
}

# ------------------------------------------------------------------------------------- credit and windows


@scenario
def credit_lowered(run):
    """Lower a consumer's credit, and say it at a delivery-count that is behind, ahead or absent.

    RabbitMQ takes what is sent as delivery-count + link-credit - its own delivery-count, and never less than 0: 3
    at 5 of 10 gives nothing, 5 at 8 of 10 gives 3, 2 at 20 of 13 gives 9. Without a delivery-count it takes the
    initial one. An echo is answered by a flow with what is left and the number of messages available. An echo
    without link-credit ends the session with internal-error, so the detach after it gets no answer.
    """
    address = run.declare("c_credit_lowered")
    run.fill("c_credit_lowered", 30)
    consumer = run.connection()
    consumer.begin()
    run.step("attach")
    consumer.receiver(address)
    run.step("credit 10")
    consumer.flow(10, 0)
    run.step("credit 3 at delivery-count 5, of 10")
    consumer.flow(3, 5, received=10, echo=True)
    run.step("credit 5 at delivery-count 8, of 10")
    consumer.flow(5, 8, received=10, echo=True)
    run.step("credit 0")
    consumer.flow(0, 13, received=13, echo=True)
    run.step("credit 2 at a delivery-count ahead")
    consumer.flow(2, 20, received=13, echo=True)
    run.step("credit 20 without a delivery-count")
    consumer.flow(20, None, received=15, echo=True)
    run.step("echo without link-credit")
    consumer.flow(None, 15, received=15, echo=True)
    run.step("detach")
    consumer.detach()


@scenario
def drain_twice(run):
    """Drain an empty queue, again and again, and a queue with messages.

    RabbitMQ answers every drain with a flow that has used up the credit: delivery-count goes up by it, link-credit
    is 0, available is 0. Credit 0 with drain and echo gets one flow, not two. The first flow from a quorum queue
    also says rabbitmq:active, in the same frame as the answer to the drain.
    """
    for queue_type in ("classic", "quorum"):
        name = "c_drain_twice_" + queue_type
        address = run.declare(name, queue_type)
        consumer = run.connection(queue_type)
        consumer.begin()
        run.step(f"{queue_type}: attach")
        consumer.receiver(address)
        run.step(f"{queue_type}: drain 5")
        consumer.flow(5, 0, drain=True)
        run.step(f"{queue_type}: drain 5 again")
        consumer.flow(5, 5, drain=True)
        run.step(f"{queue_type}: drain 0")
        consumer.flow(0, 10, drain=True)
        run.step(f"{queue_type}: drain 0 with echo")
        consumer.flow(0, 10, drain=True, echo=True)
        run.step(f"{queue_type}: credit 5")
        consumer.flow(5, 10)
        run.step(f"{queue_type}: 2 messages come")
        run.fill(name, 2)
        consumer.quiet()
        run.step(f"{queue_type}: drain 3")
        consumer.flow(3, 12, received=2, drain=True)
        run.step(f"{queue_type}: credit 2 without drain")
        consumer.flow(2, 15, received=2, drain=False)
        consumer.close()


@scenario
def window_one(run):
    """Deliver to a session whose incoming-window is 1, 0 or a few, though there is credit.

    RabbitMQ sends as many transfers as the window allows. With window 0 even an echo stays unanswered. An answer to
    a drain waits behind the deliveries that wait for the window, and comes when the window opens.
    """
    address = run.declare("c_window_one")
    run.fill("c_window_one", 10)
    consumer = run.connection()
    consumer.begin(incoming_window=1)
    run.step("attach")
    consumer.receiver(address)
    run.step("credit 5, window 1")
    consumer.flow(5, 0, window=1)
    run.step("echo with window 0")
    consumer.flow(5, 0, received=1, window=0, echo=True)
    run.step("window 1")
    consumer.session_flow(received=1, window=1)
    run.step("window 2")
    consumer.session_flow(received=2, window=2)
    run.step("drain 20 with window 1")
    consumer.flow(20, 4, received=4, window=1, drain=True)
    run.step("window 50")
    consumer.session_flow(received=5, window=50)


@scenario
def quorum_active_large_credit(run):
    """Large credit on a long quorum queue, and when rabbitmq:active is said.

    RabbitMQ sends all 500 transfers, then a flow with rabbitmq:active true; flows after that are without it. A
    second consumer, after the first has closed, is told anew.
    """
    address = run.declare("c_quorum_active", "quorum")
    run.fill("c_quorum_active", 600)
    first = run.connection()
    first.begin(incoming_window=5000)
    run.step("attach")
    first.receiver(address)
    run.step("credit 500")
    first.flow(500, 0, window=5000)
    run.step("credit 0 with echo")
    first.flow(0, 500, received=500, echo=True)
    run.step("credit 10")
    first.flow(10, 500, received=500)
    run.step("credit 0 with echo, again")
    first.flow(0, 510, received=510, echo=True)
    first.close()
    run.broker.wait(0.2)
    second = run.connection("B")
    second.begin()
    run.step("B: attach")
    second.receiver(address)
    run.step("B: credit 10")
    second.flow(10, 0)
    run.step("B: credit 10 more")
    second.flow(10, 10, received=10)


@scenario
def mgmt_link_flow(run):
    """Credit on the pair of links to /management, and links there that are no pair.

    RabbitMQ gives 8 credits for requests. A request without credit for its answer ends the session with
    precondition-failed. Without the property paired, or with snd-settle-mode mixed, the link is attached without a
    target and detached with invalid-field.
    """

    def ask(connection, number, settled=True):
        request = message(properties=[str(number), None, "/queues/c_none", "GET", "$me"], value=(None,))
        connection.transfer(number, request, settled=settled, wait=True)

    fields = {
        "name": "m",
        "snd_settle_mode": 1,
        "rcv_settle_mode": 0,
        "source": composite("source", address="/management"),
        "target": composite("target", address="/management"),
        "properties": {Symbol("paired"): True},
    }
    client = run.connection()
    client.begin()
    run.step("attach the sending half")
    client.send(0, "attach", handle=0, role=False, initial_delivery_count=0, **fields)
    client.quiet()
    run.step("attach the receiving half")
    client.send(0, "attach", handle=1, role=True, **fields)
    client.quiet()
    run.step("credit 2")
    client.flow(2, 0, handle=1)
    for number in range(6):
        run.step(f"request {number}")
        ask(client, number)
    run.step("credit 10")
    client.flow(10, 2, handle=1, received=2, sent=6)
    run.step("unsettled request")
    ask(client, 6, settled=False)
    other = run.connection("B")
    other.begin()
    run.step("B: one half alone, snd-settle-mode mixed")
    fields["snd_settle_mode"] = 2
    other.send(0, "attach", handle=0, role=False, initial_delivery_count=0, **fields)
    other.quiet()
    run.step("B: the property paired not given")
    del fields["properties"]
    fields["snd_settle_mode"] = 1
    other.send(0, "attach", handle=1, role=False, initial_delivery_count=0, **fields)
    other.quiet()


# ------------------------------------------------------------------------------------------------ consumers


@scenario
def priorities(run):
    """Two consumers, one with rabbitmq:priority 5 that is written as a long.

    RabbitMQ reads the priority only if it is an int, so here it has none: the messages go to the two in turn, from
    the one that attached first. A quorum queue says rabbitmq:active true to both as soon as they give credit.
    """
    for queue_type in ("classic", "quorum"):
        two_priorities(run, queue_type, "c_priorities_" + queue_type, 5)


@scenario
def sac_priority(run):
    """A single active consumer, then one with rabbitmq:priority 10 that is written as a long.

    RabbitMQ reads the priority only if it is an int, so the first stays active, also after it has settled all. A
    classic queue says nothing about who is active; a quorum queue says rabbitmq:active to each.
    """
    for queue_type in ("classic", "quorum"):
        single_active_with_priority(run, queue_type, "c_sac_priority_" + queue_type, 10)


@scenario
def detach_reattach(run):
    """Detach a consumer with unsettled deliveries, closed and not closed, and attach it again.

    RabbitMQ answers a detach with the same value of closed. Either way the unsettled messages go back to the queue,
    in order and ahead of the others; settling them afterwards does nothing, and the delivery-count of the new link
    begins at 0.
    """
    for queue_type in ("classic", "quorum"):
        name = "c_detach_" + queue_type
        address = run.declare(name, queue_type)
        run.fill(name, 6)
        consumer = run.connection(queue_type)
        consumer.begin()
        run.step(f"{queue_type}: attach")
        consumer.receiver(address, name="L")
        run.step(f"{queue_type}: credit 3")
        consumer.flow(3, 0)
        run.step(f"{queue_type}: detach, not closed")
        consumer.detach(closed=False)
        run.step(f"{queue_type}: settle after the detach")
        consumer.disposition(0)
        run.step(f"{queue_type}: attach again")
        consumer.receiver(address, name="L")
        run.step(f"{queue_type}: credit 10")
        consumer.flow(10, 0, received=3)
        run.step(f"{queue_type}: detach, closed")
        consumer.detach()
        run.step(f"{queue_type}: attach at handle 5")
        consumer.receiver(address, handle=5, name="L")
        run.step(f"{queue_type}: credit 10 at handle 5")
        consumer.flow(10, 0, handle=5, received=consumer.transfers())
        run.note("queue", run.queue_info(name))


@scenario
def queue_deleted(run):
    """Purge and delete a queue that has a consumer and a publisher.

    RabbitMQ says nothing to the purge. Deletion detaches the consumer with resource-deleted; the publisher is told
    nothing, and what it publishes then is released. (A stream without an offset begins at the next message: its
    consumer got none, so its next-incoming-id of 2 is wrong and ends the session with window-violation.)
    """
    for queue_type in ("classic", "quorum", "stream"):
        name = "c_deleted_" + queue_type
        address = run.declare(name, queue_type)
        run.fill(name, 4)
        consumer = run.connection("consumer " + queue_type)
        consumer.begin()
        consumer.receiver(address)
        run.step(f"{queue_type}: credit 2")
        consumer.flow(2, 0)
        publisher = run.connection("publisher " + queue_type)
        publisher.begin()
        run.step(f"{queue_type}: publisher attaches")
        publisher.sender(address)
        run.step(f"{queue_type}: purge")
        run.request("DELETE", f"/queues/{name}/messages")
        consumer.quiet()
        run.step(f"{queue_type}: delete")
        run.request("DELETE", f"/queues/{name}")
        consumer.quiet(0.6)
        publisher.quiet()
        run.step(f"{queue_type}: publish")
        publisher.transfer(0, wait=True)
        run.step(f"{queue_type}: consumer's session")
        consumer.session_flow(received=2, echo=True)
        consumer.disposition(0, 1)


@scenario
def snd_settled(run):
    """Consumers that ask for settled and for unsettled deliveries.

    RabbitMQ sends settled transfers with an empty delivery-tag to the first, and takes the messages off the queue.
    The tags of the second go on counting from there.
    """
    address = run.declare("c_snd_settled")
    run.fill("c_snd_settled", 5)
    consumer = run.connection()
    consumer.begin()
    run.step("attach with snd-settle-mode settled")
    consumer.receiver(address, snd_settle_mode=1)
    run.step("credit 3")
    consumer.flow(3, 0)
    run.step("attach with snd-settle-mode unsettled")
    consumer.receiver(address, handle=1, snd_settle_mode=0)
    run.step("credit 3 there")
    consumer.flow(3, 0, handle=1, received=3)
    run.note("queue", run.queue_info("c_snd_settled"))


@scenario
def max_message_size(run):
    """A consumer with a max-message-size that is smaller than the messages.

    RabbitMQ mirrors the size in its attach and ends the session with link:message-size-exceeded at the first
    message; the messages stay in the queue.
    """
    address = run.declare("c_max_size")
    run.fill("c_max_size", 3, body=b"y" * 200)
    consumer = run.connection()
    consumer.begin()
    run.step("attach with max-message-size 100")
    consumer.receiver(address, max_message_size=100)
    run.step("credit 3")
    consumer.flow(3, 0)
    run.step("credit 3 with echo")
    consumer.flow(3, 0, echo=True)
    run.note("queue", run.queue_info("c_max_size"))


@scenario
def stream_filter(run):
    """Filters on a stream: Bloom, properties, application properties, SQL.

    RabbitMQ names the filters that it obeys in its attach. Each of these brings four of the eight messages. The SQL
    filter, under the key s, is not among them, so all eight come.
    """

    def filter_of(name, value, key=None):
        return {Symbol(key or name): Described(Symbol(name), value)}

    address = run.declare("c_stream_filter", "stream")
    for value, message_id, subject, property_value in (("a", "id", "s1", "v"), ("b", "id2", "s2", "w")):
        run.fill(
            "c_stream_filter",
            4,
            annotations={Symbol("x-stream-filter-value"): value},
            properties=[message_id, None, None, subject],
            application_properties={"k": property_value},
        )
    filters = {
        "bloom": filter_of("rabbitmq:stream-filter", "a"),
        "bloom, unfiltered too": {
            **filter_of("rabbitmq:stream-filter", "a"),
            **filter_of("rabbitmq:stream-match-unfiltered", True),
        },
        "properties": filter_of("amqp:properties-filter", {Symbol("subject"): "s1"}, "p"),
        "application properties": filter_of("amqp:application-properties-filter", {"k": "w"}, "p"),
        "SQL": filter_of("amqp:sql-filter", "properties.subject = 's1'", "s"),
    }
    for name, chosen in filters.items():
        consumer = run.connection(name)
        consumer.begin()
        run.step(f"{name}: attach")
        consumer.receiver(address, filters={**FIRST_OF_STREAM, **chosen})
        run.step(f"{name}: credit 20")
        consumer.flow(20, 0)
        consumer.quiet()


# ------------------------------------------------------------------------------------------------- outcomes


@scenario
def outcomes_quorum(run):
    """Every outcome on a quorum queue, and what comes back with which counts.

    RabbitMQ drops what was accepted, rejected or modified with undeliverable-here. What was released or modified
    comes back: x-acquired-count counts all returns, x-delivery-count and the header's delivery-count the failed
    ones, and the annotations of modified are added to the message. Credit that is left is used at once for what
    comes back.
    """
    every_outcome(run, "quorum")


@scenario
def dead_letter(run):
    """Messages rejected or undeliverable, from a queue with a dead-letter exchange.

    RabbitMQ puts them in the other queue in order, all with the reason rejected, with the x-first-death and
    x-last-death annotations and x-opt-deaths; the ttl of the header is gone and kept in x-opt-deaths. The header's
    delivery-count is 1.
    """
    for queue_type in ("classic", "quorum"):
        name = "c_dead_" + queue_type
        dead = "c_dead_target_" + queue_type
        run.declare(dead)
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        address = run.declare(name, queue_type, **arguments)
        run.fill(
            name,
            3,
            header=[True, None, UInt(60000)],
            annotations={Symbol("x-m"): "1"},
            properties=["id1", None, "/x", "subj"],
            application_properties={"k": "v"},
        )
        consumer = run.connection(queue_type)
        consumer.begin()
        run.step(f"{queue_type}: attach")
        consumer.receiver(address)
        run.step(f"{queue_type}: credit 3")
        consumer.flow(3, 0)
        run.step(f"{queue_type}: rejected, undeliverable here, rejected with an error")
        consumer.disposition(0, None, REJECTED)
        consumer.disposition(1, None, modified(True, True))
        consumer.disposition(2, None, rejected("my:err", "why"))
        run.step(f"{queue_type}: what was dead-lettered")
        other = run.connection("dead " + queue_type)
        other.begin()
        other.receiver("/queues/" + dead)
        other.flow(10, 0)


@scenario
def delivery_limit(run):
    """A quorum queue with x-delivery-limit 2: one message fails each time, the other is released.

    RabbitMQ dead-letters the one that failed when its delivery-count gets above 2, that is at the third failure,
    with the reason delivery_limit. Releasing does not count.
    """
    run.declare("c_limit_dead")
    arguments = {
        "x-delivery-limit": 2,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "c_limit_dead",
    }
    address = run.declare("c_limit", "quorum", **arguments)
    run.fill("c_limit", 2)
    consumer = run.connection()
    consumer.begin()
    run.step("attach")
    consumer.receiver(address)
    taken = 0
    for number in range(1, 6):
        run.step(f"credit, time {number}")
        ids = delivery_ids(consumer.flow(2, taken, received=taken))
        taken += len(ids)
        run.step(f"one failed, one released, time {number}")
        if ids:
            consumer.disposition(ids[0], None, modified(True))
        if len(ids) > 1:
            consumer.disposition(ids[1], None, RELEASED)
    run.step("what was dead-lettered")
    other = run.connection("dead")
    other.begin()
    other.receiver("/queues/c_limit_dead")
    other.flow(10, 0)


@scenario
def ttl(run):
    """Messages that expire by their ttl or by that of the queue, into a dead-letter queue.

    RabbitMQ lets all three expire, each by the lower of the two. They come with the reason expired; a ttl of the
    message is kept in x-opt-deaths. The quorum queue puts the message of priority 5 first.
    """
    for queue_type in ("classic", "quorum"):
        dead = "c_ttl_dead_" + queue_type
        run.declare(dead)
        arguments = {"x-message-ttl": 300, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        address = run.declare("c_ttl_" + queue_type, queue_type, **arguments)
        client = run.connection(queue_type)
        client.begin()
        client.sender(address)
        run.step(f"{queue_type}: publish")
        client.transfer(0, message(b"q"))
        client.transfer(1, message(b"h", header=[True, None, UInt(50)]))
        client.transfer(2, message(b"abs", header=[True, UByte(5), UInt(100000)]))
        client.quiet()
        run.broker.wait(0.8)
        run.step(f"{queue_type}: consume when all are expired")
        client.receiver(address, handle=1)
        client.flow(5, 0, handle=1, sent=3, echo=True)
        run.step(f"{queue_type}: what was dead-lettered")
        other = run.connection("dead " + queue_type)
        other.begin()
        other.receiver("/queues/" + dead)
        other.flow(10, 0)


# ----------------------------------------------------------------------------------------------- publishing


@scenario
def snd_settle_modes_pub(run):
    """Publish unsettled on a link with snd-settle-mode settled, and the other way round.

    RabbitMQ detaches the link with invalid-field both times; the session goes on.
    """
    address = run.declare("c_pub_modes")
    publisher = run.connection()
    publisher.begin()
    run.step("link settled, transfer unsettled")
    publisher.sender(address, snd_settle_mode=1)
    publisher.transfer(0, wait=True)
    run.step("link unsettled, transfer settled")
    publisher.sender(address, handle=1, snd_settle_mode=0)
    publisher.transfer(1, handle=1, settled=True, wait=True)
    run.note("queue", run.queue_info("c_pub_modes"))


@scenario
def aborted(run):
    """Abort a delivery half way, and begin another in the middle of one.

    RabbitMQ does not know aborted: it takes the transfer as the last part, cannot decode the message, and detaches
    the link with decode-error. The next transfer ends the session with unattached-handle.
    """
    address = run.declare("c_aborted")
    half = message(b"abc")[:4]
    publisher = run.connection()
    publisher.begin()
    run.step("attach")
    publisher.sender(address)
    run.step("half a message")
    publisher.transfer(0, half, more=True, wait=True)
    run.step("aborted")
    publisher.send(0, "transfer", handle=0, aborted=True)
    publisher.quiet()
    run.step("a whole message")
    publisher.transfer(1, wait=True)
    run.step("half a message, then a part with another delivery-id")
    publisher.transfer(2, half, more=True)
    publisher.send(0, "transfer", handle=0, delivery_id=3, delivery_tag=b"q", payload=b"xx")
    publisher.quiet()
    run.note("queue", run.queue_info("c_aborted"))


@scenario
def too_big_message(run):
    """Publish a message that is larger than max-message-size, in many transfers.

    RabbitMQ ends the session with link:message-size-exceeded at the part that crosses 16777216 octets, and takes no
    further notice of the rest.
    """
    address = run.declare("c_too_big")
    publisher = run.connection(max_frame_size=131072)
    publisher.begin()
    run.step("attach")
    publisher.sender(address)
    run.step("17.5 MB in parts of 125 kB")
    head = b"\x00\x53\x75\xb0" + UINT32.pack(17_500_000 - 8) + bytes(124_992)
    alive = publisher.send(
        0, "transfer", payload=head, handle=0, delivery_id=0, delivery_tag=b"b", message_format=0, more=True
    )
    for _ in range(139):
        alive = alive and publisher.send(0, "transfer", payload=bytes(125_000), handle=0, more=True)
    publisher.quiet(1.0)
    run.step("echo")
    publisher.session_flow(sent=140, echo=True)
    run.step("another link")
    publisher.sender(address, handle=1)


@scenario
def transfer_oddities(run):
    """Transfers with a field missing, too long or unusual, and payloads that are no message.

    RabbitMQ needs delivery-id (else: end, internal-error) but no delivery-tag, which may be of any length;
    delivery-ids may jump; any message-format, state, resume and batchable are accepted. A payload that is no
    message, or none, detaches the link with decode-error, rcv-settle-mode second with not-implemented; the next
    transfer then ends the session with unattached-handle.
    """
    address = run.declare("c_oddities")
    usual = {"handle": 0, "delivery_id": 0, "delivery_tag": b"x", "payload": message()}
    oddities = {
        "no delivery-id": {**usual, "delivery_id": None},
        "no delivery-tag": {**usual, "delivery_tag": None},
        "delivery-tag of 40 octets": {**usual, "delivery_tag": b"x" * 40},
        "no payload": {**usual, "payload": b""},
        "delivery-id 77": {**usual, "delivery_id": 77},
        "message-format 5": {**usual, "message_format": 5},
        "no message-format": usual,
        "payload is no section": {**usual, "payload": b"\xff\xff\xff"},
        "section cut short": {**usual, "payload": b"\x00\x53\x75\xa0\x20abc"},
        "amqp-sequence": {**usual, "payload": encode(Described(ULong(0x76), [1, 2]))},
        "rcv-settle-mode second": {**usual, "rcv_settle_mode": 1},
        "state accepted": {**usual, "state": ACCEPTED},
        "resume": {**usual, "resume": True},
        "batchable": {**usual, "batchable": True},
    }
    for name, fields in oddities.items():
        publisher = run.connection(name)
        publisher.begin()
        publisher.sender(address)
        run.step(name)
        publisher.send(0, "transfer", **fields)
        publisher.quiet()
        run.step(f"{name}: the next transfer")
        publisher.transfer(78 if name == "delivery-id 77" else 1, wait=True)
    run.step("consume what arrived")
    consumer = run.connection("consumer")
    consumer.begin()
    consumer.receiver(address)
    consumer.flow(50, 0)


@scenario
def message_sections(run):
    """Messages with all kinds of sections, to a classic and a quorum queue and a stream.

    RabbitMQ adds header, x-exchange and x-routing-key (streams: x-stream-offset), drops delivery-annotations, and
    gives back everything else as it came, the footer included. durable is false where there was no header section.
    The quorum queue puts the message of priority 9 first.
    """
    every_property = [
        "mid",
        b"guest",
        None,
        "sub",
        "/reply",
        "cid",
        Symbol("text/plain"),
        Symbol("gzip"),
        Timestamp(1_700_000_000_000),
        Timestamp(1_700_000_000_000),
        "grp",
        UInt(3),
        "rgrp",
    ]
    messages = [
        message(b"plain"),
        message(b"h", header=[False, UByte(9), UInt(100000), True, UInt(3)]),
        message(b"ann", annotations={Symbol("x-a"): 1, Symbol("x-opt-b"): [1, 2]}),
        message(b"p", properties=every_property),
        message(value=({"a": [1, "x", None, True]},)),
        encode(Described(ULong(0x71), {Symbol("x-d"): 1})) + message(b"da"),
        message(b"foot") + encode(Described(ULong(0x78), {Symbol("x-f"): 1})),
        message(b"empty-header", header=[]),
        message(b"dur", header=[True]),
        message(b"two") + encode(Described(ULong(0x75), b"datas")),
    ]
    for queue_type in ("classic", "quorum", "stream"):
        address = run.declare("c_sections_" + queue_type, queue_type)
        client = run.connection(queue_type)
        client.begin()
        client.sender(address)
        run.step(f"{queue_type}: publish")
        for number, octets in enumerate(messages):
            client.transfer(number, octets)
        client.quiet()
        run.step(f"{queue_type}: consume")
        client.receiver(address, handle=1, filters=FIRST_OF_STREAM if queue_type == "stream" else None)
        client.flow(20, 0, handle=1, sent=10)
        client.quiet()


# ------------------------------------------------------------------------------------------ nodes and links


@scenario
def missing_nodes(run):
    """Attach to addresses that do not exist, are not allowed or are no addresses.

    RabbitMQ answers with an attach without the terminus, then a detach: not-found for queues and exchanges that are
    not there, invalid-field for what is no address, unauthorized-access for an internal exchange. The session goes
    on, and a session echo gets no answer. A sender without a target, or without initial-delivery-count, ends the
    session with internal-error.
    """

    def attach(connection, role, **fields):
        connection.send(0, "attach", name="z", handle=0, role=role, **fields)
        connection.quiet()

    topic = composite("target", address="/exchanges/amq.topic/k")
    source = composite("source")
    cases = {
        "consume from a missing queue": lambda c: c.receiver("/queues/none1"),
        "publish to a missing queue": lambda c: c.sender("/queues/none1"),
        "publish to a missing exchange": lambda c: c.sender("/exchanges/none/k"),
        "consume from an exchange": lambda c: c.receiver("/exchanges/amq.topic/k"),
        "no such kind of node": lambda c: c.sender("/foo/bar"),
        "old address /queue/": lambda c: c.sender("/queue/none2"),
        "old address, a name alone": lambda c: c.receiver("plainname"),
        "empty address": lambda c: c.sender(""),
        "the default exchange": lambda c: c.sender("/exchanges/amq.default/none"),
        "exchange without a key": lambda c: c.sender("/exchanges/amq.topic"),
        "bad percent-encoding": lambda c: c.sender("/queues/a%2"),
        "receiver, source without an address": lambda c: c.receiver(None),
        "receiver without a source": lambda c: attach(c, True),
        "sender without a target": lambda c: attach(c, False, initial_delivery_count=0, source=source),
        "sender without initial-delivery-count": lambda c: attach(c, False, source=source, target=topic),
        "internal exchange": lambda c: c.sender("/exchanges/amq.rabbitmq.trace/x"),
        "consume from /management, not paired": lambda c: c.receiver("/management"),
        "slash at the end": lambda c: c.sender("/queues/none1/"),
    }
    for name, act in cases.items():
        client = run.connection(name)
        client.begin()
        run.step(name)
        act(client)
        run.step(f"{name}: echo")
        client.session_flow(echo=True)
        run.step(f"{name}: another link")
        client.sender("/exchanges/amq.topic/k", handle=9)


@scenario
def dynamic(run):
    """Dynamic sources and targets.

    RabbitMQ attaches without the terminus and detaches with not-implemented. (The one kind that it knows is tried
    in direct_reply_to.)
    """
    volatile = SymbolArray(["rabbitmq:volatile-queue"])
    client = run.connection()
    client.begin()
    run.step("dynamic source")
    client.receiver(None, source=composite("source", dynamic=True, durable=0, expiry_policy="link-detach"))
    run.step("dynamic target")
    client.sender(None, handle=1, target=composite("target", dynamic=True))
    run.step("dynamic source, volatile queue, unsettled")
    client.receiver(None, handle=2, source=composite("source", dynamic=True, capabilities=volatile))
    run.step("dynamic source with an address")
    client.receiver(None, handle=3, source=composite("source", dynamic=True, address="/queues/x"))


@scenario
def handle_max(run):
    """Handles above handle-max.

    RabbitMQ takes the lower one of the client's handle-max and 255, and ends the session with
    connection:framing-error where a handle is above it.
    """
    address = run.declare("c_handle_max")
    client = run.connection()
    client.begin(handle_max=3)
    run.step("handle-max 3, handle 3")
    client.sender(address, handle=3)
    run.step("handle-max 3, handle 4")
    client.sender(address, handle=4)
    client = run.connection("B")
    client.begin(handle_max=70000)
    run.step("handle-max 70000, handle 300")
    client.sender(address, handle=300)
    client = run.connection("C")
    client.begin()
    run.step("handle-max 255, handle 256")
    client.receiver(address, handle=256)


# ---------------------------------------------------------------------------------- connections and frames


@scenario
def bad_sasl(run):
    """Wrong passwords, unknown mechanisms, responses that cannot be read.

    RabbitMQ answers a wrong password or user with sasl-outcome 1 and closes the socket. What it cannot read, it
    answers by closing alone, an unknown mechanism and an authorisation identity as well. ANONYMOUS is let in.
    """
    attempts = {
        "wrong password": ("PLAIN", b"\0guest\0wrong"),
        "unknown user": ("PLAIN", b"\0nobody\0x"),
        "unknown mechanism": ("FOO", b"\0g\0g"),
        "PLAIN without separators": ("PLAIN", b"garbage"),
        "PLAIN, empty response": ("PLAIN", b""),
        "ANONYMOUS": ("ANONYMOUS", b"x"),
        "EXTERNAL": ("EXTERNAL", b""),
        "PLAIN with an authorisation identity": ("PLAIN", b"guest\0guest\0guest"),
    }
    for name, (mechanism, response) in attempts.items():
        run.step(name)
        client = run.connection(name, handshake=False)
        client.send_octets(b"AMQP\x03\x01\x00\x00")
        client.take(2)
        client.sasl_init(mechanism, response)
        client.quiet(4.5)
        client.cut()


@scenario
def unknown_performative(run):
    """Frames whose body is no performative, or one with fields missing or too many.

    RabbitMQ closes with internal-error where it cannot decode, and ends the session with internal-error where it
    does not expect what it decoded (no described value, attach without mandatory fields). A symbolic descriptor is
    the same as a number. begin without fields closes the connection.
    """
    echo = [UInt(0), UInt(100), UInt(0), UInt(100), None, None, None, None, None, True]
    bodies = {
        "descriptor 0x99": Described(ULong(0x99), []),
        "not described": b"\xa1\x03abc",
        "symbolic descriptor": Described(Symbol("amqp:flow:list"), echo),
        "end with too many fields": Described(ULong(0x17), [None, 1, 2, 3]),
        "attach without handle and role": Described(ULong(0x12), ["n"]),
        "attach with a number for a name": Described(ULong(0x12), [5, UInt(0), False]),
        "begin without fields": Described(ULong(0x11), []),
    }
    for name, body in bodies.items():
        client = run.connection(name)
        if name != "begin without fields":
            client.begin()
        run.step(name)
        client.send_octets(frame(0, body))
        client.quiet(0.8)


# ----------------------------------------------------------------------------------------------- management


@scenario
def mgmt_queues(run):
    """Declare, get, purge and delete queues through /management, rightly and wrongly.

    RabbitMQ answers 201 to a new queue, 200 to the same again, 409 to another type or a wrong argument, 404 to a
    missing one, 403 to a reserved name, 400 to a quorum queue that is not durable. Deleting a missing queue is 200.
    Unknown arguments are kept. A flow with 8 credits comes with every fourth answer.
    """

    def declare(queue_type):
        return {
            "durable": True,
            "exclusive": False,
            "auto_delete": False,
            "arguments": {"x-queue-type": queue_type},
        }

    stream = {"durable": True, "arguments": {"x-queue-type": "stream", "x-max-age": "1h"}}
    not_durable = {"durable": False, "arguments": {"x-queue-type": "quorum"}}
    wrong = {"durable": True, "exclusive": False, "auto_delete": False, "arguments": {"x-message-ttl": "abc"}}
    requests = [
        ("declare a quorum queue", "PUT", "/queues/c_m1", declare("quorum")),
        ("declare it again", "PUT", "/queues/c_m1", declare("quorum")),
        ("declare it with another type", "PUT", "/queues/c_m1", declare("classic")),
        ("get it", "GET", "/queues/c_m1", None),
        ("get a missing queue", "GET", "/queues/c_none", None),
        ("purge it", "DELETE", "/queues/c_m1/messages", None),
        ("purge a missing queue", "DELETE", "/queues/c_none/messages", None),
        ("delete it", "DELETE", "/queues/c_m1", None),
        ("delete it again", "DELETE", "/queues/c_m1", None),
        ("argument of a wrong type", "PUT", "/queues/c_m2", wrong),
        ("negative x-message-ttl", "PUT", "/queues/c_m2", {"arguments": {"x-message-ttl": -1}}),
        ("unknown argument", "PUT", "/queues/c_m3", {"arguments": {"x-foo": 1}}),
        ("delete that one", "DELETE", "/queues/c_m3", None),
        ("reserved name", "PUT", "/queues/amq.foo", {"arguments": {}}),
        ("quorum queue that is not durable", "PUT", "/queues/c_m4", not_durable),
        ("nothing given", "PUT", "/queues/c_m5", {}),
        ("get that one", "GET", "/queues/c_m5", None),
        ("delete that one too", "DELETE", "/queues/c_m5", None),
        ("unknown type of queue", "PUT", "/queues/c_m7", {"arguments": {"x-queue-type": "foo"}}),
        ("declare a stream", "PUT", "/queues/c_m8", stream),
        ("get the stream", "GET", "/queues/c_m8", None),
        ("delete the stream", "DELETE", "/queues/c_m8", None),
        ("x-max-priority", "PUT", "/queues/c_m9", {"durable": True, "arguments": {"x-max-priority": 5}}),
        ("delete the queue with priorities", "DELETE", "/queues/c_m9", None),
        ("percent-encoded name", "PUT", "/queues/a%20b%2Fc", {"durable": True, "arguments": {}}),
        ("delete by the encoded name", "DELETE", "/queues/a%20b%2Fc", None),
    ]
    for to in {to for _, method, to, _ in requests if method == "PUT"}:
        run.request("DELETE", to)
    for name, method, to, body in requests:
        run.step(name)
        run.request(method, to, body, log=True)


@scenario
def mgmt_exchanges(run):
    """Declare and delete exchanges, bind and unbind, through /management.

    RabbitMQ answers 204 to what it did and to deleting or unbinding what is not there, 409 to another type, 400 to
    an unknown type and to bindings of what is missing, 403 to reserved names and the default exchange.
    """

    def declare(exchange_type):
        return {
            "durable": True,
            "auto_delete": False,
            "type": exchange_type,
            "internal": False,
            "arguments": {},
        }

    def bind(source, key, arguments=None, **destination):
        return {"source": source, "binding_key": key, "arguments": arguments or {}, **destination}

    queue = {"destination_queue": "c_xq"}
    binding = "/bindings/src=c_x1;dstq=c_xq;key=a.%23;args="
    missing = {"destination_queue": "c_none"}
    exchange = {"destination_exchange": "amq.fanout"}
    requests = [
        ("declare a topic exchange", "PUT", "/exchanges/c_x1", declare("topic")),
        ("declare it again", "PUT", "/exchanges/c_x1", declare("topic")),
        ("declare it with another type", "PUT", "/exchanges/c_x1", declare("fanout")),
        ("unknown type", "PUT", "/exchanges/c_x2", {"type": "foo"}),
        ("reserved name", "PUT", "/exchanges/amq.x", {"type": "direct"}),
        ("bind", "POST", "/bindings", bind("c_x1", "a.#", **queue)),
        ("bind with arguments", "POST", "/bindings", bind("c_x1", "k;=", {"x": 1}, **queue)),
        ("list bindings", "GET", "/bindings?src=c_x1&dstq=c_xq&key=a.%23", None),
        ("bind a missing queue", "POST", "/bindings", bind("c_x1", "a", **missing)),
        ("bind to a missing exchange", "POST", "/bindings", bind("c_none", "a", **queue)),
        ("bind an exchange", "POST", "/bindings", bind("c_x1", "a", **exchange)),
        ("unbind", "DELETE", binding, None),
        ("unbind again", "DELETE", binding, None),
        ("bind to the default exchange", "POST", "/bindings", bind("", "a", **queue)),
        ("delete amq.topic", "DELETE", "/exchanges/amq.topic", None),
        ("delete the default exchange", "DELETE", "/exchanges/amq.default", None),
        ("delete", "DELETE", "/exchanges/c_x1", None),
        ("delete again", "DELETE", "/exchanges/c_x1", None),
        ("no type given", "PUT", "/exchanges/c_x3", {}),
        ("delete that one", "DELETE", "/exchanges/c_x3", None),
    ]
    for to in ("/exchanges/c_x1", "/exchanges/c_x2", "/exchanges/c_x3"):
        run.request("DELETE", to)
    run.declare("c_xq")
    for name, method, to, body in requests:
        run.step(name)
        run.request(method, to, body, log=True)
