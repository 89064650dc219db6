"""The stage in a real browser: what a scene shows, what can be done in it, and on which screens."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.browser.conftest import Page, new_page
from tests.conftest import REPO
from tests.patience import until
from tests.views.stage_runs import RUNS
from workbench import import_capture
from workbench.scenarios import run
from workbench.scenarios.branches import Branches
from workbench.trace.cut import cut_rows
from workbench.trace.fold import link_scope
from workbench.views import scene as scenes
from workbench.views.scene_acts import parameter_docs
from workbench.views.stage_page import stage_page
from workbench.views.static_html import asset, stage_module

pytestmark = pytest.mark.browser

CAPTURES = REPO / "data" / "captures"
QUICK = ("credit", "quorum")
QUICK_FIRST = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in sorted(RUNS)
]
WIDTHS = (830, *(pytest.param(width, marks=pytest.mark.slow) for width in (720, 640)))
# A page that allows no style and no script but these, mounted with a host that notes what it hears.
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>stage</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src {script_digest}; style-src {style_digest}">
<style>{style}</style></head><body><main id="here"></main>
<script type="application/json" id="scene">{scene}</script>
<script type="module">{script}</script></body></html>"""
MOUNT = """
globalThis.sent = [];
const scene = JSON.parse(document.getElementById("scene").textContent);
globalThis.stage = await mount(document.getElementById("here"), scene, %s);
"""
HOSTED = "{ send: (message) => sent.push(message) }"
MEDIA = {"color_scheme": "light", "reduced_motion": "no-preference", "forced_colors": "none"}
# Every moment of a run and of its set-up: a step, and between steps.
COLLISIONS = """() => {
  const found = {}, begins = stage.run.steps[stage.scene.begin ?? 0].t, looks = 150, set_up = begins ? 50 : 0;
  if (begins && stage.folded) stage.ui("fold", "");
  for (let look = 0; look < looks; look++) {
    stage.seek(look < set_up ? begins * look / set_up : begins + (stage.scene.ends - begins) * (look - set_up) / (looks - set_up - 1));
    const svg = stage.el.querySelector(".wst-picture"), own = svg.getBoundingClientRect();
    const meet = (p, q) => Math.min(p.right, q.right) > Math.max(p.left, q.left) && Math.min(p.bottom, q.bottom) > Math.max(p.top, q.top);
    const boxed = (all) => [...svg.querySelectorAll(all)].map((node) => [node.textContent || node.parentElement.textContent, node.getBoundingClientRect(), node]);
    const pills = boxed("rect[rx='13'], [data-act] > rect.face"), boxes = boxed("rect.node"), texts = boxed("text");
    pills.forEach(([a, p, pill], i) => {
      if (boxes.filter(([, q]) => meet(p, q)).length > 1) found[`pill on two boxes: ${a}`] = look;
      for (const [b, q] of pills.slice(i + 1)) if (meet(p, q)) found[`pill on pill: ${a} | ${b}`] = look;
      for (const [b, q, text] of texts) if (!pill.parentElement.contains(text) && text.compareDocumentPosition(pill) & 4 && meet(p, q) && q.bottom - p.top > 3 && p.bottom - q.top > 3) found[`under a pill: ${b} | ${a}`] = look;
    });
    texts.forEach(([a, p, text], i) => {
      if (p.left < own.left || p.right > own.right || p.top < own.top || p.bottom > own.bottom) found[`outside: ${a}`] = look;
      for (const [b, q, box] of boxes) if (meet(p, q) && text.compareDocumentPosition(box) & 4) found[`under a box: ${a} | ${b}`] = look;  // it follows, so it is drawn over the text
      for (const [b, q] of texts.slice(i + 1)) {
        const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (x > 1.5 && y > 4.5) found[`${a} | ${b}`] = look;  // boxes of lines hold room above the letters
      }
    });
  }
  return found;
}"""  # noqa: E501


# Discs that lie on a box, and numbers that are drawn under a disc, at every moment of a run.
COVERED = """() => {
  const found = new Set(), looks = 80;
  let discs = false;
  for (let look = 0; look < looks; look++) {
    stage.seek(stage.scene.ends * look / (looks - 1));
    const svg = stage.el.querySelector(".wst-picture"), all = [...svg.querySelectorAll("circle.disc")];
    const boxes = [...svg.querySelectorAll("rect.node")].map((one) => one.getBoundingClientRect());
    const numbers = [...svg.querySelectorAll("text.c-on")].map((one) => [one, one.getBoundingClientRect()]);
    for (const disc of all) {
      const q = disc.getBoundingClientRect(), meet = (p, by) => Math.min(p.right, q.right) > Math.max(p.left, q.left) + by && Math.min(p.bottom, q.bottom) > Math.max(p.top, q.top) + by;
      discs = true;
      if (boxes.some((p) => meet(p, 0))) found.add("disc on a box");
      for (const [text, p] of numbers) if (meet(p, 1) && text.compareDocumentPosition(disc) & 4) found.add("number under a disc");
    }
  }
  return { discs, found: [...found] };
}"""  # noqa: E501


# What is cut off, at a step of a run, of the line of time, of the formula and of the tabs.
CUT_OFF = """() => {
  const found = {}, own = stage.el.getBoundingClientRect();
  for (let step = 0; step < stage.run.steps.length; step++) {
    stage.set(step);
    for (const one of stage.el.querySelectorAll(".wst-now, .wst-chip, .wst-formula, .wst-formula small, .wst-tabs button")) {
      const p = one.getBoundingClientRect(), row = one.closest(".wst-time, .wst-say, .wst-tabs"), q = row.getBoundingClientRect();
      const narrow = one.scrollWidth > one.clientWidth, out = p.left < own.left || p.right > own.right, over = row.scrollHeight <= row.clientHeight && (p.top < q.top || p.bottom > q.bottom);
      if (narrow || out || over) found[one.textContent] = step;
    }
  }
  return found;
}"""  # noqa: E501


@cache
def made(name: str) -> str:
    return json.dumps(scenes.scene(RUNS[name]()))


def scene_of(name: str) -> dict:
    """The scene of a real run; the race has its question."""
    scene = json.loads(made(name))
    return scene | {"question": asked_of(scene)} if name == "crossing" else scene


def parting(scene: dict, rule: str) -> int:
    """Place of the step at which the line by a misconception leaves the line by the rule."""
    return next(
        place
        for place, step in enumerate(scene["branches"][0]["steps"])
        for line in step.get("lines", {}).values()
        if line.get("rules", {}).get(rule, {}).get("differs")
    )


def asked_of(scene: dict) -> dict:
    """What the race asks: three are granted, one has left, and a flow of six lands."""
    wrong = {"right": False, "answer": 5}
    verdicts = {
        "5": {"right": True, "answer": 5, "why": "20 + 6 − 21."},
        "8": {**wrong, "why": "That is “a flow adds”: 2 + 6.", "rule": "adds"},
        "*": {**wrong, "why": "20 + 6 − 21."},
    }
    return {
        "text": "What is the sender’s link-credit when the flow lands?", "options": [8, 6, 5],
        "free": True, "decides": parting(scene, "adds"), "verdicts": verdicts,
    }  # fmt: skip


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def html(scene: dict, ends: str) -> str:
    style, script = asset("stage.css") + "body { margin: 0; }", stage_module() + ends
    return PAGE.format(
        style=style, style_digest=digest(style), script=script, script_digest=digest(script),
        scene=json.dumps(scene).replace("<", "\\u003c"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def one_page(chromium):
    """A page for all tests of the file: making a new one takes longer than most of them.

    A scene that is opened in it begins anew, and the stage keeps nothing in the browser.
    """
    with new_page(chromium) as page:
        shared = Page(page=page)
        shared.watch()
        yield shared


@pytest.fixture
def opened(one_page, tmp_path):
    """Opens a scene, by name or as it is, on a screen; without the question unless it is wanted."""
    for told in (one_page.console_errors, one_page.page_errors, one_page.outside):
        told.clear()
    yield opener(one_page.page, tmp_path)
    one_page.assert_quiet()


@pytest.fixture
def timed(static_page, tmp_path):
    """Opens a scene in a page of its own: a clock that a test takes over is never given back."""
    yield opener(static_page.page, tmp_path)
    static_page.assert_quiet()


def opener(page, folder):
    def open_(scene, *, width=830, ask=False, options=HOSTED, ends=None, **media):
        scene = scene_of(scene) if isinstance(scene, str) else scene
        if not ask:
            scene.pop("question", None)
        path = Path(folder / "stage.html")
        path.write_text(html(scene, ends or MOUNT % options), encoding="utf-8")
        page.mouse.move(-1, -1)  # where no earlier test has left it
        page.set_viewport_size({"width": width, "height": 600})
        page.emulate_media(**(MEDIA | media))
        page.goto(path.as_uri())
        page.wait_for_selector(".wst-picture")
        return page

    return open_


def hold_the_clock(page) -> None:
    """The page's time stands from here: `install` alone lets it run, and a busy machine is late."""
    page.clock.install(time=0)
    page.clock.pause_at(3_600)


def seek(page, t: float) -> None:
    page.evaluate("(t) => stage.seek(t)", t)


def sent(page) -> list[dict]:
    return page.evaluate("sent")


def sentence(page) -> str:
    return page.locator(".wst-sentence").inner_text()


def reply(page, message: dict) -> None:
    page.evaluate("(message) => stage.reply(message)", message)


# -- the picture ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", QUICK_FIRST)
def test_a_scene_is_whole_on_one_screen_and_its_labels_never_collide(opened, name, width):
    """At most 600 px high, not wider than the page, and of one height at every step and tab.

    No two texts of the picture lie on each other, nor two pills or buttons, no pill on two boxes,
    no text lies under a box or a pill and none leaves the picture, at any time of the run.
    """
    page = opened(name, width=width, ask=True, reduced_motion="reduce")
    heights = """() => { const heights = new Set(), look = () => heights.add(stage.el.offsetHeight);
      for (let step = 0; step <= stage.run.steps.length; step++) { stage.set(step); look(); }
      for (const tab of [0, 1, 2, 3, 4, 4]) { stage.ui("tab", tab); look(); }
      return [...heights]; }"""
    asking = page.evaluate(heights)
    if scene_of(name).get("question"):
        page.get_by_role("button", name="skip the question").click()
    assert page.evaluate(heights) == asking
    assert len(asking) == 1
    assert asking[0] <= 600
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(COLLISIONS) == {}
    if scene_of(name).get("rules"):
        page.get_by_role("button", name="Compare rules").click()
        assert page.evaluate(COLLISIONS) == {}


@pytest.mark.parametrize(
    "width", [467, *(pytest.param(w, marks=pytest.mark.slow) for w in (640, 830))]
)
@pytest.mark.parametrize("name", QUICK_FIRST)
def test_time_formula_and_tabs_are_never_cut_off(opened, name, width):
    """Also beside an open file browser, where the picture is scaled down."""
    page = opened(name, width=width, reduced_motion="reduce")
    assert page.evaluate(CUT_OFF) == {}
    assert page.locator(".wst-line").bounding_box()["width"] > 100


@pytest.mark.parametrize("width", [640, 830, 900])
def test_no_words_of_three_clients_lie_on_each_other_or_under_what_blocks_them(opened, width):
    """Their boxes are low, what blocks one hangs over its lower edge, and their wires are near."""
    place = CAPTURES / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng"
    rows = import_capture(place).rows
    for drawn in (rows, cut_rows(rows, len(rows) - 1)):
        page = opened(scenes.scene(drawn), width=width, reduced_motion="reduce")
        assert page.evaluate(COLLISIONS) == {}


@pytest.mark.parametrize("width", [640, 720, 830])
def test_what_a_window_holds_is_told_apart_from_whose_it_is(opened, width):
    """A window that reaches beyond the line on the right, and nearly to the names on the left."""
    rows = import_capture(CAPTURES / "rmq40_f_memory_alarm.pcapng").rows
    scene = scenes.scene(cut_rows(rows, 14), link=link_scope(rows[14]))
    page = opened(scene, width=width, reduced_motion="reduce")
    page.evaluate("() => stage.set(14)")
    names, told = (
        page.locator("svg text").filter(has_text=words).evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().toJSON())"
        )
        for words in ("sender", "room for 2048")
    )  # fmt: skip
    assert len(told) == 1
    for name in names:
        if abs(name["y"] - told[0]["y"]) < 10:
            assert told[0]["left"] - name["right"] >= 6


