"""Runs of every scenario, with acts, and all captures: what the questions are asked of."""

import dataclasses
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.broker.rig import consuming
from tests.capture.capture_builder import lost, written
from workbench import presets
from workbench.amqp10.messaging import Accepted
from workbench.amqp10.performatives import Role
from workbench.capture.importer import import_capture
from workbench.scenarios import registry
from workbench.scenarios.run import run

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"

# The articles' runs in full are a matter for the benchmark. Where a queue has no leader for long, a
# session of RabbitMQ puts a flow aside until the queue has answered the one before: then its own
# ledger is not what the wire tells. In this run of the chaos that does not happen.
CHOSEN = {
    "one_sender_one_receiver": {"run_ms": 1, "preload": 300, "batch": 300},
    "two_senders": {"run_ms": 1},
    "multicast": {"messages": 20},
    "quorum_chaos": {"seed": 35},
}


def acted(name, preset, parameters, *acts):
    """A run with acts, each at the end of what the one before has led to."""
    played = run(name, preset, parameters)
    for act, arguments in acts:
        played = played.act(len(played.rows) - 1, act, **arguments)
    return played.rows


def _scenarios():
    """By name what makes the rows: every scenario as it stands, and some driven further."""
    found = {
        name: lambda name=name: run(name, parameters=CHOSEN.get(name, {})).rows
        for name in registry.names()
    }
    for preset in ("spec", "rmq4.0", "rmq4.3"):
        found[f"drained {preset}"] = partial(
            acted,
            "credit",
            preset,
            {"messages": 4, "initial_delivery_count": 2**32 - 2},
            ("grant", {"link_credit": 2}),
            ("publish", {"count": 2}),
            ("grant", {"link_credit": 50}),
            ("drain", {}),
            ("grant", {"link_credit": 1}),
            ("publish", {"count": 3}),
        )
        found[f"publisher {preset}"] = partial(
            acted,
            "credit",
            preset,
            {"messages": 0, "publisher": "visible"},
            ("publish", {"count": 200}),
            ("grant", {"link_credit": 150}),
            ("stop", {}),
        )
    found["race"] = lambda: run("race").act_each(
        ["send_flow", "flow_arrives", "send_transfer", "send_flow", "transfer_arrives",
         "flow_arrives"]
    ).rows  # fmt: skip
    found["huge credit given back"] = partial(
        acted, "credit", "spec", {"messages": 3, "initial_delivery_count": 20},
        ("grant", {"link_credit": 2**32 - 1}), ("drain", {}), ("grant", {"link_credit": 5}),
    )  # fmt: skip
    return found


# Known before anything is run, since pytest asks for them in every process.
SCENARIOS = sorted(_scenarios())


@cache
def scenario_rows():
    """By name: every scenario as it stands, and some driven further."""
    return {name: made() for name, made in _scenarios().items()}


@cache
def lowered_credit():
    """A capture at the client's machine: it lowers the credit while messages fly."""
    granted = run("credit", parameters={"messages": 25}).act_each([("grant", {"link_credit": 50})])
    flying = next(row.seq for row in granted.rows if (row.kind, row.event) == ("transfer", "sent"))
    return [
        dataclasses.replace(row, event="observed", vantage="wire", run="lowered")
        for row in granted.act(flying, "grant", link_credit=0).rows
        if row.is_frame and row.vantage.startswith("client")
    ]


@cache
def cut_credit():
    """A client grants RabbitMQ 10, and 2 at once: the queue has been asked for 10 by then."""
    granted = run("credit", "rmq4.3", {"messages": 12}).act_each([("grant", {"link_credit": 10})])
    flow = next(row.seq for row in granted.rows[granted.start_seq :]
                if (row.kind, row.event) == ("flow", "sent") and row.link)  # fmt: skip
    return [
        dataclasses.replace(row, run="cut")
        for row in granted.act(flow, "grant", link_credit=2).rows
    ]


@cache
def narrow_window():
    """A publisher that ignores its session window: the broker takes 3 frames and no more."""
    rows = acted("credit", "rmq4.3", {"messages": 0, "publisher": "visible"},
                 ("publish", {"count": 20}))  # fmt: skip
    found = []
    for row in rows:
        fields = row.frame
        if row.kind in ("begin", "flow") and row.from_peer == "broker":
            told = fields.get("next_incoming_id") and 0
            fields = {**fields, "incoming_window": 3, "next_incoming_id": told}
        found.append(dataclasses.replace(row, frame=fields, run="narrow"))
    return found


