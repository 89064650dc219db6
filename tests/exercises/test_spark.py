"""Lesson 10 without a Spark: questions, checks, and the answers that stand in for Spark's."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest

from workbench.exercises import (
    measure,
    recall,
    spark_traces,
)
from workbench.exercises.progress import Progress
from workbench.exercises.question import NotYetError
from workbench.exercises.spark_answers import RECORDED, Answer, NotRecordedError, recorded
from workbench.exercises.spark_desk import QUESTIONS, WINDOW_US, SparkDesk, start_spark
from workbench.exercises.spark_progress import WorkBar
from workbench.exercises.spark_shows import (
    BATCH,
    HALF,
    archive_rate,
    dip_table,
    dips_of,
    drawn,
    held_over_time,
    rate_over_time,
)
from workbench.exercises.spark_traces import (
    LessonTrace,
    big_trace,
    cannot_tell,
    captured_rows,
    plan,
    real_captures,
    small_trace,
)
from workbench.folds.stalls import stalls
from workbench.lessons.declare import FORMS
from workbench.lessons.lesson_10 import check, held_in, predict
from workbench.notebook import PlainError
from workbench.scenarios.shift import shift_parts
from workbench.trace.schema import SENT

SETTLED_BY = "rmq43_h_sac_handover"
"""A capture in which every transfer is answered."""
SHIFT = LessonTrace(name="shift", path=RECORDED, table=None, rows=0, frames=0)
LINK = ("run", "connection", "session", "link", "link_sender", "attach_no")


@pytest.fixture(scope="module")
def parts():
    """The distinct runs of the large trace."""
    return shift_parts(plan())


@pytest.fixture(scope="module")
def fresh(parts):
    """All stalls of the large trace, by the plain fold."""
    found = []
    for part in parts:
        folded = stalls(part.rows)
        found += [one._replace(run=name)._asdict() for name in part.runs for one in folded]
    return found


def said(question, trace="shift", **more):
    """A recorded answer."""
    return Answer(question=question, rows=recorded(trace, question), path=RECORDED, **more)


@pytest.fixture
def no_java(monkeypatch):
    monkeypatch.setenv("WORKBENCH_JAVA", "none")


# -- the record


@pytest.mark.slow
def test_the_recorded_rates_are_those_of_the_runs(parts):
    """Counted anew, run by run: every window, every message."""
    counted = Counter()
    for part in parts:
        for row in part.rows:
            begins = row.kind == "transfer" and row.event == SENT
            counted[row.t_us // WINDOW_US * WINDOW_US] += begins * len(part.runs)
    assert [(row["window_start_us"], row["messages"]) for row in recorded("shift", "rates")] == [
        (at, counted[at]) for at in sorted(counted)
    ]


def test_the_recorded_stalls_are_those_of_a_fresh_fold(fresh):
    """The longest of all, in order; and every column."""
    order = sorted(fresh, key=lambda row: (row["start_us"] - row["end_us"], row["run"], row["seq"]))
    rows = recorded("shift", "stalls")
    assert [dict(row) for row in rows] == order[: len(rows)]
    assert len(rows) == 200


def test_the_recorded_sums_are_those_of_a_fresh_fold(fresh):
    """By link and brake, by brake, and by window."""
    lost, brakes, held = Counter(), {}, {}
    for row in fresh:
        lasted = row["end_us"] - row["start_us"]
        lost[row["run"], row["link"], row["brake"]] += lasted
        brakes.setdefault(row["brake"], []).append(lasted)
        for at in range(row["start_us"] // WINDOW_US, row["end_us"] // WINDOW_US + 1):
            key = (at * WINDOW_US, row["brake"])
            held.setdefault(key, set()).add(tuple(row[name] for name in LINK))
    assert {
        (row["run"], row["link"], row["brake"]): row["lost_us"] for row in recorded("shift", "lost")
    } == lost
    assert {
        row["brake"]: (row["stalls"], row["lost_us"], row["longest_us"])
        for row in recorded("shift", "brakes")
    } == {brake: (len(times), sum(times), max(times)) for brake, times in brakes.items()}
    assert {
        (row["window_start_us"], row["brake"]): row["links"] for row in recorded("shift", "held")
    } == {key: len(links) for key, links in held.items()}


def test_the_recorded_stalls_of_the_captures_are_those_of_a_fresh_fold():
    """Every one of them."""
    wanted = sorted(
        (one._asdict() for one in stalls(list(captured_rows()))),
        key=lambda row: (row["start_us"] - row["end_us"], row["run"], row["seq"]),
    )
    assert [dict(row) for row in recorded("captures", "stalls")] == wanted


def test_the_record_is_small_and_has_what_the_lesson_asks():
    """A file that is read at once; one row a line."""
    assert RECORDED.stat().st_size < 300_000
    answers = json.loads(RECORDED.read_text(encoding="utf-8"))["answers"]
    assert set(answers["shift"]) == set(QUESTIONS)


def test_what_is_not_recorded_needs_spark():
    """The text says so, and what Spark needs."""
    with pytest.raises(NotRecordedError, match="Spark needs Java"):
        recorded("shift", "mine")


# -- a desk without Java


def test_without_java_the_desk_says_so_and_answers_from_the_record(no_java):
    """The lesson goes on; each answer says that it was recorded."""
    desk = SparkDesk()
    assert desk.session() is None
    assert "recorded answers" in repr(desk)
    assert "WORKBENCH_JAVA=none" in repr(desk)
    trace = SHIFT
    answer = desk.ask("brakes", trace)
    assert answer.rows == recorded("shift", "brakes")
    with pytest.raises(NotRecordedError, match="Spark needs Java"):
        desk.ask(lambda table: table, trace)
    with pytest.raises(ValueError, match="there are: rates, stalls"):
        desk.ask("what", trace)


def test_without_java_a_query_has_to_wait(no_java):
    """Nothing is recorded, and the reason is told."""
    log = Progress()
    verdict = check.query(lambda table: table, SparkDesk(), log=log)
    assert verdict.right is None
    assert "A query needs Spark" in verdict.text
    assert log.records == []


@pytest.mark.parametrize("given", [3, "spark", start_spark])
def test_what_is_no_desk_is_a_mistake_in_the_cell(given):
    """What is wanted is told, and what was given."""
    with pytest.raises(TypeError, match=f"`start_spark` gave is wanted .*{type(given).__name__}$"):
        check.query(lambda table: table, given)


# -- answers on the page


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ("brake", "a list of texts is wanted"),
        (["nope"], "legal are columns of the answer: .*brake"),
    ],
)
def test_a_column_that_cannot_be_left_out_is_told(no_java, without, words):
    """Else what is to be named would stand on the page."""
    trace = SHIFT
    with pytest.raises(PlainError, match=words):
        SparkDesk().ask("stalls", trace, without=without)


def test_a_table_has_ten_rows_and_says_how_many_more(no_java):
    """Of all stalls, not of those alone that came out of Spark.

    Numbers for `open`, units in the head, and no brake where it is to be named.
    """
    desk = SparkDesk()
    stalls = desk.ask("stalls", SHIFT, without=["brake"])
    page = str(stalls).splitlines()
    assert "brake" not in page[0]
    assert page[1].startswith("1 ")
    more = sum(row["stalls"] for row in recorded("shift", "brakes")) - len(page[1:-1])
    assert page[-1] == f"... and {more:,} more rows"
    assert "<table" in stalls._repr_html_()
    assert "brake" in str(said("stalls")).splitlines()[0]


def test_the_rows_that_are_told_are_all_that_there_are(no_java, monkeypatch):
    """Of the stalls the longest alone come out of Spark; the table's last line adds up to it."""
    told = []
    monkeypatch.setattr(WorkBar, "done", lambda _view, text: told.append(text))
    desk = SparkDesk()
    monkeypatch.setattr(desk, "session", object)
    monkeypatch.setattr(desk, "rows", lambda question, *_: recorded("shift", question))
    monkeypatch.setattr(desk, "stalls", lambda _path: SimpleNamespace(count=lambda: 632))
    trace = replace(SHIFT, frames=140_882)
    answer = desk.ask("stalls", trace)
    desk.ask("lost", trace)
    told = [one for one in told if "rows" in one]
    assert told[0].endswith(", 632 rows out of 140,882 frames")
    assert answer.tail == "... and 622 more rows"
    assert told[1].endswith(f", {len(recorded('shift', 'lost'))} rows out of 140,882 frames")