@pytest.mark.slow
@pytest.mark.parametrize("width", [640, 830])
@pytest.mark.parametrize(("name", "parties"), [("c_drain", 4), ("f_memory_alarm", 3)])
def test_nobody_stands_in_the_way_of_a_wire(opened, name, parties, width):
    """A broker's clients, of which one both sends and receives, stand one under the other."""
    scene = scenes.scene(import_capture(CAPTURES / f"rmq43_{name}.pcapng"))
    page = opened(scene, width=width, reduced_motion="reduce")
    page.keyboard.press("End")
    boxes = page.locator(".wst-picture rect.node").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().x)"
    )
    assert len(boxes) == parties
    assert len({round(x) for x in boxes}) == 2
    assert page.evaluate(COLLISIONS) == {}


def test_a_larger_screen_gets_a_larger_picture_and_text_keeps_its_size(opened):
    size = "getComputedStyle(document.querySelector('.wst-picture text.b')).fontSize"
    box = "(({ width, height }) => [width, height])(stage.el.getBoundingClientRect())"
    page = opened("credit")
    small, text = page.evaluate(box), page.evaluate(size)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_selector(".wst-picture[width='1278']")
    assert page.evaluate(box)[0] > small[0] + 400
    assert page.evaluate(box)[1] > small[1] + 60
    assert page.evaluate(size) == text


@pytest.mark.slow
def test_a_moment_is_drawn_the_same_whatever_came_before(opened):
    """Scrubbing on and back ends in one picture: place depends on virtual time only."""
    page = opened("credit")
    drawn = "stage.el.querySelector('.wst-picture')"
    seek(page, 12)
    page.evaluate(f"() => {{ globalThis.first = {drawn}.cloneNode(true); }}")
    for t in (15, 11):
        seek(page, t)
    assert not page.evaluate(f"first.isEqualNode({drawn})")
    seek(page, 12)
    assert page.evaluate(f"first.isEqualNode({drawn})")


def test_a_long_time_is_told_in_seconds(opened):
    """A server may be up for days; its steps are told apart all the same."""
    rows = import_capture(CAPTURES / "rmq43_a_publisher_grants.pcapng").rows[:4]
    last = replace(rows[-1], t_us=1_322_004_210)
    page = opened(scenes.scene([*rows[:-1], last]))
    seek(page, last.t_us / 1000)
    assert page.locator(".wst-now").inner_text().split("\n")[0] == "1322.0042 s"


def test_a_log_without_times_shows_none(opened):
    """Its rows have an order; what stands for their times only keeps them apart."""
    rows = import_capture(CAPTURES / "rmq43_a_publisher_grants.pcapng").rows[:40]
    for untimed in (False, True):
        log = [replace(row, t_us=row.seq, t_raw_us=None) for row in rows] if untimed else rows
        page = opened(scenes.scene(log))
        shown = page.locator(".wst-now").all_inner_texts()
        for tab, times in (("Sequence diagram", "svg"), ("Log", ".t >> nth=-1")):
            page.get_by_role("button", name=tab).click()
            shown += page.get_by_role("region", name=tab).locator(times).all_text_contents()
        assert [re.search(r"\d ms", text) is None for text in shown] == [untimed] * 3, shown


def test_what_blocks_a_client_in_a_chain_is_never_under_the_reader(opened):
    """On a small screen, where the reader stands near."""
    scene = scenes.scene(run("memory"))
    for name in ("client:c1", "client:c3"):
        for step in scene["branches"][0]["steps"]:
            step.setdefault("nodes", {}).setdefault(name, {})["blocked"] = "blocked: alarm"
    page = opened(scene, width=640)
    assert page.locator(".wst-picture").get_by_text("blocked: alarm").count() == 2
    under = [one for one in page.evaluate(COLLISIONS) if one.startswith("under a box")]
    assert under == []


def test_discs_on_a_short_socket_hide_no_box_and_no_number(opened):
    """Two boxes of a chain that ends at the store stand near each other on a small screen."""
    given = {"service_us": 0, "store_credit": 24, "store_more_after": 4, "pause_us": 50}
    page = opened(
        scenes.scene(run("chain", "rmq3.5.5", given).then("publish", count=30)), width=720
    )
    assert page.evaluate(COVERED) == {"discs": True, "found": []}


@pytest.mark.parametrize("width", [830, 640])
def test_three_clients_whose_counters_are_inferred_are_read(opened, width):
    """In a box of two lines a count stands beside the word, where there is room, or not at all."""
    scene = scene_of("credit")
    (client,) = [node for node in scene["nodes"] if node["role"] == "receiver"]
    (wire,) = scene["links"]
    end, first = ("from", "to")[wire["to"] == client["id"]], scene["branches"][0]["steps"][0]
    scene["nodes"].remove(client)
    scene["acts"] = []
    for name in ("c1", "c2", "c3"):
        told = {"id": name, "name": f"Client {name}", "sub": "counters inferred"}
        scene["nodes"].append(client | told)
        scene["links"].append(wire | {"id": f"to {name}", end: name})
        first["nodes"][name] = {"facts": ["0 received", "0 unsettled"]}
    scene["links"].remove(wire)
    scene["branches"][0]["frames"] = scene["lines"] = []
    page = opened(scene, width=width)
    assert page.locator(".wst-picture").get_by_text("counters inferred").count() == 3
    assert page.evaluate(COLLISIONS) == {}


@pytest.mark.slow
def test_a_held_frame_is_ringed_and_what_follows_stands_behind_it(opened):
    page = opened("wrap")
    page.keyboard.press("End")
    seek(page, page.evaluate("stage.scene.ends"))
    held = page.get_by_role("button", name="held. Press: release")
    assert page.locator(".wst-picture .ring").count() == held.count() > 0
    x = held.first.bounding_box()["x"]
    behind = page.locator(".wst-picture [data-frame]").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().x)"
    )
    assert len(behind) > 2
    assert max(behind) <= x + 1
    assert len({round(place) for place in behind}) == len(behind)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["windows", "level"])
def test_what_a_queue_holds_is_hatched_and_said_at_any_size(opened, name):
    """As boxes, and as the upper part of a level."""
    page = opened(name)
    most = page.evaluate(
        """() => {
          const held = stage.run.states.map(({ gauges }) => gauges.queue.held), size = (one) => one.length ?? one;
          const most = held.reduce((best, one, step) => size(one) > size(held[best]) ? step : best, 0);
          stage.set(most);
          return size(held[most]);
        }"""  # noqa: E501
    )
    vessel = page.get_by_role("img", name=re.compile(f"queue: \\d+, {most} held"))
    assert vessel.locator("rect[style*=stop]").count() == (most if name == "windows" else 1)
    assert vessel.get_by_text("held", exact=True).count() >= 1


@pytest.mark.slow
def test_pointing_at_a_frame_marks_its_cell(opened):
    page = opened("credit")
    seek(page, 14)
    assert page.locator(".wst-picture .k-focus").count() == 0
    page.get_by_role("button", name="transfer: delivery-id 4").hover()
    assert page.locator(".wst-picture rect.k-focus").count() == 1


