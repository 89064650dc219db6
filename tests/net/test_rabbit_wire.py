"""RabbitMQ's reader on a socket: frames that cannot be decoded, the idle time-out, our mistakes."""

import pytest
from msgspec.structs import replace

from tests.net.still import StillServer
from workbench import presets
from workbench.amqp10.encoder import encode_value
from workbench.amqp10.performatives import Begin, Open
from workbench.amqp10.values import Described, Symbol, ULong
from workbench.net import Limits, LiveBroker
from workbench.net.serve import recording
from workbench.trace import files
from workbench.views.scene import scene

NOTHING_KNOWN = encode_value(Described(ULong(0x12), ["n"]))  # an attach without handle and role


def framed(body, channel=0):
    """An AMQP frame with this body."""
    return (8 + len(body)).to_bytes(4, "big") + b"\x02\x00" + channel.to_bytes(2, "big") + body


@pytest.mark.parametrize("recorded", [False, True])
def test_behind_a_frame_that_cannot_be_decoded_the_connection_goes_on(
    raw_client, tmp_path, recorded
):
    """RabbitMQ ends the session; the next begin, in the same piece of octets, begins another."""
    kept = recording(tmp_path) if recorded else None
    with LiveBroker("rmq4.3", recording=kept) as broker:
        client = raw_client(broker).open()
        client.session()
        begin = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
        client.socket.sendall(framed(NOTHING_KNOWN) + framed(begin.encode()))
        client.pump(lambda: client.kinds().count("begin") == 2)
        assert client.errors() == ["amqp:internal-error"]
        assert client.kinds()[-2:] == ["end", "begin"]
        assert broker.listener.failures == []
    if recorded:
        rows = list(files.read(tmp_path))
        seen = [row for row in rows if row.kind == "undecodable"]
        assert [row.event for row in seen] == ["sent", "received"]
        assert {row.raw for row in seen} == {framed(NOTHING_KNOWN)}
        assert scene(rows)["branches"][0]["steps"]


def test_under_the_specification_a_frame_that_cannot_be_decoded_ends_the_connection(raw_client):
    """decode-error [2.8.15]; what comes behind it is dropped."""
    with LiveBroker("spec") as broker:
        client = raw_client(broker).open()
        client.session()
        client.socket.sendall(framed(NOTHING_KNOWN) + framed(encode_value(1)))
        client.pump(lambda: client.closed)
        assert client.errors() == ["amqp:decode-error"]


IDLE = {
    "rmq4.3": (presets.get("rmq4.3"), 30_000),
    "rmq4.0": (presets.get("rmq4.0"), 30_000),
    "heartbeat 10": (presets.configured(presets.get("rmq4.3"), {"heartbeat": 10}), 5_000),
    "no heartbeat": (presets.configured(presets.get("rmq4.3"), {"heartbeat": 0}), 0),
    "spec": (presets.get("spec"), 60_000),
}


@pytest.mark.parametrize(("preset", "told"), IDLE.values(), ids=IDLE.keys())
def test_the_idle_time_out_is_the_presets(raw_client, preset, told):
    """RabbitMQ tells half of its heartbeat; a broker whose preset says nothing waits a minute."""
    with LiveBroker(preset) as broker:
        assert raw_client(broker).open().amqp.remote_open.idle_time_out == told
    with LiveBroker(preset, limits=Limits(idle_s=7)) as broker:
        assert raw_client(broker).open().amqp.remote_open.idle_time_out == 7_000


@pytest.mark.parametrize(
    ("preset", "size", "opens"),
    [("spec", 512, True), ("spec", 513, False), ("rmq4.3", 8192, True), ("rmq4.3", 8193, False)],
)
def test_rabbitmq_takes_an_open_of_more_than_512_octets(raw_client, preset, size, opens):
    """Its first frames may have 8192; the specification's 512 [2.4.1]."""
    with LiveBroker(preset) as broker:
        client = raw_client(broker)
        client.amqp.send_open = lambda: None  # what is said instead comes below
        client.amqp.start()
        client.pump(lambda: client.kinds().count("protocol-header") == 2)

        def opening(host):
            return framed(encode_value(Described(ULong(0x10), ["raw", "h" * host])))

        large = opening(300 + size - len(opening(300)))
        assert len(large) == size
        client.socket.sendall(large)
        client.pump(lambda: "open" in client.kinds() or client.closed)
        client.pump(lambda: client.closed, timeout_s=0.2, strict=False)
        assert client.closed is not opens


@pytest.mark.parametrize("in_pieces", [False, True], ids=["one segment", "two segments"])
@pytest.mark.parametrize("octets", [9_000, 40_000])
@pytest.mark.parametrize(("preset", "most"), [("spec", 32_768), ("rmq4.3", 131_072)])
def test_behind_the_open_a_frame_may_be_as_large_as_the_brokers_open_says(
    raw_client, preset, most, octets, in_pieces
):
    """In the open's own segment too: TCP keeps no boundaries, so none of them may matter."""
    with LiveBroker(preset) as broker:
        client = raw_client(broker)
        client.amqp.send_open = lambda: None  # what is said instead comes below
        client.amqp.start()
        client.pump(lambda: client.kinds().count("protocol-header") == 2)
        opening = framed(Open(container_id="raw").encode())
        begin = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
        large = framed(replace(begin, properties={Symbol("x"): "x" * octets}).encode())
        for piece in (opening, large) if in_pieces else (opening + large,):
            client.socket.sendall(piece)
            if in_pieces:
                broker.connections()  # its thread has had a turn
        client.pump(lambda: "begin" in client.kinds() or client.closed)
        assert ("begin" in client.kinds()) is (octets < most)
        assert client.errors() == ([] if octets < most else ["amqp:connection:framing-error"])


# -- mistakes of ours -----------------------------------------------------------------------


class MistakeError(Exception):
    """What ours would raise."""


def broken(broker, name="c1"):
    """Let the broker's end of a connection trip over the next frame."""

    def spoil():
        end = broker.listener.connections[name].broker_end
        react = end.react

        def trip(events):
            if events:
                end.react = react
                raise MistakeError("a mistake of ours")

        end.react = trip

    broker.ask(spoil)


@pytest.mark.parametrize("how", ["at once", "recorded", "held at the gate"])
@pytest.mark.parametrize("preset", ["spec", "rmq4.3"])
def test_a_mistake_of_ours_closes_its_connection_with_internal_error(raw_client, preset, how):
    """Never silently, whatever way the frame took; another client is served."""
    kept = recording() if how == "recorded" else None
    with LiveBroker(preset, recording=kept) as broker:
        client, other = raw_client(broker).open(), raw_client(broker).open()
        if how == "held at the gate":
            broker.wire("c1").hold("c2b")
        broken(broker)
        client.amqp.begin()
        client.flush()
        if how == "held at the gate":
            other.session()  # the broker has read what came before it
            broker.wire("c1").free_run()
        client.pump(lambda: client.errors() != [])
        assert client.errors() == ["amqp:internal-error"]
        client.pump(lambda: client.closed)
        failures = broker.ask(lambda: list(broker.listener.failures))
        assert [type(each) for each in failures] == [MistakeError]
        other.amqp.begin()
        other.pump(lambda: "begin" in other.kinds())


def test_a_mistake_when_time_is_up_closes_the_connection_too(raw_client):
    """A timer belongs to its connection."""
    with StillServer("rmq4.3", limits=Limits(idle_s=0.2)) as broker:
        client = raw_client(broker).open()
        broken(broker)
        client.pump(lambda: client.errors() != [])
        assert client.errors() == ["amqp:internal-error"]
