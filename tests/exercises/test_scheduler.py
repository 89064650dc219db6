"""“You are the scheduler”: the fewest moves and impossibility come from the explorer."""

import pytest

from workbench.exercises.game import in_words
from workbench.exercises.levels import Level, levels
from workbench.exercises.progress import Progress
from workbench.exercises.scheduler import Game, Scheduler
from workbench.scenarios.link_model import MOVES, SEND_FLOW, TRANSFER_ARRIVES
from workbench.scenarios.race import ACT_OF_MOVE
from workbench.scenarios.rules import RULES
from workbench.scenarios.schedules import states_along
from workbench.sim.explorer import Bounds

NAMES = [level.name for level in levels()]


def level_named(name):
    """A level."""
    return next(level for level in levels() if level.name == name)


def solved(level, log):
    """The level played along a shortest schedule."""
    game = Game(level, log)
    play(game, level.found.shortest)
    return game


def play(game, moves):
    """Make moves, one after the other."""
    for move in moves:
        game.follow([*game.moves, move])


def test_there_are_levels_that_can_be_won_and_levels_that_cannot():
    """At least one whose right answer is: impossible."""
    pars = {level.name: level.par for level in levels()}
    assert len(pars) == len(levels()) >= 5
    assert pars["rule"] is None
    assert pars["once"] is None
    assert sum(par is not None for par in pars.values()) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_the_par_is_the_least_number_of_moves_by_another_search(name):
    """Layer by layer with plain sets; an impossible level runs out of states."""
    level = level_named(name)
    model, seen, depth = level.model, {level.model.initial}, 0
    layer = seen
    while layer and not any(model.bad(state) for state in layer):
        layer = {after for state in layer for _, after in model.successors(state)} - seen
        seen = seen | layer
        depth += 1
    assert level.par == (depth if layer else None)
    if level.par is None:
        assert f"{len(seen):,}" in level.proof


@pytest.mark.parametrize("name", [name for name in NAMES if level_named(name).par is not None])
def test_a_shortest_schedule_wins_with_the_par_and_is_kept(name):
    """The text says that no schedule is shorter; the outcome is in the log."""
    log = Progress()
    game = solved(level_named(name), log)
    assert game.over
    assert "That is the shortest possible" in game.line
    assert log.entries[f"02/level-{name}"].right


def test_a_longer_way_wins_too_and_hears_what_is_possible():
    """A detour of two moves: done in more, par is told."""
    level = level_named("set")
    game = Game(level, Progress())
    way = list(level.found.shortest)
    play(game, [way[0], "flow-arrives", "send-transfer", TRANSFER_ARRIVES])
    play(game, level.from_here(game.state))
    assert game.over
    assert len(game.moves) > level.par
    assert f"The shortest schedule takes {level.par} moves." in game.line


@pytest.mark.parametrize("name", NAMES)
def test_saying_that_it_cannot_be_done_is_right_exactly_where_no_schedule_exists(name):
    """Right with a proof, wrong without the schedule being shown."""
    log, level = Progress(), level_named(name)
    game = Game(level, log)
    game.cannot()
    assert log.entries[f"02/level-{name}"].right == (level.par is None)
    if level.par is None:
        assert level.proof in game.line
        assert game.over
    else:
        assert f"{level.par} moves" in game.line
        assert not game.over
        assert not any(in_words([move]) in game.line for move in MOVES)


def test_a_level_that_was_won_is_recorded_once():
    """Back, and there again by another branch: the outcome is kept as it was."""
    log = Progress()
    game = solved(level_named("add"), log)
    won = list(game.moves)
    game.follow(won[:-1])
    assert not game.over
    assert game.state == states_along(game.level.model, won[:-1])[-1]
    game.follow([])
    assert game.state == game.level.model.initial
    game.follow(won)
    assert game.over
    assert len(log.records) == 1


def test_hints_tell_a_little_more_each_time():
    """How many moves, the next move, the whole way; each is counted."""
    level = level_named("set")
    game = Game(level, Progress())
    game.hint()
    assert str(level.par) in game.line
    game.hint()
    assert game.line == f"Next: {in_words(level.found.shortest[:1])}."
    game.hint()
    assert game.line == f"From here: {in_words(level.found.shortest)}."
    assert game.hints == 3


@pytest.mark.parametrize("name", [name for name in NAMES if level_named(name).par is None])
def test_hints_of_a_level_that_cannot_be_won_tell_more_each_time_too(name):
    """What the search has seen, what to ask of it, and in the end the answer."""
    game, told = Game(level_named(name), Progress()), []
    for _ in range(4):
        game.hint()
        told.append(game.line)
    assert len({*told[:3]}) == 3
    assert [f"{game.level.found.states:,} states" in line for line in told] == [True] * 4
    assert ["it cannot be done" in line for line in told] == [False, False, True, True]
    assert game.hints == 4


def test_a_move_that_is_repeated_is_said_once():
    assert in_words(["send-flow", "send-transfer", "send-transfer", "send-flow"]) == (
        "the receiver sends the next flow, the sender sends a message (2 times),"
        " the receiver sends the next flow"
    )


