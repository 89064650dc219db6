"""Two readers with the mistakes of public tools give wrong numbers on these traces, ours right.

The one misspells the sender's count and finds none (so it starts at 0, and again after a drain);
the other takes the credit of a flow without its count, and counts only transfers that say `more`.
"""

from dataclasses import replace

import pytest

from workbench import folds
from workbench.exercises.readers import BelievesTheFlow, CountsFromZero
from workbench.scenarios import run
from workbench.trace.schema import OBSERVED, SENT


def acted(name, parameters, *acts):
    """The frames of a run with acts, each at the end of what the one before has led to."""
    played = run(name, "rmq4.3", parameters)
    for act, arguments in acts:
        played = played.act(len(played.rows) - 1, act, **arguments)
    return played.rows


def without_more(rows):
    """With `more` left out where it is false, as most peers encode it."""
    return [
        row if not row.frame or row.frame.get("more") is not False
        else replace(row, frame={key: value for key, value in row.frame.items() if key != "more"})
        for row in rows
    ]  # fmt: skip


def sender_rows(rows):
    """What the link's sender sees: it sends messages and receives grants."""
    return [
        row for row in rows
        if row.link and row.kind in ("attach", "flow", "transfer")
        and (row.event == OBSERVED or (row.event == SENT) == (row.from_peer == row.link_sender))
    ]  # fmt: skip


def read(reader, rows):
    """Credit after each transfer as that reader has it, and the rows at which it is used up."""
    credits, used_up = [], []
    for row in sender_rows(rows):
        fields = {
            name.replace("_", "-"): value
            for name, value in (row.frame or {}).items()
            if value is not None
        }
        reader.read(row.kind, fields, row.from_peer == row.link_sender)
        if row.kind == "transfer":
            credits.append(reader.credit)
            if reader.used_up:
                used_up.append(row.seq)
    return credits, used_up


def ours(rows):
    """The same by the fold of `credit`."""
    transfers = {row.seq for row in sender_rows(rows) if row.kind == "transfer"}
    answer = [row for row in folds.credit_rows(rows) if row.seq in transfers]
    return [row.link_credit for row in answer], [row.seq for row in answer if row.link_credit == 0]


def three(initial):
    """Credit 3, three messages, one that waits."""
    given = {"messages": 4, "initial_delivery_count": initial}
    return acted("credit", given, ("grant", {"link_credit": 3}))


@pytest.mark.parametrize("initial", [0, 20, 2**32 - 2])
def test_credit_is_used_up_wherever_the_count_begins(initial):
    """Ours says so at the third message; a reader that counts from 0 only if the sender does."""
    rows = three(initial)
    credits, used_up = ours(rows)
    assert credits == [2, 1, 0]
    (stall,) = [row for row in folds.stalls(rows) if row.seq == used_up[0]]
    assert stall.brake == "link-credit"
    assert (read(CountsFromZero(), rows)[1] == used_up) == (initial == 0)


@pytest.mark.parametrize("initial", [0, 20, 2**32 - 2])
def test_a_transfer_that_leaves_more_out_counts(initial):
    """The default of `more` is false [2.7.5]; the faulty reader stays at 3."""
    rows = without_more(three(initial))
    assert ours(rows)[0] == [2, 1, 0]
    assert read(BelievesTheFlow(), rows)[0] == [3, 3, 3]
    assert [row.brake for row in folds.stalls(rows)] == ["link-credit", "link-credit"]


def test_a_second_exhaustion_after_a_drain_is_seen():
    """The drain moves the sender's count by 47; a reader that starts again at 0 misses the rest."""
    rows = acted(
        "credit", {"messages": 3, "initial_delivery_count": 0},
        ("grant", {"link_credit": 50}), ("drain", {}), ("publish", {"count": 4}),
        ("grant", {"link_credit": 2}),
    )  # fmt: skip
    credits, used_up = ours(rows)
    assert credits == [49, 48, 47, 1, 0]
    assert len(used_up) == 1
    assert read(CountsFromZero(), rows)[1] == []
    assert folds.stalls(rows)[-1].seq == used_up[0]


def test_a_flow_that_crosses_a_transfer_leaves_five_and_not_six():
    """Count 20, credit 3, a grant of 6 crosses one message: 20 + 6 − 21 = 5 [2.6.7]."""
    rows = run("race").act_each(
        ["send_flow", "flow_arrives", "send_transfer", "send_flow", "transfer_arrives",
         "flow_arrives"]
    ).rows  # fmt: skip
    reader = BelievesTheFlow()
    theirs = []
    for row in sender_rows(rows):
        fields = {name.replace("_", "-"): value for name, value in (row.frame or {}).items()}
        reader.read(row.kind, fields, row.from_peer == row.link_sender)
        theirs.append(reader.credit)
    places = [row.seq for row in sender_rows(rows)]
    right = {row.seq: row.link_credit for row in folds.credit_rows(rows)}
    assert (theirs[-1], right[places[-1]]) == (6, 5)
