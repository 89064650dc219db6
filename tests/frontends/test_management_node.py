"""The management node over AMQP, asked by python-qpid-proton as RabbitMQ's own clients ask it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.broker.rig import RMQ43, Rig, rabbit
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import AmqpValue, Properties, Source, Target, encode_message
from workbench.amqp10.performatives import (
    Attach,
    Detach,
    End,
    Flow,
    Role,
    SenderSettleMode,
    Transfer,
)

from .proton_client import ProtonClient, proton

Ask = Callable[..., tuple[str, object]]


def asking(preset) -> tuple[Rig, ProtonClient, Ask]:
    """A rig, a client, and a function that asks the management node and waits for the answer."""
    rig = Rig(preset, plain_names=False)
    client = rig.connect(ProtonClient())
    return rig, client, asks(rig, client)


def asks(rig: Rig, client: ProtonClient) -> Ask:
    rig.rest()
    sender, receiver = client.pair()
    rig.rest()

    def ask(method: str, path: str, body: object = None) -> tuple[str, object]:
        number = client.request(sender, method, path, body)
        rig.rest()
        (answer,) = client.take(receiver)
        assert answer.correlation_id == number
        assert answer.properties == {"http:response": "1.1"}
        return answer.subject, answer.body

    return ask


@rabbit
def test_a_client_declares_binds_publishes_purges_and_deletes(preset) -> None:
    """The life of a queue by management alone; what is published to the exchange reaches it."""
    rig, client, ask = asking(preset)
    assert ask("PUT", "/exchanges/x", {"type": "topic"}) == ("204", None)
    status, queue = ask("PUT", "/queues/a%2Fb", {"durable": True, "arguments": {}})
    assert (status, queue["name"], queue["type"]) == ("201", "a/b", "classic")
    assert queue["message_count"] == 0
    assert list(queue["replicas"]) == [queue["leader"]]
    assert ask("PUT", "/queues/a%2Fb", {"durable": True, "arguments": {}})[0] == "200"
    binding = {"source": "x", "destination_queue": "a/b", "binding_key": "k.#", "arguments": {}}
    assert ask("POST", "/bindings", binding) == ("204", None)
    publisher = client.sender("p", "/exchanges/x/k.1")
    rig.rest()
    deliveries = [client.send(publisher, proton.Message(body=n)) for n in range(3)]
    rig.rest()
    assert [one.remote_state for one in deliveries] == [proton.Delivery.ACCEPTED] * 3
    assert ask("GET", "/queues/a%2Fb")[1]["message_count"] == 3
    status, bindings = ask("GET", "/bindings?src=x&dstq=a%2Fb&key=k.%23")
    assert (status, len(bindings)) == ("200", 1)
    assert ask("DELETE", bindings[0]["location"]) == ("204", None)
    late = client.send(publisher, proton.Message(body="late"))
    rig.rest()
    assert late.remote_state == proton.Delivery.RELEASED
    assert ask("DELETE", "/queues/a%2Fb/messages") == ("200", {"message_count": 3})
    assert ask("DELETE", "/queues/a%2Fb") == ("200", {"message_count": 0})
    assert ask("GET", "/queues/a%2Fb")[0] == "404"
    assert ask("DELETE", "/exchanges/x") == ("204", None)
    assert rig.broker.queues == {}


@rabbit
def test_a_queue_that_differs_from_the_one_declared_is_a_conflict(preset) -> None:
    """409, and the text says in what; nothing is changed."""
    rig, _, ask = asking(preset)
    assert ask("PUT", "/queues/q", {"arguments": {"x-max-length": 10}})[0] == "201"
    for other in ({"durable": False}, {"arguments": {"x-max-length": 11}}, {}):
        status, text = ask("PUT", "/queues/q", other)
        assert status == "409"
        assert "inequivalent arg" in text
        assert "Long(" not in text
    assert rig.broker.queues["q"].arguments.max_length == 10
    assert ask("PUT", "/queues/z", {"arguments": {"x-max-length": "many"}})[0] == "409"
    assert "z" not in rig.broker.queues


@rabbit
def test_deleting_a_queue_by_management_detaches_its_consumer(preset) -> None:
    """Proton sees the remote detach with resource-deleted."""
    rig, client, ask = asking(preset)
    ask("PUT", "/queues/q", {})
    consumer = client.receiver("r", "/queues/q")
    rig.rest()
    ask("DELETE", "/queues/q")
    assert consumer.state & proton.Endpoint.REMOTE_CLOSED
    assert consumer.remote_condition.name == "amqp:resource-deleted"


@rabbit
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_deletion_is_answered_before_the_same_session_hears_of_it(preset, kind) -> None:
    """A session is told as by a message, after what it is doing; clients wait for the response."""
    rig, client, ask = asking(preset)
    ask("PUT", "/queues/q", {"durable": True, "arguments": {"x-queue-type": kind}})
    publisher = client.sender("p", "/queues/q")
    rig.rest()
    client.send(publisher, proton.Message(body="m"))
    rig.rest()
    assert ask("DELETE", "/queues/q")[0] == "200"
    said = [
        row.kind for row in rig.recorder.rows if row.vantage == "broker" and row.event == "sent"
    ]
    assert said[-2:] == ["transfer", "detach"]


@rabbit
def test_an_exclusive_queue_is_its_connections_alone(preset) -> None:
    """Another connection can neither consume from it nor manage it; it goes with its own."""
    rig, owner, ask = asking(preset)
    ask("PUT", "/queues/mine", {"exclusive": True})
    other, session = rig.raw("c2")
    rig.receiver(session, "/queues/mine")
    error = (other.frames(Detach) + other.frames(End))[0].error
    assert error.condition == ErrorCondition.RESOURCE_LOCKED
    stranger = rig.connect(ProtonClient(), "c3")
    stranger_asks = asks(rig, stranger)
    requests = (("DELETE", "", None), ("PUT", "", {}), ("DELETE", "/messages", None))
    for method, path, body in requests:
        assert stranger_asks(method, f"/queues/mine{path}", body)[0] == "400"
    owner.connection.close()
    owner.pump()
    rig.rest()
    assert rig.broker.queues == {}


@rabbit
def test_an_auto_delete_queue_goes_with_its_last_consumer(preset) -> None:
    """Not before it has had one, and not while one is left."""
    rig, client, ask = asking(preset)
    ask("PUT", "/queues/q", {"auto_delete": True})
    consumers = [client.receiver(name, "/queues/q") for name in ("a", "b")]
    rig.rest()
    for consumer, left in zip(consumers, (["q"], []), strict=True):
        assert list(rig.broker.queues) == ["q"]
        consumer.close()
        client.pump()
        rig.rest()
        assert list(rig.broker.queues) == left


# -- the pair of links ----------------------------------------------------------------------


@rabbit
def test_requests_have_a_credit_of_8_and_again_at_4(preset) -> None:
    """The broker's grants on the link that requests come on."""
    rig, client, sender, _ = paired(preset)
    for number in range(9):
        sender.send(request(number), settled=True)
        rig.rest()
    granted = [f.link_credit for f in client.frames(Flow) if f.handle is not None]
    assert granted == [8, 8, 8]
    assert sender.credit == 7
    first, second = client.frames(Attach)
    assert first.properties == {"paired": True} == second.properties
    assert first.snd_settle_mode is SenderSettleMode.SETTLED is second.snd_settle_mode
    assert second.initial_delivery_count == preset.initial_delivery_count


