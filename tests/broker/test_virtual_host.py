"""RabbitMQ 4's virtual host: addresses, exchanges, confirms of a fan-out, deletion."""

from __future__ import annotations

import pytest

from workbench import presets
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.messaging import (
    Accepted,
    AmqpValue,
    ApplicationProperties,
    MessageAnnotations,
    Properties,
    Rejected,
    Released,
    Target,
    encode_message,
)
from workbench.amqp10.performatives import Attach, Detach, Disposition, End
from workbench.amqp10.values import Symbol
from workbench.queues import QueueArguments

from .rig import Rig

RMQ40, RMQ43 = presets.get("rmq4.0"), presets.get("rmq4.3")
BOTH = pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda p: p.name)


def rig_of(preset, *queues: str) -> Rig:
    """A rig with RabbitMQ's own addresses and these queues."""
    rig = Rig(preset, plain_names=False)
    for queue in queues:
        rig.broker.declare(queue)
    return rig


def ready(rig: Rig) -> dict[str, int]:
    """Messages ready, by queue."""
    return {name: queue.queue.ready for name, queue in rig.broker.queues.items()}


def message(**parts) -> bytes:
    """A message with properties, annotations or headers."""
    sections = []
    if "annotations" in parts:
        sections.append(MessageAnnotations(parts.pop("annotations")))
    headers = parts.pop("headers", None)
    if parts:
        sections.append(Properties(**parts))
    if headers:
        sections.append(ApplicationProperties(headers))
    return encode_message([*sections, AmqpValue("x")])


def outcomes(client) -> list[object]:
    """States that the broker told, in order of the deliveries."""
    found = {}
    for said in client.frames(Disposition):
        last = said.first if said.last is None else said.last
        found |= dict.fromkeys(range(said.first, last + 1), said.state)
    return [found[number] for number in sorted(found)]


# -- addresses ------------------------------------------------------------------------------


@BOTH
def test_a_queue_is_named_with_percent_encoding(preset) -> None:
    """`/queues/a%2Fb` is the queue `a/b`; its attach is echoed."""
    rig = rig_of(preset, "a/b")
    client, session = rig.raw()
    sender = rig.sender(session, "/queues/a%2Fb")
    sender.send(message(), settled=True)
    rig.rest()
    assert ready(rig) == {"a/b": 1}
    receiver = rig.receiver(session, "/queues/a%2Fb")
    receiver.grant(1)
    rig.rest()
    assert receiver.delivery_count == (preset.initial_delivery_count + 1) % 2**32
    assert client.frames(Attach)[0].target.address == "/queues/a%2Fb"


def test_4_0_takes_addresses_of_version_1_and_makes_the_queue() -> None:
    """`q`, `/queue/q` and `/amq/queue/q`; the last makes none. 4.3 refuses all three."""
    rig = rig_of(RMQ40)
    _, session = rig.raw()
    for number, address in enumerate(("q", "/queue/q", "/amq/queue/q", "/topic/q")):
        assert rig.sender(session, address, name=f"s{number}").attached
    assert list(rig.broker.queues) == ["q"]
    rig = rig_of(RMQ43, "q")
    client, session = rig.raw()
    for number, address in enumerate(("q", "/queue/q", "/amq/queue/q", "/topic/q")):
        assert not rig.sender(session, address, name=f"s{number}").attached
    conditions = {detach.error.condition for detach in client.frames(Detach)}
    assert conditions == {ErrorCondition.INVALID_FIELD}


def test_a_source_of_version_1_binds_a_queue_of_its_own() -> None:
    """`/topic/a.*` is a new queue, bound with that key."""
    rig = rig_of(RMQ40)
    _, session = rig.raw()
    receiver = rig.receiver(session, "/topic/a.*")
    receiver.grant(10)
    sender = rig.sender(session, "/exchange/amq.topic")
    for subject in ("a.b", "b.a"):
        sender.send(message(subject=subject), settled=True)
    rig.rest()
    assert receiver.credit == 9


