"""What the rules' tests read off a run."""

from workbench.scenarios import run

STARTS = [0, 10, 2147483640, 4294967290]


def begun(scenario="credit", **parameters):
    """A run as its set-up leaves it."""
    return run(scenario, parameters=parameters)


def then(played, name, **arguments):
    """The run after an act at rest."""
    return played.act(played.rows[-1].seq, name, **arguments)


def transfers(played, event="sent", link=None):
    """Rows of deliveries on links over which the broker sends."""
    return [
        row
        for row in played.rows
        if row.kind == "transfer"
        and row.event == event
        and row.from_peer == "broker"
        and link in (None, row.link)
    ]


def flows(played, peer, event="sent", *, whole=False):
    """Flows of a peer that name a link, after the set-up or in the whole run."""
    return [
        row
        for row in played.rows
        if row.kind == "flow"
        and row.event == event
        and row.from_peer == peer
        and (whole or row.seq > played.start_seq)
        and row.frame.get("handle") is not None
    ]


def ledger(played, vantage, link=None):
    """The last link counters of an end."""
    rows = [
        row
        for row in played.rows
        if row.vantage == vantage
        and row.ledger
        and row.ledger.get("link_credit") is not None
        and link in (None, row.link)
    ]
    return rows[-1].ledger


def both(played, name="link_credit", link=None):
    """A counter at the sender and at the receiver."""
    return (
        ledger(played, "broker", link)[name],
        ledger(played, "client:receiver", link)[name],
    )
