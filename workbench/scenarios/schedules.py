"""A schedule of the link model played on the real broker, one move after another.

The explorer finds schedules in a model; here the same moves are made with a real link, so that the
stage can show frames, octets and both ledgers of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workbench.frontends import CreditRule
from workbench.notebook import WrongValueError

from .action import ActionError, refusal
from .link_model import LinkModel, LinkState
from .race import ACT_OF_MOVE, RULE, YOURS
from .run import Run, run


def play(
    moves: Iterable[str],
    *,
    messages: int = 10,
    grants: Iterable[int] = (),
    rule: str = "spec",
    initial_delivery_count: int = 0,
    first_credit: int = 0,
    rule_function: CreditRule | None = None,
    **parameters: Any,
) -> Run:
    """Play a schedule in scenario `race`, each move when the one before it has come to rest.

    Args:
        moves: of `link_model.MOVES`, in order.
        messages: of the model.
        grants: of the model.
        rule: name of the sender's rule; `yours` with a function.
        initial_delivery_count: of the model.
        first_credit: of the model.
        rule_function: the learner's rule.
        **parameters: further parameters of the scenario.

    Raises:
        ActionError: a move is not possible when its turn comes; the text says what is.
    """
    code: dict[str, Callable[..., Any]] = {}
    if rule == YOURS and rule_function is not None:
        code[RULE] = rule_function
    played = run(
        "race",
        parameters={
            "messages": messages,
            "grants": ",".join(map(str, grants)),
            "rule": rule,
            "initial_delivery_count": initial_delivery_count,
            "first_credit": first_credit,
            **parameters,
        },
        code=code,
    )
    return moved(played, moves)


def moved(played: Run, moves: Iterable[str]) -> Run:
    """The run of scenario `race` after some more moves, each when the one before has come to rest.

    Raises:
        ActionError: a move is not possible when its turn comes, or there is no such move.
    """
    acts = []
    for move in moves:
        if move not in ACT_OF_MOVE:
            listed = ", ".join(ACT_OF_MOVE)
            raise ActionError(refusal("name.move", name=repr(move), listed=listed))
        acts.append(ACT_OF_MOVE[move])
    return played.act_each(acts)


def play_model(model: LinkModel, moves: Iterable[str], rule: str = YOURS) -> Run:
    """Play a schedule of a model; its rule is named, or else goes along as the learner's."""
    return play(
        moves,
        messages=model.messages,
        grants=model.grants,
        rule=rule,
        initial_delivery_count=model.initial_delivery_count,
        first_credit=model.first_credit,
        rule_function=model.rule,
    )


def seq_of_move(played: Run, number: int) -> int:
    """`seq` of the last row that the move of that place (0 is the first) caused.

    Raises:
        WrongValueError: if so many moves were not made.
    """
    acts = [row.seq for row in played.rows if row.event == "action"]
    if not 0 <= number < len(acts):
        raise WrongValueError(refusal("move.not-made", number=number, moves=len(acts)))
    return acts[number + 1] - 1 if number + 1 < len(acts) else played.rows[-1].seq


def states_along(model: LinkModel, moves: Iterable[str]) -> list[LinkState]:
    """The model's states along a schedule, the first one included."""
    states = [model.initial]
    for move in moves:
        states.append(model.after(states[-1], move))
    return states
