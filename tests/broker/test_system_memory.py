"""The model of a machine's memory: how what is freed comes back, and when alarms go off."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.broker.system_memory import SystemMemory, SystemMemoryError
from workbench.sim import NoTap, VirtualClock

S = 1_000_000


class Machine:
    """A broker that holds what a test says."""

    def __init__(self, **numbers: Any) -> None:
        self.clock = VirtualClock()
        self.alarms: list[str] = []
        self.holds = 0
        self.died = 0
        given = {
            "total": 1_000,
            "others": 100,
            "watermark": 0.95,
            "counts": "machine",
            "collected_us": 2 * S,
            "reclaimed_us": 3 * S,
        }
        self.memory = SystemMemory(
            self, lambda: self.holds, tap=NoTap(), exhausted=self._dies, **given | numbers
        )

    def _dies(self) -> None:
        self.died += 1

    def set_alarm(self, resource: str = "memory") -> None:
        self.alarms.append(resource)

    def clear_alarm(self, resource: str = "memory") -> None:
        self.alarms.remove(resource)

    def hold(self, octets: int) -> None:
        self.holds = octets
        self.memory.received(1)

    def until(self, seconds: float) -> Machine:
        while (due := self.clock.next_us) is not None and due <= seconds * S:
            self.clock.step()
        return self

    @property
    def log(self) -> list[tuple[float, bool]]:
        return [(t_us / S, on) for t_us, on in self.memory.log]


@pytest.mark.parametrize(("octets", "alarm"), [(850, False), (851, True)])
def test_d9_the_alarm_is_set_above_95_of_100_of_the_system_s_memory(octets, alarm) -> None:
    """Of all that is in use, others' included; at the watermark it is not set yet."""
    machine = Machine()
    machine.hold(octets)
    assert bool(machine.until(1).alarms) is alarm


def test_d10_a_lowered_watermark_sets_the_alarm_at_the_next_look_within_a_second() -> None:
    """memsup:set_sysmem_high_watermark(0.05), in between two looks."""
    machine = Machine()
    machine.hold(0)
    machine.until(3.4)
    machine.memory.set_watermark(0.05)
    machine.hold(1)
    assert machine.until(3.99).log == []
    assert machine.until(4).log == [(4.0, True)]


def test_the_alarm_is_cleared_after_collection_and_reclaiming_and_not_before() -> None:
    """What was freed is garbage for two seconds and spare for three, from the look that saw it."""
    machine = Machine()
    machine.hold(880)
    machine.until(1)
    machine.hold(0)
    machine.until(2)
    assert (machine.memory.garbage, machine.memory.spare, machine.alarms) == (880, 0, ["memory"])
    machine.until(4)
    assert (machine.memory.garbage, machine.memory.spare, machine.alarms) == (0, 880, ["memory"])
    assert machine.until(6.99).alarms == ["memory"]
    assert machine.until(7).log == [(1.0, True), (7.0, False)]
    assert machine.memory.in_use == 100


@pytest.mark.parametrize(
    ("counts", "cleared"), [("machine", 7.0), ("resident", 7.0), ("used", 4.0)]
)
def test_what_is_counted_decides_which_steps_are_waited_for(counts, cleared) -> None:
    """What the process counts itself is less as soon as garbage is collected."""
    machine = Machine(counts=counts, watermark=0.5)
    machine.hold(800)
    machine.until(1)
    machine.hold(0)
    assert machine.until(20).log == [(1.0, True), (cleared, False)]


def test_an_alarm_that_nothing_clears_does_not_keep_the_run_awake() -> None:
    """Others hold the memory: the run rests with the alarm on."""
    machine = Machine(others=990)
    machine.hold(5)
    assert machine.clock.run_until_rest(1_000) < 10
    assert machine.alarms == ["memory"]


def test_memory_that_was_collected_is_used_again_before_more_is_taken() -> None:
    """So a broker that drains and fills again does not grow for that."""
    machine = Machine()
    machine.hold(600)
    machine.until(1)
    machine.hold(0)
    machine.until(4)
    machine.hold(500)
    machine.until(5)
    assert (machine.memory.spare, machine.memory.in_use) == (100, 700)


def test_a_machine_without_an_octet_left_ends_the_broker_once() -> None:
    """It is seen between two looks."""
    machine = Machine(total=100_000)
    machine.holds = 99_901
    machine.memory.received(1_000)
    assert machine.died == 1 and machine.memory.gone
    machine.memory.received(100_000)
    assert machine.until(10).died == 1


def test_d11_the_log_has_the_article_s_two_lines_with_their_times() -> None:
    """As error_logger writes them: set at 15:13:31, cleared at 15:14:29."""
    machine = Machine(collected_us=20 * S, reclaimed_us=36 * S)
    machine.hold(880)
    machine.until(1)
    machine.hold(0)
    machine.until(90)
    assert machine.memory.log_lines(datetime(2008, 11, 9, 15, 13, 30, tzinfo=UTC)) == [
        "=INFO REPORT==== 9-Nov-2008::15:13:31 ===",
        "    alarm_handler: {set,{system_memory_high_watermark,[]}}",
        "=INFO REPORT==== 9-Nov-2008::15:14:28 ===",
        "    alarm_handler: {clear,system_memory_high_watermark}",
    ]
    vm = Machine(counts="used", watermark=0.5)
    vm.hold(800)
    assert vm.until(1).memory.log_lines()[1].endswith("{set,{vm_memory_high_watermark,[]}}")


@pytest.mark.parametrize(
    ("numbers", "telling"),
    [
        ({"watermark": 0}, "watermark 0 is no part of the memory; legal: above 0, up to 1"),
        ({"watermark": 1.01}, r"watermark 1\.01 is no part"),
        ({"watermark": -0.5}, "watermark -0.5"),
        ({"watermark": float("nan")}, "watermark nan"),
        ({"total": 0}, "total is 0; legal: 1 or more"),
        ({"others": -1}, "others is -1; legal: 0 or more"),
        ({"collected_us": -1}, "collected_us is -1"),
        ({"reclaimed_us": -1}, "reclaimed_us is -1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(numbers, telling) -> None:
    """Sizes below 0, and watermarks of 0 and above 1."""
    with pytest.raises(SystemMemoryError, match=telling) as refused:
        Machine(**numbers)
    assert "\n" not in str(refused.value)


@settings(max_examples=60, deadline=None)
@given(
    holds=st.lists(st.integers(0, 900), min_size=1, max_size=12),
    collected=st.integers(0, 4),
    reclaimed=st.integers(0, 4),
    counts=st.sampled_from(["machine", "resident", "used"]),
)
def test_alarms_alternate_and_all_memory_comes_back(holds, collected, reclaimed, counts) -> None:
    """Whatever is held when; at the end only others hold something, and no alarm is on."""
    machine = Machine(
        total=10_000,
        watermark=0.06,
        counts=counts,
        collected_us=collected * S,
        reclaimed_us=reclaimed * S,
    )
    for second, octets in enumerate([*holds, 0]):
        machine.until(second + 0.5)
        machine.hold(octets)
        memory = machine.until(second + 1).memory
        assert memory.in_use == 100 + octets + memory.garbage + memory.spare
        assert memory.compared <= memory.in_use <= memory.most
        assert bool(machine.alarms) is (memory.compared > memory.limit)
    machine.clock.run_until_rest(1_000)
    assert [on for _, on in machine.memory.log] == [True, False] * (len(machine.memory.log) // 2)
    assert (machine.memory.garbage, machine.memory.spare, machine.memory.in_use) == (0, 0, 100)
