"""A real python-qpid-proton receiver on the virtual wire."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("proton")

from workbench.scenarios import ActionError, Run, run

PARAMETERS = {"client": "proton"}


def end(played: Run) -> int:
    return len(played.rows) - 1


@pytest.fixture(scope="module")
def attached() -> Run:
    return run("credit", parameters=PARAMETERS)


def last(played: Run, vantage: str) -> dict[str, int]:
    rows = [row for row in played.rows if row.vantage == vantage and row.link is not None]
    ledger = rows[-1].ledger
    assert ledger is not None
    return ledger


def test_proton_gets_exactly_the_messages_in_order(attached: Run) -> None:
    """flow(10) brings the ten messages of the queue; ours and Proton's idea of credit agree."""
    played = attached.act(attached.start_seq, "flow", count=10)
    peer = played.world.peers["consumer"]
    assert len(peer.payloads) == 10
    numbers = [int(body.split(b"message ")[1].split(b" ")[0]) for body in peer.payloads]
    assert numbers == list(range(10))
    assert peer.link_credit == 0 == last(played, "broker")["link_credit"]


def test_proton_adds_credit_where_the_specification_sets_it(attached: Run) -> None:
    """flow(50) twice puts 100 on the wire; grant(50) twice leaves 50."""
    added = attached
    granted = attached
    for _ in range(2):
        added = added.act(end(added), "flow", count=50)
        granted = granted.act(end(granted), "grant", link_credit=50)
    on_wire = [
        [row.frame["link_credit"] for row in r.rows if row.kind == "flow" and row.event == "sent"]
        for r in (added, granted)
    ]
    # Ten messages came between the two: 40 left, and 50 more.
    assert on_wire == [[50, 90], [50, 50]]


def test_the_observer_agrees_with_proton_and_with_the_broker(attached: Run) -> None:
    """The shadow ledger is what Proton hides: after each step it equals the broker's."""
    played = attached
    for name, arguments in [
        ("flow", {"count": 4}),
        ("grant", {"link_credit": 2}),
        ("acknowledge", {"count": 3}),
        ("flow", {"count": 7}),
        ("drain", {}),
    ]:
        played = played.act(end(played), name, **arguments)
        shadow, own = last(played, "client:proton"), last(played, "broker")
        assert shadow["delivery_count"] == own["delivery_count"]
        assert shadow["link_credit"] == own["link_credit"]
        assert shadow["link_credit"] == played.world.peers["consumer"].link_credit
    sources = {r.ledger_source for r in played.rows if r.vantage == "client:proton" and r.ledger}
    assert sources == {"shadow"}


def test_proton_drains(attached: Run) -> None:
    """The broker's answer brings Proton's credit to 0 [2.6.7]."""
    played = attached.act(attached.start_seq, "flow", count=15)
    played = played.act(end(played), "drain")
    assert played.world.peers["consumer"].link_credit == 0
    assert last(played, "broker")["delivery_count"] == 15


def test_proton_follows_a_count_that_wraps() -> None:
    """A peer's initial delivery-count just below 2^32 is handled right."""
    played = run("credit", parameters={**PARAMETERS, "initial_delivery_count": 4294967294})
    played = played.act(played.start_seq, "flow", count=5)
    assert last(played, "broker")["delivery_count"] == 3
    assert played.world.peers["consumer"].received == 5


def test_proton_lowers_credit_safely(attached: Run) -> None:
    """Lowering by what is left, never below 0."""
    played = run("credit", parameters={**PARAMETERS, "messages": 0})
    played = played.act(played.start_seq, "flow", count=5)
    played = played.act(end(played), "grant", link_credit=0)
    assert last(played, "broker")["link_credit"] == 0
    with pytest.raises(ActionError, match="credit 0 cannot be lowered by 1"):
        played.act(end(played), "flow", count=-1)


def test_a_drain_after_a_cut_that_came_too_late_asks_for_nothing(attached: Run) -> None:
    """Proton counts below 0 then, and by itself would put 4294967293 for -3 on the wire."""
    played = attached.act(attached.start_seq, "grant", link_credit=4)
    held = played.act(next(r.seq for r in played.rows if r.kind == "transfer"), "hold",
                      direction="b2c")  # fmt: skip
    cut = held.act(end(held), "grant", link_credit=1)
    freed = cut.act(end(cut), "release", direction="b2c")
    assert freed.world.peers["consumer"].link_credit == -3
    drained = freed.act(end(freed), "drain")
    flow = [row.frame for row in drained.rows if row.kind == "flow" and row.event == "sent"][-1]
    assert flow is not None
    assert (flow["link_credit"], flow["drain"]) == (0, True)
    assert drained.world.peers["consumer"].received == 4


def test_proton_s_credit_has_a_sign_and_what_is_beyond_is_refused(attached: Run) -> None:
    """Up to 2147483647, though a flow could carry 4294967295."""
    granted = attached.act(attached.start_seq, "grant", link_credit=2147483647)
    assert granted.world.peers["consumer"].received == 10
    with pytest.raises(ActionError, match="legal now: flow 2147483647 or less"):
        attached.act(attached.start_seq, "grant", link_credit=2147483648)


@pytest.mark.parametrize(
    ("outcome", "ready"), [("accepted", 0), ("rejected", 0), ("released", 1), ("modified", 1)]
)
def test_protons_outcomes_do_what_they_say(outcome: str, ready: int) -> None:
    """The queue takes back what is released or modified."""
    played = run("credit", parameters={**PARAMETERS, "messages": 1})
    played = played.act(played.start_seq, "flow", count=1)
    played = played.act(end(played), "acknowledge", outcome=outcome)
    assert played.world.broker.overview()["queue:q.ready"] == ready


def test_proton_s_frames_can_be_held(attached: Run) -> None:
    """A gate holds its flow as it holds anybody's."""
    held = attached.act(attached.start_seq, "hold", direction="c2b")
    held = held.act(end(held), "flow", count=3)
    assert held.world.peers["consumer"].received == 0
    assert held.act(end(held), "release", direction="c2b").world.peers["consumer"].received == 3


def test_what_proton_cannot_do_is_refused_with_what_it_can(attached: Run) -> None:
    """It never sends echo; it has no policy here."""
    with pytest.raises(ActionError, match="Proton never sends echo; legal with this client: grant"):
        attached.act(attached.start_seq, "echo")
    with pytest.raises(ActionError, match="driven by hand here; legal now: grant, flow"):
        attached.act(attached.start_seq, "set_policy", policy="one-at-a-time")


def test_a_large_message_reaches_proton_whole() -> None:
    """Several frames, one delivery."""
    played = run("credit", parameters={**PARAMETERS, "messages": 1, "message_bytes": 100_000})
    played = played.act(played.start_seq, "flow", count=1)
    (payload,) = played.world.peers["consumer"].payloads
    assert len(payload) > 100_000
    frames = [row for row in played.rows if row.kind == "transfer" and row.event == "received"]
    assert len(frames) > 1


def test_proton_is_loaded_only_when_it_is_used() -> None:
    """Importing the peers and the scenarios loads no proton."""
    code = (
        "import sys, workbench.peers, workbench.scenarios; assert 'proton' not in sys.modules;"
        "import workbench.peers.proton_peer; assert 'proton' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
