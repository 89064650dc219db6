"""One of two queues first, by credit alone."""

import pytest

from workbench.scenarios import ActionError, run


def played(**parameters):
    """A run of the scenario."""
    return run("two_queues", parameters=parameters)


def order(done):
    """From which queues messages came, in order: first letters."""
    arrived = [row for row in done.rows if (row.kind, row.event) == ("transfer", "received")]
    return "".join(row.link[0] for row in arrived)


def test_credit_on_one_link_alone_brings_messages_of_that_queue_alone():
    """Both queues are full; who has no credit waits."""
    idle = played()
    done = idle.act(idle.rows[-1].seq, "grant", link_credit=4, queue="bulk")
    assert order(done) == "bbbb"


def test_changing_one_link_s_credit_leaves_the_other_s_alone():
    """Credit belongs to a link, not to its session."""
    idle = played()
    both = idle.act(idle.rows[-1].seq, "grant", link_credit=3, queue="bulk")
    done = both.act(both.rows[-1].seq, "grant", link_credit=2, queue="urgent")
    assert order(done) == "bbbuu"
    assert done.world.peers["consumer"].consumers["bulk"].link_credit == 0


def test_equal_credit_serves_both_in_turn():
    """Neither is ever more than one batch ahead."""
    text = order(played(policy="equal", n=4, messages_urgent=30, messages_bulk=30))
    assert len(text) == 60
    ahead = [text[:end].count("u") - text[:end].count("b") for end in range(61)]
    assert max(map(abs, ahead)) <= 4


@pytest.mark.parametrize("n", [1, 2, 3, 4, 50])
def test_preferring_serves_the_second_queue_only_when_the_first_has_nothing(n):
    """By credit alone: all of the first, then the second; the smallest batch is enough."""
    text = order(played(policy="prefer", n=n, messages_urgent=20, messages_bulk=20))
    assert text == "u" * 20 + "b" * 20


def test_a_message_in_the_first_queue_goes_ahead_of_what_waits_in_the_second():
    """What comes later and is urgent overtakes, but for what was under way already."""
    begun = played(policy="prefer", n=4, messages_urgent=2, messages_bulk=40)
    at = next(
        row.seq
        for row in begun.rows
        if row.kind == "transfer" and row.event == "received" and row.link == "bulk"
    )
    done = begun.act(at, "publish", queue="urgent", count=3)
    text = order(done)
    assert text.count("u") == 5
    assert text.count("b") == 40
    assert text.rindex("u") < 2 + 3 + 3 * 4


@pytest.mark.parametrize("n", [2, 4, 8])
def test_while_the_first_queue_has_messages_the_second_gets_no_new_credit(n):
    """Between the first urgent message and the last come only bulk ones granted before."""
    begun = played(policy="prefer", n=n, messages_urgent=0, messages_bulk=60)
    at = next(row.seq for row in begun.rows if row.kind == "transfer" and row.event == "received")
    text = order(begun.act(at, "publish", queue="urgent", count=30))
    between = text[text.index("u") : text.rindex("u")]
    assert between.count("u") == 29
    assert between.count("b") <= n
    assert text.count("b") == 60


def test_acknowledging_brings_no_message():
    """Settling and credit are two things [2.6.7]."""
    idle = played()
    done = idle.act(idle.rows[-1].seq, "grant", link_credit=2)
    settled = done.act(done.rows[-1].seq, "acknowledge")
    assert order(settled) == "uu"
    with pytest.raises(ActionError, match="nothing of urgent is unsettled"):
        settled.act(settled.rows[-1].seq, "acknowledge")
