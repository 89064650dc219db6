"""The form of a committed lesson: no outputs, short cells, more prose than code."""

import ast
import re
from pathlib import Path
from statistics import median

import nbformat
import pytest

import workbench
from workbench.lessons.table import lesson_numbered

REPO = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = sorted((REPO / "notebooks").glob("*.ipynb"))
MAX_LINES = 15
MAX_MEDIAN = 4
MAX_COLUMNS = 76  # what fits beside a closed sidebar in a window of 900 pixels
MAX_CODE_CELLS = 30


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request) -> Path:
    """Each committed notebook in turn."""
    return request.param


@pytest.fixture
def notebook(path):
    """The notebook as nbformat reads it."""
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def code_cells(notebook) -> list:
    """The cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def lines(cell) -> int:
    """How many lines of a cell say something."""
    return sum(1 for line in cell.source.splitlines() if line.strip())


def test_there_are_lessons():
    """The map of the lessons is always there; without it these tests would check nothing."""
    assert "00_index" in [path.stem for path in NOTEBOOKS]


def test_no_line_of_code_is_wider_than_a_narrow_window(notebook):
    """At 900 pixels nobody has to scroll a cell to read it."""
    wide = {
        cell.id: line
        for cell in code_cells(notebook)
        for line in cell.source.splitlines()
        if len(line) > MAX_COLUMNS
    }
    assert wide == {}


def test_the_file_is_written_as_nbformat_writes_it(path, notebook):
    """One indentation, one order, a final newline: a change of one line is a diff of one line."""
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor >= 5) == (4, True)
    assert path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"


def test_no_output_is_stored(notebook):
    """A stored output goes stale, and may be megabytes."""
    for cell in code_cells(notebook):
        assert cell.outputs == [], cell.id
        assert cell.execution_count is None, cell.id


def test_metadata_names_the_kernel_and_nothing_else(notebook):
    """No widget state, no version of somebody's Python."""
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert set(notebook.metadata.kernelspec) <= {"name", "display_name", "language"}
    assert dict(notebook.metadata.language_info) == {"name": "python"}


def test_cells_carry_tags_at_most(notebook):
    """What an editor keeps about a cell (folded, scrolled) is nobody else's business."""
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}, cell.id
        assert set(cell.metadata.get("tags", [])) <= {"widget", "raises-exception"}, cell.id


def test_cell_ids_are_words(notebook):
    """`grant-ten-credits` can be named in a review; `f3a91c07` cannot."""
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids))
    for cell_id in ids:
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", cell_id), cell_id
        assert not re.fullmatch(r"(?=.*\d)[0-9a-f]{8}", cell_id), (
            f"{cell_id} looks like a random id"
        )


def test_code_is_short_and_prose_is_plenty(notebook):
    """A lesson places what the library builds, and explains more than it runs."""
    cells = code_cells(notebook)
    lengths = [lines(cell) for cell in cells]
    too_long = [cell.id for cell in cells if lines(cell) > MAX_LINES]
    assert too_long == []
    assert median(lengths) <= MAX_MEDIAN
    assert len(cells) <= MAX_CODE_CELLS
    assert len(notebook.cells) - len(cells) > len(cells)


def test_a_check_stands_in_one_cell_alone(notebook):
    """A check keeps its outcome under one name: in two cells the later would hide the earlier."""
    calls = [
        (ast.unparse(node.func), cell.id)
        for cell in code_cells(notebook)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("check.")
    ]
    cells: dict[str, set[str]] = {}
    for name, cell_id in calls:
        cells.setdefault(name, set()).add(cell_id)
    assert {name: found for name, found in cells.items() if len(found) > 1} == {}


def test_the_first_cell_imports_from_workbench_and_does_nothing_else(notebook):
    """A learner sees in one place what the lesson uses."""
    first = code_cells(notebook)[0]
    for statement in ast.parse(first.source).body:
        if isinstance(statement, ast.ImportFrom):
            assert statement.module.split(".")[0] == "workbench", first.source
        else:
            assert isinstance(statement, ast.Import), first.source
            assert all(alias.name.split(".")[0] == "workbench" for alias in statement.names)