def paired(preset, *, credit: int = 100, **terms):
    """A rig, a raw client, and both links to the node."""
    rig = Rig(preset, plain_names=False)
    client, session = rig.raw()
    common = {
        "snd_settle_mode": SenderSettleMode.SETTLED,
        "properties": {"paired": True},
        **terms,
    }
    sender = session.attach_sender("m", "/management", "/management", **common)
    receiver = session.attach_receiver("m", "/management", "/management", **common)
    rig.rest()
    if credit:
        receiver.grant(credit)
        rig.rest()
    return rig, client, sender, receiver


def request(number: int, path: str = "/queues/none") -> bytes:
    """A request that finds nothing."""
    return encode_message(
        [Properties(message_id=number, to=path, subject="GET", reply_to="$me"), AmqpValue(None)]
    )


@rabbit
@pytest.mark.parametrize(
    "parts",
    [(request(1)[:9], request(1)[9:]), (request(1)[:-1],), (request(1, "/nothing"),)],
    ids=["two frames", "no message", "no path"],
)
def test_what_is_no_request_ends_the_session(preset, parts) -> None:
    """internal-error: RabbitMQ's session fails on it."""
    rig, client, sender, _ = paired(preset)
    first = Transfer(handle=sender.handle, delivery_id=0, delivery_tag=b"", settled=True)
    for part in parts:
        transfer = replace(first, more=part is not parts[-1])
        client.wire.send(client, Frame(0, transfer, part))
    rig.rest()
    assert client.frames(End)[0].error.condition == ErrorCondition.INTERNAL_ERROR


