"""``hubauth demo``: real hubs, recorded, judged on Spark, and one broken hub caught."""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hubauth.cli.demo.story import Say, tell_of_a_revoke, tell_of_everything
from hubauth.cli.demo.tree import DemoFailed, DemoTree
from hubauth.cli.problems import CommandError
from hubauth.cli.terminal import tell, tell_text
from hubauth.shell.client import ClientError

_TREE = """\
      root (authority)
      /  \\
    mid   B
     |
     A
"""
_VIOLATES = 1
_SMALL = ("spark.sql.shuffle.partitions=4", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1")
"""Settings of Spark for little data: most of the time would go into starting."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    demo = commands.add_parser(
        "demo",
        help="watch the whole story: hubs, traces, verdicts",
        description="Run real hubs on loopback, record them, judge the traces on Spark, and catch a broken hub.",
        epilog="examples:\n  hubauth demo\n  hubauth demo --out demo\n",
    )
    demo.set_defaults(run=run)
    demo.add_argument("--out", type=Path, metavar="DIR", help="a new directory to work in (default: a temporary one)")


def run(chosen: argparse.Namespace) -> int:
    try:
        import pyspark  # noqa: F401 - only to say what is missing before anything runs
    except ImportError:
        raise CommandError("the traces are judged on Spark, which is missing", "pip install 'hubauth[spark]'") from None
    directory = _directory(chosen.out)
    try:
        return _Demo(directory).run()
    except (DemoFailed, ClientError) as problem:
        raise CommandError(f"the demonstration stopped: {problem}", f"what there is lies in {directory}", 3) from None


def _directory(wanted: Path | None) -> Path:
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="hubauth-demo-"))
    if wanted.exists():
        raise CommandError(f"{wanted} exists already", "name another directory")
    return wanted.resolve()


class _Demo:
    """Four chapters, told as they happen."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._report = directory, directory / "report"
        self._begun = time.monotonic()

    def run(self) -> int:
        tell_text(_TREE)
        self._chapter(1, "Four real hubs, recorded while devices come, move and are revoked")
        self._play("right", {}, tell_of_everything)
        self._chapter(2, "The same tree, but A answers a revoke without obeying it")
        self._play("wrong", {"A": "hubauth.cli.demo.broken"}, tell_of_a_revoke)
        self._chapter(3, "Both traces, replayed through the same rules on Spark")
        summary = self._judge()
        for trace in summary["traces"]:
            self._say(f"{trace['trace']} {trace['outcome']}: {trace['hubs']} hubs, {trace['rows']} events")
        for finding in summary["findings"]:
            where = (
                f"row {finding['sequence']} of {finding['hub']} against row {finding['since']} of {finding['other']}"
            )
            self._say(f"{finding['check']} is broken: {where}")
        self._say(f"{len(summary['coverage'])} rules decided something")
        self._chapter(4, "What gave the broken hub away")
        self._explain()
        tell("", f"Done in {time.monotonic() - self._begun:.0f} s. Open {self._report / 'report.html'}")
        return 0

    def _play(self, name: str, modules: dict[str, str], story: Callable[[DemoTree, Say], Awaitable[None]]) -> None:
        async def play() -> None:
            tree = DemoTree(self._directory / name, self._directory / "traces" / name, modules)
            try:
                await story(tree, self._say)
            finally:
                await tree.stop_all()

        asyncio.run(play())

    def _judge(self) -> dict[str, Any]:
        """Validate as a user would. One trace must conform, and the other must not."""
        command = ["validate", str(self._directory / "traces"), "--report", str(self._report), "--master", "local[2]"]
        self._say("$ hubauth " + " ".join(command))
        settings = [part for setting in _SMALL for part in ("--conf", setting)]
        code = subprocess.run([sys.executable, "-m", "hubauth.cli", *command, *settings], check=False).returncode
        if code != _VIOLATES:
            raise DemoFailed(f"hubauth validate ended with {code}, not {_VIOLATES}")
        summary: dict[str, Any] = json.loads((self._report / "summary.json").read_text(encoding="utf-8"))
        found = {trace["trace"]: trace["outcome"] for trace in summary["traces"]}
        broken = {finding["check"] for finding in summary["findings"]}
        if found != {"right": "conforms", "wrong": "violates"} or broken != {"RevokedStaysOut"}:
            raise DemoFailed(f"the verdicts are {found}, and what is broken is {sorted(broken)}")
        return summary

    def _explain(self) -> None:
        explain = ["trace", "explain", str(self._directory / "traces" / "wrong")]
        subprocess.run([sys.executable, "-m", "hubauth.cli", *explain], check=False)

    def _chapter(self, number: int, title: str) -> None:
        tell("", f"{number}. {title}")

    def _say(self, text: str) -> None:
        tell(f"  {time.monotonic() - self._begun:5.1f} s  {text}")
