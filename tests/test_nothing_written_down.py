"""Nothing that a lesson shows is written down: change one constant, and everything follows."""

import ast
import dataclasses
import re
from pathlib import Path

import nbformat
import pytest

from workbench import presets, serial
from workbench.amqp10 import flow
from workbench.exercises.audit import LEDGERS, audit, audited_run
from workbench.exercises.compare import compare_rules
from workbench.exercises.levels import levels
from workbench.exercises.progress import Progress
from workbench.exercises.scheduler import Game
from workbench.lessons import lesson_01, lesson_02, lesson_03
from workbench.lessons.lesson_02 import CROSSING, orders, searched, wrap_verdicts
from workbench.scenarios import beliefs, link_model, rules, run
from workbench.trace.explain import explain
from workbench.views.scene import near_seam, scene
from workbench.views.stills import scene_still

REPO = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((REPO / "notebooks").glob("*.ipynb"))
LESSONS = [path for path in NOTEBOOKS if path.stem[0].isdigit() and path.stem != "00_index"]
EXERCISES = REPO / "workbench" / "exercises"
DECLARED = REPO / "workbench" / "lessons"
SOURCES = [*EXERCISES.glob("*.py"), *DECLARED.glob("*.py")]


def preset(**changes) -> presets.Preset:
    """The preset `spec` with some constants changed."""
    return dataclasses.replace(presets.get("spec"), **changes)


def arrival_of_flow(played) -> int:
    """`seq` of the row in which the sender takes in the first grant."""
    return next(
        row.seq
        for row in played.rows
        if row.kind == "flow" and row.event == "received" and row.vantage == "broker"
    )


def shown(played, seq: int) -> str:
    """Everything that the stage shows at a row, as text: counters, wire, formula, sentences."""
    return scene_still(scene(played.rows), seq)


def explanation(played, seq: int):
    """What is said about a row."""
    return list(explain(played.rows))[seq]


@pytest.mark.parametrize("count", [0, 20, 4294967294])
def test_the_first_delivery_count_reaches_ledger_formula_and_words(count):
    """initial_delivery_count of the preset: numbers in the ledgers, in the formula, in the text."""
    queue = run("credit", preset(initial_delivery_count=count))
    granted = queue.act(queue.start_seq, "grant", link_credit=6)
    flow = arrival_of_flow(granted)
    assert explanation(granted, flow).formula == f"{count} + 6 − {count} = 6"
    still = shown(granted, flow)
    assert near_seam(f"{count} + 6 − {count} = 6") in still
    assert still.count(f"delivery-count {count},") == 2
    attach = [row.seq for row in queue.rows if row.kind == "attach" and row.vantage == "broker"]
    words = [explanation(queue, seq).sentence for seq in attach]
    assert any(str(count) in sentence for sentence in words), words


@pytest.mark.parametrize("messages", [10, 7, 2])
def test_the_number_of_messages_reaches_ledger_sentence_prediction_and_check(messages):
    """messages of the preset: what is left of the credit, the question, its answer, the verdict."""
    queue = run("credit", preset(messages=messages))
    asked = lesson_01.predict.after_grant.question(queue, 12)
    assert asked.solve().answer == messages
    assert f"link-credit {12 - messages}" in asked.solve().reason
    silent = lesson_01.predict.before_any_flow.question(queue)
    assert silent.text.startswith(f"{messages} messages are ready")
    assert silent.solve().beliefs[0].answer == messages

    granted = queue.act(queue.start_seq, "grant", link_credit=12)
    last = granted.rows[-1].seq
    assert shown(granted, last).count(f"link-credit {12 - messages}") >= 2
    sentences = " ".join(each.sentence for each in explain(granted.rows))
    assert f"{12 - messages} left" in sentences
    verdict = lesson_01.check.never_more_than(granted, 12, log=Progress())
    assert f"All {messages} messages arrived with 1 flow," in verdict.text