@pytest.mark.slow
def test_where_a_flow_will_put_the_limit_is_not_shown_while_a_question_is_open(opened):
    scene = scene_of("credit")
    lands = scene["branches"][0]["frames"][-1]["path"][-1][0]
    asked = asked_of(scene_of("crossing")) | {"decides": len(scene["branches"][0]["steps"]) - 1}
    page = opened(scene | {"question": asked}, ask=True)
    seek(page, lands - 0.5)
    assert page.get_by_text("will set the limit here").count() == 0
    page = opened("credit")
    seek(page, lands - 0.5)
    assert page.get_by_text("will set the limit here").count() == 1


def seen_through(page, words: str, end: str, dashes: str) -> bool:
    """Whether words in an end's colour look other without the line that crosses them."""
    line = page.locator(dashes).last
    x = line.bounding_box()["x"]
    box = page.locator(f".wst-picture text.c-{end}", has_text=words).bounding_box()
    assert box["x"] < x < box["x"] + box["width"]
    there = page.screenshot(clip=box)
    line.evaluate("one => one.remove()")
    return page.screenshot(clip=box) != there


def test_a_dashed_line_goes_behind_words(opened):
    """Where flows in flight will put the limit, and where a knob that is being turned would."""
    page = opened("crossing", reduced_motion="reduce")
    seek(page, page.evaluate("stage.scene.ends") - 0.1)
    assert not seen_through(page, "· limit", "snd", "g[class=fade] line.dashes")
    scene = scene_of("credit")
    (wire,), (line,) = scene["links"], scene["lines"]
    lowers = {"id": "low", "link": wire["id"], "way": "back", "kind": "permission", "name": "flow",
              "path": [[0, 0.5], [scene["ends"], 0.5]],
              "aims": {"line": line["id"], "end": line["ends"][0]["id"], "limit": 4}}  # fmt: skip
    scene["branches"][0]["frames"].insert(0, lowers)
    page = opened(scene, reduced_motion="reduce")
    ends = [one["id"] for one in line["ends"]]
    page.evaluate(
        """([line, sender, receiver]) => stage.set(stage.run.states.findIndex(({ lines }) =>
          lines[line].ends[sender]?.[0] === 5 && lines[line].ends[receiver][0] === 3))""",
        [line["id"], *ends],
    )
    assert not seen_through(page, "2 in flight", "snd", "g[class=fade] line.dashes")
    page.evaluate("stage.set(stage.run.steps.length - 1)")
    page.locator(".knob[data-knob=grant]").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert not seen_through(page, "· limit", "rcv", "line.k-rcv.dashes")


# -- time ----------------------------------------------------------------------------------------


def test_keys_and_buttons_go_through_time(opened):
    """→ ← one step, n to the next interesting one, Home, End; the buttons do the same."""
    scene = scene_of("credit")
    page = opened(scene)
    page.locator(".wst").focus()
    first = sentence(page)
    page.keyboard.press("ArrowRight")
    second = sentence(page)
    assert second != first
    page.keyboard.press("ArrowLeft")
    assert sentence(page) == first
    page.get_by_role("button", name="one step on").click()
    assert sentence(page) == second
    page.get_by_role("button", name="one step back").click()
    marked = [i for i, step in enumerate(scene["branches"][0]["steps"]) if step.get("mark")]
    for place in [i for i in marked if i > scene["begin"]][:4]:
        page.keyboard.press("n")
        assert page.evaluate("stage.step") == place
    page.keyboard.press("End")
    assert page.evaluate("stage.step === stage.run.steps.length - 1")
    page.keyboard.press("Home")
    assert sentence(page) == first


@pytest.mark.slow
def test_the_timeline_is_dragged(opened):
    page = opened("credit")
    box = page.get_by_role("slider", name="virtual time").bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 9, box["y"] + 30)
    page.mouse.up()
    assert page.evaluate("stage.step > stage.scene.begin + 15")


def test_play_goes_on_to_the_end_and_begins_anew_there(timed):
    """The clock is the page's; a long wait of it is not slept."""
    page = timed("crossing")
    hold_the_clock(page)
    page.locator(".wst").focus()
    page.keyboard.press("Space")
    assert page.get_by_role("button", name="pause").count() == 1
    page.clock.run_for(60_000)
    assert page.get_by_role("button", name="play (space)").count() == 1
    assert page.evaluate("stage.step === stage.run.steps.length - 1")
    page.keyboard.press("Space")
    page.clock.run_for(50)
    assert page.evaluate("stage.scene.ends - stage.t") > 0.5


@pytest.mark.slow
def test_reduced_motion_plays_from_step_to_step_and_nothing_glides(timed):
    page = timed("crossing", reduced_motion="reduce")
    hold_the_clock(page)
    page.locator(".wst").focus()
    page.keyboard.press("Space")
    for _ in range(30):
        page.clock.run_for(100)
        assert page.evaluate("stage.t === stage.run.steps[stage.step].t")
    assert page.evaluate("stage.step - stage.scene.begin") >= 2
    glide = page.locator(".glide").first
    assert glide.evaluate("one => getComputedStyle(one).transitionDuration") == "0s"


@pytest.mark.slow
def test_the_set_up_is_folded_into_one_chip(opened):
    scene = scene_of("credit")
    page = opened(scene)
    page.locator(".wst").focus()
    page.keyboard.press("Home")
    assert page.evaluate("stage.step") == scene["begin"] > 0
    assert page.locator(".wst-now").inner_text().startswith("0.0 ms")
    page.get_by_role("button", name=scene["set_up"]).click()
    page.locator(".wst").focus()
    page.keyboard.press("Home")
    assert page.evaluate("stage.step") == 0


def test_the_sentence_is_announced_when_stepping_and_silent_while_playing(opened):
    page = opened("credit")
    live = page.locator(".wst-sentence")
    assert live.get_attribute("aria-live") == "polite"
    page.locator(".wst").focus()
    page.keyboard.press("Space")
    assert live.get_attribute("aria-live") == "off"
    page.keyboard.press("Space")
    assert "link-credit" in page.locator(".wst-words").text_content()


# -- acts ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_knob_is_turned_and_sent_by_keyboard(opened):
    page = opened("credit")
    knob = page.get_by_role("slider", name="link credit")
    knob.focus()
    before = int(knob.get_attribute("aria-valuenow"))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert knob.get_attribute("aria-valuenow") == str(before + 2)
    assert sent(page) == []
    page.keyboard.press("Enter")
    assert sent(page) == [
        {
            "act": "grant",
            "value": before + 2,
            "t": page.evaluate("stage.t"),
            "branch": 0,
            "step": page.evaluate("stage.step"),
        }
    ]


def test_parties_have_the_room_that_no_number_line_takes(opened):
    """AMQP 0-9-1 without a prefetch has none: half of the picture was empty."""
    page = opened(scenes.scene(run("sharing")), width=900)
    picture = page.locator(".wst-picture").bounding_box()
    boxes = [one.bounding_box() for one in page.locator("rect.node").all()]
    above = min(box["y"] for box in boxes) - picture["y"]
    below = picture["y"] + picture["height"] - max(box["y"] + box["height"] for box in boxes)
    assert above + below < 0.3 * picture["height"]
    assert abs(above - below) < 20


def test_the_idea_of_a_picture_is_seen_whole(opened):
    """In a narrow page a long one has three lines."""
    page = opened(scenes.scene(run("sharing")) | {"idea": "three lines of words " * 12}, width=700)
    assert page.locator(".wst-q").evaluate("(one) => one.scrollHeight <= one.clientHeight")


@pytest.mark.parametrize("stands", [30, 1_000])
def test_what_a_knob_stands_at_can_be_raised(opened, stands):
    """More may have been granted, in another branch or before the slice, than its dial goes to."""
    page = opened("credit")
    script = """(stands) => {
      for (const state of stage.run.states) {
        const knobs = state.nodes["client:receiver"].knobs;
        if (knobs) knobs.grant = stands;
      }
      stage.set(stage.run.steps.length - 1);
    }"""
    page.evaluate(script, stands)
    knob = page.get_by_role("slider", name="link credit")
    assert int(knob.get_attribute("aria-valuemax")) > stands
    knob.focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert [one["value"] for one in sent(page)] == [stands + 3]


def test_a_knob_a_limit_and_a_wire_are_dragged_and_sent_when_let_go(opened):
    page = opened("credit")
    for place, by in (
        (page.locator(".knob[data-knob=grant]"), (0, -30)),
        (page.locator(".grip"), (100, 0)),
        (page.locator("[data-knob='set_latency:c1']"), (0, 12)),
    ):
        box = place.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + by[0], y + by[1], steps=4)
        count = len(sent(page))
        page.mouse.up()
        assert len(sent(page)) == count + 1
    grant, limit, latency = sent(page)
    assert grant["act"] == limit["act"] == "grant"
    assert grant["value"] > 0
    assert limit["value"] > 0
    assert latency["act"] == "set_latency:c1"
    assert latency["value"] > page.evaluate("stage.scene.branches[0].steps[0].links.c1.latency")


def test_a_knob_is_let_go_for_nothing_by_the_escape_key(opened):
    """Who has turned it by mistake sends nothing, and finds it as it was."""
    page = opened("credit")
    knob = page.locator(".knob[data-knob=grant]")
    before, box = knob.get_attribute("aria-valuenow"), knob.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 30)
    assert knob.get_attribute("aria-valuenow") != before
    page.keyboard.press("Escape")
    page.mouse.move(x, y - 40)
    page.mouse.up()
    assert knob.get_attribute("aria-valuenow") == before
    assert sent(page) == []


