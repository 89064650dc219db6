"""A scene says what the trace says, at every step, for every scenario there is."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.growth import steps
from workbench import serial
from workbench.capture.importer import import_capture
from workbench.scenarios import Branches, Run, names, run
from workbench.scenarios.registry import get
from workbench.scenarios.run import step_of
from workbench.trace import brakes, sentences
from workbench.trace.braking import held_by, links_of
from workbench.trace.cut import cut_rows
from workbench.trace.fold import Fold, Scope
from workbench.trace.schema import AMQP_0_10, RECEIVED, SENT, Row
from workbench.trace.sentences_hops import hop_sentence
from workbench.views.scene import (
    MOST_ROWS,
    SceneMaker,
    Strip,
    act_words,
    packed,
    parts_at,
    resolved,
    scene,
    schema,
    steps_of,
)
from workbench.views.scene_link import line_id
from workbench.views.stills import scene_still

VALIDATOR = jsonschema.Draft202012Validator(schema())
CAPTURES = Path(__file__).resolve().parents[2] / "data/captures"
PARTS_OF_A_MESSAGE = {(AMQP_0_10, "header"), (AMQP_0_10, "body")}
LONG = ("multicast", "quorum_chaos", "one_sender_one_receiver", "two_senders")

# What is done in a scenario, so that there is something to see; a run alone is its set-up.
ACTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "credit": [("grant", {"link_credit": 4}), ("drain", {}), ("acknowledge", {})],
    "asking": [("publish", {"count": 2}), ("grant", {"link_credit": 3}), ("drain", {})],
    "chain": [("stall", {}), ("publish", {"count": 20}), ("resume", {})],
    "handover": [("leave", {"consumer": "a"})],
    "publishers": [("stall", {}), ("publish", {"count": 300}), ("resume", {})],
    "quorum": [("publish", {"count": 3}), ("crash", {"node": "n4"}), ("publish", {"count": 1}),
               ("cut", {"a": "n1", "b": "n2"}), ("restart", {"node": "n4"})],
    "race": [("send_flow", {}), ("flow_arrives", {}), ("send_transfer", {}), ("send_flow", {}),
             ("flow_arrives", {}), ("transfer_arrives", {})],
    "two_queues": [("grant", {"link_credit": 3, "queue": "bulk"})],
    "two_targets": [("publish", {"count": 120}), ("set_latency", {"latency_us": 3000}),
                    ("publish", {"count": 4})],
    "windows": [("grant", {"link_credit": 2}), ("open_window", {"frames": 2}),
                ("begin_session", {})],
}  # fmt: skip
PARAMETERS: dict[str, dict[str, Any]] = {
    "chain": {"beside": True, "credit": 4, "more_after": 2, "max_link_credit": 4},
    "emergency_brake": {"messages": 8, "watermark": "0.25"},
    "multicast": {"messages": 60},
    "overload": {"messages": 8},
    "race": {"initial_delivery_count": 2**32 - 1},
    "windows": {"message_bytes": 2000, "max_frame_size": 512, "client_window": 3},
}


@cache
def played(name: str) -> Run:
    """A run of the scenario in which something happens."""
    preset = "rmq4.0" if name == "publishers" else get(name).preset
    found = run(name, preset, PARAMETERS.get(name, {}), max_rows=MOST_ROWS + 1_000)
    for act, arguments in ACTS.get(name, ()):
        found = found.then(act, **arguments)
    return found


def every(*, slow: bool = True) -> list[Any]:
    """Every scenario that is discovered; what takes long is left to the long tests."""
    marks = [pytest.mark.slow]
    return [
        pytest.param(name, marks=marks if name in LONG else ())
        for name in names()
        if slow or name not in LONG
    ]


@cache
def scened(name: str) -> dict[str, Any]:
    return scene(played(name))


def rows_of(name: str) -> list[Row]:
    return played(name).rows[: len(scened(name)["branches"][0]["steps"])]


@cache
def link_of(name: str, line: str) -> Scope | None:
    return next((one for one in links_of(rows_of(name)) if line_id(one) == line), None)


@pytest.fixture(scope="module", autouse=True)
def told_as_its_kind():
    """No row of ours lacks what its sentence tells: the plain one is for those of somebody else."""

    def fail(moment):
        pytest.fail(f"row {moment.row.seq} is told as that of somebody else: {moment.row.kind}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentences, "plain", fail)
        yield


@pytest.mark.parametrize("name", every())
def test_every_scenario_gives_a_scene_of_the_contract(name):
    """A scenario that is declared is drawn; the schema is the contract with the stage."""
    VALIDATOR.validate(scened(name))


def fields_in(source: str, interface: str) -> set[str]:
    """Names of the fields of an interface in TypeScript, those of objects in it left out."""
    body = source.partition(f"export interface {interface} ")[2].partition("{")[2]
    depth, kept = 1, ""
    for letter in body:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if not depth:
            break
        kept += letter if depth == 1 else ""
    return set(re.findall(r"(\w+)\??:", kept))


def test_the_schema_has_the_fields_of_the_stage_s_own_contract():
    """Python and TypeScript declare the same scene."""
    source = resources.files("workbench.views").joinpath("stage/types.ts").read_text("utf-8")
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    mine = schema()
    parts = {"Scene": mine, **{name.capitalize(): one for name, one in mine["$defs"].items()}}
    for interface, part in parts.items():
        wanted = fields_in(source, interface)
        if interface == "Step":
            wanted |= fields_in(source, "State")
        assert set(part["properties"]) == wanted, interface


@pytest.mark.parametrize("name", every())
def test_ids_are_unique_and_whatever_is_named_is_there(name):
    """The stage looks marks up by their ids."""
    doc = scened(name)
    kinds = ("nodes", "links", "lines", "valves", "gauges", "disks")
    ids = [one["id"] for kind in kinds for one in doc.get(kind, ())]
    assert len(ids) == len(set(ids))
    places = {*ids, "frames", "stage"}
    assert {act["on"] for act in doc.get("acts", ())} <= places
    acts = [act["id"] for act in doc.get("acts", ())]
    assert len(acts) == len(set(acts))
    nodes = {one["id"] for one in doc["nodes"]}
    for link in doc["links"]:
        assert {link["from"], link["to"]} <= nodes
    links = {one["id"] for one in doc["links"]}
    for frame in doc["branches"][0]["frames"]:
        assert frame["link"] in links
    for state in resolved(doc):
        for kind in kinds:
            assert set(state.get(kind, ())) <= set(ids)
        assert set(state.get("off", ())) <= set(acts)
        assert set(state["counters"]) == {row["id"] for row in doc["counters"]["rows"]}


@pytest.mark.parametrize("name", every())
def test_a_number_line_shows_the_counters_of_the_trace(name):
    """At every step the ends of a line are the counters that its two ends logged, unwrapped."""
    doc = scened(name)
    folding = Fold()
    for row, state in zip(rows_of(name), resolved(doc), strict=True):
        folding.apply(row)
        for line, shown in state["lines"].items():
            link = link_of(name, line)
            if link is None:
                continue
            for vantage, (count, limit) in shown["ends"].items():
                counters = folding.ledgers[vantage, link]
                assert count % serial.MODULUS == counters["delivery_count"]
                assert limit - count == counters["link_credit"]


def test_a_window_shows_the_counters_of_the_session():
    """The bracket's end is next id and window, as each end logged them."""
    doc = scened("windows")
    folding, seen = Fold(), 0
    for row, state in zip(rows_of("windows"), resolved(doc), strict=True):
        folding.apply(row)
        for vantage, (following, end, _) in state["lines"]["window c1/1/broker"]["ends"].items():
            counters = folding.ledgers[vantage, Scope("session", "c1", 1)]
            out = vantage == "broker"
            names_ = ("next_outgoing_id", "remote_incoming_window")
            next_id, window = names_ if out else ("next_incoming_id", "incoming_window")
            assert following % serial.MODULUS == counters[next_id]
            assert end - following == counters[window]
            seen += 1
    assert seen


