"""What a sender may send: each rule by the shortest conversation that tells it."""

import pytest

from tests.folds.conversations import CONVERSATIONS, rows_of
from workbench.folds import credit_rows
from workbench.folds.counters import Counters
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
