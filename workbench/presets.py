"""Every default number of a run, each with its unit, its source and what it means.

A preset is a frozen dataclass; a run takes all its numbers from one. A field says in its metadata
where its number comes from, and a preset that departs from another overrides the field together
with its source. `dataclasses.replace(get("spec"), incoming_window=8)` gives a changed copy.

Sources: `spec` is AMQP 1.0 (OASIS, 2012) with the clause; `Proton` is Qpid Proton 0.40; `go-amqp`
is Azure/go-amqp; `article` is the RabbitMQ team's "Ten Benefits of AMQP 1.0 Flow Control"; `ours`
is this project's choice, with the reason in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

UINT_MAX = 4294967295
INT_MAX = 2147483647


def _number(default: Any, *, unit: str, source: str, doc: str) -> Any:
    """A preset field: a default with unit, source and meaning."""
    return field(default=default, metadata={"unit": unit, "source": source, "doc": doc})


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Numbers of the `spec` preset: what the specification says, and plain choices elsewhere."""

    name: str = "spec"
    title: str = "the specification, with plain choices where it leaves one"

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
    incoming_window_regrant_at: int = _number(
        2500,
        unit="transfer frames",
        source="ours, half of incoming_window as go-amqp does",
        doc="the broker opens its incoming-window again when no more than this is left",
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
    client_max_frame_size: int = _number(
        32768,
        unit="octets",
        source="Proton; spec 2.7.1 asks for 512 or more",
        doc="largest frame that a scripted client accepts",
    )
    channel_max: int = _number(
        32767,
        unit="channel",
        source="Proton; spec 2.7.1 defaults to 65535",
        doc="highest channel number that either end accepts",
    )
    max_message_size: int = _number(
        0,
        unit="octets",
        source="spec 2.7.3: 0 is no limit",
        doc="largest message that the broker takes from a publisher",
    )
    # -- links to publishers ----------------------------------------------------------------
    publisher_credit: int = _number(
        100,
        unit="messages",
        source="ours; spec 2.6.7 leaves it to the receiver",
        doc="link-credit that the broker grants to a publisher, whatever its queues do",
    )
    publisher_credit_regrant_at: int = _number(
        50,
        unit="messages",
        source="ours, half of publisher_credit",
        doc="the broker grants again when a publisher has no more than this left",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number of a preset, as `describe` lists it.

    Attributes:
        name: the preset's field.
        value: its value in that preset.
        unit: what it counts.
        source: where the number comes from, or `changed` if it is not the preset's own any more.
        doc: what it does.
    """

    name: str
    value: int | bool
    unit: str
    source: str
    doc: str


_PRESETS: dict[str, Preset] = {"spec": Preset()}


def names() -> tuple[str, ...]:
    """Names of the presets there are."""
    return tuple(_PRESETS)


def get(name: str) -> Preset:
    """The preset of that name.

    Raises:
        ValueError: if there is none; the text lists the names.
    """
    try:
        return _PRESETS[name]
    except KeyError:
        raise ValueError(f"no preset {name!r}; there are: {', '.join(_PRESETS)}") from None


def describe(preset: Preset) -> tuple[Number, ...]:
    """Every number of a preset with unit, source and meaning, in order of declaration."""
    listed = []
    for item in fields(preset):
        if "source" not in item.metadata:
            continue
        value = getattr(preset, item.name)
        source = item.metadata["source"]
        if value != item.default:
            source = f"changed from {item.default} ({source})"
        listed.append(
            Number(
                name=item.name,
                value=value,
                unit=item.metadata["unit"],
                source=source,
                doc=item.metadata["doc"],
            )
        )
    return tuple(listed)