@pytest.mark.parametrize("name", every())
def test_a_line_only_moves_on_but_never_wraps(name):
    """Numbers are unwrapped: a run over the seam goes on beyond it."""
    before: dict[tuple[str, str], int] = {}
    for state in resolved(scened(name)):
        for line, shown in state["lines"].items():
            if link_of(name, line) is None:
                continue
            for vantage, (count, _) in shown["ends"].items():
                assert count >= before.get((line, vantage), 0)
                before[line, vantage] = count


def test_a_race_over_the_seam_is_drawn_on_one_line():
    """Delivery-count 0 after 4294967295 is 4294967296 on the line."""
    *_, last = resolved(scened("race"))
    (ends,) = [line["ends"] for line in last["lines"].values()]
    assert ends["broker"][0] == serial.MODULUS


@pytest.mark.parametrize("name", every())
def test_a_frame_goes_from_the_row_that_sent_it_to_the_row_that_received_it(name):
    """Its path begins and ends with these rows, and only goes on."""
    doc, rows = scened(name), rows_of(name)
    sent = {str(row.frame_id): row for row in rows if row.event == SENT}
    received = {str(row.frame_id): row for row in rows if row.event == RECEIVED}
    for frame in doc["branches"][0]["frames"]:
        path = frame["path"]
        assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(path))
        if not frame["id"].isdecimal():  # between replicas: of no connection
            continue
        assert 0 <= path[0][0] - sent[frame["id"]].t_us / 1000 < 0.001
        arrived = received.get(frame["id"])
        assert (path[-1][1] == 1) is (arrived is not None)
        if arrived is not None:
            assert 0 <= path[-1][0] - arrived.t_us / 1000 < 0.001


