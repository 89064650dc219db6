"""What is done on the picture becomes a branch by the run's own acts, or is refused in words."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from workbench.exercises.desk import stage
from workbench.scenarios import run
from workbench.scenarios.share import open_code
from workbench.views.chart_box import ChartedStage
from workbench.views.scene import SceneMaker, resolved, schema
from workbench.views.share_view import share_code
from workbench.views.stage_widget import StageWidget

from .stage_runs import RUNS

BRANCH = {"$schema": schema()["$schema"], **schema()["$defs"]["branch"], "$defs": schema()["$defs"]}


@pytest.fixture
def racing() -> StageWidget:
    return StageWidget(run("race", parameters={"first_credit": 3}))


def act(widget: StageWidget, name: str, value: Any = None, step: int | None = None) -> Any:
    here = widget.branches.current
    steps = len(widget.branches.run.rows)
    return widget.reply(
        {
            "act": name,
            "value": value,
            "t": 0,
            "branch": here,
            "step": steps - 1 if step is None else step,
        }
    )


def test_the_scene_travels_as_gzipped_json(racing):
    """The browser unpacks it with what it has."""
    doc = json.loads(gzip.decompress(racing.scene))
    jsonschema.Draft202012Validator(schema()).validate(doc)
    assert racing.cursor == doc["begin"]


def test_an_act_on_the_picture_is_an_act_of_the_run(racing):
    """The branch is the one that the run's own act gives."""
    reply = act(racing, "send_flow")
    jsonschema.Draft202012Validator(BRANCH).validate(reply["branch"])
    expected = run("race", parameters={"first_credit": 3}).then("send_flow")
    assert racing.branches.run.identity() == expected.identity()
    assert reply["branch"]["label"] == "send flow"


def test_an_illegal_act_says_what_would_be_legal_and_changes_nothing(racing):
    """A learner is told in place; no branch is made."""
    reply = act(racing, "transfer_arrives", "99")
    assert reply["type"] == "illegal"
    assert "not in flight" in reply["why"]
    for name, words in (
        ("send_other", "legal now: send next flow (send_flow)"),
        ("fly", "there are: send_flow"),
    ):
        reply = act(racing, name)
        assert (reply["type"], reply["act"]) == ("illegal", name)
        assert words in reply["why"]
    assert len(racing.branches.runs) == 1


def test_a_frame_that_waits_is_clicked_to_arrive_and_only_the_first_of_its_way(racing):
    """One connection keeps its order."""
    act(racing, "send_transfer")
    act(racing, "send_transfer")
    first, second = (
        row.frame_id
        for row in racing.branches.run.rows
        if row.event == "sent" and row.kind == "transfer"
    )
    assert "comes first" in act(racing, "transfer_arrives", str(second))["why"]
    assert act(racing, "flow_arrives", str(first))["type"] == "branch"  # whichever it is
    last = racing.branches.run.rows[-1]
    assert (last.event, last.kind, last.frame_id) == ("received", "transfer", first)


@pytest.mark.parametrize(
    ("scenario", "parameters", "name", "value", "done"),
    [
        ("credit", {}, "grant", 4, "grant(link_credit=4)"),
        ("credit", {}, "publish", None, "publish(count=1)"),
        ("credit", {}, "set_latency:c1", 2.5, "set_latency(latency_us=2500, connection=c1)"),
        ("credit", {}, "hold:c1:b2c", True, "hold(direction=b2c, connection=c1)"),
        ("publishers", {}, "publish:q1", 7, "publish(queue=q1, count=7)"),
        ("publishers", {}, "stall:q1", True, "stall(queue=q1)"),
        ("quorum", {}, "crash:n3", True, "crash(node=n3, saved=0)"),
        ("quorum", {}, "cut:n1:n2", True, "cut(a=n1, b=n2)"),
        ("windows", {}, "open_window", 3, "open_window(frames=3, session=1)"),
        ("two_targets", {}, "publish:quorum", 2, "publish(queue=quorum, count=2, rate=20000)"),
    ],
)
def test_each_mark_does_its_act(scenario, parameters, name, value, done):
    """Knob, button, toggle and handle give the arguments that the scenario declares."""
    widget = StageWidget(run(scenario, parameters=parameters))
    reply = act(widget, name, value)
    assert reply["type"] == "branch", reply
    assert str(widget.branches.run.actions[-1]) == done