@pytest.mark.slow
def test_a_frame_is_held_by_mouse_by_keyboard_and_from_the_list(opened):
    page = opened("credit")
    seek(page, 14)
    frame = page.get_by_role(
        "button", name="transfer: delivery-id 4 · 105 B, in flight. Press: hold"
    )
    frame.click()
    reply(page, {"type": "done"})
    frame.focus()
    page.keyboard.press("Enter")
    reply(page, {"type": "done"})
    page.keyboard.press("a")
    row = page.locator(".act", has_text="delivery-id 4")
    row.get_by_role("button", name="hold").click()
    said = [(message["act"], message["value"]) for message in sent(page)]
    assert said == [("hold", frame.get_attribute("data-frame"))] * 3


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("name", "acts"),
    [
        ("credit", ("publish", "grant", "drain", "stop", "acknowledge")),
        ("alarmed", ("alarm", "publish", "grant", "acknowledge", "ignore_window")),
        ("windows", ("publish", "accept", "set_latency", "stall")),
        ("quorum", ("publish", "crash", "stall")),
    ],
)
def test_what_has_no_mark_in_the_picture_stands_under_it_by_its_whole_name(
    opened, name, acts, width
):
    scene = scene_of(name)
    wanted = [act for act in scene["acts"] if act["id"].partition(":")[0] in acts]
    page = opened(scene | {"acts": wanted}, width=width)
    for act in wanted:
        mark = page.locator(
            f".wst-picture [data-act='{act['id']}'], .wst-picture [data-knob='{act['id']}']"
        )
        beside = page.locator(".wst-actrow").get_by_text(act["name"], exact=True)
        assert mark.count() or beside.is_visible(), act["name"]
    assert [text for text in page.locator(".wst-picture .hit text").all_text_contents()
            if "…" in text] == []  # fmt: skip
    box, row = page.locator(".wst").bounding_box(), page.locator(".wst-actrow")
    if row.count():
        last = row.locator("button").last.bounding_box()
        assert last["x"] + last["width"] <= box["x"] + box["width"]


def test_in_a_row_narrower_than_the_picture_the_button_for_more_is_seen(opened):
    """The picture is scaled down there, and the row is not."""
    page = opened("valves", width=480)
    row, more = page.locator(".wst-actrow"), page.get_by_role("button", name="more")
    last = more.bounding_box()
    assert last["x"] + last["width"] <= 480
    assert row.evaluate("node => node.scrollWidth <= node.clientWidth")


def test_a_box_too_narrow_for_where_it_is_says_what_it_is(opened):
    """The queue's name, and not the beginning of the broker's with half of it."""
    scene = scene_of("valves")
    queue = next(node for node in scene["nodes"] if node.get("sub", "").startswith("broker, “"))
    queue["sub"] = "broker, “later”"
    page = opened(scene, width=700)
    page.locator(".wst-picture text").get_by_text("“later”", exact=True).wait_for()
    assert "…" not in "".join(page.locator(".wst-picture .m").all_text_contents())


def test_an_amount_without_a_knob_is_typed_where_its_button_leads(opened):
    page = opened("valves", width=1180)
    page.locator(".wst-actrow").get_by_text("set max link credit…").click()
    page.keyboard.type("7")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert [(one["act"], one["value"]) for one in sent(page)] == [("set_max_link_credit", 7)]


def test_what_can_be_done_never_lies_on_something_else(opened):
    """A run with more acts than the picture has room for leaves the rest to the row below it."""
    page = opened("credit")
    covered = page.locator(".wst-picture [data-act], .wst-picture [data-knob]").evaluate_all(
        """all => all.filter((one) => {
          const box = one.getBoundingClientRect();
          const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
          return !one.contains(top);
        }).map((one) => one.getAttribute("aria-label"))"""
    )
    assert [
        name for name in covered if not name.startswith("the wire")
    ] == []  # has its handle on it


def test_a_closed_gate_is_pressed_where_its_bar_stands(opened):
    """Not the frame that waits before it, which a press lets through."""
    scene = scene_of("credit")
    steps, (wire,) = scene["branches"][0]["steps"], scene["links"]
    there, back = ({"closed": True, "text": f"{n} waiting"} for n in (1, 0))
    gates = {"gates": {"there": there, "back": back}}
    steps[0].setdefault("links", {}).setdefault(wire["id"], {}).update(gates)
    ways = [(way, f"{wire['id']} {way}") for way in ("there", "back")]
    scene["acts"] = [
        {"id": f"gate {way}", "kind": "toggle", "on": on, "name": "close", "undo": "open"}
        for way, on in ways
    ] + [{"id": "forward", "kind": "frame", "on": wire["id"], "name": "let go"}]
    scene["branches"][0]["frames"] = [
        {"id": way, "link": wire["id"], "way": way, "kind": "message", "name": way,
         "path": [[0, 0.5], [scene["ends"], 0.5]]} for way, _ in ways
    ]  # fmt: skip
    page = opened(scene, reduced_motion="reduce")
    for way, _ in ways:
        box = page.locator(f"[data-act='gate {way}'] line.k-stop").bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.locator(f"[data-frame='{way}']").click()
    acts = [one["act"] for one in sent(page)]
    assert acts == ["gate there", "forward", "gate back", "forward"]


def test_every_act_is_in_the_list_by_name(opened):
    page = opened("quorum")
    page.get_by_role("button", name="Act", exact=True).click()
    listed = page.locator(".wst-acts label b").all_inner_texts()
    acts = [act["name"] for act in scene_of("quorum")["acts"] if act["kind"] != "frame"]
    assert listed[: len(acts)] == acts


def test_a_commit_before_the_entries_shown_is_no_line_at_the_first_of_them(opened):
    """The leader's log has grown by forty: its newest are shown, and the commit is left of them."""
    page = opened(scenes.scene(run("quorum").then("publish", count=40)))
    commit = page.locator(".wst-picture g:has(> text)", has_text=re.compile("^commit 1$"))
    assert commit.locator("> line").count() == 1
    page.evaluate(
        "stage.set(stage.run.states.findIndex(({ lines }) =>"
        " Object.values(lines.log.ends).some(([, memory]) => memory > 20)))"
    )
    assert (commit.count(), commit.locator("> line").count()) == (1, 0)


@pytest.mark.slow
def test_a_toggle_undoes_what_is_so(opened):
    """A crashed node is started by the same mark; the message says what shall be."""
    page = opened("quorum")
    page.get_by_role("button", name="n2, follower. Press: crash n2").click()
    seek(page, 20)
    page.get_by_role("button", name="n3, down. Press: restart n3").click()
    assert [(one["act"], one["value"]) for one in sent(page)] == [
        ("crash:n2", True),
        ("crash:n3", False),
    ]


def test_an_act_that_is_not_legal_says_in_place_what_would_be(opened):
    """By the scene before it is sent, and by Python's answer after."""
    page = opened("credit")
    barred = page.get_by_role("button", name="acknowledge")
    assert barred.get_attribute("aria-disabled") == "true"
    barred.click(force=True)  # Playwright waits for what is disabled
    note = page.get_by_role("alert")
    assert note.inner_text().startswith("nothing is unsettled: 0 messages have arrived")
    assert abs(note.bounding_box()["y"] - barred.bounding_box()["y"]) < 60
    assert sent(page) == []
    page.get_by_role("button", name="publish", exact=True).click()
    reply(
        page, {"type": "illegal", "act": "publish", "why": "The queue is gone: declare it first."}
    )
    assert page.get_by_role("alert").inner_text() == "The queue is gone: declare it first."
    page.keyboard.press("Escape")
    assert page.get_by_role("alert").count() == 0


def test_the_largest_values_are_shown_whole(opened):
    """What is cut off is another number: 6000000 for a latency of 60 s."""
    given = {"latency_us": 60_000_000, "initial_delivery_count": 4294967295}
    begun = run("credit", parameters=given)
    page = opened(scenes.scene(begun) | {"parameters": parameter_docs(begun, begun)})
    arrows, time = (
        page.locator(f"[data-knob='set_latency:c1'] {part}") for part in ("path", "text")
    )
    assert time.text_content() == "60000 ms"
    ends = "one => { const box = one.getBoundingClientRect(); return [box.left, box.right]; }"
    assert arrows.evaluate(ends)[1] + 3 < time.evaluate(ends)[0]
    page.locator(".wst").focus()
    page.keyboard.press("p")
    for name in ("latency", "initial delivery count"):
        field = page.get_by_role("spinbutton", name=name)
        assert field.evaluate("one => one.scrollWidth <= one.clientWidth"), name


def test_a_run_is_begun_anew_from_the_form(opened):
    """By keyboard alone; what is wrong is said in one line, and nothing that was typed is lost."""
    begun = run("publishers", "rmq4.3", {"queues": 2})
    given = parameter_docs(begun, begun)
    page = opened(scene_of("credit") | {"parameters": given}, width=640)
    page.locator(".wst").focus()
    page.keyboard.press("p")
    field = page.get_by_role("spinbutton", name="queues")
    field.focus()
    page.keyboard.press("End")
    page.keyboard.type("9")
    assert field.evaluate("one => [one.value, one.validity.valid]") == ["29", False]
    page.get_by_label("settled", exact=True).focus()
    page.keyboard.press("y")
    page.get_by_role("slider", name="rate").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    assert field.input_value() == "29"
    field.press("Enter")
    values = {"queues": 29, "settled": True, "rate": 0}
    assert [(one["act"], one["value"]) for one in sent(page)] == [("begin", values)]
    why = "queues is 29; legal: 1 to 4 queues"
    reply(page, {"type": "illegal", "act": "begin", "why": why})
    assert page.locator(".wst-form").get_by_role("alert").inner_text() == why
    assert field.input_value() == "29"
    field.fill("3")
    other = [one | {"value": 3} if one["id"] == "queues" else one for one in given]
    page.evaluate("(scene) => stage.load(scene, 0, 0)", scene_of("credit") | {"parameters": other})
    tabs = page.locator(".wst-tabs")
    assert tabs.get_by_role("button", name="Parameters (1)").count() == 1
    assert tabs.evaluate("row => row.scrollWidth <= row.clientWidth")
    page.get_by_role("button", name="↩ as given").click()
    assert sent(page)[-1]["value"] == {one["id"]: one["given"] for one in given}