@pytest.mark.parametrize("name", every())
def test_every_frame_of_the_shown_parties_is_drawn(name):
    """No frame of a wire in the picture is left out; a message of 0-10 is one, not its parts."""
    doc = scened(name)
    wires = {link["id"] for link in doc["links"]}
    wanted = {
        str(row.frame_id)
        for row in rows_of(name)
        if row.event == SENT
        and row.connection in wires
        and (row.protocol, row.kind) not in PARTS_OF_A_MESSAGE
    }
    assert {one["id"] for one in doc["branches"][0]["frames"]} >= wanted


@pytest.mark.parametrize("name", every())
def test_steps_come_in_order_and_within_their_microsecond(name):
    """Rows of one microsecond are drawn one after the other; no time that is shown is false."""
    steps = scened(name)["branches"][0]["steps"]
    times = [step["t"] for step in steps]
    assert times == sorted(times)
    for step, row in zip(steps, rows_of(name), strict=True):
        assert 0 <= step["t"] - row.t_us / 1000 < 0.001


@pytest.mark.parametrize("name", every())
def test_blocked_says_what_blocks_the_sender(name):
    """The words are those of the brake that the stalls of the trace name."""
    doc, rows = scened(name), rows_of(name)
    steps = list(resolved(doc))
    for line in doc["lines"][:2]:
        link = link_of(name, line["id"])
        if link is None:
            continue
        sender = line["ends"][0]["id"]
        for held, state in zip(held_by(rows, link), steps, strict=True):
            words = state["nodes"][sender].get("blocked") or ""
            if brakes.is_blocked(held.brake):
                assert words.startswith("blocked: ")
                if len(doc["lines"]) == 1 or f"({link.link})" in words:
                    assert brakes.short(held.brake) in words
            elif len(links_of(rows)) == 1:
                assert not words


def test_acts_that_differ_in_what_they_choose_differ_where_they_begin():
    """A button in a narrow box shows the beginning of its name."""
    acts = {act["id"]: act["name"] for act in scene(run("qpid_credit"))["acts"]}
    assert acts["set_flow_mode:credit"] == "credit mode"
    assert acts["set_flow_mode:window"] == "window mode"


