"""The lattice as picture, as words and as a desk: what is drawn is what the explorer found."""

import networkx
import pytest
from bokeh.models import ColumnDataSource

from workbench.scenarios.link_model import LinkModel
from workbench.scenarios.rules import RULES
from workbench.scenarios.run import run
from workbench.scenarios.schedules import play_model
from workbench.sim.explorer import Bounds, explore
from workbench.views.lattice import MOST_DRAWN, LatticePicture, path_of
from workbench.views.lattice_desk import LatticeDesk, lattice_of
from workbench.views.lattice_layout import graph_of, places
from workbench.views.lattice_view import LatticeView
from workbench.views.lattice_words import bad_levels, sentences, state_words, summary, words


class Ring:
    """A tiny model that is no link: six places, a move on or across, back at the first."""

    initial = 0

    def successors(self, state):
        """On, and from the first place across."""
        yield "on", (state + 1) % 6
        if state == 0:
            yield "across", 3

    def bad(self, state):
        """One place is bad."""
        return state == 4


def found(rule="set", messages=10, grants=(3, 6), bounds=None):
    """An exploration of a link."""
    return explore(LinkModel(messages=messages, grants=grants, rule=RULES[rule].rule), bounds)


def data(picture, name):
    """The columns of a source of the picture."""
    return picture.figure.select_one({"type": ColumnDataSource, "name": name}).data


# -- where states stand ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["spec", "set", "add"])
def test_the_graph_has_a_node_for_each_state_and_every_path_has_its_depth(rule):
    """networkx counts the shortest paths anew."""
    seen = found(rule)
    graph = graph_of(seen)
    assert graph.number_of_nodes() == seen.states
    assert dict(graph.nodes(data="depth")) == networkx.single_source_shortest_path_length(graph, 0)
    assert sum(bad for _, bad in graph.nodes(data="bad")) == seen.bad


def test_no_two_states_are_drawn_on_one_place_and_columns_are_depths():
    """x is the number of moves made; each column stands round the middle."""
    seen = found()
    at = places(graph_of(seen))
    assert len(set(at.values())) == seen.states
    assert [at[index][0] for index in range(seen.states)] == [float(d) for d in seen.depths()]
    assert sum(y for _, y in at.values()) == 0


def test_sorting_the_columns_leaves_fewer_crossings_than_the_order_of_discovery():
    """Lines that cross are counted before and after: less than a third is left."""
    graph = graph_of(found("spec"))
    at = places(graph)
    naive: dict[int, int] = {}
    seen: dict[int, int] = {}
    for node, depth in graph.nodes(data="depth"):
        naive[node] = seen[depth] = seen.get(depth, -1) + 1

    def crossings(height):
        edges = sorted({(graph.nodes[a]["depth"], height(a), height(b)) for a, b in graph.edges()})
        return sum(
            1
            for place, (depth, left, right) in enumerate(edges)
            for other, left_2, right_2 in edges[place + 1 :]
            if other == depth and left < left_2 and right > right_2
        )

    assert crossings(lambda node: at[node][1]) < crossings(naive.__getitem__) / 3


# -- the picture ----------------------------------------------------------------------------------


def test_bad_states_differ_in_shape_and_colour_and_the_legend_names_both():
    """Nobody has to tell colours apart."""
    seen = found()
    picture = LatticePicture(seen)
    marks = picture.marks.data
    bad = {(marks["marker"][index], marks["colour"][index]) for index in seen.bad_at}
    good = set(zip(marks["marker"], marks["colour"], strict=True)) - bad
    assert len(bad) == len(good) == 1
    ((bad_shape, bad_colour),), ((good_shape, good_colour),) = bad, good
    assert bad_shape != good_shape
    assert bad_colour != good_colour
    assert [index for index, word in enumerate(marks["verdict"]) if word == "bad"] == seen.bad_at
    labels = {item.label.value for item in picture.figure.legend.items}
    nearest, way = "nearest bad state: 5 moves", "a shortest way to the chosen state"
    assert labels == {"good", "bad", way, nearest}


def test_the_nearest_bad_state_is_marked_and_says_how_near_it_is():
    """Its mark stands on the first bad state that was found; a safe link has none."""
    seen = found("add")
    picture = LatticePicture(seen)
    first = data(picture, "first")
    index = seen.bad_at[0]
    marks = picture.marks.data
    assert (first["x"], first["y"]) == ([marks["x"][index]], [marks["y"][index]])
    labels = {item.label.value for item in picture.figure.legend.items}
    assert f"nearest bad state: {len(seen.shortest)} moves" in labels
    safe = LatticePicture(found("spec")).figure
    assert safe.select_one({"name": "first"}) is None