# -- exchanges ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exchange", "bound", "key", "headers", "gets"),
    [
        ("amq.direct", [("a", "k", {}), ("b", "k", {}), ("c", "other", {})], "k", {}, "ab"),
        ("amq.fanout", [("a", "", {}), ("b", "x", {})], "k", {}, "ab"),
        ("amq.topic", [("a", "x.*", {}), ("b", "#", {}), ("c", "x.y.z", {})], "x.y", {}, "ab"),
        (
            "amq.headers",
            [("a", "", {"x-match": "all", "n": 1}), ("b", "", {"n": 2})],
            "",
            {"n": 1},
            "a",
        ),
    ],
)
@BOTH
def test_a_message_goes_to_every_queue_that_its_exchange_leads_to(
    preset, exchange, bound, key, headers, gets
) -> None:
    """Direct, fanout, topic and headers; it is accepted once, when all of them have it."""
    rig = rig_of(preset, "a", "b", "c")
    for queue, binding_key, arguments in bound:
        rig.broker.vhost.bind(exchange, queue, binding_key, **arguments)
    client, session = rig.raw()
    address = f"/exchanges/{exchange}/{key}" if key else f"/exchanges/{exchange}"
    sender = rig.sender(session, address)
    sender.send(message(headers=headers))
    rig.rest()
    assert "".join(name for name, count in ready(rig).items() if count) == gets
    assert outcomes(client) == [Accepted()]


@BOTH
def test_a_message_that_no_queue_gets_is_released(preset) -> None:
    """Unsettled: released at once. Settled: gone. Neither counts as unconfirmed afterwards."""
    rig = rig_of(preset)
    client, session = rig.raw()
    sender = rig.sender(session, "/exchanges/amq.direct/nowhere")
    sender.send(message())
    sender.send(message(), settled=True)
    rig.rest()
    assert outcomes(client) == [Released()]
    assert rig.broker.overview()["c1.s.unconfirmed"] == 0
    assert sender.attached


@BOTH
def test_more_routing_keys_may_be_in_the_annotation_x_cc(preset) -> None:
    """The address's key and those of x-cc; a queue gets the message once."""
    rig = rig_of(preset, "a", "b", "c")
    _, session = rig.raw()
    sender = rig.sender(session, "/queues/a")
    sender.send(message(annotations={Symbol("x-cc"): ["b", "a", "none"]}), settled=True)
    rig.rest()
    assert ready(rig) == {"a": 1, "b": 1, "c": 0}


def test_an_exchange_hands_what_it_cannot_route_to_its_alternate_exchange() -> None:
    """One step further; a circle of alternates ends."""
    rig = rig_of(RMQ43, "rest")
    routing = rig.broker.vhost.routing
    routing.declare("x", arguments={"alternate-exchange": "y"})
    routing.declare("y", "fanout", arguments={"alternate-exchange": "x"})
    client, session = rig.raw()
    sender = rig.sender(session, "/exchanges/x/k")
    sender.send(message())
    rig.rest()
    rig.broker.vhost.bind("y", "rest")
    sender.send(message())
    rig.rest()
    assert outcomes(client) == [Released(), Accepted()]


# -- the anonymous terminus -----------------------------------------------------------------


@BOTH
def test_the_anonymous_terminus_sends_each_message_where_its_to_says(preset) -> None:
    """A target without address; `to` takes the three forms of version 2."""
    rig = rig_of(preset, "a", "b")
    rig.broker.vhost.bind("amq.direct", "b", "k")
    client, session = rig.raw()
    sender = rig.sender(session, Target())
    for to in ("/queues/a", "/exchanges/amq.direct/k", "/exchanges/amq.fanout"):
        sender.send(message(to=to))
    rig.rest()
    assert ready(rig) == {"a": 1, "b": 1}
    assert outcomes(client) == [Accepted(), Accepted(), Released()]


@pytest.mark.parametrize(
    ("to", "condition"),
    [
        (None, ErrorCondition.PRECONDITION_FAILED),
        ("q", ErrorCondition.PRECONDITION_FAILED),
        ("/exchanges/none/k", ErrorCondition.NOT_FOUND),
    ],
)
@pytest.mark.parametrize("settled", [True, False])
@BOTH
def test_a_message_for_no_place_is_rejected(preset, to, condition, settled) -> None:
    """A settled one leaves no other way to say so than a detach, which names its tag.

    So it is in `rabbit_amqp_session.erl` of 4.0.5, too; only its first beta released the message.
    """
    rig = rig_of(preset, "q")
    client, session = rig.raw()
    sender = rig.sender(session, Target())
    sender.send(message(to=to), settled=settled, delivery_tag=b"tag")
    rig.rest()
    detached = client.frames(Detach)
    if not settled:
        (outcome,) = outcomes(client)
        assert isinstance(outcome, Rejected)
        assert outcome.error.condition == condition
        assert detached == []
        sender.send(message(to="/queues/q"))
        rig.rest()
        assert ready(rig) == {"q": 1}
        return
    assert detached[0].error.condition == condition
    assert detached[0].closed
    assert outcomes(client) == []
    assert detached[0].error.info == {"delivery-tag": b"tag"}
    assert client.frames(End) == []


