"""Whoever gives a question, a check or another function something else is told what is wanted."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

import pytest

import workbench
from tests.conftest import REPO
from workbench import (
    ask_trace,
    background,
    bar_chart,
    brake_chart,
    classroom,
    credit_chart,
    curve_chart,
    export,
    follow,
    frozen_wire,
    import_capture,
    lattice_of,
    lattices,
    look,
    open_row,
    order_lines,
    read_trace,
    run,
    scheduler,
    serve,
    share_code,
    stack,
    stage,
    time_chart,
    transcript,
    try_sender,
)
from workbench.exercises.checks import Judge
from workbench.exercises.mystery import Mystery
from workbench.exercises.spark_answers import Answer
from workbench.exercises.timeout import timed_get
from workbench.languages import has
from workbench.lessons import (
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_07,
    lesson_08,
    lesson_10,
    lesson_11,
)
from workbench.lessons.declare import Asked
from workbench.lessons.table import LESSONS
from workbench.net import LiveBroker
from workbench.notebook import GivenError, PlainError
from workbench.scenarios.run import Run
from workbench.trace.given import ANYTHING, name_of, rows_of, takes


def declared() -> Iterator[tuple[str, Asked | Judge]]:
    """Every question and check of every lesson, with its name."""
    for lesson in LESSONS:
        if lesson.number == "00":
            continue
        module = import_module(f"workbench.lessons.lesson_{lesson.number}")
        for group in (module.predict, module.check):
            for name, function in vars(group).items():
                yield f"{lesson.number}/{name}", function


def parameters_of(function: Asked | Judge) -> list[inspect.Parameter]:
    """Those of the function that finds the facts, or the case."""
    find = getattr(function, "find", function)
    return [*inspect.signature(find, eval_str=True).parameters.values()]


DECLARED = dict(declared())
TYPED = {
    name: function
    for name, function in DECLARED.items()
    if any(one.annotation not in ANYTHING for one in parameters_of(function))
}


TAKING = {
    f"{lesson.number}/{name}": function
    for lesson in LESSONS
    if lesson.number != "00"
    for name, function in vars(import_module(f"workbench.lessons.lesson_{lesson.number}")).items()
    if inspect.isfunction(function) and hasattr(function, "__wrapped__")
}


# What a lesson imports; where it is a class, what makes one.
IMPORTED = {
    name: vars(named).get("__init__", named) if inspect.isclass(named) else named
    for name in workbench._HOME
    for named in [getattr(workbench, name)]
}
TAKES_ALL = {"show", "open_code", "class_code"}
"""These take anything: it is shown, or told to be no code."""
TAKING |= {
    name: function
    for name, function in IMPORTED.items()
    if hasattr(function, "__wrapped__") and name not in TAKES_ALL
}


@pytest.mark.parametrize("name", sorted(IMPORTED.keys() - TAKES_ALL))
def test_what_a_lesson_imports_refuses_what_is_no_such_argument_in_one_line(name):
    """Each of them that takes something without which it does nothing."""
    named = getattr(workbench, name)
    taken = inspect.signature(named).parameters.values()
    wanted = [one for one in taken if one.default is one.empty and one.kind < one.VAR_POSITIONAL]
    if wanted:
        with pytest.raises(PlainError):
            named(*(object() for _ in wanted))


@pytest.mark.parametrize("name", DECLARED | TAKING)
def test_words_say_what_each_argument_wants(name):
    """An annotation that has no words would be an error about the program's inside."""
    for one in parameters_of((DECLARED | TAKING)[name]):
        if one.annotation not in ANYTHING:
            assert has("asking", f"wanted.{name_of(one.annotation)}"), one


@pytest.mark.parametrize("name", TYPED)
def test_what_is_no_such_argument_is_answered_with_what_is_wanted(name):
    """The first that is something else is named, with its kind, in one line."""
    asked = parameters_of(TYPED[name])
    first = next(one for one in asked if one.annotation not in ANYTHING)
    with pytest.raises(GivenError, match=f"^{first.name}: .* wanted here, not object$") as told:
        TYPED[name](**{one.name: ... if one.annotation in ANYTHING else object() for one in asked})
    assert told.value._render_traceback_() == [f"GivenError: {told.value}"]