def test_a_position_without_a_way_out_is_said_to_be_one():
    """A hint never promises what cannot be reached from here; it costs nothing then."""
    level = level_named("set")
    lost = next(
        state
        for state in level.found.ordered
        if not level.model.bad(state) and level.from_here(state) is None
    )
    game = Game(level, Progress())
    game.follow(level.found.schedule_to(level.found.index_of(lost)))
    game.hint()
    assert "cannot be done any more" in game.line
    assert game.hints == 0


def test_changing_a_rule_changes_the_par(monkeypatch):
    """Nothing is written down: with the right rule in place of *add* the level cannot be won."""
    monkeypatch.setitem(RULES, "add", RULES["spec"])
    assert level_named("add").par is None


def test_the_goal_is_told_in_numbers():
    """What the sender believes, and the furthest limit ever granted; without a picture."""
    game = Game(level_named("add"), Progress())
    play(game, [SEND_FLOW])
    for text in (
        "send 0 more; the furthest limit ever granted is 3, so it may send 3",
        in_words([SEND_FLOW]),
        in_words(["flow-arrives"]),
    ):
        assert text in str(game)
    play(game, game.level.from_here(game.state))
    assert "send 9 more ✕; the furthest limit ever granted is 6, so it may send 6" in str(game)


def test_when_nothing_can_happen_any_more_that_is_said():
    """An empty wire, all sent, all granted: go back, or begin again."""
    game = Game(Level(name="x", rule="spec", messages=1, grants=(1,)))
    play(game, [SEND_FLOW, "flow-arrives", "send-transfer", TRANSFER_ARRIVES])
    assert "Nothing can happen any more" in game.line


def test_a_search_that_was_stopped_proves_nothing_to_the_game_either(monkeypatch):
    """Neither right nor wrong, and nothing is kept."""
    monkeypatch.setattr("workbench.exercises.levels.BOUNDS", Bounds(states=20))
    log = Progress()
    game = Game(level_named("rule"), log)
    game.cannot()
    assert "that is no proof" in game.line
    game.hint()
    assert "that is no proof" in game.line
    assert game.hints == 0
    assert not game.over
    assert log.records == []


# -- the widget -----------------------------------------------------------------------------------


def act(desk, *moves):
    """Do on the stage what the moves say, as the browser does it."""
    stage = desk.stage
    for move in moves:
        run = stage.run
        said = {"act": ACT_OF_MOVE[move], "branch": stage.branch, "step": len(run.rows) - 1}
        if move.endswith("arrives"):
            kind = move.partition("-")[0]
            landed = {row.frame_id for row in run.rows if row.event == "received"}
            said["value"] = next(
                str(row.frame_id)
                for row in run.rows
                if (row.event, row.kind) == ("sent", kind) and row.frame_id not in landed
            )
        stage._answer(said)


def test_a_level_is_played_on_the_stage():
    """Each action is a move; the line tells what came of it, and a done level has a tick."""
    desk = Scheduler(levels(), Progress())
    act(desk, *desk.game.level.found.shortest)
    assert desk.game.moves == list(desk.game.level.found.shortest)
    assert "✔ Done" in desk.line.value
    assert desk.choice.label.startswith("✔ 1. ")
    desk.cannot.click()
    assert desk.choice.label.startswith("✔ 1. ")
    assert not desk.all.disabled
    desk.back.click()
    assert len(desk.game.moves) == desk.game.level.par - 1
    desk.reset.click()
    assert desk.game.moves == []
    assert "Choose who acts. Possible now:" in desk.line.value
    desk.choice.value = "rule"
    assert desk.stage.run.parameters["rule"] == "spec"
    desk.cannot.click()
    assert "✔ Right, it cannot be done" in desk.line.value


def test_all_schedules_open_when_the_level_is_done_with_the_players_path_on_top():
    """Before, the graph would give the answer away; after, it is the proof."""
    desk = Scheduler(levels(), Progress())
    assert desk.all.disabled
    act(desk, *desk.game.level.found.shortest)
    desk.all.click()
    assert desk.graph.view.path == desk.game.level.found.shortest
    desk.choice.value = "rule"
    assert desk.graph is None
    assert desk.all.disabled
    desk.cannot.click()
    desk.all.click()
    assert f"{desk.game.level.found.states} states, none of them bad" in repr(desk.graph)
    act(desk, SEND_FLOW)
    assert desk.graph is None
    # Nothing is given away that is not known: the level stays done, whatever is tried in it.
    assert not desk.game.over
    assert not desk.all.disabled
    desk.all.click()
    assert desk.graph.view.path == (SEND_FLOW,)


@pytest.mark.parametrize("name", NAMES)
def test_every_level_is_played_on_the_real_broker(name):
    """Whatever its rule and its beginning, the last step holds the model's numbers."""
    desk = Scheduler([level_named(name)], Progress())
    act(desk, *(desk.game.level.found.shortest or (SEND_FLOW,)))
    view = desk.game.view
    told = f"Sender: delivery-count {view.snd_delivery_count}, link-credit {view.snd_link_credit}"
    desk.stage.cursor = len(desk.stage.run.rows) - 1
    assert told in desk.stage.still()


def test_without_a_kernel_the_game_stays():
    """As text."""
    bundle = Scheduler(levels(), Progress())._repr_mimebundle_()
    texts = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "furthest limit ever granted" in texts["text/plain"]
    assert "Possible now: the receiver sends the next flow." in texts["text/plain"]
