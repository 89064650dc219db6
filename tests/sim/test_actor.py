"""An actor handles one message at a time, each after its service time."""

from __future__ import annotations

from workbench.sim import Actor, VirtualClock


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


def test_a_prompt_actor_does_what_takes_no_time_within_the_event_that_brings_it() -> None:
    """In order, after the rest of that event; what takes time has events of its own."""
    clock = VirtualClock()
    done: list[tuple[int, int]] = []
    actor: Actor[int] = Actor(
        clock,
        "a",
        service_us=lambda message: 0 if message < 10 else message,
        handle=lambda message: done.append((clock.now_us, message)),
        prompt=True,
    )

    def bring() -> None:
        for message in (1, 2, 20, 3):
            actor.post(message)
        done.append((clock.now_us, 0))

    clock.call_soon(bring)
    clock.step()
    assert done == [(0, 0), (0, 1), (0, 2)]
    assert actor.depth == 2
    clock.run_until_rest()
    assert done[3:] == [(20, 20), (20, 3)]
    actor.stall()
    clock.call_soon(actor.post, 4)
    clock.run_until_rest()
    assert actor.depth == 1


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
