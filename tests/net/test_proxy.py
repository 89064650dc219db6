"""The gate in front of another broker: octet for octet, recorded, held and let go by hand."""

import asyncio
import contextlib
import socket
import threading

import pytest

from tests.net.certificates import certificate_for
from tests.net.still import StillServer
from tests.patience import TIMEOUT_S, held_on, until
from tests.ports import free_port
from workbench.net import Limits, ListenError, LiveBroker
from workbench.net.forwarder import Target
from workbench.net.serve import serve
from workbench.net.tls import server_context, trust_in
from workbench.views.scene import scene

HEADER = b"AMQP\x00\x01\x00\x00"


class Peer:
    """A server of octets: keeps what it gets and says what it is told to say."""

    def __init__(self, say=b"", then_close=False):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got = b""
        self.over = threading.Event()
        self._say, self._then_close = say, then_close
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        with contextlib.suppress(OSError):
            connection, _ = self.listener.accept()
            with connection:
                connection.sendall(self._say)
                if self._then_close:
                    return
                while data := connection.recv(65536):
                    self.got += data
        self.over.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # who waits for a connection is told
        self.listener.close()
        self._thread.join(TIMEOUT_S)


def read_all(connection, least):
    """Read until so many octets have come, or the end."""
    got = b""
    connection.settimeout(TIMEOUT_S)
    while len(got) < least and (data := connection.recv(65536)):
        got += data
    return got


def assert_cut(proxy):
    """Whoever connects is cut off without an octet."""
    client = socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S)
    with client, contextlib.suppress(ConnectionResetError):
        assert client.recv(8) == b""


@pytest.fixture
def behind():
    """A broker of ours that plays the other broker."""
    with LiveBroker("rmq4.3", queues=["q"]) as broker:
        yield broker


@pytest.fixture
def proxy(behind):
    """A recording proxy in front of it."""
    with serve(forward=f"127.0.0.1:{behind.port}") as live:
        yield live
    assert live.listener.failures == []


def blocking(url, **options):
    """A blocking Proton connection."""
    pytest.importorskip("proton", reason="needs python-qpid-proton")
    from proton.utils import BlockingConnection

    options = {"allowed_mechs": "ANONYMOUS"} | options
    return BlockingConnection(url, timeout=TIMEOUT_S, **options)


def exchange(url, messages=20, **options):
    """Send messages over one link and take them over another, with a real client."""
    connection = blocking(url, **options)
    from proton import Message

    sender = connection.create_sender("/queues/q")
    for number in range(messages):
        sender.send(Message(body=number))
    receiver = connection.create_receiver("/queues/q", credit=5)
    bodies = []
    for _ in range(messages):
        bodies.append(receiver.receive().body)
        receiver.accept()
    connection.close()
    return bodies


def test_a_real_client_is_served_through_it_and_every_frame_is_observed_once(behind, proxy):
    """Proton talks to the broker behind; each frame is one row, `observed` on the wire."""
    assert exchange(proxy.url) == list(range(20))
    until(lambda: not proxy.connections())
    rows = proxy.rows()
    frames = [row for row in rows if row.frame_id is not None]
    assert {(row.vantage, row.event) for row in frames} == {("wire", "observed")}
    assert all(row.timed and row.t_raw_us == row.t_us for row in frames)
    assert len({row.frame_id for row in frames}) == len(frames)
    assert {row.ledger_source for row in frames if row.ledger} == {"observed"}
    kinds = [row.kind for row in frames if row.from_peer == "client"]
    assert kinds[:3] == ["protocol-header", "sasl-init", "protocol-header"]
    assert kinds.count("transfer") == 20
    assert kinds[-1] == "close"
    assert scene(rows)["branches"][0]["steps"]


def test_the_observed_credit_is_the_entitlement_that_the_flows_gave(proxy):
    """After a flow link-credit is what it granted; each transfer takes one of it [2.6.7].

    Proton may lower its limit while transfers fly; what then comes finds no credit left.
    """
    exchange(proxy.url)
    granted, transfers = None, 0
    for row in proxy.rows():
        if row.kind == "flow" and row.from_peer == "client" and row.frame.get("handle") is not None:
            limit = row.frame["delivery_count"] + row.frame["link_credit"]
            granted = limit
        elif row.kind == "transfer" and row.from_peer == "broker":
            transfers += 1
            assert row.ledger["delivery_count"] == transfers
            assert row.ledger["link_credit"] == max(0, granted - transfers)
    assert transfers == 20


