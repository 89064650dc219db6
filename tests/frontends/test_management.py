"""RabbitMQ's management node: what a request is answered with, and which requests are none.

The statuses are those that `rabbit_amqp_management.erl` gives, with the checks of
`rabbit_amqqueue.erl`, `rabbit_exchange.erl` and the types of queues that it calls; those of the
scenarios `mgmt_queues` and `mgmt_exchanges` in `tests/conformance` were seen.
"""

from decimal import Decimal

import pytest

from workbench import presets
from workbench.amqp091 import values as v091
from workbench.amqp10.messaging import AmqpValue, Properties, decode_message, encode_message
from workbench.amqp10.values import Byte, Char, Int, Long, Symbol, Timestamp, UInt, ULong
from workbench.broker import Broker
from workbench.broker.routing import Binding
from workbench.frontends.management import Management, UnexpectedRequestError
from workbench.sim import VirtualClock

ENDS = "the session ends"
QUORUM, STREAM = ({"x-queue-type": queue_type} for queue_type in ("quorum", "stream"))


class Node:
    """A broker's management node as one connection sees it."""

    def __init__(self, preset="rmq4.3"):
        self.vhost = Broker(VirtualClock(), presets.get(preset)).vhost
        self.mine = self.of("c1")

    def of(self, connection):
        """The same node for another connection."""
        return Management(self.vhost, connection)

    def ask(self, method, path, body=None, *, of=None):
        """Status and body of the answer to an encoded request."""
        properties = Properties(message_id=1, to=path, subject=method, reply_to="$me")
        request = encode_message([properties, AmqpValue(body)])
        try:
            properties, _, body = decode_message(answer_of(of or self.mine, request))
        except UnexpectedRequestError as error:
            return ENDS, str(error)
        return int(properties.subject), body.value

    def status(self, *request, **more):
        """The status alone; every refusal says why, in a text."""
        status, body = self.ask(*request, **more)
        assert status in (200, 201, 204) or (isinstance(body, str) and body)
        return status


def answer_of(management, request):
    """The encoded response, which is there at once."""
    answers = []
    management.answer(request, answers.append)
    (answer,) = answers
    return answer


@pytest.fixture
def node():
    """A management node with a shared, an exclusive and a quorum queue, a stream, an exchange."""
    made = Node()
    for name, more in {
        "q": {"arguments": {"x-max-length": 5}},
        "mine": {"exclusive": True, "durable": False},
        "quorum": {"arguments": QUORUM},
        "stream": {"arguments": STREAM},
    }.items():
        assert made.status("PUT", f"/queues/{name}", more) == 201
    assert made.status("PUT", "/exchanges/x", {"type": "topic", "arguments": {"a": 1}}) == 204
    return made


