"""Sessions of AMQP 0-10 as Qpid C++ serves them; cases named after the article's statements."""

from dataclasses import replace

import pytest

from tests.growth import steps
from workbench import presets
from workbench.amqp010 import commands as c
from workbench.amqp010.controls import SessionAttach
from workbench.amqp010.errors import DetachCode, ErrorCode
from workbench.amqp010.events import (
    CommandReceived,
    FlushReceived,
    SessionDetached,
    SessionDetaching,
)
from workbench.amqp010.frame import Headers
from workbench.amqp010.structs import (
    DeliveryProperties,
    ExchangeBoundResult,
    ExchangeQueryResult,
    QueueQueryResult,
)
from workbench.amqp010.values import SequenceSet
from workbench.broker import Broker
from workbench.queues import Message
from workbench.sim import VirtualClock

from .qpid_client import Client

QPID = presets.get("qpid-cpp")
MESSAGE, BYTE = c.CreditUnit.MESSAGE, c.CreditUnit.BYTE
MARKS = {"qpid.flow_stop_count": 7, "qpid.flow_resume_count": 5}


@pytest.fixture
def broker():
    """A broker of Qpid's."""
    return Broker(VirtualClock(), QPID)


@pytest.fixture
def client(broker):
    """A client with a queue q under watermarks."""
    found = Client(broker)
    found.do(c.QueueDeclare("q", arguments=MARKS))
    return found


def test_c1_without_watermarks_the_limit_ends_the_session_and_not_the_client(broker):
    """506, and the session is detached; what it was told is complete, and the client goes on."""
    broker.configure(default_queue_limit=100, flow_stop_percent=0, flow_resume_percent=0)
    client = Client(broker)
    client.do(c.QueueDeclare("q"))
    client.put(*["q"] * 12, size=1)
    assert client.codes() == [ErrorCode.RESOURCE_LIMIT_EXCEEDED]
    assert client.of(SessionDetaching)
    assert not client.amqp.channels
    assert client.amqp.opened
    held = broker.queues["q"].queue.flow
    assert held.size <= 100 < held.size + held.size // held.count
    other = client.attach(b"again")
    assert other.attached


def test_c3_above_the_mark_transfers_are_taken_in_and_not_completed(client, broker):
    """Seven are complete, the eighth is not; all are in the queue."""
    client.put(*["q"] * 9)
    assert client.incomplete() == 2
    assert broker.queues["q"].queue.ready == 9
    assert broker.overview()["queue:q.flow_stopped"] == 1


def test_c10_below_the_mark_all_complete_in_one_burst(client):
    """Five accepted leave four, and the waiting sync is told with them."""
    client.put(*["q"] * 9)
    client.session.send(c.ExecutionSync(sync=True))
    client.rest()
    incomplete = len(client.session.sent_incomplete)
    other = Client(client.end.broker)
    other.subscribe(MESSAGE=9, BYTE=c.UNLIMITED)
    for transfers in other.ids()[:4]:
        other.do(c.MessageAccept(transfers))
    assert len(client.session.sent_incomplete) == incomplete
    other.do(c.MessageAccept(other.ids()[4]))
    assert not client.session.sent_incomplete


def test_c11_a_held_message_that_is_accepted_completes_although_the_queue_is_full(client):
    """That one alone."""
    client.put(*["q"] * 10)
    other = Client(client.end.broker)
    other.subscribe(MESSAGE=10, BYTE=c.UNLIMITED)
    assert client.incomplete() == 3
    other.do(c.MessageAccept(other.ids()[8]))
    assert client.incomplete() == 2


def test_c4_a_message_for_two_queues_completes_when_both_are_fine(client):
    """An exchange leads to q, which is full, and to r."""
    client.do(c.QueueDeclare("r"))
    for queue in "qr":
        client.do(c.ExchangeBind(queue, "amq.fanout", ""))
    client.put(*["q"] * 8)
    client.put("", exchange="amq.fanout")
    assert client.incomplete() == 2
    client.do(c.QueuePurge("q"))
    assert client.incomplete() == 0