@pytest.mark.parametrize(
    ("octets", "left"),
    [
        (b"GET / HTTP/1.1\r\n\r\n" * 50, 0),
        (b"AMQP\x00\x00\x09\x01" + bytes(range(256)) * 4, 0),
        (b"AMQP\x02\x01\x00\x00" + b"\x16\x03\x01" + bytes(300), 0),
        (b"AMQP\x00\x01\x00\x00" + b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x99\x45" * 7, 0),
        (b"AMQP\x00\x01\x00\x00" + b"\x00\x00\x00\x03\x02\x00\x00\x00" + b"more" * 9, 0),
        (
            b"AMQP\x00\x01\x00\x00" + b"\x00\x80\x00\x00\x02\x00\x00\x00" + bytes(8_388_600) + b"x",
            1,
        ),
        (b"AMQP\x00\x01\x00\x00" + b"\x00\x00\x01\x00\x02\x00", 6),
    ],
    ids=["http", "amqp-0-9-1", "tls", "unknown-performative", "bad-size", "huge", "cut-short"],
)
def test_what_cannot_be_decoded_is_passed_on_octet_for_octet_and_said(octets, left):
    """The proxy reads what it can; what it cannot read goes on all the same, both ways."""
    with Peer(say=octets) as peer, serve(forward=f"127.0.0.1:{peer.port}") as proxy:
        with socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S) as client:
            sending = threading.Thread(target=client.sendall, args=(octets,))
            sending.start()
            # What is left of a frame that is not whole goes on when the stream ends.
            whole = len(octets) - left
            assert read_all(client, whole) == octets[:whole]
            sending.join(TIMEOUT_S)
            until(lambda: len(peer.got) >= whole)
        assert peer.over.wait(TIMEOUT_S)
        assert peer.got == octets
        until(lambda: not proxy.connections())
        told = [row.extra["text"] for row in proxy.rows() if row.event == "error"]
        assert all("passed on unread" in text for text in told)
        assert told
        assert any("passed on unread" in line for line in proxy.news())
        assert proxy.listener.failures == []


@pytest.fixture
def patient():
    """A broker that bears any idle time-out, behind a proxy; and the proxy."""
    with (
        LiveBroker("spec", queues=["q"]) as behind,
        serve(forward=f"127.0.0.1:{behind.port}") as proxy,
    ):
        yield behind, proxy
        assert proxy.listener.failures == []


def test_frames_of_both_directions_are_held_and_forwarded_by_hand(patient):
    """A held transfer has not reached the broker; its confirm is held on the way back."""
    behind, proxy = patient
    connection = blocking(proxy.url, heartbeat=1)
    from proton import Message

    sender = connection.create_sender("/queues/q")
    wire = proxy.wire()
    wire.hold()
    done = threading.Event()

    def send():
        sender.send(Message(body="x"))
        done.set()

    thread = threading.Thread(target=send)
    thread.start()
    (held,) = held_on(wire, 1, direction="c2b")
    assert held.kind == "transfer"
    assert len(held.octets) == int.from_bytes(held.octets[:4], "big")
    assert not done.is_set()
    assert behind.overview()["queue:q.ready"] == 0
    wire.step()
    assert [frame.kind for frame in held_on(wire, 1, direction="b2c")] == ["disposition"]
    assert behind.overview()["queue:q.ready"] == 1
    assert not done.is_set()
    wire.free_run()
    assert done.wait(TIMEOUT_S)
    thread.join()
    connection.close()


def test_a_side_that_hears_nothing_is_told_that_all_is_well(raw_client):
    """A busy client sends no empty frames, and what it sends is held: the proxy makes some."""
    with (
        StillServer(limits=Limits(idle_s=0.3)) as behind,
        StillServer(forward=behind) as proxy,
    ):
        client = raw_client(proxy).open()
        wire = proxy.wire()
        wire.hold("c2b")
        for _ in range(1_200):  # a minute; the broker gives up after twice its idle time-out
            client.amqp.begin()
            client.flush()
            proxy.wait(0.05)
        assert behind.connections() == ["c1"]
        assert len(wire.held("c2b")) == 1_200
        wire.free_run()
        client.pump(lambda: client.kinds().count("begin") == 1_200)
        assert proxy.listener.failures == []


def test_a_breakpoint_reads_the_counters_of_the_wire(behind, proxy):
    """`link_credit <= 2` stops behind the transfer that leaves so little credit."""
    connection = blocking(proxy.url)
    from proton import Message

    sender = connection.create_sender("/queues/q")
    for number in range(10):
        sender.send(Message(body=number))
    wire = proxy.wire()
    assert wire.break_when("link_credit <= 2", link="in") == "link_credit of link in <= 2"
    receiver = connection.create_receiver("/queues/q", credit=5, name="in")
    received = [receiver.receive().body for _ in range(3)]
    held = held_on(wire, 2, direction="b2c")
    assert received == [0, 1, 2]
    assert [frame.kind for frame in held] == ["transfer", "transfer"]
    wire.clear_breakpoints()
    wire.free_run()
    assert receiver.receive().body == 3
    connection.close()


