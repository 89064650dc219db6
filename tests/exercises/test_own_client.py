"""Lesson 11: the questions and checks read a live trace, whatever the client does on it."""

import contextlib
import time
from pathlib import Path

import nbformat
import pytest

from tests.exercises import golden
from tests.patience import TIMEOUT_S, held_on, until
from workbench.exercises.progress import Progress
from workbench.exercises.question import NotYetError, Prediction
from workbench.lessons.lesson_11 import check, fill, first_grant, heartbeats, predict
from workbench.lessons.table import lesson_numbered
from workbench.net.background import background
from workbench.net.serve import serve
from workbench.sim import WireError

NOTEBOOK = Path(__file__).resolve().parent.parent.parent / "notebooks/11_own_client.ipynb"
CREDIT = 4


def client(url, credit, messages=10):
    """The lesson's client."""
    from proton.utils import BlockingConnection

    connection = BlockingConnection(url, allowed_mechs="ANONYMOUS", heartbeat=10)
    receiver = connection.create_receiver("/queues/q", credit=credit, name="in")
    bodies = []
    for _ in range(messages):
        bodies.append(receiver.receive().body)
        receiver.accept()
    connection.close()
    return bodies


@pytest.fixture
def server():
    """The lesson's broker: twenty messages, and closed gates."""
    with serve("rmq4.3", queues=["q"]) as live:
        live.freeze_new()
        fill(live, "q", 20)
        yield live


@pytest.fixture
def wire(server):
    """The wire of a client with a credit of four, every frame held."""
    pytest.importorskip("proton", reason="needs python-qpid-proton")
    server.job = background(client, server.url, CREDIT)
    found = []

    def there():
        with contextlib.suppress(WireError):
            found.append(server.wire())
        return found

    until(there)
    yield found[0]
    server.stop()
    until(lambda: server.job.done)


def step_to(wire, kind, way="c2b"):
    """Forward one by one until such a frame waits at a gate."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (held := wire.held(way)) or held[0].kind != kind:
        assert time.monotonic() < deadline
        wire.step()
        time.sleep(0.002)
    return held[0]


def test_the_lesson_s_client_is_as_patient_as_its_reader(server, monkeypatch):
    """Held in its handshake it waits as long as the lesson takes, and longer.

    Before the opens have crossed nobody may send an empty frame [2.4.1], so a client that asks for
    a heartbeat gives up there while a person reads.
    """
    utils = pytest.importorskip("proton.utils", reason="needs python-qpid-proton")
    connections = []
    connecting = utils.BlockingConnection

    def noted(*args, **kwargs):
        connections.append(connecting(*args, **kwargs))
        return connections[-1]

    monkeypatch.setattr(utils, "BlockingConnection", noted)
    lesson = nbformat.read(NOTEBOOK, as_version=4)
    names = {"background": background, "server": server}
    for cell in lesson.cells:
        if cell.id in ("connect", "client"):
            exec(cell.source, names)
    until(server.wires)
    wire = server.wire("c1")
    told = step_to(wire, "open").item.performative
    assert told.idle_time_out is None
    wire.free_run()
    until(lambda: names["job"].done)
    assert names["job"].error is None
    assert connections[0].timeout >= 60 * lesson_numbered("11").minutes


def answer(question):
    """What the trace says."""
    return question.solve().answer


@pytest.mark.parametrize(
    "asked",
    [
        predict.first_frame.question,
        predict.before_attach.question,
        predict.brought.question,
        predict.next_credit.question,
        predict.stopped_at.question,
        predict.whose_ledger.question,
        predict.rows_per_frame.question,
        lambda server: predict.first_credit.question(server, credit=CREDIT),
    ],
)
def test_what_has_not_happened_yet_cannot_be_compared(server, asked):
    """The answer stays committed, and the text says what has to happen first."""
    question = asked(server)
    with pytest.raises(NotYetError):
        question.solve()
    prediction = Prediction(question)
    prediction.commit(question.choices[0] if question.choices else 1)
    verdict = prediction.compare()
    assert verdict.right is None
    assert verdict.text
    assert prediction.answer is not None
    assert check.crossed(server, log=Progress()).right is None
    assert check.stopped(server, log=Progress()).right is None


@pytest.mark.parametrize("asked", [check.crossed, check.stopped, heartbeats])
@pytest.mark.parametrize("given", [3, "server", serve])
def test_what_is_no_live_server_is_a_mistake_in_the_cell(asked, given):
    """What is wanted is told, and what was given."""
    with pytest.raises(TypeError, match=f"`serve` gave is wanted.* not {type(given).__name__}$"):
        asked(given)


def test_the_handshake_is_counted_frame_by_frame(server, wire):
    """The first frame is the protocol header; everything before the attach is counted [2.2]."""
    held_on(wire, 1)
    assert answer(predict.first_frame.question(server)) == wire.held()[0].kind
    step_to(wire, "attach")
    passed = sum(gate.passed for gate in wire.picture().gates.values())
    waiting = {frame.frame_id for frame in wire.held() if frame.kind != "attach"}
    told = answer(predict.before_attach.question(server))
    assert told in (passed, passed + len(waiting))


def test_the_first_flow_and_what_it_brings_are_read_off_the_wire(server, wire):
    """As many transfers wait as the flow grants, though none has arrived [2.6.7]."""
    held = step_to(wire, "flow")
    flow = held.item.performative
    asked = predict.first_credit.question(server, credit=CREDIT)
    assert answer(asked) == flow.link_credit
    with pytest.raises(NotYetError):
        predict.brought.question(server).solve()
    while wire.held("b2c"):
        wire.step(1, "b2c")
    wire.step(1, "c2b")
    transfers = held_on(wire, flow.link_credit, direction="b2c")
    assert {frame.kind for frame in transfers} == {"transfer"}
    assert answer(predict.brought.question(server)) == len(transfers)


def second_flow(wire):
    """Let the first flow and the broker's attach through; the client's next flow then waits."""
    step_to(wire, "flow")
    wire.step(1, "c2b")
    step_to(wire, "attach", "b2c")
    wire.step(1, "b2c")
    (held,) = held_on(wire, 1, direction="c2b")
    assert held.kind == "flow"
    return held


def test_the_second_flow_asks_for_more_before_a_message_came(server, wire):
    """What Proton grants when its attach is answered is read off the wire, with the limit."""
    flow = second_flow(wire).item.performative
    solution = predict.next_credit.question(server).solve()
    assert solution.answer == flow.link_credit
    assert f"up to delivery-count {flow.delivery_count + flow.link_credit}" in solution.reason


def test_a_flow_that_answers_a_message_is_not_the_one_that_is_asked_for():
    """With messages before it, its credit is another: then the client is to be run again."""
    with pytest.raises(NotYetError, match="messages had come before that"):
        predict.next_credit.question(golden.server(3)).solve()


def test_a_flow_that_crosses_transfers_at_the_gate_is_the_race(server, wire):
    """The check wants it by hand, and shows the sum that the broker made of it [2.6.7]."""
    held = second_flow(wire)
    assert check.crossed(server, log=Progress()).right is False
    wire.release(held.frame_id)
    until(lambda: not wire.held("c2b"))
    verdict = check.crossed(server, log=Progress())
    assert verdict.right, verdict
    flow = held.item.performative
    left = server.ask(lambda: sending_credit(server))
    sum_ = f"{flow.delivery_count} + {flow.link_credit} − {CREDIT} = "
    assert sum_ in verdict.text
    assert int(verdict.text.split(sum_)[1].split()[0]) >= left


def sending_credit(server):
    """The broker's link-credit over the one link on which it sends."""
    (connection,) = server.listener.connections.values()
    ledgers = [
        link.ledger()
        for session in connection.broker_end.amqp.sessions
        for link in session.links
        if link.is_sender
    ]
    return ledgers[0]["link_credit"]


