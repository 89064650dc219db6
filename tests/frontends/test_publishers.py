"""The broker towards publishers: plain fixed credit, confirms when the queue has the message.

How a conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from msgspec import structs

from tests.broker.rig import SPEC, RawClient, Rig
from tests.broker.talk import Talk
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.events import SaslFinished
from workbench.amqp10.messaging import Accepted
from workbench.amqp10.performatives import Detach, Disposition, SaslCode
from workbench.amqp10.sasl import PLAIN, SaslClient

PUBLISHERS = {
    "a publisher gets the preset's credit at once": """
        with publisher_credit=70
        attach -> limits 0@70 | credit 70""",
    "credit is granted again when little is left": """
        with publisher_credit=4 publisher_credit_regrant_at=2
        attach; send a -> limits 0@4
        send b -> limits 0@4 2@4 | credit 4""",
    "a settled publish is not confirmed": """
        attach; presettled; send a -> told - | ready 1""",
    "a confirm after the link is gone is left undone, and the message stays": """
        with queue_enqueue_us=50000
        attach; burst 1 + close -> told - | ready 1""",
    # The session lives [2.6.7].
    "a transfer without credit ends the link alone": """
        with publisher_credit=1 publisher_credit_regrant_at=-1
        attach; heedless 2 -> detaches amqp:link:transfer-limit-exceeded | ends - | ready 1""",
    # With credit to spare [2.5.6].
    "the session window is opened again at half": """
        with incoming_window=4 incoming_window_regrant_at=2
        attach; burst 3 -> windows 4 | remote_window 3""",
    # What the links held goes back [2.5.6].
    "more transfers than the window end the session": """
        with incoming_window=2 incoming_window_regrant_at=-1
        ready 1 out; receive of=out; grant 1 -> out.unsettled 1
        attach; heedless 3 -> ends amqp:session:window-violation | out.ready 1 | out.unsettled 0""",
}


@pytest.mark.parametrize("script", PUBLISHERS.values(), ids=PUBLISHERS)
def test_a_publisher_under_the_specifications_preset(script) -> None:
    """Credit and window are as large as the preset says, whatever waits in the queue."""
    Talk(SPEC).play(script)


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