QUEUES = [
    ("GET", "/queues/q", None, 200),
    ("GET", "/queues/nobody", None, 404),
    ("GET", "/queues/", None, 404),
    ("PUT", "/queues/new", {}, 201),
    ("PUT", "/queues/", {}, 400),
    ("PUT", "/queues/a%0Ab", {}, 400),
    ("PUT", "/queues/amq.new", {}, 403),
    ("PUT", "/queues/amq.new", {"durable": 1}, 400),
    # declared again
    ("PUT", "/queues/q", {"arguments": {"x-max-length": 5}}, 200),
    ("PUT", "/queues/q", {"arguments": {"x-max-length": Byte(5), "x-queue-type": "classic"}}, 200),
    ("PUT", "/queues/q", {"arguments": {"x-max-length": 5, "x-unknown": 1}}, 200),
    ("PUT", "/queues/q", {"arguments": {"x-max-length": 6}}, 409),
    ("PUT", "/queues/q", {"arguments": {"x-max-length": 5, "x-overflow": "drop-head"}}, 409),
    ("PUT", "/queues/q", {"arguments": {"x-max-length": 5, "x-queue-version": 2}}, 409),
    ("PUT", "/queues/q", {}, 409),
    ("PUT", "/queues/q", {"durable": False, "arguments": {"x-max-length": 5}}, 409),
    ("PUT", "/queues/q", {"auto_delete": True, "arguments": {"x-max-length": 5}}, 409),
    ("PUT", "/queues/q", {"exclusive": True, "arguments": {"x-max-length": 5}}, 400),
    ("PUT", "/queues/q", {"arguments": QUORUM}, 409),
    ("PUT", "/queues/quorum", {"arguments": QUORUM}, 200),
    ("PUT", "/queues/quorum", {"durable": False, "arguments": QUORUM}, 409),
    ("PUT", "/queues/mine", {"exclusive": True, "durable": False}, 200),
    ("PUT", "/queues/mine", {"exclusive": False, "durable": False}, 400),
    # properties
    ("PUT", "/queues/n", {"durable": "yes"}, 400),
    ("PUT", "/queues/n", {"colour": "red"}, 400),
    ("PUT", "/queues/n", {Symbol("durable"): True}, 400),
    ("PUT", "/queues/n", {"unheard-of": Symbol("x")}, 400),
    ("PUT", "/queues/n", {"durable": False}, 400),
    ("PUT", "/queues/n", {"durable": False, "exclusive": True}, 201),
    ("PUT", "/queues/n", {"durable": False, "arguments": QUORUM}, 400),
    ("PUT", "/queues/n", {"exclusive": True, "arguments": QUORUM}, 400),
    ("PUT", "/queues/n", {"auto_delete": True, "arguments": STREAM}, 400),
    ("PUT", "/queues/n", {"arguments": {UInt(1): 2}}, 400),
    ("PUT", "/queues/n", {"arguments": {Symbol("x-max-length"): 2}}, 201),
    # arguments
    ("PUT", "/queues/n", {"arguments": {"x-unknown": [1, "a", None]}}, 201),
    ("PUT", "/queues/n", {"arguments": {"x-max-priority": 255}}, 201),
    ("PUT", "/queues/n", {"arguments": {"x-max-priority": 256}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-message-ttl": 315_360_000_000}}, 201),
    ("PUT", "/queues/n", {"arguments": {"x-message-ttl": 315_360_000_001}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-message-ttl": "1"}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-expires": 0}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-queue-type": "magic"}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-queue-type": b"stream"}}, 201),
    ("PUT", "/queues/n", {"arguments": {"x-max-age": "7D"}}, 409),
    ("PUT", "/queues/n", {"arguments": STREAM | {"x-max-length": 1}}, 409),
    ("PUT", "/queues/n", {"arguments": QUORUM | {"x-max-priority": 1}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-overflow": "drop-tail"}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-queue-version": 3}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-queue-leader-locator": "here"}}, 409),
    ("PUT", "/queues/n", {"arguments": {"x-queue-leader-locator": "balanced"}}, 201),
    ("PUT", "/queues/n", {"arguments": {"x-queue-master-locator": "random"}}, 400),
    ("PUT", "/queues/n", {"arguments": {"x-dead-letter-exchange": "gone"}}, 201),
    ("PUT", "/queues/n", {"arguments": {"x-dead-letter-exchange": 1}}, 400),
    ("PUT", "/queues/n", {"arguments": {"x-dead-letter-routing-key": "k"}}, 409),
    ("PUT", "/queues/n", {"arguments": QUORUM | {"x-dead-letter-strategy": "m"}}, 409),
    ("PUT", "/queues/n", {"arguments": QUORUM | {"x-quorum-initial-group-size": 0}}, 409),
    ("PUT", "/queues/n", {"arguments": STREAM | {"x-stream-filter-size-bytes": 9}}, 400),
    ("PUT", "/queues/n", {"arguments": STREAM | {"x-stream-filter-size-bytes": "9"}}, 409),
    ("PUT", "/queues/n", {"arguments": STREAM | {"x-stream-max-segment-size-bytes": 3 * 10**9}},
     201),
    ("PUT", "/queues/n", {"arguments": STREAM | {"x-stream-max-segment-size-bytes": 4 * 10**9}},
     400),
    # messages and the end
    ("DELETE", "/queues/q/messages", None, 200),
    ("DELETE", "/queues/nobody/messages", None, 404),
    ("DELETE", "/queues/stream/messages", None, 400),
    ("DELETE", "/queues/q", None, 200),
    ("DELETE", "/queues/nobody", None, 200),
    ("DELETE", "/queues/amq.nobody", None, 200),
    ("DELETE", "/queues/a%0D", None, 400),
]  # fmt: skip

TO_Q, TO_X = {"destination_queue": "q"}, {"destination_exchange": "amq.fanout"}
REST = {"binding_key": "k", "arguments": {}}
EXCHANGES = [
    ("PUT", "/exchanges/new", {}, 204),
    ("PUT", "/exchanges/new", {"type": "magic"}, 400),
    ("PUT", "/exchanges/new", {"type": Symbol("topic")}, 400),
    ("PUT", "/exchanges/new", {"size": 1}, 400),
    ("PUT", "/exchanges/new", {"arguments": {"alternate-exchange": "gone"}}, 204),
    ("PUT", "/exchanges/new", {"arguments": {"alternate-exchange": ["y"]}}, 400),
    ("PUT", "/exchanges/", {}, 403),
    ("PUT", "/exchanges/", {"type": "magic"}, 400),
    ("PUT", "/exchanges/a%0Ab", {}, 400),
    ("PUT", "/exchanges/amq.new", {}, 403),
    ("PUT", "/exchanges/amq.topic", {"type": "topic"}, 204),
    ("PUT", "/exchanges/amq.topic", {}, 409),
    ("PUT", "/exchanges/x", {"type": "topic"}, 204),
    ("PUT", "/exchanges/x", {"type": "fanout"}, 409),
    ("PUT", "/exchanges/x", {"type": "topic", "internal": True}, 409),
    ("PUT", "/exchanges/x", {"type": "topic", "arguments": {"alternate-exchange": "y"}}, 409),
    ("DELETE", "/exchanges/x", None, 204),
    ("DELETE", "/exchanges/nobody", None, 204),
    ("DELETE", "/exchanges/amq.direct", None, 403),
    ("DELETE", "/exchanges/", None, 403),
    ("POST", "/bindings", {"source": "x", **TO_Q, **REST}, 204),
    ("POST", "/bindings", {"source": "x", **TO_X, **REST}, 204),
    ("POST", "/bindings", {"source": "nobody", **TO_Q, **REST}, 400),
    ("POST", "/bindings", {"source": "x", "destination_queue": "nobody", **REST}, 400),
    ("POST", "/bindings", {"source": "x", "destination_exchange": "nobody", **REST}, 400),
    ("POST", "/bindings", {"source": "", **TO_Q, **REST}, 403),
    ("POST", "/bindings", {"source": "x", "destination_exchange": "", **REST}, 403),
    ("POST", "/bindings", {"source": "x\n", **TO_Q, **REST}, 400),
    ("POST", "/bindings", {"source": 1, **TO_Q, **REST}, 400),
    ("POST", "/bindings", {"source": "x", **TO_Q, **REST, "weight": 1}, 400),
    ("POST", "/bindings", {"source": "amq.headers", **TO_X, "binding_key": "",
                           "arguments": {"x-match": "magic"}}, 400),
    ("GET", "/bindings?src=x&dstq=q&key=k", None, 200),
    ("GET", "/bindings?src=nobody&dste=nobody&key=", None, 200),
    ("GET", "/bindings?src=x&key=k", None, 400),
    ("GET", "/bindings?src=&dstq=q&key=k", None, 403),
    ("DELETE", "/bindings/src=x;dstq=q;key=k;args=", None, 204),
    ("DELETE", "/bindings/src=nobody;dstq=nobody;key=;args=abc", None, 204),
    ("DELETE", "/bindings/src=;dstq=q;key=k;args=", None, 400),
    ("DELETE", "/bindings/q", None, 400),
    ("PUT", "/auth/tokens", b"token", 204),
]  # fmt: skip

NONE_AT_ALL = [
    ("PUT", "/auth/tokens", "token"),
    ("PATCH", "/queues/q", None),
    ("GET", "/nothing", None),
    ("GET", "queues/q", None),
    ("GET", "/queues/q", {}),
    ("DELETE", "/queues/q", "now"),
    ("PUT", "/queues/q", None),
    ("PUT", "/queues/q", [1]),
    ("PUT", "/queues/q", {"arguments": 1}),
    ("PUT", "/queues/q", {"arguments": {"x-unknown": Char("c")}}),
    ("GET", "/bindings", None),
    ("GET", "/bindings?src=x&dstq=q", None),
    ("POST", "/bindings", {"source": "x"}),
    ("POST", "/bindings", {"source": "x", **REST}),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), QUEUES + EXCHANGES)
