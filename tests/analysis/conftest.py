"""One Spark session for all tests of the folder: its start costs more than most of them."""

import warnings
from pathlib import Path

import pytest

from workbench.analysis.errors import AnalysisError
from workbench.analysis.java import find_java

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"


@pytest.fixture(scope="session")
def spark():
    """A small session; where there is no Java these tests are skipped."""
    try:
        find_java()
    except AnalysisError as error:
        pytest.skip(str(error))
    from workbench.analysis.session import get_spark

    with warnings.catch_warnings():
        # Py4J leaves its sockets to the end of the process.
        warnings.simplefilter("ignore", ResourceWarning)
        session = get_spark(
            say=lambda _: None,
            memory="1g",
            master="local[2]",
            quick=True,
            more={
                # Small questions: what costs time is not the rows but compiling the plan.
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
                "spark.sql.adaptive.enabled": "false",
                "spark.sql.shuffle.partitions": "4",
                "spark.sql.files.minPartitionNum": "2",
            },
        )
        yield session
        session.stop()


@pytest.fixture(scope="session")
def as_trace(spark, tmp_path_factory):
    """Makes a trace in Spark of rows: written as Parquet and read back, as every trace is."""
    from workbench.analysis.schemas import TRACE
    from workbench.trace import files

    folder = tmp_path_factory.mktemp("traces")
    count = iter(range(10_000))

    def make(rows):
        path = folder / f"{next(count)}.parquet"
        files.write(path, rows, raw=False)
        return spark.read.schema(TRACE).parquet(str(path))

    return make