def test_a_counter_on_a_proxys_wire_is_read_when_the_frame_has_passed(raw_client):
    """The last transfer that credit allows stops there by itself: no other frame comes after it."""
    with StillServer() as behind, StillServer(forward=behind) as proxy:
        client = raw_client(proxy).open()
        session = client.session()
        sender = client.sender(session)
        for _ in range(3):
            sender.send(b"\x00\x53\x75\xa0\x01x", settled=True)
        receiver = client.receiver(session)
        wire = proxy.wire()
        wire.break_when("link_credit = 0 b2c", link="in")
        receiver.grant(2)
        client.pump(lambda: client.kinds().count("transfer") == 2)
        proxy.until(wire.stops)
        assert wire.held() == []
        assert all(gate.closed for gate in wire.picture().gates.values())


@pytest.mark.parametrize("forwarded", [True, False], ids=["proxy", "broker"])
def test_what_a_client_sent_before_it_went_still_reaches_the_broker(raw_client, behind, forwarded):
    """Held frames outlive the socket they came from: TCP had taken them, so they are not lost."""
    front = contextlib.nullcontext(behind)
    with serve(forward=f"127.0.0.1:{behind.port}") if forwarded else front as server:
        client = raw_client(server).open()
        sender = client.sender(client.session(), "/queues/q")
        wire = server.wire()
        wire.hold("c2b")
        sender.send(b"\x00\x53\x75\xa0\x01x", settled=True)
        client.flush()
        held_on(wire, 1)
        client.socket.close()
        until(lambda: wire.picture().gone)
        assert server.connections() == ["c1"]
        assert any("still wait" in line for line in server.news())
        wire.free_run()
        until(lambda: behind.overview().get("queue:q.ready") == 1)
        until(lambda: not server.connections())
        assert server.listener.failures == []


def test_a_broker_that_cannot_be_reached_costs_the_client_its_connection_and_is_said():
    """Nobody listens there: the client's socket is closed, and the news name the address."""
    port = free_port()
    with serve(forward=f"amqp://127.0.0.1:{port}") as proxy:
        assert_cut(proxy)
        until(lambda: not proxy.connections())
        assert any(
            f"cannot reach amqp://127.0.0.1:{port}: Connection refused" in line
            for line in proxy.news()
        )


@pytest.fixture
def unjoined(monkeypatch):
    """A proxy that has not reached the broker behind yet, that broker, and what joins them."""
    with Peer() as peer, serve(forward=f"127.0.0.1:{peer.port}") as proxy:
        join, connect = asyncio.Event(), proxy.listener.connect

        async def connect_late(make):
            await join.wait()
            await connect(make)

        monkeypatch.setattr(proxy.listener, "connect", connect_late)
        yield proxy, peer, lambda: proxy.ask(join.set)
        assert proxy.listener.failures == []


@pytest.mark.parametrize("read", [False, True], ids=["in-the-kernel", "read"])
def test_a_clients_first_octets_wait_for_the_broker_behind(unjoined, read):
    """They are left to TCP; those that were read nevertheless, as with TLS, wait in the proxy."""
    proxy, peer, join = unjoined
    first, more = b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"
    with socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S) as client:
        client.sendall(more if read else first + more)
        until(proxy.connections)
        side = proxy.ask(lambda: proxy.listener.connections["c1"].client)
        if read:
            proxy.ask(lambda: side.data_received(first))
        for _ in range(3):  # turns of the loop, in which it would read
            proxy.ask(lambda: None)
        assert side.octets_in == (len(first) if read else 0)
        join()
        until(lambda: len(peer.got) >= 16)
    assert peer.got == first + more


def test_a_proxy_that_is_stopped_while_it_joins_leaves_nothing_behind(monkeypatch):
    """The client is cut off, and the attempt to reach the broker is given up."""
    given_up = threading.Event()

    async def connect(make):
        try:
            await asyncio.sleep(TIMEOUT_S)
        except asyncio.CancelledError:
            given_up.set()
            raise

    with serve(forward="127.0.0.1:9") as proxy:
        monkeypatch.setattr(proxy.listener, "connect", connect)
        with socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S) as client:
            until(proxy.connections)
            proxy.stop()
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(8) == b""
    assert given_up.is_set()


