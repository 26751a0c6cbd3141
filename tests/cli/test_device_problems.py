"""Wrong use of ``hubauth device`` against a live hub: a message and an exit code, and no credential is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hubauth.cli import main
from hubauth.shell.hub import Hub
from tests.shell.harness import config, run, running

Told = Callable[..., Awaitable[tuple[int, str]]]


def with_hub(dialect: str, story: Callable[[Hub, Told], Awaitable[None]], capsys: pytest.CaptureFixture[str]) -> None:
    async def whole() -> None:
        async with running(config(hub={"dialect": dialect})) as hub:

            async def told(*arguments: str) -> tuple[int, str]:
                command = ["device", *arguments, "--hub", str(hub.address), "--dialect", dialect, "--timeout", "5"]
                code = await asyncio.get_running_loop().run_in_executor(None, main, command)
                captured = capsys.readouterr()
                return code, captured.out + captured.err

            await story(hub, told)

    run(whole())


@pytest.mark.parametrize(
    ("dialect", "verbs"),
    [
        ("flat", ["revoke x", "offline", "get-perms", "list-roles", "perms-invalidate"]),
        ("login", ["get-perms", "list-roles", "perms-invalidate"]),
    ],
)
def test_what_a_dialect_cannot_say(
    dialect: str, verbs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story(_: Hub, told: Told) -> None:
        identity = ["--identity", str(tmp_path / "id.json")]
        assert (await told("register", "--device-id", "d", *identity))[0] == 0
        for verb in verbs:
            code, said = await told(*verb.split(), *identity)
            assert code == 2 and f"the dialect {dialect} has no {verb.split()[0]}" in said

    with_hub(dialect, story, capsys)


def test_a_credential_is_only_asked_for_if_it_can_be_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def story(hub: Hub, told: Told) -> None:
        for path in (tmp_path / "missing" / "id.json", tmp_path):
            code, said = await told("register", "--device-id", "d", "--identity", str(path))
            assert code == 2 and f"cannot write {path}" in said
        assert not hub.engine.state.registry, "asked for all the same"

    with_hub("auth", story, capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        ["revoke", "x", "--target", "99999999999"],
        ["revoke", "x", "--target=-1"],
        ["revoke", "x", "--wait", "0"],
        ["revoke", "x", "--wait", "nan"],
        ["auth", "--timeout", "-1"],
        ["get-perms", str(2**70)],
        ["auth", "--ca", "ca.pem"],
        ["auth", "--server-name", "hub"],
    ],
)
def test_wrong_values(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--hub", "127.0.0.1:1", "--device-id", "d", "--credential", "c"]
    assert main(["device", *arguments, *where]) == 2
    said = capsys.readouterr().err
    assert any(words in said for words in ("not a node id", "not a number of seconds", "need --tls"))
