"""``hubauth validate``: judge traces of any size on Spark."""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from hubauth.cli.grammar import add_basis
from hubauth.cli.problems import CommandError
from hubauth.cli.terminal import tell, tell_text

_LAYOUT = "a trace is DIR/events/*.jsonl or *.parquet, as hubauth hub --trace DIR writes it"
_EXAMPLES = """\
examples:
  hubauth validate traces/
  hubauth validate traces/ --report build/report --master 'local[8]'
  hubauth validate s3a://bucket/traces --report s3a://bucket/report --master spark://host:7077

exit codes:
  0  conforms
  1  violates
  2  wrong use
  3  the job itself failed
  4  something cannot be read, or there is nothing to judge
  5  cannot tell
"""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    validate = commands.add_parser(
        "validate",
        help="judge traces of any size on Spark",
        description="Replay every hub of the traces below PATH, compare hubs with each other, and write a report.",
        epilog=_EXAMPLES,
    )
    validate.set_defaults(run=run)
    validate.add_argument(
        "path", metavar="PATH", help="a file or directory of JSON Lines or Parquet; any URL that Spark reads"
    )
    validate.add_argument(
        "--master", default="local[*]", help="where to run: local[N], spark://…, yarn, k8s://… (default: local[*])"
    )
    validate.add_argument(
        "--report", default="hubauth-report", metavar="DIR", help="where results go (default: hubauth-report)"
    )
    validate.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; can be repeated"
    )
    add_basis(validate)
    validate.add_argument("--json", action="store_true", help="print summary.json")


def run(chosen: argparse.Namespace) -> int:
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise CommandError("PySpark is not installed", "pip install 'hubauth[spark]'")
    from hubauth.spark.results import ExitCode, encode_summary
    from hubauth.spark.rows import NothingToJudge
    from hubauth.spark.run import JobFailed, run_job
    from hubauth.spark.session import NoSession, open_session
    from hubauth.spark.storage import StorageProblem

    settings = dict(_setting(text) for text in chosen.conf)
    with ExitStack() as stack:
        log = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubauth-"))) / "spark.log"
        try:
            spark = stack.enter_context(open_session(chosen.master, log, settings))
            summary = run_job(spark, chosen.path, chosen.report, sys.stderr, chosen.basis)
        except NoSession as problem:
            raise CommandError(f"Spark does not start: {problem}", _last(log), ExitCode.JOB_FAILED) from problem
        except StorageProblem as problem:
            raise CommandError(str(problem)) from problem
        except NothingToJudge as problem:
            raise CommandError(f"nothing to judge: {problem}", _LAYOUT, ExitCode.UNREADABLE) from problem
        except JobFailed as problem:
            raise CommandError(f"the job failed: {problem}", _last(log), ExitCode.JOB_FAILED) from problem
    if chosen.json:
        tell_text(encode_summary(summary))
    else:
        outcome = summary.outcome.value.replace("_", " ")
        tell(f"{outcome}: {summary.rows:,} rows of {summary.hubs:,} hubs; {chosen.report}/report.html")
    return summary.exit_code


def _setting(text: str) -> tuple[str, str]:
    key, is_there, value = text.partition("=")
    if not is_there or not key:
        raise CommandError(f"--conf: not KEY=VALUE: {text}", "hubauth validate --help")
    return key, value


def _last(log: Path) -> str:
    """The last thing that Spark complained about."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    told = [line for line in lines if "ERROR" in line or "Exception" in line]
    return told[-1][:300] if told else "no more is known; --conf spark.log.level=INFO says more"
