"""Encryption of stored texts with AES-256-GCM, and the check that every key which the database needs is given.

A text is encrypted in segments, so that lists can read its beginning alone. Each text has a key of its own, derived
from the configured key and a random salt, so that no nonce is used twice. Layout of a value: a byte that no compressed
text begins with, the id of the key, the salt, and the segments; the nonce of a segment is its number and whether it is
the last one, so that segments cannot be moved, left out or added.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from ragwatch.errors import ConfigError, StoreError, extra_for

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

EXTRA = "encryption"
MARK = b"\x02"  # compressed texts begin with 0x78, JSON texts with a bracket
KEY_BYTES, ID_BYTES, SALT_BYTES, TAG_BYTES = 32, 8, 16, 16
SEGMENT_BYTES = 16 << 10
HEADER_BYTES = len(MARK) + ID_BYTES + SALT_BYTES
FIRST_SEGMENT_BYTES = HEADER_BYTES + SEGMENT_BYTES + TAG_BYTES  # of a stored value, to read its first segment
KEY_STATE = "encryption"
TABLES = {
    **dict.fromkeys(("samples", "labels", "runs", "states", "parts", "traits", "replies"), "body"),
    "verdicts": "line",
}
_KEY_IDS = "SELECT body FROM states WHERE name = :name"
_ADVICE = "create one with `openssl rand -base64 32`"

Cell = TypeVar("Cell", bytes, bytes | None, object)
Rows = Callable[[str, Mapping[str, object]], Sequence[tuple[Any, ...]]]


class EncryptionOptions(BaseModel):
    """Keys that encrypt stored texts: the first one encrypts, all decrypt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: SecretStr | None = Field(None, description="One key, or several separated by spaces: the newest first.")
    key_file: Path | None = Field(None, description="File with one key per line: the newest first.")

    @model_validator(mode="after")
    def _check_one(self) -> EncryptionOptions:
        if (self.key is None) == (self.key_file is None):
            raise ValueError("give either key or key_file")
        return self

    def cipher(self) -> TextCipher:
        """Build the cipher. Raises a `ConfigError` if a key cannot be read, or the extra is not installed."""
        if self.key is not None:
            return TextCipher(parse_keys(self.key.get_secret_value(), "store.encryption.key"))
        where, path = "store.encryption.key_file", self.key_file or Path()
        try:
            text = path.read_text(encoding="ascii")
        except OSError as error:
            raise ConfigError(
                f"{where}: {path} cannot be read: {error.strerror}; give a file with one key per line"
            ) from error
        except ValueError as error:
            raise ConfigError(f"{where}: {path} contains no keys; {_ADVICE}") from error
        return TextCipher(parse_keys(text, where))


def parse_keys(text: str, where: str) -> list[bytes]:
    """Parse keys that are separated by white space or commas: 32 bytes each, in base64 or as 64 hex digits.

    Raises a `ConfigError` if there is none, or one is not a key; the message does not contain it.
    """
    words = re.split(r"[\s,]+", text.strip())
    keys = [_key(word) for word in words if word]
    if not keys or None in keys:
        place = f"key {keys.index(None) + 1} of {len(keys)} is" if keys else "there is"
        raise ConfigError(f"{where}: {place} not {KEY_BYTES} bytes in base64; {_ADVICE}")
    return [key for key in keys if key is not None]


