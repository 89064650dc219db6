"""Five answers to one overload: each keeps the machine alive or not, and loses something else."""

from __future__ import annotations

import pytest

from workbench.scenarios import ParameterError, run
from workbench.scenarios.emergency_brake import APP, memory_of
from workbench.scenarios.overload import (
    CUT_OFF,
    DISCARD,
    DISK,
    OPERATOR,
    OPTIONS,
    RELEASES,
    THROTTLE,
    outcome,
    outcomes,
)

TOTAL = 60_000


def test_d5_five_answers_to_one_overload_side_by_side() -> None:
    """Each loses something else: time, speed, the broker, the producer, messages."""
    found = {one.option: one for one in outcomes()}
    assert tuple(found) == OPTIONS
    assert [one.gone for one in found.values()] == [False, False, True, False, False]
    assert all(one.most_octets <= TOTAL or one.gone for one in found.values())
    throttle, disk = found[THROTTLE], found[DISK]
    assert (throttle.lost, throttle.kept, throttle.written) == (0, 0, 0) < (throttle.stood_us,)
    assert (disk.lost, disk.kept, disk.stood_us) == (0, 0, 0) and disk.written > 0
    assert disk.latency_us > 2 * throttle.latency_us
    assert found[OPERATOR].died > 0
    cut_off = found[CUT_OFF]
    assert cut_off.kept > 0 and cut_off.lost == cut_off.stood_us == 0
    discard = found[DISCARD]
    assert discard.discarded > 0 == discard.died == discard.kept


def test_every_message_has_one_fate() -> None:
    """Consumed, still with the producer, discarded, or dead."""
    for one in outcomes(messages=40):
        assert one.consumed + one.kept + one.lost == 40
        assert one.died >= 0
        assert one.gone or not one.died


def test_an_operator_who_comes_in_time_saves_the_broker() -> None:
    """Telling somebody is as good as how soon they come."""
    late = outcome(run("overload", "rmq1.8", {"option": OPERATOR}))
    early = outcome(run("overload", "rmq1.8", {"option": OPERATOR, "operator_us": 5_000_000}))
    assert late.gone and not early.gone
    assert (early.consumed, early.lost) == (60, 0)


def test_who_is_cut_off_is_told_why() -> None:
    """resource-error, which ends the connection; the consumer's goes on."""
    played = run("overload", "rmq1.8", {"option": CUT_OFF})
    (closed,) = [
        row for row in played.rows if row.kind == "connection.close" and row.event == "received"
    ]
    assert (closed.connection, closed.fields["reply_code"]) == (APP, 506)
    assert not memory_of(played.world).gone


@pytest.mark.parametrize("option", [DISK, DISCARD])
def test_what_a_release_has_not_is_refused_with_one_that_has_it(option) -> None:
    """1.8.0 keeps everything in memory, whatever a queue's arguments say."""
    with pytest.raises(ParameterError, match=rf"1\.8\.0 has not; legal: preset {RELEASES[option]}"):
        run("overload", "rmq1.8", {"option": option})


@pytest.mark.parametrize(
    ("parameters", "telling"),
    [
        ({"option": "pray"}, "option is 'pray'; legal: one of throttle, disk, operator"),
        ({"total_octets": 0}, "total_octets is 0; legal: 1"),
        ({"max_length_bytes": 0}, "max_length_bytes is 0; legal: 1"),
        ({"operator_us": -1}, "operator_us is -1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(parameters, telling) -> None:
    """Before the run begins."""
    with pytest.raises(ParameterError, match=telling):
        run("overload", "rmq1.8", parameters)


def test_memory_may_run_short_again_when_the_producer_is_gone() -> None:
    """There is nobody left to be cut off, and the run goes on."""
    told = {"option": CUT_OFF, "message_bytes": 65_536, "collected_us": 5}
    played = run("overload", "spec", told)
    assert APP not in played.world.broker.connections
    assert played.note == ""
