"""Conversations written line by line fail where what is seen is not what is written."""

import pytest

from tests.conversation import Conversation


class Counter(Conversation):
    """Counts for whose turn it is."""

    def __init__(self):
        self.counts, self.who, self.pauses = {}, "a", 0

    def turn_to(self, who):
        self.who = who

    def go_on(self):
        self.pauses += 1

    def do_add(self, number, times=1):
        self.counts[self.who] = self.counts.get(self.who, 0) + number * times

    def see_counts(self):
        return self.counts

    def see_pauses(self):
        return self.pauses


def test_acts_are_done_in_order_and_something_happens_after_each_semicolon():
    """Also between lines; `+` joins, a name says whose turn it is from then on."""
    counter = Counter()
    counter.play("""
        -> counts -
        add 1 + add 2; b: add 5 times=2 -> counts a=3 b=10 | pauses 3
        add 1
        -> counts a=3 b=11""")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("add 1 -> counts a=2", "add 1 -> counts a=2: counts is a=1"),
        ("add 1 -> counts", "counts is a=1"),
        ("add 1 -> pauses 1 | counts -", "counts is a=1"),
        ("add 1\nadd 1 -> counts a=1", "counts is a=2"),
    ],
)
def test_what_is_seen_and_not_written_fails_with_its_line(script, why):
    """Every sight of every line is compared."""
    with pytest.raises(AssertionError, match=why):
        Counter().play(script)


@pytest.mark.parametrize("script", ["subtract 1", "add 1 -> count a=1", "add one two three"])
def test_a_word_that_is_none_is_an_error(script):
    """A slip of the pen does not pass for a test."""
    with pytest.raises((AttributeError, TypeError)):
        Counter().play(script)