@cache
def settled_late():
    """A consumer settles messages whose link is gone, and comes back: rows by name."""
    found = {}
    for closed in (True, False):
        rig, _, session, link = consuming(presets.get("rmq4.3"), 6)
        for number in (3, 1):
            link.grant(number)
            rig.rest()
            link.detach(closed=closed)
            rig.rest()
            session.emit_disposition(None, Role.RECEIVER, 0, 2, settled=True, state=Accepted())
            rig.rest()
            link = rig.receiver(session)
        link.grant(1)
        rig.rest()
        link.settle(4)
        rig.rest()
        found[f"settled late, closed {closed}"] = rig.recorder.rows
    return found


def without(row):
    """In the place of a frame that a capture lacks."""
    return dataclasses.replace(
        row, event="gap", protocol="internal", kind=None, frame=None, session=None, link=None,
        link_sender=None, attach_no=None, ledger=None, details={"from_peer": row.from_peer},
    )  # fmt: skip


@cache
def lossy():
    """A capture that lacks octets of both peers: an attach, messages, a grant; nothing counted."""
    rows = import_capture([CAPTURES / "rmq43_a_publisher_grants.pcapng"]).rows
    attach = next(row.seq for row in rows if row.kind == "attach" and row.from_peer == "client")
    sent = [row.seq for row in rows if row.kind in ("transfer", "flow")]
    gone = {attach, *sent[20:25], *sent[120:125]}
    return [
        dataclasses.replace(without(row) if row.seq in gone else row, run="lossy", ledger=None)
        for row in rows
    ]


@cache
def counted_again():
    """Captures with packets lost; the counters are what their importer finds out behind that."""
    found = []
    for name in ("b_consumer_credit", "a_publisher_grants", "e_large_message_split"):
        for seed in range(4):
            with TemporaryDirectory() as folder:
                capture = CAPTURES / f"rmq43_{name}.pcapng"
                place = written(capture, lost, Random(seed), Path(folder) / f"{name}.pcapng")
                rows = import_capture([place]).rows
            found += [dataclasses.replace(row, run=f"{name} lost {seed}") for row in rows]
    return found


@cache
def begun_late():
    """Captures that begin between a link's attaches, and within a message; nothing counted."""
    found = []
    for name, kind in (("f_memory_alarm", "attach"), ("e_large_message_split", "transfer")):
        rows = import_capture([CAPTURES / f"rmq43_{name}.pcapng"]).rows
        sent = [row for row in rows if row.kind == kind and row.from_peer == row.link_sender]
        begun = next(row for row in sent if row.frame.get("delivery_id") is None)
        for row in rows[begun.seq :]:
            its = row.link == begun.link and row.link is not None
            if its and kind == "attach" and row.from_peer != row.link_sender:
                row = dataclasses.replace(row, link=None, link_sender=None, attach_no=None)
            elif its and kind == "transfer":
                row = dataclasses.replace(row, attach_no=None)
            elif its and row.kind == "attach":
                row = dataclasses.replace(row, unknown=("link_credit",))
            found.append(dataclasses.replace(row, run=name, ledger=None))
    return found


def torn(lost):
    """A message of several frames, of which a capture lacks one: the how-manieth, from 0."""
    rows = import_capture([CAPTURES / "rmq43_e_large_message_split.pcapng"]).rows
    sent = [row.seq for row in rows if row.kind == "transfer" and row.from_peer == "client"]
    return [
        dataclasses.replace(without(row) if row.seq == sent[lost] else row, run=f"torn {lost}")
        for row in rows
    ]


@cache
def capture_rows():
    """All captures of real brokers, in one list; each is a run."""
    return import_capture(sorted(CAPTURES.glob("*.pcapng"))).rows


def all_rows():
    """All of them in one trace, each a run of its own."""
    rows = []
    for name, found in (scenario_rows() | settled_late()).items():
        rows += [dataclasses.replace(row, run=name) for row in found]
    return [*rows, *lossy(), *counted_again(), *begun_late(), *capture_rows()]
