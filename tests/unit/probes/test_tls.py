"""Probe `http` over TLS: the certificate is checked against the name, although an address is connected to."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.retrievers import FaultyRetriever, asked, options, serving

from ragwatch.errors import ConfigError
from ragwatch.probes.http import Options, build
from ragwatch.statistics.canary.definition import Failure

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes the certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the name localhost, and for no address, signed by itself; its key lies beside it."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem")]
    subprocess.run([*words, "-out", str(made)], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def address(certificate: Path) -> Iterator[str]:
    """Where a retriever speaks TLS."""
    key = certificate.with_name("key.pem")
    with serving(*FaultyRetriever().routes(), ssl_certfile=certificate, ssl_keyfile=key) as address:
        yield address


@pytest.mark.parametrize(
    ("host", "trusts", "verify", "is_good"),
    [
        ("localhost", True, True, True),  # `ca_file` makes the server's own authority good, for its name
        ("127.0.0.1", True, True, False),  # asked by address, the server cannot prove that it is one
        ("localhost", False, True, False),  # an authority that nobody knows
        ("127.0.0.1", False, False, True),  # a person's decision
    ],
)
async def test_certificates_are_checked(
    address: str, certificate: Path, host: str, *, trusts: bool, verify: bool, is_good: bool
) -> None:
    """The authority is the configured one, and the name is the one that was asked for."""
    parts = {"verify": verify, **({"ca_file": certificate} if trusts else {})}
    result = await asked(build(options(address.replace("127.0.0.1", host), **parts), name="docs"))
    assert (result.failure, len(result.hits)) == ((None, 2) if is_good else (Failure.CONNECT, 0))
    assert is_good or "CERTIFICATE_VERIFY_FAILED" in result.detail


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_unreadable_authority_is_a_configuration_error(tmp_path: Path, content: str | None) -> None:
    """Missing or no PEM: told at the start, not at every question."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    made = Options(url="https://localhost:1/", body="{{ query }}", contexts="hits", ca_file=path)
    with pytest.raises(ConfigError, match=r"ca_file: .*ca\.pem cannot be read"):
        build(made, name="docs")
