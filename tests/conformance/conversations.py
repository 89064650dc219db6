"""Conversations that more than one scenario has, with another type of queue or of value."""

from .driver import ACCEPTED, REJECTED, RELEASED, modified, rejected
from .rawamqp import Symbol


def every_outcome(run, queue_type):
    """Settle eight messages with eight different outcomes, then look at what comes back and how often."""
    name = f"c_outcomes_{queue_type}"
    address = run.declare(name, queue_type)
    run.fill(name, 8, header=[True], annotations={Symbol("x-mine"): "v"})
    consumer = run.connection()
    consumer.begin()
    run.step("attach")
    consumer.receiver(address)
    run.step("credit 8")
    consumer.flow(8, 0)
    outcomes = {
        "accepted": ACCEPTED,
        "rejected": REJECTED,
        "released": RELEASED,
        "modified, delivery failed": modified(True),
        "modified, undeliverable here": modified(False, True),
        "modified, with annotations": modified(True, False, {Symbol("x-opt-a"): "b", Symbol("x-opt-n"): 5}),
        "modified, nothing said": modified(),
        "rejected with an error": rejected("a:b", "why"),
    }
    for delivery_id, (name_of_outcome, outcome) in enumerate(outcomes.items()):
        run.step(name_of_outcome)
        consumer.disposition(delivery_id, None, outcome)
    run.step("second time: credit")
    consumer.flow(8, 8, received=8)
    run.step("second time: all failed")
    consumer.disposition(8, 20, modified(True))
    run.step("third time: credit")
    consumer.flow(20, consumer.transfers(), received=consumer.transfers())
    run.step("third time: all released")
    consumer.disposition(0, 40, RELEASED)
    run.step("fourth time: credit")
    consumer.flow(20, consumer.transfers(), received=consumer.transfers())
    run.step("queue")
    run.note("queue", run.queue_info(name))


def two_priorities(run, queue_type, name, priority):
    """Two consumers with credit, one of them with a priority, then eight messages."""
    address = run.declare(name, queue_type)
    plain = run.connection("plain " + queue_type)
    plain.begin()
    preferred = run.connection("preferred " + queue_type)
    preferred.begin()
    run.step(f"{queue_type}: attach")
    plain.receiver(address)
    preferred.receiver(address, properties={Symbol("rabbitmq:priority"): priority})
    run.step(f"{queue_type}: credit 5 and 4")
    plain.flow(5, 0)
    preferred.flow(4, 0)
    run.step(f"{queue_type}: publish 8")
    run.fill(name, 8)
    plain.quiet()
    preferred.quiet()


def single_active_with_priority(run, queue_type, name, priority):
    """A single active consumer, then another one with a higher priority."""
    address = run.declare(name, queue_type, **{"x-single-active-consumer": True})
    run.fill(name, 10)
    first = run.connection("first " + queue_type)
    first.begin()
    second = run.connection("second " + queue_type)
    second.begin()
    run.step(f"{queue_type}: first attaches")
    first.receiver(address)
    run.step(f"{queue_type}: first gives credit 3")
    first.flow(3, 0)
    run.step(f"{queue_type}: second attaches with a priority")
    second.receiver(address, properties={Symbol("rabbitmq:priority"): priority})
    first.quiet()
    run.step(f"{queue_type}: second gives credit 3")
    second.flow(3, 0)
    first.quiet(0.1)
    run.step(f"{queue_type}: first settles")
    first.disposition(0, 2)
    second.quiet()
    first.quiet(0.1)
    run.step(f"{queue_type}: first gives credit 3 more")
    first.flow(3, 3, received=3)
    second.quiet(0.1)
