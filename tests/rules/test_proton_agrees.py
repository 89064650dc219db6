"""Proton, a client that we did not write, says and hears the same, frame by frame.

The same acts at the same moments, also while frames cross, with the scripted receiver and with
python-qpid-proton. Every frame after the set-up must be there in both runs, in the same order, at
the same time, with the same fields, and leave the broker with the same counters. What Proton does
otherwise stands in `DEPARTURES` and nowhere else; each has a test below that shows it.
"""

from dataclasses import replace
from random import Random

import pytest

from tests.rules.runs import flows, ledger, transfers
from workbench import presets
from workbench.scenarios import ActionError, run

pytest.importorskip("proton", reason="needs python-qpid-proton")

PROTON_WINDOW = 2147483647
# Proton as a receiver follows any initial-delivery-count; near enough to wrap in a few messages.
STARTS = [0, 10, 2147483646, 4294967293]

DEPARTURES = {
    "drain": "Proton writes drain=false out; ours leaves it out, which means the same [2.7.4]",
    "incoming_window": "Proton opens its window again with each flow; ours counts it down",
    "remote_incoming_window": "so the broker knows of a larger window",
    "silence": "Proton adds credit: where nothing is added, no flow leaves",
    "echo": "Proton neither sends nor answers it, so `echo` and `stop` are refused",
    "set-up": "Proton sends its open, begin and attach at once; ours waits for each answer",
    "below zero": "a cut that comes too late leaves Proton's own credit below 0, ours at 0",
    "adding": "receiver.flow(n) adds; `grant` adds the difference to what is wanted",
}
FIELDS = {
    "flow": (
        "next_incoming_id",
        "incoming_window",
        "next_outgoing_id",
        "outgoing_window",
        "handle",
        "delivery_count",
        "link_credit",
        "available",
        "drain",
        "echo",
    ),
    "transfer": ("handle", "delivery_id", "delivery_tag", "settled", "more", "aborted"),
    "disposition": ("role", "first", "last", "settled"),
}
LEDGER = ("delivery_count", "link_credit", "available", "drain", "unsettled", "next_outgoing_id")


def acted(client, acts=(), **parameters):
    """A run with that client, its windows as Proton's are at first, and acts at rest."""
    preset = replace(
        presets.get("spec"),
        client_incoming_window=PROTON_WINDOW,
        client_incoming_window_regrant_at=0,
    )
    played = run("credit", preset, {"client": client, **parameters})
    for name, arguments in acts:
        played = played.act(len(played.rows) - 1, name, **arguments)
    return played


def frames(played):
    """Rows of frames after the set-up, without those that make no difference to anybody."""
    return [row for row in played.rows if row.seq > played.start_seq and row.frame_id is not None]


def told(row):
    """What a frame says; of the client's flows without the window, and drain false if left out."""
    says = {name: row.frame.get(name) for name in FIELDS[row.kind]}
    if row.kind == "flow" and row.from_peer == "client":
        del says["incoming_window"]
        says["drain"] = bool(says["drain"])
    return says


def story(played):
    """Who said what and when, and what the broker counted right after."""
    began = played.rows[played.start_seq].t_us
    return [
        (
            row.t_us - began,
            row.event,
            row.from_peer,
            row.kind,
            told(row),
            {name: row.ledger.get(name) for name in LEDGER} if row.vantage == "broker" else None,
        )
        for row in frames(played)
    ]


def plan_of(random):
    """Acts, each with a place among the rows that are still to come when it is its turn."""
    plan = []
    for _ in range(random.randint(4, 10)):
        name = random.choice(
            ["grant"] * 4 + ["drain"] * 2
            + ["publish", "acknowledge", "hold", "release", "set_latency"]
        )  # fmt: skip
        arguments = {
            "grant": {"link_credit": random.randint(0, 6)},
            "publish": {"count": random.randint(1, 4)},
            "hold": {"direction": random.choice(["c2b", "b2c"])},
            "release": {"direction": random.choice(["c2b", "b2c"])},
            "set_latency": {"latency_us": random.randint(0, 3000)},
        }
        plan.append((name, arguments.get(name, {}), random.choice([0, 5, 20, 50, 90, 100, 100])))
    return plan


def silent(played, seq, name, arguments):
    """Whether Proton would say nothing of this act (departure `silence`)."""
    if name != "grant":
        return False
    return played.world_at(seq).peers["consumer"].link_credit == arguments["link_credit"]


def both(plan, **parameters):
    """The two runs of a plan: each act after a row of the run so far, later than the act before."""
    ours, protons = acted("scripted", **parameters), acted("proton", **parameters)
    at = [ours.start_seq, protons.start_seq]
    for name, arguments, place in plan:
        later = (len(ours.rows) - 1 - at[0]) * place // 100
        seqs = [at[0] + later, at[1] + later]
        if silent(ours, seqs[0], name, arguments) or silent(protons, seqs[1], name, arguments):
            continue
        try:
            ours = ours.act(seqs[0], name, **arguments)
        except ActionError:
            with pytest.raises(ActionError):
                protons.act(seqs[1], name, **arguments)
            continue
        protons = protons.act(seqs[1], name, **arguments)
        at = seqs
    return ours, protons


