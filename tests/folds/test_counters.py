"""What a sender may send: each rule by the shortest conversation that tells it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.folds.conversations import CONVERSATIONS, rows_of
from workbench import serial
from workbench.folds import credit_rows
from workbench.folds.counters import Counters, Limit
from workbench.folds.vantage import ends


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_last_row_leaves_the_counters_that_its_rule_tells(name):
    """Delivery-count and credit at the row's end."""
    row = credit_rows(rows_of(name))[-1]
    _, (count, credit) = CONVERSATIONS[name]
    assert (row.delivery_count, row.link_credit) == (count, credit)
    assert row.known == (None not in (count, credit))


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_question_counts_alike(name):
    """`stalls`, `windows` and the others ask the sender's end; `credit` asks each row's."""
    (sender,) = [end for end in ends(rows_of(name)) if end.peer == "broker"]
    *_, step = Counters(sender).steps()
    _, (count, credit) = CONVERSATIONS[name]
    assert (step.link.limit.count, step.link.credit) == (count, credit)


@given(
    start=st.integers(0, serial.MAX),
    base=st.integers(0, serial.MAX),
    more=st.one_of(st.integers(0, 5), st.integers(serial.MAX - 5, serial.MAX)),
)
@example(start=19, base=20, more=serial.MAX)
def test_what_is_beyond_a_limit_is_what_it_leaves_no_room_for(start, base, more):
    """A whole circle is no difference, for the one as for the other."""
    limit = Limit()
    limit.begin(start)
    limit.allow(base, more)
    assert (limit.over is None) == (limit.left > 0)
