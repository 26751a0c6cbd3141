"""The twenty-four: which habits, which mistakes, and the profile that declares the habits."""

from tests.judge.strange_hub import Manner
from tests.judge.strange_traces import Recipe

_DECLARED = {
    "as_ok": ("refusals_as_ok", "refusals_as_ok = true"),
    "same": ("same_credential", "same_credential = true"),
    "echo": ("echo", "serves = [1]"),
    "no_id": ("without_msg_id", "answers_without_msg_id = true"),
    "burst": ("burst", "burst = 8"),
    "unbinds": ("offline_unbinds", "offline_unbinds = true"),
    "strangers": ("tells_strangers", "strangers_hear_broadcasts = true"),
}
"""Habit -> the hub's switch, and the line of the profile."""
_VALUES = {"echo": 1, "burst": 8}

_HUB = """\
name = "{name}"
dialect = "{dialect}"
features = {features}

[hub]
node_id = 1

[roles]
default_perms = ["ping"]
role_perms = {{ admin = ["*"], node = ["ping"] }}

[choices]
extra_fields = {extra}

[habits]
{habits}
"""
_ADMIN = """
[admin]
device_id = "admin"
node_id = 900
credential = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
role = "admin"
"""

TABLE: tuple[tuple[str, str, str], ...] = (
    # dialect, habits, mistakes
    ("auth", "extra", "revoked_admitted wrong_code"),
    ("auth", "as_ok", "node_twice silent total_unfiltered"),
    ("auth", "same", "prefix twice"),
    ("auth", "echo strangers", "hops_kept stale_perms wrong_node"),
    ("auth", "no_id", "session_kept wrong_code total_unfiltered"),
    ("auth", "burst", "silent offline_ignored"),
    ("auth", "unbinds", "revoked_admitted node_twice hops_kept"),
    ("auth", "extra as_ok no_id", "twice wrong_node stale_perms"),
    ("login+", "extra as_ok", "revoked_admitted total_unfiltered"),
    ("login+", "same echo", "session_kept stale_perms prefix"),
    ("login+", "no_id burst", "wrong_code node_twice"),
    ("login+", "unbinds strangers", "silent wrong_node hops_kept"),
    ("login+", "extra as_ok same echo no_id", "offline_ignored twice total_unfiltered"),
    ("login+", "burst unbinds strangers", "revoked_admitted session_kept wrong_code"),
    ("login+", "extra same unbinds", "prefix node_twice silent stale_perms"),
    ("login+", "extra as_ok same echo no_id burst unbinds strangers", "wrong_code hops_kept total_unfiltered twice"),
    ("login", "extra as_ok", "prefix session_kept"),
    ("login", "same no_id", "revoked_admitted silent wrong_code"),
    ("login", "echo burst strangers", "node_twice hops_kept twice"),
    ("login", "unbinds extra no_id", "wrong_node offline_ignored"),
    ("flat", "extra as_ok", "wrong_code node_twice"),
    ("flat", "echo no_id", "silent stranger_admitted"),
    ("flat", "burst strangers", "twice hops_kept wrong_node"),
    ("flat", "extra as_ok echo no_id burst strangers", "stranger_admitted hops_kept"),
)


def recipe(number: int, dialect: str, habits: str, faults: str) -> Recipe:
    chosen = habits.split()
    perms = dialect in ("auth", "login+")
    has = ["register", "authenticate", "routing"]
    has += ["offline", "revoke"] if dialect != "flat" else []
    has += ["perms", "list_roles", "perms_invalidate"] if perms else []
    words = dialect.removesuffix("+")
    name = f"strange-{number:02}"
    text = _HUB.format(
        name=name,
        dialect=words,
        features=str(has).replace("'", '"'),
        extra=str("extra" in chosen).lower(),
        habits="\n".join(line for habit, (_, line) in _DECLARED.items() if habit in chosen),
    )
    switches = {switch: _VALUES.get(habit, True) for habit, (switch, _) in _DECLARED.items() if habit in chosen}
    manner = Manner(words, perms, "extra" in chosen, **switches)  # type: ignore[arg-type]
    return Recipe(name, manner, tuple(faults.split()), text + (_ADMIN if dialect != "flat" else ""))


RECIPES = tuple(recipe(number, *row) for number, row in enumerate(TABLE, 1))
