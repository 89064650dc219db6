"""An actor handles one message at a time, each after its service time."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from workbench.sim import Actor, VirtualClock
from workbench.sim.credit_flow import CreditFlow


def test_messages_are_handled_in_order_one_per_service_time() -> None:
    """Three messages posted at once are done after one, two and three service times."""
    clock = VirtualClock()
    done: list[tuple[int, str]] = []
    actor: Actor[str] = Actor(
        clock, "queue:q", service_us=10, handle=lambda m: done.append((clock.now_us, m))
    )
    for message in "abc":
        actor.post(message)
    assert actor.depth == 3
    clock.step()
    assert actor.depth == 2
    clock.run_until_rest()
    assert done == [(10, "a"), (20, "b"), (30, "c")]
    assert actor.overview() == {"name": "queue:q", "depth": 0, "deepest": 3, "handled": 3}


def test_each_message_is_one_clock_event_even_without_service_time() -> None:
    """A learner can act between any two messages."""
    clock = VirtualClock()
    done: list[int] = []
    actor: Actor[int] = Actor(clock, "a", service_us=0, handle=done.append)
    actor.post(1)
    actor.post(2)
    assert done == []
    clock.step()
    assert done == [1]
    clock.step()
    assert done == [1, 2]


def test_service_time_may_depend_on_the_message() -> None:
    """The service time is asked when a message's turn comes."""
    clock = VirtualClock()
    done: list[int] = []
    actor: Actor[int] = Actor(
        clock, "a", service_us=lambda m: m * 100, handle=lambda _: done.append(clock.now_us)
    )
    actor.post(2)
    actor.post(3)
    clock.run_until_rest()
    assert done == [200, 500]


def test_a_handler_that_posts_to_itself_queues_up_behind_the_others() -> None:
    """The mailbox is first in, first out for everybody."""
    clock = VirtualClock()
    done: list[str] = []

    def handle(message: str) -> None:
        done.append(message)
        if message == "a":
            actor.post("c")

    actor: Actor[str] = Actor(clock, "a", service_us=1, handle=handle)
    actor.post("a")
    actor.post("b")
    clock.run_until_rest()
    assert done == ["a", "b", "c"]


def test_withdrawing_the_whole_mailbox_stops_the_service() -> None:
    """Nothing is left to do, so the run rests."""
    clock = VirtualClock()
    done: list[int] = []
    actor: Actor[int] = Actor(clock, "a", service_us=5, handle=done.append)
    actor.post(1)
    actor.post(2)
    assert actor.withdraw(lambda m: m == 2) == 1
    assert actor.withdraw(lambda m: True) == 1
    assert clock.due == 0
    clock.run_until_rest()
    assert done == []


def chain(clock: VirtualClock, **owner: Any) -> list[Actor[int]]:
    """Reader, channel and queue: each hands on what it handles, for credit of 400 and 200."""
    actors: list[Actor[int]] = []

    def hand_on(at: int, message: int) -> None:
        if at < 2:
            actors[at].send(actors[at + 1], message)

    for at, name in enumerate(("reader", "channel", "queue")):
        actors.append(
            Actor(
                clock,
                name,
                service_us=1,
                handle=partial(hand_on, at),
                flow=CreditFlow(initial=400, more_after=200),
                **(owner if at == 0 else {}),
            )
        )
    return actors


def test_a_queue_that_hangs_stops_the_reader_after_800_messages() -> None:
    """As measured on RabbitMQ 4.3.6 and 3.10.8: reader at 0, channel at -400, two grants kept."""
    clock = VirtualClock()
    blocked: list[bool] = []
    reader, channel, queue = chain(clock, owns_socket=True, blocking=blocked.append)
    queue.stall()
    for number in range(2_000):
        reader.post(number)
    clock.run_until_rest()
    assert (reader.depth, channel.depth, queue.depth) == (1_200, 0, 800)
    assert reader.flow is not None
    assert channel.flow is not None
    assert reader.flow.credit_from == {"channel": 0}
    assert channel.flow.credit_from == {"queue": -400}
    assert [grant.credit for grant in channel.flow.kept] == [200, 200]
    assert blocked == [True]
    queue.resume()
    clock.run_until_rest()
    assert (reader.depth, channel.depth, queue.depth) == (0, 0, 0)
    assert queue.overview()["handled"] == 2_000
    assert blocked[-1] is False


