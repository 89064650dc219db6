"""The stage's picture of the chain of processes, and of two protocols beside each other."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from workbench.scenarios import run
from workbench.views.scene import SceneMaker, resolved, scene, schema

SMALL = {"message_bytes": 0, "credit": 4, "more_after": 2, "latency_us": 1000}


def made(played: Any) -> tuple[Any, list[Any]]:
    doc = scene(played, octets=False)
    jsonschema.validate(doc, schema())
    return doc, list(resolved(doc))


@pytest.fixture(scope="module")
def beside() -> Any:
    """The first queue of both hangs, and its publishers send more than either lets in."""
    begun = run("chain", "rmq4.3", {**SMALL, "beside": True, "max_link_credit": 4, "pause_us": 200})
    flood = ("publish", {"count": 12})
    return begun.act_each(["stall", flood, ("publish", {"queue": "second", "count": 5})])


def test_both_protocols_stand_above_each_other_at_one_clock(beside: Any) -> None:
    """A box for each process above, a lane for each link below, and one timeline."""
    doc, _ = made(beside)
    assert [group["title"] for group in doc["groups"]] == ["AMQP 0-9-1", "AMQP 1.0"]
    above = [node["name"] for node in doc["nodes"] if node["group"] == "amqp-0-9-1"]
    assert above == [
        "Client", "reader", "channel 1", "channel 2", "channel 3",
        "queue slow", "queue second", "queue third",
    ]  # fmt: skip
    below = [link["names"] for link in doc["links"] if link["from"] == "client:c2"]
    assert below == [["slow"], ["second"], ["third"]]
    wires = {row.connection for row in beside.rows if row.is_frame}
    drawn = {frame["link"] for frame in doc["branches"][0]["frames"]}
    assert wires == {"c1", "c2"}
    assert {"c1", "client:c2 to queue:slow-1.0", "client:c2 to queue:second-1.0"} <= drawn


def test_what_blocks_spreads_to_the_left_and_one_link_stops_below(beside: Any) -> None:
    """Credit 0 and -4 above; below, the link to the slow queue is out of credit, and no other."""
    _, states = made(beside)
    last = states[-1]
    assert last["hops"]["hop reader:c1 to channel:c1/1"] == {"credit": 0, "text": "0"}
    assert last["hops"]["hop channel:c1/1 to queue:slow"] == {"credit": 0, "text": "−4"}
    assert last["hops"]["hop reader:c1 to channel:c1/2"]["text"] == "4"
    nodes = last["nodes"]
    assert nodes["channel:c1/1"]["blocked"] == "2 deferred"
    assert nodes["reader:c1"] == {"sub": "stopped", "facts": ["9 wait"], "blocked": "stopped"}
    assert nodes["client:c1"]["blocked"].startswith("blocked: credit_flow")
    assert nodes["client:c2"]["blocked"] == "slow blocked: too many unconfirmed"
    ready = {name: one["facts"][0] for name, one in nodes.items() if name.startswith("queue:")}
    assert ready["queue:second"] == "0 ready"
    assert ready["queue:second-1.0"] == "5 ready"


def test_what_nobody_reads_waits_in_the_socket_the_oldest_first(beside: Any) -> None:
    """Frames arrive after the latency, and stand before the reader until it takes them."""
    doc, states = made(beside)
    waiting = states[-1]["links"]["c1"]["waiting"]
    assert [text for text, _ in waiting[:4]] == ["1"] * 4
    assert len(waiting) == 8
    words = [step["in_words"] for step in doc["branches"][0]["steps"] if "in_words" in step]
    assert "has stopped; 9 messages in its socket." in words[-1]
    paths = [
        frame["path"]
        for frame in doc["branches"][0]["frames"]
        if frame["link"] == "c1" and frame["kind"] == "message"
    ]
    assert {round(path[1][0] - path[0][0], 2) for path in paths} == {1.0}
    assert {path[1][1] for path in paths} == {0.98, 1.0}  # some wait, some were read at once
    gone = made(beside.then("resume"))[1][-1]
    assert gone["links"]["c1"]["waiting"] == []
    assert gone["nodes"]["client:c1"]["blocked"] is None


def test_a_full_store_is_the_end_of_the_chain() -> None:
    """Store, queue, channel, reader: each keeps its grants, and every hop shows it."""
    begun = run(
        "chain", "rmq3.5.5",
        {**SMALL, "message_bytes": 4096, "persistent": True, "store_credit": 8,
         "store_more_after": 4, "socket_octets": 0},
    )  # fmt: skip
    played = begun.act_each([("stall", {"queue": "store"}), ("publish", {"count": 30})])
    doc, states = made(played)
    assert [node["name"] for node in doc["nodes"]][-1] == "store"
    nodes, hops = states[-1]["nodes"], states[-1]["hops"]
    assert hops["hop queue:slow to store:persistent"]["text"].startswith("−")
    assert [nodes[name]["blocked"] for name in ("queue:slow", "store:persistent")] == [
        "blocked", "hangs",
    ]  # fmt: skip
    assert nodes["reader:c1"]["blocked"] == "stopped"
    assert [name for name, on in states[-1]["on"].items() if on] == ["stall:store"]
    resumed = made(played.then("resume", queue="store"))[1]
    assert not any(resumed[-1]["on"].values())


def test_acts_stand_where_they_are_done(beside: Any) -> None:
    """A queue is clicked to hang it; its publisher publishes."""
    begun = run("chain", "rmq4.3", {**SMALL, "persistent": True})
    doc = SceneMaker(begun).scene()
    places = {act["id"]: act["on"] for act in doc["acts"]}
    assert places["stall:slow"] == "queue:slow"
    assert places["stall:store"] == "store:persistent"
    assert places["publish:second"] == "client:c1"
    assert places["set_latency:c1"] == "c1"


def test_what_nobody_will_read_waits_in_the_socket_at_the_end() -> None:
    """The run is over when the last have just been sent; whatever a hand holds is not there."""
    begun = run("chain", "rmq4.3", {**SMALL, "pause_us": 20})
    flooded = begun.act_each(["stall", ("publish", {"count": 30})])
    doc, states = made(flooded)
    assert states[-1]["nodes"]["reader:c1"]["facts"] == ["22 wait"]
    end = doc["branches"][0]["steps"][-1]["t"]
    flying = [frame for frame in doc["branches"][0]["frames"] if frame["path"][-1][1] < 1]
    assert len(flying) >= 22
    assert all(frame["waits"] <= end for frame in flying)
    held = flooded.then("hold", direction="c2b", connection="c1").then("publish", count=5)
    doc, _ = made(held)
    assert not any("waits" in frame for frame in doc["branches"][0]["frames"])


def test_a_queue_that_nobody_publishes_to_stands_beside_who_consumes_from_it() -> None:
    """Its client publishes elsewhere; no two boxes are in one place."""
    nodes = {node["id"]: node for node in scene(run("memory", "rmq4.3"), octets=False)["nodes"]}
    assert nodes["queue:other"]["place"][1] == nodes["client:c3"]["place"][1]
    places = [tuple(node["place"]) for node in nodes.values()]
    assert len(set(places)) == len(places)


def stops(played: Any) -> list[str]:
    """What is told at the steps at which the key `n` stops."""
    steps = made(played)[0]["branches"][-1]["steps"]
    return [step.get("sentence", "") for step in steps if step.get("mark")]


def test_what_is_over_in_the_same_moment_is_nothing_to_stop_at() -> None:
    """TCP takes no more and takes more again 43 times before the alarm comes."""
    told = stops(run("memory", "rmq4.3").then("publish", count=150, connection="c1"))
    blocks = [text for text in told if "TCP takes" in text]
    assert len(blocks) == 1
    assert told.index(blocks[0]) < told.index("The broker raises an alarm: memory.")
    assert told[-1].startswith("The reader of c1 stops, because a resource alarm is on")


def test_a_broker_that_dies_is_drawn_so_and_is_a_step_to_stop_at() -> None:
    """It asked, and nobody heeded."""
    played = run("emergency_brake", "rmq1.5", {"client": "heedless"})
    assert "The broker dies: the machine has no memory left." in stops(played)
    broker = made(played)[1][-1]["nodes"]["broker"]
    assert (broker["down"], broker["sub"], broker["blocked"]) == (True, "has died", None)


def test_a_way_is_told_by_its_connection_where_several_publish() -> None:
    """Channel 1 of c1 and channel 1 of c3 have credit of their own; else no name is needed."""
    doc, _ = made(run("memory", "rmq4.3"))
    names = [row["name"] for row in doc["counters"]["rows"]]
    assert len(set(names)) == len(names)
    for name in names:
        assert f"{name[0].upper()}{name[1:]}: credit" in doc["branches"][0]["steps"][-1]["in_words"]
    alone, _ = made(run("chain", parameters=SMALL))
    assert not any("(c1)" in row["name"] for row in alone["counters"]["rows"])


def waits(played: Any) -> list[str]:
    """What the reader's box says of its socket, at each step."""
    return [" ".join(state["nodes"]["reader:c1"]["facts"]) for state in made(played)[1]]


