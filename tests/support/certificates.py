"""Certificates of a test: an authority, a server and clients, made by the `openssl` program."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwatch.web import TlsSettings
from support.patience import DEADLINE
from support.programs import installed

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
PURPOSES = {"server": "serverAuth", "client": "clientAuth"}


@dataclass(frozen=True)
class Pair:
    """Files of a certificate and of its private key."""

    cert: Path
    key: Path


class Authority:
    """An authority in a folder, whose certificate is `cert`.

    Args:
        folder: Where its files and those of its certificates are kept.
        name: Its name.
    """

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._pair = self._make(name, ["-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:true"])
        self.cert = self._pair.cert

    def issue(self, name: str, purpose: str, alternatives: str = "DNS:localhost,IP:127.0.0.1") -> Pair:
        """A certificate for a name, for a `server` or a `client`."""
        return self._make(
            name,
            [
                *("-subj", f"/CN={name}", "-CA", str(self._pair.cert), "-CAkey", str(self._pair.key)),
                *("-addext", f"subjectAltName={alternatives}", "-addext", f"extendedKeyUsage={PURPOSES[purpose]}"),
                *("-addext", "basicConstraints=critical,CA:false"),
            ],
        )

    def _make(self, name: str, options: list[str]) -> Pair:
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        files = ["-keyout", str(pair.key), "-out", str(pair.cert), "-days", "2"]
        command = [installed("openssl"), "req", "-x509", *CURVE, *files, *options]
        subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE)
        return pair


def settings(pair: Pair, **changes: Any) -> TlsSettings:
    """Settings of a server with this certificate."""
    return TlsSettings(**{"cert_file": str(pair.cert), "key_file": str(pair.key), **changes})
