"""The numbers of the `spec` preset, which declares every field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

UINT_MAX = 4294967295
INT_MAX = 2147483647
SPEC, RABBITMQ, BROKER_J = "spec", "rabbitmq", "broker-j"
AMQP_1_0, AMQP_0_9_1, AMQP_0_10 = "amqp-1.0", "amqp-0-9-1", "amqp-0-10"


def _number(default: Any, *, unit: str, source: str, doc: str) -> Any:
    """A preset field: a default with unit, source and meaning."""
    return field(default=default, metadata={"unit": unit, "source": source, "doc": doc})


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Numbers of the `spec` preset: what the specification says, and plain choices elsewhere."""

    name: str = "spec"
    title: str = "the specification, with plain choices where it leaves one"
    # Whose rules the broker follows where no number tells: `spec`, `rabbitmq` or `broker-j`.
    conduct: str = SPEC
    # The protocols that it is a model of.
    protocols: tuple[str, ...] = (AMQP_1_0, AMQP_0_9_1)
    # What the broker's open tells of itself.
    product: str = "AMQP Flow Workbench"
    version: str = ""
    offered_capabilities: tuple[str, ...] = ()
    # Which types of queue take which arguments of a consumer of AMQP 0-9-1; ours, as RabbitMQ 4.3:
    # `consumer_arguments` of rabbit_classic_queue.erl, rabbit_quorum_queue.erl and
    # rabbit_stream_queue.erl.
    consumer_arguments: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("x-priority", ("classic", "quorum")),
        ("x-consumer-timeout", ("quorum",)),
        ("x-stream-offset", ("stream",)),
        ("x-stream-filter", ("stream",)),
        ("x-stream-match-unfiltered", ("stream",)),
    )

    # -- broker as sender -------------------------------------------------------------------
    initial_delivery_count: int = _number(
        0,
        unit="sequence-no",
        source="ours; spec 2.6.7 lets the sender choose any",
        doc="delivery-count with which the broker begins as the sender of a link",
    )
    # -- sessions ---------------------------------------------------------------------------
    initial_next_outgoing_id: int = _number(
        0,
        unit="transfer-number",
        source="ours; spec 2.5.6 lets each side choose any",
        doc="number of the first transfer frame that the broker sends on a session",
    )
    client_initial_next_outgoing_id: int = _number(
        0,
        unit="transfer-number",
        source="ours; spec 2.5.6 lets each side choose any",
        doc="number of the first transfer frame that a scripted client sends on a session",
    )
    incoming_window: int = _number(
        5000,
        unit="transfer frames",
        source="ours, as go-amqp's session; spec 2.5.6 leaves it open",
        doc="how many transfer frames the broker takes on a session before it says more",
    )
    incoming_window_regrant_at: int | None = _number(
        2500,
        unit="transfer frames",
        source="ours, half of incoming_window as go-amqp does",
        doc="the broker opens its incoming-window again when no more than this is left; None: half"
        " of incoming_window",
    )
    alarm_margin: int = _number(
        0,
        unit="transfer frames",
        source="ours; spec 2.5.6 tells nobody to take more than was allowed",
        doc="how many transfer frames the broker takes on a session after an alarm has closed the"
        " window, at least",
    )
    client_incoming_window: int = _number(
        5000,
        unit="transfer frames",
        source="go-amqp session.go",
        doc="how many transfer frames a scripted client takes on a session before it says more",
    )
    client_incoming_window_regrant_at: int = _number(
        2500,
        unit="transfer frames",
        source="go-amqp session.go: at half",
        doc="a scripted client opens its incoming-window again when no more than this is left",
    )
    outgoing_window: int = _number(
        INT_MAX,
        unit="transfer frames",
        source="Proton; spec 2.5.6 leaves it open",
        doc="outgoing-window that both ends announce; neither limits itself by it",
    )
    largest_grant: int = _number(
        UINT_MAX,
        unit="messages or transfer frames",
        source="spec 2.7.4: any uint",
        doc="largest link-credit and incoming-window of a client's flow that the broker survives;"
        " beyond it the session ends with internal-error",
    )
    answers_every_echo: bool = _number(
        True,
        unit="yes or no",
        source="spec 2.7.4",
        doc="an echo is answered wherever it is asked; otherwise only on links to consumers",
    )
    handle_max: int = _number(
        UINT_MAX,
        unit="handle",
        source="spec 2.7.2, default",
        doc="highest link handle that either end accepts on a session",
    )
    # -- connections ------------------------------------------------------------------------
    max_frame_size: int = _number(
        32768,
        unit="octets",
        source="Proton; spec 2.7.1 asks for 512 or more",
        doc="largest frame that the broker accepts",
    )
    first_max_frame_size: int = _number(
        512,
        unit="octets",
        source="spec 2.4.1: 512 before the opens are exchanged",
        doc="largest frame that the broker accepts before it has had the client's open",
    )
    client_max_frame_size: int = _number(
        32768,
        unit="octets",
        source="Proton; spec 2.7.1 asks for 512 or more",
        doc="largest frame that a scripted client accepts",
    )
    idle_time_out_ms: int = _number(
        0,
        unit="ms",
        source="spec 2.4.5: 0 is no limit",
        doc="the longest silence that the broker wants to hear; it closes after twice as long",
    )
    channel_max: int = _number(
        32767,
        unit="channel",
        source="Proton; spec 2.7.1 defaults to 65535",
        doc="highest channel number that either end accepts",
    )
    transfer_reserve: int = _number(
        0,
        unit="octets",
        source="spec 2.3.1: a frame may be as long as max-frame-size",
        doc="how much shorter the broker's frames of a large message stay",
    )
    writes_defaults: bool = _number(
        False,
        unit="yes or no",
        source="ours; spec 1.4: an absent field has its default",
        doc="the broker writes more, drain and echo out where they are false",
    )
    refuses_links: bool = _number(
        True,
        unit="yes or no",
        source="spec 2.6.3",
        doc="an attach that cannot be is refused; otherwise it ends the session",
    )
    max_message_size: int = _number(
        0,
        unit="octets",
        source="spec 2.7.3: 0 is no limit",
        doc="largest message that the broker takes from a publisher",
    )
    unfinished_octets: int = _number(
        67_108_864,
        unit="octets",
        source="ours: four messages of RabbitMQ's largest size; RabbitMQ has no such bound",
        doc="what a connection's unfinished deliveries may hold; beyond it the session whose"
        " transfer it was ends with resource-limit-exceeded",
    )
    memory_high_watermark: float = _number(
        0.6,
        unit="of the machine's memory; above 1: octets",
        source="ours, as RabbitMQ 4",
        doc="a broker on a socket sets its memory alarm while it holds more than this",
    )
    # -- AMQP 0-9-1 -------------------------------------------------------------------------
    channel_max_091: int = _number(
        2047,
        unit="channels",
        source="RabbitMQ channel_max",
        doc="how many channels an AMQP 0-9-1 connection may have; 0 is no limit",
    )
    frame_min_091: int = _number(
        4096,
        unit="octets",
        source="AMQP 0-9-1, 4.2.3: frame-min-size",
        doc="the smallest frame-max that an AMQP 0-9-1 client may ask for",
    )
    unknown_exchange_type: int = _number(
        503,
        unit="reply code",
        source="AMQP 0-9-1, exchange.declare, rule support; rabbit_exchange.erl: check_type, 3.x",
        doc="what the declaration of an exchange of a type that nobody has is answered with",
    )
    tells_opening_091: bool = _number(
        True,
        unit="yes or no",
        source="AMQP 0-9-1, connection.open; rabbit_reader.erl:handle_exception, since 3.7",
        doc="what is wrong between tune-ok and open-ok (say, the virtual host is not there) is told"
        " by connection.close; otherwise TCP ends without a word",
    )
    close_frees_channel: bool = _number(
        False,
        unit="yes or no",
        source="rabbit_reader.erl:handle_frame, before 2.4.0",
        doc="the number of an AMQP 0-9-1 channel is free as soon as its channel.close is read, so"
        " that a second close is one of a channel that is not open; and a close that crosses the"
        " broker's own has no answer",
    )
    unsent_limit: int = _number(
        200,
        unit="messages",
        source="rabbit_queue_consumers.erl: UNSENT_MESSAGE_LIMIT",
        doc="so many messages of one queue wait for the writer of an AMQP 0-9-1 channel, and the"
        " queue hands it no more",
    )
    flow_shown_us: int = _number(
        0,
        unit="us",
        source="measured: 4.3.6 shows `running` again within 20 ms; the 5 s of rabbit_reader.erl"
        " say nothing since 3.7, which asks besides whether credit stops it still",
        doc="how long a connection is shown in `flow` from when credit has stopped it, however soon"
        " it goes on",
    )
    client_publish_us: int = _number(
        0,
        unit="us",
        source="ours; 0 leaves the broker alone to explain what is seen",
        doc="how long a scripted AMQP 0-9-1 client whose tasks share a lock holds it for a message",
    )
    client_ack_us: int = _number(
        0,
        unit="us",
        source="ours; as client_publish_us",
        doc="how long it holds it for an acknowledgement",
    )
    shared_prefetch: bool = _number(
        True,
        unit="yes or no",
        source="RabbitMQ deprecated_features.permit.global_qos; measured: 3.10.8, 4.0.5",
        doc="basic.qos with global = true limits all consumers of a channel together; otherwise it"
        " holds for each that is started later, as without",
    )
    client_flow: str = _number(
        "honoured",
        unit="honoured, refused or ignored",
        source="AMQP 0-9-1, channel.flow; RabbitMQ 1.8.0 to 3.2.4",
        doc="what a client's channel.flow does: it stops deliveries; or active = false is refused"
        " with not-implemented; or flow-ok tells active = true, and nothing changes",
    )
    takes_cancel_ok: bool = _number(
        True,
        unit="yes or no",
        source="AMQP 0-9-1, basic.cancel-ok, of both peers; RabbitMQ since 4.3",
        doc="a client's basic.cancel-ok ends its consumer; otherwise it ends the connection with"
        " command-invalid",
    )
    qos: str = _number(
        "consumer",
        unit="consumer, channel or ignored",
        source="RabbitMQ since 3.3.0",
        doc="what basic.qos with global = false limits: each consumer that is started later, the"
        " channel as a whole, or nothing",
    )
    qos_ends_shared: bool = _number(
        True,
        unit="yes or no",
        source="rabbit_channel.erl:handle_method, since 3.6.11",
        doc="a basic.qos with global = false takes a limit of the channel as a whole away",
    )
    immediate: bool = _number(
        False,
        unit="yes or no",
        source="ours, as RabbitMQ since 3.0.0",
        doc="a message published as immediate is returned if no consumer takes it at once;"
        " otherwise that is not implemented",
    )
    message_containers: bool = _number(
        True,
        unit="yes or no",
        source="mc.erl:record_death, since 3.13",
        doc="a dead letter of AMQP 0-9-1 has headers for its last death, too, and keeps the header"
        " CC with a key of its queue's; otherwise neither",
    )
    stream_nack: bool = _number(
        True,
        unit="yes or no",
        source="rabbit_stream_queue.erl:settle, since 3.13",
        doc="basic.nack and basic.reject of a stream's message do what basic.ack does; otherwise"
        " they are not implemented",
    )
    strips_names: bool = _number(
        False,
        unit="yes or no",
        source="AMQP 0-9-1, domains queue-name and exchange-name: no line end is legal",
        doc="CR and LF in the name of a queue or an exchange are dropped where it is declared,"
        " deleted or bound",
    )
    keeps_exclusive: bool = _number(
        True,
        unit="yes or no",
        source="AMQP 0-9-1, queue.declare: durable says nothing of exclusive",
        doc="an exclusive queue that is declared durable over AMQP 0-9-1 is so; otherwise that is"
        " read over, and its messages are not for the disk",
    )
    names_classic_only: bool = _number(
        True,
        unit="yes or no",
        source="rabbit_amqqueue.erl:is_server_named_allowed, since 3.9",
        doc="the server names a classic queue that is declared without a name, and refuses a quorum"
        " queue or a stream; otherwise it names those too",
    )
    get_tells_none: bool = _number(
        False,
        unit="yes or no",
        source="rabbit_fifo_client.erl:dequeue, since 4.0",
        doc="basic.get of a quorum queue tells of a message that comes for the first time, too, how"
        " often it came before: x-delivery-count 0",
    )
    # -- resource alarms --------------------------------------------------------------------
    alarm_brake: str = _number(
        "reader",
        unit="reader, flow or enforced-flow",
        source="ours, as RabbitMQ since 2.0.0",
        doc="how an alarm holds publishers of AMQP 0-9-1: the reader of a connection that publishes"
        " stops; or each channel is sent channel.flow, and no more; or that, and who goes on or"
        " does not answer loses the channel",
    )
    flow_ok_us: int = _number(
        10_000_000,
        unit="us",
        source="rabbit_channel.erl, 1.8.0: FLOW_OK_TIMEOUT",
        doc="how long an enforced channel.flow may wait for its flow-ok",
    )
    tells_blocked: bool = _number(
        True,
        unit="yes or no",
        source="RabbitMQ since 3.2.0",
        doc="a client whose connection an alarm has stopped is told, by connection.blocked",
    )
    memory_counts: str = _number(
        "resident",
        unit="machine, resident or used",
        source="RabbitMQ vm_memory_calculation_strategy: rss",
        doc="what is compared with the watermark: everything in use on the machine; the broker's"
        " process as the system counts it; or what the process itself counts, which it may have"
        " freed and not given back",
    )
    queue_limits: bool = _number(
        True,
        unit="yes or no",
        source="RabbitMQ: x-message-ttl since 2.2, x-max-length since 3.1",
        doc="messages may grow too old and queues too long; otherwise nobody looks at the arguments"
        " that say so",
    )
    # -- quorum queues ----------------------------------------------------------------------
    fsync_us: int = _number(
        5000,
        unit="us",
        source="article: at least 5 ms on a consumer's disk",
        doc="how long a node's disk takes for one fsync of its write-ahead log",
    )
    node_latency_us: int = _number(
        200,
        unit="us",
        source="ours; two machines in one room",
        doc="how long a message is under way between two nodes of a cluster",
    )
    quorum_soft_limit: int = _number(
        32,
        unit="commands",
        source="RabbitMQ quorum_commands_soft_limit; 256 before 3.8.4",
        doc="with so many commands pending a quorum queue counts as slow",
    )
    quorum_command_us: int = _number(
        0,
        unit="us",
        source="ours; 0 leaves disk and network alone to explain what is seen",
        doc="service time of a quorum queue's leader for one command",
    )
    quorum_delivery_limit: int = _number(
        20,
        unit="returns; -1: no limit",
        source="rabbit_quorum_queue.erl: DEFAULT_DELIVERY_LIMIT, since 4.0",
        doc="so many returns a message in a quorum queue survives whose declaration says no number",
    )
    quorum_limit_counts: str = _number(
        "failed",
        unit="failed or acquired",
        source="rabbit_fifo.erl:return_one, 4.3",
        doc="which returns count towards the delivery limit of a quorum queue",
    )
    quorum_two_priorities: bool = _number(
        False,
        unit="yes or no",
        source="rabbit_fifo_pq.erl, 4.3: 32 priorities",
        doc="a quorum queue knows two priorities of messages: above 4, and the others",
    )
    # -- message store ----------------------------------------------------------------------
    store_credit: int = _number(
        4000,
        unit="messages",
        source="RabbitMQ msg_store_credit_disc_bound, {4000, 800}",
        doc="messages that a classic queue may hand to the message store before its first grant",
    )
    store_regrant_after: int = _number(
        800,
        unit="messages",
        source="RabbitMQ msg_store_credit_disc_bound, {4000, 800}",
        doc="the message store grants a queue so many more when it has written so many",
    )
    index_embeds_below: int = _number(
        4096,
        unit="octets",
        source="RabbitMQ queue_index_embed_msgs_below",
        doc="a smaller message is kept in its queue's index and goes to no message store",
    )
    store_write_us: int = _number(
        0,
        unit="us",
        source="ours; as reader_us",
        doc="service time of the message store for writing one message",
    )
    store_flush_us: int = _number(
        25_000,
        unit="us",
        source="rabbit_msg_store.erl: SYNC_INTERVAL",
        doc="how long a message that was written waits for a sync at most: a store that is idle"
        " syncs at once",
    )
    queue_sync_us: int = _number(
        0,
        unit="us",
        source="ours; 0: a classic queue confirms as soon as it has taken a message in",
        doc="how long a durable message in a classic queue's index waits for a sync at most: a"
        " queue that is idle syncs at once; with 0 the message store is not waited for either",
    )
    # -- paging of classic queues -----------------------------------------------------------
    paging_ratio: float = _number(
        0.0,
        unit="of memory_high_watermark; 0: nothing is paged out",
        source="ours, as RabbitMQ 4, whose classic queues know no memory pressure",
        doc="classic queues page messages out while more memory than this is used",
    )
    paging_check_us: int = _number(
        2_500_000,
        unit="us",
        source="rabbit_memory_monitor.erl: DEFAULT_UPDATE_INTERVAL",
        doc="how often the memory monitor works out for how long queues may have messages in RAM",
    )
    paging_report_us: int = _number(
        5_000_000,
        unit="us",
        source="rabbit_amqqueue_process.erl: RAM_DURATION_UPDATE_INTERVAL",
        doc="how often a queue tells the memory monitor for how long it has messages in RAM",
    )
    paging_most: int = _number(
        0,
        unit="of store_credit; 0: no bound",
        source="ours; RabbitMQ 3.5.5 has no bound",
        doc="so many times the credit with a store are paged out in one go at most, and as many"
        " positions",
    )
    store_io_batch: int = _number(
        0,
        unit="messages",
        source="RabbitMQ msg_store_io_batch_size: removed in 4.1",
        doc="positions of messages are paged out so many at once, or more; 0: any number",
    )
    # -- mirrors ----------------------------------------------------------------------------
    mirrors: bool = _number(
        False,
        unit="yes or no",
        source="RabbitMQ 4.0: mirrored queues were removed",
        doc="a classic queue may have mirrors on other nodes",
    )
    mirrors_spend_credit: bool = _number(
        True,
        unit="yes or no",
        source="RabbitMQ mirroring_flow_control",
        doc="channels count credit with queues and their mirrors; otherwise with neither",
    )
    mirror_death_us: int = _number(
        60_000_000,
        unit="us",
        source="Erlang net_ticktime: 60 s, noticed after 45 to 75 s",
        doc="how long nobody notices that a node is cut off, and waits for what is there",
    )
    # -- filters ----------------------------------------------------------------------------
    property_filters: bool = _number(
        False,
        unit="yes or no",
        source="ours; AMQP Filter Expressions 1.0 is a specification of its own",
        doc="a stream's consumers may filter by properties of messages",
    )
    filter_set_bug: bool = _number(
        True,
        unit="yes or no",
        source="ours; RabbitMQ deprecated_features.permit.amqp_filter_set_bug",
        doc="a stream's filters may be given without a descriptor, against 3.5.8",
    )
    # -- messages ---------------------------------------------------------------------------
    counts_failures: bool = _number(
        True,
        unit="yes or no",
        source="rabbit_variable_queue.erl, rabbit_fifo_client.erl, 4.3",
        doc="a RabbitMQ classic queue counts failed deliveries, and a quorum queue tells how often"
        " a message was handed out beside how often that failed",
    )
    durable_unless_said: bool = _number(
        False,
        unit="yes or no",
        source="spec 3.2.1: durable is false by default",
        doc="RabbitMQ tells a message as durable whose header does not say",
    )
    # -- links to publishers ----------------------------------------------------------------
    publisher_credit: int = _number(
        100,
        unit="messages",
        source="ours; spec 2.6.7 leaves it to the receiver",
        doc="link-credit that the broker grants to a publisher",
    )
    publisher_credit_regrant_at: int | None = _number(
        None,
        unit="messages",
        source="ours, half of publisher_credit",
        doc="the broker grants again when a publisher has no more than this left; None: half of"
        " publisher_credit",
    )
    confirms_gate_credit: bool = _number(
        False,
        unit="yes or no",
        source="ours; spec 2.6.7 knows no such rule",
        doc="the broker grants again only while fewer than publisher_credit messages of the link"
        " wait for a queue's confirm, settled ones included",
    )
    gathers_confirms: bool = _number(
        False,
        unit="yes or no",
        source="ours; spec 2.7.6: a disposition may speak of a range",
        doc="a session gathers the confirms that come while it is busy and tells each range of"
        " delivery-ids in one frame, across links",
    )
    # -- links to consumers -----------------------------------------------------------------
    max_queue_credit: int = _number(
        0,
        unit="messages",
        source="ours; spec 2.6.7 knows no session between queue and link",
        doc="credit that a session passes on to a queue at once, and so the most that it buffers"
        " for a consumer; 0: credit reaches the queue as it is, and nothing is buffered",
    )
    tells_activity: bool = _number(
        False,
        unit="yes or no",
        source="spec 2.7.4 has no such property",
        doc="a consumer of a queue with a single active one hears in a flow whether it is active",
    )
    # -- clients' grants --------------------------------------------------------------------
    top_up_credit: int = _number(
        200,
        unit="messages",
        source="article: a consumer that grants 200",
        doc="link-credit of the article's top-up rule",
    )
    top_up_at: int = _number(
        99,
        unit="messages",
        source="article: and grants again below 100",
        doc="the article's top-up rule grants again when no more than this is left",
    )
    batch_credit: int = _number(
        10,
        unit="messages",
        source="ours; Proton's MessagingHandler prefetches 10 too",
        doc="N of the rules 'N, then wait for all N' and 'N, topped up at half'",
    )
    # -- time -------------------------------------------------------------------------------
    wire_latency_us: int = _number(
        1000,
        unit="us",
        source="ours; a millisecond is a slow local network and easy to draw",
        doc="how long a frame is under way, in each direction",
    )
    queue_enqueue_us: int = _number(
        50,
        unit="us",
        source="ours; slow enough to see messages come in one by one",
        doc="service time of a queue for taking one message in",
    )
    queue_deliver_us: int = _number(
        100,
        unit="us",
        source="ours; slow enough to see transfers leave one by one",
        doc="service time of a queue for handing one message out",
    )
    reader_us: int = _number(
        0,
        unit="us",
        source="ours; 0 is no time at all, a lesson sets what it wants to be seen",
        doc="service time of a connection's reader for taking one frame off the wire",
    )
    session_us: int = _number(
        0,
        unit="us",
        source="ours; as reader_us",
        doc="service time of a session for one frame that came, or one message of a queue",
    )
    session_ns: int = _number(
        0,
        unit="ns",
        source="ours; as session_us",
        doc="so much more than session_us; what is below a microsecond is carried over",
    )
    writer_us: int = _number(
        0,
        unit="us",
        source="ours; as reader_us",
        doc="service time of a connection's writer for putting one frame on the wire",
    )
    channel_us: int = _number(
        0,
        unit="us",
        source="ours; as reader_us",
        doc="service time of an AMQP 0-9-1 channel for one method",
    )
    channel_content_us: int = _number(
        0,
        unit="us",
        source="ours; as channel_us",
        doc="so much more than channel_us for a method with content, either way",
    )
    hands_on: bool = _number(
        False,
        unit="yes or no",
        source="ours; so that taking in and handing out can be seen one by one",
        doc="a classic queue hands a message on in the turn in which it takes it in, if a consumer"
        " of AMQP 0-9-1 or 1.0 can take it",
    )
    settles_in_turn: bool = _number(
        False,
        unit="yes or no",
        source="rabbit_amqqueue.erl: what settles comes before what is published",
        doc="the commit of a consumer's acknowledgements waits in the queue's mailbox behind what"
        " was published before",
    )
    penalty_ns: int = _number(
        0,
        unit="ns",
        source="ours; 0: nobody is charged",
        doc="what a process that counts no credit loses when it sends, for each message that waits"
        " at the receiver; Erlang charges 4 reductions [bif.c:do_send]",
    )
    process_credit: int = _number(
        400,
        unit="messages",
        source="RabbitMQ credit_flow_default_credit, {400, 200}",
        doc="messages that one process may send another before its first grant: an AMQP 0-9-1"
        " reader its channels, a channel each queue, an AMQP 1.0 session its writer; 0: processes"
        " count no credit",
    )
    process_regrant_after: int = _number(
        200,
        unit="messages",
        source="RabbitMQ credit_flow_default_credit, {400, 200}",
        doc="the other process grants so many more when it has handled so many",
    )
    processing_us: int = _number(
        0,
        unit="us",
        source="ours; 0 leaves the wire alone to explain what is seen",
        doc="how long a scripted receiver works on one message",
    )
    # -- workload ---------------------------------------------------------------------------
    messages: int = _number(
        10,
        unit="messages",
        source="ours; few enough to step through",
        doc="messages ready in the queue when a lesson begins",
    )
    message_bytes: int = _number(
        100,
        unit="octets",
        source="ours; a small message in one frame",
        doc="size of a message's body",
    )
    # -- conduct ----------------------------------------------------------------------------
    auto_declare: bool = _number(
        True,
        unit="yes or no",
        source="ours; the specification knows nodes, not how they come about",
        doc="a link to an unknown queue makes the queue; otherwise it is refused [2.6.3]",
    )

    addresses_v1: bool = _number(
        False,
        unit="yes or no",
        source="ours; the specification leaves addresses to the node",
        doc="under RabbitMQ's conduct, addresses of its version 1 are taken too: `q` and `/queue/q`"
        " name a queue, and make it",
    )

    deprecated_queues: bool = _number(
        True,
        unit="yes or no",
        source="ours; the specification knows no queues",
        doc="a queue may be declared that is neither durable nor exclusive, or with"
        " x-queue-master-locator",
    )

    @property
    def credit_regrant_at(self) -> int:
        """Credit at which a publisher is granted again."""
        at = self.publisher_credit_regrant_at
        return self.publisher_credit // 2 if at is None else at

    @property
    def window_regrant_at(self) -> int:
        """Window at which a session's is opened again."""
        at = self.incoming_window_regrant_at
        return self.incoming_window // 2 if at is None else at
