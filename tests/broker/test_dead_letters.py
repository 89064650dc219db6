"""Dead letters: where they go, what they tell of themselves, and that none travels for ever."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.amqp10.messaging import (
    Accepted,
    AmqpValue,
    Header,
    MessageAnnotations,
    Modified,
    Rejected,
    decode_message,
    encode_message,
)
from workbench.broker.dead_letters import is_cycle, recorded
from workbench.frontends import message_of
from workbench.queues import Death, QueueArguments

from .rig import RMQ43, Rig

BODY = encode_message([Header(ttl=60_000), AmqpValue("x")])


def rig_of(**queues: QueueArguments) -> Rig:
    rig = Rig(RMQ43, plain_names=False)
    for name, arguments in queues.items():
        rig.broker.declare(name, arguments)
    return rig


def to(key: str | None, exchange: str = "", **more) -> QueueArguments:
    """A queue whose dead letters go there."""
    return QueueArguments(dead_letter_exchange=exchange, dead_letter_routing_key=key, **more)


def publish(rig: Rig, queue: str, count: int = 1) -> None:
    _, session = rig.raw()
    sender = rig.sender(session, f"/queues/{queue}")
    for _ in range(count):
        sender.send(BODY, settled=True)
    rig.rest()


def wait(rig: Rig, us: int) -> None:
    """Let so much time pass."""
    passed: list[bool] = []
    rig.clock.call_later(us, passed.append, True)
    while not passed:
        rig.clock.step()


def ready(rig: Rig) -> dict[str, int]:
    return {name: queue.queue.ready for name, queue in rig.broker.queues.items()}


def taken(rig: Rig, queue: str, connection: str = "c9", state=None, credit: int = 1):
    """One message of a queue, as its consumer gets it; settled with a state if one is given."""
    client, session = rig.raw(connection)
    receiver = rig.receiver(session, f"/queues/{queue}")
    receiver.grant(credit)
    rig.rest()
    if state is not None:
        receiver.settle(0, state=state)
        rig.rest()
    frames = [item for item in client.received if getattr(item, "payload", b"")]
    return decode_message(frames[0].payload) if frames else None


def annotations(sections) -> dict:
    (found,) = [one.value for one in sections if isinstance(one, MessageAnnotations)]
    return found


def test_a_rejected_message_goes_to_the_dead_letter_exchange_with_its_history() -> None:
    """x-opt-deaths tells queue, reason and count; x-first-death and x-last-death the ends."""
    rig = rig_of(work=to("dead"), dead=QueueArguments())
    publish(rig, "work")
    taken(rig, "work", state=Rejected())
    assert ready(rig) == {"work": 0, "dead": 1}
    sections = taken(rig, "dead", "c8")
    told = annotations(sections)
    assert told["x-first-death-queue"] == told["x-last-death-queue"] == "work"
    assert told["x-first-death-reason"] == "rejected"
    assert told["x-first-death-exchange"] == ""
    (death,) = told["x-opt-deaths"].items
    assert (death["queue"], death["reason"], death["count"]) == ("work", "rejected", 1)
    assert death["routing-keys"].items == ("work",)


def test_a_dead_letter_loses_its_own_ttl_and_keeps_its_key_if_no_other_is_given() -> None:
    """It would expire again at once; without x-dead-letter-routing-key it goes on as it came."""
    rig = rig_of(work=to(None, "amq.direct"), dead=QueueArguments())
    rig.broker.vhost.bind("amq.direct", "dead", "work")
    publish(rig, "work")
    taken(rig, "work", state=Rejected())
    sections = taken(rig, "dead", "c8")
    assert not [one for one in sections if isinstance(one, Header) and one.ttl is not None]


def test_an_expired_message_may_die_again_elsewhere_and_both_are_told() -> None:
    """The latest death comes first."""
    rig = rig_of(a=to("b", message_ttl_ms=10), b=to("c", message_ttl_ms=10), c=QueueArguments())
    publish(rig, "a")
    wait(rig, 100_000)
    assert ready(rig) == {"a": 0, "b": 0, "c": 1}
    deaths = annotations(taken(rig, "c"))["x-opt-deaths"].items
    assert [death["queue"] for death in deaths] == ["b", "a"]


def test_a_message_that_expires_in_a_circle_is_dropped_when_it_comes_round() -> None:
    """a to b to a: nobody rejected it, so it would go on for ever."""
    rig = rig_of(a=to("b", message_ttl_ms=10), b=to("a", message_ttl_ms=10))
    publish(rig, "a", 3)
    wait(rig, 1_000_000)
    assert ready(rig) == {"a": 0, "b": 0}
    dropped = [row for row in rig.recorder.rows if row.event == "drop" and row.vantage == "broker"]
    assert [row.queue for row in dropped] == ["b"] * 3


def test_a_message_that_somebody_rejects_may_go_round() -> None:
    """The usual retry: rejected into a waiting queue, expired back into the first."""
    rig = rig_of(work=to("wait"), wait=to("work", message_ttl_ms=10))
    publish(rig, "work")
    for number in range(3):
        told = taken(rig, "work", f"c{number + 2}", state=Rejected())
        assert told is not None
        wait(rig, 100_000)
        assert ready(rig)["wait"] == 0
    assert rig.broker.queues["work"].queue.enqueued == 4


def test_a_dead_letter_that_no_exchange_or_queue_takes_is_gone() -> None:
    """The exchange may come later, or never: at most once."""
    rig = rig_of(work=to("k", "none"))
    publish(rig, "work")
    taken(rig, "work", state=Rejected())
    rig.broker.vhost.routing.declare("none")
    publish_again = rig.broker.queues["work"].publish
    publish_again(message_of(BODY))
    rig.rest()
    taken(rig, "work", "c8", state=Rejected())
    reasons = [
        row.extra["reason"]
        for row in rig.recorder.rows
        if row.event == "drop" and row.vantage == "broker"
    ]
    assert reasons == ["no-exchange", "unroutable"]


def test_a_quorum_queue_sends_on_what_was_rejected_and_what_failed_too_often() -> None:
    """Reasons rejected and delivery_limit; what is purged goes nowhere."""
    rig = rig_of(work=to("dead", queue_type="quorum", delivery_limit=0), dead=QueueArguments())
    publish(rig, "work", 3)
    taken(rig, "work", "c2", state=Rejected())
    taken(rig, "work", "c3", state=Modified(delivery_failed=True))
    rig.broker.vhost.purge("work")
    rig.rest()
    assert ready(rig)["dead"] == 2
    told = [annotations(taken(rig, "dead", name, state=Accepted())) for name in ("c4", "c5")]
    assert [one["x-first-death-reason"] for one in told] == ["rejected", "delivery_limit"]


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
    rig = rig_of(
        **{
            name: to(targets[name], message_ttl_ms=1) if name in targets else QueueArguments()
            for name in "abcd"
        }
    )
    publish(rig, "a", 2)
    wait(rig, 100_000)
    assert not any(ready(rig)[name] for name in targets)
    assert sum(queue.queue.enqueued for queue in rig.broker.queues.values()) <= 2 * len("abcd")
