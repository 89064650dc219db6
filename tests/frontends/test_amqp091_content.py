"""A message published over one protocol is consumed over the other, as RabbitMQ converts it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.broker.rig import RawClient
from workbench.amqp091 import values as v091
from workbench.amqp091.frame import ContentHeader, Frame, encode_item
from workbench.amqp091.methods import BasicGet, ChannelClose, Properties, QueueDeclare
from workbench.amqp10 import messaging as v1
from workbench.amqp10.values import Char, Int, Long, Symbol, Timestamp, UByte, UInt, ULong
from workbench.frontends import accept, message_of
from workbench.queues.arguments import EXPIRY_LIMIT_MS
from workbench.sim import Wire

from .rig091 import RMQ43, Rig091

ID = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")


def rig() -> tuple[Rig091, Any, Any]:
    made = Rig091(RMQ43, addresses_v1=True)
    client, channel = made.channel()
    channel.send(QueueDeclare(queue="q", durable=True))
    made.rest()
    return made, client, channel


def over_10(made: Rig091) -> list[v1.Section]:
    """What an AMQP 1.0 consumer of the queue gets."""
    client = RawClient()
    end = accept(made.broker, "c9")
    wire = Wire(made.clock, client, end, latency_us=(0, 0), connection="c9")
    end.connect(wire)
    client.connect(wire)
    made.rest()
    session = client.amqp.begin()
    made.rest()
    link = session.attach_receiver("r", "q")
    made.rest()
    link.grant(10)
    made.rest()
    (delivery,) = [one.delivery for one in client.events if hasattr(one, "delivery")]
    return v1.decode_message(delivery.payload)


def over_091(made: Rig091, client: Any, channel: Any, *sections: v1.Section) -> Any:
    """What an AMQP 0-9-1 consumer gets of an AMQP 1.0 message."""
    made.broker.queues["q"].publish(message_of(v1.encode_message(sections)))
    made.rest()
    channel.send(BasicGet(queue="q", no_ack=True))
    made.rest()
    return client.messages()[-1]


def of(sections: list[v1.Section], kind: type) -> Any:
    found = [one for one in sections if isinstance(one, kind)]
    return found[0] if found else None


def test_properties_become_sections() -> None:
    """Each where RabbitMQ puts it; the type of a number is kept."""
    made, _, channel = rig()
    properties = Properties(
        content_type="text/plain",
        delivery_mode=2,
        priority=7,
        expiration="60000",
        message_id=ID.urn,
        correlation_id="corr",
        reply_to="answers here",
        timestamp=1_000,
        type="order",
        user_id="guest",
        app_id="app",
        headers={"k": v091.UnsignedByte(5), "n": 7, "x-mine": True, "CC": ["q"], "t": {"a": 1}},
    )
    channel.publish("", "q", b"body", properties)
    made.rest()
    sections = over_10(made)
    header, told = of(sections, v1.Header), of(sections, v1.Properties)
    assert (header.durable, header.priority, header.ttl) == (True, 7, 60_000)
    assert (told.message_id, told.correlation_id) == (ID, "corr")
    assert (told.reply_to, told.content_type) == ("/queues/answers%20here", "text/plain")
    assert (told.creation_time, told.user_id, told.group_id) == (1_000_000, b"guest", "app")
    assert of(sections, v1.ApplicationProperties).value == {"k": UByte(5), "n": Int(7)}
    annotations = of(sections, v1.MessageAnnotations).value
    assert annotations[Symbol("x-basic-type")] == "order"
    assert annotations[Symbol("x-mine")] is True
    assert annotations[Symbol("x-cc")] == ["q"]
    assert annotations[Symbol("x-routing-key")] == "q"
    assert of(sections, v1.Data).value == b"body"


def test_a_plain_message_has_a_header_and_its_body() -> None:
    """Transient: durable is false; nothing is made up."""
    made, _, channel = rig()
    channel.publish("", "q", b"m")
    made.rest()
    sections = over_10(made)
    assert of(sections, v1.Header).durable is False
    assert [type(one) for one in sections] == [v1.Header, v1.MessageAnnotations, v1.Data]


def test_sections_become_properties() -> None:
    """The other way round; what has no place is lost."""
    made, client, channel = rig()
    message = over_091(
        made,
        client,
        channel,
        v1.Header(durable=True, priority=3, ttl=60_000),
        v1.MessageAnnotations({Symbol("x-mine"): UInt(9), Symbol("x-exchange"): "e"}),
        v1.Properties(
            message_id=ID,
            correlation_id=b"\x01\x02",
            to="/queues/q",
            reply_to="/queues/answers%20here",
            content_type=Symbol("text/plain"),
            creation_time=5_000,
            group_id="app",
        ),
        v1.ApplicationProperties({"k": Long(5), "b": False}),
        v1.Data(b"bo"),
        v1.Data(b"dy"),
    )
    told = message.properties
    assert message.body == b"body"
    assert (told.delivery_mode, told.priority, told.expiration) == (2, 3, "60000")
    assert (told.message_id, told.correlation_id) == (ID.urn, None)
    assert (told.reply_to, told.app_id, told.timestamp) == ("answers here", "app", 5)
    assert told.headers == {"x-mine": 9, "k": 5, "b": False, "x-correlation-id": b"\x01\x02"}


def test_a_body_that_is_no_data_goes_encoded_and_comes_back() -> None:
    """Its type is amqp-1.0, and a 1.0 consumer gets the value again."""
    made, client, channel = rig()
    message = over_091(made, client, channel, v1.AmqpValue("text"))
    assert message.properties.type == "amqp-1.0"
    channel.publish("", "q", message.body, message.properties)
    made.rest()
    assert of(over_10(made), v1.AmqpValue).value == "text"


@pytest.mark.parametrize(
    "value", [True, v091.Byte(-1), v091.Short(2), 3, v091.Long(4), 0.5, "s", b"x", None]
)
def test_a_header_comes_back_as_it_was(value) -> None:
    """0-9-1 to 1.0 and back: same value, same letter."""
    from workbench.frontends.amqp091.content import _to_091, to_10

    back = _to_091(to_10(value))
    assert back == value
    kinds = {bytes: v091.LongString}
    assert type(back) is kinds.get(type(value), type(value))


def test_a_decimal_has_no_type_in_amqp_1_0() -> None:
    """It goes as a text here; 4.3.6 closes the consumer's connection, measured."""
    made, _, channel = rig()
    channel.publish("", "q", b"m", Properties(headers={"d": Decimal("1.5")}))
    made.rest()
    assert of(over_10(made), v1.ApplicationProperties).value == {"d": "1.5"}


