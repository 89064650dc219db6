"""What tests of lessons share: a question's solution, what a wrong answer is told, a verdict."""

from workbench.exercises.progress import Progress
from workbench.exercises.question import judge


def solved(asked, *args, **kwargs):
    """The solution of a question, without its widget."""
    return asked.question(*args, **kwargs).solve()


def told(solution, answer) -> str:
    """What a learner reads who gives that answer; it must not be right."""
    verdict = judge(answer, solution)
    assert verdict.right is False
    return f"{verdict.belief}: {verdict.text}"


def judged(check, *args, **kwargs):
    """A check's verdict, with a log of its own."""
    return check(*args, log=Progress(), **kwargs)