@pytest.mark.parametrize(
    ("question", "number", "text"),
    [("stalls", 0, "rows 1 to 200, and no 0"), ("lost", 1, "sums: no one row")],
)
def test_a_row_that_cannot_be_opened_is_told(question, number, text):
    """A number that is not there; an answer whose rows are sums."""
    with pytest.raises(ValueError, match=text) as refused:
        said(question).open(number)
    assert isinstance(refused.value, PlainError), "a notebook would show where it was found"


def test_an_answer_without_rows_says_so():
    """No stalls in a trace is an answer."""
    empty = Answer(question="stalls", rows=[], path=RECORDED)
    assert str(empty) == "no stalls in this trace"
    assert "no stalls" in empty._repr_html_()
    with pytest.raises(ValueError, match="has no rows"):
        empty.row(1)


def test_a_row_opens_at_its_place_with_its_link(parts, tmp_path):
    """The stage stands at the row where the stall begins, and shows the link that is blocked."""
    trace = real_captures()
    answer = Answer(question="stalls", rows=recorded("captures", "stalls"), path=trace.path)
    for number in (1, 3):
        row = answer.row(number)
        view = answer.open(number, around=10)
        assert view.seq == row["seq"]
        lines = [one["id"] for one in json.loads(gzip.decompress(view.scene))["lines"]]
        line = next(one for one in lines if one.startswith("link"))  # a window's may stand above
        assert line.startswith(f"link {row['connection']}/")
        assert f"/{row['link']}/" in line


