"""The secret of a state directory, in a file beside the database: the key of sampling and of canary marks.

It is made with the state and kept: with another secret, a log that is read again is drawn from differently.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from ragwatch.errors import StoreError
from ragwatch.ports.capabilities import SharedStore

NAME = "ragwatch.secret"
_BYTES = 32
_HEX_CHARS = 2 * _BYTES


def state_secret(state: Path, store: object = None) -> bytes:
    """Read the secret of a state directory; make it if there is none. The caller holds the lock of the directory.

    Args:
        state: The directory.
        store: A store that workers share has one secret for all of them, which replaces that of the directory.

    Raises:
        StoreError: It cannot be read or written, or is damaged.
    """
    stored = stored_secret(state)
    secret = stored or secrets.token_bytes(_BYTES)
    if isinstance(store, SharedStore):
        secret = store.shared_secret(secret)
    if secret != stored:
        write_secret(state, secret)
    return secret


def write_secret(state: Path, secret: bytes) -> None:
    """Write the secret of a state directory.

    Raises:
        StoreError: It cannot be written.
    """
    path = state / NAME
    new = path.with_name(f"{NAME}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(f"{secret.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)  # never half a secret, whenever the process is killed
    except OSError as error:
        raise StoreError(
            f"state: cannot write {path}: {error.strerror}; it must be on a writable disk with free space"
        ) from error


def readable_secret(state: Path) -> bytes | None:
    """Read the secret if this process may; None otherwise. For commands that run canaries beside the daemon."""
    with suppress(StoreError):
        return stored_secret(state)
    return None


def stored_secret(state: Path) -> bytes | None:
    """Read the secret of a state directory; None if there is none.

    Raises:
        StoreError: It cannot be read, or is damaged.
    """
    path = state / NAME
    try:
        text = path.read_text("ascii").strip()
        secret = bytes.fromhex(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            f"state: cannot read {path}: {error.strerror}; run as the user whom the state belongs to"
        ) from error
    except ValueError:
        secret = b""
    if len(secret) != _BYTES:
        raise StoreError(
            f"state: {path} is damaged: it holds no {_HEX_CHARS} hexadecimal digits; restore it, or delete it: a new "
            "secret is then made, and answers that are read again may be drawn differently"
        )
    return secret
