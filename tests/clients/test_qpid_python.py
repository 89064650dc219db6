"""Qpid's own Python client, the article's, with the live broker: it sends, blocks, drains."""

import threading

import pytest

from tests.amqp010.qpid_python import load, needs_client
from tests.patience import TIMEOUT_S
from workbench.folds.stalls import stalls
from workbench.net.serve import recording
from workbench.net.server import LiveBroker
from workbench.trace.unknowns import unknowns

pytestmark = needs_client

QUEUE = (
    "q; {create: always, node: {x-declare: {arguments: "
    "{'qpid.flow_stop_count': 7, 'qpid.flow_resume_count': 5}}}}"
)


@pytest.fixture
def connect():
    """A live broker; connects clients, and closes them."""
    load()
    from qpid.messaging import Connection

    with LiveBroker("qpid-cpp", recording=recording()) as broker:
        opened = []

        def connect():
            opened.append(Connection("127.0.0.1", port=broker.port))
            opened[-1].open(timeout=TIMEOUT_S)
            return opened[-1].session()

        connect.broker = broker
        yield connect
        for one in opened:
            one.close(timeout=TIMEOUT_S)
        assert list(broker.listener.failures) == []
        rows = [row for row in broker.rows() if row.is_frame]
        assert {row.protocol for row in rows} == {"amqp-0-10"}
        assert all(row.clause for row in rows if row.kind != "protocol-header")
        # Of a client behind a socket its session is known too: both ends name the same.
        named = {}
        for row in rows:
            if row.kind != "protocol-header" and not row.kind.startswith("connection."):
                assert row.session is not None or row.vantage == "broker"
                named.setdefault(row.frame_id, set()).add(row.session)
        assert all(len(told - {None}) == 1 for told in named.values())
        shown = {name for row in rows if row.ledger_source == "shadow" for name in row.ledger}
        assert shown == {"incomplete_commands"}
        assert "inside" not in {one.what for one in unknowns(broker.rows())}


def until(broker, condition):
    """Wait until the broker's picture is so; each change of it wakes."""
    changed, seen = threading.Event(), []

    def look():
        seen.append(broker.overview())
        if condition(seen[-1]):
            changed.set()

    watch = broker.watch(look)
    try:
        assert changed.wait(TIMEOUT_S), seen[-1:]
    finally:
        watch.close()


def test_a_sender_with_a_capacity_blocks_at_the_watermark_and_goes_on(connect):
    """Seven complete and its ten outstanding are in the queue; a receiver lets it go on."""
    from qpid.messaging import Message

    sender, sent = connect().sender(QUEUE, capacity=10), []

    def send():
        for n in range(30):
            sender.send(Message(f"m{n}"), sync=False, timeout=TIMEOUT_S)
            sent.append(n)

    thread = threading.Thread(target=send)
    thread.start()
    until(connect.broker, lambda found: found.get("queue:q.ready") == 17)
    assert connect.broker.overview()["queue:q.flow_stopped"] == 1
    assert thread.is_alive()
    session = connect()
    receiver = session.receiver("q", capacity=5)
    got = []
    for _ in range(30):
        message = receiver.fetch(timeout=TIMEOUT_S)
        got.append(message.content)
        session.acknowledge(message)
    assert got == [f"m{n}" for n in range(30)]
    thread.join(TIMEOUT_S)
    sender.sync(timeout=TIMEOUT_S)
    assert (len(sent), sender.unsettled()) == (30, 0)
    assert connect.broker.overview()["queue:q.flow_stopped"] == 0


def test_it_drains_and_keeps_properties(connect):
    """fetch without a time sends a flush; what was put in comes out, over several frames too."""
    from qpid.messaging import Empty, Message

    session = connect()
    sender = session.sender("p; {create: always}")
    properties = {"number": 7, "text": "é", "yes": True, "list": [1, "x"], "map": {"k": 2.5}}
    sent = Message(b"x" * 200_000, id=None, subject="s", properties=properties, ttl=60,
                   reply_to="p", durable=True, priority=5)  # fmt: skip
    sender.send(sent, timeout=TIMEOUT_S)
    receiver = session.receiver("p")
    found = receiver.fetch(timeout=0)
    assert found.content == sent.content
    assert {key: found.properties[key] for key in properties} == properties
    assert (found.subject, found.durable, found.priority, found.ttl) == ("s", True, 5, 60.0)
    session.acknowledge()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    receiver.close(timeout=TIMEOUT_S)
    topic = session.receiver("amq.topic/a.*")
    session.sender("amq.topic/a.b").send(Message("t"), timeout=TIMEOUT_S)
    assert topic.fetch(timeout=TIMEOUT_S).content == "t"


def test_a_receiver_that_fetches_late_holds_the_broker(connect):
    """Its capacity is credit: two are sent, and more when it has fetched of those."""
    from qpid.messaging import Message

    session = connect()
    sender = session.sender("w; {create: always}")
    for n in range(5):
        sender.send(Message(f"m{n}"), timeout=TIMEOUT_S)
    receiver = session.receiver("w", capacity=2)
    until(connect.broker, lambda found: found.get("queue:w.ready") == 3)
    for _ in range(2):
        receiver.fetch(timeout=TIMEOUT_S)
    until(connect.broker, lambda found: found.get("queue:w.ready") == 1)
    rows = connect.broker.rows()
    held = [one for one in stalls(rows) if one.brake == "link-credit"]
    assert {(one.link_sender, one.evidence) for one in held} == {("broker", "internal")}
    (late,) = (one for one in held if one.messages_waiting == 3)
    (release,) = (row for row in rows if row.frame_id == late.release_frame_id
                  and row.vantage == "broker")  # fmt: skip
    assert (release.kind, release.ledger["credit_messages"]) == ("message.flow", 1)


def test_beyond_the_limit_the_session_fails_and_the_connection_lives(connect):
    """The client's word for 506 is TargetCapacityExceeded."""
    from qpid.messaging import Message
    from qpid.messaging.exceptions import TargetCapacityExceeded

    session = connect()
    sender = session.sender(
        "r; {create: always, node: {x-declare: {arguments: {'qpid.max_count': 3,"
        " 'qpid.flow_stop_count': 0}}}}"
    )
    for n in range(3):
        sender.send(Message(f"m{n}"), timeout=TIMEOUT_S)
    with pytest.raises(TargetCapacityExceeded):
        sender.send(Message("m3"), timeout=TIMEOUT_S)
    fresh = session.connection.session()
    assert fresh.receiver("r").fetch(timeout=TIMEOUT_S).content == "m0"
