"""The mailbox of a leader's process: how many commands a turn takes, and what it costs."""

import pytest

from workbench.broker.raft_group import CommandMailbox
from workbench.queues import Enqueue, Message
from workbench.queues.quorum_fifo import Logged
from workbench.sim import VirtualClock


def begun(command_us):
    """A mailbox, and when how many commands were taken."""
    clock, taken = VirtualClock(), []
    mailbox = CommandMailbox(
        clock, command_us, lambda some: taken.append((clock.now_us, len(some)))
    )
    return clock, mailbox, taken


def commands(count):
    """So many messages."""
    return tuple(
        Logged("p", at, at, Enqueue(message=Message(payload=b"m"))) for at in range(1, count + 1)
    )


def test_a_turn_takes_16_and_is_charged_for_each():
    """40 that came at once, 10 us each: 16, 16 and 8."""
    clock, mailbox, taken = begun(10)
    mailbox.post(commands(40))
    clock.run_until_rest()
    assert taken == [(160, 16), (320, 16), (400, 8)]


def test_what_comes_during_a_turn_waits_for_the_next_one():
    """A turn that began with one command takes one, however many have come meanwhile."""
    clock, mailbox, taken = begun(10)
    mailbox.post(commands(1))
    clock.call_at(5, mailbox.post, commands(7))
    clock.run_until_rest()
    assert taken == [(10, 1), (80, 7)]


def test_where_commands_cost_nothing_all_of_one_instant_go_together():
    """However many they are."""
    clock, mailbox, taken = begun(0)
    mailbox.post(commands(3))
    mailbox.post(commands(50))
    clock.run_until_rest()
    assert taken == [(0, 53)]


@pytest.mark.parametrize("how", ["suspended", "closed"])
def test_a_process_that_is_suspended_or_gone_takes_nothing_more(how):
    """A suspended one ends its turn and keeps the rest; of one that is gone nothing comes."""
    clock, mailbox, taken = begun(10)
    mailbox.post(commands(20))
    setattr(mailbox, how, True)
    clock.run_until_rest()
    assert taken == ([(160, 16)] if how == "suspended" else [])
    assert len(mailbox.withdraw()) == (4 if how == "suspended" else 20)
    mailbox.suspended = False
    mailbox.go_on()
    clock.run_until_rest()
    assert len(taken) <= 1