def test_a_link_to_the_management_node_has_to_be_one_of_a_pair() -> None:
    """Without the property `paired`: invalid-field."""
    _, client, *_ = paired(RMQ43, credit=0, properties=None)
    conditions = [detach.error.condition for detach in client.frames(Detach)]
    assert conditions == [ErrorCondition.INVALID_FIELD] * 2


@rabbit
@pytest.mark.parametrize("lacks", ["credit", "half of the pair"])
def test_a_request_that_cannot_be_answered_ends_the_session(preset, lacks) -> None:
    """precondition-failed: the broker has no way to answer."""
    rig, client, sender, receiver = paired(preset, credit=0 if lacks == "credit" else 100)
    if lacks != "credit":
        receiver.close()
        rig.rest()
    sender.send(request(1), settled=True)
    rig.rest()
    assert client.frames(End)[0].error.condition == ErrorCondition.PRECONDITION_FAILED


@rabbit
def test_a_purge_tells_how_many_messages_went_when_the_replicas_agree(preset) -> None:
    """What was sent before it counts, though it is not yet in the queue; later requests wait."""
    rig = Rig(preset, plain_names=False)
    client = rig.connect(ProtonClient())
    rig.rest()
    requests, responses = client.pair()
    client.request(requests, "PUT", "/queues/q", {"arguments": {"x-queue-type": "quorum"}})
    rig.rest()
    assert len(client.take(responses)) == 1
    publisher = client.sender("p", "/queues/q")
    rig.rest()
    for number in range(5):
        client.send(publisher, proton.Message(body=number))
    client.request(requests, "DELETE", "/queues/q/messages")
    client.request(requests, "GET", "/queues/q")
    rig.rest()
    purged, looked = client.take(responses)
    assert purged.body == {"message_count": 5}
    assert looked.body["message_count"] == 0


@rabbit
def test_responses_wait_for_the_clients_window_and_count_against_its_credit(preset) -> None:
    """With the window closed they wait in the session's line; the third finds no credit left."""
    rig, client, sender, receiver = paired(preset, credit=2)
    sender.session.set_incoming_window(0)
    sender.session.flow()
    sender.send(request(1), settled=True)
    sender.send(request(2), settled=True)
    rig.rest()
    assert receiver.credit == 2
    sender.session.set_incoming_window(10)
    sender.session.flow()
    rig.rest()
    assert receiver.credit == 0
    sender.send(request(3), settled=True)
    rig.rest()
    assert client.frames(End)


def test_drain_and_echo_are_answered_on_the_link_that_responses_go_out_on() -> None:
    """Credit is given back at once: there is nothing to send."""
    rig, client, _, receiver = paired(RMQ43, credit=3)
    receiver.grant(3, drain=True)
    rig.rest()
    last = client.frames(Flow)[-1]
    assert (last.link_credit, last.delivery_count, last.drain) == (0, 3, True)
    receiver.grant(5, echo=True)
    rig.rest()
    assert client.frames(Flow)[-1].link_credit == 5


@rabbit
def test_a_half_that_is_there_is_not_attached_twice(preset) -> None:
    """`rabbit_amqp_session.erl:handle_attach`: precondition-failed."""
    rig, client, sender, _ = paired(preset)
    again = Attach(
        name=sender.name,
        handle=7,
        role=Role.SENDER,
        snd_settle_mode=SenderSettleMode.SETTLED,
        source=Source(address="/management"),
        target=Target(address="/management"),
        initial_delivery_count=0,
        properties={"paired": True},
    )
    client.wire.send(client, Frame(0, again))
    rig.rest()
    error = next(one.error for one in client.frames(Detach | End) if one.error)
    assert error.condition == ErrorCondition.PRECONDITION_FAILED


@rabbit
def test_credit_for_answers_that_cannot_be_added_ends_the_session(preset) -> None:
    """As a consumer's does: RFC 1982 adds no more than half a circle."""
    rig, client, _, receiver = paired(preset, credit=0)
    now = client.amqp.sessions[0].counters
    ids = (now.next_incoming_id, 100, now.next_outgoing_id, 100)
    client.wire.send(client, Frame(0, Flow(*ids, receiver.handle, 0, 2**32 - 1)))
    rig.rest()
    (end,) = client.frames(End)
    assert end.error.condition == ErrorCondition.INTERNAL_ERROR
    assert "link-credit 4294967295 cannot be added" in end.error.description