def test_a_request_gets_the_status_that_rabbitmq_gives(node, method, path, body, status):
    """With the body of a success, or a text that says why not."""
    assert node.status(method, path, body) == status


@pytest.mark.parametrize(("method", "path", "body"), NONE_AT_ALL)
def test_a_request_without_a_rule_ends_the_session(node, method, path, body):
    """RabbitMQ's node has no clause for it and fails; ours says what is legal besides."""
    assert node.status(method, path, body) == ENDS


@pytest.mark.parametrize("path", ["//[", "http://[x/queues/q", "/queues/a b", "/queues/%zz"])
def test_what_is_no_uri_is_a_bad_request(node, path):
    """As `uri_string:normalize` finds."""
    assert node.status("GET", path) == 400


@pytest.mark.parametrize(
    ("preset", "status"), [("rmq4.0", 201), ("rmq4.3", 400)], ids=lambda value: str(value)
)
def test_deprecated_queues_can_be_declared_in_4_0_alone(preset, status):
    """Neither durable nor exclusive, or with a master locator."""
    node = Node(preset)
    assert node.status("PUT", "/queues/a", {"durable": False}) == status
    located = {"arguments": {"x-queue-master-locator": "client-local"}}
    assert node.status("PUT", "/queues/b", located) == status


@pytest.mark.parametrize(
    ("queue_type", "words"),
    [
        ("classic", "cannot be both transient and shared, which is deprecated; legal: durable or"
                    " exclusive"),
        ("quorum", "cannot be transient; legal: durable"),
    ],
)  # fmt: skip
def test_what_a_queue_cannot_be_is_told_with_what_is_legal(queue_type, words):
    """For queues of its type."""
    body = {"durable": False, "arguments": {"x-queue-type": queue_type}}
    assert words in str(Node("rmq4.3").ask("PUT", "/queues/a", body)[1])


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/queues/a", None, "a map is wanted, not null"),
        ("/queues/a", {"durable": None}, "bad queue property 'durable': null; legal:"),
        ("/queues/a", {Symbol("odd"): True}, "bad queue property odd: true; legal:"),
        ("/queues/a", {"arguments": {"x-max-length": True}}, "has the value 'true' of type 'bool'"),
        (
            "/queues/a",
            {"arguments": {"x-expires": [None, {Symbol("k"): b"\xff"}]}},
            "x-expires has the value '[null, {k: 0xff}]' of type 'array'; legal: an integer",
        ),
        ("/queues/a", {"arguments": {"x-odd": Char("c")}}, "no argument can be 'c'"),
        (
            "/exchanges/a",
            {"arguments": {"alternate-exchange": False}},
            "alternate-exchange is false; legal: the name of an exchange",
        ),
    ],
)
def test_a_text_has_the_protocols_words_for_a_value(node, path, body, words):
    """Not those of the language that the broker is written in."""
    assert words in str(node.ask("PUT", path, body)[1])