def test_charts_draw_what_was_counted_and_no_more():
    """Some hundred points and the line's end, whatever the trace; three dips with letters."""
    rates, held = said("rates"), said("held")
    charts = rate_over_time(rates), held_over_time(held, rates)
    assert drawn(*charts) == len(rates) + 1 + 3 + len(held)
    assert drawn(*charts) < 1_000
    assert [line[0] for line in dip_table(rates).lines] == ["A", "B", "C"]


# -- predictions


def test_the_three_dips_are_told_apart_by_the_stalls():
    """The shallow one has the longest stall, the widest has none; both come out of the answers."""
    rates, asked = said("rates"), {"stalls": said("stalls")}
    dips = {dip.name: dip for dip in dips_of(rates)}
    held = held_in(list(dips.values()), asked["stalls"])
    longest = predict.longest.question(rates, asked).solve()
    assert longest.answer.startswith(f"in {max(held, key=held.get)}")
    assert longest.answer.startswith(f"in {max(dips, key=lambda name: dips[name].rate)}")
    nobody = predict.nobody.question(rates, asked).solve()
    widest = max(dips, key=lambda name: dips[name].seconds)
    assert nobody.answer.startswith(f"in {widest}")
    assert held[widest] < 100_000
    # The same number as in the table that the learner has before them.
    first = asked["stalls"].row(1)
    assert f"{measure.milliseconds(first['end_us'] - first['start_us']):,.0f} ms" in longest.reason
    for solution in (longest, nobody):
        wrong = [belief for belief in solution.beliefs if belief.answer != solution.answer]
        assert wrong


