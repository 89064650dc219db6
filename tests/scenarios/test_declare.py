"""What is declared once validates, completes and explains."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Annotated

import pytest

from workbench import presets
from workbench.scenarios import (
    ActionError,
    Kind,
    Parameter,
    ParameterError,
    World,
    get,
    names,
    run,
)
from workbench.scenarios.credit import credit
from workbench.scenarios.declare import PRESET, OneOf, Whole, act

SPEC = presets.get("spec")


def test_every_scenario_declares_what_it_takes_with_doc_and_range() -> None:
    """Panels and tables are built from the declaration, so nothing in it may be missing."""
    assert "credit" in names()
    for name in names():
        scenario = get(name)
        assert scenario.title
        assert scenario.doc
        arguments = [parameter for spec in scenario.actions for parameter in spec.parameters]
        for parameter in (*scenario.parameters, *arguments):
            assert parameter.doc, parameter.name
            if parameter.kind is Kind.WHOLE:
                assert parameter.minimum is not None, parameter.name
        for parameter in scenario.parameters:
            parameter.check(parameter.default_in(SPEC))


def test_a_default_that_the_preset_has_is_not_written_twice() -> None:
    """A whole number's default is a field of the preset."""
    known = {item.name for item in fields(SPEC)}
    for parameter in credit.parameters:
        if parameter.kind is Kind.WHOLE:
            assert parameter.preset_field in known


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"messages": -1}, "messages is -1; legal: 0 to 100000 messages"),
        ({"messages": 10**9}, "messages is 1000000000; legal: 0 to 100000 messages"),
        ({"messages": "ten"}, "messages is 'ten', which is not a whole number; legal: 0 to 100000"),
        ({"messages": 1.5}, "messages is 1.5, which is not a whole number"),
        ({"messages": True}, "messages is True, which is not a whole number"),
        ({"messages": None}, "messages is left out; legal: 0 to"),
        ({"latency_us": -5}, "latency_us is -5; legal: 0 to 60000000 µs (60 s)"),
        ({"n": 0}, "n is 0; legal: 1 to 4294967295 messages"),
        ({"initial_delivery_count": 2**32}, "initial_delivery_count is 4294967296; legal: 0 to"),
        ({"policy": "greedy"}, "policy is 'greedy'; legal: one of manual, one-at-a-time"),
        ({"policy": True}, "policy is True, which is not a text; legal: one of manual"),
        ({"policy": 3}, "policy is '3'; legal: one of manual"),
        (
            {"messages": 100_000, "message_bytes": 1_048_576},
            "100,000 messages of 1,048,576 octets, 104,857,600,000 octets in all; legal",
        ),
        ({"colour": 1}, "scenario credit has no parameter 'colour'; it has: messages, "),
        ({"messages": "x" * 1000}, r"messages is 'xxx.*\.\.\., which is not a whole number"),
    ],
)
def test_a_bad_parameter_gives_one_line_with_the_legal_range(parameters, message) -> None:  # type: ignore[no-untyped-def]
    """The text names parameter, value and what would be legal."""
    with pytest.raises(ParameterError) as caught:
        run("credit", parameters=parameters)
    text = str(caught.value)
    assert re.match(message if ".*" in message else re.escape(message), text)
    assert "\n" not in text
    assert len(text) < 300


def test_an_unknown_scenario_or_preset_is_refused_with_the_names() -> None:
    """The texts list what there is."""
    with pytest.raises(ValueError, match="no scenario 'debit'; there are: asking, chain"):
        run("debit")
    with pytest.raises(ValueError, match="no preset 'rmq9'; there are: spec"):
        run("credit", preset="rmq9")


@pytest.mark.parametrize("given", [3, None, [1], 2.5])
def test_what_is_no_name_is_refused_like_an_unknown_one(given) -> None:  # type: ignore[no-untyped-def]
    """A number for a scenario is told as a name that there is not; the same for a preset."""
    with pytest.raises(ParameterError, match=rf"no scenario {re.escape(repr(given))}; there are:"):
        run(given)
    if given is not None:
        with pytest.raises(ParameterError, match=rf"no preset {re.escape(repr(given))}; there are"):
            run("credit", given)


