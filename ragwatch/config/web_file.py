"""Reads `web.config_file`: TLS, users and headers, in the format of Prometheus' exporter-toolkit.

A file that `promtool check web-config` accepts is accepted here, with these differences: TLS below 1.2 is not spoken,
whatever `min_version` says; certificates that nobody verifies (`RequireAnyClientCert`) are refused; HTTP/2 is not
spoken; several `curve_preferences` stand for the default of OpenSSL, whose curves they are.
"""

import re
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from ragwatch.config.options import FrozenOptions, must, reject_boolean
from ragwatch.config.text import load_text, naming
from ragwatch.config.validation import read_model
from ragwatch.errors import ConfigError
from ragwatch.model.units import duration_seconds

_HASH = re.compile(r"\$2[abxy]?\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_HEADERS: dict[str, tuple[str, ...]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
"""Headers that may be set, and their values; none for any value."""
_UNVERIFIED = frozenset({"RequireAnyClientCert", "RequireClientCert"})
REQUIRED = "RequireAndVerifyClientCert"
ClientAuth = Literal[
    "", "NoClientCert", "RequestClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert",
    "RequireAnyClientCert", "RequireClientCert",
]  # fmt: skip
Version = Literal["TLS10", "TLS11", "TLS12", "TLS13"]
_VERSIONS = get_args(Version)
Curve = Literal["CurveP256", "CurveP384", "CurveP521", "X25519"]
_SUITES = (
    "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
    *(
        f"TLS_{exchange}_WITH_{cipher}"
        for exchange in ("ECDHE_ECDSA", "ECDHE_RSA")
        for cipher in (
            "AES_128_CBC_SHA", "AES_256_CBC_SHA", "AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"
        )
    ),
    *(f"TLS_RSA_WITH_{cipher}" for cipher in ("AES_128_CBC_SHA", "AES_256_CBC_SHA")),
    *(f"TLS_RSA_WITH_{cipher}" for cipher in ("AES_128_GCM_SHA256", "AES_256_GCM_SHA384")),
)  # fmt: skip


def _text(value: object) -> object:
    """Read a number as the text that it is written as, as Go does."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


_User = Annotated[
    str,
    BeforeValidator(_text),
    must(lambda name: name and ":" not in name, "a user name is not empty and has no colon"),
]
_PasswordHash = Annotated[
    SecretStr,
    must(
        lambda value: _HASH.fullmatch(value.get_secret_value()),
        "is not a bcrypt hash; write what `htpasswd -nBC 10 USER` prints after the colon",
    ),
]
_Suite = Annotated[str, must(_SUITES.__contains__, f"{{value!r}} is not known; use one of: {', '.join(_SUITES)}")]


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if name not in _HEADERS:
            raise ValueError(f"{name!r} cannot be set; use one of: {', '.join(_HEADERS)}")
        if _HEADERS[name] and value not in _HEADERS[name]:
            raise ValueError(f"{name} is {value!r}; write {' or '.join(_HEADERS[name])}")
        if not value.isprintable() or not value.isascii():
            raise ValueError(f"{name} holds a character that a header cannot carry; write it in ASCII on one line")
    return headers


def _interval_seconds(value: object) -> object:
    """Convert a duration of Go; 0 and "" for none."""
    return 0.0 if value in (0, "", "0", "0s") else duration_seconds(value)


class TlsServerConfig(FrozenOptions):
    """The section `tls_server_config`."""

    cert: str = ""
    key: SecretStr = SecretStr("")
    client_ca: str = ""
    cert_file: str = ""
    key_file: str = ""
    client_auth_type: ClientAuth = ""
    client_ca_file: str = ""
    client_allowed_sans: tuple[Annotated[str, BeforeValidator(_text)], ...] | None = None
    min_version: Version = "TLS12"
    max_version: Version = "TLS13"
    cipher_suites: tuple[_Suite, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[Curve, ...] = ()

    @property
    def is_on(self) -> bool:
        """Whether the server speaks TLS."""
        names = ("cert", "cert_file", "key_file", "client_ca", "client_ca_file", "client_auth_type")
        return bool(self.key.get_secret_value()) or any(getattr(self, name) for name in names)

    @property
    def verifies_clients(self) -> bool:
        """Whether a certificate of a client is verified, where it has one."""
        return self.is_on and self.client_auth_type in (REQUIRED, "VerifyClientCertIfGiven")


class HttpServerConfig(FrozenOptions):
    """The section `http_server_config`. `http2` is read and has no effect."""

    http2: bool = True
    headers: Annotated[dict[str, Annotated[str, BeforeValidator(_text)]], AfterValidator(_check_headers)] = Field(
        default_factory=dict
    )


class RateLimitOptions(FrozenOptions):
    """The section `rate_limit`: a token bucket over all requests."""

    interval: Annotated[float, BeforeValidator(_interval_seconds), BeforeValidator(reject_boolean), Field(ge=0.0)] = 0.0
    burst: int = Field(0, ge=0)


class WebFile(FrozenOptions):
    """A web configuration file; one without any section has no effect."""

    tls_server_config: TlsServerConfig = TlsServerConfig()
    http_server_config: HttpServerConfig = HttpServerConfig()
    basic_auth_users: dict[_User, _PasswordHash] = Field(default_factory=dict)
    rate_limit: RateLimitOptions = RateLimitOptions()

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, data: object) -> object:
        return _without_nulls(data)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def load_web_file(path: Path) -> WebFile:
    """Read and validate a web configuration file; paths in it become absolute. `ConfigError` names file and keys."""
    data = {} if _is_blank(path) else load_text(path)
    with naming(path.name):
        file = read_model(WebFile, data, "")
    if (fault := _fault(file)) is not None:
        raise ConfigError(f"{path.name}: {fault}")
    tls, folder = file.tls_server_config, path.absolute().parent
    names = ("cert_file", "key_file", "client_ca_file")
    absolute = {name: str(folder / getattr(tls, name)) for name in names if getattr(tls, name)}
    return file.model_copy(update={"tls_server_config": tls.model_copy(update=absolute)})


def _is_blank(path: Path) -> bool:
    """Whether a file holds nothing but comments, which configures nothing."""
    try:
        with path.open("rb") as lines:
            return all(not line.strip() or line.lstrip().startswith(b"#") for line in lines)
    except OSError:  # `load_text` says what is wrong
        return False


def _fault(file: WebFile) -> str | None:
    """What single keys do not show; None if there is nothing wrong."""
    tls, limit = file.tls_server_config, file.rate_limit
    if limit.interval and not limit.burst:
        return "rate_limit.burst: is 0, so that no request would be answered; write 1 or more"
    if _VERSIONS.index(tls.max_version) < _VERSIONS.index("TLS12"):
        return f"tls_server_config.max_version: {tls.max_version} is not secure; write TLS12 or TLS13"
    if _VERSIONS.index(tls.max_version) < _VERSIONS.index(tls.min_version):
        return "tls_server_config.max_version: is below min_version; raise it"
    if tls.client_allowed_sans is not None and tls.client_auth_type not in {*_UNVERIFIED, REQUIRED}:
        return f"tls_server_config.client_allowed_sans: needs client_auth_type: {REQUIRED}; write it, or leave this out"
    return _fault_of_files(tls) if tls.is_on else None


def _fault_of_files(tls: TlsServerConfig) -> str | None:
    where = "tls_server_config"
    if not tls.cert_file and not tls.cert:
        return f"{where}.cert_file: is missing; write the file that holds the certificate of the server"
    if not tls.key_file and not tls.key.get_secret_value():
        return f"{where}.key_file: is missing; write the file that holds the private key of the certificate"
    if tls.client_auth_type in _UNVERIFIED:
        return (
            f"{where}.client_auth_type: {tls.client_auth_type} takes the certificate of anybody, which proves nothing; "
            f"write {REQUIRED}, and the authority of your clients under client_ca_file"
        )
    if (tls.client_ca_file or tls.client_ca) and tls.client_auth_type in ("", "NoClientCert"):
        return f"{where}.client_ca_file: has no effect without client_auth_type; write client_auth_type: {REQUIRED}"
    return None
