"""What a hub tells its operator: log lines with named fields, and counters. Never a credential.

Lines about what peers do are rationed per peer and event, so that nobody can slow the hub down, fill a disk or hide
what another does by being wrong often; what was left out is counted and said.
"""

import json
import logging
import sys
import time
from collections import Counter
from typing import Any, TextIO

from attrs import fields

from hubauth.core.inputs import Input, Received
from hubauth.core.messages import Answer
from hubauth.core.outputs import Note, NoteKind, Output, Send, Tell, Unconfirmed
from hubauth.core.transition import Step
from hubauth.report.conceal import conceal
from hubauth.report.escape import visible, visible_lines
from hubauth.shell.rationing import Rations
from hubauth.shell.settings import LogTable

LOGGER = logging.getLogger("hubauth")
_FIELDS = "hubauth_fields"

_LEVELS = {NoteKind.REFUSED_BY_PARENT: logging.WARNING, NoteKind.POLICY_REFUSED: logging.ERROR}


class TextFormatter(logging.Formatter):
    """``time level event key=value ...``, values with blanks or control characters quoted."""

    def format(self, record: logging.LogRecord) -> str:
        values = getattr(record, _FIELDS, {})
        said = [f"{key}={_shown(value)}" for key, value in values.items()]
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line = visible(" ".join([stamp, record.levelname.lower(), conceal(record.getMessage()), *said]))
        return line if record.exc_info is None else f"{line}\n{_traceback(self, record.exc_info)}"


def _shown(value: Any) -> str:
    text = conceal(str(value))
    plain = text.isascii() and text.isprintable() and text and not any(mark in text for mark in ' "=')
    return text if plain else json.dumps(text)


def _traceback(formatter: logging.Formatter, problem: Any) -> str:
    return visible_lines(conceal(formatter.formatException(problem)))


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": conceal(record.getMessage()),
            **{key: _plain(value) for key, value in getattr(record, _FIELDS, {}).items()},
        }
        if record.exc_info is not None:
            line["traceback"] = _traceback(self, record.exc_info)
        return json.dumps(line)


def _plain(value: Any) -> Any:
    return conceal(value) if isinstance(value, str) else value


def set_up_logging(table: LogTable, stream: TextIO | None = None) -> None:
    """Let the hub's lines go to ``stream`` (standard error), in the chosen format."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if table.format == "json" else TextFormatter())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(table.level.upper())
    LOGGER.propagate = False


def say(level: int, event: str, *, error: BaseException | None = None, **said: Any) -> None:
    """One line. Do not pass a credential."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, extra={_FIELDS: said}, exc_info=error)


class Observer:
    """The counters of one hub, and its rationed lines."""

    def __init__(self) -> None:
        self.counters: Counter[tuple[str, str]] = Counter()
        """(name, label) -> how often."""
        self.rules: Counter[str] = Counter()
        """Rule -> how often it decided."""
        self.counts_rules = False
        self._rations = Rations()

    @property
    def traces(self) -> bool:
        """Whether every decision is to be logged."""
        return LOGGER.isEnabledFor(logging.DEBUG)

    def count(self, name: str, label: str = "", by: int = 1) -> None:
        self.counters[name, label] += by

    def replenish(self) -> None:
        """A second has passed: lines may be written again."""
        suppressed = self._rations.second()
        if suppressed:
            say(logging.WARNING, "suppressed", lines=sum(suppressed.values()), events=",".join(sorted(suppressed)))

    def note(self, note: Note, peer: str = "") -> None:
        """The core says why it did something."""
        self.count("notes", note.kind.value)
        level = _LEVELS.get(note.kind, logging.INFO)
        about: dict[str, Any] = {} if note.link is None else {"link": note.link}
        self.event(note.kind.value, level, peer=peer, rule=note.rule, detail=note.detail, **about)

    def tell(self, told: Tell) -> None:
        """A hub has answered the operator's revoke."""
        reason = told.reason.value
        self.event("revoke_answered", hub=told.hub, device_id=told.device_id, node_id=told.node_id, reason=reason)

    def unconfirmed(self, told: Unconfirmed) -> None:
        """A plain hub has not confirmed the operator's revoke."""
        name, hub = "revoke_unconfirmed", told.hub
        self.event(name, hub=hub, device_id=told.device_id, node_id=told.node_id, sent=told.sent)

    def event(self, name: str, level: int = logging.INFO, *, peer: str = "", subject: str = "", **said: Any) -> None:
        """A rationed line; ``subject`` is the known device that it is about."""
        if self._rations.allow(name, level, peer, subject):
            about = {"peer": peer} if peer else {}
            say(level, name, error=None, **said, **about)

    def alarm(self, name: str, **said: Any) -> None:
        """Something that an operator should hear of: counted and, rationed, said."""
        self.count("alarms", name)
        self.event(name, logging.WARNING, **said)

    def decided(self, happened: Input, done: Step) -> None:
        """Count the rules of a step, and log it if every decision is to be logged."""
        if self.counts_rules:
            self.rules.update(done.rules)
        if self.traces:
            say(
                logging.DEBUG,
                "decided",
                **_input_fields(happened),
                **_output_fields(done.outputs),
                rules=",".join(done.rules),
            )


def _input_fields(happened: Input) -> dict[str, Any]:
    said: dict[str, Any] = {"input": type(happened).__name__}
    if isinstance(happened, Received):
        body = happened.frame.body
        said |= {"link": happened.link, "source": happened.frame.source, "msg_id": happened.frame.msg_id}
        said["body"] = type(body).__name__
        for name in ("device_id", "node_id"):
            if hasattr(body, name):
                said[name] = getattr(body, name)
    else:
        said |= {a.name: getattr(happened, a.name) for a in fields(type(happened)) if a.name in ("link", "timer")}
    return said


def _output_fields(outputs: tuple[Output, ...]) -> dict[str, Any]:
    answers = [output.frame.body for output in outputs if isinstance(output, Send)]
    reasons = [answer.reason.value for answer in answers if isinstance(answer, Answer)]
    return {"answered": ",".join(reasons)} if reasons else {}
