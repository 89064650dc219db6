"""Dead letters: where they go, what they tell of themselves, and that none travels for ever.

How a conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.broker.dead_letters import is_cycle, recorded
from workbench.queues import Death

from .rig import RMQ43
from .talk import Talk


def dead_to(key: str, exchange: str = "''") -> str:
    """Arguments of a queue whose dead letters go there."""
    return f"dead_letter_exchange={exchange} dead_letter_routing_key={key}"


TALKS = {
    "a rejected message goes to the dead-letter exchange with its history": f"""
        queue work {dead_to("dead")}; queue dead; attach to=/queues/work; send x
        receive of=/queues/work; grant 1; settle rejected -> stock work=0 dead=1
        receive d of=/queues/dead; grant 1 -> holds x | deaths work:rejected*1""",
    # It would expire again at once; without a key of the queue's it goes on as it came.
    "a dead letter loses its own ttl and keeps its key if no other is given": """
        queue work dead_letter_exchange=amq.direct; queue dead; bind amq.direct dead work
        attach to=/queues/work; send x ttl=60000; receive of=/queues/work; grant 1 -> ttl 60000
        settle rejected; receive d of=/queues/dead; grant 1 -> holds x | ttl None""",
    # The latest death comes first.
    "an expired message may die again elsewhere and both are told": f"""
        queue a message_ttl_ms=10 {dead_to("b")}; queue b message_ttl_ms=10 {dead_to("c")}; queue c
        attach to=/queues/a; send x; wait 100 -> stock a=0 b=0 c=1
        receive of=/queues/c; grant 1 -> deaths b:expired*1 a:expired*1""",
    # a to b to a: nobody rejected it, so it would go on for ever.
    "a message that expires in a circle is dropped when it comes round": f"""
        queue a message_ttl_ms=10 {dead_to("b")}; queue b message_ttl_ms=10 {dead_to("a")}
        attach to=/queues/a; send 3; wait 1000 -> stock a=0 b=0 | drops b:cycle b:cycle b:cycle""",
    # The usual retry: rejected into a waiting queue, expired back into the first.
    "a message that somebody rejects may go round": f"""
        queue work {dead_to("wait")}; queue wait message_ttl_ms=10 {dead_to("work")}
        attach to=/queues/work; send x; receive of=/queues/work
        {"grant 1; settle rejected; wait 100;" * 3} wait 1 -> stock work=1 wait=0
        grant 1 -> work.enqueued 4 | deaths wait:expired*3 work:rejected*3""",
    # The exchange may come later, or never: at most once.
    "a dead letter that no exchange or queue takes is gone": f"""
        queue work {dead_to("k", "none")}; attach to=/queues/work; send x
        receive of=/queues/work; grant 1; settle rejected
        exchange none; s: send x; r: grant 1; settle rejected
        -> drops work:no-exchange work:unroutable""",
    # What is purged goes nowhere.
    "a quorum queue sends on what was rejected and what failed too often": f"""
        queue work type=quorum delivery_limit=0 {dead_to("dead")}; queue dead
        attach to=/queues/work; send 3; receive of=/queues/work; grant 1; settle rejected
        grant 1; settle failed; purge work -> dead.ready 2
        receive d of=/queues/dead; grant 1 -> deaths work:rejected*1
        grant 1 -> deaths work:delivery_limit*1""",
}


@pytest.mark.parametrize("script", TALKS.values(), ids=TALKS)
def test_where_dead_letters_go(script) -> None:
    """In RabbitMQ 4.3."""
    Talk(RMQ43).play(script)


DEATHS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["expired", "rejected", "maxlen"])),
    max_size=12,
)


@settings(derandomize=True, max_examples=150)
@given(DEATHS)
def test_deaths_are_counted_by_queue_and_reason_the_latest_first(history) -> None:
    """Counts add up, every pair is there once, and a circle without rejection is one."""
    deaths: tuple[Death, ...] = ()
    for at, (queue, reason) in enumerate(history):
        new = Death(
            queue=queue, reason=reason, exchange="", routing_keys=(), first_us=at, last_us=at
        )
        deaths = recorded(deaths, new)
    assert sum(death.count for death in deaths) == len(history)
    pairs = [(death.queue, death.reason) for death in deaths]
    assert len(set(pairs)) == len(pairs) == len(set(history))
    assert [death.last_us for death in deaths] == sorted(
        (death.last_us for death in deaths), reverse=True
    )
    for queue in "abc":
        names = [death.queue for death in deaths]
        inside = deaths[: names.index(queue) + 1] if queue in names else ()
        quiet = all(death.reason != "rejected" for death in inside)
        assert is_cycle(queue, deaths) is (bool(inside) and quiet)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=6))
def test_no_dead_letter_travels_for_ever(edges) -> None:
    """Queues that hand each other what expires, in any pattern: in the end all rests."""
    targets = dict(edges)
    talk = Talk(RMQ43)
    for name in "abcd":
        to = targets.get(name)
        talk.do(f"queue {name}" + f" message_ttl_ms=1 {dead_to(to)}" * (to is not None))
    talk.play("attach to=/queues/a; send 2; wait 100")
    queues = talk.rig.broker.queues
    assert not any(queues[name].queue.ready for name in targets)
    assert sum(queue.queue.enqueued for queue in queues.values()) <= 2 * len("abcd")