def test_an_exclusive_queue_can_be_looked_at_but_not_used_by_others(node):
    """GET tells anybody of it; declaring, binding, purging and deleting are refused."""
    other = node.of("c2")
    assert node.ask("GET", "/queues/mine", of=other)[1]["exclusive"] is True
    binding = {"source": "x", "destination_queue": "mine", **REST}
    for request in (
        ("PUT", "/queues/mine", {"exclusive": True, "durable": False}),
        ("DELETE", "/queues/mine/messages"),
        ("DELETE", "/queues/mine"),
        ("POST", "/bindings", binding),
    ):
        assert node.status(*request, of=other) == 400
    assert node.status("POST", "/bindings", binding) == 204


def test_arguments_come_back_as_they_were_kept(node):
    """With the type; an unknown one too; ulong, symbol and binary as 0-9-1 keeps them."""
    arguments = {
        "x-queue-type": "quorum",
        "x-foo": Symbol("s"),
        "x-max-length": ULong(7),
        "x-int": Int(-1),
        "x-octets": b"text",
        "x-other": b"\xff",
        "x-list": [True, None],
    }
    status, told = node.ask("PUT", "/queues/n", {"arguments": arguments})
    assert status == 201
    kept = told["arguments"]
    assert kept == arguments | {"x-octets": "text"}
    assert [type(kept[name]) for name in ("x-foo", "x-max-length", "x-int")] == [str, Long, Int]
    assert node.ask("GET", "/queues/n")[1] == told
    assert node.ask("PUT", "/queues/plain", {})[1]["arguments"] == {"x-queue-type": "classic"}


