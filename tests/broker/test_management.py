"""RabbitMQ's management node: what a request is answered with (facts 3.10)."""

import pytest

from workbench.amqp.messaging import AmqpValue, Properties, decode_message, encode_message
from workbench.broker.management import Management, QueueConflictError, QueueInfo
from workbench.broker.routing import Routing


class Host:
    """A broker as far as the management node asks."""

    def __init__(self):
        self.routing = Routing()
        self.queues = {}

    def queue_info(self, name):
        return self.queues.get(name)

    def declare_queue(self, name, *, durable, auto_delete, exclusive, arguments):
        there = self.queues.get(name)
        if there is not None:
            if there.durable != durable:
                raise QueueConflictError(f"queue {name!r} is there with durable {there.durable}")
            return False
        if arguments.get("x-queue-type", "classic") not in ("classic", "quorum"):
            raise ValueError("no such queue type")
        self.queues[name] = QueueInfo(
            name=name,
            durable=durable,
            auto_delete=auto_delete,
            exclusive=exclusive,
            type=arguments.get("x-queue-type", "classic"),
            arguments=arguments,
            message_count=3,
            consumer_count=1,
            leader="workbench@one",
            replicas=("workbench@one",),
        )
        return True

    def delete_queue(self, name):
        return self.queues.pop(name).message_count

    def purge_queue(self, name):
        return self.queues[name].message_count


@pytest.fixture
def node():
    """A management node with an empty broker."""
    return Management(Host())


def statuses(node, *requests):
    """The status of each request in turn."""
    return [node.handle(*request).status for request in requests]


def test_a_queue_is_created_found_equal_or_in_conflict(node):
    """PUT /queues/:q is 201, then 200, then 409 for another declaration."""
    again = {"durable": False}
    assert statuses(
        node,
        ("GET", "/queues/q", None),
        ("PUT", "/queues/q", {}),
        ("PUT", "/queues/q", {}),
        ("PUT", "/queues/q", again),
        ("GET", "/queues/q", None),
    ) == [404, 201, 200, 409, 200]


def test_a_request_may_have_its_sections_in_any_order(node):
    """RabbitMQ's Python client writes a body of null before the properties."""
    node.handle("PUT", "/queues/q", {})
    body = encode_message([AmqpValue(None)])
    properties = Properties(message_id="1", subject="GET", to="/queues/q", reply_to="$me")
    for request in (
        body + encode_message([properties]),
        encode_message([properties, AmqpValue(None)]),
    ):
        assert decode_message(node.answer(request))[0].subject == "200"


def test_deleting_and_purging_tell_how_many_messages_went(node):
    """DELETE of a queue and of its messages answer with message_count; purging none is 404."""
    node.handle("PUT", "/queues/q", {})
    assert node.handle("DELETE", "/queues/q/messages", None).body == {"message_count": 3}
    assert node.handle("DELETE", "/queues/q", None).body == {"message_count": 3}
    assert node.handle("DELETE", "/queues/q", None).body == {"message_count": 0}
    assert node.handle("DELETE", "/queues/q/messages", None).status == 404


def test_names_are_percent_encoded_in_paths(node):
    """A queue may have any name."""
    node.handle("PUT", "/queues/a%2Fb%20c", {})
    assert node.handle("GET", "/queues/a%2Fb%20c", None).body["name"] == "a/b c"


def test_a_binding_is_made_listed_and_deleted_by_its_location(node):
    """The location that the list gives is the path that deletes; arguments tell bindings apart."""
    node.handle("PUT", "/queues/q", {})
    assert node.handle("PUT", "/exchanges/x", {"type": "topic"}).status == 204
    for arguments in ({}, {"x-match": "all", "a": 1}):
        made = {"source": "x", "destination_queue": "q", "binding_key": "k.#"}
        assert node.handle("POST", "/bindings", {**made, "arguments": arguments}).status == 204
    listed = node.handle("GET", "/bindings?src=x&dstq=q&key=k.%23", None).body
    assert [one["arguments"] for one in listed] == [{}, {"x-match": "all", "a": 1}]
    assert node.handle("DELETE", listed[1]["location"], None).status == 204
    assert node.handle("GET", "/bindings?src=x&dstq=q", None).body == listed[:1]


MAGIC_MATCH = {
    "source": "amq.headers",
    "destination_exchange": "amq.fanout",
    "arguments": {"x-match": "magic"},
}


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (("PUT", "/exchanges/amq.mine", {}), "403"),
        (("DELETE", "/exchanges/amq.direct", None), "403"),
        (("PUT", "/exchanges/x", {"type": "magic"}), "409"),
        (("POST", "/bindings", {"source": "x"}), "400"),
        (("POST", "/bindings", {"source": "nobody", "destination_exchange": "x"}), "404"),
        (("POST", "/bindings", {"source": "amq.direct", "destination_queue": "nobody"}), "404"),
        (("PUT", "/queues/q", {"durable": "yes"}), "400"),
        (("PUT", "/queues/q", [1]), "400"),
        (("PUT", "/queues/q", {"arguments": {"x-queue-type": "magic"}}), "400"),
        (("PATCH", "/queues/q", None), "400"),
        (("GET", "/nothing", None), "400"),
        (("GET", "/bindings", None), "400"),
        (("GET", "//[", None), "400"),
        (("GET", "http://[x/queues/q", None), "400"),
        (("PUT", "/exchanges/x", {"arguments": {"alternate-exchange": ["y"]}}), "409"),
        (("POST", "/bindings", MAGIC_MATCH), "409"),
    ],
)
def test_what_is_not_possible_has_a_status_and_a_text(node, request_, status):
    """Every refusal says why, in a text body."""
    method, path, body = request_
    message = [Properties(message_id=1, to=path, subject=method, reply_to="$me"), AmqpValue(body)]
    properties, _, answer = decode_message(node.answer(encode_message(message)))
    assert properties.subject == status
    assert isinstance(answer.value, str)
    assert answer.value


def test_a_request_without_a_message_id_is_a_bad_one(node):
    """Nobody could tell what such an answer belongs to."""
    properties, _, answer = decode_message(
        node.answer(encode_message([Properties(to="/queues/q", subject="GET"), AmqpValue(None)]))
    )
    assert properties.subject == "400"
    assert "message-id" in answer.value


def test_a_real_client_s_library_reads_request_and_response(node):
    """Proton writes the request and reads the response, in the types that clients expect."""
    proton = pytest.importorskip("proton", reason="needs python-qpid-proton")
    request = proton.Message(
        id="m1", address="/queues/q", subject="PUT", reply_to="$me", body={"durable": True}
    )
    response = proton.Message()
    response.decode(node.answer(request.encode()))
    assert (response.subject, response.correlation_id) == ("201", "m1")
    assert response.properties == {"http:response": "1.1"}
    told = response.body
    assert type(told["message_count"]) is proton.ulong
    assert type(told["consumer_count"]) is proton.uint
    assert isinstance(told["replicas"], proton.Array)
    assert told["vhost"] == "/"