def test_an_act_is_named_by_its_amount_and_by_what_else_was_told():
    """Not by what nobody gave."""
    played = run("qpid").then("publish", count=5).then("accept", count=3)
    acts = [act_words(row) for row in played.rows if row.event == "action"]
    assert acts == ["publish 5, queue q1, producer p1", "accept 3, queue q1"]
    cut = run("quorum").then("cut", a="n1", b="n2").then("slow_disk", node="n2", fsync_us=2500)
    acts = [act_words(row) for row in cut.rows if row.event == "action"]
    assert acts == ["cut n1, n2", "slow disk 2.5 ms, node n2"]


def test_valves_are_closed_by_the_brakes_that_hold():
    """One valve counts: the first of what holds a sender that has something to send."""
    doc, rows = scened("publishers"), rows_of("publishers")
    (link,) = links_of(rows)
    seen = set()
    for held, state in zip(held_by(rows, link), resolved(doc), strict=True):
        closed = {name for name, valve in state["valves"].items() if valve["closed"]}
        on = {f"valve {brake}" for brake in held.brakes if brake != brakes.NO_MESSAGE}
        assert closed == on
        limiting = [name for name, valve in state["valves"].items() if valve["limiting"]]
        blocked = brakes.is_blocked(held.brake)
        assert limiting == ([f"valve {held.brake}"] if blocked else [])
        seen.update(limiting)
    assert seen == {"valve link-credit", "valve unconfirmed"}


def test_a_commit_is_drawn_where_a_majority_has_it_on_disk():
    """The commit line never passes what a majority of the bars have safe."""
    doc = scened("quorum")
    reached = 0
    for state in resolved(doc):
        bars = state["lines"]["log"]
        saved = sorted((end[0] for end in bars["ends"].values()), reverse=True)
        assert bars["commit"] <= saved[doc["lines"][0]["majority"] - 1]
        reached = max(reached, bars["commit"])
    assert reached == 5


def test_a_disk_fills_from_the_row_that_begins_an_fsync_to_the_row_that_ends_it():
    """The times of a sync are those of its two rows."""
    rows = rows_of("quorum")
    begun = [row.t_us for row in rows if row.vantage == "wal:n1" and row.event == "append"]
    ended = [row.t_us for row in rows if row.vantage == "wal:n1" and row.event == "fsync"]
    shown = {
        (round(disk["t0"], 3), round(disk["t1"], 3))
        for state in resolved(scened("quorum"))
        for disk in [state["disks"]["disk n1"]]
        if disk["t0"] is not None
    }
    assert shown == {(a / 1000, b / 1000) for a, b in zip(begun, ended, strict=True)}


def test_both_rules_are_drawn_and_the_first_difference_is_told():
    """Beside the sender's own credit stands what somebody expects who takes a flow to add.

    Where they part is said there; later steps say in which step it was.
    """
    (line,) = scened("race")["lines"]
    *_, last = states = list(resolved(scened("race")))
    shown = last["lines"][line["id"]]
    count, limit = shown["ends"]["broker"]
    adds = shown["rules"]["adds"]
    assert adds["at"] == count
    assert (limit - count, adds["limit"] - count) == (5, 8)
    assert "your rule makes link-credit 8" in adds["differs"]
    assert "+ 6 − 0 ≡ 5" in adds["differs"]
    told = [state["lines"][line["id"]]["rules"]["adds"]["differs"] for state in states]
    here = parts_at(played("race"), "adds")
    assert here is not None
    assert set(told[:here]) == {None}
    assert told[here].startswith("Here they part: your rule makes link-credit 8")
    step = step_of(played("race").rows[here])
    assert {words.partition(":")[0] for words in told[here + 1 :]} == {f"Parted in step {step}"}