def test_a_name_that_is_no_symbol_is_not_made_one() -> None:
    """Annotations are named by symbols, which are ASCII: another header is a property."""
    made, _, channel = rig()
    headers = {"x-ü": "m", "x-t": {"ü": 1, "u": 2}}
    channel.publish("", "q", b"m", Properties(headers=headers))
    made.rest()
    sections = over_10(made)
    assert of(sections, v1.ApplicationProperties).value == {"x-ü": "m"}
    noted = of(sections, v1.MessageAnnotations).value
    assert noted[Symbol("x-t")] == {"ü": 1, Symbol("u"): 2}


def test_an_expiration_may_be_as_long_as_a_queue_s_ttl() -> None:
    """Ten years, `rabbit_misc.erl:check_expiry`; of a ttl AMQP 1.0 has the low 32 bits."""
    made, client, channel = rig()
    channel.publish("", "q", b"m", Properties(expiration=str(EXPIRY_LIMIT_MS)))
    made.rest()
    assert made.queue().ready == 1
    assert of(over_10(made), v1.Header).ttl == EXPIRY_LIMIT_MS % 2**32
    channel.publish("", "q", b"m", Properties(expiration=str(EXPIRY_LIMIT_MS + 1)))
    made.rest()
    (closed,) = client.methods(ChannelClose)
    assert (closed.reply_code, made.queue().ready) == (406, 0)
    assert "legal is a number of milliseconds, 0 to 315360000000" in closed.reply_text


