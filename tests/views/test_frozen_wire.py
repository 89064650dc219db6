"""The frozen wire's stage: what it shows is what waits, and a press does what its button says."""

import gc
import gzip
import json
import re
import threading
import weakref

import jsonschema
import pytest

from tests.net.conftest import RawClient
from tests.patience import TIMEOUT_S, until
from workbench.net.serve import serve
from workbench.views.frozen_wire import MOST_FRAMES, FrozenWire
from workbench.views.scene import resolved, schema

BODY = b"\x00\x53\x75\xa0\x01x"
VALIDATOR = jsonschema.Draft202012Validator(schema())


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
    """The stage of that server."""
    shown = FrozenWire(server)
    yield shown
    shown.close()


def scene(desk):
    """What the browser has been sent."""
    return json.loads(gzip.decompress(desk.scene))


def waiting(desk, way="c2b", doc=None):
    """Kinds of the frames that are drawn at a gate, in order; of now, or of a scene."""
    doc = doc or scene(desk)
    place = {"c2b": "there", "b2c": "back"}[way]
    frames = [frame for frame in doc["branches"][0]["frames"] if frame["way"] == place]
    return [
        frame["name"].partition(":")[0]
        for frame in sorted(frames, key=lambda frame: int(frame["id"]))
        if frame["path"][-1][1] == 0.5
    ]


def gate(desk, way, doc=None):
    """What is shown of a direction's gate, now or in a scene."""
    (wire,) = list(resolved(doc or scene(desk)))[-1]["links"].values()
    return wire["gates"][{"c2b": "there", "b2c": "back"}[way]]


def press(desk, act, value=None):
    """Press something, as the browser tells it, and see what the picture says of it."""
    reply = desk.reply({"act": act, "value": value, "t": 0, "branch": 0, "step": 0})
    desk.refresh()
    return reply["why"] if reply["type"] == "illegal" else scene(desk)["idea"]


def test_a_held_frame_stands_at_the_gate_with_its_fields_and_octets(desk, client):
    """Kind, what it carries, each field with its place, and the octets as the client wrote them."""
    press(desk, "gate:c2b", True)
    session = client.amqp.begin()
    client.flush()
    until(lambda: waiting(desk) == ["begin"])
    doc = scene(desk)
    VALIDATOR.validate(doc)
    frame = next(one for one in doc["branches"][0]["frames"] if one["name"].startswith("begin"))
    assert "incoming-window" in frame["name"]
    assert frame["label"] == "begin"
    size = len(frame["octets"]["hex"]) // 2
    assert int(frame["octets"]["hex"][:8], 16) == size
    fields = {name: (start, end, value) for name, value, start, end, _ in frame["octets"]["fields"]}
    start, end, value = fields["begin.incoming-window"]
    assert 0 < start < end <= size
    assert str(session.ledger()["incoming_window"]) in value
    assert gate(desk, "c2b") == {"closed": True, "text": "1 waiting, 4 passed"}
    # Whoever opens the tab of octets sees the frame that goes next.
    assert doc["branches"][0]["steps"][-1]["frame"] == frame["id"]


def test_over_the_picture_a_long_frame_is_said_in_half_a_line(desk, client):
    """Its other fields are in the tab of octets, and in the picture as text."""
    press(desk, "hold")
    client.amqp.begin()
    client.flush()
    until(lambda: waiting(desk) == ["begin"])
    (told,) = re.findall(r"Next: begin \((.*)\), \d+ octets", scene(desk)["idea"])
    assert told.startswith("next-outgoing-id")
    assert told.endswith("…")
    assert len(told) <= 40
    assert "outgoing-window" in repr(desk)


def test_the_picture_comes_without_being_asked_for(desk, client):
    """A thread of the server's brings it: no cell has to end, nobody has to press."""
    press(desk, "hold")
    seen = threading.Event()
    desk.observe(lambda _change: waiting(desk) == ["begin"] and seen.set(), names="scene")
    client.amqp.begin()
    client.flush()
    assert seen.wait(TIMEOUT_S)


def test_forward_one_n_and_free_run_do_what_they_say(desk, client):
    """What is let through has arrived, what is not waits in order."""
    press(desk, "hold")
    for _ in range(6):
        client.amqp.begin()
    client.flush()
    until(lambda: len(waiting(desk)) == 6)
    assert "Let through: begin" in press(desk, "step")
    assert len(waiting(desk)) == 5
    until(lambda: waiting(desk, "b2c") == ["begin"])
    assert "2 let through" in press(desk, "some", 2)
    first, second = (frame.frame_id for frame in desk.server.wire().held("c2b")[:2])
    assert "legal" in press(desk, "release", str(second))
    assert "Let through: begin" in press(desk, "release", str(first))
    assert "Both gates are closed." in press(desk, "hold")
    assert "let through. Both gates are open: frames pass freely." in press(desk, "run")
    client.pump(lambda: client.kinds().count("begin") == 6)
    assert "no frame waits" in press(desk, "step")
    assert not gate(desk, "c2b")["closed"]


