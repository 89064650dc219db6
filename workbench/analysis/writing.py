"""Answers on disk: under their name when they are whole, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import AnalysisError
from .reading import told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["write_answer"]


def write_answer(answer: DataFrame, path: str | Path) -> Path:
    """Writes an answer as a folder of Parquet files; one that is there already is replaced.

    It is written under a name that begins with a dot, which nobody reads, and renamed at the end.

    Raises:
        AnalysisError: the disk is full, the trace went away meanwhile, or nothing can be written
            there; what was there before is still there, and nothing half-written is.
    """
    target = Path(path)
    if target.is_file():
        raise AnalysisError(f"{target}: is a file; an answer is a folder of Parquet files")
    if not target.parent.is_dir():
        raise AnalysisError(f"{target}: there is no folder {target.parent}")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        with told():
            answer.write.mode("overwrite").options(**_plain_numbers(answer)).parquet(str(part))
        if target.exists():
            target.rename(old)
        part.rename(target)
    except AnalysisError as error:
        raise AnalysisError(f"{target}: not written: {error}") from None
    except OSError as error:
        raise AnalysisError(f"{target}: not written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    return target


def _plain_numbers(answer: DataFrame) -> dict[str, str]:
    """Numbers hardly come again: they are written as they are, and not looked up first."""
    return {
        f"parquet.enable.dictionary#{column.name}": "false"
        for column in answer.schema
        if column.dataType.typeName() == "long"
    }
