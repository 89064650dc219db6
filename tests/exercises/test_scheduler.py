"""“You are the scheduler”: par and impossibility come from the explorer, the rest from the game."""

import pytest

from workbench.exercises.levels import Level, levels
from workbench.exercises.progress import Progress
from workbench.exercises.scheduler import BUTTONS, Game, Scheduler
from workbench.scenarios.link_model import MOVES, SEND_FLOW, TRANSFER_ARRIVES
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
    for move in level.found.shortest:
        game.move(move)
    return game


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
    assert "That is the par" in game.line
    assert log.entries[f"02/level-{name}"].right


def test_a_longer_way_wins_too_and_hears_what_is_possible():
    """A detour of two moves: done in more, par is told."""
    level = level_named("set")
    game = Game(level, Progress())
    way = list(level.found.shortest)
    game.move(way[0])
    game.move("flow-arrives")
    game.move("send-transfer")
    game.move(TRANSFER_ARRIVES)
    while not game.over:
        game.move(level.from_here(game.state)[0])
    assert len(game.moves) > level.par
    assert f"{level.par} moves are possible" in game.line


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
        assert not any(text in game.line for text in BUTTONS.values())


def test_a_move_that_is_not_possible_changes_nothing_and_says_why():
    """And what is possible."""
    game = Game(level_named("add"), Progress())
    before = game.state
    game.move(TRANSFER_ARRIVES)
    assert game.state == before
    assert "no transfer is in flight" in game.line
    assert BUTTONS[SEND_FLOW] in game.line


def test_undo_goes_back_and_reset_to_the_beginning():
    """Also after the level was won."""
    level = level_named("add")
    game = solved(level, Progress())
    game.undo()
    assert not game.over
    assert len(game.moves) == level.par - 1
    assert game.state == states_along(level.model, game.moves)[-1]
    game.reset()
    assert game.state == level.model.initial
    game.undo()
    assert "nothing to undo" in game.line


def test_hints_tell_a_little_more_each_time():
    """How many moves, the next move, the whole way; each is counted."""
    level = level_named("set")
    game = Game(level, Progress())
    game.hint()
    assert str(level.par) in game.line
    game.hint()
    assert game.line == f"Next: {BUTTONS[level.found.shortest[0]]}."
    game.hint()
    assert game.line.count(",") == level.par - 1
    assert game.hints == 3


def test_a_position_without_a_way_out_is_said_to_be_one():
    """A hint never promises what cannot be reached from here; it costs nothing then."""
    level = level_named("set")
    lost = next(
        state
        for state in level.found.ordered
        if not level.model.bad(state) and level.from_here(state) is None
    )
    game = Game(level, Progress())
    for move in level.found.path_to(lost):
        game.move(move)
    game.hint()
    assert "cannot be done any more" in game.line
    assert game.hints == 0


def test_changing_a_rule_changes_the_par(monkeypatch):
    """Nothing is written down: with the right rule in place of *add* the level cannot be won."""
    monkeypatch.setitem(RULES, "add", RULES["spec"])
    assert level_named("add").par is None


def test_the_board_is_all_in_the_text():
    """Ledgers, wire, moves, what is possible and the verdict without a picture."""
    game = Game(level_named("add"), Progress())
    game.move(SEND_FLOW)
    told = str(game)
    flow = "flow(delivery-count=0, link-credit=3)"
    for text in ("delivery-count", flow, SEND_FLOW, "1 move made", BUTTONS["flow-arrives"]):
        assert text in told
    while not game.over:
        game.move(game.level.from_here(game.state)[0])
    assert f"{game.view.snd_link_credit} ✕" in str(game)


def test_when_nothing_can_happen_any_more_that_is_said():
    """An empty wire, all sent, all granted: undo, or begin again."""
    game = Game(Level(name="x", title="x", story="x", rule="spec", messages=1, grants=(1,)))
    for move in (SEND_FLOW, "flow-arrives", "send-transfer", TRANSFER_ARRIVES):
        game.move(move)
    assert "Nothing can happen any more" in game.line


def test_a_search_that_was_stopped_proves_nothing_to_the_game_either(monkeypatch):
    """Neither right nor wrong, and nothing is kept."""
    monkeypatch.setattr("workbench.exercises.levels.BOUNDS", Bounds(states=20))
    log = Progress()
    game = Game(level_named("rule"), log)
    game.cannot()
    assert "that is no proof" in game.line
    assert not game.over
    assert log.records == []


# -- the widget -----------------------------------------------------------------------------------


def test_the_widget_plays_a_level_by_its_buttons():
    """Every move has one; illegal ones answer instead of being dead."""
    desk = Scheduler(levels(), Progress())
    assert set(desk.buttons) == set(MOVES)
    desk.buttons[TRANSFER_ARRIVES].click()
    assert "Not possible" in desk.line.value
    coloured = {move for move, each in desk.buttons.items() if each.button_style}
    assert coloured == {SEND_FLOW}
    for move in desk.game.level.found.shortest:
        desk.buttons[move].click()
    assert "✔ Done" in desk.line.value
    assert desk.choice.label.startswith("✔ 1. ")
    desk.open_button.click()
    assert desk.place.children == (desk.shown,)
    assert "your schedule" in desk.shown.still()
    desk.choice.value = "rule"
    assert not desk.place.children
    desk.cannot.click()
    assert "✔ Right, it cannot be done" in desk.line.value
    desk.choice.value = "add"
    assert desk.game.over


def test_all_schedules_open_when_the_level_is_done_with_the_players_path_on_top():
    """Before, the picture would give the answer away; after, it is the proof."""
    desk = Scheduler(levels(), Progress())
    assert desk.all.disabled
    for move in desk.game.level.found.shortest:
        desk.buttons[move].click()
    desk.all.click()
    assert desk.shown.view.path == desk.game.level.found.shortest
    desk.choice.value = "rule"
    assert desk.all.disabled
    desk.cannot.click()
    desk.all.click()
    assert f"{desk.game.level.found.states} states, none of them bad" in repr(desk.shown)
    desk.undo.click()
    assert desk.shown is None
    assert desk.all.disabled


@pytest.mark.parametrize("name", NAMES)
def test_every_level_opens_in_stepper_and_lattice(name):
    """The real broker can play each, whatever its rule and its beginning."""
    log = Progress()
    desk = Scheduler([level_named(name)], log)
    for move in desk.game.level.found.shortest or (SEND_FLOW,):
        desk.buttons[move].click()
    desk.open_button.click()
    assert "your schedule" in desk.shown.still()
    if desk.game.level.par is None:
        desk.cannot.click()
    desk.all.click()
    assert desk.shown.found.states == desk.game.level.found.states


def test_without_a_kernel_the_board_stays():
    """As text."""
    bundle = Scheduler(levels(), Progress())._repr_mimebundle_()
    texts = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "furthest limit ever granted" in texts["text/plain"]
    assert "Possible now: receiver sends its next flow." in texts["text/plain"]
