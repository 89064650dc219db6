"""Where an article is wrong, the lesson that follows it says so, and says what is right."""

import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent.parent / "notebooks"


@pytest.mark.parametrize(
    ("lesson", "said", "right"),
    [
        pytest.param("02_race", "decreased", r"goes \*\*up\*\*", id="delivery-count"),
        pytest.param("05_publishers", "below.* half", "at most half", id="when a broker grants"),
        pytest.param("03_drain", "properties", "active", id="a property of a flow"),
        pytest.param(
            "04_windows", "no new connection can be opened", "It can", id="an alarm in 0-9-1"
        ),
        pytest.param(
            "08_alarms",
            "prevents opening new connections",
            "a connection can be opened",
            id="at length",
        ),
        pytest.param(
            "03_drain", "article has it in every flow", "answers to drain and echo", id="available"
        ),
        pytest.param("04_windows", "up to 4 billion", "2,147,483,647", id="the largest credit"),
        pytest.param(
            "01_credit", "all consumers of a channel", "each consumer's own", id="basic.qos"
        ),
        pytest.param(
            "09_qpid", "the client is disconnected", "the connection stays", id="Qpid's hard limit"
        ),
        pytest.param(
            "08_alarms", "first phase of paging stops", "handed out go all the same", id="paging"
        ),
        pytest.param(
            "08_alarms", "above the batch size is enough", "than are permitted", id="positions"
        ),
        pytest.param(
            "08_alarms", "fsync by a timer of its message store", "the queue's", id="fsync"
        ),
    ],
)
def test_a_wrong_line_of_an_article_is_corrected_where_the_lesson_follows_it(lesson, said, right):
    """In one cell: what the article says, and what is so."""
    notebook = nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4)
    texts = [" ".join(cell.source.split()) for cell in notebook.cells]
    found = [text for text in texts if "article" in text and re.search(said, text)]
    assert any(re.search(right, text) for text in found)


@pytest.mark.parametrize(
    ("lesson", "told", "mark"),
    [
        ("02_race", "what the paper itself says", "not verified"),
        ("03_drain", "an answer to an echo", "not verified"),
        ("06_amqp091", "before an acknowledgement gets at the shared writer", "hypothesis"),
        ("08_alarms", "none of its own start scripts sets it", "was not verified"),
    ],
)
def test_what_nobody_has_verified_is_told_as_such(lesson, told, mark):
    """In the same cell: no lesson makes a fact of it."""
    notebook = nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4)
    texts = [" ".join(cell.source.split()) for cell in notebook.cells]
    assert any(mark in text for text in texts if told in text)


def test_whoever_reads_of_basic_qos_is_told_whose_limit_it_is():
    """RabbitMQ's is each consumer's, where the specification's and the article's is a channel's."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if "basic.qos" in cell.source:
                assert "each consumer" in " ".join(cell.source.split()), (path.name, cell.id)
