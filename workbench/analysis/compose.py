"""What each question is put together with: a schema at each end."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, Protocol

from pyspark.sql import functions as F
from pyspark.sql import types as T

from .chunks import Chunks
from .errors import AnalysisError
from .schemas import TRACE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Question", "Transformer", "question", "same", "typed"]

Transformer = Callable[["DataFrame"], "DataFrame"]
P = ParamSpec("P")


def typed(
    needs: T.StructType, gives: T.StructType
) -> Callable[[Callable[P, Transformer]], Callable[P, Transformer]]:
    """Checks what a question gets and what it gives, and puts its columns in order.

    The columns it gets may be more than it needs. Nullability is not compared: Spark forgets it.

    Raises:
        AnalysisError: when the question is asked of a DataFrame that lacks a column, or has one of
            another type; the text names the question and the column.
    """

    def decorate(factory: Callable[P, Transformer]) -> Callable[P, Transformer]:
        name = factory.__name__

        @wraps(factory)
        def made(*args: P.args, **kwargs: P.kwargs) -> Transformer:
            transform = factory(*args, **kwargs)

            def checked(df: DataFrame) -> DataFrame:
                _check(name, "needs", needs, df.schema)
                answer = transform(df)
                _check(name, "gives", gives, answer.schema)
                return answer.select([F.col(column) for column in gives.names])

            return checked

        return made

    return decorate


class Question(Protocol):
    """A question about one trace."""

    def __call__(self, chunks: Chunks = ...) -> Transformer:
        """What answers it; `chunks`: how the trace is cut, see `reading.open_trace`."""


def question(
    gives: T.StructType,
) -> Callable[[Callable[[DataFrame, Chunks], DataFrame]], Question]:
    """Makes a question of what works its answer out, from a trace and how that is cut.

    Args:
        gives: the schema of the answer; see `typed`.
    """

    def decorate(answer: Callable[[DataFrame, Chunks], DataFrame]) -> Question:
        def asked(chunks: Chunks = Chunks()) -> Transformer:  # noqa: B008
            return lambda trace: answer(trace, chunks)

        asked.__name__, asked.__doc__ = answer.__name__, answer.__doc__
        asked.__module__ = answer.__module__
        return typed(TRACE, gives)(asked)

    return decorate


def _check(name: str, verb: str, wanted: T.StructType, found: T.StructType) -> None:
    there = {column.name: column.dataType for column in found}
    missing = [column.name for column in wanted if column.name not in there]
    if missing:
        raise AnalysisError(
            f"{name} {verb} the columns {', '.join(missing)}; there are: {', '.join(there)}"
        )
    for column in wanted:
        if not same(there[column.name], column.dataType):
            raise AnalysisError(
                f"{name} {verb} {column.name} as {column.dataType.simpleString()[:60]}, "
                f"and it is {there[column.name].simpleString()[:60]}"
            )


def same(found: T.DataType, wanted: T.DataType) -> bool:
    """Whether a type is the one that is wanted; a struct may have more fields."""
    if isinstance(wanted, T.StructType) and isinstance(found, T.StructType):
        theirs = {inner.name: inner.dataType for inner in found}
        return all(
            inner.name in theirs and same(theirs[inner.name], inner.dataType) for inner in wanted
        )
    if isinstance(wanted, T.ArrayType) and isinstance(found, T.ArrayType):
        return same(found.elementType, wanted.elementType)
    return bool(found == wanted)