def test_c13_a_message_for_a_free_queue_does_not_wait_for_a_full_one(client):
    """Its own completion does not; what waits behind it is the sender's window."""
    client.do(c.QueueDeclare("r"))
    client.put(*["q"] * 8, "r")
    client.session.flush()
    client.rest()
    (left,) = client.session.sent_incomplete
    assert left[0] == left[1] == client.session.sent - 2


def test_two_windows_overshoot_by_their_sum(broker):
    """Stop 100, windows of 50 and 15: at most 165 on the queue."""
    clients = [Client(broker), Client(broker)]
    clients[0].do(c.QueueDeclare("q", arguments={"qpid.flow_stop_count": 100}))
    for _ in range(40):
        for client, window in zip(clients, (50, 15), strict=True):
            room = window - client.incomplete()
            client.put(*["q"] * room)
    assert broker.queues["q"].queue.ready == 165
    assert [client.incomplete() for client in clients] == [50, 15]


def test_deleting_a_full_queue_completes_what_it_held(client):
    """A blocked sender is unblocked."""
    client.put(*["q"] * 9)
    Client(client.end.broker).do(c.QueueDelete("q"))
    assert client.incomplete() == 0


def test_an_unroutable_message_is_complete_and_an_accept_is_sent_where_it_is_asked_for(client):
    """It is dropped, as Qpid C++ does."""
    client.put("nowhere", accept_mode=0)
    client.put("nowhere")
    assert client.incomplete() == 0
    client.do(c.ExecutionSync(sync=True))
    (accepted,) = [e.command for e in client.of(CommandReceived)]
    assert accepted == c.MessageAccept(SequenceSet(((1, 1),)))


BAD = [
    (c.QueueDeclare("x", arguments={"qpid.flow_stop_count": 1, "qpid.flow_resume_count": 2}), 542),
    (c.QueueDeclare("x", arguments={"qpid.max_count": 1, "qpid.flow_stop_count": 2}), 542),
    (c.QueueDeclare("x", arguments={"qpid.max_count": "9" * 5_000}), 542),
    (c.QueueDeclare("x", passive=True), 404),
    (c.QueueDeclare("x", alternate_exchange="amq.fanout"), 540),
    (c.QueueDelete("x"), 404),
    (c.QueueDelete(), 531),
    (c.MessageSubscribe(None, "d"), 531),
    (c.QueuePurge("x"), 404),
    (c.ExchangeDeclare("x", passive=True), 404),
    (c.ExchangeDeclare("amq.x", "fanout"), 530),
    (c.ExchangeDeclare("amq.topic", "topic"), 530),
    (c.ExchangeDeclare("qpid.x", "fanout"), 530),
    (c.ExchangeDeclare("e", "fanout"), 530),
    (c.ExchangeDeclare("amq.topic", "fanout", passive=True), 530),
    (c.ExchangeDeclare("x", "sideways"), 404),
    (c.ExchangeDeclare("x"), 404),
    (c.ExchangeDelete("x"), 404),
    (c.ExchangeDelete("amq.topic"), 530),
    (c.ExchangeDelete(), 542),
    (c.ExchangeBind("q", "", "k"), 542),
    (c.ExchangeUnbind("q", "", "k"), 542),
    (c.ExchangeUnbind("q", "x", "k"), 404),
    (c.ExchangeBind("q", "x", "k"), 404),
    (c.ExchangeBind("x", "amq.topic", "k"), 404),
    (c.MessageSubscribe("x", "d"), 404),
    (c.MessageSubscribe("q", "d", 0, 1), 540),
    (c.MessageTransfer("x"), 404),
]


@pytest.mark.parametrize(("command", "code"), BAD)
def test_a_command_that_cannot_be_executed_ends_its_session(client, command, code):
    """With the code that Qpid C++ gives; another session goes on."""
    other = client.attach(b"other")
    client.do(c.ExchangeDeclare("e", "topic"), session=other)
    client.do(command)
    assert client.codes() == [code]
    assert [session.name for session in client.amqp.channels.values()] == [b"other"]
    client.do(c.QueueDeclare("y"), session=other)
    assert "y" in client.end.broker.queues


def test_a_queue_in_use_or_not_empty_is_not_deleted_where_that_is_asked(client):
    """precondition-failed."""
    client.put("q")
    client.do(c.QueueDelete("q", if_empty=True))
    client.session = client.attach(b"t")
    client.subscribe()
    client.do(c.QueueDelete("q", if_unused=True))
    assert client.codes() == [406, 406]