def test_a_death_tells_amqp_1_0_the_low_32_bits_of_its_ttl() -> None:
    """As `mc_amqp.erl` writes it, whatever came over AMQP 0-9-1."""
    made = Rig091(RMQ43, addresses_v1=True)
    _, channel = made.channel()
    more = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    channel.send(QueueDeclare(queue="short", durable=True, arguments={"x-message-ttl": 1, **more}))
    channel.send(QueueDeclare(queue="q", durable=True))
    channel.publish("", "short", b"m", Properties(expiration=str(2**32 + 7)))
    made.rest()
    made.clock.call_later(20_000, lambda: None)
    made.rest()
    told = of(over_10(made), v1.MessageAnnotations).value
    assert told["x-opt-deaths"].items[0]["ttl"] == 7


@pytest.mark.parametrize(
    "properties",
    [Properties(timestamp=2**63), Properties(headers={"t": v091.Timestamp(2**63)})],
    ids=["property", "header"],
)
def test_a_time_that_amqp_1_0_cannot_tell_is_its_latest_one(properties) -> None:
    """Seconds of 64 bits are more than milliseconds of 64 bits can count."""
    made, _, channel = rig()
    channel.publish("", "q", b"m", properties)
    made.rest()
    came = over_10(made)
    if properties.headers is None:
        assert of(came, v1.Properties).creation_time == Timestamp.MAXIMUM
    else:
        assert of(came, v1.ApplicationProperties).value == {"t": Timestamp.MAXIMUM}


LONG = "x-" + "y" * 300


@pytest.mark.parametrize(
    ("section", "headers"),
    [
        (v1.ApplicationProperties({"a": 1, "c": Char("x"), "l": [Char("x")]}), {"a": 1}),
        (v1.MessageAnnotations({Symbol(LONG): 1, Symbol("x-t"): {LONG: 1}}), None),
        (v1.ApplicationProperties({"n": ULong(2**64 - 1)}), {"n": -1}),
        (v1.ApplicationProperties({"t": Timestamp(-1_500)}), {"t": 2**64 - 1}),
    ],
    ids=["type", "name", "number", "time"],
)
def test_what_a_table_has_no_place_for_is_lost_and_the_consumer_lives(section, headers) -> None:
    """A long name `mc_amqpl.erl` drops, too; of a number Erlang writes the low 64 bits."""
    came = over_091(*rig(), section, v1.Data(b"m"))
    assert (came.body, came.properties.headers) == (b"m", headers)


def test_a_property_that_does_not_fit_is_left_out() -> None:
    """Anybody may write the annotations in which RabbitMQ keeps the properties of 0-9-1."""
    names = ("type", "priority", "expiration", "delivery-mode")
    annotations = {Symbol(f"x-basic-{name}"): Long(300) for name in names}
    told = v1.Properties(content_type=Symbol("t" * 300), creation_time=-5_000)
    came = over_091(*rig(), v1.MessageAnnotations(annotations), told, v1.Data(b"m"))
    assert came.properties == Properties(timestamp=2**64 - 5)
    assert encode_item(Frame(1, ContentHeader(body_size=1, properties=came.properties)))


def test_a_content_type_that_is_no_symbol_is_left_out() -> None:
    """One of 0-9-1 is any text, one of 1.0 is ASCII."""
    made, _, channel = rig()
    channel.publish("", "q", b"m", Properties(content_type="text/ü", content_encoding="ü"))
    made.rest()
    sections = over_10(made)
    assert (of(sections, v1.Properties), of(sections, v1.Data).value) == (None, b"m")
