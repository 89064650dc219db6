"""Paging and mirrors as a learner plays them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from workbench.scenarios import ActionError, ParameterError, run
from workbench.trace.explain import explain

RMQ355 = "rmq3.5.5"


def paged(played: Any, name: str) -> list[Any]:
    return [row.extra[name] for row in played.rows if row.kind == "paged"]


@pytest.fixture(scope="module")
def article() -> Any:
    """The article's run."""
    return run("paging", RMQ355)


def test_the_article_s_numbers_come_out(article) -> None:
    """20,000 in RAM, a target of 8,000: quota 12,000, 2,000 paged at once, and no positions."""
    played = article
    assert played.rested and not played.world.tap.problems
    assert (paged(played, "quota")[0], paged(played, "messages")[0]) == (12_000, 2_000)
    assert paged(played, "positions") == 21 * [0]
    assert paged(played, "messages") == [2_000] + 20 * [500]
    last = next(row for row in reversed(played.rows) if row.kind == "paged")
    assert last.extra["ram"]["ram_messages"] == 8_000


@pytest.mark.slow
def test_a_store_that_hangs_leaves_it_at_2000() -> None:
    """Nothing is granted, and nothing more is paged out."""
    played = run("paging", RMQ355, {"asks": False}).act_each(
        ["stall", ("set_target", {"target": 8_000})]
    )
    assert paged(played, "messages") == [2_000]
    assert sum(paged(played.then("resume"), "messages")) == 12_000


@pytest.mark.slow
@pytest.mark.parametrize(("credit", "passes"), [(2_000, 21), (4_000, 17), (12_000, 1)])
def test_more_credit_with_the_store_brings_12000_to_disk_in_fewer_goes(credit, passes) -> None:
    """msg_store_credit_disc_bound, {2000, 500} unless it is set."""
    played = run("paging", RMQ355, {"store_credit": credit})
    assert len(paged(played, "messages")) == passes


def test_what_is_in_ram_adds_up_in_every_row() -> None:
    """q1 to q4 and delta are what is ready; pending acknowledgements what is not settled."""
    played = run("paging", RMQ355, {"messages": 3_000, "held": 1_000, "target": 500}).act_each(
        [("consume", {"count": 20}), ("acknowledge", {"count": 30}), ("publish", {"count": 5})]
    )
    told = [row for row in played.rows if row.event in ("note", "enqueue", "deliver")]
    checked = 0
    for row in told:
        ram = row.extra.get("ram")
        if ram:
            checked += 1
            ready = sum(ram[name] for name in ("q1", "q2", "delta", "q3", "q4"))
            assert row.ledger is not None
            assert ready == row.ledger["queue_ready"]
            acks = ram["ram_acks"] + ram["disk_acks"] + ram["index_acks"]
            assert acks == row.ledger["queue_unsettled"]
    assert checked > 25


@pytest.mark.slow
def test_short_of_memory_the_monitor_makes_the_queue_page() -> None:
    """110 MB of 200 MB: from half of the limit on, by what came in; no target is given."""
    played = run("paging", RMQ355, {"asks": False, "memory_octets": 200_000_000})
    assert paged(played, "quota") == []
    played = played.then("wait", milliseconds=30_000)
    assert paged(played, "quota")
    targets = [row.extra["ram"]["target"] for row in played.rows if row.kind == "ram-target"]
    assert all(0 < target < 20_000 for target in targets if target is not None)
    sentences = [one.sentence for one in explain(played.rows)]
    assert any("s of their traffic in RAM" in text for text in sentences)


def test_rows_of_paging_are_told_in_words(article) -> None:
    """The article's pass in a sentence."""
    sentences = [one.sentence for one in explain(article.rows)]
    assert (
        "Queue “q” pages out 2,000 ready messages, then no pending acknowledgements, of a"
        " quota of 12,000; 10,000 of the quota wait for credit with the message store." in sentences
    )
    assert "The store of transient messages writes 500 messages." in sentences