@pytest.mark.parametrize("asked", [None, {}])
def test_nothing_is_compared_before_spark_was_asked(asked):
    """The text says which cell to run."""
    rates = said("rates")
    for question in (predict.longest, predict.nobody):
        with pytest.raises(NotYetError, match="run the cell"):
            question.question(rates, asked).solve()
    with pytest.raises(NotYetError, match="`lost`"):
        predict.most_lost.question(said("stalls"), asked).solve()


def test_the_longest_stall_is_not_the_largest_loss():
    """The link that loses most is not among the longest."""
    asked = {"lost": said("lost")}
    question = predict.most_lost.question(said("stalls"), asked)
    solution = question.solve()
    top, worst = asked["lost"].rows[0], said("stalls").row(1)
    assert solution.answer in question.choices
    assert (top["run"], top["link"]) != (worst["run"], worst["link"])
    assert solution.belief_of(question.choices[0]) is not None
    assert top["run"] in solution.reason


def test_the_evidence_is_counted():
    """What most stalls of the captures are known from."""
    answer = said("stalls", trace="captures")
    counts = Counter(row["evidence"] for row in answer.rows)
    solution = predict.evidence.question(answer).solve()
    assert solution.answer == predict.evidence.words["choices"][counts.most_common(1)[0][0]]
    for name, number in counts.items():
        assert f"{name} {number}" in solution.reason


def test_what_was_sent_settled_is_confirmed_by_nothing():
    """The report decides: with a capture in which nothing is settled the answer is another."""
    choices = predict.claim.words["choices"]
    for report, answer in ((cannot_tell(), "nothing"), (cannot_tell(SETTLED_BY), "settled")):
        assert predict.claim.question(report).solve().answer == choices[answer]


def test_a_capture_that_is_not_there_is_answered_with_those_that_are():
    """And a late recorder knows less."""
    with pytest.raises(ValueError, match="there are: rmq40_a_publisher_grants"):
        cannot_tell("what")
    assert len(cannot_tell(skip=25)) > len(cannot_tell())


# -- checks


def test_the_brake_is_the_one_of_the_longest_stall():
    """Right, wrong with a belief, wrong without, and what is no brake."""
    answer, log = said("stalls"), Progress()
    brake = answer.row(1)["brake"]
    assert check.brake(..., answer, log=log).right is None
    assert "legal: no-message" in check.brake("credits", answer, log=log).text
    assert log.records == []
    assert check.brake(brake.upper().replace("-", "_"), answer, log=log).right is True
    wrong = check.brake("link-credit", answer, log=log)
    assert (wrong.right, wrong.belief) == (False, "credit is 0, so credit is the brake")
    assert check.brake("tcp", answer, log=log).belief is None
    assert len(log.records) == 3


def test_a_hint_is_given_to_whom_asks():
    """One by one, to nearly the answer."""
    verdict = check.brake("tcp", said("stalls"), log=Progress(), hints=2)
    assert len(verdict.hints) == 2


@pytest.mark.slow
def test_the_archives_rate_is_the_steady_one_and_grows_with_the_credit():
    """As counted by hand: 240 in a round trip of 80 ms and the 12 ms for a half."""
    assert archive_rate(HALF, 240) == pytest.approx(240 / 0.092)
    assert archive_rate(HALF, 400) == pytest.approx(400 / 0.100)
    assert archive_rate(BATCH, 240) == pytest.approx(240 / 0.104)
    for rule, credits in (
        (HALF, [2, 20, 100, *range(280, 292, 2), 298, 300, 302, 400, 450]),
        (HALF, [1, 21, 101, 281, 301]),
        (BATCH, [1, 20, 100, 240, 290, 300, 400]),
    ):
        rates = [archive_rate(rule, credit) for credit in credits]
        assert rates == sorted(rates)
        # No jump: a credit brings in less than its share of the one before it.
        for (less, low), (more, high) in pairwise(zip(credits, rates, strict=True)):
            assert high / low <= more / less


