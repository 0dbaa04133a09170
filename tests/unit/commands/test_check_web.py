"""`ragwatch check` says who may do what over the web, and warns where passwords can be read on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.certificates import Authority

from ragwatch.commands.check_web import check_web
from ragwatch.commands.finding import OK, WARNING
from ragwatch.config.web import WebOptions
from ragwatch.errors import ConfigError

CI = {"name": "ci", "token": "0123456789abcdef", "rights": ["write"]}
HASH = "$2y$04$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze"
EVERYWHERE = "0.0.0.0:10477"
TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"


@pytest.mark.parametrize(
    ("web", "text", "state", "detail"),
    [
        ({}, None, OK, "HTTP; nobody is asked for a password: ingest, metrics, pages, write"),
        ({"tokens": [CI]}, None, OK, "HTTP; 1 tokens; without them: nothing"),
        ({"tokens": [CI], "open": ["metrics"]}, TLS, OK, "TLS; 1 tokens; without them: metrics"),
        ({"listen": EVERYWHERE}, f"{TLS}basic_auth_users: {{a: {HASH}}}", OK, "TLS; 1 users; without them: nothing"),
        ({"listen": EVERYWHERE, "open": ["pages"]}, None, OK, "HTTP; nobody is asked for a password: metrics, pages"),
        ({"listen": EVERYWHERE, "tokens": [CI]}, None, WARNING, "HTTP; 1 tokens; without them: nothing; passwords and"),
        (
            {"listen": EVERYWHERE},
            TLS.replace("}", ", client_auth_type: VerifyClientCertIfGiven, client_ca_file: authority.crt}"),
            OK,
            "TLS; client certificates; without them: nothing",
        ),
    ],
)
def test_who_may_do_what(tmp_path: Path, web: dict[str, Any], text: str | None, state: str, detail: str) -> None:
    """Transport, who is asked, and what is open to the others."""
    if text is not None:
        Authority(tmp_path).issue("server", "server")
        (tmp_path / "web.yml").write_text(text)
        web = {**web, "config_file": tmp_path / "web.yml"}
    finding = check_web("web", WebOptions.model_validate(web), ())
    assert (finding.state, finding.detail[: len(detail)]) == (state, detail)


def test_an_open_address_is_a_failure() -> None:
    """What does not start does not pass the check."""
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        check_web("web", WebOptions(listen=EVERYWHERE), ())