LIVE = object.__new__(LiveBroker)
CREDIT = run("credit")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lesson_01.predict.after_grant(3, link_credit=3), "^run: a stage or a run"),
        (lambda: lesson_01.predict.after_grant(CREDIT, link_credit="3"), "link_credit: a whole"),
        (lambda: lesson_01.predict.after_grant(CREDIT, link_credit=True), "link_credit: a whole"),
        (lambda: lesson_01.predict.after_grant(CREDIT), r"missing .* 'link_credit'"),
        (lambda: lesson_01.predict.rabbit_flows([3]), "rows: a run or its rows .* not list"),
        (
            lambda: lesson_01.check.smallest_n(3, latency_us=1000, messages=9, preset=3),
            "preset: the name of a preset .* not int",
        ),
        (
            lambda: lesson_04.check.smallest_window(3, latency_us=1000, messages=9, preset=3),
            "preset: the name of a preset .* not int",
        ),
        (
            lambda: lesson_05.check.largest_credit(3, limit=9, publish=9, preset=3),
            "preset: the name of a preset .* not int",
        ),
        (
            lambda: lesson_03.check.shortest_timeouts(1, 1, 3, latency_us=1000),
            "get: what `timed_get` gave .* not int",
        ),
        (lambda: lesson_02.check.sender(3, messages=9, grants=[3]), "on_flow: a function"),
        (
            lambda: lesson_02.check.sender(print, messages=9, grants="3"),
            "grants: a list of whole numbers .* not str",
        ),
        (
            lambda: lesson_08.check.passes(9, messages="x", target=9, message_bytes=9),
            "messages: a whole number .* not str",
        ),
        (lambda: lesson_01.granted_again(3, [1], publish=1), "run: a stage or a run .* not int"),
        (lambda: lesson_01.granted_again(CREDIT, 3, publish=1), "grants: a list of whole numbers"),
        (lambda: lesson_01.arrival(None, 2), "played: a stage or a run .* not NoneType"),
        (lambda: lesson_03.handovers(CREDIT, "graceful"), "runs: a stage or a run .* not str"),
        (lambda: lesson_02.predict.naive(3), r"a run or its rows .* not int"),
        (lambda: try_sender(print, grants=3), "grants: a list of whole numbers .* not int"),
        (lambda: order_lines(3), "lines: a list of texts .* not int"),
        (lambda: stage(CREDIT, acts=3), "acts=3: a list of names is wanted"),
        (lambda: stack(3), "several: a picture, a question or another widget .* not int"),
        (lambda: lesson_10.questions(CREDIT), "asked: a picture, a question .* not Run"),
        (lambda: scheduler(["add"]), r"chosen: a list of levels.* not list\[str\]"),
        (lambda: classroom(1), "question: a text .* not int"),
        (lambda: classroom("01/after-grant", [3]), r"lines: a text .* not list\[int\]"),
        (lambda: lesson_01.check.smallest_n(3, latency_us=1000, messages=9, hints="x"), "a whole"),
        (lambda: lesson_07.sync_desk(3, 1), "caps: a list of whole numbers .* not int"),
        (lambda: lesson_07.real_chart(3), "fsync_us: a list of whole numbers .* not int"),
        (lambda: lesson_10.cannot_tell(skip="x"), "skip: a whole number .* not str"),
        (lambda: lesson_10.big_trace("x"), "frames: a whole number .* not str"),
        (lambda: lesson_10.archive_chart(8), "values: a list of whole numbers .* not int"),
        (lambda: lesson_10.dip_table(3), "rates: what `spark.ask` gave .* not int"),
        (lambda: lesson_10.drawn(3), "charts: a chart .* not int"),
        (lambda: Answer(question="held", rows=[{}], path=REPO).row("1"), "number: a whole number"),
        (lambda: Mystery(seed=1, level=1, run=CREDIT).compare(3), "other: what `mystery` gave"),
        (lambda: lesson_11.fill(LIVE, "q", "3"), "messages: a whole number .* not str"),
        (lambda: frozen_wire("amqp://here"), "^what `serve` gave .* not str$"),
        (lambda: credit_chart(3), "^a run or its rows .* not int$"),
        (lambda: credit_chart("credit"), "^a run or its rows .* not str$"),
        (lambda: brake_chart([3]), r"^a run or its rows .* not list\[int\]$"),
        (lambda: bar_chart([1, 2]), "values: a table with a number for each name .* not list"),
        (lambda: bar_chart({"a": None}), r"values: .* not dict\[str, NoneType\]$"),
        (lambda: curve_chart({"a": [1, 2]}, across="x", up="y"), "curves: a table with a list of"),
        (lambda: time_chart([1], end_us=9), "lines: a table with a list of .* not list"),
        (lambda: time_chart(end_us="x"), "end_us: a whole number .* not str"),
        (lambda: time_chart(end_us=9, stretches=[(1, 2)]), "stretches: a list of stretches"),
        (lambda: time_chart(end_us=9, marks=[1]), "marks: a list of pairs"),
        (lambda: lattices(grants=3), "grants: a list of whole numbers .* not int"),
        (lambda: lattices(rules="set"), "rules: a list of texts .* not str"),
        (lambda: lattice_of(3), "desk: a stage or a run .* not int"),
        (lambda: lattice_of(stage(CREDIT.rows)), "desk: a stage or a run .* not StageWidget"),
        (lambda: export(3, "never.html"), "^a run or its rows .* not int$"),
        (lambda: export(CREDIT, 3), "^path: the path of a file or folder .* not int$"),
        (lambda: look(3), "^path: the path of a file or folder .* not int$"),
        (lambda: read_trace(None), "^path: the path of a file or folder .* not NoneType$"),
        (lambda: import_capture([3]), r"^paths: the path of a file or folder .* not list\[int\]$"),
        (lambda: follow(3), "^source: the path of a file or folder .* not int$"),
        (lambda: follow(REPO, window_us=0), "^a window of 0 µs has no length"),
        (lambda: ask_trace(3, "stalls"), "^trace: the path of a file or folder .* not int$"),
        (lambda: ask_trace(REPO), "^missing a required argument: 'question'$"),
        (lambda: ask_trace(REPO, "stall"), "'stall' of 1 trace.* legal: .*stalls"),
        (lambda: open_row({}, REPO, around="x"), "^around: a whole number .* not str$"),
        (lambda: share_code(CREDIT, "x"), "^cursor: a whole number .* not str$"),
        (lambda: transcript([3]), r"^rows: a run or its rows .* not list\[int\]$"),
        (lambda: serve(3), "^preset: the name of a preset .* not int$"),
        (lambda: serve("rmq"), "^no preset 'rmq'; there are: spec"),
        (lambda: background(3), "^work: a function .* not int$"),
        (lambda: timed_get(publish_at_us=1, preset="rmq"), "no preset 'rmq'; there are: spec"),
    ],
)
def test_an_argument_of_another_kind_is_named(call, words):
    """A number for a run, a text for a number and so on: a line says what is wanted."""
    with pytest.raises((GivenError, ValueError), match=words) as told:
        call()
    assert isinstance(told.value, PlainError)  # in a notebook one line, not the way to it


