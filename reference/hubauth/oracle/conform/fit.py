"""Whether a profile tells the truth about a hub, as far as that can be asked before anything is judged."""

from collections.abc import Iterator

from attrs import frozen

from hubauth.core.messages import Answer, Authenticate, Reason, Register
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.profile import Known, Profile
from hubauth.oracle.conform.speech import Speech, ask, other_speech
from hubauth.oracle.conform.subject import NotServing, Subject
from hubauth.oracle.conform.wire import Unreachable
from hubauth.wire.header import Version


@frozen
class Misfit:
    """Something in a profile that is not so."""

    key: str
    """Of the profile."""
    said: str
    seen: str


def misfits(subject: Subject) -> Iterator[Misfit]:
    """Everything that does not fit, the most fundamental first. Raises Unreachable, or NotServing: this is no hub."""
    profile = subject.profile
    wrong = list(_speech(subject))
    yield from wrong
    if wrong:
        return  # nothing else can be asked in the wrong language
    if profile.parent is not None:
        yield from _parent(subject)
    for known in profile.child_hub:
        yield from _binding(subject, f"child_hub {known.device_id}", known, ("auth.assist",))
    if profile.admin is not None:
        claimed = {"revoke": "auth.revoke", "perms_invalidate": "auth.perms_invalidate"}
        needed = tuple(permission for feature, permission in claimed.items() if feature in profile.available)
        yield from _binding(subject, f"admin {profile.admin.device_id}", profile.admin, needed)


def _speech(subject: Subject) -> Iterator[Misfit]:
    profile, where = subject.profile, (subject.host, subject.port)
    seconds = profile.timeouts.answer
    for version in map(Version, profile.header):
        wanted = Speech(profile.dialect, version)
        seen = ask(*where, wanted, seconds)
        if seen is not None:
            node = profile.hub.node_id
            if node and seen.frame.source != node:
                yield Misfit("hub.node_id", str(node), f"it answers as node {seen.frame.source}")
            continue
        other = other_speech(*where, wanted, seconds)
        if other is None:
            raise NotServing(f"{subject.host}:{subject.port} answers nothing in any dialect or header version")
        if other.dialect is not wanted.dialect:
            yield Misfit("dialect", wanted.dialect.value, f"it answers {other.dialect.value}")
        if other.version is not wanted.version:
            yield Misfit("header", str(int(wanted.version)), f"it answers version {int(other.version)}")


def _parent(subject: Subject) -> Iterator[Misfit]:
    """What the hub shows its parent; this tool must be listening as that by now."""
    hub, parent = subject.profile.hub, subject.profile.parent
    assert parent is not None
    try:
        shown = subject.join()
    except Unreachable as problem:
        yield Misfit("parent", f"the hub connects to {parent.listen} with header {parent.header}", str(problem))
        return
    if shown.device_id != hub.device_id:
        yield Misfit("hub.device_id", hub.device_id, f"it calls itself {shown.device_id}")
    if subject.profile.dialect is Dialect.FLAT:
        return  # there are no credentials
    if isinstance(shown, Register):
        yield Misfit("hub.credential", "one", "it registers at its parent: it has none")
    elif isinstance(shown, Authenticate) and shown.credential != hub.credential:
        yield Misfit("hub.credential", "one", "it shows its parent another one")


def _binding(subject: Subject, key: str, known: Known, needed: tuple[str, ...]) -> Iterator[Misfit]:
    answer = subject.introduce(known, as_hub="auth.assist" in needed)
    if answer is None:
        yield Misfit(key, "provisioned", "it answers nothing to it")
    elif answer.reason is not Reason.OK:
        yield Misfit(key, "provisioned", f"refused ({answer.reason.value}): another device_id or credential")
    else:
        if answer.node_id != known.node_id:
            yield Misfit(f"{key}, node_id", str(known.node_id), f"it is node {answer.node_id}")
        yield from _of_role(subject.profile, key, known, answer, needed)


def _of_role(profile: Profile, key: str, known: Known, answer: Answer, needed: tuple[str, ...]) -> Iterator[Misfit]:
    if profile.spoken is Dialect.AUTH and "perms" in profile.available:
        for permission in needed:
            if not answer.grant.allows(permission):
                yield Misfit(f"{key}, role", f"one with {permission}", f"{answer.grant.role or 'none'} without it")
        if known.role and answer.grant.role != known.role:
            yield Misfit(f"{key}, role", known.role, answer.grant.role or "none")
    if "auth.assist" not in needed or "extension" not in profile.available:
        return
    if answer.ext is None:
        yield Misfit("features", "extension", f"it says nothing of the extension to {known.device_id}: a plain hub")
    elif not answer.ext.hub:
        yield Misfit(f"{key}, role", "one of a hub", "it is admitted as a device")