def test_a_process_that_owns_no_socket_goes_on_below_nothing() -> None:
    """Only grants kept back stop those before it."""
    clock = VirtualClock()
    reader, _, queue = chain(clock)
    queue.stall()
    for number in range(2_000):
        reader.post(number)
    clock.run_until_rest()
    assert queue.depth == 2_000


def test_processes_that_count_no_credit_just_post() -> None:
    """Off by default: a message costs nothing."""
    clock = VirtualClock()
    done: list[int] = []
    to: Actor[int] = Actor(clock, "b", service_us=0, handle=done.append)
    Actor[int](clock, "a", service_us=0, handle=done.append).send(to, 7)
    clock.run_until_rest()
    assert done == [7]


def test_a_process_that_is_gone_holds_nobody_up_and_its_grants_mean_nothing() -> None:
    """`peer_down`: what was kept back for its sake is granted; a successor begins anew."""
    clock = VirtualClock()
    reader, channel, queue = chain(clock, owns_socket=True)
    queue.stall()
    for number in range(2_000):
        reader.post(number)
    clock.run_until_rest()
    assert reader.blocked and channel.blocked
    queue.end()
    assert not channel.blocked
    assert channel.flow is not None
    assert channel.flow.credit_from == {}
    clock.run_until_rest()
    successor = chain(clock)[2]
    channel.send(successor, 1)
    assert channel.flow.credit_from == {"queue": 399}


def test_a_receiver_says_how_much_credit_each_sender_has() -> None:
    """A message store gives its queues more than a queue gives its channels."""
    clock = VirtualClock()
    done: list[int] = []
    sender, roomy, narrow = (
        Actor[int](
            clock,
            name,
            service_us=1,
            handle=done.append,
            flow=CreditFlow(initial=initial, more_after=initial // 2),
        )
        for name, initial in (("queue", 400), ("store", 4_000), ("other", 2))
    )
    for _ in range(2):
        sender.send(roomy, 1)
        sender.send(narrow, 1)
    assert sender.flow is not None
    assert sender.flow.credit_from == {"store": 3_998, "other": 0}
    assert sender.flow.blocked_by == ("other",)


def test_a_process_is_charged_for_what_waits_where_it_sends() -> None:
    """So a standing queue builds up behind a slow one that makes both equally fast, and no more."""
    clock = VirtualClock()
    slow: Actor[int] = Actor(clock, "slow", service_us=100, handle=lambda _: None)
    quick: Actor[int] = Actor(
        clock,
        "quick",
        service_us=40,
        handle=lambda number: quick.send(slow, number),
        penalty_ns=2_000,
    )
    for number in range(600):
        quick.post(number)
    deepest = []
    while quick.depth:
        clock.step()
        deepest.append(slow.depth)
    assert max(deepest[len(deepest) // 2 :]) in (30, 31, 32)  # (100 - 40) us at 2 us each


def test_what_is_lost_below_a_microsecond_is_carried_over() -> None:
    """Four messages of 400 ns each are one microsecond and 600 ns."""
    clock = VirtualClock()
    there: Actor[int] = Actor(clock, "there", service_us=10_000, handle=lambda _: None)
    done: list[int] = []

    def handle(number: int) -> None:
        done.append(clock.now_us)
        here.send(there, number)

    here: Actor[int] = Actor(clock, "here", service_us=10, handle=handle, penalty_ns=400)
    for number in range(6):
        here.post(number)
    clock.run_until_rest()
    # Charged for 0, 1, 2, 3 waiting messages; each charge counts from the service after the next.
    assert [after - before for before, after in pairwise(done)] == [10, 10, 10, 11, 11]
