"""A validation from beginning to end: the job, and the files that tell about it."""

from typing import TextIO

from pyspark.sql import SparkSession

from hubauth.forms.lines import decode_event
from hubauth.judge.verdicts import Finding
from hubauth.spark.job import validate
from hubauth.spark.junit import junit
from hubauth.spark.progress import Progress
from hubauth.spark.report import html, worst_hubs
from hubauth.spark.results import HubResult, Summary, encode_summary, summary_schema
from hubauth.spark.rows import REPORT_MARK, NothingToJudge
from hubauth.spark.storage import Storage, StorageProblem, brief, join
from hubauth.specification import Basis
from hubauth.trace.drawing import to_svg
from hubauth.trace.explain import diagram_of


class JobFailed(Exception):
    """Spark gave up: what it said."""


def prepare_report(storage: Storage, report: str) -> None:
    """Make the directory of a report, over an earlier one if need be, but over nothing else. Raises StorageProblem."""
    if storage.exists(report) and not storage.exists(join(report, REPORT_MARK)) and storage.names(report):
        raise StorageProblem(f"{report} is not empty, and no earlier report")
    storage.write(join(report, REPORT_MARK), summary_schema())


def draw(hub: HubResult) -> str:
    """The rows that lead to a verdict as a sequence diagram, as SVG."""
    events = tuple(decode_event(line.encode()) for line in hub.leads)
    return to_svg(diagram_of(events, Finding(outcome=hub.outcome, sequence=hub.sequence, rule=hub.rule)))


def run_job(spark: SparkSession, path: str, report: str, terminal: TextIO, basis: Basis = "all") -> Summary:
    """Judge what is below ``path``; tables, ``report.html``, ``junit.xml`` and ``summary.json`` go to ``report``.

    Raises StorageProblem if a path is wrong, NothingToJudge, and JobFailed if Spark cannot go on.
    """
    storage = Storage(spark)
    if not storage.exists(path):
        raise StorageProblem(f"{path} does not exist")
    prepare_report(storage, report)
    progress = Progress(spark.sparkContext, terminal)
    try:
        result = validate(spark, path, report, progress.phase, basis)
    except (StorageProblem, NothingToJudge):
        raise
    except Exception as problem:  # py4j raises what Java raised, whatever that is
        raise JobFailed(brief(problem)) from problem
    drawings = {(hub.trace, hub.hub): draw(hub) for hub in worst_hubs(result.hubs)}
    for name, text in {
        "report.html": html(result.summary, drawings),
        "junit.xml": junit(result.summary, result.hubs),
        "summary.json": encode_summary(result.summary),
    }.items():
        storage.write(join(report, name), text)
    return result.summary
