"""The counters of the ATM paper, kept by counting cells, beside the counters of AMQP."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.exercises.atm import atm_counters
from workbench.exercises.audit import audited_run
from workbench.scenarios import run


def acted(played, acts):
    """The run after some acts, each when the one before has come to rest."""
    for name, arguments in acts:
        played = played.then(name, **arguments)
    return played


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    first=st.integers(0, 6),
    raised=st.integers(0, 5),
    before=st.integers(1, 4),
    crossing=st.integers(1, 4),
    start=st.sampled_from([0, 20, 2**31, 2**32 - 2]),
)
def test_the_paper_s_balance_is_the_sender_s_credit(first, raised, before, crossing, start):
    """Crd_Bal = link-credit(snd) in every state, as long as grants only grow and nobody drains."""
    queue = run("credit", parameters={"messages": before, "initial_delivery_count": start})
    held = [("hold", {"direction": "c2b"}), ("grant", {"link_credit": first + raised})]
    freed = [("publish", {"count": crossing}), ("release", {"direction": "c2b"})]
    balances = atm_counters(acted(queue, [("grant", {"link_credit": first}), *held, *freed]))
    assert balances.differing == []
    assert "in every one of" in balances.summary


def test_a_drain_gives_credit_back_without_a_cell():
    """AMQP's count moves without a message; the paper's counts cells, so its balance stays."""
    balances = atm_counters(audited_run(3, initial_delivery_count=20))
    assert [row.kind for row in balances.differing] == ["flow sent"]
    given_back = balances.differing[0]
    assert (given_back.crd_bal, given_back.link_credit) == (5, 0)
    # The next flow tells a new count, and the two agree again.
    assert balances.rows[-1].agrees


def test_a_cut_below_what_is_in_flight_goes_below_zero_in_the_paper():
    """AMQP's sender stops at 0; the balance of the paper says by how much it is past the limit."""
    busy = run("credit", parameters={"messages": 60})
    busy = busy.act(busy.start_seq, "grant", link_credit=40)
    second = [row.seq for row in busy.rows if row.kind == "transfer" and row.event == "received"][1]
    balances = atm_counters(busy.act(second, "grant", link_credit=0))
    below = [row for row in balances.differing if row.crd_bal < 0]
    assert below
    assert all(row.link_credit == 0 for row in below)


@pytest.mark.parametrize("start", [0, 20, 2**31, 2**32 - 2])
def test_cells_are_counted_from_zero_whatever_the_first_delivery_count(start):
    """The paper's counters are counts; AMQP's is a sequence number with any beginning."""
    balances = atm_counters(audited_run(3, initial_delivery_count=start))
    assert balances.rows[-1].tx_cnt == 7
    assert [row.crd_bal for row in balances.rows] == [
        row.crd_bal for row in atm_counters(audited_run(3)).rows
    ]


def test_the_table_says_where_the_accounts_differ():
    """A sign in the last column, and the steps by number below."""
    text = str(atm_counters(audited_run(3)))
    assert "Tx_Cnt" in text
    assert "≠" in text
    assert "they differ at step" in text
    assert "≠" in atm_counters(audited_run(3))._repr_html_()


def test_what_is_in_flight_when_the_flow_leaves_is_not_forwarded_yet():
    """Fwd_Cnt counts what has arrived at the receiver, not what the sender has sent."""
    busy = run("credit", parameters={"messages": 60})
    busy = busy.act(busy.start_seq, "grant", link_credit=20)
    second = [row.seq for row in busy.rows if row.kind == "transfer" and row.event == "received"][1]
    balances = atm_counters(busy.act(second, "grant", link_credit=30))
    assert balances.differing == []
    assert balances.rows[-1].fwd_cnt == 2


@pytest.mark.parametrize(
    "played",
    [
        run("credit", parameters={"messages": 5, "message_bytes": 100_000}).then(
            "grant", link_credit=3
        ),
        run("publishers").then("publish", count=3),
        run("quorum", parameters={"messages": 5, "link_credit": 3, "replicas": "3"}),
    ],
    ids=["in several frames", "a publisher", "behind another link"],
)
def test_the_accounts_agree_whatever_the_link(played):
    """A message costs its credit with its first frame, and is a cell then."""
    balances = atm_counters(played)
    assert balances.rows
    assert balances.differing == []
