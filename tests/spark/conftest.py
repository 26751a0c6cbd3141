"""One Spark session for all tests here: it takes longer to start than most of them to run."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from hubauth.spark.session import open_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    # What runs for a minute is not worth the second compiler's time.
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    with open_session("local[2]", log, quick) as session:
        yield session
