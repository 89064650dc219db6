"""What a queue of any kind answers to the commands that all of them know.

How a conversation is written: `tests.queues.talk`.
"""

import pytest

from .talk import MODULUS, Talk

STARTS = [0, 10, 2147483640, 4294967290, 4294967294]

ANY = {
    # Each uses one [AMQP 1.0, 2.6.7].
    "nothing is handed out without credit, and as much as it is, oldest first": """
        put a b c; consume -> got -
        grant 2 -> got a b | count 2 | credit 0 | acquired 1 | unsettled 2""",
    # Less than was sent is none.
    "credit is absolute and counts from the delivery-count that it names": """
        consume; grant 50; grant 50 -> credit 50
        grant 3; put a b c d e f g -> got a b c
        grant 2 since=0 -> got a b c
        grant 6 since=0 -> got a b c d e f | count 6 | credit 0""",
    "drain with more messages than credit uses it up and gives nothing back": """
        put a b c; consume; drain 2 -> got a b | count 2 | credit 0""",
    # delivery-count moves on by all of it, however far round that is [2.6.7]; a uint is legal.
    **{
        f"a drain of {credit} hands out what is there and gives the rest back": f"""
        put a b; consume; drain {credit} -> got a b | given_back {credit} | count {credit}
        drain {credit} -> given_back {credit} {2 * credit % MODULUS} | credit 0"""
        for credit in (5, 2147483648, 4294967293, 4294967294, 4294967295)
    },
    **{
        f"{outcome} brings no credit": f"""
        put a b c; consume; grant 2; {outcome} 0 1 -> got a b | count 2 | credit 0 | unsettled 0"""
        for outcome in ("settle", "reject", "release", "modify")
    },
    # Never more than its prefetch unsettled, and no credit command at all.
    **{
        f"a prefetching consumer gets credit back with {outcome}": f"""
        put a b c d; consume prefetch=2 -> got a b
        {outcome} 0 -> got a b c | unsettled 2
        put e; {outcome} 1 2 -> got a b c d e"""
        for outcome in ("settle", "reject")
    },
}

TAKEN = {
    # Its credit runs out first; then the next lower ones get messages.
    "the highest priority with credit is served first, and equals in turn": """
        consume low priority=-1; grant 2; consume x; grant 2; consume y; grant 2
        consume high priority=5; grant 2
        put m m m m m m m m -> order high high x y x y low low""",
    # When it leaves, what it held comes first, and the next one is active.
    "with a single active consumer the others wait with their credit": """
        with single_active_consumer=True
        put a b c; consume; grant 2; consume b; grant 9 -> got - | active a | available 0
        a: settle 0; detach -> active b | b.got b c""",
    # There is nothing it could get, however much is ready.
    "a waiting consumer that drains gives all its credit back": """
        with single_active_consumer=True
        put a; consume; consume b; drain 10 -> got - | count 10 | credit 0 | given_back 10""",
    # As if never sent, but for the count of handing out.
    "what comes back goes out before what was never out": """
        put a b; consume; grant 1; release 0; grant 1 -> got a a | acquired 2 | failed 0
        grant 1 -> got a a b""",
    # delivery-failed counts up the header's delivery-count [3.4.5].
    "modified counts the failure and merges annotations": """
        put a; consume; grant 1; fail 0 x-why=busy; grant 1 -> failed 1 | annotations x-why=busy""",
    # A lost client counts as a failed attempt, a detached one does not.
    **{
        f"detaching gives back what was not settled{', as failed' * failed}": f"""
        put a b c d; consume; grant 3; settle 1; detach failed={failed} -> replied 2
        consume b; grant 1 -> got a | failed {int(failed)}
        grant 9 -> got a c d"""
        for failed in (False, True)
    },
    # A purge leaves what consumers hold [3.4.3].
    "reject and purge take messages out with the reason": """
        put a b c; consume; grant 2; reject 0; purge -> replied 1 | gone a:rejected c:purged
        grant 0 -> ready 0 | unsettled 1 | terminal 2
        at 1 -> overview name=q ready=0 unsettled=1 terminal=2 enqueued=3 consumers=1 """
    """dropped=1 purged=1""",
    # The limit itself is legal, the newest is always taken; what consumers hold needs no room.
    **{
        f"drop-head with {limit} drops the oldest that is ready": f"""
        with {limit}=2
        put a b -> gone -
        put c -> gone a:maxlen
        consume; grant 1; put d -> got b | gone a:maxlen | ready 2 | ready_octets 2
        release 0 -> gone a:maxlen b:maxlen"""
        for limit in ("max_length", "max_length_bytes")
    },
    # The queue's and its own, in ms; the queue says when to look again.
    **{
        f"a message of ttl {own} expires at the shorter of two ages and not before": f"""
        with message_ttl_ms=5
        at 2; put a ttl_ms={own} -> deadline {2.0 + age}
        at {2 + age - 0.001}; expire -> gone -
        at {2 + age}; expire -> gone a:expired | ready 0 | terminal 1 | deadline None"""
        for own, age in ((None, 5), (3, 3), (9, 5))
    },
    # Behind one without an age an old one waits; at the head it goes and is not handed out.
    "messages expire from the head alone": """
        put a; put b ttl_ms=5; put c; at 9; expire -> deadline None | ready 3
        consume; grant 9 -> got a c | gone b:expired""",
    # Its time runs while a consumer has it, and nothing happens to it there.
    "what is released too old expires": """
        with message_ttl_ms=5
        put a; consume; grant 1; at 9; expire -> gone -
        release 0 -> gone a:expired""",
    # With the keys that it came with, or the queue's own; `""` is the default exchange.
    **{
        f"what leaves unwanted is dead-lettered to {to} unless it is purged": f"""
        with {how} max_length=1 message_ttl_ms=5
        put a b; consume; grant 1; reject 0; put c; at 5; expire; put d; purge
        -> gone a:maxlen@{to} b:rejected@{to} c:expired@{to} d:purged"""
        for how, to in (
            ("dead_letter_exchange=dlx", "dlx/k"),
            ("dead_letter_exchange='' dead_letter_routing_key=dead", "/dead"),
        )
    },
}


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("script", ANY.values(), ids=ANY)
def test_a_queue_of_any_kind_hands_out_for_credit(script, start, kind):
    """From any delivery-count."""
    Talk(kind, start).play(script)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("script", TAKEN.values(), ids=TAKEN)
def test_a_queue_whose_messages_are_for_one_consumer_each(script, kind):
    """Whose turn it is, what comes back, and what leaves."""
    Talk(kind, 4294967294).play(script)