def test_the_learners_path_is_drawn_from_the_first_state_to_its_last():
    """The legend has it only where there is one; a move that is not possible ends it."""
    seen = found()
    path = path_of(seen, seen.shortest)
    assert path[0] == 0
    assert path[-1] == seen.bad_at[0]
    assert len(path) == len(seen.shortest) + 1
    assert path_of(seen, ["transfer-arrives"]) == [0]
    chart = LatticePicture(seen, path=path_of(seen, seen.shortest)).figure
    drawn = chart.select_one({"type": ColumnDataSource, "name": "path"}).data
    assert len(drawn["x"]) == len(path)
    assert "your path" in {item.label.value for item in chart.legend.items}


def test_a_model_that_is_no_link_and_goes_in_a_ring_is_drawn_too():
    """States print as they are; moves that lead back are lines like others."""
    seen = explore(Ring())
    picture = LatticePicture(seen)
    assert picture.marks.data["sender"] == [str(state) for state in seen.ordered]
    assert "1. across" in words(seen)
    assert state_words(seen, 0) == "0"


def test_above_what_can_be_drawn_states_are_counted_by_depth_and_it_is_said():
    """Nothing is left out silently; a bar stands for its nearest bad state."""
    seen = found(messages=20, grants=(5, 5, 5, 5))
    assert seen.states > MOST_DRAWN
    picture = LatticePicture(seen)
    assert f"{seen.states:,}" in picture.figure.title.text
    assert "too many to draw" in picture.figure.title.text
    columns = picture.marks.data
    assert sum(columns["top"]) == seen.states
    assert sum(columns["bad"]) == seen.bad
    depth = len(seen.shortest)
    assert picture.state_of(depth) == seen.bad_at[0]
    assert seen.depths()[picture.state_of(1)] == 1
    picture.choose(path_of(seen, seen.shortest))
    assert data(picture, "here")["x"] == [float(depth)]


# -- words ----------------------------------------------------------------------------------------


def test_words_tell_proof_fault_and_an_unfinished_search_apart():
    """A search that was stopped proves nothing, and says so."""
    assert "a proof" in summary(found("spec"))
    assert "shortest bad schedule has" in summary(found("set"))
    unfinished = summary(found("spec", bounds=Bounds(states=50)))
    assert "proves nothing" in unfinished
    assert "stopped at 50 states" in unfinished
    assert "a proof" not in unfinished


def test_the_words_hold_every_depth_and_the_shortest_bad_schedule():
    """Who cannot see the picture has its numbers."""
    seen = found("add")
    told = words(seen)
    assert sum(bad_levels(seen)) == seen.bad
    for depth, states in enumerate(seen.levels()):
        assert f"{depth:>10} {states:>8} {bad_levels(seen)[depth]:>5}" in told
    assert ", ".join(seen.shortest) in told


def test_a_schedule_is_told_move_by_move_with_the_numbers_of_the_model():
    """Each number is read off the state after the move; a bad end says what is too much."""
    model = LinkModel(messages=10, grants=(3, 6), rule=RULES["add"].rule)
    told = sentences(model, explore(model).shortest)
    assert told == [
        "1. The receiver sends flow(delivery-count=0, link-credit=3); its furthest limit is 3.",
        "2. The receiver sends flow(delivery-count=0, link-credit=6); its furthest limit is 6.",
        "3. flow(delivery-count=0, link-credit=3) reaches the sender, which makes link-credit 3 of"
        " it (was 0).",
        "4. flow(delivery-count=0, link-credit=6) reaches the sender, which makes link-credit 9 of"
        " it (was 3).",
        "The sender holds link-credit 9 at delivery-count 0; the furthest limit ever granted is 6,"
        " so only 6 may still be sent.",
    ]
    assert sentences(model, ["send-flow", "flow-arrives", "send-transfer", "transfer-arrives"])[
        2:
    ] == [
        "3. The sender sends a message: delivery-count 1, link-credit 2.",
        "4. The message arrives: the receiver's delivery-count is 1.",
    ]


# -- choosing -------------------------------------------------------------------------------------


def test_choosing_a_state_calls_back_with_a_shortest_schedule_to_it():
    """Also for a model that nothing can play."""
    told = []
    view = LatticeView(explore(Ring()), on_select=told.append)
    view.nearest.click()
    assert told == [("across", "on")]
    view.choose(0)
    assert told[-1] == ()


def test_a_click_the_lists_and_the_buttons_choose_the_same_states():
    """Three ways, two of them by keyboard alone."""
    view = LatticeView(found())
    view.picture.marks.selected.indices = [7]
    assert view.index == view.states.value == 7
    view.states.value = view.states.options[0][1]
    assert view.index == view.found.depths().index(view.depth.value)
    view.choose(12)
    view.forth.click()
    view.forth.click()
    view.back.click()
    assert view.index == 13
    assert view.depth.value == view.found.depths()[13]
    view.choose(0)
    view.depth.value = len(view.found.shortest)
    assert view.index == view.found.bad_at[0]
    view.choose(0)
    view.back.click()
    assert view.index == 0
    view.choose(view.found.states - 1)
    view.forth.click()
    assert view.index == view.found.states - 1