def _key(word: str) -> bytes | None:
    if re.fullmatch(r"[0-9a-fA-F]{64}", word):
        return bytes.fromhex(word)
    try:
        key = base64.b64decode(word.translate({45: "+", 95: "/"}), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


class TextCipher:
    """Encrypts texts with the first of its keys of 32 bytes, and decrypts those of all."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        with extra_for("store.encryption", EXTRA):
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - the same
        self._aead, self._invalid = AESGCM, InvalidTag
        self._keys = {key_id(key): key for key in keys}
        self.current = key_id(keys[0])
        self.term_keys = [hmac.digest(key, b"ragwatch term", "sha256") for key in keys]
        """Keys of the digests by which answers are searched for, that of the writing key first."""

    @property
    def ids(self) -> frozenset[bytes]:
        """Ids of all keys."""
        return frozenset(self._keys)

    def seal(self, body: bytes) -> bytes:
        """Encrypt a compressed text; an empty one is returned unchanged."""
        if not body:
            return body
        salt = os.urandom(SALT_BYTES)
        aead = self._of_text(self.current, salt)
        pieces = [body[start : start + SEGMENT_BYTES] for start in range(0, len(body), SEGMENT_BYTES)]
        last = len(pieces) - 1
        segments = (aead.encrypt(_nonce(index, last=index == last), piece, None) for index, piece in enumerate(pieces))
        return b"".join((MARK, self.current, salt, *segments))

    def open(self, value: Cell) -> Cell:
        """Decrypt a value, or as many whole segments as it begins with; one that is not encrypted is unchanged.

        A value that cannot be decrypted is returned as it is; decoding it then reports the damage.
        """
        stored: object = value
        if not isinstance(stored, bytes) or stored[:1] != MARK or stored[1 : 1 + ID_BYTES] not in self._keys:
            return value
        aead = self._of_text(stored[1 : 1 + ID_BYTES], stored[1 + ID_BYTES : HEADER_BYTES])
        size = SEGMENT_BYTES + TAG_BYTES
        opened: list[bytes] = []
        for index, start in enumerate(range(HEADER_BYTES, len(stored), size)):
            segment = stored[start : start + size]
            for last in (False, True) if len(segment) == size else (True,):  # there may be more that was not read
                with suppress(self._invalid, ValueError):
                    opened.append(aead.decrypt(_nonce(index, last=last), segment, None))
                    break
            else:
                return value
        return b"".join(opened)

    def _of_text(self, identity: bytes, salt: bytes) -> AESGCM:
        return self._aead(hmac.digest(self._keys[identity], b"ragwatch text" + salt, "sha256"))


def opened(rows: Iterable[tuple[Any, ...]], cipher: TextCipher | None) -> list[tuple[Any, ...]]:
    """Return rows with their texts decrypted; without keys, as they are."""
    return list(rows) if cipher is None else [tuple(map(cipher.open, row)) for row in rows]


def key_id(key: bytes) -> bytes:
    """Id of a key: it says nothing about the key."""
    return hmac.digest(key, b"ragwatch key id", "sha256")[:ID_BYTES]


def _nonce(index: int, *, last: bool) -> bytes:
    return index.to_bytes(11, "big") + bytes([last])


def check_keys(rows: Rows, cipher: TextCipher | None) -> list[bytes]:
    """Check that all keys that texts are encrypted with are given. Returns the ids of those that are still in use.

    Raises a `ConfigError` if a key is missing or wrong, and a `StoreError` if the list of keys is damaged.
    """
    used = _stored_ids(rows)
    known = frozenset() if cipher is None else cipher.ids
    for identity in [one for one in used if one not in known]:
        start = MARK + identity
        values = {"length": len(start), "start": start}
        counts = [
            rows(f"SELECT COUNT(*) FROM {table} WHERE SUBSTR({column}, 1, :length) = :start", values)[0][0]  # noqa: S608 - constants
            for table, column in TABLES.items()
        ]
        if total := sum(counts):
            given = "no key is configured" if cipher is None else "none of the configured keys is that one"
            raise ConfigError(
                f"store.encryption: {total} stored texts are encrypted with key {identity.hex()}, and {given}; "
                "add the key that they were written with, after the one that is to write"
            )
        used.remove(identity)
    return used


def new_key_ids(rows: Rows, cipher: TextCipher | None) -> bytes | None:
    """Check the keys, as `check_keys`. Returns the ids in use, to store under `KEY_STATE`; None if they are stored."""
    used = check_keys(rows, cipher)
    if cipher is not None and cipher.current not in used:
        used.append(cipher.current)
    return None if used == _stored_ids(rows) else json.dumps({"keys": [one.hex() for one in used]}).encode()


def _stored_ids(rows: Rows) -> list[bytes]:
    stored = rows(_KEY_IDS, {"name": KEY_STATE})
    try:
        return [bytes.fromhex(identity) for identity in json.loads(stored[0][0])["keys"]] if stored else []
    except (ValueError, LookupError, TypeError) as error:
        raise StoreError(
            f"state: the list of encryption keys is damaged: {error}; restore a copy of the database"
        ) from error
