"""Rules by which a sender works out its credit from a flow: the right one, and wrong ones.

A rule is a plain function of four whole numbers: delivery-count and link-credit of the flow, the
sender's own delivery-count, and the link-credit that it has. The right one is the function that
every sender of this workbench uses; the wrong ones are what people, and some tools, believe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.amqp10.settings import UINT_MAX
from workbench.frontends.outgoing_link import CreditRule, spec_rule
from workbench.notebook import WrongValueError

from .action import refusal
from .misconception import say


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRule:
    """A rule with its name.

    Attributes:
        name: for parameters and the command line.
        rule: the function.
    """

    name: str
    rule: CreditRule

    @property
    def doc(self) -> str:
        """What the sender does, in a sentence without its beginning and full stop."""
        return say(f"rule.{self.name}.doc")

    @property
    def formula(self) -> str:
        """The same with the words of the specification."""
        return say(f"rule.{self.name}.formula")


def _set(flow_count: int, flow_credit: int, own_count: int, own_credit: int) -> int:
    return flow_credit


def _add(flow_count: int, flow_credit: int, own_count: int, own_credit: int) -> int:
    return min(own_credit + flow_credit, UINT_MAX)


def _naive(flow_count: int, flow_credit: int, own_count: int, own_credit: int) -> int:
    return min(max(0, flow_count + flow_credit - own_count), UINT_MAX)


RULES: Mapping[str, NamedRule] = {
    name: NamedRule(name=name, rule=rule)
    for name, rule in {"spec": spec_rule, "set": _set, "add": _add, "naive": _naive}.items()
}


def rule_named(name: str) -> NamedRule:
    """The rule of that name.

    Raises:
        WrongValueError: if there is none; the text lists the names.
    """
    try:
        return RULES[name]
    except KeyError:
        raise WrongValueError(
            refusal("name.rule", name=repr(name), listed=", ".join(RULES))
        ) from None