@pytest.mark.parametrize(
    "call",
    [lambda path: export(CREDIT, path), lambda path: serve(trace=path)],
    ids=["export", "serve"],
)
def test_a_place_where_nothing_can_be_written_is_named(call):
    """In one line, with what the system says."""
    with pytest.raises(PlainError, match=r"^/dev/null/here: Not a directory$"):
        call("/dev/null/here")


def test_a_question_or_check_that_is_not_there_is_told_with_those_there_are():
    """And `hasattr`, with which a notebook completes names, is told that it is not there."""
    for group, one in ((lesson_01.predict, "after_grant"), (lesson_01.check, "smallest_n")):
        with pytest.raises(AttributeError, match=f"is called nope; there are: .*{one}") as told:
            group.nope  # noqa: B018
        assert isinstance(told.value, PlainError)
        assert not hasattr(group, "nope")


def test_a_stage_stands_for_its_run_and_a_capture_for_its_rows():
    """What shows a run, or holds rows, is as good as these."""
    shown = lesson_01.predict.after_grant(stage(CREDIT), link_credit=3)
    asked = lesson_01.predict.after_grant(CREDIT, link_credit=3)
    assert str(shown) == str(asked)
    capture = import_capture(REPO / "data" / "captures" / "rmq43_b_consumer_credit.pcapng")
    first = lesson_01.predict.rabbit_flows(capture)
    assert str(first) == str(lesson_01.predict.rabbit_flows(capture.rows))
    assert str(first) == str(lesson_01.predict.rabbit_flows(stage(capture.rows)))
    assert rows_of(stage(capture.rows)) is capture.rows
    assert [*transcript(stage(CREDIT))] == [*transcript(iter(CREDIT.rows))]
    for chart in (credit_chart, brake_chart):
        assert repr(chart(stage(CREDIT, chart=True))) == repr(chart(CREDIT))
    assert repr(lattice_of(stage(run("race")))) == repr(lattice_of(run("race")))


def test_each_of_several_arguments_is_looked_at():
    """Those that a function takes by number or by any name, too."""

    @takes
    def several(*runs: Run, **numbers: int) -> tuple[int, int]:
        return len(runs), sum(numbers.values())

    assert several(CREDIT, stage(CREDIT), two=2, three=3) == (2, 5)
    with pytest.raises(GivenError, match=r"^runs: .* not int$"):
        several(CREDIT, 3)
    with pytest.raises(GivenError, match=r"^numbers: .* not float$"):
        several(two=2.5)


def test_a_whole_number_is_a_number_and_a_pair_may_be_a_list():
    """And what gives each thing once is not used up by looking at it."""

    @takes
    def numbers(values: Mapping[str, float], points: Iterable[tuple[int, float]]) -> list[object]:
        return [*values.values(), *points]

    assert numbers({"a": 1, "b": 2.5}, ([n, n] for n in (3,))) == [1, 2.5, [3, 3]]
    with pytest.raises(GivenError, match=r"^values: a table with a number .* dict\[str, bool\]$"):
        numbers({"a": True}, [])
    with pytest.raises(GivenError, match=r"^points: a list of pairs .* not list\[tuple\]$"):
        numbers({}, [(1, 2, 3)])