@pytest.mark.parametrize("auto_delete", [False, True])
def test_an_exclusive_queue_is_its_session_s(client, broker, auto_delete):
    """It is everybody's when the session is over, or goes then: `releaseExclusiveOwnership`.

    Its last consumer does not take it along (`Queue.cpp:isUnused`).
    """
    client.do(c.QueueDeclare("mine", exclusive=True, auto_delete=auto_delete))
    client.put("mine")
    client.subscribe("mine", MESSAGE=1, BYTE=c.UNLIMITED)
    client.do(c.MessageCancel("d"))
    found = client.do(c.QueueQuery("mine"))
    assert (found.exclusive, found.auto_delete) == (True, auto_delete)
    client.do(c.QueueDeclare("mine", exclusive=True))
    client.session.detach()
    client.rest()
    assert ("mine" in broker.queues) is not auto_delete
    client.session = client.attach(b"again")
    found = client.do(c.QueueQuery("mine"))
    assert (found.exclusive, found.message_count or 0) == (False, int(not auto_delete))
    assert client.codes() == []


@pytest.mark.parametrize(
    "command",
    [
        c.QueueDeclare("mine"), c.QueueDeclare("mine", passive=True), c.QueuePurge("mine"),
        c.QueueDeclare("q", exclusive=True),
    ],
)  # fmt: skip
def test_what_any_session_may_do_with_a_queue_that_is_there(client, broker, command):
    """`SessionAdapter.cpp`: also have one for itself that nobody has or consumes from."""
    other = Client(broker)
    other.do(c.QueueDeclare("mine", exclusive=True))
    client.do(command)
    assert client.codes() == []
    assert client.do(c.QueueQuery(command.queue)).exclusive


