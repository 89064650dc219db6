"""What exercises and lessons say stands in tables: no sentence of theirs is left in Python."""

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.test_languages import texts_in
from workbench.exercises.readers import FAULTY
from workbench.lessons.table import LESSONS, words_of

# Words of widgets, of an operating system, and of a row.
NO_SENTENCE = {"row wrap", "Application Support", "flow sent"}
# They write a file that is in the repository, and in English.
WRITERS = {"spark_record", "instructors", "declare"}
SOURCES = [
    path
    for folder in ("exercises", "lessons")
    for path in sorted((REPO / "workbench" / folder).glob("*.py"))
    if path.stem not in WRITERS
]


def names() -> set[str]:
    """The names of misconceptions and of readers: the log keeps them, and they are its keys."""
    found = {reader.name for reader in FAULTY}
    for lesson in LESSONS:
        words = words_of(lesson.number)
        for table in (*words.values(), *words["check"].values()):
            wrong = table.get("wrong", {})
            found |= set(wrong) if isinstance(wrong, dict) else set()
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_sentence_of_an_exercise_or_a_lesson_stands_in_its_source(path: Path):
    """Two plain words in a row are a sentence, but in code, in a style, and in a name."""
    tree = ast.parse(path.read_text("utf-8"))
    texts = set(texts_in(tree)) - {
        one.value.value
        for one in ast.walk(tree)
        if isinstance(one, ast.keyword)
        and one.arg == "belief"
        and isinstance(one.value, ast.Constant)
    }
    said = {text for text in texts if re.search("[A-Za-z]{3,}[,.;:]? [A-Za-z]{3,}", text)}
    assert {text for text in said if not re.search("[{<(=_]", text)} - names() <= NO_SENTENCE