def branch_of(scene: dict, keeps: int | None = None) -> dict:
    """The branch of an act after so many steps; at the step where the lesson begins if None."""
    keeps = scene["begin"] + 1 if keeps is None else keeps
    at = scene["branches"][0]["steps"][keeps - 1]["t"]
    step = {"t": at + 1, "sentence": "The learner has done it.", "mark": True, "mine": True}
    return {"id": 1, "parent": 0, "keeps": keeps, "at": at, "label": "credit 4", "frames": [],
            "acts": [{"t": at, "label": "credit 4"}], "steps": [step]}  # fmt: skip


def test_an_act_grows_a_branch_and_what_was_there_stays(opened):
    scene = scene_of("credit")
    page = opened(scene, reduced_motion="reduce")
    page.get_by_role("button", name="publish", exact=True).click()
    grown = branch_of(scene)
    reply(page, {"type": "branch", "branch": grown})
    assert sentence(page) == "The learner has done it."
    assert "credit 4" in page.locator(".wst-strip").inner_text()
    assert page.locator("[data-branch='1'] rect:not(.branch)").count() == 1
    assert page.evaluate("stage.run.steps.length") == grown["keeps"] + 1
    page.locator(".wst").focus()
    page.keyboard.press("b")
    page.keyboard.press("End")
    assert page.evaluate("[stage.branch, stage.step]") == [
        0,
        len(scene["branches"][0]["steps"]) - 1,
    ]
    page.locator("[data-branch='1']").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("stage.branch") == 1
    page.get_by_role("button", name="↩ run as given").click()
    assert page.evaluate("stage.branch") == 0


@pytest.mark.slow
def test_another_branch_is_shown_at_the_same_time_also_where_it_has_ended(opened):
    """A click on its line changes the branch alone; its last step stands there."""
    scene = scene_of("credit")
    grown = branch_of(scene)
    scene["branches"].append(grown)
    page = opened(scene, reduced_motion="reduce")
    seek(page, scene["ends"])
    page.locator("[data-branch='1']").click()
    assert page.evaluate("[stage.branch, stage.step, stage.t]") == [
        1, grown["keeps"], scene["ends"]
    ]  # fmt: skip
    page.locator("[data-branch='0'] path").first.click(force=True)
    assert page.evaluate("[stage.branch, stage.t]") == [0, scene["ends"]]


def test_time_is_set_on_the_line_of_the_run_that_is_shown(opened):
    """Also where that is drawn; the line of another branch shows that branch."""
    page = opened("credit", reduced_motion="reduce")
    line = page.locator("[data-branch='0'] .branch")
    line.click()
    half = page.evaluate("stage.scene.branches[0].steps[stage.scene.begin].t + stage.scene.ends")
    assert page.evaluate("stage.t") == pytest.approx(half / 2, rel=0.05)
    scene = scene_of("credit")
    scene["branches"].append(branch_of(scene))
    page = opened(scene, reduced_motion="reduce")
    page.locator("[data-branch='1'] .branch").click()
    assert page.evaluate("[stage.branch, stage.step]") == [1, scene["begin"]]
    line.click()
    assert page.evaluate("[stage.branch, stage.step]") == [0, scene["begin"]]
    line.click()
    assert page.evaluate("stage.t") == pytest.approx(half / 2, rel=0.05)


@pytest.fixture(scope="module")
def many_branches() -> dict:
    """Five grants at one step, and a message published after each."""
    tree = Branches(run("credit", parameters={"messages": 9}))
    for credit in range(2, 7):
        tree.select(0)
        tree.act(26, "grant", link_credit=credit)
        tree.act(len(tree.run.rows) - 1, "publish", count=1)
    return scenes.SceneMaker(tree).scene()


def test_no_branch_is_drawn_on_another(opened, many_branches):
    """What begins where its parent ends goes on in its row; all else has a row of its own."""
    page = opened(many_branches, reduced_motion="reduce")
    boxes = page.locator("[data-branch] .branch").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => [box.y, box.x, box.right])"
    )
    rows: dict[int, list[tuple[float, float]]] = {}
    for y, left, right in boxes:
        rows.setdefault(round(y), []).append((left, right))
    assert [len(one) for one in rows.values()] == [1, 2, 2, 2, 2, 2]
    assert all(a[1] <= b[0] + 1 for a, b in (one for one in rows.values() if len(one) > 1))


def test_a_branch_is_pressed_in_its_middle_however_far_its_parent_is(opened):
    """What leads there from the row of its parent is no part of the button."""
    tree = Branches(run("credit", parameters={"messages": 9}))
    for credit in (2, 3):
        tree.select(0)
        tree.act(26, "grant", link_credit=credit)
    page = opened(scenes.SceneMaker(tree).scene(), reduced_motion="reduce")
    hits = page.locator("[data-branch]").evaluate_all(
        """all => all.map(one => {
            const box = one.getBoundingClientRect();
            const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
            return document.elementFromPoint(x, y).closest("[data-branch]") === one;
        })"""
    )
    assert hits == [True] * 3


def test_of_many_branches_one_is_chosen_from_a_list(opened, many_branches):
    """Rows of a few pixels are hard to hit; the list follows what is shown."""
    page = opened(many_branches, width=640, reduced_motion="reduce")
    listed = page.get_by_role("combobox", name="branches")
    listed.select_option(label="7: grant 5")
    assert page.evaluate("stage.branch") == 7
    page.locator(".wst").focus()
    page.keyboard.press("b")
    assert listed.locator("option:checked").inner_text() == "8: publish 1"
    assert page.evaluate(CUT_OFF) == {}
    page = opened("crossing", width=640)
    assert listed.count() == 0


def test_what_is_shown_is_marked_where_it_happened(opened):
    """Up to an act the steps of a branch are its parent's, and stand on its parent's line."""
    scene = scene_of("credit")
    steps = scene["branches"][0]["steps"]
    scene["branches"].append(branch_of(scene, keeps=len(steps) - 8))
    page = opened(scene, reduced_motion="reduce")
    page.evaluate("stage.go(0, 1)")
    rows = "all => all.map(one => one.getBoundingClientRect()).map(box => box.y + box.height / 2)"
    given, own = page.locator("[data-branch] .branch").evaluate_all(rows)
    marks = page.locator(".wst-line path.k-flow").evaluate_all(rows)
    assert len(marks) > 2
    assert marks == pytest.approx([given] * (len(marks) - 1) + [own], abs=1)


@pytest.mark.slow
def test_without_a_kernel_time_goes_and_an_act_says_what_is_missing(opened):
    page = opened("credit", options="{}")
    page.get_by_role("button", name="publish", exact=True).click()
    assert "no kernel" in page.get_by_role("alert").inner_text()
    page.locator(".wst").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("stage.step === stage.scene.begin + 1")


def test_a_kernel_that_does_not_answer_is_told(timed):
    page = timed("credit")
    hold_the_clock(page)
    page.get_by_role("button", name="publish", exact=True).click()
    page.clock.run_for(11_000)
    assert "does not answer" in page.get_by_role("alert").inner_text()


def test_the_same_act_is_not_sent_again_before_its_answer(opened):
    """A double click makes one branch; another act, and the same after the answer, are sent."""
    page = opened("credit", reduced_motion="reduce")
    publish = page.get_by_role("button", name="publish", exact=True)
    publish.dblclick()
    page.get_by_role("button", name="drain", exact=True).click()
    reply(page, {"type": "done"})
    publish.click()
    assert [one["act"] for one in sent(page)] == ["publish", "drain", "publish"]


def test_a_kernel_that_is_gone_is_told_at_once(opened):
    """After a restart a message cannot even be sent."""
    gone = WIDGET.replace(
        "send: (message) => sent.push(message)", "send: () => { throw Error('Cannot send'); }"
    )
    page = opened("credit", ends=gone)
    page.get_by_role("button", name="publish", exact=True).click()
    assert "does not answer" in page.get_by_role("alert").inner_text()
    assert page.locator(".wst").get_attribute("aria-busy") == "false"


def test_a_number_that_is_none_is_sent_as_it_is(opened):
    """Python refuses it in words; nothing is made of it here."""
    page = opened("credit")
    for text in ("", "2.5"):
        page.locator(".wst").focus()
        page.keyboard.press("a")
        field = page.get_by_role("spinbutton", name="link credit")
        field.fill(text)
        field.press("Enter")
        reply(page, {"type": "illegal", "act": "grant", "why": "No."})
        field.press("Escape")
    assert [one["value"] for one in sent(page)] == [None, 2.5]


def test_what_is_refused_in_the_list_of_acts_is_told_in_its_row(opened):
    """A note that lay over the list hid the label below."""
    page = opened("credit")
    page.locator(".wst").focus()
    page.keyboard.press("a")
    rows = page.locator(".wst-acts .act")
    for tried in (rows.first, rows.last):
        tried.get_by_role("button").first.click()
        reply(page, {"type": "illegal", "act": "grant", "why": "legal: 0 to 4294967295 messages"})
        told = page.get_by_role("alert")
        assert told.inner_text() == "legal: 0 to 4294967295 messages"
        assert tried.get_by_role("alert").count() == 1
        box, sheet = told.bounding_box(), page.locator(".wst-sheet").bounding_box()
        assert sheet["y"] <= box["y"]
        assert box["y"] + box["height"] <= sheet["y"] + sheet["height"]


