"""One function decides what holds a link's sender."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.trace import brakes


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, ()),
        ({"link_credit": 3, "available": 1, "remote_incoming_window": 1}, ()),
        ({"link_credit": 0, "available": 1}, ("link-credit",)),
        ({"link_credit": -2, "available": 1}, ("link-credit",)),
        ({"link_credit": 0, "available": 0}, ("no-message", "link-credit")),
        ({"link_credit": 5, "available": 1, "remote_incoming_window": 0}, ("session-window",)),
        (
            {"link_credit": 0, "available": 1, "remote_incoming_window": 0, "alarm": True},
            ("link-credit", "alarm", "session-window"),
        ),
        ({"link_credit": 0, "unconfirmed": True}, ("unconfirmed", "link-credit")),
        # Withheld credit holds nobody who still has some; an alarm nobody whose window is open.
        ({"link_credit": 1, "unconfirmed": True}, ()),
        ({"remote_incoming_window": 1, "alarm": True}, ()),
        ({"tcp": True, "prefetch": True}, ("prefetch", "tcp")),
        ({"credit_flow": True, "qpid_window": True}, ("qpid-window", "credit-flow")),
    ],
)
def test_all_that_hold_are_named_in_order(facts, found):
    """`brakes` lists all, `first` is the first of them in the order of the design."""
    assert brakes.brakes(**facts) == found
    assert brakes.first(found) == (found[0] if found else "none")


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "link_credit": st.none() | st.integers(-3, 3),
            "available": st.none() | st.integers(0, 2),
            "remote_incoming_window": st.none() | st.integers(-2, 2),
            **{
                name: st.booleans()
                for name in (
                    "unconfirmed",
                    "prefetch",
                    "qpid_window",
                    "credit_flow",
                    "alarm",
                    "tcp",
                )
            },
        },
    )
)
def test_order_and_words_hold_for_any_facts(facts):
    """Whatever holds is in the order and has words."""
    found = brakes.brakes(**facts)
    assert list(found) == sorted(found, key=brakes.ORDER.index)
    assert all(brakes.words(one) and brakes.short(one) for one in found)


def test_what_is_not_known_holds_nobody():
    """A brake is never guessed: in a capture `available` is often not known."""
    assert brakes.brakes(link_credit=None, available=None, remote_incoming_window=None) == ()
