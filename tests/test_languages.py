"""Words stand in one place for each language; no other one says what English does not."""

import ast
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import pairwise
from string import Formatter
from typing import Any

import nbformat
import pytest

import workbench.languages
from tests.conftest import REPO
from workbench import lesson_map
from workbench.cli import main
from workbench.exercises.working_copies import make_copies
from workbench.languages import (
    ENGLISH,
    HERE,
    VARIABLE,
    LanguageError,
    language,
    languages,
    on_page,
    told,
    words,
    words_in,
)
from workbench.lessons.table import LESSONS
from workbench.notebook import PlainError
from workbench.scenarios import ParameterError, get, names, run
from workbench.scenarios.declare import REFUSALS
from workbench.sim.lanes import WireError
from workbench.trace.explain import explain
from workbench.views.static_html import stage_module

PACKAGE = REPO / "workbench"
VIEWS = PACKAGE / "views"
NOTEBOOKS = REPO / "notebooks"
DRAWN = [*sorted((VIEWS / "stage").glob("*.ts")), VIEWS / "presenter.js"]
SAYING = [path for path in sorted(VIEWS.glob("*.py")) if "say(" in path.read_text("utf-8")]
OTHERS = [name for name in languages() if name != ENGLISH]
TRANSLATED = sorted(
    (name, path.stem)
    for name in OTHERS
    for path in (HERE / name).glob("*.toml")
    if (HERE / ENGLISH / path.name).is_file()
)