def test_a_breakpoint_is_typed_as_it_is_said(desk, client):
    """`link_credit <= 3` stops there; a slip is answered with what would be legal."""
    session = client.session()
    sender = client.sender(session, "/queues/q")
    for _ in range(6):
        sender.send(BODY, settled=True)
    receiver = client.receiver(session, "/queues/q")
    assert "link_credit <= 3" in press(desk, "break", "link_credit <= 3")
    receiver.grant(5)
    client.flush()
    until(lambda: "Stopped: link_credit <= 3." in scene(desk)["idea"])
    assert "transfer" in waiting(desk, "b2c")
    assert "is no breakpoint" in press(desk, "break", "credit!")
    assert "legal" in press(desk, "break", "credits <= 3")
    assert any(act["id"] == "clear" for act in scene(desk)["acts"])
    press(desk, "clear")
    assert all(act["id"] != "clear" for act in scene(desk)["acts"])


def test_what_was_done_before_a_stop_does_not_call_its_gates_open(desk, client):
    """They were opened, and the stop has closed them again since."""
    session = client.session()
    sender = client.sender(session, "/queues/q")
    for _ in range(6):
        sender.send(BODY, settled=True)
    receiver = client.receiver(session, "/queues/q")
    press(desk, "hold")
    press(desk, "break", "link_credit <= 3")
    receiver.grant(5)
    client.flush()
    until(lambda: "flow" in waiting(desk))
    press(desk, "run")
    until(lambda: "Stopped: link_credit <= 3." in scene(desk)["idea"])
    assert gate(desk, "b2c")["closed"]
    assert "let through. Stopped: link_credit <= 3." in scene(desk)["idea"]
    assert "open" not in scene(desk)["idea"]


def test_a_stop_is_told_while_it_is_to_come_and_while_it_holds(desk, client):
    """Whoever opens the gates, or closes them by hand, is not told of the stop before."""
    told = lambda: scene(desk)["idea"]  # noqa: E731
    assert "It will stop at: an end client to broker." in press(desk, "break", "end c2b")
    for closed_by_hand in (False, True):
        session = client.session()
        if closed_by_hand:
            press(desk, "hold")
        session.end()
        client.flush()
        until(lambda: waiting(desk) == ["end"])
        assert ("Stopped: an end client to broker." in told()) != closed_by_hand
        assert ("It will stop at: an end client to broker." in told()) == closed_by_hand
        assert "It will stop at: an end client to broker." in press(desk, "run")
        assert "Stopped" not in told()


def test_the_frame_that_met_a_stop_waits_at_the_gate_too(desk, client):
    """It was sent while the gate was open; nothing is held beyond a gate."""
    session = client.session()
    sender = client.sender(session, "/queues/q")
    for _ in range(6):
        sender.send(BODY, settled=True)
    receiver = client.receiver(session, "/queues/q")
    press(desk, "break", "link_credit <= 1")
    receiver.grant(5)
    client.flush()
    until(lambda: "Stopped: link_credit <= 1." in scene(desk)["idea"])
    held = [frame.kind for frame in desk.server.wire().held("b2c")]
    assert waiting(desk, "b2c") == held
    assert held.count("transfer") == 2


def test_the_client_stands_at_the_left_whatever_it_does(server):
    """Before anybody connects, and while it asks for messages."""
    desk = FrozenWire(server)
    sides = lambda: {node["id"]: node["place"][0] for node in scene(desk)["nodes"]}  # noqa: E731
    assert sides() == {"broker": 1}
    with RawClient(server) as client:
        client.open().receiver(client.session(), "/queues/q")
        client.flush()
        until(lambda: scene(desk)["nodes"][-1]["role"] == "sender")
        assert sides() == {"client:c1": 0, "broker": 1}
    desk.close()


