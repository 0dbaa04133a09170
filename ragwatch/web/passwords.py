"""Checks passwords against bcrypt hashes, in a thread, one at a time.

A check of a user that does not exist, and of one with a cheaper hash, costs as much as that of the most expensive hash,
so that the time of a response does not say which names exist. Passwords that were right are remembered, as their keyed
hash: a scraper with its password does not wait for others, and costs no bcrypt.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Mapping

import bcrypt
from anyio import CapacityLimiter, to_thread

MAX_REMEMBERED = 100
MAX_WAITING = 32
MAX_BYTES = 72  # bcrypt reads no more; the tools that make hashes cut there as well
_DUMMY = "$2b${cost:02d}$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"


class TooManyChecksError(Exception):
    """Too many passwords wait to be checked."""


class PasswordChecker:
    """Checks passwords. Must be used in one event loop only."""

    def __init__(self) -> None:
        self._limiter: CapacityLimiter | None = None  # needs a running event loop
        self._waiting = 0
        self._secret = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, None] = OrderedDict()

    async def check(self, users: Mapping[str, bytes], user: str, password: bytes) -> bool:
        """Whether the password is that of the user.

        Raises:
            TooManyChecksError: Too many passwords wait to be checked.
        """
        key = self._key(user, users.get(user, b""), password)
        if user in users and key in self._remembered:
            self._remembered.move_to_end(key)
            return True
        if self._waiting >= MAX_WAITING:
            raise TooManyChecksError
        self._limiter = self._limiter or CapacityLimiter(1)
        self._waiting += 1
        try:
            right = await to_thread.run_sync(check_password, users, user, password, limiter=self._limiter)
        finally:
            self._waiting -= 1
        if right:
            self._remembered[key] = None
            if len(self._remembered) > MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        return right

    def _key(self, user: str, hashed: bytes, password: bytes) -> bytes:
        parts = b"".join(len(part).to_bytes(4) + part for part in (user.encode(), hashed, password))
        return hmac.digest(self._secret, parts, hashlib.sha256)


def check_password(users: Mapping[str, bytes], user: str, password: bytes) -> bool:
    """Whether the password is that of the user; takes the same time for all users and for names that do not exist.

    Work doubles with the cost: a hash of cost c, and a dummy of each cost from c up to the highest one below the limit,
    are together as much work as one hash at the limit.
    """
    limit = max(cost_of(hashed) for hashed in users.values())
    known = users.get(user)
    hashed = known if known is not None else _dummy(limit)
    right = _matches(password, hashed)
    for cost in range(cost_of(hashed), limit):
        _matches(password, _dummy(cost))
    return right and known is not None


def cost_of(hashed: bytes) -> int:
    """Cost of a bcrypt hash.

    >>> cost_of(b"$2y$10$abc")
    10
    """
    return int(hashed.split(b"$")[2])


def _dummy(cost: int) -> bytes:
    return _DUMMY.format(cost=cost).encode()


def _matches(password: bytes, hashed: bytes) -> bool:
    """Run bcrypt once. All versions ($2, $2a, $2b, $2x, $2y) are computed as $2b, as in Go."""
    _, _, rest = hashed.lstrip(b"$").partition(b"$")
    return bcrypt.checkpw(password[:MAX_BYTES], b"$2b$" + rest)
