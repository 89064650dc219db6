"""What a watcher of a connection counts is what its ends count themselves."""

import msgspec
import pytest

from workbench.amqp010.frame import decode_frame
from workbench.amqp010.observer import ConnectionObserver
from workbench.scenarios.run import run


def played():
    """A producer with a window fills a queue above its watermark; a consumer empties it."""
    begun = run("qpid", "qpid-cpp", {"window": 4})
    return begun.then("publish", count=30).then("accept", count=14).then("accept", count=16).rows


def seen(rows, vantage, observer):
    """Each frame that an end has logged, and what the observer says of it."""
    for row in rows:
        if row.is_frame and row.vantage == vantage and row.kind != "protocol-header":
            yield row, observer.see(decode_frame(row.raw), row.from_peer == "client")


def test_behind_a_socket_a_client_s_counters_are_worked_out():
    """Its session, and its commands that the broker has not completed, at each of its frames."""
    rows = played()
    names = {row.vantage for row in rows if row.is_frame} - {"broker"}
    counts = []
    for name in names:
        for row, scope in seen(rows, name, ConnectionObserver(end="client")):
            assert scope.session == row.session
            assert scope.destination is None
            if not scope.unknown and scope.session is not None and row.ledger:
                assert scope.ledger["incomplete_commands"] == row.ledger["incomplete_commands"], row
                counts.append(scope.ledger["incomplete_commands"])
    assert len(names) == 2
    assert max(counts) > 4
    assert len(counts) > 100


def test_an_exchange_of_a_subscription_s_name_is_none_of_its():
    """Clients name a subscription as they like: by the exchange that they also publish to."""
    rows = played()
    its = [row for row in rows if row.vantage == "broker" and row.kind == "message.subscribe"]
    subscribe = decode_frame(its[0].raw)
    name = subscribe.content.destination
    transfer = next(
        decode_frame(row.raw) for row in rows
        if row.kind == "message.transfer" and row.from_peer == "client"
    )  # fmt: skip
    content = msgspec.structs.replace(transfer.content, destination=name)
    transfer = msgspec.structs.replace(transfer, channel=subscribe.channel, content=content)
    observer = ConnectionObserver()
    observer.see(subscribe, True)
    assert observer.see(transfer, True).destination is None
    assert observer.see(transfer, False).destination == name


@pytest.mark.parametrize("field", ["credit_messages", "credit_octets"])
def test_a_subscription_s_credit_is_the_broker_s(field):
    """At each frame that is about one."""
    rows = played()
    connections = {row.connection for row in rows if row.is_frame}
    told = []
    for connection in connections:
        its = [row for row in rows if row.connection == connection]
        for row, scope in seen(its, "broker", ConnectionObserver()):
            if row.link is not None and row.kind != "message.cancel":
                assert (scope.session, scope.destination) == (row.session, row.link)
                assert scope.ledger[field] == row.ledger[field], row
                told.append(row.ledger[field])
    assert len(told) > 30


def test_the_broker_s_word_of_the_client_s_commands_gives_no_credit_back():
    """Its own messages have the same numbers, and who got them has not completed them."""
    rows = run("qpid_credit").then("flow", value=5).then("flow", unit="octets", value=400)
    rows = rows.then("complete", count=2).then("stop").then("flow", value=9).rows
    told = [
        (scope.ledger["credit_messages"], row.ledger["credit_messages"])
        for row, scope in seen(rows, "broker", ConnectionObserver())
        if row.kind == "message.flow"
    ]
    assert told[-1] == (4, 4)
    assert all(one == own for one, own in told)


def test_octets_of_a_message_under_an_unknown_subscription_are_no_other_s():
    """It was subscribed before the capture, or what did so is lost."""
    played = run("qpid_credit").then("flow", value=2).then("flow", unit="octets", value=400)
    by_kind = {}
    for row in played.rows:
        if row.is_frame and row.vantage == "broker" and row.kind != "protocol-header":
            by_kind.setdefault((row.kind, row.from_peer), []).append(decode_frame(row.raw))
    subscribe, *_ = by_kind["message.subscribe", "client"]
    grants = by_kind["message.flow", "client"]
    transfer, *_ = by_kind["message.transfer", "broker"]
    body, *_ = by_kind["body", "broker"]
    content = msgspec.structs.replace(transfer.content, destination="another")
    observer = ConnectionObserver()
    for one in (subscribe, *grants):
        observer.see(one, True)
    for one in (transfer, body):
        observer.see(one, False)
    before = observer.see(grants[0], True).ledger["credit_octets"]
    for one in (msgspec.structs.replace(transfer, content=content), body):
        observer.see(one, False)
    assert 0 < before < 400
    assert observer.see(grants[0], True).ledger["credit_octets"] == before
