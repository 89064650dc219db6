"""RabbitMQ 4's virtual host: addresses, exchanges, confirms of a fan-out, deletion.

How a conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

import pytest

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.messaging import (
    Data,
    Header,
    MessageAnnotations,
    Properties,
    Rejected,
    Released,
    Target,
    encode_message,
)
from workbench.amqp10.performatives import Detach, Disposition, End
from workbench.amqp10.sasl import SaslClient
from workbench.amqp10.values import Symbol
from workbench.queues import QueueArguments

from .rig import RMQ40, RMQ43, Rig, rabbit
from .talk import Talk, message

PLAIN_GUEST = SaslClient(mechanism="PLAIN", user="guest", password="guest")
ABC = "queue a; queue b; queue c"
PLACES = {
    "a queue is named with percent-encoding": """
        queue a/b; attach to=/queues/a%2Fb; send m -> stock a/b=1
        receive of=/queues/a%2Fb; grant 1 -> got m""",
    "a direct exchange asks for the same key": f"""
        {ABC}; bind amq.direct a k; bind amq.direct b k; bind amq.direct c other
        attach to=/exchanges/amq.direct/k; send m -> stock a=1 b=1 c=0 | outcomes accepted""",
    "a fanout exchange asks for none": f"""
        {ABC}; bind amq.fanout a; bind amq.fanout b x
        attach to=/exchanges/amq.fanout/k; send m -> stock a=1 b=1 c=0 | outcomes accepted""",
    "a topic exchange matches patterns": f"""
        {ABC}; bind amq.topic a x.*; bind amq.topic b #; bind amq.topic c x.y.z
        attach to=/exchanges/amq.topic/x.y; send m -> stock a=1 b=1 c=0 | outcomes accepted""",
    "a headers exchange matches headers": f"""
        {ABC}; bind amq.headers a x-match=all n=1; bind amq.headers b n=2
        attach to=/exchanges/amq.headers; send m n=1 -> stock a=1 b=0 c=0 | outcomes accepted""",
    # Settled it is just gone; neither counts as unconfirmed afterwards.
    "a message that no queue gets is released": """
        attach to=/exchanges/amq.direct/nowhere; send m; presettled; send m
        -> outcomes released | unconfirmed 0 | attached True""",
    "the anonymous terminus sends each message where its `to` says": """
        queue a; queue b; bind amq.direct b k; attach to=anywhere
        send m to=/queues/a; send m to=/exchanges/amq.direct/k; send m to=/exchanges/amq.fanout
        -> stock a=1 b=1 | outcomes accepted*2 released""",
    # One step further; a circle of alternates ends.
    "an exchange hands what it cannot route to its alternate exchange": """
        queue rest; exchange x alternate=y; exchange y fanout alternate=x
        attach to=/exchanges/x/k; send m -> outcomes released
        bind y rest; send m -> outcomes released accepted""",
    "a message is accepted when the last of its queues has taken it": """
        queue fast; queue slow; bind amq.fanout fast; bind amq.fanout slow; stall slow
        attach to=/exchanges/amq.fanout; send m -> outcomes - | unconfirmed 1
        resume slow -> outcomes accepted""",
    "a deleted queue is no longer waited for if another has taken the message": """
        queue a; queue b; bind amq.fanout a; bind amq.fanout b; stall a
        attach to=/exchanges/amq.fanout; send m; delete a -> outcomes accepted | attached True""",
    "a message is released if every queue that it waited for is deleted": """
        queue a; queue b; bind amq.fanout a; bind amq.fanout b; stall a; stall b
        attach to=/exchanges/amq.fanout; send m; delete a -> outcomes -
        delete b -> outcomes released | attached True""",
    # Consumers and publishers of its address; what waits for its confirm is released first.
    "a deleted queue detaches its links with resource-deleted": """
        queue other; ready 5; receive of=/queues/q; grant 2; attach to=/queues/q
        attach o to=/queues/other; stall; s: send m
        delete -> deleted 3 | detaches amqp:resource-deleted amqp:resource-deleted | ends -
        queue q -> ready 0 | outcomes released
        wait 1 -> r.attached False | s.attached False | o.attached True""",
}


@rabbit
@pytest.mark.parametrize("script", PLACES.values(), ids=PLACES)
def test_where_a_message_goes_and_who_hears_of_it(preset, script) -> None:
    """By queue, exchange and `to`; accepted once, when all queues have it."""
    Talk(preset).play(script)


def rig_of(preset, *queues: str) -> Rig:
    """A rig with RabbitMQ's own addresses and these queues."""
    rig = Rig(preset, plain_names=False)
    for queue in queues:
        rig.broker.declare(queue)
    return rig


def outcomes(client) -> list[object]:
    """States that the broker told, in order of the deliveries."""
    found = {}
    for said in client.frames(Disposition):
        last = said.first if said.last is None else said.last
        found |= dict.fromkeys(range(said.first, last + 1), said.state)
    return [found[number] for number in sorted(found)]


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
        sender.send(message("x", subject=subject), settled=True)
    rig.rest()
    assert receiver.credit == 9