def test_what_is_opened_has_the_focus_and_gives_it_back(opened):
    """By key or by button; and nobody goes on behind the help, which lies over everything."""
    page = opened("credit")
    within = lambda what: page.locator(what).evaluate(  # noqa: E731
        "node => node.contains(document.activeElement)"
    )
    publish = page.get_by_role("button", name="publish", exact=True)
    for opens, what in (("a", ".wst-sheet"), ("3", ".wst-sheet"), ("?", ".wst-help")):
        publish.focus()
        page.keyboard.press(opens)
        assert within(what), opens
        page.keyboard.press("Tab")
        assert within(what), opens
        page.keyboard.press("Escape")
        assert page.locator(what).count() == 0
        assert publish.evaluate("node => node === document.activeElement"), opens
    page.evaluate("document.body.append(document.createElement('button'))")
    for away in ("Tab", "Shift+Tab"):
        page.keyboard.press("?")
        for _ in range(2):
            page.keyboard.press(away)
        assert page.locator(".wst-help").count() == 0
        page.locator(".wst").focus()
    page.get_by_role("button", name="Share").click()
    reply(page, {"type": "code", "text": "c1:abc", "own": []})
    copy = page.get_by_role("button", name="Copy")
    copy.click()
    page.get_by_role("status").get_by_text("Copied").or_(page.get_by_text("copy it")).wait_for()
    assert copy.evaluate("node => node === document.activeElement")


def test_a_branch_of_the_timeline_shows_the_focus_and_is_easily_hit(opened):
    page = opened("credit", reduced_motion="reduce")
    reply(page, {"type": "branch", "branch": branch_of(scene_of("credit"))})
    branch = page.locator("[data-branch='1']")
    page.locator("[data-time]").focus()
    page.keyboard.press("Tab")
    while not branch.evaluate("node => node === document.activeElement"):
        page.keyboard.press("Tab")
    area = branch.locator(".branch")
    assert area.evaluate("node => getComputedStyle(node).stroke") == "rgb(11, 87, 208)"
    assert branch.bounding_box()["height"] >= 16


@pytest.mark.parametrize("width", [1200, 830, 620, 619, 466, 380])
def test_the_list_of_many_branches_leaves_room_for_the_timeline(opened, width):
    """A hand still finds a time on it, in whatever page."""
    page = opened("credit", width=width, reduced_motion="reduce")
    branch = branch_of(scene_of("credit"))
    for number in range(1, 9):
        reply(page, {"type": "branch", "branch": branch | {"id": number}})
    assert page.get_by_role("combobox").locator("option").count() == 9
    assert page.locator(".wst-line").bounding_box()["width"] >= width / 4
    assert page.evaluate(CUT_OFF) == {}


def test_frames_on_a_short_wire_stand_apart(opened):
    """Of three that were sent at once to a leader; what has no room waits unseen."""
    page = opened(scenes.scene(run("quorum", parameters={"messages": 3})))
    looks = page.evaluate(
        """() => [...Array(120).keys()].map((n) => {
          stage.seek(stage.scene.ends * n / 119);
          const frame = (disc) => stage.run.frames.find(
            (one) => one.id === disc.closest("[data-frame]").dataset.frame);
          const places = [...stage.el.querySelectorAll(".wst-picture [data-frame] > .disc")]
            .map((disc) => [frame(disc), disc.getBoundingClientRect()])
            .map(([{ link, way }, box]) => [`${link} ${way}`, box.x, box.y]);
          return places.flatMap(([lane, x, y], i) => places.slice(i + 1)
            .filter((one) => one[0] === lane).map((one) => Math.hypot(one[1] - x, one[2] - y)));
        }).flat()"""
    )
    assert looks
    assert min(looks) >= 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_forced_colours_the_picture_has_the_systems(opened, scheme):
    page = opened("credit", forced_colors="active", color_scheme=scheme, options="{theme: 'light'}")
    paper, ink, pressed, other = page.evaluate(
        """() => {
          const of = (what, name) => getComputedStyle(stage.el.querySelector(what))[name];
          stage.ui("tab", "2");
          return [getComputedStyle(stage.el).backgroundColor, of(".wst-picture text", "fill"),
            of(".wst-filter [aria-pressed=true]", "backgroundColor"),
            of(".wst-filter [aria-pressed=false]", "backgroundColor")];
        }"""
    )
    black, white = "rgb(0, 0, 0)", "rgb(255, 255, 255)"
    assert [paper, ink] == ([white, black] if scheme == "light" else [black, white])
    assert pressed != other


def test_from_a_press_to_its_reply_the_stage_is_busy(opened):
    page = opened("credit", reduced_motion="reduce")
    busy = lambda: page.locator(".wst").get_attribute("aria-busy")  # noqa: E731
    for answer in (
        {"type": "illegal", "act": "publish", "why": "The queue is gone."},
        {"type": "done"},
        {"type": "branch", "branch": branch_of(scene_of("credit"))},
    ):
        assert busy() == "false"
        page.get_by_role("button", name="publish", exact=True).click()
        assert busy() == "true"
        reply(page, answer)
    assert busy() == "false"


def test_a_note_is_whole_whatever_it_says_and_however_the_page_changes(opened):
    """It keeps inside the stage, and no line of it is a single word."""
    page = opened("credit")
    page.evaluate("""stage.say("legal: " + "next_outgoing_id, ".repeat(40),
                     stage.el.querySelector(".wst-tabs button:last-child"))""")
    for width in (830, 640):
        page.set_viewport_size({"width": width, "height": 600})
        # Not the stage's own width: it has that a moment before it is drawn for it.
        page.wait_for_selector(f".wst-picture[width='{width - 2}']")
        note = page.get_by_role("alert")
        box, stage = note.bounding_box(), page.locator(".wst").bounding_box()
        assert stage["x"] <= box["x"]
        assert box["x"] + box["width"] <= stage["x"] + stage["width"]
        assert stage["y"] <= box["y"]
        assert box["y"] + box["height"] <= stage["y"] + stage["height"]
        assert box["width"] == 290
        assert note.evaluate("(note) => note.scrollHeight <= note.clientHeight")


# -- the question --------------------------------------------------------------------------------


def test_before_the_answer_nothing_behind_the_deciding_step_is_shown(opened):
    """By no key, by no tab; and acts wait."""
    page = opened("crossing", ask=True)
    decides = scene_of("crossing")["question"]["decides"]
    for key in ("End", "ArrowRight", "n"):
        page.locator(".wst").focus()
        page.keyboard.press(key)
        assert page.evaluate("stage.step") < decides
    assert "Commit first".upper() in page.locator(".wst-tag").inner_text().upper()
    page.keyboard.press("3")
    assert page.locator(".wst-log button").count() <= decides
    page.keyboard.press("3")
    page.get_by_role("button", name="send a message", exact=True).click()
    assert "Commit an answer first" in page.locator(".wst-note").inner_text()
    assert sent(page) == []


def test_a_committed_answer_is_sent_and_judged_only_when_it_has_been_seen(opened):
    page = opened("crossing", ask=True, reduced_motion="reduce")
    page.get_by_role("button", name="6", exact=True).click()
    page.get_by_role("button", name="Commit").click()
    assert sent(page)[0]["act"] == "commit"
    assert sent(page)[0]["value"] == 6
    assert "You said 6. " in page.locator(".wst-strip").inner_text()
    page.keyboard.press("End")
    assert "it is 5" in page.locator(".wst-strip").inner_text()


def test_the_verdict_and_the_rest_of_the_run_come_with_the_reply(opened):
    """The page holds nothing of them before."""
    scene = scene_of("crossing")
    given, question = scene["branches"][0], scene["question"]
    verdict = question.pop("verdicts")["5"]
    kept = given | {"steps": given["steps"][: question["decides"]]}
    page = opened(scene | {"branches": [kept]}, ask=True, reduced_motion="reduce")
    page.get_by_role("button", name="5", exact=True).click()
    page.get_by_role("button", name="Commit").click()
    reply(page, {"type": "verdict", "verdict": verdict, "branches": [given]})
    page.keyboard.press("End")
    assert page.evaluate("stage.step") == len(given["steps"]) - 1
    assert "Yes, 5." in page.locator(".wst-strip").inner_text()


def test_a_misconception_opens_both_rules_and_play_stops_where_they_part(timed):
    page = timed("crossing", ask=True)
    hold_the_clock(page)
    page.get_by_role("button", name="8", exact=True).click()
    page.get_by_role("button", name="Commit").click()
    assert "the same numbers" in page.locator(".wst-strip").inner_text()
    page.clock.run_for(30_000)
    assert page.evaluate("stage.step") == parting(scene_of("crossing"), "adds")
    assert "Here they part" in page.locator(".wst-strip").inner_text()
    assert page.locator(".wst-picture").get_by_text("3 too many").count() == 1


def test_a_trainer_s_picture_speaks_of_the_rooms_rule(opened):
    """Beside the line, over the picture and in the list of rules, from the first step on."""
    page = opened(scenes.SceneMaker(RUNS["crossing"](), rule="adds", theirs=True).scene())
    assert "So far their rule and the rule" in page.locator(".wst-strip").inner_text()
    page.get_by_role("combobox", name="their rule").wait_for()
    assert page.locator(".wst-picture").get_by_text("their rule").count() == 1
    page.evaluate("stage.set(stage.run.steps.length - 1)")
    assert "their rule makes link-credit 8" in page.locator(".wst-strip").inner_text()
    assert page.get_by_text("your rule").count() == 0


@pytest.mark.slow
def test_a_skipped_question_opens_the_run(opened):
    page = opened("crossing", ask=True)
    page.get_by_role("button", name="skip the question").click()
    assert sent(page)[0]["act"] == "skip"
    page.keyboard.press("End")
    assert page.evaluate("stage.step === stage.run.steps.length - 1")


