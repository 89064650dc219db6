"""One Spark session for all tests of the folder: its start costs more than most of them."""

import gc
import warnings
from pathlib import Path

import pytest

from workbench.analysis.errors import AnalysisError
from workbench.analysis.java import find_java

from .made import made_rows, told_apart
from .runs import all_rows

HERE = Path(__file__).resolve().parent
CAPTURES = HERE.parents[1] / "data" / "captures"


def pytest_collection_modifyitems(items):
    """Let Py4J drop the sockets of threads that have ended: it never closes them."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="package")
def spark(request):
    """A small session; where there is no Java these tests are skipped."""
    try:
        find_java()
    except AnalysisError as error:
        pytest.skip(str(error))
    from workbench.analysis.session import get_spark

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        session = get_spark(
            say=lambda _: None,
            memory="1g",
            master="local[2]",
            # What Java's full compiler takes, it gives back only to the long tests.
            quick=request.config.option.markexpr == "not slow",
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
    with warnings.catch_warnings():
        # What Py4J leaves is collected here, and not while some other test runs.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="package")
def rows():
    """Every scenario, every capture, and runs that are cut, shifted and spoiled."""
    return [*all_rows(), *made_rows(seed=2, runs=30), *told_apart()]


@pytest.fixture(autouse=True)
def nothing_kept():
    """Each test gives back what its questions keep; together it would fill the heap."""
    from workbench.analysis.segmented_scan import released

    with released():
        yield


@pytest.fixture(scope="package")
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
