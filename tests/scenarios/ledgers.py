"""What a test of the race reads off the rows: counters of both ends, and frames in flight."""

from typing import NamedTuple

LINK = "receiver"


class Standing(NamedTuple):
    """Counters as (delivery-count, link-credit), and what is under way."""

    sender: tuple[int, int]
    receiver: tuple[int, int]
    transfers: int
    flows: tuple[tuple[int, int], ...]


def standing(rows, link=LINK):
    """How a link stands after the last of these rows."""
    last, flying = {}, {}
    for row in rows:
        if row.link == link and row.ledger and row.ledger.get("link_credit") is not None:
            counted = row.ledger.get("delivery_count"), row.ledger["link_credit"]
            last[row.vantage] = counted
        if row.link != link or row.kind not in ("flow", "transfer"):
            continue
        if row.event == "sent":
            flying[row.frame_id] = row
        elif row.event == "received":
            del flying[row.frame_id]
    kinds = [row.kind for row in flying.values()]
    return Standing(
        sender=last["broker"],
        receiver=last["client:receiver"],
        transfers=kinds.count("transfer"),
        flows=tuple(
            (row.frame["delivery_count"], row.frame["link_credit"])
            for row in flying.values()
            if row.kind == "flow" and row.from_peer == "client"
        ),
    )