# -- tabs ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_octets_and_fields_mark_each_other(opened):
    page = opened("credit")
    seek(page, 14.25)  # the last that has left is delivery 6: its id has an octet of its own
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Bytes").click()
    page.locator(".fields div", has_text="delivery-id").hover()
    assert page.locator(".hex .at").inner_text().strip().startswith("52")
    page.locator(".hex span").first.hover()
    assert "size" in page.locator(".fields .at").inner_text()


@pytest.mark.slow
def test_the_log_filters_and_leads_to_its_step(opened):
    page = opened("credit")
    page.get_by_role("button", name="Log").click()
    page.locator(".wst-filter").get_by_role("button", name="Client").click()
    lines = page.locator(".wst-log button")
    assert set(page.locator(".wst-log .who").all_inner_texts()) == {"Client"}
    line = lines.nth(2).inner_text()
    lines.nth(2).click()
    assert sentence(page) in line


def test_columns_of_the_log_stay_apart_and_what_is_cut_can_be_read(opened):
    """After minutes, and on a small screen."""
    scene = scene_of("credit")
    for step in scene["branches"][0]["steps"]:
        step["t"] += step["t"] and 107_492.1
    page = opened(scene, width=640)
    page.get_by_role("button", name="Log").click()
    lines = page.locator(".wst-log button").evaluate_all("""(lines) => lines.map((line) => {
      const [time, who, said] = line.children;
      return { whole: time.scrollWidth <= time.clientWidth, starts: who.getBoundingClientRect().x,
        cut: said.scrollWidth > said.clientWidth, dots: getComputedStyle(said).textOverflow, title: said.title };
    })""")  # noqa: E501
    assert all(line["whole"] for line in lines)
    assert len({line["starts"] for line in lines}) == 1
    cut = [line for line in lines if line["cut"]]
    assert cut
    assert all(line["dots"] == "ellipsis" and line["title"].endswith(".") for line in cut)


@pytest.mark.slow
def test_the_sequence_diagram_shows_what_has_happened_so_far(opened):
    page = opened("credit")
    page.get_by_role("button", name="Sequence diagram").click()
    page.locator(".wst").focus()
    page.keyboard.press("Home")
    few = page.locator(".wst-sheet [data-frame]").count()
    page.keyboard.press("End")
    assert page.locator(".wst-sheet [data-frame]").count() > few
    assert page.get_by_text("to scale:").count() == 1


def test_the_sequence_diagram_tells_the_time_of_the_timeline(opened):
    """Both count from where the set-up ends; in the set-up it is 0."""
    page = opened("credit")
    page.get_by_role("button", name="Sequence diagram").click()
    page.locator(".wst").focus()
    for key in ("End", "Home"):
        page.keyboard.press(key)
        told = page.locator(".wst-now").inner_text().splitlines()[0]
        assert page.locator(".wst-sheet svg text.b.mid").text_content() == told


def test_the_share_code_goes_when_the_help_comes(opened):
    """It lay over the help; and the help lay under it when it was opened first."""
    page = opened("credit")
    code = "{ type: 'code', text: 'WB1.x', own: [] }"
    page.evaluate(f"stage.reply({code})")
    assert page.locator(".wst-code").count() == 1
    page.get_by_role("button", name="help").click()
    assert page.locator(".wst-help").count() == 1
    assert page.locator(".wst-code").count() == 0
    page.evaluate(f"stage.reply({code})")
    assert page.locator(".wst-help").count() == 0


def test_keys_stay_with_the_stage_whatever_is_drawn_anew(opened):
    """A button that is moved, or a sheet that goes, keeps no key from the stage."""
    scene = scene_of("credit")
    scene["branches"].append(branch_of(scene))
    page = opened(scene)
    back = page.get_by_role("button", name="one step back")
    back.focus()
    page.keyboard.press("b")
    assert page.evaluate("stage.branch") == 1
    assert back.evaluate("one => one === document.activeElement")
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    assert page.evaluate("stage.branch") == 0


# -- the page it stands in -------------------------------------------------------------------------


def test_it_follows_jupyterlabs_theme_and_else_the_systems(opened):
    page = opened("credit", color_scheme="dark")
    theme = "stage.el.dataset.theme"
    assert page.evaluate(theme) == "dark"
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    page.wait_for_selector(".wst[data-theme=light]")
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_selector(".wst[data-theme=dark]")
    page.get_by_role("button", name="light or dark").click()
    assert page.evaluate(theme) == "light"


@pytest.mark.parametrize("system", ["light", "dark"])
def test_it_follows_the_theme_of_vs_code(opened, system):
    """Whatever the system prefers: a learner chooses the theme of VS Code apart from it."""
    page = opened("credit", color_scheme=system)
    kinds = {
        "vscode-dark": "dark",
        "vscode-light": "light",
        "vscode-high-contrast": "dark",
        "vscode-high-contrast-light": "light",
    }
    for kind, theme in kinds.items():
        page.evaluate("(kind) => { document.body.dataset.vscodeThemeKind = kind; }", kind)
        page.wait_for_selector(f".wst[data-theme={theme}]")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_are_read_on_their_paper(opened, theme):
    """At least 4.5 : 1 for every text colour on the papers that it stands on."""
    page = opened("credit", color_scheme=theme)
    ratios = page.evaluate(
        """() => {
          const style = getComputedStyle(stage.el), value = (name) => style.getPropertyValue(`--${name}`).trim();
          const light = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
            .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
          const ratio = (a, b) => { const [x, y] = [light(value(a)), light(value(b))].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
          const pairs = [["ink", "panel"], ["ink", "sunk"], ["ink", "stopsoft"], ["ink", "flowsoft"], ["ink", "btn"], ["muted", "panel"], ["muted", "sunk"],
            ["snd", "panel"], ["rcv", "panel"], ["flow", "panel"], ["alt", "panel"], ["stop", "panel"], ["dark", "stopfill"], ["on", "snd"], ["on", "alt"], ["on", "rcv"]];
          return Object.fromEntries(pairs.map(([a, b]) => [`${a} on ${b}`, ratio(a, b)]));
        }"""  # noqa: E501
    )
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


@pytest.mark.slow
def test_text_is_never_markup_and_only_https_is_a_link(opened):
    hostile = (
        "<img src=x onerror=\"document.title='run'\"></script><script>document.title='run'</script>"
    )
    scene = scene_of("credit") | {"begin": 0}
    step = scene["branches"][0]["steps"][0]
    step["sentence"] = step["in_words"] = hostile
    step["formula"] = {
        "text": hostile,
        "note": hostile,
        "clause": "2.6.7",
        "href": "javascript:alert(1)",
    }
    for node in step["nodes"].values():
        node["facts"] = [hostile]
    for node in scene["nodes"]:
        node["name"] = hostile
    for frame in scene["branches"][0]["frames"]:
        frame["name"] = frame["label"] = hostile
    page = opened(scene | {"idea": hostile, "title": hostile})
    assert sentence(page) == hostile
    assert page.locator(".wst-formula a").count() == 0
    for tab in "1234":
        page.locator(".wst").focus()
        page.keyboard.press(tab)
    assert page.title() == "stage"
    assert page.locator(".wst img").count() == 0


@pytest.mark.slow
def test_of_5000_steps_a_page_holds_what_is_shown(opened):
    """The page's size does not grow with the run's: neither in the picture nor in the log."""
    scene = scene_of("credit")
    long, line = scene["branches"][0], scene["lines"][0]
    sender, receiver = (end["id"] for end in line["ends"])
    last = long["steps"][-1]["t"]
    for n in range(5000):
        t = last + 1 + n
        ends = {sender: [n, n + 9], receiver: [max(0, n - 3), n + 9]}
        step = {"t": t, "sentence": f"Message {n} leaves.", "mark": n % 3 == 0}
        long["steps"].append(step | {"lines": {line["id"]: {"ends": ends}}})
        frame = {"id": f"many{n}", "link": "c1", "way": "there", "kind": "message"}
        path = [[t, 0], [t + 3, 1]]
        long["frames"].append(frame | {"name": f"transfer {n}", "text": str(n % 100), "path": path})
    page = opened(scene | {"ends": last + 5004})
    page.locator(".wst").focus()
    for key in ("1", "3"):
        page.keyboard.press(key)
        for step in (100, 2500, 5000):
            page.evaluate("(step) => stage.set(step)", step)
            assert page.locator(".wst *").count() < 1500


WIDGET = """
const scene = document.getElementById("scene").textContent;
const packed = async (text) => new DataView(await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer());
const heard = {}, traits = { scene: await packed(scene), cursor: 29, branch: 0 };
globalThis.sent = []; globalThis.traits = traits; globalThis.packed = packed;
globalThis.tell = (name, ...what) => Promise.all([...(heard[name] ?? [])].map((act) => act(...what)));
const widget = stage_default(), model = {
  get: (name) => traits[name], set: (name, value) => { if (traits[name] !== value) { traits[name] = value; tell(`change:${name}`); } }, save_changes: () => { document.body.dataset.saved = `${traits.branch} ${traits.cursor}`; },
  send: (message) => sent.push(message), on: (name, act) => (heard[name] ??= new Set()).add(act), off: (name, act) => heard[name].delete(act) };
widget.initialize({ model });
globalThis.view = (id) => widget.render({ el: document.getElementById(id), model });
globalThis.close = view("here");
"""  # noqa: E501