def test_a_request_may_have_its_sections_in_any_order(node):
    """RabbitMQ's Python client writes a body of null before the properties."""
    body = encode_message([AmqpValue(None)])
    properties = Properties(message_id="1", subject="GET", to="/queues/q", reply_to="$me")
    for request in (
        body + encode_message([properties]),
        encode_message([properties, AmqpValue(None)]),
    ):
        assert decode_message(answer_of(node.mine, request))[0].subject == "200"


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"\x00",
        encode_message([AmqpValue(None)]),
        encode_message([Properties(to="/queues/q", subject="GET", reply_to="$me")]),
        encode_message([Properties(to="/queues/q", subject="GET"), AmqpValue(None)]),
        encode_message([Properties(subject="GET", reply_to="$me"), AmqpValue(None)]),
        encode_message([Properties(to="/queues/q", reply_to="$me"), AmqpValue(None)]),
    ],
)
def test_a_message_that_is_no_request_ends_the_session(node, request_):
    """It has properties with to, subject and reply-to, and an amqp-value."""
    with pytest.raises(UnexpectedRequestError):
        answer_of(node.mine, request_)


def test_a_request_without_a_message_id_is_answered_without_a_correlation_id(node):
    """It is the client who could not tell what such an answer belongs to."""
    properties = Properties(to="/queues/q", subject="GET", reply_to="$me")
    answer = decode_message(answer_of(node.mine, encode_message([properties, AmqpValue(None)])))
    assert (answer[0].subject, answer[0].correlation_id) == ("200", None)


def test_names_are_percent_encoded_in_paths(node):
    """A queue may have any name."""
    assert node.status("PUT", "/queues/a%2Fb%20c", {}) == 201
    assert node.ask("GET", "/queues/a%2Fb%20c")[1]["name"] == "a/b c"


def test_a_binding_is_made_listed_and_deleted_by_its_location(node):
    """The location that the list gives is the path that deletes; arguments tell bindings apart."""
    for arguments in ({}, {"x-match": "all", "a": 1}):
        made = {"source": "x", "destination_queue": "q", "binding_key": "k.#"}
        assert node.status("POST", "/bindings", {**made, "arguments": arguments}) == 204
    _, listed = node.ask("GET", "/bindings?src=x&dstq=q&key=k.%23")
    assert [one["arguments"] for one in listed] == [{}, {"a": 1, "x-match": "all"}]
    assert node.status("DELETE", listed[1]["location"]) == 204
    assert node.ask("GET", "/bindings?src=x&dstq=q&key=k.%23")[1] == listed[:1]


def test_a_real_client_s_library_reads_request_and_response(node):
    """Proton writes the request and reads the response, in the types that clients expect."""
    proton = pytest.importorskip("proton", reason="needs python-qpid-proton")
    request = proton.Message(
        id="m1", address="/queues/new", subject="PUT", reply_to="$me", body={"durable": True}
    )
    response = proton.Message()
    response.decode(answer_of(node.mine, bytes(request.encode())))
    assert (response.subject, response.correlation_id) == ("201", "m1")
    assert response.properties == {"http:response": "1.1"}
    told = response.body
    assert type(told["message_count"]) is proton.ulong
    assert type(told["consumer_count"]) is proton.uint
    assert isinstance(told["replicas"], proton.Array)
    assert told["vhost"] == "/"


def test_arguments_that_came_over_amqp_0_9_1_are_told_in_types_of_1_0(node):
    """A time in milliseconds, and a decimal, which has no type there, as a text."""
    arguments = {"x-t": v091.Timestamp(7), "x-d": Decimal("1.5"), "x-b": v091.Byte(3)}
    node.vhost.declare_for(
        "c1", "old", durable=True, auto_delete=False, exclusive=False, arguments=arguments
    )
    node.vhost.routing.bind(
        Binding(source="amq.headers", destination="old", arguments=tuple(arguments.items()))
    )
    told = {"x-t": Timestamp(7_000), "x-d": "1.5", "x-b": Byte(3)}
    _, queue = node.ask("GET", "/queues/old")
    _, (binding,) = node.ask("GET", "/bindings?src=amq.headers&dstq=old&key=")
    assert queue["arguments"] == binding["arguments"] == told


def test_arguments_that_an_answer_cannot_hold_are_told_of(node):
    """An answer nests them one deeper than the request that brought them."""
    node.ask("PUT", "/queues/q", {})
    node.ask("PUT", "/exchanges/x", {})
    value = "x"
    for _ in range(30):
        value = {"a": value}
    binding = {"source": "x", "destination_queue": "q", "binding_key": "k"}
    assert node.ask("POST", "/bindings", {**binding, "arguments": {"z": value}})[0] == 204
    status, text = node.ask("GET", "/bindings?src=x&dstq=q&key=k")
    assert status == 400
    assert "nested deeper than 32" in text