def test_what_a_hand_holds_does_not_wait_in_the_socket() -> None:
    """It comes there when the hand lets go; what had come before stays, and is read."""
    begun = run("chain", "rmq4.3", {**SMALL, "pause_us": 20})
    gate = {"direction": "c2b", "connection": "c1"}
    held = begun.then("hold", **gate).then("publish", count=3)
    assert {*waits(held), *waits(held.then("release", **gate, count=2))} == {""}

    flooded = begun.act_each(["stall", ("publish", {"count": 80})])
    closed = flooded.then("hold", **gate).then("publish", count=5)
    publishes = [row.event for row in closed.rows if row.kind == "basic.publish"]
    unread = publishes.count("sent") - publishes.count("received")
    on_the_wire = closed.world.wires["c1"].overview()["c2b_held"]  # each is followed by its header
    assert isinstance(on_the_wire, int)
    assert waits(closed)[-1] == f"{unread - on_the_wire // 2} wait"
    assert waits(closed.then("resume"))[-1] == ""
    assert waits(closed.then("release", **gate))[-1] == f"{unread} wait"
    doc, _ = made(closed.then("release", **gate))
    drawn = [frame for frame in doc["branches"][0]["frames"] if frame["path"][-1][1] < 1]
    assert all("waits" in frame for frame in drawn)


def test_the_log_tells_processes_of_several_connections_apart() -> None:
    """In the picture a reader stands in the row of its client; in the log it has a name."""
    given = {"separate": True, "message_bytes": 0, "credit": 8, "more_after": 4}
    played = run("chain", "rmq4.3", given)
    doc, _ = made(played.then("stall").then("publish", count=20))
    names = [node["name"] for node in doc["nodes"]]
    assert names.count("reader") > 1
    who = {step["who"] for step in doc["branches"][0]["steps"]}
    assert {"the reader of c1", "channel 1 of c1", "channel 1 of c2"} <= who
    assert who.isdisjoint({"reader", "channel"})
