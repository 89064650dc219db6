"""The file of a learner's progress: its format, older versions, and everything that is none."""

import json
from importlib import resources

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.exercises.progress_file import FORMAT, LARGEST_FILE, as_text, decoded, read_text
from workbench.exercises.progress_record import (
    CONFIDENCES,
    MOST_RECORDS,
    ProgressError,
    Record,
    in_order,
    shortened,
)

RECORD = Record(lesson="01", question="grant", order=1, answer="14", belief="adds", right=False)
OTHER = Record(
    lesson="02", question="cross", order=2, answer="5", confidence="sure", right=True, hints=2,
    recalled_in="03",
)  # fmt: skip


def schema() -> dict:
    """The published schema."""
    place = resources.files("workbench.exercises").joinpath("progress.schema.json")
    return json.loads(place.read_text("utf-8"))


VALIDATOR = jsonschema.Draft202012Validator(schema())


def whole(records, version=2) -> str:
    """A file with these records, as another program may write it."""
    return json.dumps({"format": FORMAT, "version": version, "records": records})


def line(**changes) -> dict:
    """One record of a file."""
    return {**json.loads(as_text([OTHER]))["records"][0], **changes}


names = st.text('aé–日\u202e"\\ ', min_size=1, max_size=80)
records = st.builds(
    Record,
    lesson=st.sampled_from(["01", "12", "x"]),
    question=names,
    order=st.integers(0, 10**6),
    answer=st.text(max_size=300).map(shortened),
    confidence=st.sampled_from([None, *CONFIDENCES]),
    belief=st.none() | names,
    right=st.sampled_from([True, False, None]),
    hints=st.integers(0, 9),
    recalled_in=st.none() | st.just("02"),
)


@given(st.lists(records, max_size=8).map(in_order))
def test_what_is_written_is_read_again(listed):
    """Every record of every file, and the file obeys its published schema."""
    text = as_text(listed)
    VALIDATOR.validate(json.loads(text))
    found = read_text(text)
    assert list(found.records) == listed
    assert found.problems == ()


def test_the_format_is_fixed():
    """Names and order of the fields are for others to rely on: a change is a new version."""
    assert as_text([RECORD]) == (
        '{"format": "amqp-flow-workbench/progress", "version": 2, "records": [\n'
        '{"lesson": "01", "question": "grant", "order": 1, "answer": "14", "confidence": null,'
        ' "belief": "adds", "right": false, "hints": 0, "recalled_in": null}\n'
        "]}\n"
    )


def test_a_field_that_is_not_known_is_no_mistake():
    """A later workbench may say more; what is known is read."""
    found = read_text(whole([line(mood="cheerful")]))
    assert found.records == (OTHER,)
    assert found.problems == ()


def test_a_file_of_version_1_is_still_read():
    """Its answers become records; what it does not tell stays open."""
    text = json.dumps(
        {
            "format": FORMAT,
            "version": 1,
            "entries": {
                "01/grant": {
                    "answers": ["14", "9", "7"], "right": True, "first_right": False,
                    "belief": "adds",
                },
                "01/stop": {
                    "answers": ["0"], "right": False, "first_right": False, "belief": "takes back",
                },
                "01/empty": {"answers": [], "right": False},
            },
        }
    )  # fmt: skip
    found = read_text(text)
    told = [(one.question, one.answer, one.right, one.belief) for one in found.records]
    assert told == [
        ("grant", "14", False, None),
        ("grant", "9", None, "adds"),
        ("grant", "7", True, None),
        ("stop", "0", False, "takes back"),
    ]
    assert [one.order for one in found.records] == [1, 2, 3, 4]
    assert found.problems == ()


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"a":' * 100_000, "no JSON"),
        ("[1, 2]", "not a saved progress"),
        ('"text"', "not a saved progress"),
        ("9" * 5000, "not a saved progress"),
        ('{"format": "something else"}', "not a saved progress"),
        (whole([], version=99), "version 99; this workbench reads versions 1 and 2"),
        (whole([], version=True), "version True"),
        (whole([], version="2"), "version '2'"),
        (whole({}), "records are missing"),
        (whole(None), "records are missing"),
        (f'{{"format": "{FORMAT}", "version": 1}}', "entries are missing"),
        (f'{{"format": "{FORMAT}", "version": 2, "records": [', "damaged: no record"),
    ],
)
def test_what_is_no_progress_is_told_in_one_line(text, telling):
    """Nothing is read from it, and nothing is raised."""
    found = read_text(text)
    assert found.failed
    assert found.records == ()
    assert telling in found.problems[0]
    assert len(found.problems[0]) < 200