@pytest.mark.parametrize(
    "command",
    [
        c.QueueDeclare("mine", exclusive=True), c.MessageSubscribe("mine", "d", 0, 0),
        c.MessageSubscribe("taken", "d", 0, 0), c.QueueDeclare("used", exclusive=True),
        c.MessageSubscribe("used", "d", 0, 0, exclusive=True), c.QueueDelete("mine"),
        c.ExchangeBind("mine", "amq.fanout", ""), c.ExchangeUnbind("mine", "amq.fanout", ""),
        c.QueueDeclare("mine", exclusive=True, passive=True),
        c.QueueDeclare("q", exclusive=True, passive=True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("same_connection", [False, True])
def test_what_one_session_has_for_itself_is_locked_for_others(
    client, broker, command, same_connection
):
    """`Queue.cpp:consume`, `SessionAdapter.cpp`: until it lets go of it."""
    other = Client(broker)
    other.do(c.QueueDeclare("mine", exclusive=True))
    for queue in ("taken", "used"):
        other.do(c.QueueDeclare(queue))
        other.do(c.MessageSubscribe(queue, queue, 0, 0, exclusive=queue == "taken"))
    if same_connection:
        client = other
        first, client.session = client.session, client.attach(b"second")
        client.do(c.QueueDeclare("q"))
    client.do(command)
    assert client.codes() == [ErrorCode.RESOURCE_LOCKED]
    for queue in ("taken", "used"):
        other.do(c.MessageCancel(queue), first if same_connection else None)
    client.session = client.attach(b"again")
    client.do(c.MessageSubscribe("taken", "d", 0, 0, exclusive=True))
    assert len(client.codes()) == 1


def test_a_session_s_name_is_a_user_s_on_every_connection(client, broker):
    """`SessionManager.cpp:attach`, `ServerConnectionDelegate.java`: busy, until it is detached."""
    second, named = Client(broker), client.session.name
    session = second.attach(named)
    assert not session.attached
    assert second.of(SessionDetached)[-1].code == DetachCode.SESSION_BUSY
    assert client.session.attached
    client.session.detach()
    client.rest()
    assert second.attach(named).attached


@pytest.mark.parametrize(("preset", "both"), [("qpid-cpp", True), ("broker-j", False)])
@pytest.mark.parametrize("same_connection", [False, True])
def test_force_attaches_a_second_session_of_the_name_beside_the_first(
    preset, both, same_connection
):
    """`SessionManager.cpp:attach`; Broker-J ignores it (`ServerConnectionDelegate.java`)."""
    broker = Broker(VirtualClock(), presets.get(preset))
    first = Client(broker)
    first.do(c.QueueDeclare("q"))
    second = first if same_connection else Client(broker)
    second.amqp.answer = lambda _: None  # it knows nothing of the attach
    second.amqp.send_control(5, SessionAttach(first.session.name, force=True))
    second.rest()
    named = [
        session.channel
        for host in broker.connections.values()
        for session in host.sessions
        if session.name == first.session.name
    ]
    assert named == ([first.session.channel, 5] if both else [first.session.channel])
    first.put("q")
    assert first.session.attached and broker.queues["q"].queue.ready == 1


def test_queries_tell_what_is_there(client):
    """Both kinds, and bindings."""
    assert client.do(c.ExchangeQuery("x")) == ExchangeQueryResult(not_found=True)
    assert client.do(c.ExchangeQuery("amq.topic")).type == "topic"
    assert client.do(c.QueueQuery("x")) == QueueQueryResult()
    client.put("q")
    found = client.do(c.QueueQuery("q"))
    assert (found.queue, found.message_count, found.arguments) == ("q", 1, MARKS)
    client.do(c.ExchangeDeclare("e", "topic"))
    client.do(c.ExchangeBind("q", "e", "a.*"))
    assert client.do(c.ExchangeBound("e", "q", "a.*")) == ExchangeBoundResult()
    assert client.do(c.ExchangeBound("e", "q", "b")) == ExchangeBoundResult(key_not_matched=True)
    assert client.do(c.ExchangeBound("y", "z")) == ExchangeBoundResult(
        exchange_not_found=True, queue_not_found=True
    )
    client.put("a.b", exchange="e")
    assert client.do(c.QueueQuery("q")).message_count == 2
    client.do(c.ExchangeUnbind("q", "e", "a.*"))
    assert client.do(c.ExchangeBound("e", "q")) == ExchangeBoundResult(queue_not_matched=True)


def test_d2_credit_adds_and_both_units_count(client):
    """Two grants of two are four; octets stop what messages would allow."""
    client.put(*["q"] * 7, size=10)
    client.subscribe(mode=c.FlowMode.CREDIT, MESSAGE=2, BYTE=c.UNLIMITED)
    assert len(client.messages) == 2
    client.do(c.MessageFlow("d", MESSAGE, 2))
    assert len(client.messages) == 4
    client.do(c.MessageStop("d"))
    each = client.messages[0].content_octets
    client.do(c.MessageFlow("d", MESSAGE, 9))
    client.do(c.MessageFlow("d", BYTE, 2 * each - 1))
    assert len(client.messages) == 5
    client.do(c.MessageFlow("d", BYTE, 1))
    assert len(client.messages) == 6


@pytest.mark.parametrize("preset", ["qpid-cpp", "broker-j"])
@pytest.mark.parametrize("mode", list(c.FlowMode))
def test_an_empty_message_needs_an_octet_of_credit_and_costs_none(preset, mode):
    """Before it is looked at: `SemanticState.cpp:haveCredit`, `CreditCreditManager.java`."""
    client = Client(Broker(VirtualClock(), presets.get(preset)))
    client.do(c.QueueDeclare("q"))
    client.subscribe(mode=mode, MESSAGE=2)
    client.do(c.ExchangeBind("q", "amq.fanout", ""))
    for _ in range(2):
        client.session.send(c.MessageTransfer("amq.fanout"))
    client.rest()
    assert client.messages == []
    client.do(c.MessageFlow("d", BYTE, 1))
    told = {"qpid-cpp": 0, "broker-j": len(told_by("amq.fanout").encode())}  # that is free there
    assert [one.content_octets for one in client.messages] == [told[preset]] * 2


def told_by(exchange, key=None):
    """A header that tells an exchange."""
    return Headers((DeliveryProperties(exchange=exchange, routing_key=key),))


@pytest.mark.parametrize(
    ("preset", "exchange", "told"),
    [
        ("qpid-cpp", "", ""), ("qpid-cpp", "amq.direct", "amq.direct"),
        ("broker-j", "", None), ("broker-j", "amq.direct", "amq.direct"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("claimed", [None, "elsewhere"])
def test_a_message_tells_by_which_exchange_it_came(preset, exchange, told, claimed):
    """`MessageBuilder.cpp`, before credit and limits count it; `ServerSessionDelegate.java`.

    What its publisher has written there stands in Broker-J alone.
    """
    client = Client(Broker(VirtualClock(), presets.get(preset)))
    client.do(c.QueueDeclare("q"))
    client.do(c.ExchangeBind("q", "amq.direct", "q"))
    expected = told_by(claimed if claimed and preset == "broker-j" else told, "q")
    cost = len(expected.encode()) + 1 if preset == "qpid-cpp" else 1
    client.subscribe(MESSAGE=2, BYTE=cost)
    for _ in range(2):
        client.session.send(c.MessageTransfer(exchange), told_by(claimed, "q"), b"x")
    client.rest()
    assert [one.headers for one in client.messages] == [expected]
    queue = client.end.broker.queues["q"].queue
    assert queue.flow.size == 2 * (len(expected.encode()) + 1)


def test_a_window_moves_on_completion_and_credit_does_not(client):
    """On completion, not on accept."""
    client.put(*["q"] * 7)
    client.subscribe(mode=c.FlowMode.WINDOW, MESSAGE=2, BYTE=c.UNLIMITED)
    for transfers in client.ids():
        client.do(c.MessageAccept(transfers))
    assert len(client.messages) == 2
    for event in client.messages[:]:
        client.session.complete(event.command_id)
    client.session.tell_completed()
    client.rest()
    assert len(client.messages) == 4


@pytest.mark.parametrize(("octets", "came"), [(c.UNLIMITED, 3), (45, 2)])
def test_flush_gives_what_is_there_and_is_complete_then(client, octets, came):
    """Also where the octets do not suffice; afterwards there is no credit."""
    client.put(*["q"] * 3, size=10)
    client.session.send(c.MessageSubscribe("q", "d", 0, 0))
    client.session.send(c.MessageFlow("d", BYTE, octets))
    client.session.send(c.MessageFlow("d", MESSAGE, 5))
    client.session.send(c.MessageFlush("d", sync=True))
    client.rest()
    assert len(client.messages) == came
    assert not client.session.sent_incomplete
    client.put("q")
    assert len(client.messages) == came
    assert not client.of(FlushReceived)


def test_a_flush_is_complete_too_when_its_queue_is_deleted_right_behind_it(client):
    """Nothing more can come of it."""
    client.put(*["q"] * 5)
    client.subscribe(MESSAGE=3, BYTE=c.UNLIMITED)
    for command in (c.MessageFlow("d", MESSAGE, 2), c.MessageFlush("d"), c.QueueDelete("q")):
        client.session.send(command)
    client.do(c.ExecutionSync(sync=True))
    assert not client.session.sent_incomplete


def test_a_flush_is_complete_when_another_has_had_what_it_waited_for(client):
    """For the next message its octets do not suffice."""
    other = client.attach(b"other")
    client.put("q", size=10)
    client.put("q", size=5_000)
    client.do(c.MessageSubscribe("q", "e", 0, 0), other)
    client.do(c.MessageSubscribe("q", "d", 0, 0))
    for command in (c.MessageFlow("e", BYTE, c.UNLIMITED), c.MessageFlow("e", MESSAGE, 1)):
        other.send(command)
    for command in (
        c.MessageFlow("d", MESSAGE, 10), c.MessageFlow("d", BYTE, 1_000), c.MessageFlush("d"),
    ):  # fmt: skip
        client.session.send(command)
    client.do(c.ExecutionSync(sync=True))
    assert [(m.command.destination, len(m.payload)) for m in client.messages] == [("e", 10)]
    assert not client.session.sent_incomplete


def test_what_is_released_comes_again_and_says_so(client):
    """redelivered, where the release asks for it, and with a session that ends too."""
    client.put("q")
    client.subscribe(MESSAGE=5, BYTE=c.UNLIMITED)
    client.do(c.MessageRelease(client.ids()[0], set_redelivered=True))
    assert [m.headers.structs[0].redelivered for m in client.messages] == [False, True]
    client.session.detach()
    client.rest()
    client.session = client.attach(b"t")
    client.subscribe(MESSAGE=5, BYTE=c.UNLIMITED)
    assert len(client.messages) == 3


def test_a_cancelled_subscription_may_still_accept_what_it_has(client, broker):
    """Nothing new comes. It counts no longer (`Queue.cpp:cancel`): an auto-delete queue goes."""
    client.put("q", "q")
    client.subscribe(MESSAGE=1, BYTE=c.UNLIMITED)
    client.do(c.MessageCancel("d"))
    client.put("q")
    assert len(client.messages) == 1
    assert not client.do(c.QueueQuery("q")).subscriber_count
    assert client.do(c.MessageAcquire(client.ids()[0])).transfers == SequenceSet()
    client.do(c.MessageAccept(client.ids()[0]))
    assert broker.queues["q"].queue.consumers() == ()
    assert (broker.queues["q"].queue.ready, broker.queues["q"].queue.unsettled) == (2, 0)
    client.do(c.QueueDeclare("a", auto_delete=True))
    client.put("a")
    client.subscribe("a", MESSAGE=1, BYTE=c.UNLIMITED)
    client.do(c.MessageCancel("d"))
    assert "a" not in broker.queues
    client.do(c.MessageAccept(client.ids()[-1]))
    assert client.codes() == []


def test_a_queue_whose_messages_are_all_handed_out_is_empty(client, broker):
    """`MessageDeque::size` counts what may be had: so does a query, and a delete that asks."""
    client.put("q")
    client.subscribe(MESSAGE=1, BYTE=c.UNLIMITED)
    assert not client.do(c.QueueQuery("q")).message_count
    client.do(c.QueueDelete("q", if_empty=True))
    assert "q" not in broker.queues and client.codes() == []


def test_without_accepts_a_message_leaves_as_it_is_sent(client, broker):
    """accept-mode none."""
    client.put(*["q"] * 9)
    client.subscribe(accept=1, MESSAGE=9, BYTE=c.UNLIMITED)
    assert broker.queues["q"].queue.overview()["terminal"] == 9
    assert client.incomplete() == 0


def test_what_a_connection_leaves_unfinished_is_bounded(broker):
    """framing-error beyond the preset's bound."""
    broker.preset = replace(QPID, unfinished_octets=1000)
    client = Client(broker)
    client.do(c.QueueDeclare("q"))
    client.amqp.remote_max_frame_size = 4096
    client.put("q", size=100_000)
    assert client.amqp.error[0] == 501
    assert broker.overview()["c1.state"] == "END"


def test_a_queue_may_have_the_empty_name(client, broker):
    """Passive or not; no other command can name it, and a message without a key goes there."""
    client.do(c.QueueDeclare(passive=True))
    client.do(c.QueueDeclare())
    client.put("")
    assert sorted(broker.queues) == ["", "q"]
    assert broker.queues[""].queue.ready == 1


def test_an_exception_names_the_last_command_and_no_method_of_a_message(client):
    """A message fails at its last frame, which has none (`SessionHandler::handleIn`)."""
    client.put("q", exchange="x")
    said = [getattr(item, "content", None) for item in client.frames]
    (told,) = [one for one in said if isinstance(one, c.ExecutionException)]
    assert (told.class_code, told.command_code, told.command_id) == (0, 0, 1)


def test_messages_accepted_one_by_one_take_time_by_their_number(broker):
    """Each word names a number, and is not looked for among all that is held."""

    def accepting(count: int) -> int:
        client = Client(broker)
        name = f"q{count}"
        client.do(c.QueueDeclare(name))
        broker.queues[name].fill([Message(payload=b"m")] * count)
        client.subscribe(name, MESSAGE=0xFFFFFFFF, BYTE=0xFFFFFFFF)
        (host,) = client.end.sessions.values()
        (subscriber,) = host.subscribers.values()
        assert len(subscriber.held) == count

        def accept(numbers: list[int]) -> None:
            for number in numbers:
                client.session.send(c.MessageAccept(SequenceSet(((number, number),))))
                client.rest()

        taken = steps(accept, list(subscriber.held))
        assert not subscriber.held
        return taken

    some = accepting(60)
    assert accepting(120) < 2.5 * some