def test_the_smallest_credit_for_three_thousand_a_second_fills_a_round_trip_and_a_half():
    """Rate times (80 ms and 14 ms): 282 are just too few, and what fills the wire alone is."""
    log = Progress()
    assert "2,609 a second, fewer than 3,000" in check.credit(240, rate=3000, log=log).text
    assert "2,997 a second, fewer than 3,000" in check.credit(282, rate=3000, log=log).text
    right = check.credit(284, rate=3000, log=log)
    assert right.right is True
    assert "2,997 with 282" in right.text
    assert "284 gives 3,015" in check.credit(286, rate=3000, log=log).text
    assert check.credit(1201, rate=3000, log=log).right is None


@pytest.mark.slow
def test_the_smallest_credit_is_judged_by_runs():
    """Too little, too much, no number; and the smallest one, found by trying."""
    log = Progress()
    assert check.credit(..., rate=1000, log=log).right is None
    assert check.credit("many", rate=1000, log=log).right is None
    assert "fewer than" in check.credit(20, rate=1000, log=log).text
    assert "try a smaller one" in check.credit(300, rate=1000, log=log).text
    smallest = next(one for one in range(20, 300) if archive_rate(HALF, one) >= 1000)
    assert check.credit(smallest, rate=1000, log=log).right is True
    # More may be less: the odd ones are slower than the even ones.
    assert archive_rate(HALF, smallest + 1) < 1000
    for more in (smallest + 1, smallest + 2, smallest + 3, 299):
        assert check.credit(more, rate=1000, log=log).right is False


# -- recall


@pytest.fixture(scope="module")
def makers():
    """The questions of lesson 10 that lesson 12 may ask."""
    return {one.name: one.make for one in recall.known({"10"})}


@pytest.mark.parametrize("name", ["nobody", "credit"])
def test_every_form_can_be_asked_and_solved(makers, name):
    """Any number gives a question of that name, and its answer is one of the choices."""
    answers = set()
    for form in (0, 1, 7, FORMS - 1, 1003):
        question = makers[name](form)
        assert question.name == f"10/{name}"
        solution = question.solve()
        assert solution.answer in question.choices
        answers.add((question.text, solution.answer))
    assert len(answers) >= 4


# -- the traces


def test_the_small_trace_has_links_with_several_stalls_and_several_brakes():
    """Otherwise a wrong query could give the right answer."""
    lost = small_trace().lost
    assert len({brake for _, _, brake in lost}) > 2
    assert len({link for _, link, _ in lost}) > 2
    assert len({run for run, _, _ in lost}) > 4


def test_a_large_trace_has_as_many_frames_as_are_asked_for(monkeypatch, parts):
    """As many shops as that takes, and no more; less than one frame is refused."""
    written = []
    monkeypatch.setattr(spark_traces, "shift_parts", lambda *_: list(parts))
    monkeypatch.setattr(
        spark_traces, "write_copies", lambda path, made: written.append(made) or path.touch() or 0
    )
    million = big_trace(frames=1_000_000)
    head, (line,) = million.table.head, million.table.lines
    shop = spark_traces._frames(parts[0].rows)
    assert 1_000_000 <= int(line[head.index("frames")].replace(",", "")) < 1_000_000 + shop
    assert int(line[head.index("clients")]) == sum(len(part.runs) for part in written[0])
    with pytest.raises(ValueError, match="legal: 1 or more"):
        big_trace(frames=0)


def test_what_the_table_of_captures_says_is_in_them():
    """Frames are counted, those of AMQP 0-9-1 too: in captures of drains beside two of 1.0."""
    captures = real_captures()
    frames = sum(int(line[4]) for line in captures.table.lines)
    assert frames == sum(row.frame_id is not None for row in captured_rows())
    connections = {line[0]: line[2] for line in captures.table.lines}
    assert connections["rmq43_c_drain"] == connections["rmq40_c_drain"] == "4"
    assert replace(captures, name="x").rows == captures.rows