def test_a_toggle_that_is_on_is_undone():
    """Crash and start again, hang and go on, are one mark."""
    widget = StageWidget(run("quorum"))
    act(widget, "crash:n3", True)
    act(widget, "crash:n3", False)
    assert widget.branches.run.actions[-1].name == "restart"


def test_a_frame_is_clicked_to_hold_it_and_clicked_again_to_let_it_go():
    """It stands still from the click on, and arrives after the second one."""
    widget = StageWidget(run("credit"))
    act(widget, "grant", 2)
    rows = widget.branches.run.rows
    sent = next(row for row in rows if row.event == "sent" and row.kind == "transfer")
    reply = act(widget, "hold", str(sent.frame_id), step=sent.seq)
    frames = {frame["id"]: frame for frame in reply["branch"]["frames"]}
    path = frames[str(sent.frame_id)]["path"]
    assert path[-1][1] == path[-2][1] < 1
    reply = act(widget, "release", str(sent.frame_id))
    frames = {frame["id"]: frame for frame in reply["branch"]["frames"]}
    assert frames[str(sent.frame_id)]["path"][-1][1] == 1


def test_acting_in_the_past_keeps_both(racing):
    """The new branch shares the steps up to the cursor; the old one stays."""
    act(racing, "send_transfer")
    reply = racing.reply(
        {"act": "send_flow", "value": None, "t": 0, "branch": 0, "step": racing.cursor}
    )
    assert reply["branch"]["parent"] == 0
    assert reply["branch"]["keeps"] == racing.cursor + 1
    assert len(racing.branches.runs) == 3


def test_at_a_step_before_its_own_act_a_branch_is_its_parent(racing):
    """What is shown there has not been done; so it is not done, either, beside another act."""
    begin = racing.cursor
    act(racing, "send_flow", step=begin)
    act(racing, "send_transfer")
    reply = racing.reply({"act": "send_flow", "value": None, "t": 0, "branch": 2, "step": begin})
    assert (reply["branch"]["parent"], reply["branch"]["label"]) == (0, "send flow")
    assert [str(one) for one in racing.branches.run.actions] == ["send_flow()"]
    reply = racing.reply(
        {"act": "send_flow", "value": None, "t": 0, "branch": 2, "step": begin + 1}
    )
    assert reply["branch"]["parent"] == 1


def test_an_act_takes_the_place_of_the_given_one_that_is_not_shown_yet():
    """At the first step nothing has been done; where the given act is shown, it stays."""
    begun = run("credit", parameters={"messages": 4})
    widget = StageWidget(begun.act(begun.start_seq, "grant", link_credit=2))
    reply = act(widget, "grant", 3, step=widget.cursor)
    assert [one["label"] for one in reply["branch"]["acts"]] == ["grant 3"]
    assert reply["branch"]["label"] == "grant 3"
    assert [str(one) for one in widget.branches.run.actions] == ["grant(link_credit=3)"]
    widget.branches.select(0)
    reply = act(widget, "publish", 1, step=widget.cursor + 1)
    assert reply["branch"]["label"] == "publish 1"
    assert [one.name for one in widget.branches.run.actions] == ["grant", "publish"]


def test_a_frame_is_called_as_the_picture_calls_it():
    """In the name of a branch, and where it is told why it cannot arrive: no disc has an id."""
    widget = StageWidget(run("credit"))
    act(widget, "grant", 3)
    first, second, _ = (
        row for row in widget.branches.run.rows if (row.event, row.kind) == ("sent", "transfer")
    )
    reply = act(widget, "hold", str(first.frame_id), step=second.seq)
    assert reply["branch"]["label"] == "hold transfer 0"
    acted, held = reply["branch"]["steps"][:2]
    assert acted["sentence"] == "An act: hold, transfer 0, connection c1."
    assert acted["who"] == "by hand"
    assert held["sentence"].endswith("(from broker to client, transfer 0).")
    why = act(widget, "release", str(second.frame_id))["why"]
    assert why.startswith("transfer 1 cannot arrive before transfer 0, which was sent earlier")
    assert why.endswith("release transfer 0 first")