def test_rules_that_part_before_the_lesson_begins_have_parted_in_the_set_up():
    """Steps of the set-up have no numbers."""
    found = run("race", parameters={"first_credit": 3})
    name = "one flow, one message"
    here = parts_at(found, name)
    assert here is not None
    assert here < found.start_seq
    *_, last = Strip(found, rules=[name]).states
    (line,) = last["lines"].values()
    assert line["rules"][name]["differs"].startswith("Parted in the set-up: your rule")


def test_legal_acts_are_those_of_the_run():
    """What is off at a step is what the run itself says is not legal there."""
    found = played("race")
    steps = list(resolved(scened("race")))
    for seq in range(found.start_seq, len(found.rows)):
        legal = found.legal(seq)
        for act in ("send_flow", "send_transfer", "flow_arrives"):
            assert steps[seq]["off"][act] == legal[act]


def test_a_branch_is_what_it_does_not_share():
    """Steps and states of a branch are those of its run played alone."""
    root = played("credit")
    tree = Branches(root)
    fork = root.start_seq + 4
    tree.act(fork, "grant", link_credit=9)
    tree.act(len(tree.run.rows) - 1, "publish", count=3)
    doc = SceneMaker(tree).scene()
    VALIDATOR.validate(doc)
    branches = {one["id"]: one for one in doc["branches"]}
    for number, branched in enumerate(tree.runs):
        alone = scene(branched)
        assert len(steps_of(branches, number)) == len(branched.rows)
        pairs = zip(resolved(doc, number), resolved(alone), strict=True)
        for together, single in pairs:
            assert together["lines"] == single["lines"]
            assert together["counters"] == single["counters"]
            assert together["off"] == single["off"]
    assert doc["branches"][1]["keeps"] == fork + 1
    assert [act["label"] for act in doc["branches"][1]["acts"]] == ["grant 9"]
    mine = {frame["id"] for frame in doc["branches"][1]["frames"]}
    at = doc["branches"][1]["at"]
    gone = {one["id"] for one in branches[0]["frames"] if one["path"][-1][0] <= at}
    assert not mine & gone
    flying = {
        one["id"] for one in branches[0]["frames"] if one["path"][0][0] <= at < one["path"][-1][0]
    }
    assert flying <= mine


def test_a_thousand_frames_seen_from_both_ends_are_a_small_scene():
    """With octets, at most 350 kB, so that a page of it opens at once."""
    found = run("credit", parameters={"messages": 2000}).then("grant", link_credit=1000)
    doc = scene(found)
    frames = [one for one in doc["branches"][0]["frames"] if one["kind"] == "message"]
    assert len(frames) == 1000
    assert all(one["octets"]["hex"] for one in frames)
    assert len(packed(doc)) <= 350_000


def test_a_step_of_a_scene_is_told_as_text():
    """A page without JavaScript has the same step in words."""
    steps = list(resolved(scened("publishers")))
    place = next(n for n, one in enumerate(steps) if one["nodes"]["client:app"].get("blocked"))
    text = scene_still(scened("publishers"), place)
    assert "Application: blocked: too many unconfirmed" in text
    assert "delivery-count" in text


@pytest.mark.parametrize("name", ["rmq43_b_consumer_credit", "rmq43_c_drain"])
def test_a_capture_is_drawn_from_what_it_tells(name):
    """The sender's end as the capture point knows it; what nobody tells is not drawn."""
    rows = import_capture(CAPTURES / f"{name}.pcapng").rows
    doc = scene(rows)
    VALIDATOR.validate(doc)
    links = {line_id(link): link for link in links_of(rows)}
    folding, seen = Fold(), set()
    for row, state in zip(rows, resolved(doc), strict=True):
        folding.apply(row)
        for line in doc["lines"]:
            for end, (count, limit) in state["lines"][line["id"]]["ends"].items():
                counters = folding.ledgers["wire", links[line["id"]]]
                assert end == line["ends"][0]["id"]
                assert count % serial.MODULUS == counters["delivery_count"]
                assert limit - count == counters["link_credit"]
                seen.add(line["id"])
    assert seen == {line["id"] for line in doc["lines"]}
    drawn = {link["id"] for link in doc["links"]}
    assert {link.connection for link in links.values()} <= drawn
    frames = {str(row.frame_id) for row in rows if row.is_frame and row.connection in drawn}
    assert {frame["id"] for frame in doc["branches"][0]["frames"]} == frames


