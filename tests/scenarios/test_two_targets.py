"""One session to a classic and to a quorum queue: the slow disk holds one link only."""

import pytest

from workbench.exercises.measure import link_rate, stalls_us
from workbench.lessons.lesson_05 import counter_before, sent
from workbench.scenarios import ActionError, ParameterError, run


def published(fsync_us, count=500, **more):
    """Both links publish, 20,000 messages a second each."""
    played = run("two_targets", "rmq4.3", {"fsync_us": fsync_us, **more})
    return played.act(played.rows[-1].seq, "publish", count=count)


def test_a19_a_slow_disk_leaves_the_classic_link_as_fast_as_before():
    """Within a tenth; the quorum link is held by unconfirmed."""
    fast, slow = published(1_000), published(20_000)
    assert link_rate(slow, "classic") == pytest.approx(link_rate(fast, "classic"), rel=0.1)
    assert link_rate(slow, "quorum") < 0.7 * link_rate(fast, "quorum")
    assert stalls_us(slow, "classic") == {}
    assert next(iter(stalls_us(slow, "quorum"))) == "unconfirmed"


@pytest.mark.parametrize("settled", [False, True])
def test_everything_is_confirmed_in_the_end(settled):
    """By both queues, settled or not."""
    played = published(5_000, 200, settled=settled)
    assert played.rested
    for queue in ("classic", "quorum"):
        assert sent(played.rows, queue) == 200
        assert counter_before(played.rows, len(played.rows), "unconfirmed", queue) == 0
    assert sum(row.event == "confirm" and row.queue == "quorum" for row in played.rows) == 200


def test_a26_half_the_fsync_time_twice_the_rate():
    """As fast as it can, over the quorum link alone."""
    rates = []
    for fsync_us in (20_000, 10_000):
        played = run("two_targets", "rmq4.3", {"fsync_us": fsync_us, "latency_us": 0})
        at = played.rows[-1].seq
        rates.append(
            link_rate(played.act(at, "publish", queue="quorum", count=2_000, rate=0), "quorum")
        )
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.05)


def test_what_cannot_be_is_refused():
    """With what is legal."""
    played = run("two_targets")
    with pytest.raises(ActionError, match="the links are not attached yet; legal now: slow_disk"):
        played.act(-1, "publish", count=1)
    with pytest.raises(ActionError, match="legal: one of all, classic, quorum"):
        played.act(played.rows[-1].seq, "publish", queue="q1", count=1)
    with pytest.raises(ParameterError, match="legal: one of 1, 3, 5, 7"):
        run("two_targets", parameters={"replicas": "2"})
    slower = played.act(played.rows[-1].seq, "slow_disk", fsync_us=9_000)
    assert slower.rows[-1].kind == "fsync-time"
