"""The numbers of RabbitMQ, each with the setting or the source that it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .specification import AMQP_0_9_1, INT_MAX, RABBITMQ, UINT_MAX, Preset


def other(default: Any, source: str) -> Any:
    """A field of `Preset` with another default, from another source."""
    return field(default=default, metadata={"source": source})


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq43(Preset):
    """Numbers of RabbitMQ 4.3."""

    name: str = "rmq4.3"
    title: str = "RabbitMQ 4.3"
    conduct: str = RABBITMQ
    product: str = "RabbitMQ"
    version: str = "4.3.6"
    offered_capabilities: tuple[str, ...] = ("LINK_PAIR_V1_0", "ANONYMOUS-RELAY")

    max_frame_size: int = other(131072, "RabbitMQ frame_max; capture rmq43_a")
    first_max_frame_size: int = other(8192, "rabbit_amqp_reader.hrl: INITIAL_MAX_FRAME_SIZE")
    channel_max: int = other(63, "RabbitMQ session_max_per_connection, 64; capture rmq43_a")
    handle_max: int = other(255, "RabbitMQ link_max_per_session, 256; capture rmq43_a")
    idle_time_out_ms: int = other(30000, "RabbitMQ heartbeat, 60 s, halved; capture rmq43_a")
    max_message_size: int = other(16777216, "RabbitMQ max_message_size; capture rmq43_a")
    memory_high_watermark: float = other(0.6, "RabbitMQ vm_memory_high_watermark: 0.6 in 4.x")
    writes_defaults: bool = other(True, "capture rmq43_b: since 4.2 or 4.3; 4.0 leaves them out")
    outgoing_window: int = other(UINT_MAX, "rabbit_amqp_session.erl; capture rmq43_a: always this")
    incoming_window: int = other(400, "RabbitMQ max_incoming_window; capture rmq43_a")
    incoming_window_regrant_at: int | None = other(
        None,
        "rabbit_amqp_session.erl: max_incoming_window div 2; capture rmq43_a: at 200",
    )
    alarm_margin: int = other(
        400,
        "rabbit_amqp_session.erl: max_incoming_window; measured: the 401st ends the session",
    )
    largest_grant: int = other(
        INT_MAX,
        "serial_number.erl: nothing larger can be added; measured with 4294967295",
    )
    answers_every_echo: bool = other(False, "rabbit_amqp_session.erl:handle_control; measured")
    publisher_credit: int = other(
        170,
        "RabbitMQ max_link_credit: one and a half times as many are below 256; capture rmq43_a",
    )
    publisher_credit_regrant_at: int | None = other(
        None,
        "rabbit_amqp_session.erl: max_link_credit div 2; capture rmq43_a: at 85",
    )
    confirms_gate_credit: bool = other(True, "rabbit_amqp_session.erl:grant_link_credit; measured")
    gathers_confirms: bool = other(
        True,
        "rabbit_amqp_session.erl:noreply_coalesce; capture rmq43_a: 170 outcomes in 8 frames",
    )
    max_queue_credit: int = other(
        256, "RabbitMQ max_queue_credit; measured: 256, then 512 unsettled"
    )
    tells_activity: bool = other(True, "capture rmq43_h: flow property rabbitmq:active")
    property_filters: bool = other(True, "rabbit_amqp_filter_prop.erl, since 4.1")
    filter_set_bug: bool = other(
        False,
        "RabbitMQ deprecated_features.permit.amqp_filter_set_bug: off in 4.3",
    )
    strips_names: bool = other(True, "rabbit_channel.erl:strip_cr_lf, since 3.7")
    keeps_exclusive: bool = other(False, "rabbit_channel.erl:handle_method, since 3.2.0")
    frame_min_091: int = other(8192, "measured: 4.3.6 ends TCP at 4096, and takes 8192")
    unknown_exchange_type: int = other(406, "rabbit_exchange.erl: check_type, since 4.0")
    shared_prefetch: bool = other(
        False,
        "RabbitMQ deprecated_features.permit.global_qos: off in 4.3; measured on 4.3.6",
    )
    client_flow: str = other("refused", "rabbit_channel.erl:handle_method, since 3.3.0")
    auto_declare: bool = other(
        False, "rabbit_amqp_session.erl: a queue must exist [address version 2]"
    )
    addresses_v1: bool = other(
        False, "RabbitMQ deprecated_features.permit.amqp_address_v1: off in 4.3"
    )
    deprecated_queues: bool = other(
        False,
        "RabbitMQ deprecated_features.permit.transient_nonexcl_queues and queue_master_locator:"
        " off in 4.3",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq40(RabbitMq43):
    """Numbers of RabbitMQ 4.0, where they are not those of 4.3."""

    name: str = "rmq4.0"
    title: str = "RabbitMQ 4.0"
    version: str = "4.0.5"
    consumer_arguments: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("x-priority", ("classic", "quorum")),
        ("x-stream-offset", ("stream",)),
        ("x-stream-filter", ("stream",)),
        ("x-stream-match-unfiltered", ("stream",)),
    )

    transfer_reserve: int = other(
        5,
        "measured: 481 octets of a message in a frame of 512, where 4.3 has 486; capture rmq40_b"
        " shows the five fields written out as null",
    )
    writes_defaults: bool = other(False, "capture rmq40_b")
    refuses_links: bool = other(False, "rabbit_amqp_session.erl: 4.0 and 4.1 end the session")
    initial_delivery_count: int = other(
        4294967291,
        "rabbit_amqp_session.erl: shortly before it wraps; capture rmq40_b",
    )
    initial_next_outgoing_id: int = other(
        4294967292,
        "rabbit_amqp_session.erl: shortly before it wraps; capture rmq40_a",
    )
    tells_activity: bool = other(False, "4.0 sends no flow properties")
    quorum_limit_counts: str = other("acquired", "rabbit_fifo.erl:return_one, up to 4.2")
    quorum_two_priorities: bool = other(True, "rabbit_fifo_q.erl, 4.0 to 4.2")
    property_filters: bool = other(False, "rabbit_amqp_session.erl:filter_to_consumer_args, 4.0")
    filter_set_bug: bool = other(True, "rabbit_amqp_session.erl:keyfind_unpack_described, 4.0")
    takes_cancel_ok: bool = other(False, "rabbit_channel.erl:handle_method before 4.3")
    counts_failures: bool = other(
        False, "rabbit_fifo_client.erl, rabbit_variable_queue.erl, 4.0 to 4.2"
    )
    durable_unless_said: bool = other(True, "mc_amqp.erl:get_property, 4.0")
    addresses_v1: bool = other(
        True, "RabbitMQ deprecated_features.permit.amqp_address_v1: on in 4.0"
    )
    store_io_batch: int = other(
        4096,
        "RabbitMQ msg_store_io_batch_size, 3.6.7 to 4.0; in 4.0 nothing asks for it any more",
    )
    deprecated_queues: bool = other(
        True,
        "RabbitMQ deprecated_features.permit.transient_nonexcl_queues and queue_master_locator:"
        " on in 4.0",
    )
    frame_min_091: int = other(4096, "AMQP 0-9-1, 4.2.3: frame-min-size; rabbit_reader.erl, 4.0")
    shared_prefetch: bool = other(
        True,
        "RabbitMQ deprecated_features.permit.global_qos: on in 4.0; measured on 4.0.5",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq384(RabbitMq40):
    """Numbers of RabbitMQ 3.8.4, with which quorum queues brake earlier; AMQP 0-9-1 alone."""

    name: str = "rmq3.8.4"
    title: str = "RabbitMQ 3.8.4"
    version: str = "3.8.4"
    protocols: tuple[str, ...] = (AMQP_0_9_1,)
    # `rabbit_amqqueue.erl:consume_args` up to 3.8, which asks for no type of queue.
    consumer_arguments: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("x-priority", ("classic", "quorum", "stream")),
        ("x-cancel-on-ha-failover", ("classic", "quorum", "stream")),
    )

    memory_high_watermark: float = other(0.4, "RabbitMQ vm_memory_high_watermark: 0.4 in 3.x")
    max_message_size: int = other(134_217_728, "RabbitMQ max_message_size, 3.8")
    unknown_exchange_type: int = other(503, "rabbit_exchange.erl: check_type, 3.x")
    message_containers: bool = other(False, "rabbit_dead_letter.erl:make_msg, up to 3.12")
    names_classic_only: bool = other(False, "rabbit_channel.erl, up to 3.8")
    get_tells_none: bool = other(True, "rabbit_quorum_queue.erl:basic_get, up to 3.13")
    stream_nack: bool = other(
        False, "rabbit_stream_queue.erl:settle, 3.9 to 3.12: the first streams"
    )
    queue_sync_us: int = other(200_000, "rabbit_amqqueue_process.erl: SYNC_INTERVAL")
    paging_ratio: float = other(0.5, "RabbitMQ vm_memory_high_watermark_paging_ratio: 0.5 in 3.x")
    quorum_delivery_limit: int = other(
        -1, "rabbit_quorum_queue.erl: ra_machine_config, no default before 4.0"
    )
    mirrors: bool = other(True, "RabbitMQ policy ha-mode, up to 3.13")
    paging_most: int = other(
        2, "rabbit_variable_queue.erl:reduce_memory_use, 3.8: CreditDiscBound * 2"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq383(RabbitMq384):
    """Numbers of RabbitMQ 3.8.3, the last with the higher soft limit."""

    name: str = "rmq3.8.3"
    title: str = "RabbitMQ 3.8.3"
    version: str = "3.8.3"

    quorum_soft_limit: int = other(256, "RabbitMQ quorum_commands_soft_limit: 256, 3.8.0 to 3.8.3")


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq355(RabbitMq383):
    """Numbers of RabbitMQ 3.5.5, where credit between processes became a setting."""

    name: str = "rmq3.5.5"
    title: str = "RabbitMQ 3.5.5"
    version: str = "3.5.5"

    process_credit: int = other(200, "RabbitMQ credit_flow_default_credit, {200, 50} in 3.5.5")
    process_regrant_after: int = other(
        50, "RabbitMQ credit_flow_default_credit, {200, 50} in 3.5.5"
    )
    store_credit: int = other(2000, "RabbitMQ msg_store_credit_disc_bound, {2000, 500} in 3.5.5")
    store_regrant_after: int = other(
        500, "RabbitMQ msg_store_credit_disc_bound, {2000, 500} in 3.5.5"
    )
    flow_shown_us: int = other(5_000_000, "rabbit_reader.erl:i(state), 3.5.5: 5 s")
    qos_ends_shared: bool = other(False, "rabbit_channel.erl:handle_method, 3.3.0 to 3.6.10")
    paging_most: int = other(0, "rabbit_variable_queue.erl:reduce_memory_use, 3.5.5: no bound")
    store_io_batch: int = other(2048, "RabbitMQ msg_store_io_batch_size: 2048 in 3.5.5")
    strips_names: bool = other(False, "rabbit_channel.erl, 3.5.5")
    channel_max_091: int = other(0, "RabbitMQ channel_max: 0 in 3.5.5")
    max_message_size: int = other(2_147_383_648, "rabbit.hrl, 3.2.3 to 3.7: MAX_MSG_SIZE")
    tells_opening_091: bool = other(
        False, "rabbit_reader.erl:handle_exception, 3.5.5: once it runs"
    )
    memory_counts: str = other("used", "vm_memory_monitor.erl up to 3.6.10: erlang:memory(total)")