def test_choosing_a_state_plays_its_schedule_on_the_broker_and_opens_it():
    """The stage ends where the schedule ends, and the sentence has the model's numbers."""
    desk = LatticeDesk()
    desk.view.nearest.click()
    view = desk.found.model.describe(desk.found.ordered[desk.found.bad_at[0]])
    assert desk.stage.cursor == len(desk.stage.run.rows) - 1
    assert ", ".join(desk.found.shortest) in desk.schedule.value
    assert f"link-credit {view.snd_link_credit} at delivery-count" in desk.schedule.value
    still = desk.stage.still()
    assert f"this one takes {view.snd_link_credit}" in still


def test_the_ring_in_the_picture_stands_where_the_stage_stands():
    """Before the first move at the start, behind the last at the chosen state."""
    desk = LatticeDesk()
    desk.view.nearest.click()
    marks, ring = desk.view.picture.marks.data, desk.view.picture
    depths = []
    for cursor in range(len(desk.stage.run.rows)):
        desk.stage.cursor = cursor
        depths.append(data(ring, "here")["x"][0])
    played = play_model(desk.model(), desk.found.shortest, "set")
    acts = [place for place, row in enumerate(played.rows) if row.event == "action"]
    made = [sum(act <= place for act in acts) for place in range(len(played.rows))]
    assert depths == made
    assert data(ring, "here")["y"] == [marks["y"][desk.view.index]]


def test_another_rule_explores_anew():
    """States, words and list follow; an old schedule is closed."""
    desk = LatticeDesk()
    desk.view.nearest.click()
    desk.rule.value = "spec"
    assert desk.found.bad == 0
    assert desk.stage is None
    assert desk.view.nearest.disabled
    assert "a proof" in desk.view.line.value
    assert repr(desk).startswith("Rule spec. ")


def test_a_large_link_is_counted_and_its_nearest_bad_state_still_opens():
    """Tens of thousands of states: no list is longer than a page can bear."""
    desk = LatticeDesk(messages=20, grants=(5, 5, 5, 5))
    assert desk.found.states > 10_000
    desk.view.depth.value = desk.found.levels().index(max(desk.found.levels()))
    assert len(desk.view.states.options) <= 500
    desk.view.nearest.click()
    assert desk.stage is not None


def test_a_link_too_large_to_search_is_stopped_at_a_bound_and_says_so(monkeypatch):
    """The page never hangs."""
    monkeypatch.setattr("workbench.views.lattice_desk.BOUNDS", Bounds(states=5_000))
    desk = LatticeDesk(messages=1000, grants=(100,) * 9)
    assert not desk.found.complete
    assert "stopped at 5,000 states, the bound. It proves nothing." in desk.view.line.value


def test_a_desk_of_the_race_has_its_lattice_with_its_path_on_top():
    """Numbers come from the run's parameters, moves from its acts."""
    given = {"initial_delivery_count": 20, "first_credit": 3, "grants": "6", "rule": "set"}
    race = run("race", parameters=given)
    for act in ("send_flow", "send_transfer", "flow_arrives"):
        race = race.act(race.rows[-1].seq, act)
    desk = lattice_of(race)
    assert desk.rule.value == "set"
    assert desk.model().initial_delivery_count == 20
    assert desk.view.path == ("send-flow", "send-transfer", "flow-arrives")
    assert len(data(desk.view.picture, "path")["x"]) == 4
    assert desk.found.model.bad(desk.found.ordered[path_of(desk.found, desk.view.path)[-1]])


@pytest.mark.parametrize("grants", ["3, 6 drain", "3, 6 echo"])
def test_a_race_that_the_model_does_not_know_is_refused(grants):
    """Rather than shown as something else."""
    with pytest.raises(ValueError, match="without drain and echo"):
        lattice_of(run("race", parameters={"grants": grants}))
    with pytest.raises(ValueError, match="scenario race is wanted here, not of credit"):
        lattice_of(run("credit"))


def test_a_closed_lattice_leaves_nothing_behind():
    """Closing twice, as happens when a widget is thrown away, is no error."""
    view = LatticeView(explore(Ring()))
    view.close()
    view.close()
    view.chart.picture.close()


def test_without_a_kernel_the_words_stay():
    """The page keeps counts and the shortest bad schedule."""
    bundle = LatticeDesk()._repr_mimebundle_()
    texts = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "shortest bad schedule" in texts["text/plain"]
    assert "<pre" in texts["text/html"]


def test_an_unknown_rule_is_refused():
    """Before anything is drawn."""
    with pytest.raises(ValueError, match="no rule"):
        LatticeDesk(rules=["guess"])
