"""What a stream hands to a consumer that filters, and what its answer says of the filters.

What is expected is read from `rabbit_amqp_filter_prop.erl`, `rabbit_amqp_session.erl:parse_filters`
and `rabbit_stream_queue.erl` of 4.3, and was seen on a 4.3.6.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.broker.rig import RMQ40, RMQ43, Rig
from workbench.amqp10.messaging import (
    ApplicationProperties,
    Data,
    Header,
    MessageAnnotations,
    Properties,
    Source,
    decode_message,
    encode_message,
)
from workbench.amqp10.performatives import Attach, Flow
from workbench.amqp10.values import Described, Symbol, Timestamp, UInt, ULong
from workbench.queues import QueueArguments

FIRST = {Symbol("o"): Described(Symbol("rabbitmq:stream-offset-spec"), "first")}
ID = UUID(int=7)

# The messages of the stream, by their offsets.
MESSAGES = (
    [Properties(message_id="m", subject="red", group_sequence=3), ApplicationProperties({"k": 1})],
    [
        MessageAnnotations({Symbol("x-stream-filter-value"): "a"}),
        Properties(message_id=ULong(5), subject="ready", content_type=Symbol("text/plain")),
        ApplicationProperties({"k": 1.0, "s": "v", "b": True}),
    ],
    [
        MessageAnnotations({Symbol("x-stream-filter-value"): "b"}),
        Properties(message_id=ID, to="&x", creation_time=Timestamp(9)),
        ApplicationProperties({"k": "1", "s": Symbol("v"), "n": None}),
    ],
    [MessageAnnotations({Symbol("x-stream-filter-value"): "c"})],
)


def described(kind: str, value) -> Described:
    return Described(Symbol(kind), value)


def properties(**fields) -> Described:
    named = {Symbol(name.replace("_", "-")): value for name, value in fields.items()}
    return described("amqp:properties-filter", named)


def application(fields) -> Described:
    return described("amqp:application-properties-filter", fields)


def stream(preset=RMQ43) -> tuple[Rig, object, object]:
    rig = Rig(preset)
    rig.broker.declare("q", QueueArguments(queue_type="stream"))
    client, session = rig.raw()
    sender = rig.sender(session)
    for sections in MESSAGES:
        sender.send(encode_message([*sections, Data(b"x")]), settled=True)
        rig.rest()
    return rig, client, session


def offsets(link) -> list[int]:
    """Of the messages that came, from their annotations; and the tag is the same number."""
    found = []
    for delivery in link.unsettled.values():
        sections = decode_message(delivery.payload)
        (told,) = (one.value for one in sections if isinstance(one, MessageAnnotations))
        assert delivery.delivery_tag == told["x-stream-offset"].to_bytes(4, "big")
        found.append(int(told["x-stream-offset"]))
    return found


@pytest.mark.parametrize(
    ("filters", "came"),
    [
        ({}, [0, 1, 2, 3]),
        ({"f": described("rabbitmq:stream-filter", "a")}, [1]),
        ({"any name": described("rabbitmq:stream-filter", ["a", "c", 4])}, [1, 3]),
        (
            {
                "f": described("rabbitmq:stream-filter", "b"),
                "u": described("rabbitmq:stream-match-unfiltered", True),
            },
            [0, 2],
        ),
        ({"u": described("rabbitmq:stream-match-unfiltered", True)}, [0, 1, 2, 3]),
        ({"p": properties(subject="red")}, [0]),
        ({"p": properties(subject="&p:re")}, [0, 1]),
        ({"p": properties(subject="&s:y")}, [1]),
        ({"p": properties(to="&&x")}, [2]),
        ({"p": properties(message_id="m")}, [0]),
        ({"p": properties(message_id=ULong(5))}, [1]),
        ({"p": properties(message_id=ID)}, [2]),
        ({"p": properties(content_type=Symbol("text/plain"))}, [1]),
        ({"p": properties(creation_time=Timestamp(9))}, [2]),
        ({"p": properties(group_sequence=UInt(3), subject="red")}, [0]),
        ({"p": properties(group_sequence=UInt(3), subject="ready")}, []),
        ({"p": Described(ULong(0x173), {Symbol("subject"): "red"})}, [0]),
        ({"p": application({"k": 1})}, [0, 1]),
        ({"p": application({"k": "1"})}, [2]),
        ({"p": application({"b": True})}, [1]),
        ({"p": application({"b": 1})}, []),
        ({"p": application({"s": "v"})}, [1, 2]),
        ({"p": application({"n": None})}, [2]),
        ({"p": application({"k": None})}, [0, 1, 2]),
        ({"p": Described(ULong(0x174), {"k": 1}), "q": properties(subject="red")}, [0]),
        ({"f": described("rabbitmq:stream-filter", "a"), "p": properties(subject="red")}, []),
    ],
)
def test_a_stream_hands_out_what_passes_every_filter(filters, came) -> None:
    """The answer has them all: they are in force. Each message is a chunk of its own here."""
    rig, client, session = stream()
    asked = {**FIRST, **{Symbol(name): value for name, value in filters.items()}}
    link = rig.receiver(session, Source(address="q", filter=asked))
    answer = client.frames(Attach)[-1]
    assert answer.source.filter == asked
    link.grant(9)
    rig.rest()
    assert offsets(link) == came
    assert client.frames(Flow)[-1].available is None  # no credit was given back


@pytest.mark.parametrize(
    "value",
    [
        "not described",
        described("amqp:properties-filter", {}),
        described("amqp:properties-filter", {Symbol("subject"): "&q:x"}),
        described("amqp:properties-filter", {"subject": "red"}),
        properties(subject=Symbol("red")),
        properties(unknown="red"),
        application({Symbol("k"): 1}),
        application({str(number): number for number in range(17)}),
        described("amqp:sql-filter", "subject = 'red'"),
        described("rabbitmq:stream-filter", Symbol("a")),
        described("rabbitmq:stream-match-unfiltered", "yes"),
    ],
)
def test_a_filter_that_cannot_be_read_is_not_in_force(value) -> None:
    """It is missing in the answer, and everything comes."""
    rig, client, session = stream()
    link = rig.receiver(session, Source(address="q", filter={**FIRST, Symbol("p"): value}))
    assert client.frames(Attach)[-1].source.filter == FIRST
    link.grant(9)
    rig.rest()
    assert offsets(link) == [0, 1, 2, 3]


def test_of_two_filters_on_one_section_the_later_is_in_force() -> None:
    """The set is read from its end, and a section may be named once."""
    rig, client, session = stream()
    two = {Symbol("p"): properties(subject="red"), Symbol("q"): properties(subject="ready")}
    link = rig.receiver(session, Source(address="q", filter={**FIRST, **two}))
    assert client.frames(Attach)[-1].source.filter == {**FIRST, Symbol("q"): two[Symbol("q")]}
    link.grant(9)
    rig.rest()
    assert offsets(link) == [1]


def test_credit_is_for_what_passes_and_what_comes_later_is_looked_at_too() -> None:
    """One credit, two messages that pass: the second waits, and nothing else uses credit."""
    rig, client, session = stream()
    only = {**FIRST, Symbol("p"): application({"k": 1})}
    link = rig.receiver(session, Source(address="q", filter=only))
    link.grant(1)
    rig.rest()
    assert offsets(link) == [0]
    link.grant(5)
    rig.rest()
    assert offsets(link) == [0, 1]
    sender = rig.sender(session, name="more")
    for value in (2, 1):
        body = [ApplicationProperties({"k": value}), Data(b"x")]
        sender.send(encode_message(body), settled=True)
        rig.rest()
    assert offsets(link) == [0, 1, 5]
    link.grant(4, drain=True)
    rig.rest()
    assert (link.credit, client.frames(Flow)[-1].available) == (0, 0)


def test_links_of_a_stream_say_what_they_can_do() -> None:
    """Copy is its distribution mode, and both directions offer filter expressions, since 4.1."""
    for preset in (RMQ40, RMQ43):
        rig = Rig(preset)
        rig.broker.declare("q", QueueArguments(queue_type="stream"))
        rig.broker.declare("c")
        client, session = rig.raw()
        told = []
        for name in ("q", "c"):
            rig.receiver(session, Source(address=name), name=f"r{name}")
            told.append(client.frames(Attach)[-1])
            rig.sender(session, name, name=f"s{name}")
            told.append(client.frames(Attach)[-1])
        offered = ("AMQP_FILTEX_PROP_V1_0", "AMQP_FILTEX_SQL_V1_0") if preset is RMQ43 else None
        assert [one.offered_capabilities for one in told] == [offered, offered, None, None]
        modes = [one.source.distribution_mode for one in told[::2]]
        assert modes == (["copy", "move"] if preset is RMQ43 else [None, None])


def test_a_stream_s_header_leaves_open_what_the_publisher_s_does() -> None:
    """It is given back as it came, but for what a stream never tells."""
    rig = Rig(RMQ43)
    rig.broker.declare("q", QueueArguments(queue_type="stream"))
    _, session = rig.raw()
    sender = rig.sender(session)
    for header in (None, Header(), Header(durable=True, delivery_count=4)):
        sections = [] if header is None else [header]
        sender.send(encode_message([*sections, Data(b"x")]), settled=True)
        rig.rest()
    link = rig.receiver(session, Source(address="q", filter=FIRST))
    link.grant(9)
    rig.rest()
    headers = [decode_message(one.payload)[0] for one in link.unsettled.values()]
    assert [one.durable for one in headers] == [False, None, True]
    assert {(one.first_acquirer, one.delivery_count) for one in headers} == {(True, 0)}