@pytest.mark.parametrize(("credit", "at"), [(200, 100), (30, 12)])
def test_the_article_s_numbers_reach_frames_formula_and_words(credit, at):
    """top_up_credit and top_up_at of the preset: what the flows carry, and when they are sent."""
    numbers = preset(top_up_credit=credit, top_up_at=at)
    played = run("credit", numbers, {"messages": credit + 50, "policy": "article-200-100"})
    flows = [row for row in played.rows if row.kind == "flow" and row.event == "received"]
    flows = [row for row in flows if row.vantage == "broker"]
    assert [row.frame["link_credit"] for row in flows[:2]] == [credit, credit]
    first, second = (explanation(played, row.seq) for row in flows[:2])
    assert first.formula == f"0 + {credit} − 0 = {credit}"
    assert second.formula.startswith(f"{credit - at} + {credit} − ")
    assert f"grants {credit}" in first.sentence or str(credit) in first.sentence
    assert str(credit) in shown(played, flows[0].seq)


def test_the_queue_s_pace_reaches_the_table_the_prediction_and_the_check():
    """queue_deliver_us of the preset: a slower queue needs a smaller N, and throughput falls."""
    given = {"messages": 120, "latency_us": 1000}
    smallest = {}
    for pace in (100, 400):
        numbers = preset(queue_deliver_us=pace)
        tries = (
            n
            for n in range(1, 80)
            if lesson_01.check.smallest_n(n, preset=numbers, log=Progress(), **given).right
        )
        smallest[pace] = next(tries)
    assert smallest[400] < smallest[100]
    answer, slow = smallest[100], preset(queue_deliver_us=400)
    verdict = lesson_01.check.smallest_n(answer, preset=slow, log=Progress(), **given)
    assert verdict.right is False
    assert "there is a smaller one" in verdict.text

    fast, slower = (compare_rules(**given, n=60, preset=each) for each in ("spec", slow))
    assert slower.rates["top-up-at-half"] < fast.rates["top-up-at-half"] / 3
    assert str(fast) != str(slower)
    reasons = [
        lesson_01.predict.fastest_rule.question(each).solve().reason for each in (fast, slower)
    ]
    assert reasons[0] != reasons[1]


# -- lesson 02: another rule, other results -------------------------------------------------------

SIZE = {"messages": 10, "grants": [3, 6]}


@pytest.fixture
def set_is_right(monkeypatch):
    """The sender's rule `set` becomes the specification's; nothing else changes."""
    right = dataclasses.replace(rules.RULES["set"], rule=rules.RULES["spec"].rule)
    changed = {**rules.RULES, "set": right}
    monkeypatch.setattr(rules, "RULES", changed)
    return changed


def shown_of_the_race() -> dict[str, object]:
    """What lesson 02 shows and answers about rule `set`."""
    race = run("race", parameters={"initial_delivery_count": 20, "first_credit": 3, "grants": "6"})
    found = searched(**SIZE, rule="set")
    return {
        "crossing": lesson_02.predict.crossing.question(race).solve().beliefs[1].answer,
        "orders": orders(race).differing("set"),
        "which order": lesson_02.predict.which_order.question(race, "set").solve().answer,
        "states": (found.states, found.bad, found.shortest),
        "bad states": lesson_02.predict.bad_states.question(**SIZE, rule="set").solve().answer,
        "passing": lesson_02.predict.passing_rules.question(**SIZE).solve().answer,
        # A sender by this rule may send more than was ever granted; a right one may not.
        "counterexample": found.shortest,
    }


def test_another_rule_changes_everything_that_lesson_02_shows(set_is_right):
    """With `set` made right no run differs, no state is bad, no schedule contradicts it."""
    shown = shown_of_the_race()
    assert shown == {
        "crossing": 5,
        "orders": [],
        "which order": "in no order",
        "states": (searched(**SIZE).states, 0, None),
        "bad states": "none",
        "passing": 2,
        "counterexample": None,
    }


