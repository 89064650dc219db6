"""The field tables against the grammar that the specification's authors published as XML."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from workbench.amqp10 import messaging, performatives
from workbench.amqp10.composite import BY_DESCRIPTOR, Composite
from workbench.amqp10.constructor import FORMAT_CODES
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.messaging import SECTIONS
from workbench.amqp10.restricted import (
    CHOICES,
    RESTRICTED,
    DistributionMode,
    TerminusExpiryPolicy,
)

GRAMMAR = Path("/usr/share/amqp/specs/1-0")
FILES = ("types", "transport", "messaging", "security")

pytestmark = pytest.mark.skipif(
    not GRAMMAR.is_dir(),
    reason=f"no grammar in {GRAMMAR}: Debian's package amqp-specs is not installed",
)

# Where the OASIS standard of 2012, which the tables follow, says more than the packaged grammar.
ADDED_DEFAULTS = {
    ("header", "durable"): False,
    ("header", "priority"): 4,
    ("header", "first-acquirer"): False,
    ("header", "delivery-count"): 0,
}


def types(kind: str) -> dict[str, ElementTree.Element]:
    """All type elements of a class, by name, without namespaces."""
    found = {}
    for name in FILES:
        for element in ElementTree.parse(GRAMMAR / f"{name}.bare.xml").iter():
            element.tag = element.tag.split("}")[-1]
            if element.tag == "type" and element.get("class") == kind:
                found[element.get("name")] = element
    return found


def ours() -> dict[str, type[Composite]]:
    return {cls.NAME: cls for cls in BY_DESCRIPTOR.values()}


def default_of(text: str | None, type_name: str) -> object:
    """A default of the grammar as the Python value that the tables hold."""
    if text is None:
        return None
    if type_name in CHOICES:
        return CHOICES[type_name][text.upper().replace("-", "_")]
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text


def test_every_encoding_has_the_code_and_width_of_the_grammar():
    """Codes, names, categories and widths of all encodings [1.6]."""
    grammar = {
        int(encoding.get("code"), 16): (
            name,
            encoding.get("category"),
            int(encoding.get("width")),
        )
        for name, element in types("primitive").items()
        for encoding in element.iter("encoding")
    }
    table = {code: (f.type_name, f.category.value, f.width) for code, f in FORMAT_CODES.items()}
    assert table == grammar


def test_no_composite_type_is_missing_or_invented():
    """Every composite type of transport, messaging and security has a class [2.7, 3, 5.3]."""
    assert set(ours()) == set(types("composite"))


@pytest.mark.parametrize("name", sorted(ours()))
def test_each_composite_has_descriptor_and_fields_of_the_grammar(name):
    """Names, order, types, mandatory, multiple, defaults and archetypes are the grammar's."""
    element, cls = types("composite")[name], ours()[name]
    descriptor = element.find("descriptor")
    domain, code = (int(part, 16) for part in descriptor.get("code").split(":"))
    assert (domain, code, descriptor.get("name")) == (0, cls.DESCRIPTOR, cls.SYMBOL)
    provides = element.get("provides")
    assert (tuple(provides.split(", ")) if provides else ()) == cls.PROVIDES
    table = [
        (s.spec_name, s.type, s.mandatory, s.multiple, s.default, s.requires) for s in cls.FIELDS
    ]
    grammar = [
        (
            field.get("name"),
            field.get("type"),
            field.get("mandatory") == "true",
            field.get("multiple") == "true",
            ADDED_DEFAULTS.get(
                (name, field.get("name")), default_of(field.get("default"), field.get("type"))
            ),
            requires_of(field),
        )
        for field in element.iter("field")
    ]
    assert table == grammar


def requires_of(field: ElementTree.Element) -> str:
    # error-condition only says where the standard symbols stand; any symbol is legal there.
    requires = field.get("requires", "")
    return "" if requires == "error-condition" else requires


def test_every_section_that_is_no_list_has_the_grammar_s_descriptor_and_type():
    """Sections that are one value rather than fields [3.2]."""
    grammar = {}
    for name, element in types("restricted").items():
        if element.get("provides") == "section":
            descriptor = element.find("descriptor")
            source = element.get("source")
            grammar[name] = (
                int(descriptor.get("code").split(":")[1], 16),
                descriptor.get("name"),
                RESTRICTED.get(source, source),
            )
    table = {
        cls.NAME: (cls.DESCRIPTOR, cls.SYMBOL, cls.TYPE)
        for cls in SECTIONS.values()
        if not issubclass(cls, Composite)
    }
    assert table == grammar


def test_every_restricted_type_restricts_what_the_grammar_says():
    """`handle` is a uint, `transfer-number` a sequence-no, and so on [2.8]."""
    grammar = types("restricted")
    assert {name: grammar[name].get("source") for name in RESTRICTED} == RESTRICTED


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_every_enumeration_has_the_choices_of_the_grammar(name):
    """Names and values of roles, settle modes, durability and SASL codes."""
    element = types("restricted")[name]
    grammar = {
        choice.get("name"): default_of(choice.get("value"), "") for choice in element.iter("choice")
    }
    assert {m.name.lower().replace("_", "-"): m.value for m in CHOICES[name]} == grammar


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("terminus-expiry-policy", TerminusExpiryPolicy),
        ("std-dist-mode", DistributionMode),
    ],
)
def test_symbols_with_a_meaning_are_those_of_the_grammar(name, members):
    """Expiry policies and distribution modes [3.5.6, 3.5.7]."""
    grammar = {choice.get("value") for choice in types("restricted")[name].iter("choice")}
    assert {member.value for member in members} == grammar


def test_the_error_conditions_are_those_of_the_grammar():
    """All standard conditions, and no other [2.8.15 to 2.8.18]."""
    grammar = {
        choice.get("value")
        for element in types("restricted").values()
        if element.get("provides") == "error-condition"
        for choice in element.iter("choice")
    }
    assert {condition.value for condition in ErrorCondition} == grammar


def test_the_performatives_are_those_that_a_frame_may_carry():
    """What provides `frame` or `sasl-frame` is a performative here."""
    names = {
        name
        for name, element in types("composite").items()
        if element.get("provides") in ("frame", "sasl-frame")
    }
    assert {cls.NAME for cls in performatives.PERFORMATIVES.values()} == names
    assert messaging.Header.NAME not in names