def leaves(table: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every text, number and list of a table, with the keys that lead to it.

    A text may have forms, of which one is `plain`: they are one text.
    """
    if isinstance(table, Mapping) and "plain" not in table:
        for key, value in table.items():
            yield from leaves(value, (*way, key))
    else:
        yield way, table


def facts_in(text: Any) -> set[str]:
    """The facts that a text, or a list of texts, names."""
    texts = text if isinstance(text, list) else [text]
    named = {name for one in texts for _, name, _, _ in Formatter().parse(str(one)) if name}
    return {name[:1].lower() + name[1:] for name in named}


def without_comments(source: str) -> str:
    """A TypeScript source without what is said to its readers."""
    return re.sub(r"/\*.*?\*/|(?m:^\s*//[^\n]*$)", "", source, flags=re.DOTALL)


def phrases_called(source: str) -> set[str]:
    """The keys in the calls of `phrase` and `phrases`, also where one of two is chosen."""
    called = re.findall(r"\bphrases?\(((?:[^(){]|\([^()]*\))*)", source)
    return {key for call in called for key in re.findall(r'"([a-z-]+)"', call)}


def keys_in(asked: ast.expr) -> Iterator[str]:
    """The key that a call asks for, or each of two; `paging.*` where the run says its end."""
    if isinstance(asked, ast.IfExp):
        yield from keys_in(asked.body)
        yield from keys_in(asked.orelse)
    elif isinstance(asked, ast.JoinedStr):
        assert isinstance(asked.values[0], ast.Constant), ast.unparse(asked)
        yield f"{asked.values[0].value}*"
    else:
        assert isinstance(asked, ast.Constant), f"no key is seen in {ast.unparse(asked)}"
        yield asked.value


def asking_modules() -> Iterator[tuple[str, ast.Module, dict[str, str]]]:
    """The modules that ask for texts: the name, the tree, and by which names of which table.

    A module asks by `say = partial(phrase, "table")`, or another function of `languages` in the
    place of `phrase`; others import that name from it.
    """
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    asking = {
        (path.stem, name): table
        for path, source in sources.items()
        for name, table in re.findall(
            r"(?m)^(\w+) = partial\((?:phrase|piece|has), \"(.+)\"\)$", source
        )
    }
    asking["declare", "unless"] = "refusals"  # which says a refusal when an act is asked for
    called = re.compile(rf"\b({'|'.join({name for _, name in asking})})\(")
    for path, source in sources.items():
        if not called.search(source):
            continue
        tree = ast.parse(source)
        names = {name: table for (stem, name), table in asking.items() if stem == path.stem}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                stem = node.module.rpartition(".")[2]
                for one in node.names:
                    if (stem, one.name) in asking:
                        names[one.asname or one.name] = asking[stem, one.name]
        yield ".".join(path.relative_to(REPO).with_suffix("").parts), tree, names


def asked_of(node: Any, names: Mapping[str, str]) -> str | None:
    """The table of which a node of a tree asks a text; None if it asks for none."""
    function = node.func if isinstance(node, ast.Call) else None
    return names.get(function.id) if isinstance(function, ast.Name) else None


def texts_said() -> dict[str, set[str]]:
    """The keys that the package asks for, by table."""
    said: dict[str, set[str]] = {}
    for _, tree, asking in asking_modules():
        for node in ast.walk(tree):
            table = asked_of(node, asking)
            if table is not None:
                said.setdefault(table, set()).update(keys_in(node.args[0]))
    return said


# Texts that are not said but looked up, with their tables.
LOOKED_UP = {"asking": {"unit", "untouched", "unanswered", "confidence.*"}}


def test_every_text_of_a_table_is_said_and_no_other():
    """A text that nobody asks for is dead; to ask for one that the table has not is an error."""
    said = texts_said()
    assert {"asking", "steps", "steps_link", "steps_queue"} <= said.keys()
    for table, asked in said.items():
        texts = {".".join(way) for way, _ in leaves(words_in(ENGLISH, table))}
        wanted = asked | LOOKED_UP.get(table, set())
        dead = [text for text in texts if not any(fnmatchcase(text, key) for key in wanted)]
        missing = [key for key in asked if not any(fnmatchcase(text, key) for text in texts)]
        assert (dead, missing) == ([], []), f"languages/en/{table}.toml: texts not said, not there"


def test_a_text_of_a_table_ends_no_traceback():
    """Whoever is told in a learner's words need not see the way through the package."""
    kinds = {}
    for module, tree, asking in asking_modules():
        for node in ast.walk(tree):
            raised = node.exc if isinstance(node, ast.Raise) else None
            if isinstance(raised, ast.Call) and any(asked_of(one, asking) for one in raised.args):
                home = vars(importlib.import_module(module))
                kinds[f"{module}:{node.lineno}"] = eval(ast.unparse(raised.func), home)
    assert len(kinds) > 50
    plain = (PlainError, WireError, *REFUSALS)
    assert {at: kind for at, kind in kinds.items() if not issubclass(kind, plain)} == {}


def declarations() -> Iterator[str]:
    """Every text that a scenario, its parameters and acts are declared with, and misconceptions."""
    for scenario in map(get, names()):
        yield from (scenario.english_title, scenario.english)
        yield from (act.english for act in scenario.actions)
        acts = [act.parameters for act in scenario.actions]
        for one in itertools.chain(scenario.parameters, *acts):
            yield from (one.english, one.english_label, one.unit)
            yield from (reason for _, reason in one.absent)
    for lesson in LESSONS:
        for part in words_in(ENGLISH, f"lesson_{lesson.number}").values():
            yield from part.get("wrong", ()) if isinstance(part, Mapping) else ()


@pytest.mark.parametrize(
    "path", sorted(HERE.glob("*/declared.toml")), ids=lambda path: path.parent.name
)
def test_a_language_has_texts_for_what_is_declared_and_no_other(path):
    """A text of English that was changed in its declaration leaves that of a language behind."""
    own = tomllib.loads(path.read_text("utf-8"))
    assert own
    assert own.keys() <= set(declarations())


def test_a_declaration_is_read_in_the_learners_language(speak):
    """The same scenario, declared once, with the words of the language that is asked for."""
    messages = get("credit").parameters[0]
    assert (messages.label, messages.counts) == ("messages", "messages")
    speak("de")
    assert (messages.name, messages.label, messages.unit) == ("messages", "Nachrichten", "messages")
    assert messages.doc.startswith("liegen in der Queue bereit")
    assert get("credit").title.startswith("Credit: Nichts bewegt sich")
    with pytest.raises(ParameterError, match="messages ist -1; erlaubt: 0 bis 100000 Nachrichten"):
        run("credit", parameters={"messages": -1})


def texts_in(tree: ast.AST) -> Iterator[str]:
    """The texts of a source without its docstrings, and without what f-strings put in."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


SAYS_STEPS = [
    path
    for path in sorted((PACKAGE / "trace").glob("*.py"))
    if 'partial(phrase, "steps' in path.read_text("utf-8")
]


@pytest.mark.parametrize("path", SAYS_STEPS, ids=lambda path: path.stem)
def test_no_sentence_about_a_step_stands_in_its_source(path):
    """Two plain words in a row are a sentence."""
    texts = texts_in(ast.parse(path.read_text("utf-8")))
    assert [text for text in texts if re.search("[A-Za-z]{2,} [A-Za-z]{2,}", text)] == []


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "scenarios").glob("*.py")), ids=lambda path: path.stem
)
def test_no_refusal_of_a_scenario_stands_in_its_source(path):
    """What is raised has its words from a table, and nothing else says what would be legal."""
    tree = ast.parse(path.read_text("utf-8"))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    shown = [text for one in raised for text in texts_in(one) if " " in text.strip()]
    shown += [text for text in texts_in(tree) if re.search("legal(?: now)?: ", text)]
    assert shown == [], "`refusal` says it, with words of languages/en/refusals.toml"


def test_the_stage_calls_every_phrase_and_no_other():
    """What its sources name is what the table of English has."""
    called = set().union(*(phrases_called(path.read_text("utf-8")) for path in DRAWN))
    assert called == set(words_in(ENGLISH, "stage"))


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.name)
def test_no_sentence_of_the_stage_stands_in_its_source(path):
    """Two plain words in a row, neither of them a class of the style sheets, are a sentence."""
    style = "".join(file.read_text("utf-8") for file in VIEWS.glob("*.css"))
    classes = set(re.findall(r"\.(-?[a-zA-Z][\w-]*)", style)) | {"noopener", "noreferrer", "pill"}
    source = without_comments(path.read_text("utf-8"))
    for literal in re.findall(r'"[^"\n]*"|`[^`]*`', source):
        text = re.sub(r"\$\{[^}]*\}", "$", literal.strip('"`'))
        for one, other in pairwise(re.split(r"[,.;]?\s+", text)):
            both = {one, other}
            assert both & classes or not all(re.fullmatch("[A-Za-z]{3,}", w) for w in both), text


@pytest.mark.parametrize("path", SAYING, ids=lambda path: path.name)
def test_no_sentence_of_a_view_stands_in_its_source(path):
    """Two plain words in a row are a sentence, but in a trait's help, or in code."""
    tree = ast.parse(path.read_text("utf-8"))
    helps = {
        ast.literal_eval(one.value)
        for one in ast.walk(tree)
        if isinstance(one, ast.keyword) and one.arg == "help"
    }
    texts = {text for text in texts_in(tree) if not re.search("[{<]", text)}
    said = [text for text in texts if re.search("[A-Za-z]{3,}[,.;:]? [A-Za-z]{3,}", text)]
    assert set(said) <= helps | {"row wrap"}


@pytest.mark.parametrize(("name", "table"), TRANSLATED)
def test_a_language_says_only_what_english_says(name, table):
    """In each text the same facts, and no key that English has not: it would never be read."""
    english = dict(leaves(words_in(ENGLISH, table)))
    own = dict(leaves(words_in(name, table)))
    assert own.keys() == english.keys()
    for way, text in own.items():
        for form in text.values() if isinstance(text, Mapping) else [text]:
            assert type(form) is type(english[way]), way
            assert facts_in(form) == facts_in(english[way]), way
            if isinstance(form, list):
                assert len(form) == len(english[way]), way


@pytest.mark.parametrize(
    "path",
    [path for name in OTHERS for path in (HERE / name).glob("[0-9][0-9]_*.toml")],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_the_prose_of_a_notebook_says_the_same_of_the_same(path):
    """A text for each cell of prose, with the same code, links, clauses and table rows."""
    cells = nbformat.read(NOTEBOOKS / f"{path.stem}.ipynb", as_version=4).cells
    english = {cell.id: cell.source for cell in cells if cell.cell_type == "markdown"}
    own = tomllib.loads(path.read_text("utf-8"))
    assert own.keys() == english.keys()
    for name, text in own.items():
        for kept in (r"`[^`]+`", r"\]\(([^)]+)\)", r"\[\d[\d.]+\]", r"(?m)^(?:#+|\|)(?= )"):
            assert sorted(re.findall(kept, text)) == sorted(re.findall(kept, english[name])), name


def test_a_copy_of_a_lesson_is_in_the_learners_language(speak, tmp_path):
    """Its prose alone; in another language the copy is made anew, and what was written is kept."""
    (tmp_path / "notebooks").mkdir()
    shutil.copy(NOTEBOOKS / "01_credit.ipynb", tmp_path / "notebooks")
    copy = tmp_path / "my" / "01_credit.ipynb"
    make_copies(tmp_path)
    first = nbformat.read(copy, as_version=4)
    speak("de")
    assert make_copies(tmp_path, renew=True) == []
    second = nbformat.read(copy, as_version=4)
    assert second.cells[0].source.startswith("# Credit von Hand vergeben")
    code = [[c.source for c in one.cells if c.cell_type == "code"] for one in (first, second)]
    assert code[0] == code[1]
    assert make_copies(tmp_path, renew=True) == []
    assert nbformat.read(copy, as_version=4) == second


def told_steps() -> list[str]:
    """What the steps of lesson 01's runs say: grants by hand, and each rule of granting."""
    begun = run("credit", seed=1)
    granted = begun.act(begun.start_seq, "grant", link_credit=3)
    stopped = granted.act(len(granted.rows) - 1, "grant", link_credit=0)
    policies = ("one-at-a-time", "batch-then-wait", "top-up-at-half")
    played = [run("credit", "rmq4.3", {"policy": policy, "n": 5}) for policy in policies]
    return [step.sentence for one in (stopped, *played) for step in explain(one.rows)]


def test_each_step_of_lesson_01_is_said_in_the_samples_language(speak):
    """None of its sentences is English there."""
    english = told_steps()
    speak("de")
    own = told_steps()
    assert len(own) == len(english) > 100
    assert set(own).isdisjoint(english)


# What no learner reads: names and settings, and notes for those who teach.
NOT_SHOWN = {"name", "minutes", "instructors", "kept_as", "search", "unit"}


@pytest.mark.parametrize("table", ["stage", "lesson_01"])
def test_the_sample_is_whole_where_it_says_so(table):
    """The stage's words and those of lesson 01 have their German twins."""
    own = dict(leaves(tomllib.loads((HERE / "de" / f"{table}.toml").read_text("utf-8"))))
    english = dict(leaves(words_in(ENGLISH, table)))
    assert [".".join(way) for way in english if way not in own and way[-1] not in NOT_SHOWN] == []


def test_what_a_language_leaves_out_is_english(speak):
    """A text of a table that it has, and a table that it has not."""
    speak("de")
    assert (
        words("lesson_01")["lesson"]["minutes"]
        == words_in(ENGLISH, "lesson_01")["lesson"]["minutes"]
    )
    assert (
        words("lesson_01")["lesson"]["title"] != words_in(ENGLISH, "lesson_01")["lesson"]["title"]
    )
    assert words("lesson_02") == words_in(ENGLISH, "lesson_02")
    assert "Vorhersage" in stage_module()
    assert "Übersetzungsprobe" in lesson_map(NOTEBOOKS)._repr_html_()


def test_a_language_of_which_there_are_no_words_is_refused(speak, capsys):
    """With the names of those that there are; and the command line calls it no mistake of ours."""
    speak("xx")
    with pytest.raises(LanguageError, match=r"'xx'.*: de, en"):
        language()
    assert main(["scenarios", "credit"]) == 1
    assert capsys.readouterr().err.startswith("workbench scenarios: WORKBENCH_LANGUAGE is 'xx'")


def test_a_folder_with_one_table_is_a_language(speak, monkeypatch, tmp_path):
    """All else is English there."""
    shutil.copytree(HERE / ENGLISH, tmp_path / ENGLISH)
    (tmp_path / "fr").mkdir()
    (tmp_path / "fr" / "stage.toml").write_text('predict = "Prédire"\n', "utf-8")
    monkeypatch.setattr(workbench.languages, "HERE", tmp_path)
    languages.cache_clear()
    speak("fr")
    try:
        assert words("stage") == {**words_in(ENGLISH, "stage"), "predict": "Prédire"}
        assert words("cards") == words_in(ENGLISH, "cards")
    finally:
        languages.cache_clear()


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("{n:message}", 8000, "8,000 messages"),
        ("{n:kein Frame/1 Frame/# Frames}", 8000, "8,000 Frames"),
        ("{n:,} ready", 8000, "8,000 ready"),
        ("{n:,} ready", -8000, "\u22128,000 ready"),
        ("from {n}", -6, "from \u22126"),
        ("{n:.1f} ms", -0.5, "\u22120.5 ms"),
        ("delivery-count {n}", 4294967294, "delivery-count 4294967294"),
        ("-{n}", "a-b", "-a-b"),
    ],
)
def test_a_number_is_written_in_one_way(text, given, said):
    """What it counts has separators, a serial number none; below zero it has a minus sign."""
    assert told(text, {"n": given}) == said


def test_a_noun_with_more_forms_is_written_out():
    """For none, for one and for any other number."""
    text = "{n:keine Nachricht/eine Nachricht/# Nachrichten}"
    assert [told(text, {"n": n}) for n in (0, 1, 3)] == [
        "keine Nachricht",
        "eine Nachricht",
        "3 Nachrichten",
    ]


def test_what_stands_in_backticks_is_code_on_a_page_and_nothing_else_is_markup():
    """A mark without its second one stays as it is."""
    assert on_page("put `a < b` there") == "put <code>a &lt; b</code> there"
    assert on_page("<b> and `") == "&lt;b&gt; and `"


ASKED = """
from workbench import run
from workbench.exercises.question import judge
from workbench.lessons.lesson_01 import predict
question = predict.after_grant.question(run("credit"), link_credit=3)
print(question.text)
print(judge(1, question.solve()).text)
"""


@pytest.mark.slow
def test_a_lesson_is_asked_and_judged_in_another_language():
    """The question's text and the words on a wrong answer."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED], env={**os.environ, VARIABLE: "de"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Wie viele transfers folgen" in done.stdout
    assert "Das wäre ein flow mit link-credit 1" in done.stdout