@pytest.mark.parametrize("seed", range(60))
def test_the_same_acts_put_the_same_frames_on_the_wire_crossing_or_not(seed):
    """Flows, transfers and dispositions: equal fields, order and times, and equal ledgers."""
    random = Random(seed)
    plan = [("grant", {"link_credit": random.randint(1, 6)}, 0), *plan_of(random)]
    ours, protons = both(plan, messages=random.randint(0, 9),
                         initial_delivery_count=STARTS[seed % len(STARTS)])  # fmt: skip
    assert story(ours) == story(protons)
    # When everything has arrived, the broker's credit is what Proton itself counts. Proton's goes
    # below 0 where a cut came too late.
    wire = protons.world.wires["c1"]
    for direction in ("c2b", "b2c"):
        if wire.gate_closed(direction):
            protons = protons.act(len(protons.rows) - 1, "release", direction=direction)
            wire = protons.world.wires["c1"]
    peer, counters = protons.world.peers["consumer"], ledger(protons, "broker")
    assert counters["link_credit"] == max(0, peer.link_credit)
    assert peer.received == len(transfers(protons))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("crossing", [False, True])
@pytest.mark.parametrize(
    ("ready", "credit"), [(0, 1), (0, 5), (3, 10), (9, 10), (10, 10), (12, 4), (25, 1)]
)
def test_a_drain_with_none_some_or_too_many_ends_alike(ready, credit, crossing, start):
    """Figure 2.44, at rest or right behind the grant: what is there comes, the rest goes back."""
    stories = []
    for client in ("scripted", "proton"):
        begun = acted(client, messages=ready, initial_delivery_count=start)
        granted = begun.act(begun.start_seq, "grant", link_credit=credit)
        at = flows(granted, "client")[0].seq if crossing else len(granted.rows) - 1
        drained = granted
        if granted.world_at(at).peers["consumer"].link_credit:
            drained = granted.act(at, "drain")
        stories.append(story(drained))
        consumer = drained.world.peers["consumer"]
        counters = ledger(drained, "broker")
        assert consumer.received == len(transfers(drained)) == min(ready, credit)
        assert consumer.link_credit == counters["link_credit"] == 0
        assert counters["delivery_count"] == (start + credit) % 2**32
        shadow = ledger(drained, drained.world.peers["consumer"].vantage)
        assert shadow["delivery_count"] == counters["delivery_count"]
    assert stories[0] == stories[1]


# -- departures ------------------------------------------------------------------------------------


def client_flows(played):
    return [row.frame for row in flows(played, "client")]


def test_departure_drain_proton_writes_false_out():
    """Null and false are one thing [2.7.4]."""
    acts = [("grant", {"link_credit": 2})]
    written = [client_flows(acted(c, acts))[0].get("drain") for c in ("scripted", "proton")]
    assert written == [None, False]


def test_departure_incoming_window_proton_opens_it_with_each_flow():
    """Ours says how many frames it still takes of what it once said."""
    acts = [("grant", {"link_credit": n}) for n in (3, 2, 4)]
    windows = {
        client: [frame["incoming_window"] for frame in client_flows(acted(client, acts))]
        for client in ("scripted", "proton")
    }
    assert windows["proton"] == [PROTON_WINDOW] * 3
    assert windows["scripted"] == [PROTON_WINDOW - arrived for arrived in (0, 3, 5)]


def test_departure_silence_proton_sends_no_flow_that_adds_nothing():
    """The same credit twice is one frame of Proton's and two of ours; the counters are equal."""
    acts = [("grant", {"link_credit": 5})] * 2
    ours, protons = (acted(client, acts, messages=0) for client in ("scripted", "proton"))
    assert (len(client_flows(ours)), len(client_flows(protons))) == (2, 1)
    names = ("delivery_count", "link_credit", "unsettled")
    assert [ledger(ours, "broker")[name] for name in names] == [
        ledger(protons, "broker")[name] for name in names
    ]


def test_departure_adding_proton_puts_the_sum_on_the_wire():
    """flow(50) twice is 50 and then 100; what a flow carries is absolute all the same [2.6.7]."""
    added = acted("proton", [("flow", {"count": 50})] * 2, messages=0)
    assert [frame["link_credit"] for frame in client_flows(added)] == [50, 100]
    granted = acted("scripted", [("grant", {"link_credit": n}) for n in (50, 100)], messages=0)
    assert story(added) == story(granted)
    lowered = acted("proton", [("flow", {"count": n}) for n in (50, -20)], messages=0)
    granted = acted("scripted", [("grant", {"link_credit": n}) for n in (50, 30)], messages=0)
    assert story(lowered) == story(granted)


def test_departure_below_zero_proton_owes_what_came_beyond_a_cut():
    """4 are under way when credit is cut to 1: all come; what is granted next is absolute again."""
    ends = []
    for client in ("scripted", "proton"):
        granted = acted(client, [("grant", {"link_credit": 4})])
        first = transfers(granted)[0].seq
        cut = granted.act(first, "hold", direction="b2c")
        for name, arguments in (("grant", {"link_credit": 1}), ("release", {"direction": "b2c"})):
            cut = cut.act(len(cut.rows) - 1, name, **arguments)
        more = cut.act(len(cut.rows) - 1, "grant", link_credit=2)
        ends.append((cut.world.peers["consumer"].link_credit, len(transfers(more)), story(more)))
    (ours, sent, told_ours), (protons, sent_to_proton, told_protons) = ends
    assert (ours, protons) == (0, -3)
    assert sent == sent_to_proton == 6
    assert told_ours == told_protons


def test_departure_echo_is_refused_where_the_client_is_proton():
    """Neither `echo` nor `stop`, which needs it, can be done with Proton."""
    for act in ("echo", "stop"):
        with pytest.raises(ActionError, match="Proton never sends echo"):
            acted("proton", [(act, {})])


def test_departure_set_up_proton_does_not_wait_for_answers():
    """Its open, begin and attach leave together, before the broker's open is there."""
    for client, together in (("scripted", False), ("proton", True)):
        played = acted(client)
        sent = {
            row.kind: row.t_us
            for row in played.rows
            if row.event == "sent" and row.from_peer == "client"
        }
        assert (sent["open"] == sent["begin"] == sent["attach"]) is together
