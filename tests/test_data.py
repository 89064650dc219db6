"""The data that comes with the project: small, real, and described file by file."""

import json
import re
from pathlib import Path

import pytest

from workbench.capture.importer import import_capture
from workbench.folds.questions import QUESTIONS
from workbench.folds.vantage import LinkKey
from workbench.trace.schema import BROKER, COLUMNS

DATA = Path(__file__).resolve().parent.parent / "data"
MOST_OCTETS = 5_000_000
FILES = sorted(path for path in DATA.rglob("*") if path.is_file() and path.name != "README.md")
CAPTURES = sorted((DATA / "captures").glob("*.pcapng"))
OLDER = sorted((DATA / "captures" / "amqp091").glob("*.pcapng"))


def test_the_sample_is_small():
    """Whoever clones the project gets all of it, on a slow line too."""
    assert sum(path.stat().st_size for path in FILES) < MOST_OCTETS
    assert FILES


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_capture_is_of_the_broker_that_it_names(path):
    """The broker's open says product and version; the description says the same."""
    rows = import_capture(path).rows
    said = next(row for row in rows if row.kind == "open" and row.from_peer == BROKER)
    properties = said.extra["properties"]
    assert properties["product"] == "RabbitMQ"
    version = properties["version"]
    assert path.stem.startswith(f"rmq{version[0]}{version[2]}_")
    listed = (DATA / "captures" / "README.md").read_text(encoding="utf-8")
    assert f"| `{path.stem}` | {version} |" in listed


@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_a_capture_of_0_9_1_says_in_its_manifest_how_many_connections_it_has(path):
    """The import finds as many, and all but one speak it: that one is refused by its header."""
    manifest = json.loads(path.with_suffix(".manifest.json").read_text(encoding="utf-8"))
    assert manifest["protocol"] == "0-9-1"
    connections = import_capture(path).report.connections
    assert len(connections) == len(manifest["connections"])
    others = [one.protocol for one in connections if one.protocol != "amqp-0-9-1"]
    assert others == (["amqp-0-10"] if "errors" in path.stem else [])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_is_described(path):
    """By its name, or by what the names of its kind are."""
    text = "".join(each.read_text(encoding="utf-8") for each in DATA.rglob("README.md"))
    stem, _, kind = path.name.partition(".")
    named = f"{path.parent.name}/{path.name}" in text
    assert named or (f"`{stem}`" in text and f"`NAME.{kind}`" in text)


def test_every_column_and_field_has_a_line():
    """Name, type, whether it may be null, and what it means."""
    text = (DATA / "README.md").read_text(encoding="utf-8")
    for column in (*COLUMNS, *(inner for outer in COLUMNS for inner in outer.fields)):
        line = re.search(rf"^\| `{column.name}` \|.*\|$", text, re.M)
        assert line, column.name
        assert len(line[0].split(" | ")) == 5


# What names a link and a row of the trace is told once, for all questions.
TOLD_ONCE = {*LinkKey._fields, "seq", "frame_id"}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_defined(name):
    """In a section of its own, which names each column of the answer."""
    text = (DATA / "README.md").read_text(encoding="utf-8")
    section = re.search(rf"^### `{name}`.*?(?=^###? )", text, re.M | re.S)
    assert section, f"data/README.md defines the questions: ### `{name}`: ..."
    named = set(re.findall(r"\w+", section[0]))
    assert set(QUESTIONS[name].columns) - TOLD_ONCE - named == set()


def test_every_recorded_answer_is_described():
    """Each trace and each question of the record has a line, and each column is named."""
    text = (DATA / "README.md").read_text(encoding="utf-8").partition("## Recorded answers")[2]
    answers = json.loads((DATA / "answers" / "lesson_10.json").read_text(encoding="utf-8"))
    for trace, questions in answers["answers"].items():
        assert f"| `{trace}` |" in text
        for question, rows in questions.items():
            line = re.search(rf"^\| `{question}` \|.*$", text, re.M)
            assert line, question
            if question != "stalls":
                assert all(f"`{name}`" in line[0] for name in rows[0])