def test_nobody_a_newcomer_and_one_who_has_gone(server):
    """The latest connection is shown until somebody chooses; a gone one's frames stay."""
    desk = FrozenWire(server)
    VALIDATOR.validate(scene(desk))
    assert "Nobody is connected yet." in repr(desk)
    assert press(desk, "step") == "Nobody is connected yet."
    with RawClient(server) as one, RawClient(server) as two:
        one.open()
        two.open()
        until(lambda: [act["id"] for act in scene(desk)["acts"] if "show" in act["id"]])
        press(desk, "show:c1")
        press(desk, "hold")
        one.amqp.begin()
        one.flush()
        until(lambda: waiting(desk) == ["begin"])
        one.socket.close()
        until(lambda: "its socket is closed" in str(scene(desk)["nodes"]))
        assert waiting(desk) == ["begin"]
        assert "the client is gone" in repr(desk)
        press(desk, "run")
        until(lambda: desk.connection == "c2")
        until(lambda: "c1 is over; this is c2." in scene(desk)["idea"])
    # After somebody it is never *yet*.
    over = "c2 is over; nobody else is connected."
    until(lambda: over in scene(desk)["idea"])
    assert press(desk, "step") == over
    assert over in repr(desk)
    desk.close()


def test_a_picture_is_of_one_moment(server, client, desk, monkeypatch):
    """What comes while it is asked for is in its next: gates and frames never tell two stories."""
    press(desk, "hold")
    ask = server.ask

    def and_then_a_frame_comes(question):
        answer = ask(question)
        held = len(ask(server.recording.rows))
        client.amqp.begin()
        client.flush()
        until(lambda: len(ask(server.recording.rows)) > held)
        return answer

    monkeypatch.setattr(server, "ask", and_then_a_frame_comes)
    desk.refresh()
    monkeypatch.undo()
    doc = scene(desk)  # the next may come at any time
    assert gate(desk, "c2b", doc)["text"].startswith(f"{len(waiting(desk, doc=doc))} waiting")


def test_many_frames_are_counted_and_few_are_drawn(desk, client, monkeypatch):
    """The message to the browser stays small whatever waits, and however long the trace is."""
    monkeypatch.setattr("workbench.views.frozen_wire.MOST_ROWS", 30)
    sender = client.sender(client.session(), "/queues/q")
    press(desk, "hold")
    for _ in range(MOST_FRAMES + 20):
        sender.send(BODY, settled=True)
    client.flush()
    until(lambda: gate(desk, "c2b")["text"].startswith(f"{MOST_FRAMES + 20} waiting"))
    assert len(desk.branches.runs[0].waiting) == MOST_FRAMES
    doc = scene(desk)
    VALIDATOR.validate(doc)
    assert len(doc["branches"][0]["steps"]) == 30
    assert doc["first"] == desk.server.rows()[-30].seq + 1


def test_the_picture_grows_and_stays_where_somebody_has_gone_back(desk, client):
    """It stands at the latest row; who steps back is left alone."""
    assert desk.seq == desk.server.rows()[-1].seq
    # What is asked in a lesson names steps, so that is what they are here.
    assert all("row" not in step for step in scene(desk)["branches"][0]["steps"])
    client.session()
    until(lambda: desk.seq == desk.server.rows()[-1].seq)
    desk.cursor = 3
    seq = desk.seq
    client.session()
    desk.refresh()
    assert desk.seq == seq


def test_new_connections_are_held_from_the_first_octet_on_request(server):
    """A switch; the protocol header is the first frame that waits."""
    desk = FrozenWire(server)
    assert "both gates closed" in press(desk, "new", True)
    with RawClient(server) as client:
        client.amqp.start()
        client.flush()
        until(lambda: waiting(desk) == ["protocol-header"])
        assert "protocol-header, 8 octets" in repr(desk)
    desk.close()


def test_before_a_proxy_a_frame_waits_that_no_row_tells_of(server):
    """A proxy records what has passed; what waits is drawn from the gate."""
    with serve(forward=server.url) as proxy:
        desk = FrozenWire(proxy)
        press(desk, "new", True)
        with RawClient(proxy) as client:
            client.amqp.start()
            client.flush()
            until(lambda: waiting(desk) == ["protocol-header"])
            assert all(row.frame_id is None for row in proxy.rows())
            VALIDATOR.validate(scene(desk))
            press(desk, "run")
            until(lambda: desk.seq >= 0)
        desk.close()


def test_a_stopped_server_is_shown_as_stopped(server, desk):
    """The view outlives its server, says so, and refuses in words."""
    server.stop()
    desk.refresh()
    assert "The server is stopped." in scene(desk)["idea"]
    reply = desk.reply({"act": "new", "value": True, "t": 0, "branch": 0, "step": 0})
    assert reply["type"] == "illegal"
    assert "The server is stopped." in desk._repr_mimebundle_()[0]["text/plain"]


def test_a_server_does_not_hold_on_to_views_that_are_closed(server):
    """Nor to the traces that they show."""
    shown = []
    for _ in range(4):
        view = FrozenWire(server)
        view.close()
        shown.append(weakref.ref(view))
    del view
    gc.collect()
    assert sum(one() is not None for one in shown) <= 1  # the last one goes with the next
