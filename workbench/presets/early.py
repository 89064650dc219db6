"""RabbitMQ before processes counted credit: three emergency brakes of 2008 to 2010.

Read in the source of each release, and in RabbitMQ's article of November 2008 on producer flow
control. Everything else is as in `rmq3.5.5`, so that a run under one of them differs by its brake:
what these releases did not know besides (confirms, nack, cancel by the broker) is there all the
same.
"""

from __future__ import annotations

from dataclasses import dataclass

from .rabbitmq import RabbitMq355, other


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq20(RabbitMq355):
    """Numbers of RabbitMQ 2.0.0, whose readers stop under an alarm and tell nobody."""

    name: str = "rmq2.0"
    title: str = "RabbitMQ 2.0.0"
    version: str = "2.0.0"

    process_credit: int = other(0, "no credit_flow.erl before 2.8.0")
    unsent_limit: int = other(
        100, "rabbit_amqqueue_process.erl, 1.5.0 to 2.0.0: UNSENT_MESSAGE_LIMIT"
    )
    mirrors: bool = other(False, "no rabbit_mirror_queue_master.erl before 2.6.0")
    index_embeds_below: int = other(0, "no embedding before 3.5.0")
    client_flow: str = other("honoured", "rabbit_channel.erl:handle_method, 1.8.0 to 3.2.4")
    qos: str = other("channel", "rabbit_channel.erl, 1.6.0 to 3.2.4: one limiter for each channel")
    immediate: bool = other(True, "rabbit_amqqueue.erl:deliver, up to 2.8.7: deliver_immediately")
    hands_on: bool = other(
        True, "rabbit_amqqueue_process.erl: deliver_or_enqueue, attempt_delivery"
    )
    tells_blocked: bool = other(False, "rabbit_reader.erl before 3.2.0")
    queue_limits: bool = other(False, "rabbit_amqqueue.erl, 2.0.0: knows x-expires alone")
    idle_time_out_ms: int = other(
        0, "rabbit_reader.erl, 1.5.0 to 2.0.0: tune proposes heartbeat 0; a client may ask for it"
    )
    max_message_size: int = other(0, "no MAX_MSG_SIZE before 3.2.3")
    keeps_exclusive: bool = other(True, "rabbit_channel.erl:handle_method before 3.2.0")
    close_frees_channel: bool = other(
        True, "rabbit_reader.erl:handle_frame, 1.5.0 to 2.0.0: channel.close"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq18(RabbitMq20):
    """Numbers of RabbitMQ 1.8.0, which makes clients obey channel.flow."""

    name: str = "rmq1.8"
    title: str = "RabbitMQ 1.8.0"
    version: str = "1.8.0"

    alarm_brake: str = other("enforced-flow", "rabbit_channel.erl, 1.8.0")
    paging_ratio: float = other(
        0.0, "no rabbit_variable_queue.erl before 2.0.0: messages stay in memory"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq15(RabbitMq18):
    """Numbers of RabbitMQ 1.5.0, which asks clients to stop, and believes them."""

    name: str = "rmq1.5"
    title: str = "RabbitMQ 1.5.0"
    version: str = "1.5.0"

    alarm_brake: str = other("flow", "rabbit_channel.erl, 1.5.0: conserve_memory")
    client_flow: str = other("ignored", "rabbit_channel.erl:handle_method, 1.5.0 to 1.7.2")
    qos: str = other("ignored", "rabbit_channel.erl, 1.5.0: qos_ok, and nothing else")
    memory_high_watermark: float = other(0.95, "scripts/rabbitmq-server, 1.5.0: -os_mon")
    memory_counts: str = other(
        "machine", "rabbit_memsup_linux.erl: without free, buffers and cached"
    )
    settles_in_turn: bool = other(
        True, "rabbit_amqqueue.erl, 1.5.0: gen_server knows no priorities"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blog2008(RabbitMq15):
    """RabbitMQ 1.5 as the article of November 2008 drove it.

    Two rates of the article are given: how fast the broker takes what is published while it hands
    it out, and how fast the consumer is by itself. How fast the consumer is beside the producer is
    not, nor is any latency.
    """

    name: str = "blog2008"
    title: str = "RabbitMQ 1.5 as the article measured it, November 2008"

    reader_us: int = other(
        29, "ours; a message is three frames: together as long as channel_content_us"
    )
    channel_content_us: int = other(
        87, "ours; each process needs as long for a message as the queue"
    )
    queue_enqueue_us: int = other(
        88, "article: 5,700 messages a second go in and out, half of 175 us"
    )
    queue_deliver_us: int = other(
        87, "article: 5,700 messages a second go in and out, half of 175 us"
    )
    processing_us: int = other(
        174,
        "article: a consumer alone takes 4,133 to 4,588 a second; 4,300, of which two frames take"
        " the reader's 58 us",
    )
    penalty_ns: int = other(
        2_000,
        "bif.c:do_send: 4 reductions for each message that waits; ours: 2,000 reductions, a slice"
        " of time, last a millisecond",
    )
    wire_latency_us: int = other(
        0, "article: client and broker on one machine; loopback is left out"
    )
    message_bytes: int = other(10_000, "article: MulticastMain -s 10000")
