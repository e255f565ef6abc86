"""A model as a ``pandas_udf``, in Spark on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.batch import Predictor
from gossamer.errors import InputError
from tests.batch.test_predictor import doubled
from tests.conftest import ROOT
from tests.tools import models

DIGITS = ROOT / "examples" / "digits.tflite"

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]  # Spark's own warnings


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """One process of Spark, with one of Python."""
    pytest.importorskip("pyspark", reason="the extra 'spark' is not installed")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java, which is not here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


def test_rows_and_what_is_wrong_with_them(spark: Any) -> None:
    """What Spark says of them is what the predictor does."""
    from gossamer.batch.spark import udf

    values = [np.random.default_rng(key).random((8, 8, 1), np.float32) for key in range(40)]
    rows = [(key, image.tolist()) for key, image in enumerate(values)]
    frame = spark.createDataFrame([*rows, (40, [[[1.0]]]), (41, None)], "key int, image array<array<array<float>>>")
    predicted = frame.repartition(3).select("key", udf(DIGITS)("image").alias("answer")).collect()
    answers = {row["key"]: row["answer"] for row in predicted}
    assert sorted(answers) == list(range(42))
    known = Predictor(DIGITS)({"image": values})
    assert [answers[key]["error"] for key in range(40)] == [None] * 40
    said = np.array([answers[key]["probabilities"] for key in range(40)], np.float32)
    assert np.array_equal(said, known["probabilities"])
    for key in (40, 41):
        assert answers[key]["probabilities"] is None
        assert answers[key]["error"].startswith("input 'image'")


def test_encoded_pictures(spark: Any, picture: Callable[..., bytes]) -> None:
    from gossamer.batch.spark import udf

    frame = spark.createDataFrame([(picture(255, 0, 0),), (b"none",)], "content binary")
    good, bad = (row["answer"] for row in frame.select(udf(models.colors())("content").alias("answer")).collect())
    (name,) = Predictor(models.colors()).output_names
    assert int(np.argmax(good[name])) == 0
    assert good["error"] is None
    assert bad[name] is None
    assert "picture" in bad["error"]


def test_a_column_for_each_input(spark: Any) -> None:
    from gossamer.batch.spark import udf

    b = gossamer.Builder()
    x, y = b.input("x", (1, 2), "float32"), b.input("y", (1, 2), "float32")
    b.output("sum", b.add("ADD", x, y))
    added = udf(bytes(b.finish()))
    frame = spark.createDataFrame([([1.0, 2.0], [10.0, 20.0])], "a array<double>, b array<double>")
    (row,) = frame.select(added("a", "b").alias("answer")).collect()
    assert row["answer"]["sum"] == [11.0, 22.0]
    with pytest.raises(Exception, match="a column for each of x, y; got 1"):
        frame.select(added("a")).collect()


def test_types_that_spark_lacks(spark: Any) -> None:
    import pyarrow as pa

    from gossamer.batch.spark import _spark_type, udf

    assert _spark_type(pa.list_(pa.list_(pa.uint8(), 3))) == pa.list_(pa.list_(pa.int16()))
    assert _spark_type(pa.float16()) == pa.float32()
    assert udf(doubled((1, 2))).returnType.simpleString() == "struct<y:array<float>,error:string>"


def test_arguments_are_looked_at_at_once(spark: Any) -> None:
    from gossamer.batch.spark import udf

    with pytest.raises(InputError, match="there is no signature 'serve'"):
        udf(DIGITS, "serve")