@rabbit
def test_more_routing_keys_may_be_in_the_annotation_x_cc_since_4_1(preset) -> None:
    """A queue gets the message once; 4.0 does not look (`lookup_routing_key`)."""
    rig = rig_of(preset, "a", "b", "c")
    _, session = rig.raw()
    rig.sender(session, "/queues/a").send(message("m", cc="b,a,none"))
    rig.rest()
    ready = {name: rig.queue(name).ready for name in "abc"}
    assert ready == {"a": 1, "b": int(preset is RMQ43), "c": 0}


COPIES = {
    "no list": "b",
    "not all strings": ["b", 3],
    "symbols": [Symbol("b")],
}


@pytest.mark.parametrize("value", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("to", ["", "/queues/a"])
def test_an_x_cc_that_is_no_list_of_strings_is_refused_by_4_3(value, to) -> None:
    """invalid-field: rejected if the message names its place, else released and the link ends."""
    rig = rig_of(RMQ43, "a", "b")
    client, session = rig.raw()
    link = rig.sender(session, Target() if to else "/queues/a")
    body = message("m", **({"to": to} if to else {}))
    link.send(encode_message([MessageAnnotations({Symbol("x-cc"): value})]) + body)
    rig.rest()
    (outcome,) = outcomes(client)
    if to:
        assert outcome.error.condition == ErrorCondition.INVALID_FIELD
        assert link.attached
    else:
        assert isinstance(outcome, Released)
        assert client.frames(Detach)[0].error.condition == ErrorCondition.INVALID_FIELD
    assert [rig.queue(name).ready for name in "ab"] == [0, 0]


USERS = {
    # name: (user-id, as whom the client has logged in, whether the message is taken)
    "none": (None, PLAIN_GUEST, True),
    "its own": (b"guest", PLAIN_GUEST, True),
    "anonymous is guest": (b"guest", SaslClient(), True),
    "another's": (b"admin", PLAIN_GUEST, False),
    "another's, of anonymous": (b"anonymous", SaslClient(), False),
}


@rabbit
@pytest.mark.parametrize(("user", "sasl", "taken"), USERS.values(), ids=USERS)
@pytest.mark.parametrize("to", ["", "/queues/q", "/exchanges/amq.fanout"])
def test_nobody_sends_in_another_s_name(preset, user, sasl, taken, to) -> None:
    """unauthorized-access, whatever the target: 4.3 detaches the link, 4.0 ends the session."""
    rig = rig_of(preset, "q")
    rig.broker.vhost.bind("amq.fanout", "q", "")
    client, session = rig.raw(sasl=sasl)
    link = rig.sender(session, to or Target())
    properties = Properties(user_id=user, to=None if to else "/queues/q")
    link.send(encode_message([Header(), properties, Data(b"m")]))
    rig.rest()
    assert rig.queue().ready == taken
    if not taken:
        (fault,) = client.frames(Detach if preset is RMQ43 else End)
        assert fault.error.condition == ErrorCondition.UNAUTHORIZED_ACCESS
        assert outcomes(client) == []


@pytest.mark.parametrize(
    ("to", "condition"),
    [
        (None, ErrorCondition.PRECONDITION_FAILED),
        ("q", ErrorCondition.PRECONDITION_FAILED),
        ("/exchanges/none/k", ErrorCondition.NOT_FOUND),
    ],
)
@pytest.mark.parametrize("settled", [True, False])
@rabbit
def test_a_message_for_no_place_is_rejected(preset, to, condition, settled) -> None:
    """A settled one leaves no other way to say so than a detach, which names its tag.

    So it is in `rabbit_amqp_session.erl` of 4.0.5, too; only its first beta released the message.
    """
    rig = rig_of(preset, "q")
    client, session = rig.raw()
    sender = rig.sender(session, Target())
    sender.send(
        message("x", **({} if to is None else {"to": to})), settled=settled, delivery_tag=b"tag"
    )
    rig.rest()
    detached = client.frames(Detach)
    if not settled:
        (outcome,) = outcomes(client)
        assert isinstance(outcome, Rejected)
        assert outcome.error.condition == condition
        assert detached == []
        sender.send(message("x", to="/queues/q"))
        rig.rest()
        assert rig.queue().ready == 1
        return
    assert detached[0].error.condition == condition
    assert detached[0].closed
    assert outcomes(client) == []
    assert detached[0].error.info == {"delivery-tag": b"tag"}
    assert client.frames(End) == []


@rabbit
@pytest.mark.parametrize("settled", [True, False])
def test_nobody_publishes_to_an_internal_exchange_by_naming_it_in_to(preset, settled) -> None:
    """unauthorized-access: 4.3 detaches the link, without an outcome; 4.0 ends the session."""
    rig = rig_of(preset, "q")
    client, session = rig.raw()
    sender = rig.sender(session, Target())
    sender.send(message("x", to="/exchanges/amq.rabbitmq.trace/k"), settled=settled)
    rig.rest()
    assert outcomes(client) == []
    (ending,) = client.frames(End if preset is RMQ40 else Detach)
    assert ending.error.condition == ErrorCondition.UNAUTHORIZED_ACCESS


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
        by.send(message("x"))
    rig.rest()
    rig.broker.delete("q")
    rig.rest()
    assert sender.attached is not detached
    if not detached:
        sender.send(message("x"))
        rig.rest()
        assert outcomes(client)[-1] == Released()
