"""How long a step takes in the browser with 5,000 rows loaded, and how soon a stepper is there.

    python benchmarks/step_in_browser.py [--rows 5000] [--no-lab]

A step is timed from the key to the end of the layout it causes, in Chromium on this machine, over
400 steps: on, back, and jumps across the whole run; the quietest of three rounds counts. The bar is
16 ms at the 95th percentile, one frame of a screen. The second figure is a kernel's start to the
first stepper on the screen of a JupyterLab that is already open.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO))

from tests.browser.conftest import CHROMIUM_FLAGS, running_lab  # noqa: E402
from tests.conftest import find_chromium  # noqa: E402
from workbench.amqp10.frame import Frame, encode_item  # noqa: E402
from workbench.amqp10.messaging import Data, encode_message  # noqa: E402
from workbench.amqp10.performatives import Flow, Transfer  # noqa: E402
from workbench.trace import Row  # noqa: E402
from workbench.views.static_html import page  # noqa: E402
from workbench.views.stepper_doc import build  # noqa: E402

BAR_MS = 16.0

MEASURE = """(moves) => {
    const root = document.querySelector('.wbs'), took = [];
    root.focus();
    for (const [key, slide] of moves) {
        const slider = root.querySelector('input[type=range]');
        const begin = performance.now();
        if (slide >= 0) {
            slider.value = slide;
            slider.dispatchEvent(new Event('input'));
        } else {
            root.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        }
        root.getBoundingClientRect();
        root.querySelector('.wbs-lines').getBoundingClientRect();
        took.push(performance.now() - begin);
    }
    return took;
}"""


def long_run(count: int) -> list[Row]:
    """Rows of a link that is topped up at half, as both ends log them."""
    link = {"connection": "c1", "session": 0, "link": "q", "link_sender": "broker", "attach_no": 1}
    rows: list[Row] = []
    frame_id = t_us = sent = got = 0
    snd = rcv = 0

    def add(vantage: str, event: str, number: int, frame: Frame) -> None:
        side = (sent, snd) if vantage == "broker" else (got, rcv)
        ledger = {"delivery_count": side[0], "link_credit": side[1], "next_outgoing_id": side[0]}
        kind = frame.performative.NAME
        raw = encode_item(frame)
        rows.append(
            Row(
                run="bench", seq=len(rows), t_us=t_us, vantage=vantage, event=event, kind=kind,
                protocol="amqp-1.0", frame_id=number,
                from_peer="client" if kind == "flow" else "broker",
                frame={"handle": 0}, ledger=ledger, ledger_source="own", raw=raw,
                brake=("none" if snd else "link-credit") if vantage == "broker" else None,
                frame_bytes=len(raw), **link,
            )
        )  # fmt: skip

    while len(rows) < count:
        rcv = 100
        t_us += 20
        flow = Frame(channel=0, performative=_flow(got, rcv))
        add("client:r", "sent", frame_id, flow)
        t_us += 400
        snd = got + rcv - sent
        add("broker", "received", frame_id, flow)
        frame_id += 1
        flying = []
        for _ in range(50):
            t_us += 10
            sent, snd = sent + 1, snd - 1
            transfer = Frame(channel=0, performative=_transfer(sent - 1), payload=BODY)
            add("broker", "sent", frame_id, transfer)
            flying.append((frame_id, transfer))
            frame_id += 1
        for number, transfer in flying:
            t_us += 10
            got, rcv = got + 1, rcv - 1
            add("client:r", "received", number, transfer)
    return rows[:count]


BODY = encode_message([Data(bytes(range(65, 165)))])


def _flow(count: int, credit: int) -> Flow:
    window = {"next_incoming_id": count, "incoming_window": 2048}
    return Flow(
        **window, next_outgoing_id=0, outgoing_window=2**31, handle=0,
        delivery_count=count, link_credit=credit, drain=False,
    )  # fmt: skip


def _transfer(number: int) -> Transfer:
    tag = number.to_bytes(4, "big")
    return Transfer(handle=0, delivery_id=number, delivery_tag=tag, message_format=0, settled=False)


def moves(count: int) -> list[list]:
    """200 steps on, 100 back, 100 jumps over the whole run."""
    jumps = [["", (at * 7919) % count] for at in range(100)]
    middle = [["", count // 2]]
    return middle + [["ArrowRight", -1]] * 200 + [["ArrowLeft", -1]] * 100 + jumps


def percentile(values: list[float], share: float) -> float:
    """The value below which that share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def step_times(browser, rows: int) -> dict[str, float]:
    """Milliseconds per step."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.html"
        path.write_text(page(build(long_run(rows), title="bench")), "utf-8")
        tab = browser.new_page(viewport={"width": 1280, "height": 1200})
        tab.goto(path.as_uri())
        tab.wait_for_selector(".wbs")
        tab.evaluate(MEASURE, moves(rows)[:50])  # warm
        # Other work on the machine only ever adds to a time: the quietest of three rounds counts.
        rounds = [tab.evaluate(MEASURE, moves(rows)) for _ in range(3)]
        took = min(rounds, key=lambda times: percentile(times, 0.95))
        tab.close()
    return {
        "median": statistics.median(took),
        "p95": percentile(took, 0.95),
        "worst": max(took),
    }


CELL = (
    "from workbench.trace import Row\n"
    "from workbench.views import stepper\n"
    "row = Row(run='r', seq=0, t_us=0, vantage='broker', event='note',"
    " protocol='internal', kind='hello')\n"
    "stepper([row])"
)


def first_stepper(browser, root: Path) -> float:
    """Seconds from a kernel's start to the first stepper on the screen."""
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "outputs": []}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": [cell]}
    cell["source"] = CELL
    (root / "first.ipynb").write_text(json.dumps(notebook), "utf-8")
    with running_lab(root, {"PYTHONPATH": str(REPO)}) as url:
        tab = browser.new_page(viewport={"width": 1280, "height": 1000})
        tab.goto(f"{url}/lab/tree/first.ipynb?reset&token=browser-test")
        idle = """() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session
            ?.kernel?.status === 'idle'"""
        tab.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
        tab.wait_for_function(idle, timeout=60_000)
        took = tab.evaluate(
            """async () => {
                const app = window.jupyterapp, session = app.shell.currentWidget.sessionContext;
                await session.shutdown();
                const begin = performance.now();
                await session.startKernel();
                app.commands.execute('notebook:run-all-cells');
                const wait = () => new Promise((go) => setTimeout(go, 10));
                while (!document.querySelector('.wbs')) await wait();
                return performance.now() - begin;
            }"""
        )
        tab.close()
    return took / 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--no-lab", action="store_true")
    options = parser.parse_args()
    executable = find_chromium()
    if executable is None:
        print("no Chromium on PATH: nothing measured")
        return 1
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        times = step_times(browser, options.rows)
        verdict = "reached" if times["p95"] <= BAR_MS else "MISSED"
        print(
            f"step, {options.rows} rows: median {times['median']:.1f} ms,"
            f" p95 {times['p95']:.1f} ms, worst {times['worst']:.1f} ms"
            f" (bar {BAR_MS:.0f} ms: {verdict})"
        )
        if not options.no_lab:
            with tempfile.TemporaryDirectory() as folder:
                print(
                    f"kernel start to first stepper: {first_stepper(browser, Path(folder)):.1f} s"
                )
        browser.close()
    return 0 if times["p95"] <= BAR_MS else 1


if __name__ == "__main__":
    sys.exit(main())