def test_without_that_change_each_of_them_is_another():
    """The test above sees a difference, not a constant."""
    shown = shown_of_the_race()
    assert shown["crossing"] == 6
    assert shown["orders"] == list(CROSSING)
    assert shown["which order"] == "only if the frames cross"
    assert shown["states"] != (searched(**SIZE).states, 0, None)
    assert shown["bad states"] == "half of them or more"
    assert shown["passing"] == 1
    assert shown["counterexample"]


@pytest.mark.parametrize(("first", "grant"), [(3, 6), (5, 9), (1, 1)])
def test_the_numbers_of_the_race_reach_question_answer_and_beliefs(first, grant):
    """first_credit and grants of the scenario: the question, the formula, each wrong answer."""
    given = {"initial_delivery_count": 7, "first_credit": first, "grants": str(grant)}
    asked = lesson_02.predict.crossing.question(run("race", parameters=given))
    assert f"link-credit {first}" in asked.text
    assert f"flow(delivery-count=7, link-credit={grant})" in asked.text
    solution = asked.solve()
    assert solution.answer == grant - 1
    assert f"7 + {grant} − 8 = {grant - 1}" in solution.reason
    assert [belief.answer for belief in solution.beliefs] == [first - 1 + grant, grant, first - 1]


@pytest.mark.parametrize("credit", [3, 5])
def test_the_size_of_the_grants_reaches_audit_and_answer(credit):
    """link_credit of the audited run: every number in the table moves with it."""
    audited = audit(audited_run(credit))
    assert [line.credit[LEDGERS] for line in audited.lines if line.kind == "transfer"][
        :credit
    ] == list(range(credit - 1, -1, -1))
    assert f"link-credit={credit + credit}" in str(audited)
    noticed = lesson_02.predict.noticed.question(audited_run(credit), "counts from zero").solve()
    assert noticed.answer == len(audited.stalls("counts from zero"))


def test_another_subtraction_changes_the_table_of_beginnings(monkeypatch):
    """With `naive` made right, no beginning is bad any more."""
    assert "✘" in str(wrap_verdicts([2**32 - 2], **SIZE))
    right = dataclasses.replace(rules.RULES["naive"], rule=rules.RULES["spec"].rule)
    monkeypatch.setattr(rules, "RULES", {**rules.RULES, "naive": right})
    assert "✘" not in str(wrap_verdicts([2**32 - 2], **SIZE))


def test_the_check_of_a_sender_runs_the_model(monkeypatch):
    """With a model in which nothing is bad a greedy sender passes: the verdict comes from it."""

    def greedy(state, frame):
        state.link_credit = frame.link_credit

    assert lesson_02.check.sender(greedy, **SIZE, log=Progress()).right is False
    monkeypatch.setattr(link_model.LinkModel, "bad", lambda self, state: False)
    assert lesson_02.check.sender(greedy, **SIZE, log=Progress()).right


def test_another_rule_changes_par_and_proof_of_a_level(set_is_right):
    """With `set` made right, its levels cannot be won, and the game says so."""
    by_name = {level.name: level for level in levels()}
    assert by_name["set"].par is None
    game = Game(by_name["set"], Progress())
    game.cannot()
    assert game.line.startswith("✔ Right, it cannot be done")
    assert f"{by_name['rule'].found.states:,} of them" in game.line


def test_without_that_change_the_level_can_be_won():
    """The par is the length of the shortest schedule that the search finds."""
    level = next(level for level in levels() if level.name == "set")
    assert level.par == len(searched(**SIZE, rule="set").shortest)
    game = Game(level, Progress())
    game.cannot()
    assert game.line.startswith("✘ It can be done")


# -- lesson 03: another drain, other results -------------------------------------------------------