@BOTH
@pytest.mark.parametrize("settled", [True, False])
def test_nobody_publishes_to_an_internal_exchange_by_naming_it_in_to(preset, settled) -> None:
    """unauthorized-access: 4.3 detaches the link, without an outcome; 4.0 ends the session."""
    rig = rig_of(preset, "q")
    client, session = rig.raw()
    sender = rig.sender(session, Target())
    sender.send(message(to="/exchanges/amq.rabbitmq.trace/k"), settled=settled)
    rig.rest()
    assert outcomes(client) == []
    (ending,) = client.frames(End if preset is RMQ40 else Detach)
    assert ending.error.condition == ErrorCondition.UNAUTHORIZED_ACCESS


# -- confirms of several queues -------------------------------------------------------------


@BOTH
def test_a_message_is_accepted_when_the_last_of_its_queues_has_taken_it(preset) -> None:
    """A fan-out to a stalled queue and a fast one waits for the stalled one."""
    rig = rig_of(preset, "fast", "slow")
    for queue in ("fast", "slow"):
        rig.broker.vhost.bind("amq.fanout", queue)
    rig.broker.queues["slow"].stall()
    client, session = rig.raw()
    sender = rig.sender(session, "/exchanges/amq.fanout")
    sender.send(message())
    rig.rest()
    assert outcomes(client) == []
    assert rig.broker.overview()["c1.s.unconfirmed"] == 1
    rig.broker.queues["slow"].resume()
    rig.rest()
    assert outcomes(client) == [Accepted()]


@BOTH
@pytest.mark.parametrize(("gone", "outcome"), [(["a"], Accepted()), (["a", "b"], Released())])
def test_a_deleted_queue_is_no_longer_waited_for(preset, gone, outcome) -> None:
    """Accepted if another queue has taken the message, released if none has."""
    rig = rig_of(preset, "a", "b")
    for queue in ("a", "b"):
        rig.broker.vhost.bind("amq.fanout", queue)
    for queue in gone:
        rig.broker.queues[queue].stall()
    client, session = rig.raw()
    sender = rig.sender(session, "/exchanges/amq.fanout")
    sender.send(message())
    rig.rest()
    for queue in gone:
        rig.broker.delete(queue)
    rig.rest()
    assert outcomes(client) == [outcome]
    assert sender.attached


# -- the end of a queue ---------------------------------------------------------------------


@BOTH
def test_a_deleted_queue_detaches_its_links_with_resource_deleted(preset) -> None:
    """Consumers and publishers of its address; what waits for its confirm is released first."""
    rig = rig_of(preset, "q", "other")
    rig.fill("q", 5)
    client, session = rig.raw()
    receiver = rig.receiver(session, "/queues/q")
    receiver.grant(2)
    rig.rest()
    sender = rig.sender(session, "/queues/q")
    bystander = rig.sender(session, "/queues/other", name="o")
    rig.broker.queues["q"].stall()
    sender.send(message())
    rig.rest()
    assert rig.broker.delete("q") == 3
    rig.rest()
    detached = client.frames(Detach)
    assert [detach.error.condition for detach in detached] == [ErrorCondition.RESOURCE_DELETED] * 2
    assert all(detach.closed for detach in detached)
    assert outcomes(client) == [Released()]
    assert not receiver.attached and not sender.attached and bystander.attached
    assert client.frames(End) == []
    assert rig.broker.declare("q").queue.ready == 0


@pytest.mark.parametrize("queue_type", ["classic", "quorum", "stream"])
@pytest.mark.parametrize(
    ("first", "detached"),
    [
        (None, False),
        ("by this link", True),
        ("by another link", True),
        ("through an exchange", True),
        ("on another session", False),
        ("a consumer", True),
    ],
)
def test_a_deleted_queue_detaches_a_publisher_whose_session_knows_it(
    queue_type, first, detached
) -> None:
    """By a message that went there, or a consumer; who stays publishes to no queue: released."""
    rig = rig_of(RMQ43, "other")
    rig.broker.declare("q", QueueArguments(queue_type=queue_type))
    rig.broker.vhost.bind("amq.fanout", "q")
    client, session = rig.raw()
    sender = rig.sender(session, "/queues/q")
    if first == "a consumer":
        rig.receiver(session, "/queues/q")
    elif first is not None:
        other = client.amqp.begin() if first == "on another session" else session
        rig.rest()
        target = "/exchanges/amq.fanout" if "exchange" in first else "/queues/q"
        by = sender if first == "by this link" else rig.sender(other, target, name="o")
        by.send(message())
    rig.rest()
    rig.broker.delete("q")
    rig.rest()
    assert sender.attached is not detached
    if not detached:
        sender.send(message())
        rig.rest()
        assert outcomes(client)[-1] == Released()
