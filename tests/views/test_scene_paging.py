"""The stage's picture of paging: messages sink from RAM to disk until the credit ends."""

import jsonschema
import pytest

from workbench.scenarios import run
from workbench.views.scene import resolved, scene, schema


def made(parameters=None, *acts):
    """The scene, and its states by the kind of the row: the last of each run of equal ones."""
    played = run("paging", "rmq3.5.5", parameters or {}).act_each(acts)
    doc = scene(played, octets=False)
    jsonschema.validate(doc, schema())
    return played, doc, list(resolved(doc))


@pytest.fixture(scope="module")
def article():
    """The article's run."""
    return made()


def test_the_level_sinks_by_2000_and_the_quota_stands_at_10000(article):
    """From 20,000 in RAM; then by 500 with each grant, down to the target."""
    played, doc, states = article
    at = [place for place, row in enumerate(played.rows) if row.kind == "paged"]
    levels = [states[place]["gauges"]["ram"]["level"] for place in (at[0] - 1, *at)]
    assert levels == [20_000, *range(18_000, 7_999, -500)]
    vessel = states[at[0]]["gauges"]["ram"]
    assert vessel["text"] == "quota 12,000: 10,000 left, blocked: no credit"
    assert vessel["stopped"]
    assert states[-1]["gauges"]["ram"] == {
        "level": 8_000,
        "stopped": False,
        "text": "quota 500: 0 left",
    }
    assert states[at[0]]["nodes"]["broker"]["facts"] == ["18,000 in RAM", "2,000 paged out"]
    (gauge,) = doc["gauges"]
    assert gauge["top"] == 20_000
    assert [mark["text"] for mark in gauge["marks"]] == ["target 8,000", "at first"]


def test_each_go_flies_to_the_store_until_it_is_written(article):
    """2,000, then 500 twenty times."""
    played, doc, states = article
    frames = doc["branches"][0]["frames"]
    assert [frame["text"] for frame in frames] == ["2k"] + 20 * ["500"]
    assert frames[0]["name"] == "2,000 messages to the message store"
    written = next(row for row in played.rows if row.event == "append")
    assert frames[0]["path"][-1] == [pytest.approx(written.t_us / 1000, abs=0.01), 1.0]
    place = played.rows.index(written)
    assert states[place]["nodes"]["store:transient"]["going"] == "1,500 wait to be written"
    assert states[place]["counters"]["credit"] == [0]


def test_the_picture_is_told_in_words(article):
    """For who does not see it."""
    played, doc, _ = article
    place = next(place for place, row in enumerate(played.rows) if row.event == "block")
    assert doc["branches"][0]["steps"][place]["in_words"] == (
        "In RAM: 18,000 messages; paged out: 2,000. Target: 8,000. Quota 12,000, 10,000 left."
        " Credit with the message store: 0. Paging is blocked: no credit with the message store."
    )


@pytest.mark.slow
def test_a_store_that_hangs_is_shown_and_can_be_let_go():
    """The toggle stands at the vessel."""
    _, doc, states = made(
        {"asks": False, "messages": 3_000}, "stall", ("set_target", {"target": 500})
    )
    store = states[-1]["nodes"]["store:transient"]
    assert store["blocked"] == "hangs"
    (stall,) = [act for act in doc["acts"] if act["id"] == "stall"]
    assert (stall["on"], stall["kind"], states[-1]["on"]["stall"]) == ("broker", "toggle", True)
    assert states[-1]["gauges"]["ram"]["level"] == 1_000
    assert doc["branches"][0]["frames"][0]["path"][-1][1] == 0.5  # it has not come to it


def test_before_anybody_asks_for_room_the_picture_is_that_of_the_client():
    """There is nothing to tell of RAM and disk."""
    _, doc, _ = made({"asks": False, "messages": 10})
    assert doc["layout"] == "link"


@pytest.mark.slow
def test_the_mirror_that_blocks_a_channel_is_the_one_without_credit():
    """The channel is blocked, the queue and the other mirror have credit; each can be cut off."""
    played = run("mirrors", "rmq3.5.5", {"latency_us": 100}).act_each(
        [("stall", {"node": "n3"}), ("publish", {"count": 110})]
    )
    doc = scene(played, octets=False)
    jsonschema.validate(doc, schema())
    last = list(resolved(doc))[-1]
    credit = {hop["id"]: last["counters"][hop["id"]][0] for hop in doc["hops"]}
    channel = "hop channel:c1/1 to"
    assert credit[f"{channel} mirror:q@n3"] == -20
    assert min(credit[f"{channel} queue:q"], credit[f"{channel} mirror:q@n2"]) > 0
    assert last["nodes"]["mirror:q@n3"] == {"facts": ["0 taken"], "blocked": "hangs"}
    assert last["nodes"]["channel:c1/1"]["blocked"]
    assert (last["on"]["stall:n3"], last["on"]["cut_off:n3"]) == (True, False)
    places = {act["id"]: act["on"] for act in doc["acts"]}
    assert places["cut_off:n2"] == "mirror:q@n2"
    assert (places["publish"], places["synchronise"]) == ("client:client", "queue:q")