@pytest.mark.parametrize(("ready", "credit", "start"), [(2, 5, 0), (4, 5, 20), (0, 3, 4294967294)])
def test_the_numbers_of_a_drain_reach_question_and_answer(ready, credit, start):
    """Ready messages, credit and first count: what comes, and where delivery-count stands."""
    queue = run("credit", parameters={"messages": ready, "initial_delivery_count": start})
    brings = lesson_03.predict.drain_brings.question(queue, credit)
    assert f"grants {credit}" in brings.text
    assert brings.solve().answer == ready
    counts = lesson_03.predict.drain_counts.question(queue, credit)
    assert f"delivery-count is {start}." in counts.text
    assert counts.solve().answer == serial.add(start, credit)


def test_a_sender_that_gives_nothing_back_changes_what_a_drain_shows(monkeypatch):
    """Without the step of delivery-count, answer and table count messages only."""

    def shown() -> tuple:
        queue = run("credit", parameters={"messages": 2})
        counts = lesson_03.predict.drain_counts.question(queue, 5).solve()
        return counts.answer, str(lesson_03.drain_cases([2], link_credit=5))

    answer, table = shown()
    assert answer == 5
    assert "0 → 5" in table
    monkeypatch.setattr(flow.SenderLinkFlow, "advance", lambda self: 0)
    answer, table = shown()
    assert answer == 2
    assert "0 → 2" in table


# -- the sources --------------------------------------------------------------------------------


# What looks like a number in words and is none that a run could give.
NAMES = re.compile(
    r"\d+\.\d+\.\d+"  # releases
    r"|\[\d+(?:\.\d+)*\]|RFC 1982|32-bit|IEEE Network, 1995|[Ii]n 1995"  # clauses and papers
    r"|AMQP \d(?:[-.]\d)+|\d-\d-\d|\d-\d\d"  # protocols
    r"|RabbitMQ \*{0,2}\d\.\d|\*\*RabbitMQ \d\.\d\*\*"  # versions
    r"|(?:in|and|to|[Ss]ince) \d\.\d(?!\d)"
    r"|[Ll]essons? \d\d|\[\d\d [^\]]*\]|\(\d\d_\w+\.ipynb\)|^\"?\d\d$"  # lessons
    # the lesson's own parts, and how long they take
    r"|[Ss]ections? \d(?:(?:, \d)* (?:and|to) \d)?|^#+ \d+\. |parts? \d(?: and \d)?|\d+ minutes"
    r"|article-\d+-\d+|c2b|(?:rmq|rabbit|blog)\d+\w*|lesson_\d\d|amqp\d+|\bc\d\b"  # names
    r"|[Ll]evel[= ]\d|open\(\d\)",  # levels, rows
    re.MULTILINE,
)


