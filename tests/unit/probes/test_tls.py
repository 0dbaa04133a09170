"""Probe `http` over TLS: the certificate is checked against the name, although an address is connected to."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.retrievers import FaultyRetriever, serving

from ragwatch.core.canary.definition import Failure, Retrieved
from ragwatch.errors import ConfigError
from ragwatch.probes.http import Options, build

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


async def asked(url: str, **parts: object) -> Retrieved:
    """One question to a retriever behind TLS."""
    whole = {"url": f"{url}/search", "body": {"query": "{{ query }}"}, "contexts": "hits"} | parts
    probe = build(Options.model_validate(whole), name="docs")
    result = await probe.ask("cats", 5)
    await probe.close()
    return result


async def test_a_named_authority_is_trusted(address: str, certificate: Path) -> None:
    """`ca_file` makes the server's own authority good, for its name."""
    result = await asked(address.replace("127.0.0.1", "localhost"), ca_file=certificate)
    assert (result.failure, len(result.hits)) == (None, 2)


async def test_a_certificate_of_another_name_is_refused(address: str, certificate: Path) -> None:
    """Asked by address, the server cannot prove that it is one."""
    result = await asked(address, ca_file=certificate)
    assert (result.failure, "CERTIFICATE_VERIFY_FAILED" in result.detail) == (Failure.CONNECT, True)


async def test_an_unknown_authority_is_refused(address: str) -> None:
    """Unless the configuration says otherwise."""
    result = await asked(address.replace("127.0.0.1", "localhost"))
    assert (result.failure, "CERTIFICATE_VERIFY_FAILED" in result.detail) == (Failure.CONNECT, True)


async def test_verification_can_be_turned_off(address: str) -> None:
    """As a person's decision."""
    assert (await asked(address, verify=False)).failure is None


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_unreadable_authority_is_a_configuration_error(tmp_path: Path, content: str | None) -> None:
    """Missing or no PEM: told at the start, not at every question."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    made = Options(url="https://localhost:1/", body="{{ query }}", contexts="hits", ca_file=path)
    with pytest.raises(ConfigError, match=r"ca_file: .*ca\.pem cannot be read"):
        build(made, name="docs")
