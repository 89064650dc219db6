"""Short conversations on one link, each with the counters that its last row leaves."""

from dataclasses import replace

from tests.trace.rows import Hand, link

WELCOME = ("client", "attach"), ("broker", "attach", {"initial_delivery_count": 20})
GRANT = ("client", "flow", {"delivery_count": 20, "link_credit": 5})
CLAIM = ("broker", "flow", {"delivery_count": 20, "link_credit": 7})
EARLY = ("client", "flow", {"link_credit": 5})
TRANSFER, PART = ("broker", "transfer"), ("broker", "transfer", {"more": True, "delivery_id": 1})
LOST = {"client": ("client", "lost"), "broker": ("broker", "lost")}

CONVERSATIONS = {
    "nothing is granted at first": (WELCOME, (20, 0)),
    "a grant, and a message": ((*WELCOME, GRANT, TRANSFER), (21, 4)),
    "a message counts at its first frame": ((*WELCOME, GRANT, PART), (21, 4)),
    "and once, whatever ids its frames have": (
        (*WELCOME, GRANT, PART, ("broker", "transfer", {"delivery_id": 2})), (21, 4),
    ),
    "a grant before the sender's attach is what it begins with": ((WELCOME[0], EARLY), (None, 5)),
    "and counts from there": ((WELCOME[0], EARLY, WELCOME[1], TRANSFER), (21, 4)),
    "not if the attach may be lost": ((WELCOME[0], LOST["broker"], EARLY), (None, None)),
    "without an attach nothing is known": ((TRANSFER,), (None, None)),
    "a credit of 0 is 0 wherever it counts from": (
        (("client", "flow", {"delivery_count": 20, "link_credit": 0}),), (None, 0),
    ),
    "a first frame may be of a message that began before": ((CLAIM, GRANT, TRANSFER), (None, None)),
    "what its sender states then counts": ((GRANT, TRANSFER, CLAIM, TRANSFER), (21, 4)),
    "the sender's own word stands in for a grant that is lost": (
        (*WELCOME, GRANT, LOST["client"], CLAIM, TRANSFER), (21, 6),
    ),
    "until more of the receiver is lost": (
        (*WELCOME, GRANT, LOST["client"], CLAIM, LOST["client"], TRANSFER), (21, None),
    ),
    "or something of the sender": (
        (*WELCOME, GRANT, LOST["client"], CLAIM, LOST["broker"],
         ("broker", "flow", {"delivery_count": 20})), (20, None),
    ),
    "or the receiver grants again": (
        (*WELCOME, GRANT, LOST["client"], CLAIM, GRANT, TRANSFER), (21, 4),
    ),
    "it does not while a grant stands": ((*WELCOME, GRANT, CLAIM), (20, 5)),
    "nor for the receiver, who knows of its own grants": (
        (("broker", "heard", {"delivery_count": 20, "link_credit": 7}),), (20, None),
    ),
    "behind octets of the sender the importer's count is the count": (
        (*WELCOME, GRANT, LOST["broker"], ("broker", "transfer", {}, link(24, 1))), (24, 1),
    ),
    "and there is none where it has none": (
        (*WELCOME, GRANT, LOST["broker"], ("broker", "transfer", {}, link(24, 1)), TRANSFER),
        (None, None),
    ),
    "behind octets of the receiver its messages count on": (
        (*WELCOME, GRANT, LOST["client"], TRANSFER), (21, None),
    ),
}  # fmt: skip


def rows_of(name):
    """The rows of one conversation, as a capture has them; their run has its name."""
    hand = Hand()
    for peer, what, *said in CONVERSATIONS[name][0]:
        frame, ledger = (*said, *({}, None)[len(said) :])
        if what == "lost":
            hand.internal("gap", "wire", connection="c1", details={"from_peer": peer})
        elif what == "heard":
            hand.received(hand.sent(peer, "flow", handle=0, **frame))
        else:
            hand.observed(peer, what, ledger, handle=0, **frame)
    return [replace(row, run=name) for row in hand.rows if row.event != "sent"]