def test_no_flow_of_a_capture_will_set_a_limit_that_it_has_set():
    """The limit moves at the row that saw the flow; in a run it moves where the flow lands."""
    captured = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    granted = run("credit").then("grant", link_credit=2)
    windowed = run("windows").then("grant", link_credit=2).then("open_window", frames=9)
    for rows, aims in ((captured, False), (granted.rows, True), (windowed.rows, True)):
        frames = scene(rows)["branches"][0]["frames"]
        flows = [frame for frame in frames if frame["name"].startswith("flow")]
        assert flows
        assert any("aims" in frame for frame in flows) == aims


def test_of_a_captured_link_the_senders_count_is_told_and_none_of_the_receivers():
    """What a capture tells is the sender's; what nobody tells is not drawn as nothing."""
    rows = import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng").rows
    nodes = list(resolved(scene(rows)))[23]["nodes"]
    assert nodes["broker"]["facts"] == ["10 unsettled"]
    assert nodes["client:c1"]["facts"] == ["10 received"]
    cut = cut_rows(rows, 23, first=20)
    nodes = list(resolved(scene(cut)))[3]["nodes"]
    assert nodes["broker"]["facts"] == ["10 unsettled"]
    assert nodes["client:c1"]["facts"] == []
    publishes = import_capture(CAPTURES / "rmq43_a_publisher_grants.pcapng").rows
    doc = scene([row for row in publishes if row.link in (None, "snd-1-/queues/cap_aq")])
    VALIDATOR.validate(doc)
    assert list(resolved(doc))[-1]["nodes"]["client:c1"]["items"] is None


@pytest.mark.parametrize(
    ("played", "at"),
    [
        (run("credit").then("grant", link_credit=2), 2),
        (run("race", parameters={"first_credit": 2}).then("send_flow"), -1),
        (import_capture(CAPTURES / "rmq43_b_consumer_credit.pcapng"), 30),
    ],
    ids=["a run", "a branch", "a capture"],
)
def test_a_step_has_the_number_by_which_lessons_call_it(played, at):
    """It counts from where the lesson begins; what was recorded, from its first row."""
    doc = scene(played)
    begin = doc.get("begin", 0)
    assert doc["first"] + begin == 1
    seq = at % len(played.rows)
    assert doc["first"] + seq == step_of(played.rows[seq])
    assert f"step {step_of(played.rows[-1])} of" in scene_still(doc, len(played.rows) - 1)
    assert ("set-up of" in scene_still(doc, 0)) == bool(begin)


def test_a_long_run_is_drawn_in_part_and_the_picture_says_so(monkeypatch):
    """As many steps as are drawn, and how many there are."""
    played = run("credit", parameters={"messages": 3})
    monkeypatch.setattr("workbench.views.scene.MOST_ROWS", 10)
    doc = scene(played)
    assert len(doc["branches"][0]["steps"]) == 10
    assert doc["idea"].endswith(f"Drawn are the first 10 of {len(played.rows)} steps.")


def test_a_slice_tells_of_no_queue_to_which_its_link_may_not_be_attached():
    """The attach frames were before it; other clients' queues are in what was known by then."""
    played = run("two_queues").then("grant", link_credit=3, queue="bulk")
    late = cut_rows(played.rows, played.rows[-1].seq, first=played.rows[-3].seq)
    ready = [name for (name, _), one in late.start.ledgers.items() if "queue_ready" in one]
    assert len(ready) > 1
    assert not any(row.kind == "attach" for row in late.rows)
    for state in Strip(late).states:
        assert not any("ready" in fact for fact in state["nodes"]["broker"].get("facts", []))
    alone = run("credit").then("grant", link_credit=3)
    late = cut_rows(alone.rows, alone.rows[-1].seq, first=alone.rows[-3].seq)
    facts = Strip(late).states[-1]["nodes"]["broker"]["facts"]
    assert [fact for fact in facts if "ready" in fact] == ["7 ready"]


