"""A broker as it is now: read by HTTP where that is on, else by AMQP; what is not read is told."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer

import jsonschema
import pytest

from workbench.cli import main
from workbench.lessons.lesson_11 import fill
from workbench.net.serve import serve
from workbench.net.snapshot import LinkNow, QueueNow, Snapshot, SnapshotError, snapshot
from workbench.views.scene import schema
from workbench.views.scene_snapshot import snapshot_scene

NOBODY = "http://127.0.0.1:9"
SECRET = "10.1.2.3:5555 -> 10.9.9.9:5672"
LINK = {"link_name": "private", "delivery_count": 9}
# As `rabbit_mgmt` answers in RabbitMQ 4.1 and later; its own test suite names these fields.
ANSWERS = {
    "overview": {"product_name": "RabbitMQ", "product_version": "4.1.0"},
    "queues/%2F": [
        {"name": "orders", "type": "quorum", "messages_ready": 0,
         "messages_unacknowledged": 4000, "consumers": 1},
        {"name": "left", "type": "classic", "messages_ready": 3,
         "messages_unacknowledged": 0, "consumers": 0},
    ],
    "nodes": [{"mem_alarm": True, "disk_free_alarm": False}],
    "connections": [{"name": SECRET, "protocol": "AMQP 1-0", "user": "ann"}],
    "connections/10.1.2.3%3A5555%20-%3E%2010.9.9.9%3A5672/sessions": [
        {"incoming_window": 0, "remote_incoming_window": 50,
         "incoming_links": [{**LINK, "target_address": "/queues/orders", "credit": 7}],
         "outgoing_links": [{**LINK, "source_address": "x", "queue_name": "orders", "credit": 0}]},
    ],
}  # fmt: skip


@contextmanager
def management(answers):
    """An interface that answers GET, and notes whatever else is asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.removeprefix("/api/")
            asked.append(path)
            found = answers.get(path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

        def log_message(self, *_words):
            """Nothing is printed."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_our_own_broker_tells_of_the_queues_that_are_named():
    """By AMQP 0-9-1, without a change; a queue that is not there, and all that AMQP hides."""
    with serve("rmq4.3", queues=["q", "empty"]) as server:
        fill(server, "q", 7)
        found = snapshot(server.url, ["q", "nowhere", "empty"], http=NOBODY)
        again = snapshot(server.url, ["q"], http=NOBODY)
    assert [(one.name, one.ready, one.consumers) for one in found.queues] == [
        ("q", 7, 0), ("empty", 0, 0),
    ]  # fmt: skip
    assert again.queues[0].ready == 7
    assert found.broker.startswith("RabbitMQ 4.3")
    assert found.advice() == ["Queue q: 7 ready and nobody consumes."]
    unread = " ".join(found.unread)
    assert all(word in unread for word in ("management interface", "links", "nowhere"))


def test_the_management_interface_tells_of_links_and_alarms():
    """Queues, credit and windows by direction; nothing that names a host or a user is kept."""
    with management(ANSWERS) as (http, asked):
        found = snapshot("amqp://ann:geheim@127.0.0.1", http=http)
    assert found.alarms == ["memory"]
    assert [(one.connection, one.sends, one.address, one.credit, one.window)
            for one in found.links] == [
        ("c1", False, "/queues/orders", 7, 0), ("c1", True, "orders", 0, 50),
    ]  # fmt: skip
    advice = " ".join(found.advice())
    for telling in ("alarm is on (memory)", "huge prefetch hides a backlog", "nobody consumes",
                    "link-credit 0", "window is closed"):  # fmt: skip
        assert telling in advice
    kept = json.dumps(asdict(found))
    assert not any(secret in kept for secret in ("10.1.2.3", "ann", "geheim", "private"))
    assert any("consumers" in one for one in found.unread)  # 404 here
    assert set(asked) >= set(ANSWERS)


@pytest.mark.parametrize("url", ["amqp://127.0.0.1:{}/tpyo", "amqp://ann:wrong@127.0.0.1:{}"])
def test_what_the_broker_refuses_is_no_empty_snapshot(url):
    """Nor where the management interface tells its name."""
    overview = {"overview": ANSWERS["overview"]}
    with (
        serve("rmq4.3", users={"ann": "geheim"}) as server,
        management(overview) as (http, _),
    ):
        for asked in (http, NOBODY):
            with pytest.raises(SnapshotError):
                snapshot(url.format(server.port), http=asked)


def test_the_password_goes_to_no_server_that_another_names():
    """Neither its octets nor the user's name."""
    heard = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append((self.path, self.headers.get("Authorization")))
            away = self.path.startswith("/api/")
            self.send_response(302 if away else 404)
            if away:
                self.send_header("Location", f"http://127.0.0.2:{server.server_port}/away")
            self.end_headers()

        def log_message(self, *_words):
            """Nothing is printed."""

    server = HTTPServer(("0.0.0.0", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        http = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(SnapshotError):
            snapshot("amqp://ann:geheim@127.0.0.1:9", http=http)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert [key is not None for path, key in heard if path.startswith("/api/")] == [True]
    assert [key for path, key in heard if path == "/away"] == [None]


WRONG = (None, True, "x", 1.5, float("inf"), 10**400, -1, [], [1], {}, {"a": 1}, [[]])


def wronged(answer):
    """The answer with something else in each of its places, one at a time."""
    yield from WRONG
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield from ({**answer, name: other} for other in wronged(value))
    elif isinstance(answer, list):
        for place, value in enumerate(answer):
            yield from ([*answer[:place], other, *answer[place + 1 :]] for other in wronged(value))


def test_a_server_that_answers_something_else_is_read_as_far_as_it_can_be():
    """Or refused, in one line; what is drawn is a still of the stage."""
    nested = b"[" * 100_000 + b"]" * 100_000
    consumers = [{"queue": {"name": "q"}, "channel_details": {"connection_name": SECRET},
                  "prefetch_count": 5}]  # fmt: skip
    good = {**ANSWERS, "consumers/%2F": consumers, "overview": {"product_name": "RabbitMQ"}}
    answers = dict(good)
    with management(answers) as (http, _):
        for path in good:
            for answer in (*wronged(good[path]), nested):
                answers[path] = answer
                with suppress(SnapshotError):
                    snapshot_scene(snapshot("amqp://127.0.0.1:9", http=http))
            answers[path] = good[path]


def test_links_are_drawn_at_the_queue_that_their_address_names():
    """Decoded, whole, and not at one that an exchange's routing key is called like."""
    queues = [QueueNow(name=name, ready=1, consumers=1) for name in ("team/orders", "orders")]
    links = [
        LinkNow(connection="c1", sends=True, address="/queues/team%2Forders", credit=0),
        LinkNow(connection="c2", sends=False, address="/exchanges/amq.topic/orders", credit=9),
        LinkNow(connection="c3", sends=True, address="team/orders", credit=5),
    ]
    doc = snapshot_scene(Snapshot(queues=queues, links=links))
    names = {node["id"]: node["name"] for node in doc["nodes"]}
    drawn = {(names[one["from"]], names[one["to"]]) for one in doc["links"]}
    assert drawn == {("team/orders", "c1"), ("team/orders", "c3")}


def test_it_is_a_still_of_the_stage():
    """By the contract of every scene, with the worst in a sentence, drawn or not."""
    with management(ANSWERS) as (http, _):
        doc = snapshot_scene(snapshot("amqp://127.0.0.1", http=http))
    jsonschema.validate(doc, schema())
    blocked = {
        key: one.get("blocked") for key, one in doc["branches"][0]["steps"][0]["nodes"].items()
    }
    assert blocked["publisher 0"] == "window closed"
    assert blocked["consumer 0"] == "no link credit"
    assert "memory" in doc["idea"]


@pytest.mark.parametrize(
    ("url", "telling"),
    [("http://127.0.0.1", "no amqp:// address"), ("amqp://127.0.0.1:9", "refused")],
)
def test_what_cannot_be_looked_at_is_told_in_one_line(url, telling):
    """Neither HTTP nor AMQP."""
    with pytest.raises(SnapshotError, match=telling):
        snapshot(url, http=NOBODY)


@pytest.mark.parametrize(
    ("preset", "user", "host", "telling"),
    [
        ("rmq4.3", "ann:wrong", "/", "ACCESS_REFUSED"),
        ("rmq4.3", "ann:right", "/nowhere", "NOT_ALLOWED - vhost nowhere not found"),
        ("rmq3.5.5", "ann:right", "/nowhere", "wrong user or virtual host"),
        ("rmq4.3", "ann:right", "/" + "v" * 256, "at most 255 octets"),
    ],
)
def test_a_broker_that_refuses_is_told(preset, user, host, telling):
    """The wrong user, and a virtual host that is not there: nothing was looked at."""
    with serve(preset, queues=["q"], users={"ann": "right"}) as server:
        url = server.url.replace("://", f"://{user}@") + host
        with pytest.raises(SnapshotError, match=telling):
            snapshot(url, ["q"], http=NOBODY)


def test_the_command_tells_draws_and_lists_what_it_did_not_read(capsys, tmp_path, monkeypatch):
    """A table and advice on stdout, the rest on stderr, a page with -o."""
    monkeypatch.chdir(tmp_path)
    with serve("rmq4.3", queues=["q"]) as server:
        fill(server, "q", 2)
        argv = ["snapshot", server.url, "--queue", "q", "--http", NOBODY, "-o", "now.html"]
        assert main(argv) == 0
    said = capsys.readouterr()
    assert "Queue q: 2 ready and nobody consumes." in said.out
    assert "not read: the management interface" in said.err
    assert "as it is now" in (tmp_path / "now.html").read_text("utf-8")


@pytest.mark.parametrize(
    "url",
    ["amqp://a:99999", "amqp://ann:geheim", "amqp://[::1", f"amqp://{'a' * 64}.example"],
)
def test_an_address_that_can_be_none_is_refused_without_its_password(url):
    """A port that is none, half an address of IPv6, and a name that no host may have."""
    with pytest.raises(SnapshotError, match="its host or port can be none") as caught:
        snapshot(url)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("overview", [None, ["x"], "x"])
def test_who_is_no_management_interface_is_told_so(overview):
    """Something else answers there with JSON."""
    answers = {"overview": overview} if overview else {}
    with management(answers) as (http, _), serve("rmq4.3") as server:
        found = snapshot(server.url, http=http)
    assert found.broker.startswith("RabbitMQ 4.3")
    assert any(words in found.unread[0] for words in ("does not answer as RabbitMQ", "Not Found"))


@pytest.mark.parametrize("octets", [b"SSH-2.0-x\r\n" * 9, b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_who_is_no_broker_is_told_so(octets):
    """Whatever listens there: it is asked over HTTP, and then over AMQP."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            for _ in range(2):
                end, _ = listening.accept()
                with end:
                    end.recv(65_536)
                    end.sendall(octets)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        with pytest.raises(SnapshotError, match="speaks no AMQP 0-9-1"):
            snapshot(f"amqp://127.0.0.1:{port}", http=f"http://127.0.0.1:{port}")
        thread.join()