def test_what_the_prose_tells_to_run_can_be_run(notebook):
    """Whoever types a call that a text names finds the function imported, or made in a cell."""
    told = {
        name
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for name in re.findall(r"`[^`\n]*?\b(\w+)\(", cell.source)
    }
    names = {
        name
        for cell in code_cells(notebook)
        for node in ast.walk(ast.parse(cell.source))
        for name in (
            [alias.asname or alias.name for alias in node.names]
            if isinstance(node, ast.Import | ast.ImportFrom)
            else [node.name]
            if isinstance(node, ast.FunctionDef)
            else []
        )
    }
    assert told & set(workbench.__all__) <= names


def test_no_cell_installs_waits_or_reaches_out(notebook):
    """No magics, no shell, no path hacks, no sleep: a lesson runs anywhere and at once."""
    for cell in code_cells(notebook):
        assert not re.search(r"^\s*[%!]", cell.source, re.M), cell.id
        tree = ast.parse(cell.source)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not names & {"sleep", "system", "Popen", "urlopen", "get_ipython"}, cell.id
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                roots = [alias.name.split(".")[0] for alias in node.names]
                if isinstance(node, ast.ImportFrom):
                    roots = [(node.module or "").split(".")[0]]
                assert not set(roots) & {"os", "sys", "subprocess", "urllib", "socket", "time"}


def test_a_lesson_defines_little(notebook):
    """Classes and long functions live in the library, where tests and mypy read them."""
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            assert not isinstance(node, ast.ClassDef), cell.id
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 8, cell.id


def test_links_lead_to_files(path, notebook):
    """A link to another lesson or a file of the project is not broken."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", cell.source):
                assert (path.parent / target).exists(), f"{cell.id}: {target}"


# -- the frame of a lesson ------------------------------------------------------------------------

LESSONS = [path for path in NOTEBOOKS if path.stem[:2].isdecimal() and path.stem[:2] != "00"]


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson(request):
    """The number and the notebook of each lesson in turn."""
    path = request.param
    return path.stem[:2], nbformat.read(path, as_version=nbformat.NO_CONVERT)


def calls(notebook, name: str) -> list[tuple[str, str]]:
    """The cells that call a name, each with its first argument."""
    return [
        (cell.id, ast.unparse(node.args[0]).strip("'") if node.args else "")
        for cell in code_cells(notebook)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
    ]


def test_a_lesson_says_minutes_prerequisites_and_asks_three_questions_first(lesson):
    """A card and a recall of its own number, before anything else is asked."""
    number, notebook = lesson
    if number == "01":  # it stands after nothing, and there is nothing to recall
        assert "You need:" in notebook.cells[0].source
        assert "minutes" in notebook.cells[0].source
        return
    assert [one for _, one in calls(notebook, "lesson_card")] == [number]
    assert [one for _, one in calls(notebook, "recall")] == [number]
    order = [cell.id for cell in code_cells(notebook)]
    recalled = calls(notebook, "recall")[0][0]
    asking = re.compile(r"\b(predict|check)\.")
    asked = [cell.id for cell in code_cells(notebook) if asking.search(cell.source)]
    assert order.index(recalled) < min(map(order.index, asked))


def test_the_note_for_instructors_stands_in_the_lessons_data(lesson):
    """There `INSTRUCTORS.md` takes it from; a learner's notebook has none."""
    number, notebook = lesson
    assert lesson_numbered(number).instructors
    assert not [cell.id for cell in notebook.cells if "Note for instructors" in cell.source]


def test_a_lesson_ends_with_log_and_reset(lesson):
    """The log first, so that nobody forgets what they have not seen."""
    number, notebook = lesson
    assert [one for _, one in calls(notebook, "reset_lesson")] == [number]
    last = [cell.id for cell in code_cells(notebook)][-2:]
    log, reset = (calls(notebook, name)[0][0] for name in ("progress_log", "reset_lesson"))
    assert last == [log, reset]


def test_a_lesson_is_the_one_in_the_table(lesson):
    """Number, name and title are those from which the index and the cards are made."""
    number, notebook = lesson
    entry = lesson_numbered(number)
    assert (REPO / "notebooks" / entry.file).is_file()
    assert notebook.cells[0].source.splitlines()[0] == f"# {entry.title}"
    assert entry.able
