"""Drain and echo can be learned from text alone: no picture, no mouse, no look into the rows.

A reader here sees the transcript of a run, the text of a question and the text of a verdict, and
nothing else. Whatever is asked can be found in those lines.
"""

import re

import pytest

from workbench import transcript
from workbench.exercises.measure import arrival
from workbench.exercises.progress import Progress
from workbench.exercises.question import Prediction
from workbench.lessons.lesson_03 import (
    check,
    drain_cases,
    drained,
    outdated,
    predict,
    stopped,
)
from workbench.scenarios import run


def lines_after(played, seq: int) -> list[str]:
    """The transcript behind a step, as a screen reader would go through it."""
    found = list(transcript(played.rows))
    return [line for line in found if int(re.match(r"row (\d+)", line)[1]) > seq]


def those(lines: list[str], who: str, what: str) -> list[str]:
    """The lines in which somebody does something: `client:receiver`, `received transfer`."""
    return [line for line in lines if f"  {who} {what}(" in line]


def said(line: str, name: str) -> str:
    """The value of a field in a line's frame."""
    return re.search(rf"\b{name}=(\w+)", line)[1]


def answered(asking, answer: object, *args, **kwargs) -> str:
    """Commit an answer to a question and give all of its text afterwards."""
    prediction = Prediction(asking.question(*args, **kwargs))
    assert str(prediction).startswith("Predict: ")
    prediction.commit(str(answer))
    prediction.compare()
    return str(prediction)


@pytest.fixture(scope="module")
def few():
    """The lesson's queue of three messages."""
    return run("credit", parameters={"messages": 3, "initial_delivery_count": 20})


def test_silence_is_read_as_no_line():
    """An empty queue and a grant: the transcript has no frame of the broker's."""
    empty = run("credit", parameters={"messages": 0})
    granted = empty.act(empty.start_seq, "grant", link_credit=1)
    lines = lines_after(granted, empty.start_seq)
    assert those(lines, "broker", "received flow")
    frames = [line for line in lines if "  broker sent " in line]
    assert "✔ Right." in answered(predict.silence, len(frames), empty, link_credit=1)


def test_a_drain_is_read_line_by_line(few):
    """Transfers are counted, and the answer's delivery-count is read aloud with its arrow."""
    lines = lines_after(drained(few, 10), few.start_seq)
    transfers = those(lines, "broker", "sent transfer")
    assert "✔ Right." in answered(predict.drain_brings, len(transfers), few, link_credit=10)
    answer = those(lines, "broker", "sent flow")[-1]
    count = said(answer, "delivery-count")
    assert f"sender's delivery-count 23 → {count}" in answer
    assert "✔ Right." in answered(predict.drain_counts, count, few, link_credit=10)
    # The words of the step say what it is, without a picture of a lamp or of a jump.
    assert "gives back its unused credit" in answer
    assert "drain=true" in answer


def test_a_wrong_answer_is_told_in_words(few):
    """The belief behind it is named in the text."""
    text = answered(predict.drain_brings, 0, few, link_credit=10)
    assert "✘ Not quite." in text
    assert "“drain is pause”" in text


def test_what_a_drain_leaves_is_read(few):
    """Nothing moves afterwards: no line of the broker's frames."""
    emptied = drained(few, 10)
    lines = lines_after(emptied.then("publish", count=12), emptied.last)
    transfers = those(lines, "broker", "sent transfer")
    assert "✔ Right." in answered(predict.after_drain, len(transfers), emptied, publish=12)


def test_the_table_of_drains_is_aligned_text():
    """None, some, too many: one line each, the same words as on the page."""
    text = str(drain_cases((0, 3, 30), link_credit=10))
    assert len({line.index("→") for line in text.splitlines()[1:]}) == 1
    assert "none: no credit was left to give back" in text


def test_an_echo_and_its_answer_are_read():
    """The question carries echo, the answer does not, and no transfer follows."""
    queue = run("credit")
    used = queue.act(queue.start_seq, "grant", link_credit=4)
    lines = lines_after(used.then("echo"), used.last)
    assert said(those(lines, "client:receiver", "sent flow")[0], "echo") == "true"
    (answer,) = those(lines, "client:receiver", "received flow")
    assert "echo" not in answer.split(": ")[0]
    transfers = those(lines, "broker", "sent transfer")
    assert "✔ Right." in answered(predict.echo_brings, len(transfers), used)


def test_a_stop_is_read_to_its_last_word():
    """Late arrivals stand before the answer in the transcript, nothing behind it."""
    busy = run("credit", parameters={"messages": 60})
    busy = busy.act(busy.start_seq, "grant", link_credit=40)
    at = arrival(busy, 2)
    lines = lines_after(stopped(busy, at), at)
    answer = those(lines, "client:receiver", "received flow")[0]
    place = lines.index(answer)
    assert those(lines[:place], "client:receiver", "received transfer")
    beyond = those(lines[place:], "client:receiver", "received transfer")
    assert "✔ Right." in answered(predict.after_echo, len(beyond), busy, at=at)
    assert "Everything sent before it has arrived" in answer


def test_a_stale_estimate_is_read():
    """Told in the answer's line; what came later stands in the queue's own lines."""
    queue = run("credit")
    used = queue.act(queue.start_seq, "grant", link_credit=4)
    asked = outdated(used, 5)
    lines = lines_after(asked, used.last)
    told = int(said(those(lines, "client:receiver", "received flow")[0], "available"))
    ready = max(int(found) for line in lines for found in re.findall(r"(\d+) ready", line))
    assert ready > told
    assert "✔ Right." in answered(predict.stale, ready, asked)


def test_the_desk_s_tasks_are_done_by_reading():
    """Where to stop, and when it is quiet, is found in the transcript; the verdict is text."""
    desk = run("credit", parameters={"messages": 40})
    granted = desk.act(desk.start_seq, "grant", link_credit=30)
    lines = lines_after(granted, desk.start_seq)
    second = those(lines, "client:receiver", "received transfer")[1]
    stop = granted.act(int(re.match(r"row (\d+)", second)[1]), "stop")
    answer = those(lines_after(stop, desk.start_seq), "client:receiver", "received flow")[-1]
    resumed = stop.act(int(re.match(r"row (\d+)", answer)[1]), "grant", link_credit=40)
    assert str(check.paused(resumed, log=Progress())).startswith("✔ Right.")

    first = desk.act(desk.start_seq, "grant", link_credit=50)
    flow = those(lines_after(first, desk.start_seq), "client:receiver", "sent flow")[0]
    both = first.act(int(re.match(r"row (\d+)", flow)[1]), "drain")
    assert str(check.gave_back(both, log=Progress())).startswith("✔ Right.")
