"""Finds the token with which commands ask a running ragwatch: `--token-file`, RAGWATCH_TOKEN_FILE or RAGWATCH_TOKEN."""

from __future__ import annotations

import os
import ssl
import urllib.request
from pathlib import Path

from ragwatch.errors import ConfigError

TOKEN, TOKEN_FILE = "RAGWATCH_TOKEN", "RAGWATCH_TOKEN_FILE"
ADVICE = f"give a token with --token-file, {TOKEN_FILE} or {TOKEN}"


def read_token(file: Path | None) -> str | None:
    """Read the token; None if there is none.

    Raises:
        ConfigError: The file cannot be read, or the token cannot be sent.
    """
    variable = os.environ.get(TOKEN_FILE)
    where, path = ("--token-file", file) if file is not None else (TOKEN_FILE, Path(variable) if variable else None)
    if path is None:
        where, token = TOKEN, os.environ.get(TOKEN, "").strip()
    else:
        try:
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise ConfigError(f"{where}: {path} cannot be read: {reason}; write the path of a readable file") from error
        if not token:
            raise ConfigError(f"{where}: {path} is empty; write the token into it")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"{where}: holds more than a token; write the token alone, on one line")
    return token or None


def authorize(request: urllib.request.Request, token: str | None) -> urllib.request.Request:
    """Add the token to a request; it is not sent to another address if the server redirects."""
    if token is not None:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


def certificate_advice(error: Exception) -> str:
    """What to do about a certificate that is not trusted; empty for other errors."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return "; if its certificate is of an authority of your own, name the file of that authority in SSL_CERT_FILE"
    return ""
