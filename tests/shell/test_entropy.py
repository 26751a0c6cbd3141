"""Fresh credentials have the shape the core asks for, and no two are the same."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from hubauth.core.credentials import is_well_formed
from hubauth.shell.entropy import Credentials


def test_credentials_are_32_bytes_each_and_never_the_same() -> None:
    credentials = Credentials()
    drawn = [credentials.draw() for _ in range(300)]
    assert all(map(is_well_formed, drawn)) and len(set(drawn)) == len(drawn)
    random_bytes = [urlsafe_b64decode(credential + "=") for credential in drawn]
    assert {len(random) for random in random_bytes} == {32}
    assert [urlsafe_b64encode(random).decode().rstrip("=") for random in random_bytes] == drawn


def test_two_hubs_draw_from_different_places() -> None:
    first, second = Credentials(), Credentials()
    assert not {first.draw() for _ in range(100)} & {second.draw() for _ in range(100)}
