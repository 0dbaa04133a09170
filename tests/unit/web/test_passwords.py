"""Password checks: right and wrong ones, equal work for every name, and a bounded memory."""

from __future__ import annotations

import time

import bcrypt
import pytest

from ragwatch.web.passwords import MAX_REMEMBERED, PasswordChecker, check_password, cost_of

USERS = {
    "anna": bcrypt.hashpw(b"right", bcrypt.gensalt(4)),
    "ben": bcrypt.hashpw(b"other", bcrypt.gensalt(6)),
}


class Work:
    """Counts the work of bcrypt, which doubles with the cost."""

    def __init__(self) -> None:
        self.done = 0
        self._check = bcrypt.checkpw

    def checkpw(self, password: bytes, hashed: bytes) -> bool:
        """Check, and count."""
        self.done += 2 ** cost_of(hashed)
        return self._check(password, hashed)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """The work of all checks of a test."""
    counted = Work()
    monkeypatch.setattr(bcrypt, "checkpw", counted.checkpw)
    return counted


@pytest.mark.parametrize(("user", "password"), [("anna", b"right"), ("anna", b"no"), ("ben", b"no"), ("eve", b"no")])
def test_x20_every_name_costs_the_same(work: Work, user: str, password: bytes) -> None:
    """A wrong name, a right one with a cheap hash and one with a dear hash are the same amount of bcrypt."""
    assert check_password(USERS, user, password) is (user == "anna" and password == b"right")
    assert work.done == 2**6


@pytest.mark.slow
def test_x20_every_name_takes_the_same_time() -> None:
    """The median times of a wrong name and of a wrong password lie within 5 % of each other."""
    users = {"anna": bcrypt.hashpw(b"right", bcrypt.gensalt(8)), "ben": bcrypt.hashpw(b"right", bcrypt.gensalt(10))}
    times: dict[str, list[float]] = {"anna": [], "ben": [], "eve": []}
    for _ in range(15):
        for user, taken in times.items():
            start = time.thread_time()
            assert not check_password(users, user, b"wrong")
            taken.append(time.thread_time() - start)
    medians = [sorted(taken)[len(taken) // 2] for taken in times.values()]
    assert max(medians) < 1.05 * min(medians), medians


@pytest.mark.parametrize("version", [b"$2$", b"$2a$", b"$2b$", b"$2x$", b"$2y$"])
def test_every_version_is_read(version: bytes) -> None:
    """Hashes of htpasswd ($2y$) and of other tools are checked alike."""
    assert check_password({"anna": version + USERS["anna"][4:]}, "anna", b"right")


def test_long_passwords_are_cut_where_bcrypt_cuts_them() -> None:
    """72 bytes count, as in Prometheus; more are no error."""
    users = {"anna": bcrypt.hashpw(b"a" * 72, bcrypt.gensalt(4))}
    assert check_password(users, "anna", b"a" * 90)
    assert not check_password(users, "anna", b"a" * 71)


async def test_right_passwords_are_remembered_and_wrong_ones_are_not(work: Work) -> None:
    """A scraper costs bcrypt once; a wrong password costs it each time; a changed hash is asked again."""
    checker = PasswordChecker()
    for _ in range(3):
        assert await checker.check(USERS, "anna", b"right")
    assert work.done == 2**6
    for _ in range(2):
        assert not await checker.check(USERS, "anna", b"wrong")
    assert work.done == 3 * 2**6
    assert not await checker.check({**USERS, "anna": USERS["ben"]}, "anna", b"right")
    assert not await checker.check({"ben": USERS["ben"]}, "anna", b"right")


async def test_the_memory_is_bounded(work: Work) -> None:
    """Beyond the limit the password that was used longest ago is forgotten."""
    checker = PasswordChecker()
    users = {str(number): USERS["anna"] for number in range(MAX_REMEMBERED + 1)}
    for user in users:
        assert await checker.check(users, user, b"right")
    done = work.done
    assert await checker.check(users, str(MAX_REMEMBERED), b"right")
    assert work.done == done
    assert await checker.check(users, "0", b"right")
    assert work.done > done