@pytest.mark.parametrize("node", [pytest.param("n2", marks=pytest.mark.slow), "n3"])
def test_e24_the_mirror_that_blocks_can_be_found_in_the_rows(node) -> None:
    """With the last credit spent there the channel blocks; the other mirror has credit."""
    played = run("mirrors", RMQ355).act_each(
        [("stall", {"node": node}), ("publish", {"count": 300})]
    )
    channel = [row for row in played.rows if row.vantage == "channel:c1/1"]
    told = [(row.queue, (row.ledger or {}).get("hop_credit")) for row in channel]
    last = {hop: credit for hop, credit in told if credit is not None}
    assert [row.event for row in channel if row.event in ("block", "unblock")] == ["block"]
    assert [hop for hop, credit in last.items() if credit <= 0] == [f"mirror:q@{node}"]
    done = played.then("resume", node=node)
    assert done.world.broker.queues["q"].queue.ready == 300


def test_e25_a_mirror_that_is_cut_off_holds_publishers_until_that_is_seen() -> None:
    """A reader stops after as many messages as its own credit; at the death all goes on."""
    cut_off = run("mirrors", RMQ355, {"mirror_death_us": 5_000_000}).then("cut_off")
    (cut,) = [row for row in cut_off.rows if row.kind == "cut-off"]
    played = cut_off.act(cut.seq, "publish", count=600)
    down = next(row for row in played.rows if row.kind == "down")
    assert down.t_us - cut.t_us == 5_000_000
    taken = [row for row in played.rows if row.event == "enqueue" and row.vantage == "queue:q"]
    assert (len(taken), sum(row.t_us < down.t_us for row in taken)) == (600, 300)


def test_e26_messages_from_before_are_copied_to_a_mirror_on_demand() -> None:
    """By a process with credit of its own."""
    played = run("mirrors", RMQ355, {"messages": 300}).then("synchronise")
    mirrors = played.world.broker.queues["q"].mirrors.all.values()
    assert [(mirror.taken, mirror.synchronised) for mirror in mirrors] == [(300, True)] * 2
    with pytest.raises(ActionError, match="has no mirror that lacks messages"):
        played.then("synchronise")


NO_MIRRORS = "the queue has no mirrors; legal: a preset of RabbitMQ 3.x"
NO_PAGING = "no message is paged out here; legal: a preset from before RabbitMQ 4"


@pytest.mark.parametrize(
    ("name", "act", "arguments", "why"),
    [
        ("mirrors", "stall", {}, NO_MIRRORS),
        ("mirrors", "cut_off", {}, NO_MIRRORS),
        ("mirrors", "synchronise", {}, NO_MIRRORS),
        ("paging", "set_target", {"target": 1}, NO_PAGING),
        ("paging", "lift_target", {}, NO_PAGING),
    ],
)
def test_what_a_preset_has_not_refuses_its_acts(name, act, arguments, why) -> None:
    """4.x has neither mirrors nor paging; the picture offers no act that would be refused."""
    played = run(name, "rmq4.3")
    assert played.legal(played.last)[act] == why
    with pytest.raises(ActionError, match=re.escape(why)):
        played.then(act, **arguments)


@pytest.mark.parametrize(
    ("name", "preset", "parameters", "said"),
    [
        ("paging", RMQ355, {"target": -1}, "target is -1; legal: 0 to 100000 messages"),
        ("paging", RMQ355, {"memory_octets": -1}, "memory_octets is -1; legal: 0 to 1000000000"),
        ("paging", RMQ355, {"store_io_batch": -1}, "store_io_batch is -1; legal: 0 to"),
        (
            "paging",
            RMQ355,
            {"store_credit": 9},
            "store_regrant_after is 500, and no grant would come; legal: 1 to 9",
        ),
        (
            "mirrors",
            RMQ355,
            {"credit": 9},
            "more_after is 50, and no grant would come; legal: 1 to 9",
        ),
        ("mirrors", RMQ355, {"nodes": "n2 n1"}, "queue q is on n1 itself, and cannot be its own"),
        ("mirrors", RMQ355, {"nodes": "n2 n2"}, "queue q has a mirror on n2 already"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(name, preset, parameters, said) -> None:
    """Before anything runs."""
    with pytest.raises(ParameterError, match=f"^{said}") as told:
        run(name, preset, parameters)
    assert "\n" not in str(told.value)
