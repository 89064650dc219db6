"""The broker towards publishers: plain fixed credit, confirms when the queue has the message."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from msgspec import structs

from tests.broker.rig import RawClient, Rig
from workbench import presets
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.events import SaslFinished
from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import Accepted
from workbench.amqp10.performatives import Close, Detach, Disposition, End, Flow, SaslCode, Transfer
from workbench.amqp10.sasl import PLAIN, SaslClient

SPEC = presets.get("spec")
SMALL = replace(SPEC, publisher_credit=4, publisher_credit_regrant_at=2)


def test_a_publisher_gets_the_presets_credit_at_once() -> None:
    """The grant follows the attach."""
    rig = Rig()
    client, session = rig.raw()
    link = rig.sender(session)
    assert client.frames(Flow)[0].link_credit == SPEC.publisher_credit
    assert link.credit == SPEC.publisher_credit


def test_credit_is_granted_again_when_little_is_left() -> None:
    """Credit 4, again at 2: after two messages the next flow says 4."""
    rig = Rig(SMALL)
    client, session = rig.raw()
    link = rig.sender(session)
    link.send(b"a")
    rig.rest()
    assert len(client.frames(Flow)) == 1
    link.send(b"b")
    rig.rest()
    flow = client.frames(Flow)[1]
    assert (flow.link_credit, flow.delivery_count) == (4, 2)
    assert link.credit == 4


def test_an_unsettled_publish_is_confirmed_when_the_queue_has_it() -> None:
    """accepted, settled, after the queue's service time."""
    rig = Rig()
    client, session = rig.raw()
    link = rig.sender(session)
    link.send(b"a")
    rig.rest()
    (disposition,) = client.frames(Disposition)
    assert disposition.settled
    assert isinstance(disposition.state, Accepted)
    assert link.unsettled == {}
    assert rig.queue().ready == 1
    times = {(r.event, r.kind): r.t_us for r in rig.recorder.rows}
    taken = times["enqueue", None] - times["received", "transfer"]
    assert taken == SPEC.queue_enqueue_us


def test_a_settled_publish_is_not_confirmed() -> None:
    """Nobody waits for an answer."""
    rig = Rig()
    client, session = rig.raw()
    rig.sender(session).send(b"a", settled=True)
    rig.rest()
    assert client.frames(Disposition) == []
    assert rig.queue().ready == 1


def test_messages_reach_the_queue_one_per_service_time() -> None:
    """The mailbox grows while the queue works, and the rows show it."""
    rig = Rig(replace(SPEC, queue_enqueue_us=5000))
    _, session = rig.raw()
    link = rig.sender(session)
    for number in range(3):
        link.send(b"%d" % number)
    rig.rest()
    rows = [row for row in rig.recorder.rows if row.event == "enqueue"]
    assert [row.ledger["mailbox"] for row in rows] == [2, 1, 0]
    assert [later.t_us - row.t_us for row, later in itertools.pairwise(rows)] == [5000] * 2


def test_a_confirm_after_the_link_is_gone_is_left_undone() -> None:
    """The message stays in the queue."""
    rig = Rig(replace(SPEC, queue_enqueue_us=50_000))
    client, session = rig.raw()
    link = rig.sender(session)
    link.send(b"a")
    link.close()
    rig.rest()
    assert client.frames(Disposition) == []
    assert rig.queue().ready == 1


def test_a_transfer_without_credit_ends_the_link_alone() -> None:
    """transfer-limit-exceeded; the session lives [2.6.7]."""
    rig = Rig(replace(SPEC, publisher_credit=1, publisher_credit_regrant_at=-1))
    rig.broker.declare("q")
    client, session = rig.raw()
    link = rig.sender(session)
    link.counters.link_credit = 5  # a publisher that cannot count
    for number in range(2):
        link.send(b"%d" % number)
    rig.rest()
    (detach,) = client.frames(Detach)
    assert detach.error.condition == ErrorCondition.TRANSFER_LIMIT_EXCEEDED
    assert client.frames(End) == []
    assert rig.queue().ready == 1


