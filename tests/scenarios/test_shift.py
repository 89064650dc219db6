"""The large trace of lesson 10: what its plan says is what happens in it, and in no other place."""

import pytest

from workbench.scenarios.run import run
from workbench.scenarios.shift import Plan, shift_parts
from workbench.trace import files
from workbench.trace.copies import write_copies
from workbench.trace.schema import SENT

SMALL = Plan(
    noon=(2, 4), alarm=(5, 6), hang=(7, 10), over=12, shops=2, shop=10, orders=200, archive=200
)
S = 1_000_000


@pytest.fixture(scope="module")
def parts():
    return {part.runs[0].rpartition("-")[0] or part.runs[0]: part for part in shift_parts(SMALL)}


def sent(part, link, start_s, end_s):
    """Messages over a link in a time."""
    return sum(
        row.kind == "transfer" and row.event == SENT and row.link == link
        and start_s * S <= row.t_us < end_s * S
        for row in part.rows
    )  # fmt: skip


def test_at_noon_a_shop_s_second_link_has_nothing_to_send(parts):
    """The first one goes on; and no brake is on, for there is credit."""
    shop = parts["shop"]
    start, end = SMALL.noon
    assert sent(shop, "q2", start + 0.2, end) == 0
    assert sent(shop, "q1", start, end) == pytest.approx((end - start) * SMALL.shop, abs=2)
    quiet = [
        row for row in shop.rows
        if start + 0.2 < row.t_us / S < end and row.link == "q2" and row.brake
    ]  # fmt: skip
    assert {row.brake for row in quiet} <= {"no-message"}


@pytest.mark.parametrize(("name", "link"), [("shop", "q1"), ("shop", "q2"), ("orders", "q1")])
def test_the_alarm_holds_every_publisher_and_then_all_comes_at_once(parts, name, link):
    """Nothing is sent while it is on; what was published meanwhile follows."""
    start, end = SMALL.alarm
    rate = SMALL.shop if name == "shop" else SMALL.orders
    assert sent(parts[name], link, start + 0.2, end) == 0
    assert sent(parts[name], link, end, end + 0.5) > rate * (end - start)


def test_the_queue_that_hangs_stops_one_link_when_its_credit_is_used_up(parts):
    """Its neighbour on the same session goes on."""
    orders = parts["orders"]
    start, end = SMALL.hang
    assert sent(orders, "q2", end - 0.5, end) == 0
    assert sent(orders, "q1", end - 0.5, end) == pytest.approx(0.5 * SMALL.orders, abs=2)
    held = {row.brake for row in orders.rows if row.link == "q2" and start < row.t_us / S < end}
    assert "unconfirmed" in held


@pytest.mark.slow
def test_each_client_is_a_run_of_its_own_and_the_file_is_whole(tmp_path, parts):
    """Copies differ in nothing but their name; rows are in order of (run, seq)."""
    path = tmp_path / "shift.parquet"
    told = []
    count = write_copies(path, shift_parts(SMALL, lambda *step: told.append(step)))
    rows = files.read(path)
    assert len(rows) == count == sum(len(part.rows) * len(part.runs) for part in parts.values())
    names = list(dict.fromkeys(row.run for row in rows))
    assert names == ["shop-01", "shop-02", "orders", "archive"]
    for name in names:
        assert [row.seq for row in rows if row.run == name] == list(
            range(sum(row.run == name for row in rows))
        )
    assert [done for done, _, _ in told] == [0, 1, 2, 3]
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, parts):
    """No folder there: the error is the system's, and no part is left."""
    with pytest.raises(files.TraceFileError, match="No such file"):
        write_copies(tmp_path / "none" / "shift.parquet", list(parts.values()))
    assert list(tmp_path.iterdir()) == []


def test_acts_with_arguments_one_after_the_other_are_the_same_run():
    """`act_each` with arguments, and one `act` at the end after another."""
    begun = run("publishers", "rmq4.3", {"queues": 2})
    acts = [("publish", {"queue": "q1", "count": 3}), ("stall", {"queue": "q1"}),
            ("publish", {"queue": "all", "count": 2}), ("resume", {"queue": "q1"})]  # fmt: skip
    at_once = begun.act_each(acts)
    played = begun
    for name, arguments in acts:
        played = played.act(len(played.rows) - 1, name, **arguments)
    assert at_once.rows == played.rows
    assert at_once.actions == played.actions