def test_a_quorum_run_says_who_leads_before_a_row_does():
    """The broker has elected a leader before anything is published."""
    fresh = run("quorum", "rmq4.3", {"replicas": "3"})
    (node, *others) = [
        one for name, one in list(resolved(scene(fresh)))[-1]["nodes"].items() if name[0] == "n"
    ]
    assert (node["leads"], node["sub"]) == (True, "leader")
    assert {one["sub"] for one in others} == {"follower"}


def test_a_line_between_two_replicas_has_their_names():
    """It is pressed to cut it, and has no other words."""
    doc = scene(run("quorum", "rmq4.3", {"replicas": "3"}))
    named = {link["id"]: link["names"] for link in doc["links"] if link["from"].startswith("n")}
    assert named == {"n1-n2": ["n1 – n2"], "n1-n3": ["n1 – n3"], "n2-n3": ["n2 – n3"]}


def test_the_fsync_that_makes_a_majority_is_told_and_the_leader_knows_it_by_a_reply():
    """Of disks of 1, 3, 7, 9 and 40 ms the third decides; the reply lands as the commit moves."""
    played = run("quorum", "rmq4.3", {"replicas": "5", "node_latency_us": 1000})
    for node, fsync_ms in {"n1": 3, "n2": 9, "n3": 1, "n4": 40, "n5": 7}.items():
        played = played.then("slow_disk", node=node, fsync_us=fsync_ms * 1000)
    doc = scene(played.then("publish", count=1))
    steps = doc["branches"][0]["steps"]
    told = [step for step in steps if "a majority." in step["sentence"]]
    assert ["n5's reply" in step["sentence"] and step["mark"] for step in told] == [True]
    commits = [step["t"] for step in steps if "commit" in step.get("lines", {}).get("log", {})]
    (reply,) = [
        frame for frame in doc["branches"][0]["frames"]
        if frame["kind"] == "acknowledgement" and frame["path"][0][0] == told[0]["t"]
    ]  # fmt: skip
    assert (reply["link"], reply["way"]) == ("n1-n5", "back")
    assert reply["path"][1] == [pytest.approx(commits[-1], abs=0.001), 1.0]