def test_the_widget_unpacks_its_scene_and_keeps_the_cursor_both_ways(opened):
    scene = scene_of("credit")
    page = opened("credit", ends=WIDGET, reduced_motion="reduce")
    steps = scene["branches"][0]["steps"]
    assert sentence(page) == steps[29]["sentence"]
    page.evaluate("() => { traits.cursor = 32; tell('change:cursor'); }")
    assert sentence(page) == steps[32]["sentence"]
    page.locator(".wst").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("body[data-saved='0 33']")
    page.get_by_role("button", name="publish", exact=True).click()
    assert sent(page)[0]["act"] == "publish"
    page.evaluate(
        "async (reply) => tell('msg:custom', { gzip: true }, [await packed(reply)])",
        json.dumps({"type": "branch", "branch": branch_of(scene)}),
    )
    page.wait_for_selector("body[data-saved^='1 ']")
    assert sentence(page) == "The learner has done it."
    page.evaluate("close()")
    assert page.locator(".wst").count() == 0


ANOTHER = """() => {
    const place = document.createElement("div");
    place.id = "there";
    document.body.append(place);
    view("there");
}"""


def test_light_or_dark_is_chosen_for_all_stages_of_a_page(opened):
    page = opened("credit", ends=WIDGET, color_scheme="light")
    page.evaluate(ANOTHER)
    page.locator("#there").get_by_role("button", name="light or dark").click()
    page.wait_for_selector("#here .wst[data-theme=dark]")
    page.wait_for_selector("#there .wst[data-theme=dark]")


def test_a_view_that_is_opened_later_has_the_branches_of_the_others(opened):
    """A desk that is shown twice, *Create New View for Output*: it goes where the first one is."""
    scene = scene_of("credit")
    page = opened("credit", ends=WIDGET, reduced_motion="reduce")
    page.evaluate(
        "async (reply) => tell('msg:custom', { gzip: true }, [await packed(reply)])",
        json.dumps({"type": "branch", "branch": branch_of(scene)}),
    )
    page.wait_for_selector("body[data-saved^='1 ']")
    page.evaluate(ANOTHER)
    later = page.locator("#there .wst")
    assert later.locator(".wst-sentence").inner_text() == "The learner has done it."
    page.locator("#here .wst").focus()
    page.keyboard.press("Home")
    words = page.locator("#here .wst-sentence").inner_text()
    later.locator(".wst-sentence").get_by_text(words, exact=True).wait_for()
    later.focus()
    page.keyboard.press("b")
    page.wait_for_selector("body[data-saved^='0 ']")
    for name in ("#here", "#there"):
        assert page.locator(f"{name} [data-branch='0'][aria-pressed='true']").count() == 1


def test_who_asked_is_told_however_many_answers_come(opened):
    """Of two acts that were made before the first answer each is answered, in its own view."""
    page = opened("credit", ends=WIDGET, reduced_motion="reduce")
    page.evaluate(ANOTHER)
    for place in ("here", "there", "here"):
        page.locator(f"#{place}").get_by_role("button", name="publish", exact=True).click()
        page.locator(f"#{place} .wst").focus()
        page.keyboard.press("ArrowLeft")  # another place: not the same act twice
    asked = [one["view"] for one in sent(page)]
    assert asked == [asked[0], asked[1], asked[0]] != [asked[0]] * 3
    for view, why in zip(asked, ("First.", "Second.", "Third."), strict=True):
        told = {"type": "illegal", "act": "publish", "why": why, "view": view}
        page.evaluate("(told) => tell('msg:custom', told)", told)
        place = "here" if view == asked[0] else "there"
        assert page.locator(f"#{place} .wst-note").inner_text() == why
    assert page.locator("#there .wst-note").inner_text() == "Second."


def test_a_view_that_is_opened_while_a_branch_comes_has_it(opened):
    scene = scene_of("credit")
    page = opened("credit", ends=WIDGET, reduced_motion="reduce")
    page.evaluate(
        "async (reply) => { const buffers = [await packed(reply)];"
        " const told = tell('msg:custom', { gzip: true }, buffers);"
        f" ({ANOTHER})(); await told; }}",
        json.dumps({"type": "branch", "branch": branch_of(scene)}),
    )
    page.wait_for_selector("body[data-saved^='1 ']")
    later = page.locator("#there .wst-sentence")
    later.get_by_text("The learner has done it.", exact=True).wait_for()


def test_a_place_reaches_the_kernel_before_the_act_that_is_made_there(timed):
    """Behind *Begin anew* it would be a place of the run before."""
    page = timed("credit", ends=WIDGET)
    hold_the_clock(page)
    page.locator(".wst").focus()
    page.keyboard.press("ArrowRight")
    assert "saved" not in page.evaluate("() => ({ ...document.body.dataset })")
    page.evaluate(
        "() => addEventListener('workbench-press',"
        " () => { globalThis.pressed = `${document.body.dataset.saved}, ${sent.length} sent`; })"
    )
    page.get_by_role("button", name="publish", exact=True).click()
    assert page.evaluate("() => document.body.dataset.saved") == "0 30"
    # What ipywidgets hold back while the kernel is busy goes between the two.
    assert page.evaluate("() => pressed") == "0 30, 0 sent"
    page.evaluate("() => delete document.body.dataset.saved")
    page.clock.run_for(1_000)
    assert "saved" not in page.evaluate("() => ({ ...document.body.dataset })")


def test_what_the_widget_tells_of_its_place_never_leads_it_back(timed):
    """Step and branch change one after the other; play goes on to the end of what an act grew."""
    scene = scene_of("credit")
    page = timed("credit", ends=WIDGET)
    hold_the_clock(page)
    page.get_by_role("button", name="publish", exact=True).click()
    grown = branch_of(scene)
    grown["steps"].append(grown["steps"][0] | {"t": grown["at"] + 30, "sentence": "It ends."})
    told = page.evaluate(
        "async (reply) => { await tell('msg:custom', { gzip: true }, [await packed(reply)]);"
        " return traits.branch; }",
        json.dumps({"type": "branch", "branch": grown}),
    )
    assert told == 1  # before the picture is drawn, which a page that is not looked at may not be
    page.locator(".wst-strip").get_by_text("Action: credit 4").wait_for()
    page.clock.run_for(30_000)
    page.wait_for_selector(f"body[data-saved='1 {grown['keeps'] + 1}']")
    assert sentence(page) == "It ends."


def test_a_scene_that_cannot_be_unpacked_leaves_the_one_before_it(opened):
    """It goes through its steps, and its place is told, as before."""
    page = opened("credit", ends=WIDGET)
    page.evaluate(
        "async () => { traits.scene = new DataView(new ArrayBuffer(8));"
        " await tell('change:scene').catch(() => null); }"
    )
    page.locator(".wst").focus()
    page.keyboard.press("Home")
    page.wait_for_selector("body[data-saved^='0 ']")
    page.evaluate("() => { traits.cursor = 32; tell('change:cursor'); }")
    assert sentence(page) == scene_of("credit")["branches"][0]["steps"][32]["sentence"]


def test_a_slice_has_the_rows_and_the_time_of_its_run(opened):
    """They are those that the text about a trace tells."""
    rows = import_capture(CAPTURES / "rmq43_a_publisher_grants.pcapng").rows
    page = opened(scenes.scene(cut_rows(rows, 493, first=293)))
    page.evaluate("() => stage.set(200)")
    assert page.locator(".wst-now").inner_text().split("\n") == ["2624.2 ms", "row 493"]
    page.get_by_role("button", name="Log").click()
    assert page.locator(".wst-log .now .t").inner_text() == "2624.2 ms"


@pytest.mark.slow
def test_a_page_of_its_own_holds_the_scene_as_gzip_in_base64(static_page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(stage_page(scene_of("credit")), encoding="utf-8")
    static_page.page.goto(path.as_uri())
    assert static_page.page.locator(".wst-picture text").nth(10).text_content()
    static_page.assert_quiet()


def test_no_two_stages_of_a_page_share_an_id(static_page, tmp_path):
    """Each widget of a notebook loads the module for itself."""
    ends = """
const scene = JSON.parse(document.getElementById("scene").textContent);
await mount(document.getElementById("here").appendChild(document.createElement("div")), scene);
"""
    text, path = html(scene_of("credit"), ends), tmp_path / "page.html"
    module = text[text.rindex('<script type="module">') : text.rindex("</body>")]
    path.write_text(text.replace("</body>", f"{module}</body>"), encoding="utf-8")
    page = static_page.page
    page.goto(path.as_uri())
    page.locator(".wst-picture").nth(1).wait_for()
    ids = page.evaluate("[...document.querySelectorAll('.wst [id]')].map(({ id }) => id)")
    assert len(ids) == 2 * len(page.locator(".wst").first.locator("[id]").all())
    assert len(set(ids)) == len(ids)
    static_page.assert_quiet()


def test_what_one_end_does_not_know_is_not_said_to_differ(opened):
    """Of a capture that begins late, a counter has "?" at one end."""
    scene = scene_of("credit")
    (row, *_) = [row["id"] for row in scene["counters"]["rows"] if row.get("compare")]
    steps = scene["branches"][0]["steps"]
    for step in steps:
        if row in step.get("counters", {}):
            step["counters"][row][0] = "?"
    page = opened(scene)
    page.evaluate(f"() => {{ stage.set({len(steps) - 1}); stage.ui('tab', '3'); }}")
    told = page.locator(".wst-sheet tr", has_text="?").first
    assert "≠" not in told.inner_text()


def test_a_stage_that_is_taken_out_of_the_page_while_it_plays_can_be_played_again(opened):
    """JupyterLab takes out what is far out of sight, and puts it back."""
    page = opened("credit")
    page.evaluate(
        """async () => {
            stage.set(stage.scene.begin ?? 0);
            stage.play(true);
            const parent = stage.el.parentElement;
            stage.el.remove();
            for (let frame = 0; frame < 2; frame++) {
                await new Promise((resolve) => requestAnimationFrame(resolve));
            }
            parent.append(stage.el);
        }"""
    )
    play = page.get_by_role("button", name="play (space)")
    play.click()
    until(lambda: page.evaluate("stage.t > stage.run.steps[stage.scene.begin ?? 0].t"))
