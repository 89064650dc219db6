"""What a user has configured for Spark, from the places where Spark itself looks.

It is needed before Java starts, for what is then handed to Java weighs more than a file.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from .errors import AnalysisError

__all__ = ["configured"]

GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Set by `spark-submit` for the program that it runs: Java is there, and knows all."""
_SETTING = re.compile(r"\s*(spark\.[^\s=:]+)[\s=:]\s*(.*?)\s*")
_OPTIONS = {
    "--master": "spark.master",
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}


def configured(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Spark's settings by name, as far as a user has set them.

    They come from `spark-submit` if it runs this program, else from PYSPARK_SUBMIT_ARGS, from
    `spark-defaults.conf` in SPARK_CONF_DIR or in Spark's own folder, and last from SPARK_MASTER.

    Args:
        environment: variables; those of this process if None.

    Raises:
        AnalysisError: one of these cannot be read.
    """
    variables = os.environ if environment is None else environment
    if GATEWAY in variables:
        return _of_java()
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for option, name in _OPTIONS.items():
        parser.add_argument(option, dest=name)
    parser.add_argument("--conf", "-c", action="append", default=[])
    parser.add_argument("--properties-file")
    parser.add_argument("--load-spark-defaults", action="store_true")
    text = variables.get("PYSPARK_SUBMIT_ARGS", "")
    try:
        given = vars(parser.parse_known_args(shlex.split(text))[0])
    except (ValueError, argparse.ArgumentError) as error:
        raise AnalysisError(f"PYSPARK_SUBMIT_ARGS: {error}") from None
    master = variables.get("SPARK_MASTER")
    found = {"spark.master": master} if master else {}
    if given["properties_file"] is None or given["load_spark_defaults"]:
        found |= _in_file(_folder(variables) / "spark-defaults.conf")
    if given["properties_file"] is not None:
        found |= _in_file(Path(given["properties_file"]))
    found |= dict(one.split("=", 1) for one in given["conf"] if "=" in one)
    return found | {name: given[name] for name in _OPTIONS.values() if given[name] is not None}


def _of_java() -> dict[str, str]:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # type: ignore[attr-defined]
    return dict(SparkConf().getAll())


def _folder(variables: Mapping[str, str]) -> Path:
    # To import it takes most of a second, and what asks may need no Spark.
    package = importlib.util.find_spec("pyspark")
    home = Path(package.origin).parent if package is not None and package.origin else Path()
    named = variables.get("SPARK_CONF_DIR")
    return Path(named) if named else Path(variables.get("SPARK_HOME") or home, "conf")


def _in_file(file: Path) -> dict[str, str]:
    """The settings in a file of properties; none if there is no such file."""
    try:
        lines = file.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise AnalysisError(f"{file}: cannot be read: {error}") from None
    return dict(match.groups() for line in lines if (match := _SETTING.fullmatch(line)))