def test_what_is_typed_in_milliseconds_is_refused_in_milliseconds():
    """The scenario counts microseconds, which no field shows."""
    widget = StageWidget(run("quorum"))
    reply = act(widget, "slow_disk:n2", 5000)
    assert reply["why"] == "slow disk n2 is 5000 ms; legal: 0 to 1000 ms"


def test_what_is_typed_is_refused_by_the_name_that_stands_beside_the_field():
    """Not by the one that it has in code."""
    reply = act(StageWidget(run("credit")), "grant", -1)
    assert reply["why"] == "link credit is -1; legal: 0 to 4294967295 messages"


def test_a_branch_is_sent_gzipped_and_a_refusal_plainly(racing):
    """What is small needs no packing."""
    sent: list[Any] = []
    racing.send = lambda content, buffers=None: sent.append((content, buffers))
    message = {"act": "send_flow", "value": None, "t": 0, "branch": 0, "step": racing.cursor}
    racing._answer(message | {"view": "v1"})
    racing._answer(message | {"act": "send_other", "view": "v2"})
    (content, buffers), (refused, _) = sent
    assert refused["view"] == "v2"
    assert content == {"gzip": True, "view": "v1"}
    assert json.loads(gzip.decompress(buffers[0]))["branch"]["id"] == 1
    assert refused["type"] == "illegal"
    assert racing.branch == 1


def test_a_place_that_the_page_knows_is_not_sent_back(racing, monkeypatch):
    """Neither an echo of where it was nor the branch of a reply may lead it back."""
    sent: list[Any] = []
    monkeypatch.setattr(racing.comm, "send", lambda data=None, **_: sent.append(data))
    racing._answer({"act": "send_flow", "value": None, "t": 0, "branch": 0, "step": racing.cursor})
    racing.set_state({"cursor": racing.cursor - 1, "branch": 0})
    assert [data["method"] for data in sent] == ["custom"]
    racing.cursor += 1
    assert sent[-1]["method"] == "update"


def test_an_act_that_brings_a_link_sends_the_whole_scene():
    """A second session's link is a new party of the picture."""
    widget = StageWidget(run("windows"))
    before = widget.scene
    sent: list[Any] = []
    widget.send = lambda content, buffers=None: sent.append(content)
    step = widget.cursor
    widget._answer({"act": "begin_session", "value": None, "t": 0, "branch": 0, "step": step})
    assert widget.branch == 1
    assert (widget.scene != before) is not bool(sent)


def test_a_chart_stands_above_recorded_rows_too():
    """A capture has rows and no run; a server to which nobody has come yet has none."""
    played = run("credit").then("grant", link_credit=3)
    desk = stage(played.rows, at=played.last, chart=True)
    cursor = desk.chart.figure.select_one({"name": "cursor"})
    assert cursor.location == played.rows[-1].t_us / 1000
    desk.stage.cursor = 0
    assert cursor.location == 0
    assert "nothing has happened" in repr(stage([], chart=True)).lower()


def test_a_stage_leaves_a_still_behind(racing):
    """A page without a kernel shows the step as text."""
    bundle = racing._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "\nstep 1 of 1 " in data["text/plain"]


