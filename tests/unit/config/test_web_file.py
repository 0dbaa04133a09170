"""The web configuration file: what promtool accepts is accepted, what is wrong is named by its key."""

from pathlib import Path

import pytest
from support.certificates import Authority
from support.programs import promtool
from support.sentences import written_and_said

from ragwatch.config.web_file import WebFile, load_web_file
from ragwatch.errors import ConfigError

HASH = "$2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze"
VERIFIED = "client_auth_type: RequireAndVerifyClientCert"
PAIR = "cert_file: server.crt, key_file: server.key"
ACCEPTED = {
    "empty": "",
    "comments": "# users:\n\n  # none yet\n",
    "users": f"basic_auth_users:\n  alice: {HASH}\n  17: {HASH.replace('$2y', '$2b')}\n",
    "pair": f"tls_server_config: {{{PAIR}}}",
    "nulls": "tls_server_config:\nbasic_auth_users:\n",
    "clients": f"tls_server_config: {{{PAIR}, {VERIFIED}, client_ca_file: authority.crt}}",
    "asked": f"tls_server_config: {{{PAIR}, client_auth_type: RequestClientCert}}",
    "versions": f"tls_server_config: {{{PAIR}, min_version: TLS10, max_version: TLS12}}",
    "suites": (
        f"tls_server_config: {{{PAIR}, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256],"
        " curve_preferences: [X25519, CurveP256], prefer_server_cipher_suites: false}"
    ),
    "headers": (
        "http_server_config:\n  http2: false\n  headers: {X-XSS-Protection: 0, X-Frame-Options: deny,"
        " Strict-Transport-Security: max-age=300}\n"
    ),
}
WRONG, STRICTER = (dict(written_and_said(f"configs/web_{name}.txt")) for name in ("wrong", "stricter"))
NEWER = {
    "inline": "tls_server_config: {cert: PEM, key: PEM}",
    "names": f"tls_server_config: {{{PAIR}, {VERIFIED}, client_allowed_sans: [a, 1]}}",
    "rate": "rate_limit: {interval: 1s, burst: 20}",
    "no rate": "rate_limit: {interval: 0, burst: 20}",
}


def read(folder: Path, text: str) -> WebFile:
    """Read a text as a web configuration file."""
    path = folder / "web.yml"
    path.write_text(text)
    return load_web_file(path)


@pytest.mark.parametrize("text", [*ACCEPTED.values(), *NEWER.values()], ids=[*ACCEPTED, *NEWER])
def test_what_the_reference_allows_is_accepted(tmp_path: Path, text: str) -> None:
    """Each section of the reference of the exporter-toolkit is read."""
    assert isinstance(read(tmp_path, text), WebFile)


@pytest.mark.parametrize(("text", "expected"), [*WRONG.items(), *STRICTER.items()])
def test_what_is_wrong_is_named(tmp_path: Path, text: str, expected: str) -> None:
    """The error begins with the file and the key, says what to write instead, and shows no hash."""
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith("web.yml: ")
    assert expected in str(raised.value)
    assert "secret" not in str(raised.value)


def test_promtool_agrees(tmp_path: Path) -> None:
    """`promtool check web-config` accepts what we accept, and refuses what we call wrong."""
    Authority(tmp_path).issue("server", "server")
    files = []
    for number, text in enumerate([*ACCEPTED.values(), *WRONG]):
        files.append(tmp_path / f"{number}.yml")
        files[-1].write_text(text)
    _, said = promtool("check", "web-config", *files)
    assert [path for path in files if f"{path} SUCCESS" in said] == files[: len(ACCEPTED)], said


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """A file may be moved with its certificates; absolute paths stay; one that cannot be read is named."""
    tls = read(tmp_path, "tls_server_config: {cert_file: a/server.crt, key_file: /etc/server.key}").tls_server_config
    assert (tls.cert_file, tls.key_file, tls.client_ca_file) == (f"{tmp_path}/a/server.crt", "/etc/server.key", "")
    with pytest.raises(ConfigError, match=r"gone\.yml: cannot be read"):
        load_web_file(tmp_path / "gone.yml")


def test_hashes_and_keys_are_masked(tmp_path: Path) -> None:
    """A file that is printed shows neither password hashes nor an inline key."""
    file = read(tmp_path, f"basic_auth_users: {{a: {HASH}}}\ntls_server_config: {{cert: PEM, key: PRIVATE}}")
    assert HASH not in repr(file)
    assert "PRIVATE" not in repr(file)
