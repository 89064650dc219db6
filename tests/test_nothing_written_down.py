"""Nothing that a lesson shows is written down: change one constant, and everything follows."""

import ast
import dataclasses
import re
from pathlib import Path

import nbformat
import pytest

from workbench import presets
from workbench.exercises import credit_check, credit_predict
from workbench.exercises.compare import compare_rules
from workbench.exercises.progress import Progress
from workbench.scenarios import run
from workbench.trace.explain import explain
from workbench.views.stepper_doc import build
from workbench.views.stills import text_still

REPO = Path(__file__).resolve().parent.parent
LESSON = REPO / "notebooks" / "01_credit.ipynb"


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
    """Everything that the stepper shows at a row, as text: ledgers, wire, formula, sentences."""
    return text_still(build(played.rows), seq + 1)


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
    assert f"{count} + 6 − {count} = 6" in still
    assert re.search(rf"delivery-count +{count} +{count}\n", still)
    attach = [row.seq for row in queue.rows if row.kind == "attach" and row.vantage == "broker"]
    words = [explanation(queue, seq).sentence for seq in attach]
    assert any(str(count) in sentence for sentence in words), words


@pytest.mark.parametrize("messages", [10, 7, 2])
def test_the_number_of_messages_reaches_ledger_sentence_prediction_and_check(messages):
    """messages of the preset: what is left of the credit, the question, its answer, the verdict."""
    queue = run("credit", preset(messages=messages))
    asked = credit_predict.after_grant.question(queue, 12)
    assert asked.solve().answer == messages
    assert f"link-credit {12 - messages}" in asked.solve().reason
    silent = credit_predict.before_any_flow.question(queue)
    assert silent.text.startswith(f"{messages} messages are ready")
    assert silent.solve().beliefs[0].answer == messages

    granted = queue.act(queue.start_seq, "grant", link_credit=12)
    last = granted.rows[-1].seq
    assert re.search(rf"link-credit +{12 - messages} +{12 - messages}\n", shown(granted, last))
    sentences = " ".join(each.sentence for each in explain(granted.rows))
    assert f"{12 - messages} left" in sentences
    verdict = credit_check.never_more_than(granted, 12, log=Progress())
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
            if credit_check.smallest_n(n, preset=numbers, log=Progress(), **given).right
        )
        smallest[pace] = next(tries)
    assert smallest[400] < smallest[100]
    answer, slow = smallest[100], preset(queue_deliver_us=400)
    verdict = credit_check.smallest_n(answer, preset=slow, log=Progress(), **given)
    assert verdict.right is False
    assert "there is a smaller one" in verdict.text

    fast, slower = (compare_rules(**given, n=10, preset=each) for each in ("spec", slow))
    assert slower.rates["article-200-100"] < fast.rates["article-200-100"] / 3
    assert str(fast) != str(slower)
    reasons = [credit_predict.fastest_rule.question(each).solve().reason for each in (fast, slower)]
    assert reasons[0] != reasons[1]


# -- the sources --------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [credit_predict, credit_check])
def test_questions_and_checks_hold_no_numbers(module):
    """No whole number but 0 and 1, in code or in words: everything else comes from a run."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    found = [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ]
    assert [place for place in found if place[1] not in (0, 1)] == []
    texts = [
        (node.lineno, number)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for number in numbers_in(node.value)
    ]
    assert [place for place in texts if place[1] not in (0, 1)] == []


# What looks like a number in words and is none that a run could give.
NAMES = re.compile(
    r"\[\d+(?:\.\d+)*\]"  # a clause
    r"|AMQP \d(?:[-.]\d)+|\d-\d-\d|\d-\d\d"  # protocols
    r"|RabbitMQ \*{0,2}\d\.\d|in \d\.\d|\*\*RabbitMQ \d\.\d\*\*"  # versions
    r"|lessons? \d\d|\[\d\d [^\]]*\]|\(\d\d_\w+\.ipynb\)|^\"?\d\d$"  # lessons
    r"|section \d|^#+ \d+\. |parts? \d(?: and \d)?|About \d+ minutes"  # the lesson's own parts
    r"|article-\d+-\d+|c2b|rmq\d+\w*",  # names
    re.MULTILINE,
)


def numbers_in(text: str) -> list[int]:
    """The whole numbers in a text that are not part of a name."""
    plain = NAMES.sub(" ", text)
    return [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\b", plain)]


def test_the_lesson_s_prose_holds_no_results():
    """Whatever number the prose names is one that a cell puts in, or one of the preset's."""
    notebook = nbformat.read(LESSON, as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    put_in = {
        node.value
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant) and isinstance(node.value, int)
    }
    spec = presets.get("spec")
    put_in |= {spec.top_up_credit, spec.top_up_at, spec.wire_latency_us, spec.queue_deliver_us}
    named = {
        (cell.id, number)
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for number in numbers_in(cell.source)
    }
    assert {place for place in named if place[1] not in put_in | {0, 1}} == set()


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