def test_a_message_has_one_number_on_its_disc_and_in_its_sentence_or_the_sentence_says_so():
    """It has the delivery-id; where the disc shows a delivery-count, it tells that, too."""
    grown = {"messages": 2, "initial_delivery_count": 20}
    played = [
        run("quorum", "rmq4.3").then("publish", count=2),
        run("credit", parameters={"messages": 2}).then("grant", link_credit=2),
        run("credit", parameters=grown).then("grant", link_credit=2),
        run("credit", parameters=grown | {"initial_delivery_count": 2**32 - 1}).then(
            "grant", link_credit=2
        ),
    ]
    told = []
    for one in played:
        strip = Strip(one)
        for place, doc in strip.frames:
            if doc["kind"] == "message":
                sentence = strip.steps[place]["sentence"]
                (sent,) = re.findall(r"sends message (\d+)", sentence)
                shown = re.findall(r"Its disc shows its place on the line, (.*)\.", sentence)
                told.append((sent, doc.get("text") or doc["label"], *shown))
    assert told == [
        ("0", "0"), ("1", "1"),
        ("0", "0"), ("1", "1"),
        ("0", "20", "20"), ("1", "21", "21"),
        ("0", "2³²−1", "2³²−1"), ("1", "0", "0"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("act", "given", "undo", "part"),
    [("crash", {"node": "n3"}, "restart", 1.0), ("cut", {"a": "n1", "b": "n3"}, "heal", 0.5)],
)
def test_what_is_sent_where_nothing_can_come_is_lost_on_its_way(act, given, undo, part):
    """The leader does not know of the fault; what it sends again later is another frame."""
    played = run("quorum", "rmq4.3", {"replicas": "5", "node_latency_us": 1000})
    played = played.then("publish", count=1)
    came = next(row.seq for row in played.rows if (row.event, row.kind) == (RECEIVED, "transfer"))
    fallen = played.act(came, act, **given)
    for branch in (fallen, fallen.then(undo, **given)):
        first, *others = (
            doc for _, doc in Strip(branch, octets=False).frames
            if (doc["link"], doc["kind"]) == ("n1-n3", "write")
        )  # fmt: skip
        begun, end = first["path"]
        assert first["lost"]
        assert end == [pytest.approx(begun[0] + part * 1, abs=0.001), part]
        assert all(other["path"][0][0] > end[0] for other in others)


def test_a_branch_says_what_is_legal_after_its_act_and_was_not_before() -> None:
    """Its first step begins where the step that it shares with its parent has come to."""
    race = Branches(run("race", parameters={"initial_delivery_count": 20, "grants": "6"}))
    race.act(race.run.last, "send_flow")
    made = SceneMaker(race)
    told = [step["off"] for step in made.branch(1)["steps"] if "off" in step]
    assert made.strip(0).states[-1]["off"]["flow_arrives"]
    assert told[0]["flow_arrives"] is None


def test_credit_below_zero_reads_alike_in_picture_and_words():
    """A channel that hangs on to a queue goes below zero: `−8`, with the same minus everywhere."""
    played = run("chain", "rmq4.3", {"credit": 8, "more_after": 4, "message_bytes": 0})
    hung = played.act_each(
        [("stall", {"queue": "slow"}), ("publish", {"queue": "slow", "count": 30})]
    )
    doc = scene(hung)
    (steps,) = (branch["steps"] for branch in doc["branches"])
    *_, last = resolved(doc)
    assert "−8" in [hop["text"] for hop in last["hops"].values()]
    *_, told = (step["in_words"] for step in steps if "in_words" in step)
    assert "Channel 1 → queue slow: credit −8 of 8." in told
    spent = [row for row in hung.rows if row.kind == "credit-spent"]
    assert hop_sentence(spent[-1]).endswith("; −8 left")


@pytest.mark.parametrize(
    ("address", "sub"),
    [("/queues/team%2Forders", "team/orders"), ("/exchanges/amq.topic/orders", None),
     ("orders", "orders")],
)  # fmt: skip
def test_the_broker_s_box_names_the_queue_of_an_address_and_no_other(address, sub):
    """Decoded; a routing key is no queue."""
    attach = next(row for row in run("publishers").rows if row.kind == "attach")
    told = {**attach.extra, "target": {"address": address}}
    details = {name: value for name, value in told.items() if value is not None}
    doc = scene([replace(attach, details=details, seq=0)])
    subs = [node.get("sub", "") for node in doc["nodes"] if node["id"] == "broker"]
    assert any("orders" in one for one in subs) == (sub is not None)
    assert sub is None or any(f"“{sub}”" in one for one in subs)


def test_many_connections_take_a_stage_as_many_steps_as_they_are():
    """What does not change is not worked out anew at each row."""
    few, many = (
        [
            Row(run="r", seq=2 * n + place, t_us=n, vantage="wire", event="observed",
                protocol="amqp-1.0", frame_id=2 * n + place, connection=f"c{n}", from_peer=peer,
                kind="open", frame={})
            for n in range(size)
            for place, peer in enumerate(("client", "broker"))
        ]
        for size in (60, 120)
    )  # fmt: skip
    scene(few)
    assert steps(scene, many) < 3 * steps(scene, few)


@pytest.mark.parametrize("name", ["handover", "memory", "overload", "emergency_brake"])
def test_no_two_acts_have_one_name(name):
    """Of several connections each is named."""
    acts = scene(run(name))["acts"]
    names = [(act["name"], act.get("about")) for act in acts]
    assert len(set(names)) == len(names)
