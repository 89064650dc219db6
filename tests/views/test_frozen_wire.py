"""The frozen wire's view: what it shows is what waits, and a press does what its button says."""

import json
import threading
import time

import pytest

from tests.net.conftest import RawClient
from tests.patience import TIMEOUT_S, until
from workbench.net.serve import serve
from workbench.views.frozen_wire import MOST_FRAMES, frozen_wire, picture_text

BODY = b"\x00\x53\x75\xa0\x01x"


@pytest.fixture
def server():
    """A recording broker with a queue."""
    with serve("rmq4.3", queues=["q"]) as live:
        yield live


@pytest.fixture
def client(server):
    """A raw client that has opened."""
    with RawClient(server) as raw:
        yield raw.open()


@pytest.fixture
def desk(server, client):
    """The view of that server."""
    shown = frozen_wire(server)
    yield shown
    shown.close()


def gate(desk, way):
    """What is shown of a direction."""
    return next(one for one in desk.widget.picture["gates"] if one["way"] == way)


def kinds(desk, way="c2b"):
    """Kinds of the frames that are shown as waiting."""
    return [frame["kind"] for frame in gate(desk, way)["frames"]]


def press(desk, act, **more):
    """Press a button, as the browser tells it, and wait until the picture shows what came of it."""
    desk.widget._handle_custom_msg({"act": act, **more}, [])
    desk.refresh()
    return desk.widget.picture["said"]


def test_a_held_frame_is_shown_with_its_fields_and_octets(desk, client):
    """Kind, what it carries, each field with its place, and the octets as the client wrote them."""
    press(desk, "hold", way="c2b")
    session = client.amqp.begin()
    client.flush()
    until(lambda: kinds(desk) == ["begin"])
    (frame,) = gate(desk, "c2b")["frames"]
    assert "incoming-window" in frame["carries"]
    assert int(frame["octets"][:8], 16) == frame["size"] == len(frame["octets"]) // 2
    fields = {name: (start, end, value) for name, _, _, start, end, value in frame["fields"]}
    start, end, value = fields["begin.incoming-window"]
    assert 0 < start < end <= frame["size"]
    assert str(session.ledger()["incoming_window"]) in value
    assert frame["fields"][-1][0].startswith("frame.")
    json.dumps(desk.widget.picture, allow_nan=False)


def test_the_picture_comes_without_being_asked_for(desk, client):
    """A thread of the server's brings it: no cell has to end, nobody has to press."""
    press(desk, "hold")
    seen = threading.Event()
    desk.widget.observe(lambda _change: kinds(desk) == ["begin"] and seen.set(), names="picture")
    client.amqp.begin()
    client.flush()
    assert seen.wait(TIMEOUT_S)


def test_forward_one_n_and_free_run_do_what_they_say(desk, client):
    """What is let through has arrived, what is not waits in order."""
    press(desk, "hold")
    for _ in range(5):
        client.amqp.begin()
    client.flush()
    until(lambda: len(kinds(desk)) == 5)
    assert "Let through: begin" in press(desk, "step")
    assert len(kinds(desk)) == 4
    until(lambda: kinds(desk, "b2c") == ["begin"])
    assert "2 let through" in press(desk, "step", frames=2, way="c2b")
    assert len(kinds(desk)) == 2
    assert "Both gates are closed." in press(desk, "hold")
    assert "let through; both gates are open" in press(desk, "run")
    client.pump(lambda: client.kinds().count("begin") == 5)
    assert "Freeze closes them" in press(desk, "step")
    assert not gate(desk, "c2b")["closed"]


def test_a_breakpoint_is_typed_as_it_is_said(desk, client):
    """`link_credit <= 3` stops there; a slip is answered with what would be legal."""
    session = client.session()
    sender = client.sender(session, "/queues/q")
    for _ in range(6):
        sender.send(BODY, settled=True)
    receiver = client.receiver(session, "/queues/q")
    assert "link_credit <= 3" in press(desk, "break", words="link_credit <= 3")
    receiver.grant(5)
    client.flush()
    until(lambda: kinds(desk, "b2c").count("transfer") >= 1)
    assert desk.widget.picture["stops"] == ["link_credit <= 3"]
    assert "is no breakpoint" in press(desk, "break", words="credit!")
    assert desk.widget.picture["failed"]
    assert "legal" in press(desk, "break", words="credits <= 3")
    press(desk, "clear")
    assert desk.widget.picture["breakpoints"] == []


def test_nobody_a_newcomer_and_one_who_has_gone(server):
    """The latest connection is shown until somebody chooses; a gone one's frames stay."""
    desk = frozen_wire(server)
    assert "Nobody is connected yet." in repr(desk)
    assert press(desk, "step") == "Nobody is connected yet."
    with RawClient(server) as one, RawClient(server) as two:
        one.open()
        two.open()
        until(lambda: desk.widget.picture["connections"] == ["c1", "c2"])
        press(desk, "choose", connection="c1")
        press(desk, "hold")
        one.amqp.begin()
        one.flush()
        until(lambda: kinds(desk) == ["begin"])
        one.socket.close()
        until(lambda: desk.widget.picture["gone"])
        assert kinds(desk) == ["begin"]
        assert "the client is gone" in repr(desk)
        press(desk, "run")
        until(lambda: desk.widget.picture["connection"] == "c2")
        assert desk.widget.picture["said"] == "c1 is over; this is c2."
    # After somebody it is never *yet*: neither in the line nor beside the choice.
    over = "c2 is over; nobody else is connected."
    until(lambda: desk.widget.picture["words"] == over)
    assert press(desk, "step") == over
    assert over in repr(desk)
    desk.close()


def test_many_frames_are_counted_and_few_are_listed(desk, client):
    """The message to the browser stays small whatever waits."""
    sender = client.sender(client.session(), "/queues/q")
    press(desk, "hold")
    for _ in range(MOST_FRAMES + 20):
        sender.send(BODY, settled=True)
    client.flush()
    until(lambda: gate(desk, "c2b")["waiting"] == MOST_FRAMES + 20)
    assert len(kinds(desk)) == MOST_FRAMES


def test_the_trace_so_far_opens_below_and_grows(desk, client):
    """The stepper stands at the latest row, and follows while it stands there."""
    assert "is open below" in press(desk, "trace")
    first = desk.stepper
    before = len(first.doc["rows"])
    assert first.cursor == before
    client.session()
    until(lambda: len(desk.stepper.doc["rows"]) > before)
    assert desk.stepper is first
    desk.stepper.cursor = 1
    time.sleep(0.3)
    shown = len(desk.stepper.doc["rows"])
    client.session()
    desk.refresh()
    assert len(desk.stepper.doc["rows"]) == shown


def test_new_connections_are_held_from_the_first_octet_on_request(server):
    """The box switches it; the protocol header is the first frame that waits."""
    desk = frozen_wire(server)
    assert "both gates closed" in press(desk, "freeze-new", on=True)
    with RawClient(server) as client:
        client.amqp.start()
        client.flush()
        until(lambda: kinds(desk) == ["protocol-header"])
        assert "○ protocol-header, 8 octets" in repr(desk)
    desk.close()


def test_a_stopped_server_is_shown_as_stopped(server, desk):
    """The view outlives its server, says so, and refuses in words."""
    server.stop()
    desk.refresh()
    assert not desk.widget.picture["running"]
    assert "(stopped)" in picture_text(desk.widget.picture)
    press(desk, "freeze-new", on=True)
    assert desk.widget.picture["failed"]
    assert "(stopped)" in desk._repr_mimebundle_()["text/plain"]