def test_passwords_pass_and_are_not_recorded():
    """SASL goes through untouched; in the trace the response is zeros [5.3.3]."""
    with (
        LiveBroker(queues=["q"], users={"ann": "very-secret"}) as behind,
        serve(forward=f"127.0.0.1:{behind.port}") as proxy,
    ):
        options = {"allowed_mechs": "PLAIN", "user": "ann", "password": "very-secret"}
        assert exchange(proxy.url, 2, **options) == [0, 1]
        rows = proxy.rows()
    assert [set(row.frame["initial_response"]) for row in rows if row.kind == "sasl-init"] == [{0}]
    assert not any(b"very-secret" in (row.raw or b"") for row in rows)


def test_a_slow_reader_behind_the_proxy_holds_the_sender_by_tcp():
    """What the other side does not take is not read from this one: memory stays bounded."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        limits = Limits(write_octets=65_536)
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        with serve(forward=target, limits=limits, record=False) as proxy:
            client = socket.create_connection((proxy.host, proxy.port), timeout=0.5)
            taken, _ = silent.accept()
            sent = 0
            with client, taken, contextlib.suppress(TimeoutError):
                client.sendall(b"AMQP\x00\x01\x00\x00")
                while sent < 200_000_000:
                    sent += client.send(b"\x00\x00\x10\x00\x02\x00\x00\x00" + bytes(4088))
            assert sent < 200_000_000
            assert proxy.listener.failures == []


@pytest.mark.parametrize(
    ("text", "host", "port", "tls"),
    [
        ("localhost", "localhost", 5672, False),
        ("amqps://broker.example", "broker.example", 5671, True),
        ("10.0.0.7:1234", "10.0.0.7", 1234, False),
        ("amqp://[::1]:99/", "::1", 99, False),
    ],
)
def test_a_target_is_read_as_a_client_would_write_it(text, host, port, tls):
    """Scheme and port may be left out."""
    assert Target.of(text) == Target(host=host, port=port, tls=tls)


@pytest.mark.parametrize(
    "text",
    ["", "http://x:1", "host:0", "host:99999", f"host:{'9' * 5000}", "a@b:1", "host:x", "a..b:1"],
)
def test_what_is_no_target_is_refused_with_what_would_be(text):
    """The error names the legal forms."""
    with pytest.raises(ListenError, match="amqps://host:port"):
        Target.of(text)


def test_the_broker_behind_may_speak_tls(tmp_path):
    """`amqps://` is joined to with a check of the certificate; a stranger's is refused."""
    certificate, key = certificate_for("localhost", tmp_path)
    with LiveBroker(queues=["q"], host="localhost", tls=server_context(certificate, key)) as behind:
        target = f"amqps://localhost:{behind.port}"
        with serve(forward=target, trust=trust_in(certificate)) as proxy:
            assert exchange(proxy.url, 3) == [0, 1, 2]
        with serve(forward=target) as proxy:
            assert_cut(proxy)
            assert any("CERTIFICATE_VERIFY_FAILED" in line for line in proxy.news())
    with pytest.raises(ListenError, match="no certificates"):
        trust_in(key)


def test_a_broker_may_name_its_protocol_before_the_client_has():
    """A header of AMQP 0-9-1 that no client has asked for goes on, and so does what follows."""
    header = b"AMQP\x00\x00\x09\x01"
    with Peer(say=header) as peer, serve(forward=f"127.0.0.1:{peer.port}") as proxy:
        with socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S) as client:
            assert read_all(client, len(header)) == header
            client.sendall(header)
            until(lambda: peer.got == header)
        assert [row.kind for row in proxy.rows() if row.event == "observed"] == (
            ["protocol-header"] * 2
        )


def test_a_client_that_does_not_read_is_cut_when_its_broker_has_gone():
    """It counts as a connection until then, and a stop leaves none of it behind."""
    limits = Limits(connections=1, close_s=0.2)
    with socket.create_server(("127.0.0.1", 0)) as behind:
        port = behind.getsockname()[1]
        with serve(forward=f"127.0.0.1:{port}", limits=limits, record=False) as proxy:
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with client:
                client.connect(("127.0.0.1", proxy.port))
                client.sendall(HEADER)
                broker, _ = behind.accept()
                with broker:
                    broker.recv(8)
                    broker.sendall(HEADER)
                    end = proxy.listener.connections[proxy.connections()[-1]].client
                    frame = (8192).to_bytes(4, "big") + b"\2\0\0\0" + bytes(8184)
                    while not end.unread:  # one at a time: none is to wait for another
                        passed = end.octets_out + len(frame)
                        broker.sendall(frame)
                        until(lambda passed=passed: end.unread or end.octets_out >= passed)
                assert proxy.connections()
                until(lambda: end.gone and not proxy.connections())
