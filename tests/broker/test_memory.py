"""The memory monitor: when it looks, and how often."""

from itertools import pairwise

from workbench.scenarios.run import run


def test_memory_is_looked_at_once_a_second_however_often_the_alarm_was_on() -> None:
    """Each alarm looks again; the one before has stopped."""
    given = {"limit_octets": 6000, "processing_us": 1000, "prefetch": 50, "message_bytes": 400}
    played = run("memory", "rmq4.3", {**given, "ready": 0}).then("consume", connection="c2")
    for count in (20, 20, 20, 20, 20, 20, 80):
        played = played.then("publish", connection="c1", count=count)
    played = played.then("wait", ms=5000)
    assert sum(row.event == "alarm-set" for row in played.rows) > 3
    looks = [row.t_us for row in played.rows if (row.event, row.kind) == ("note", "memory")]
    assert len(looks) > 3
    assert all(later - one >= 1_000_000 for one, later in pairwise(looks))