def test_frames_that_ran_freely_are_no_race_of_the_learner_s(server, wire):
    """Whatever crossed by itself, the check wants to see a hand; before, it counts nothing."""
    wire.free_run()
    assert server.job.wait(TIMEOUT_S) == list(range(10))
    verdict = check.crossed(server, log=Progress())
    assert verdict.right is None
    assert "you forwarded none of them by hand" in verdict.text


def test_a_breakpoint_on_the_credit_holds_the_transfer_that_used_it(server, wire):
    """Question and check name it; once all is let go nothing has been lost."""
    held_on(wire, 1)
    wire.break_when("link_credit <= 1")
    wire.free_run()
    until(wire.stops)
    held_on(wire, 1)
    assert answer(predict.stopped_at.question(server)) == wire.held()[0].kind == "transfer"
    verdict = check.stopped(server, log=Progress())
    assert verdict.right is False
    assert "still wait" in verdict.text
    wire.clear_breakpoints()
    wire.free_run()
    assert server.job.wait(TIMEOUT_S) == list(range(10))
    until(lambda: not server.connections())
    verdict = check.stopped(server, log=Progress())
    assert verdict.right, verdict
    assert "none was lost" in verdict.text


def test_the_client_s_counters_are_a_shadow_s(server, wire):
    """Proton shows none: the rows of its end say so."""
    wire.free_run()
    server.job.wait(TIMEOUT_S)
    solution = predict.whose_ledger.question(server).solve()
    assert solution.answer == predict.whose_ledger.words["choices"]["shadow"]
    assert "ledger_source='shadow'" in solution.reason
    assert "empty frame" in heartbeats(server)


def test_the_whole_trace_opens_where_credit_is_first_granted(server, wire):
    """Before it there are no counters to look at; without a client there is no such row."""
    assert first_grant([]) is None
    wire.free_run()
    server.job.wait(TIMEOUT_S)
    rows = server.rows()
    opens = next(row for row in rows if row.seq == first_grant(rows))
    assert (opens.kind, opens.from_peer, opens.frame["link_credit"]) == ("flow", "client", CREDIT)
    assert {row.kind for row in rows if row.seq < opens.seq} >= {"open", "begin", "attach"}


def test_a_proxy_has_one_row_for_a_frame(server, wire):
    """Nobody at the ends logs; the one in the middle sees each frame once."""
    wire.free_run()
    server.freeze_new(False)
    server.job.wait(TIMEOUT_S)
    with serve(forward=server.url) as proxy:
        assert len(background(client, proxy.url, CREDIT, 5).wait(TIMEOUT_S)) == 5
        assert answer(predict.rows_per_frame.question(proxy)) == 1
