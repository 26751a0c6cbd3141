"""Tables that come from the driver, and tables on their way to the report."""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hubauth.spark.storage import literal


def small_table(spark: SparkSession, rows: list[Any], columns: str) -> DataFrame:
    """Rows that the driver has. As an Arrow table they become part of the plan instead of a job of their own."""
    schema = arrow_schema(columns)
    arrays = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    table: Any = pa.table(arrays, schema=schema)
    return spark.createDataFrame(table, columns)


def arrow_schema(columns: str) -> Any:
    """Of columns as Spark's SQL names them."""
    structure = StructType.fromDDL(columns)
    assert isinstance(structure, StructType)
    return to_arrow_schema(structure)


def written(table: DataFrame, path: str) -> DataFrame:
    """The same table, from where it was written to."""
    table.write.mode("overwrite").parquet(path)
    return table.sparkSession.read.schema(table.schema).parquet(literal(path))