@pytest.mark.parametrize("given", [3, "text", [1]])
def test_parameters_that_are_no_table_are_refused(given) -> None:  # type: ignore[no-untyped-def]
    """The kind that was given is told."""
    kind = type(given).__name__
    with pytest.raises(ParameterError, match=f"parameters: a table of names .* not {kind}$"):
        run("credit", parameters=given)


@pytest.mark.parametrize(
    ("given", "kind"), [(3, "int"), ([3], "int"), ("add", "str"), ({"a": 1}, "dict")]
)
def test_acts_that_are_none_are_refused(given, kind) -> None:  # type: ignore[no-untyped-def]
    """One of them, or what stands in the place of all."""
    with pytest.raises(ParameterError, match=f"^actions: acts, such as .* not {kind}$"):
        run("credit", actions=given)


@pytest.mark.parametrize("given", ["1", None, [1], 2.5, -1])
def test_a_seed_is_a_whole_number_of_0_or_more(given) -> None:  # type: ignore[no-untyped-def]
    """Anything else is shown as it is."""
    with pytest.raises(ParameterError, match=rf"^seed {re.escape(repr(given))} is not legal"):
        run("credit", seed=given)


def test_an_unknown_act_is_refused_with_the_names() -> None:
    """The text lists what can be done."""
    with pytest.raises(
        ActionError, match="credit has no action 'shout'; there are: grant, publish"
    ):
        credit.action("shout")


def test_a_required_argument_says_what_it_is_for() -> None:
    """An act without it is refused, with its meaning and range."""
    with pytest.raises(ActionError, match=r"grant needs link_credit \(how many more the sender"):
        credit.action("grant").arguments({}, SPEC)


@pytest.mark.parametrize(
    ("parameter", "legal"),
    [
        (Parameter(name="a", english="", minimum=1, maximum=9, unit="us"), "1 to 9 µs"),
        (Parameter(name="a", english="", maximum=60_000_000, unit="us"), "0 to 60000000 µs (60 s)"),
        (Parameter(name="a", english="", minimum=2), "2 or more"),
        (Parameter(name="a", english="", kind=Kind.YES_NO), "True or False"),
        (Parameter(name="a", english="", kind=Kind.TEXT), "a text"),
        (Parameter(name="a", english="", kind=Kind.TEXT, choices=("x", "y")), "one of x, y"),
    ],
)
def test_the_legal_values_are_told_in_words(parameter: Parameter, legal: str) -> None:
    """The same words stand in errors, tables and panels."""
    assert parameter.legal == legal


Frames = Annotated[int, Whole(0, 9, "frames"), "how many"]


@act(lambda world: "not now; legal now: nothing")
def let_go(
    world: World,
    *,
    frames: Frames,
    kept: Annotated[Frames, Whole(1, 3), "how many stay"] = 2,
    way: Annotated[str, OneOf("in", "out", absent={"up": "there is no such way"}), "where"]
    | None = None,
    credit: Annotated[int, Whole(), "the preset's"] = PRESET.batch_credit,
    message_bytes: Annotated[int, Whole(), "the preset's too"] = PRESET,
    echo: Annotated[bool, "ask"] = False,
) -> None:
    """Let frames through, but some.

    More words.
    """
    world.done.append(f"{frames} of {kept}")


def test_an_act_is_what_the_signature_of_its_function_says() -> None:
    """Range, unit, words, choices and defaults are written once, in the signature."""
    assert (let_go.name, let_go.doc) == ("let_go", "let frames through, but some. More words")
    assert let_go.legal(None) == "not now; legal now: nothing"  # type: ignore[arg-type]
    told = {one.name: (one.legal, one.doc, one.default_in(SPEC)) for one in let_go.parameters}
    assert told == {
        "frames": ("0 to 9 frames", "how many", None),
        "kept": ("1 to 3", "how many stay", 2),
        "way": ("one of in, out", "where", None),
        "credit": ("0 or more", "the preset's", SPEC.batch_credit),
        "message_bytes": ("0 or more", "the preset's too", SPEC.message_bytes),
        "echo": ("True or False", "ask", False),
    }
    assert [one.name for one in let_go.parameters if one.required] == ["frames"]
    with pytest.raises(ParameterError, match="there is no such way"):
        let_go.parameters[2].check("up")
