"""Proton, a client that we did not write, says and hears the same, frame by frame.

The same acts with the scripted receiver and with python-qpid-proton: every flow, transfer and
disposition must carry the same counts, in the same order. What Proton does otherwise is listed in
`DEPARTURES` and nowhere else.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.runs import begun, then

pytest.importorskip("proton", reason="needs python-qpid-proton")

# Field of a frame, and why Proton's is not compared.
DEPARTURES = {
    "echo": "Proton never writes it",
    "available": "Proton never writes it",
    "properties": "Proton cannot reach them",
    "next_incoming_id": "it tells the same number; its windows are counted in octets",
    "incoming_window": "derived from octets, not from frames",
    "outgoing_window": "a constant of the library",
}
COMPARED = {
    "flow": ("delivery_count", "link_credit", "drain"),
    "transfer": ("delivery_id", "settled", "more"),
    "disposition": ("role", "first", "settled"),
}


def story(played):
    """Frames after the set-up with the fields that are compared; one entry a frame."""
    told = []
    for row in played.rows:
        if row.event != "sent" or row.seq <= played.start_seq or row.kind not in COMPARED:
            continue
        if row.kind == "flow" and row.frame.get("handle") is None:
            continue
        fields = {name: row.frame.get(name) or None for name in COMPARED[row.kind]}
        if row.kind == "disposition":
            # Proton settles each by itself, ours in ranges: compare what is settled.
            fields["last"] = row.frame.get("last", row.frame["first"])
        told.append((row.from_peer, row.kind, tuple(fields.items())))
    return told


def settled(played):
    """Delivery-ids that the client has settled, in order."""
    found = []
    for row in played.rows:
        if row.kind == "disposition" and row.event == "sent" and row.from_peer == "client":
            first = row.frame["first"]
            found += range(first, row.frame.get("last", first) + 1)
    return found


def without_dispositions(told):
    """The story of flows and transfers."""
    return [one for one in told if one[1] != "disposition"]


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("grant"), st.integers(0, 6)),
        st.tuples(st.just("publish"), st.integers(1, 4)),
        st.tuples(st.just("acknowledge"), st.just(None)),
        st.tuples(st.just("drain"), st.just(None)),
    ),
    max_size=8,
)


def acted(client, acts, messages):
    """A run with that client and those acts, each at rest; what is not legal is left out."""
    from workbench.scenarios import ActionError

    played = begun(client=client, messages=messages)
    done = []
    for name, number in acts:
        receiver = played.world.peers["consumer"]
        if name == "grant" and number == receiver.link_credit:
            continue  # Proton adds 0 and says nothing
        if name == "drain" and receiver.link_credit == 0:
            continue  # nothing to drain: Proton says nothing
        arguments = {"grant": {"link_credit": number}, "publish": {"count": number}}.get(name, {})
        try:
            played = then(played, name, **arguments)
        except ActionError:
            continue
        done.append(name)
    return played, done


@given(acts=ACTS, messages=st.integers(0, 8))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_the_same_acts_put_the_same_numbers_on_the_wire(acts, messages):
    """Grants, drains and settlements: flows and transfers carry equal counts in equal order."""
    ours, done_ours = acted("scripted", acts, messages)
    protons, done_protons = acted("proton", acts, messages)
    assert done_ours == done_protons
    assert without_dispositions(story(ours)) == without_dispositions(story(protons))
    assert settled(ours) == settled(protons)


@pytest.mark.parametrize(("ready", "credit"), [(0, 5), (3, 10), (10, 10), (12, 4)])
def test_proton_s_drain_ends_like_ours_with_none_some_enough_and_too_many(ready, credit):
    """Figure 2.44 needs no echo, so Proton can play it: delivery-count + credit, credit 0."""
    for client in ("scripted", "proton"):
        played = then(begun(client=client, messages=0), "grant", link_credit=credit)
        filled = then(played, "publish", count=ready) if ready else played
        if filled.world.peers["consumer"].link_credit:
            filled = then(filled, "drain")
        assert filled.world.peers["consumer"].link_credit == 0
        assert filled.world.peers["consumer"].received == min(ready, credit)
        flows = [row for row in filled.rows if row.kind == "flow" and row.from_peer == "broker"]
        if ready < credit:
            assert flows[-1].frame["delivery_count"] == credit


def test_what_proton_cannot_say_is_refused_with_a_reason():
    """Echo and stop are out of its reach; the broker's answers to ours are its own matter."""
    from workbench.scenarios import ActionError

    played = begun(client="proton", messages=2)
    for act in ("echo", "stop"):
        with pytest.raises(ActionError, match="Proton never sends echo"):
            then(played, act)


def test_proton_s_counters_follow_a_broker_that_starts_just_below_the_wrap():
    """Its receiver handles any initial-delivery-count, though it sends none of its own."""
    played = then(
        begun(client="proton", messages=6, initial_delivery_count=4294967293),
        "grant",
        link_credit=9,
    )
    drained = then(played, "drain")
    consumer = drained.world.peers["consumer"]
    assert consumer.received == 6
    assert consumer.link_credit == 0
    shadow = [
        row.ledger["delivery_count"]
        for row in drained.rows
        if row.vantage == "client:proton" and row.ledger and "delivery_count" in row.ledger
    ]
    assert shadow[-1] == (4294967293 + 9) % 2**32
