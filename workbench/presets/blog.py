"""The set-up of the article's benchmark two_senders, in numbers.

"Ten Benefits of AMQP 1.0 Flow Control" counts what one client gets into four queues within ten
seconds. This preset has what a model needs to do the same: what a disk, a session and a channel
take, and the rules of RabbitMQ 4.0. Each number comes from somewhere else than the counts that a
run with it has to give. One is near to them: a session's time for a transfer is ten seconds over
the number of messages of both AMQP 1.0 links, so the sum of these two counts is given, and how they
share it is not. The same numbers serve the article's other benchmark, one_sender_one_receiver.
"""

from __future__ import annotations

from dataclasses import dataclass

from .rabbitmq import RabbitMq40, other


@dataclass(frozen=True, slots=True, kw_only=True)
class Blog2024(RabbitMq40):
    """RabbitMQ 4.0.0-beta.6 on one machine with a consumer's disk."""

    name: str = "blog2024"
    title: str = "RabbitMQ 4.0 as the article measured it, August 2024"
    version: str = "4.0.0-beta.6"

    memory_high_watermark: float = other(
        0.4, "RabbitMQ vm_memory_high_watermark: 0.4 up to the article's 4.0.0-beta.6"
    )
    channel_max: int = other(
        65535, "rabbit_amqp_reader.erl of the article's 4.0.0-beta.6: whatever the client says"
    )
    handle_max: int = other(
        4294967295,
        "rabbit_amqp_session.erl of the article's 4.0.0-beta.6: whatever the client says",
    )
    fsync_us: int = other(
        6300,
        "article: at least 5 ms; its 0-9-1 connection was blocked about 80 times a second, and a"
        " round of 400 messages between two blocks waits for two fsyncs",
    )
    session_us: int = other(
        8,
        "article: one session took 1,237,655 transfers of both links in 10 s, 8.08 us each",
    )
    session_ns: int = other(
        80, "article: one session took 1,237,655 transfers of both links in 10 s"
    )
    queue_enqueue_us: int = other(
        0,
        "ours; queues are processes of their own and worked on other cores than the session",
    )
    queue_deliver_us: int = other(0, "ours; as queue_enqueue_us: other cores hand messages out")
    channel_us: int = other(
        5,
        "measured on 4.3.6 with raw senders that never wait: 108,600 messages a second over 0-9-1,"
        " 60,800 over 1.0, which is 0.56 of a transfer; of the article's 8.08 us that is 4.5 us",
    )
    client_publish_us: int = other(
        9,
        "measured: amqp091-go 1.5, 12 octets into a loopback socket: 8.1 to 11.3 us of a processor"
        " for a message, and 2.4 to 3.6 us for an acknowledgement",
    )
    client_ack_us: int = other(3, "measured: amqp091-go 1.5, 2.4 to 3.6 us of a processor")
    node_latency_us: int = other(
        0, "article: one node (make run-broker); its queues had one replica"
    )
    wire_latency_us: int = other(
        0, "article: client and broker on one machine; loopback is left out"
    )
    message_bytes: int = other(12, "the article's program sends `some payload`, 12 octets")