def numbers_in(text: str) -> list[int]:
    """The whole numbers in a text that are not part of a name."""
    plain = NAMES.sub(" ", text)
    return [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\b", plain)]


def cells_of(path: Path, kind: str) -> list:
    """The cells of a notebook of one kind."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def constants(path: Path) -> list:
    """Every constant in the code of a notebook."""
    code = "\n".join(cell.source for cell in cells_of(path, "code"))
    return [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_lesson_s_prose_holds_no_results(path):
    """Whatever number the prose names is one that a cell puts in, or one of the preset's."""
    put_in: set[int] = set()
    for value in constants(path):
        put_in |= {value} if isinstance(value, int) else set()
        put_in |= set(numbers_in(value)) if isinstance(value, str) else set()
    spec = presets.get("spec")
    put_in |= {spec.top_up_credit, spec.top_up_at, spec.wire_latency_us, spec.queue_deliver_us}
    rabbit = presets.get("rmq4.3")
    put_in |= {serial.MAX, rabbit.largest_grant, rabbit.incoming_window}
    for name in ("rmq3.5.5", "rmq3.8.4"):  # credit between processes, release by release
        old = presets.get(name)
        put_in |= {old.process_credit, old.process_regrant_after}
        put_in |= {old.store_credit, old.store_regrant_after}
    named = {
        (cell.id, number)
        for cell in cells_of(path, "markdown")
        for number in numbers_in(cell.source)
    }
    assert {place for place in named if place[1] not in put_in | {0, 1}} == set()


def known_results() -> set[int]:
    """The counts of the lesson's searches, as the explorer finds them now."""
    found = [
        searched(messages=messages, grants=grants, rule=rule)
        for messages, grants in ((10, [3, 6]), (20, [5, 5, 5, 5]))
        for rule in ("spec", "set", "add")
    ]
    return {number for one in found for number in (one.states, one.bad)} - {0}


def test_no_count_of_states_stands_in_a_lesson():
    """145, 383, 238, ... are what a search finds; no cell, question or level has them."""
    known = known_results()
    assert {145, 383, 238, 197, 136} <= known
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            assert known.isdisjoint(numbers_in(cell.source)), f"{path.stem}: {cell.id}"
    for path in (REPO / "workbench" / "languages").glob("*/*.toml"):
        assert known.isdisjoint(numbers_in(path.read_text(encoding="utf-8"))), path.stem
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                there = {node.value} if isinstance(node.value, int) else set()
                there |= set(numbers_in(node.value)) if isinstance(node.value, str) else set()
                assert known.isdisjoint(there), f"{path.stem}, line {node.lineno}"


SPELLED = {**{move: move for move in link_model.MOVES}} | {
    name: getattr(link_model, name)
    for name in ("SEND_FLOW", "SEND_TRANSFER", "TRANSFER_ARRIVES", "FLOW_ARRIVES")
}


def schedules_in(tree: ast.AST) -> list[tuple[int, list[str]]]:
    """Every literal sequence of moves, by line; moves by name or as text."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List):
            words = [
                SPELLED.get(getattr(item, "id", None) or str(getattr(item, "value", "")))
                for item in node.elts
            ]
            moves = [word for word in words if word]
            if len(moves) > 1:
                found.append((node.lineno, moves))
    return found


def test_no_counterexample_is_written_by_hand():
    """Each counterexample has a move twice; no literal sequence of moves has."""
    for name in ("adds", "sets"):
        moves = beliefs.counterexample(name).moves
        assert len(moves) > len(set(moves))
    sources = [*SOURCES, REPO / "workbench" / "scenarios" / "beliefs.py"]
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sources}
    for path in NOTEBOOKS:
        code = "\n".join(cell.source for cell in cells_of(path, "code"))
        trees[path.stem] = ast.parse(code)
    assert any(schedules_in(tree) for tree in trees.values())
    for name, tree in trees.items():
        for line, moves in schedules_in(tree):
            assert len(moves) == len(set(moves)), f"{name}, line {line}"


def test_no_notebook_compares_with_a_literal():
    """An answer in a cell would be an answer given away: cells hand over, the library judges."""
    for path in sorted((REPO / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                compared = [
                    node
                    for node in ast.walk(ast.parse(cell.source))
                    if isinstance(node, ast.Compare)
                ]
                assert compared == [], cell.id


def test_a_level_holds_what_is_given_and_nothing_that_is_found():
    """Its numbers are messages, grants and counts at the start; par and proof are worked out."""
    tree = ast.parse((EXERCISES / "levels.py").read_text(encoding="utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Level"
    ]
    given = {"messages", "grants", "initial_delivery_count", "first_credit"}
    assert len(calls) >= 5
    for call in calls:
        for keyword in call.keywords:
            held = [node.value for node in ast.walk(keyword) if isinstance(node, ast.Constant)]
            if any(isinstance(value, int) for value in held):
                assert keyword.arg in given, keyword.arg
    for level in levels():
        put_in = {level.messages, *level.grants, level.initial_delivery_count, level.first_credit}
        words = re.sub(r"\d+\.\d+\.\d+", "", f"{level.title} {level.story}")
        told = set(numbers_in(words))
        assert told <= put_in | {serial.MODULUS}, level.name