def test_a_lesson_offers_the_acts_that_it_names_and_begins_where_it_says():
    """The others are not on the picture; what is not legal is refused in one line."""
    played = run("credit")
    view = stage(played, acts=["grant", "publish"], at=3)
    acts = json.loads(gzip.decompress(view.scene))["acts"]
    assert ([one["id"] for one in acts], view.cursor) == (["grant", "publish"], 3)
    for given, more, words in (
        (3, {}, "a run or its rows are wanted here, not int"),
        (played, {"acts": ["fly"]}, "legal: grant, publish"),
        (played, {"acts": "grant"}, "a list of names is wanted"),
        (played.rows, {"acts": ["grant"]}, "legal: none"),
        (played, {"at": 10**6}, "legal: 0 to "),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            stage(given, **more)


def test_a_share_code_tells_the_branch_and_the_step_of_a_stage(racing):
    """Whoever opens it stands at the same row."""
    act(racing, "send_flow")
    racing.branch = 1
    restored = open_code(share_code(racing))
    assert restored.run.identity() == racing.run.identity()
    assert restored.cursor == racing.cursor + 1


def test_other_values_begin_a_run_of_their_own_and_what_was_done_stays():
    """No act of the run before is in it; its values, and the given ones, bring each back."""
    given = run("credit").then("grant", link_credit=2)
    widget = stage(given)
    widget.send = lambda *_: None
    act(widget, "publish")
    for value, why in (({"messages": 100_001}, "legal: 0 to 100000"), ({"no": 1}, "it has:"),
                       ({"messages": None}, "is left out; legal:")):  # fmt: skip
        reply = act(widget, "begin", value)
        assert (reply["type"], reply["act"]) == ("illegal", "begin")
        assert why in reply["why"]
    assert [widget.tree, len(widget.trees)] == [0, 1]
    assert act(widget, "begin", {"messages": 3}) == {"type": "done"}
    assert widget.run.identity() == run("credit", parameters={"messages": 3}).identity()
    act(widget, "grant", 1)
    doc = json.loads(gzip.decompress(widget.scene))
    jsonschema.Draft202012Validator(schema()).validate(doc)
    shown = {one["id"]: (one["value"], one["given"]) for one in doc["parameters"]}
    assert shown["messages"] == (3, 10)
    assert [*shown] == ["preset", *(one.name for one in given.scenario.parameters)]
    act(widget, "begin", {"messages": 10})
    assert [widget.tree, len(widget.branches.runs)] == [0, 2]
    assert widget.run.actions[:1] == given.actions
    act(widget, "begin", {"messages": 3})
    assert [str(one) for one in widget.branches.run.actions] == ["grant(link_credit=1)"]


def test_another_run_that_is_shown_is_a_tree_of_its_own():
    """Whatever was begun of the run before; and it is found again where it was left."""
    widget = stage(run("credit"))
    act(widget, "begin", {"messages": 3})
    widget.show_run(run("credit"))
    widget.cursor = left = widget.cursor - 1
    assert widget.tree == 0
    for messages in (3, 10):
        act(widget, "begin", {"messages": messages})
    assert (widget.tree, widget.cursor) == (0, left)


def test_another_preset_begins_a_run_that_title_and_share_code_name():
    """What was set stays, numbers of the preset are the new one's, and the way back is kept."""
    given = run("publishers", "rmq4.3", {"queues": 2})
    widget = stage(given)
    act(widget, "begin", {"preset": "rmq4.0"})
    expected = run("publishers", "rmq4.0", {"queues": 2})
    assert widget.run.identity() == expected.identity()
    doc = json.loads(gzip.decompress(widget.scene))
    assert doc["title"].endswith(": RabbitMQ 4.0")
    preset = doc["parameters"][0]
    assert (preset["value"], preset["given"]) == ("rmq4.0", "rmq4.3")
    assert {"rmq4.3", "rmq4.0", "spec"} <= {*preset["choices"]}
    assert open_code(share_code(widget)).run.preset.name == "rmq4.0"
    assert "there are: spec, rmq4.3" in act(widget, "begin", {"preset": "rmq9"})["why"]
    act(widget, "begin", {"preset": "rmq4.3"})
    assert [widget.tree, len(widget.trees)] == [0, 2]
    assert not json.loads(gzip.decompress(widget.scene))["title"].endswith("RabbitMQ 4.3")


def test_what_a_link_is_called_does_not_bar_a_run_without_it():
    """The line that comes first is then the busiest's."""
    named = stage(run("publishers", "rmq4.3", {"queues": 2}), link="q2")
    assert act(named, "begin", {"queues": 1}) == {"type": "done"}


@pytest.mark.parametrize(
    ("value", "why"),
    [(None, "needs an amount, not nothing"), (2.5, "needs a whole number, not 2.5")],
)
def test_what_is_no_whole_amount_is_refused(value, why):
    """An empty field is no 0, and nothing is cut off."""
    view = StageWidget(run("credit"))
    reply = act(view, "grant", value)
    assert reply["type"] == "illegal"
    assert why in reply["why"]
    assert len(view.branches.runs) == 1


def test_a_direction_is_told_in_words():
    """What is held is named as the buttons name it."""
    reply = act(StageWidget(run("credit")), "hold:c1:b2c", True)
    assert reply["branch"]["label"] == "hold broker to client, connection c1"


def test_a_part_of_a_long_trace_is_found_whatever_its_numbers_leave_out():
    """Rows of one connection, say: their `seq` has gaps."""
    rows = run("credit").rows
    many = [replace(rows[n % len(rows)], seq=10 * n) for n in range(11_000)]
    for at in (10, 50_010, 109_990):
        shown = StageWidget(many, at=at)
        assert shown.seq == at


def test_what_is_legal_is_worked_out_for_as_many_rows_as_are_drawn():
    """And not for the rest of a long run, which would be played for each act."""
    played = run("credit", parameters={"messages": 60})
    each = played.legal_each()
    assert played.legal_each(10)[:10] == each[:10]
    assert len(played.legal_each(10)) < len(each)


def plain(state):
    """As the page has it: what is null is not there."""
    if not isinstance(state, dict):
        return list(state) if isinstance(state, tuple) else state
    return {key: plain(value) for key, value in state.items() if value is not None}


@pytest.mark.parametrize("name", ["session", "alarmed", "valves"])
def test_after_every_act_the_page_has_the_state_that_the_kernel_has(name):
    """It goes on from what it showed of the parent, which knew nothing of what the act has made."""
    desk = StageWidget(RUNS[name]())
    doc = json.loads(gzip.decompress(desk.scene))
    last = len(doc["branches"][0]["steps"]) - 1
    state = [*resolved(doc)][last]
    tried = 0
    for act in doc["acts"]:
        if act["kind"] == "frame" or state["off"].get(act["id"]) is not None:
            continue
        amount = max(act["min"], 2) if act["kind"] in ("knob", "handle") else None
        value = not state["on"].get(act["id"], False) if act["kind"] == "toggle" else amount
        said = {"act": act["id"], "value": value, "t": 0, "branch": 0, "step": last}
        reply = desk.reply(said)
        if reply["type"] != "branch":
            continue
        tried += 1
        branch = reply["branch"]
        shown = [*resolved({"branches": [doc["branches"][0], branch]}, branch["id"])]
        kept = desk._maker.strip(branch["id"]).states
        for place in range(branch["keeps"], len(kept)):
            assert plain(shown[place]) == plain(json.loads(json.dumps(kept[place]))), act["id"]
    assert tried


@pytest.mark.parametrize(
    ("scenario", "mark", "first", "value"),
    [
        ("quorum", "slow_disk:n2", 5, 20),  # ms; its parameter is fsync_us
        ("emergency_brake", "set_others", 12_000, 500),
        ("publishers", "set_max_link_credit", 100, 7),
        ("qpid", "set_watermarks:q1", 7, 4),
        ("prefetch", "set_prefetch", 0, 3),
        ("publishers", "publish:q1", 1, 1),  # it sets nothing
        ("publishers", "slow:q1", 50, 700),  # on a disk, which is no party
        ("two_targets", "slow_disk", 5, 0.5),
    ],
)
def test_a_knob_that_no_counter_tells_of_stands_where_it_was_set_last(scenario, mark, first, value):
    """At first by the run's parameters; the mark of another disk stays where it is."""
    desk = StageWidget(run(scenario))
    *_, before = resolved(json.loads(gzip.decompress(desk.scene)))
    said = {"act": mark, "value": value, "t": 0, "branch": 0, "step": desk.cursor}
    assert desk.reply(said)["type"] == "branch"
    *_, after = resolved(desk._doc(), 1)
    moved = {}
    for name, node in after["nodes"].items():
        for one, now in node.get("knobs", {}).items():
            moved[one] = before["nodes"][name]["knobs"][one], now
    assert moved.pop(mark) == (first, value)
    assert all(was == now for was, now in moved.values())


@pytest.mark.parametrize("preset", ["rmq2.0", "rmq1.8", "rmq1.5", "blog2008"])
def test_where_processes_count_no_credit_none_is_drawn(preset):
    """Before RabbitMQ 2.8; such a preset can be chosen in the form of a stage."""
    desk = StageWidget(run("memory", "rmq4.3"), anew=True)
    said = {"act": "begin", "value": {"preset": preset}, "t": 0, "branch": 0, "step": 0}
    assert desk.reply(said) == {"type": "done"}
    assert all(hop["of"] for hop in desk._doc()["hops"])
    assert desk.still()


def test_a_place_of_the_run_before_is_none_of_a_run_that_was_begun_anew():
    """A page may tell it while the kernel begins: it is where nothing is."""
    desk = StageWidget(run("credit"), anew=True)
    desk.reply({"act": "grant", "value": 3, "t": 0, "branch": 0, "step": desk.cursor})
    desk.begin({"messages": 2})
    desk.set_state({"branch": 1, "cursor": 4_000})
    assert desk.branch == 0
    assert desk.cursor == len(desk.run.rows) - 1
    assert desk.seq == desk.run.rows[-1].seq


def test_a_page_that_goes_to_a_longer_branch_stays_where_it_went(monkeypatch):
    """It tells branch and step together, and nothing comes back; a shorter one ends sooner."""
    desk = StageWidget(run("credit"))
    desk.reply({"act": "grant", "value": 3, "t": 0, "branch": 0, "step": desk.cursor})
    lengths = [len(one.rows) for one in desk.branches.runs]
    desk.set_state({"branch": 0, "cursor": 2})
    said = []
    monkeypatch.setattr(desk, "_send", lambda message, buffers=None: said.append(message))
    desk.set_state({"branch": 1, "cursor": lengths[1] - 1})
    assert (desk.branch, desk.cursor, said) == (1, lengths[1] - 1, [])
    desk.set_state({"branch": 0})
    assert (desk.branch, desk.cursor) == (0, lengths[0] - 1)


def test_a_branch_without_a_party_is_drawn_without_it_again():
    """And its acts are not offered: the page is told, whichever way it goes."""
    desk = StageWidget(run("windows"))
    doc = json.loads(gzip.decompress(desk.scene))
    given = {act["id"] for act in doc["acts"]}
    desk._answer({"act": "begin_session", "value": None, "t": 0, "branch": 0, "step": desk.cursor})
    offered = []
    for branch in (desk.branch, 0, 1):
        desk.set_state({"branch": branch})
        doc = json.loads(gzip.decompress(desk.scene))
        offered.append({act["id"] for act in doc["acts"]})
    assert offered[0] == offered[2] > offered[1] == given


def test_the_chart_is_that_of_the_link_that_comes_first():
    desk = ChartedStage(StageWidget(run("two_queues"), link="bulk"))
    assert "bulk" in str(desk.chart)


def test_at_the_end_a_held_frame_is_held_and_one_that_was_just_sent_is_not():
    """Two points with one part are a frame that is held."""
    queue = run("credit", parameters={"messages": 5})
    sent = queue.act(queue.start_seq, "grant", link_credit=3)
    transfers = [row for row in sent.rows if (row.kind, row.event) == ("transfer", "sent")]
    first, third = str(transfers[0].frame_id), str(transfers[2].frame_id)
    rows = sent.act(transfers[2].seq, "hold", frame_id=transfers[0].frame_id).rows
    at = next(place for place, row in enumerate(rows) if row.event == "hold")
    looks = []
    for end in (at, at + 1):
        frames = SceneMaker(rows[:end]).scene("t")["branches"][0]["frames"]
        parts = {one["id"]: [part for _, part in one["path"]] for one in frames}
        looks.append({name: its[-2:].count(its[-1]) == 2 for name, its in parts.items()})
    before, after = looks
    assert (before[first], before[third]) == (False, False)
    assert after[first]


def test_what_replicas_say_to_each_other_is_marked_as_no_frame():
    """Of the protocol: the picture offers no act on it."""
    scene = SceneMaker(run("quorum").then("publish", count=2)).scene("t")
    inside = [frame for frame in scene["branches"][0]["frames"] if frame.get("inside")]
    assert {frame["kind"] for frame in inside} == {"write", "acknowledgement"}
    assert not any(frame["id"].isdecimal() for frame in inside)