def test_a_message_above_the_limit_ends_the_link() -> None:
    """max-message-size is told in the attach [2.7.3]."""
    rig = Rig(replace(SPEC, max_message_size=10))
    client, session = rig.raw()
    link = rig.sender(session)
    assert link.remote_attach.max_message_size == 10
    link.remote_attach = structs.replace(link.remote_attach, max_message_size=None)
    link.send(b"x" * 11)
    rig.rest()
    assert client.frames(Detach)[0].error.condition == ErrorCondition.MESSAGE_SIZE_EXCEEDED


def test_the_session_window_is_opened_again_at_half() -> None:
    """Window 4, again at 2, with credit to spare [2.5.6]."""
    rig = Rig(replace(SPEC, incoming_window=4, incoming_window_regrant_at=2))
    client, session = rig.raw()
    link = rig.sender(session)
    for _ in range(3):
        link.send(b"x")
    rig.rest()
    flows = [flow for flow in client.frames(Flow) if flow.handle is None]
    assert [flow.incoming_window for flow in flows] == [4]
    assert session.counters.remote_incoming_window == 3


# -- errors go to their scope ---------------------------------------------------------------


def test_a_transfer_on_an_unknown_handle_ends_the_session() -> None:
    """unattached-handle is a session error [2.5.5]; the connection lives."""
    rig = Rig()
    client, session = rig.raw()
    transfer = Transfer(handle=7, delivery_id=0, delivery_tag=b"t")
    client.wire.send(client, Frame(0, transfer, b"x"))
    rig.rest()
    (end,) = client.frames(End)
    assert end.error.condition == ErrorCondition.UNATTACHED_HANDLE
    assert client.frames(Close) == []
    assert client.amqp.begin() is not session


def test_a_frame_on_a_channel_without_session_closes_the_connection() -> None:
    """Whatever belongs to no session is the connection's matter."""
    rig = Rig()
    client, _ = rig.raw()
    client.wire.send(client, Frame(9, End()))
    rig.rest()
    assert len(client.frames(Close)) == 1


def test_more_transfers_than_the_window_end_the_session() -> None:
    """window-violation [2.5.6]; what the links held goes back."""
    rig = Rig(replace(SPEC, incoming_window=2, incoming_window_regrant_at=-1))
    rig.fill("out", 1)
    client, session = rig.raw()
    rig.receiver(session, "out").grant(1)
    rig.rest()
    assert rig.queue("out").unsettled == 1
    link = rig.sender(session)
    session.counters.remote_incoming_window = 10  # a publisher that cannot count
    for _ in range(3):
        link.send(b"x")
    rig.rest()
    (end,) = client.frames(End)
    assert end.error.condition == ErrorCondition.WINDOW_VIOLATION
    assert (rig.queue("out").ready, rig.queue("out").unsettled) == (1, 0)


# -- SASL -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sasl", "user"),
    [
        (SaslClient(), "anonymous"),
        (SaslClient(mechanism=PLAIN, user="guest", password="guest"), "guest"),
    ],
)
def test_anonymous_and_plain_are_let_in(sasl: SaslClient, user: str) -> None:
    """SASL ANONYMOUS and PLAIN [5.3.3]."""
    rig = Rig()
    rig.raw(sasl=sasl)
    assert rig.broker.overview()["c1.user"] == user


def test_a_wrong_password_is_told_and_ends_it() -> None:
    """The outcome says auth; no AMQP frame follows [5.3.3.6]."""
    rig = Rig()
    wrong = SaslClient(mechanism=PLAIN, user="guest", password="wrong")
    client = rig.connect(RawClient(sasl=wrong))
    rig.rest()
    (finished,) = client.of(SaslFinished)
    assert finished.code is SaslCode.AUTH
    assert not client.amqp.opened
    assert rig.broker.overview()["c1.state"] == "END"
