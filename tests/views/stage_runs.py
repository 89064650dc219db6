"""Real runs whose scenes the browser draws in tests."""

from __future__ import annotations

from collections.abc import Callable

from workbench.scenarios import Run, run

SEAM = 2**32 - 3


def credit() -> Run:
    """A grant of three, then a flow that crosses what it granted, and a drain."""
    played = run("credit", parameters={"messages": 9}).then("grant", link_credit=3)
    arrives = [row.seq for row in played.rows if row.kind == "transfer" and row.event == "received"]
    return played.act(arrives[1], "grant", link_credit=5).then("drain")


def wrap() -> Run:
    """Counts go through the seam; a transfer is held, and others stand behind it."""
    given = {"messages": 30, "initial_delivery_count": SEAM, "latency_us": 3_000}
    played = run("credit", parameters=given).then("grant", link_credit=25)
    sent = [row for row in played.rows if (row.kind, row.event) == ("transfer", "sent")]
    return played.act(sent[20].seq, "hold", frame_id=sent[0].frame_id)


def crossing() -> Run:
    """The article's race, with both misconceptions to compare with."""
    given = {"initial_delivery_count": 20, "first_credit": 3, "grants": "6"}
    played = run("race", parameters=given)
    for act in ("send_transfer", "send_flow", "flow_arrives", "transfer_arrives"):
        played = played.then(act)
    return played


def session() -> Run:
    """A window of four frames is used up and opened again."""
    played = run("windows", "rmq4.3", {"messages": 12, "client_window": 4})
    return played.then("grant", link_credit=12).then("open_window", frames=3)


def alarmed() -> Run:
    """An alarm closes one direction of a session; there is no credit in the other."""
    given = {"publisher": True, "publish_us": 100, "messages": 20}
    played = run("windows", "rmq4.3", given).then("alarm").then("publish", count=5)
    return played.then("grant", link_credit=3).then("clear")


def valves() -> Run:
    """A queue keeps up, stalls and resumes."""
    played = run("publishers", "rmq4.3", {"max_link_credit": 12}).then("publish", count=9)
    return played.then("stall").then("publish", count=30).then("resume")


def quorum() -> Run:
    """Five replicas: messages, a crash, a line that is cut."""
    played = run("quorum", "rmq4.3", {"replicas": "5"}).then("publish", count=2)
    return played.then("crash", node="n3").then("publish", count=1).then("cut", a="n1", b="n2")


def gauge() -> Run:
    """A Qpid queue stalls, fills beyond its watermark, and goes on."""
    return run("qpid").then("stall").then("publish", count=12).then("resume")


def level() -> Run:
    """A Qpid queue of more messages than are drawn as boxes, the latest of them held."""
    return run("qpid", parameters={"stop": 20, "resume": 15, "window": 30}).then(
        "publish", count=60
    )


def windows() -> Run:
    """Two producers fill a Qpid queue beyond its watermark by the sum of their windows."""
    played = run("qpid", parameters={"second_window": 4, "pause_us": 0})
    flood = [("publish", {"count": 12, "producer": name}) for name in ("p1", "p2")]
    return played.act_each([*flood, ("accept", {"count": 3})])


_LITTLE = {"message_bytes": 0, "credit": 4, "more_after": 2, "latency_us": 1000}


def chain() -> Run:
    """The first queue of both protocols hangs, and goes on."""
    given = {**_LITTLE, "beside": True, "max_link_credit": 4, "pause_us": 200}
    second = ("publish", {"queue": "second", "count": 5})
    begun = run("chain", "rmq4.3", given)
    return begun.act_each(["stall", ("publish", {"count": 12}), second, "resume"])


def apart() -> Run:
    """The consumer of a chain's second queue has a connection of its own."""
    given = {**_LITTLE, "consume": True, "consumer_apart": True, "ready": 4}
    second = ("publish", {"queue": "second", "count": 5})
    begun = run("chain", "rmq3.8.4", given)
    return begun.act_each(["stall", ("publish", {"count": 12}), second, "resume"])


RUNS: dict[str, Callable[[], Run]] = {
    one.__name__: one
    for one in (
        credit,
        wrap,
        crossing,
        session,
        alarmed,
        valves,
        quorum,
        gauge,
        level,
        windows,
        chain,
        apart,
    )
}