@pytest.mark.parametrize(
    ("changes", "telling"),
    [
        ({"lesson": 1}, "lesson is 1"),
        ({"lesson": "../../etc"}, "lesson is '../../etc'"),
        ({"question": ""}, "question is ''"),
        ({"question": "x" * 81}, "question is 'xxx"),
        ({"order": -1}, "order is -1"),
        ({"order": True}, "order is True"),
        ({"order": 2.5}, "order is 2.5"),
        ({"order": 10**400}, "order is"),
        ({"answer": None}, "answer is None"),
        ({"answer": {"a": 1}}, "answer is {'a': 1}"),
        ({"answer": "\ud800"}, "answer is"),
        ({"confidence": "very"}, "legal: sure, I think so, a guess or null"),
        ({"right": 1}, "right is 1; legal: True, False or null"),
        ({"belief": []}, "belief is []"),
        ({"hints": "many"}, "hints is 'many'"),
        ({"recalled_in": 2}, "recalled_in is 2"),
    ],
)
def test_a_record_that_is_none_is_named_and_the_others_are_kept(changes, telling):
    """One bad field costs one record."""
    found = read_text(whole([line(order=1), line(**changes), line(order=3)]))
    assert len(found.records) == 2
    assert not found.failed
    assert found.problems[0].startswith("record 2 left out: ")
    assert telling in found.problems[0]


def test_many_bad_records_are_counted_not_listed():
    """A file of nonsense does not fill the page."""
    found = read_text(whole([7] * 500))
    assert len(found.problems) == 21
    assert found.problems[-1] == "500 records were left out in all"


@given(st.integers(0, 400), st.integers(1, 60))
def test_a_damaged_file_gives_its_whole_lines(at, length):
    """Octets cut out of the middle: every record whose line is untouched is read."""
    listed = [
        Record(lesson="01", question=f"q{n}", order=n, answer="1", right=True) for n in (1, 2, 3)
    ]
    text = as_text(listed)
    begin = len(text.splitlines()[0]) + 1 + at % (len(text) - 120)
    broken = text[:begin] + text[begin + length :]
    untouched = [
        one for one, its in zip(listed, text.splitlines()[1:-1], strict=True)
        if its.rstrip(",") in {each.rstrip(",") for each in broken.splitlines()}
    ]  # fmt: skip
    found = read_text(broken)
    assert set(untouched) <= set(found.records)
    assert found.problems or broken == text or json.loads(broken)


def test_a_file_that_was_cut_off_gives_what_is_there():
    """The last line is lost, and it is said so."""
    text = as_text([RECORD, OTHER])
    found = read_text(text[: text.index('"answer": "5"')])
    assert found.records == (RECORD,)
    assert found.problems == ("damaged: 1 of its lines cannot be read",)


def test_a_file_is_bounded():
    """More octets than any learner's log, octets that are no text, numbers that nobody counted."""
    with pytest.raises(ProgressError, match="too large"):
        decoded(b" " * (LARGEST_FILE + 1))
    with pytest.raises(ProgressError, match="no text in it"):
        decoded(b"\xff\xfe\x00")
    many = read_text(whole([line(order=n) for n in range(MOST_RECORDS + 5)]))
    assert len(many.records) == MOST_RECORDS
    far = read_text(whole([line(order=2**53 - 1), line(order=0)]))
    assert [one.order for one in far.records] == [1, 2]


@given(
    st.text(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
        max_leaves=8,
    ).map(lambda value: json.dumps({"format": FORMAT, "version": 2, "records": [value]}))
)
def test_nothing_that_is_read_raises(text):
    """Whatever a file holds, the answer is records and words."""
    found = read_text(text)
    assert found.failed is (found.problems != () and found.failed)
    assert as_text(found.records)


@pytest.mark.parametrize("place", range(3))
def test_a_damaged_octet_costs_one_record_and_no_other(place):
    """Nine of ten lines are as good as before, and the loss is told."""
    several = [
        Record(lesson="01", question=f"q{number}", order=number, answer="7", right=True)
        for number in range(10)
    ]
    octets = bytearray(as_text(several).encode())
    at = octets.index(f'"q{place * 4}"'.encode())
    octets[at + 1] = 0xFF
    found = read_text(decoded(bytes(octets)))
    assert not found.failed
    kept = {record.question for record in found.records}
    assert kept == {f"q{number}" for number in range(10)} - {f"q{place * 4}"}
    assert any("1 of its lines" in problem for problem in found.problems)
