"""One line per link: the same by Spark, for long traces, and by the fold, for short ones."""

from dataclasses import asdict

import pytest

from workbench import folds
from workbench.analysis import schemas
from workbench.analysis.chunks import Chunks
from workbench.analysis.summary import summary

from .made import made_rows
from .runs import all_rows, cut_credit, lowered_credit, narrow_window, torn

KEY = ("run", "connection", "session", "link", "link_sender", "attach_no")


@pytest.mark.slow
def test_both_say_the_same_of_every_link(as_trace):
    """Of scenarios, captures and runs that are spoiled, one whose credit is lowered among them."""
    rows = [
        *all_rows(), *lowered_credit(), *cut_credit(), *narrow_window(), *torn(0), *torn(3),
        *made_rows(seed=0, runs=8),
    ]  # fmt: skip
    beyond = [one for one in folds.violations(rows) if one["what"] == "beyond-credit"]
    assert {one["certain"] for one in beyond if one["link"]} == {True, False}
    answer = [row.asDict() for row in summary(Chunks(whole=True))(as_trace(rows)).collect()]
    folded = [asdict(link) for link in folds.summarise(rows)]
    for link in folded:
        del link["advice"]

    def by_key(row):
        return tuple(str(row[name]) for name in KEY)

    assert sorted(answer, key=by_key) == sorted(folded, key=by_key)


@pytest.mark.parametrize("name", folds.QUESTIONS)
def test_an_answer_has_the_same_columns_by_either(name):
    """The folds and the Spark questions are read by the same programs."""
    columns = [one for one in folds.QUESTIONS[name].columns if name != "summary" or one != "advice"]
    assert columns == getattr(schemas, name.upper()).names
