"""Conversations with a queue of any kind, as `tests.conversation` reads them.

    put a b c; consume -> got -
    grant 2            -> got a b | credit 0

`Talk` gives the three kinds one face: a classic queue and a stream are told to dispatch until they
have nothing to hand out; a quorum queue hands out by itself, and numbers what is sent to it. A
consumer counts from where a test says, and is `a` if it has no name; `b:` and `b.` are another.
"""

from tests.conversation import Conversation
from workbench.queues import (
    Checkout,
    Confirm,
    Credit,
    Credited,
    DeadLettered,
    Deliver,
    DetachConsumer,
    Dispatch,
    Drained,
    Dropped,
    Enqueue,
    Expire,
    Message,
    Meta,
    Modify,
    Origin,
    Prefetch,
    Purge,
    QueueArguments,
    Reject,
    Rejected,
    Release,
    Settle,
    Start,
    make_queue,
)
from workbench.queues.quorum_fifo import Answered, Full, Handed, Logged, QuorumFifo

MODULUS = 2**32


class Talk(Conversation):
    """A queue and what it has handed out.

    Args:
        kind: classic, quorum or stream.
        start: delivery-count that consumers begin with.
        **arguments: of the declaration; `with` gives them too.
    """

    def __init__(self, kind="classic", start=0, **arguments):
        self.kind, self.start, self.arguments = kind, start, arguments
        self.made = None
        self.seq = self.t_us = 0
        self.got, self.held, self.order, self.gone, self.given_back = {}, {}, [], [], []
        self.told, self.name = [], "a"
        self.last = self.reply = None

    @property
    def queue(self):
        """Made with the first command."""
        if self.made is None:
            declared = QueueArguments(queue_type=self.kind, **self.arguments)
            quorum = self.kind == "quorum"
            self.made = QuorumFifo("q", declared) if quorum else make_queue("q", declared)
        return self.made

    def turn_to(self, who):
        self.name = who

    def apply(self, command):
        """Let the queue do this, and hand out what it then can."""
        self.reply, effects = self._applied(command)
        self._take(effects)
        while self.kind != "quorum" and self.queue.deliverable():
            self._take(self._applied(Dispatch())[1])

    def _applied(self, command):
        if self.kind != "quorum":
            return self.queue.apply(command, Meta(t_us=self.t_us))
        self.seq += 1
        return self.queue.apply(Logged("c", self.seq, 0, command, self.t_us))

    def _take(self, effects):
        for effect in effects:
            match effect:
                case Deliver() | Handed():
                    handed = effect.deliver if isinstance(effect, Handed) else effect
                    name, message = handed.consumer, handed.message
                    named = effect.number if isinstance(effect, Handed) else message.message_id
                    self.order.append(name)
                    self.got[name].append(message.payload.decode())
                    self.held[name].append(named)
                    self.last = message
                case Dropped(message=message, reason=reason):
                    self.gone.append(f"{message.payload.decode()}:{reason}")
                case DeadLettered(message=message, reason=reason, exchange=to, routing_keys=keys):
                    text = f"{message.payload.decode()}:{reason}"
                    self.gone.append(f"{text}@{to}/{','.join(keys)}")
                case Confirm():
                    self.told.append("confirmed")
                case Rejected(reason=reason):
                    self.told.append(f"rejected:{reason}")
                case Full(full=full):
                    self.told.append("full" if full else "room")
                case Drained(delivery_count=count):
                    self.given_back.append((count - self.start) % MODULUS)
                case Answered(credited=credited) if credited.drain:
                    self.given_back.append((credited.delivery_count - self.start) % MODULUS)

    # -- acts -----------------------------------------------------------------------------------

    def do_with(self, **arguments):
        """How the queue is declared, before anything else."""
        self.arguments |= arguments

    def do_at(self, ms):
        """The time from now on."""
        self.t_us = ms * 1000

    def do_put(self, *payloads, **fields):
        for payload in payloads:
            origin = Origin(exchange="x", routing_keys=("k",))
            message = Message(payload=str(payload).encode(), **fields)
            self.apply(Enqueue(message=message, origin=origin))

    def do_consume(self, name="a", prefetch=None, first="first", offset=None, **terms):
        """A consumer; of a stream, from a place or an offset on."""
        self.name = name
        self.got[name], self.held[name] = [], []
        mode = Credited(self.start) if prefetch is None else Prefetch(prefetch)
        start = Start(at=first) if offset is None else Start(offset=offset)
        terms["start"] = start if self.kind == "stream" else None
        self.apply(Checkout(consumer=name, mode=mode, **terms))

    def do_grant(self, credit, since=None, drain=False):
        """Credit, counted from where the queue is, or from so many deliveries on."""
        at = self.queue.consumer(self.name).delivery_count
        count = at if since is None else (self.start + since) % MODULUS
        named = {"consumer": self.name, "delivery_count": count}
        self.apply(Credit(link_credit=credit, drain=drain, **named))
        self.answer = self.reply

    def do_drain(self, credit):
        self.do_grant(credit, drain=True)

    def _outcome(self, kind, which, **fields):
        """Of deliveries by their places among all that the consumer has got."""
        ids = tuple(self.held[self.name][place] for place in which)
        self.apply(kind(consumer=self.name, message_ids=ids, **fields))
        assert self.reply.count == len(which)

    def do_settle(self, *which):
        self._outcome(Settle, which)

    def do_reject(self, *which):
        self._outcome(Reject, which)

    def do_release(self, *which):
        self._outcome(Release, which)

    def do_modify(self, *which, **fields):
        self._outcome(Modify, which, **fields)

    def do_fail(self, *which, **annotations):
        self._outcome(Modify, which, delivery_failed=True, annotations=annotations)

    def do_detach(self, failed=False):
        self.apply(DetachConsumer(consumer=self.name, delivery_failed=failed))

    def do_purge(self):
        self.apply(Purge())

    def do_expire(self):
        self.apply(Expire())

    # -- sights ---------------------------------------------------------------------------------

    def look(self, name):
        """A sight, of a consumer if one is named; or else what the queue has by that name."""
        whose, _, sight = name.rpartition(".")
        seen = getattr(self, f"see_{sight}", None)
        return getattr(self.queue, sight) if seen is None else seen(whose or self.name)

    def see_got(self, whose):
        return self.got[whose]

    def see_credit(self, whose):
        return self.queue.consumer(whose).link_credit

    def see_count(self, whose):
        """delivery-count from where it began."""
        return (self.queue.consumer(whose).delivery_count - self.start) % MODULUS

    def see_available(self, whose):
        return self.queue.available_to(whose)

    def see_overview(self, _):
        return self.queue.overview()

    def see_order(self, _):
        """Whose each delivery was."""
        return self.order

    def see_gone(self, _):
        """What has left: payload, reason, and exchange and keys of a dead letter."""
        return self.gone

    def see_told(self, _):
        """What publishers were told."""
        return self.told

    def see_given_back(self, _):
        """delivery-counts after credit was drained."""
        return self.given_back

    def see_ready_told(self, _):
        """In the answer to the last credit."""
        return self.answer.available

    def see_replied(self, _):
        """How many the last command was about."""
        return self.reply.count

    def see_acquired(self, _):
        """How often what was handed out last has been handed out."""
        return self.last.acquired_count

    def see_failed(self, _):
        return self.last.delivery_count

    def see_annotations(self, _):
        return self.last.annotations

    def see_deadline(self, _):
        """When the queue wants to be looked at, in ms."""
        due = self.queue.deadline_us()
        return None if due is None else due / 1000
