"""The section `web`: address of the HTTP server, and who may do what over it."""

import re
from importlib.util import find_spec
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from ragwatch.config.options import FilePath, FrozenOptions, Name, must
from ragwatch.ports.sources import PATTERN, checked_port, host_of, is_loopback

MIN_TOKEN_CHARS = 16
RightName = Literal["metrics", "pages", "write", "ingest"]

_DIGEST = re.compile(r"sha256:[0-9a-fA-F]{64}")
_TOKEN = re.compile(rf"[!-~]{{{MIN_TOKEN_CHARS},512}}")  # what a header can carry
_TRACE_URL = re.compile(  # the mark is not in the host
    r"https?://[^\s{}/?#\\]+[/?#][^\s{}\\]*\{trace_id\}[^\s{}\\]*"
)
_WILDCARD_HOSTS = frozenset({"0.0.0.0", "[::]", "::"})  # noqa: S104 - nothing is bound; links need a real host
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")


def _check_token(token: SecretStr) -> SecretStr:
    """Check the shape of a token; messages do not show it."""
    text = token.get_secret_value()
    if text.startswith("sha256:"):
        if not _DIGEST.fullmatch(text):
            raise ValueError(
                "a hash is sha256: and 64 hexadecimal digits, as `printf %s TOKEN | sha256sum` prints them"
            )
    elif not _TOKEN.fullmatch(text):
        raise ValueError(
            f"is not a token of {MIN_TOKEN_CHARS} to 512 characters without spaces; "
            "make one with `openssl rand -hex 32`"
        )
    return token


def _check_host(host: str) -> str:
    if not _HOST.fullmatch(host):
        raise ValueError(f"{host!r} is not a host name; write the name alone, without scheme, port and *")
    return host.lower().strip("[]")


_TraceUrl = Annotated[
    str,
    must(
        lambda url: url.isprintable() and _TRACE_URL.fullmatch(url),
        "is not an address with {{trace_id}} once after the host; write https://traces.example.org/{{trace_id}}",
    ),
]
_Mcp = Annotated[
    bool,
    must(
        lambda wanted: not wanted or find_spec("mcp"),
        "needs the extra `mcp`; run pip install 'ragwatch-exporter[mcp]'",
    ),
]


class TokenOptions(FrozenOptions):
    """A bearer token: what it is called in logs, the token or its hash, and its rights."""

    name: Name = Field(description="Name of the token in logs.")
    token: Annotated[SecretStr, AfterValidator(_check_token)] = Field(
        description="The token, such as file:PATH, or sha256:HEX for its hash."
    )
    rights: tuple[RightName, ...] = Field(description="Rights that the token gives.")


class WebOptions(FrozenOptions):
    """Address of the HTTP server for metrics, pages and API, and who may do what over it."""

    listen: Annotated[str, AfterValidator(checked_port)] = Field(
        "127.0.0.1:10477",
        pattern=PATTERN,
        description="Address of /metrics and the pages. At another one than loopback ragwatch starts only with users "
        "or tokens, or if `open` says what everybody may do.",
    )
    external_url: str | None = Field(
        None,
        pattern=r"^https?://",
        description="URL under which others reach the pages, for links in alerts and the allowed Host header.",
    )
    trace_url: _TraceUrl | None = Field(
        None, description="Link from an answer to its trace: https://tempo.example.org/trace/{trace_id}."
    )
    hosts: tuple[Annotated[str, AfterValidator(_check_host)], ...] = Field(
        (), description="More names that are allowed in the Host header, such as that of a Kubernetes Service."
    )
    config_file: FilePath | None = Field(
        None,
        description="TLS, users and headers in the format of Prometheus' exporters (`promtool check web-config`). Read "
        "again when it or a certificate changes.",
    )
    open: tuple[RightName, ...] = Field(
        (),
        description="Rights of everybody, without credentials: metrics, pages (texts), write, ingest. On loopback "
        "without users and tokens: all.",
    )
    users: dict[str, tuple[RightName, ...]] = Field(
        default_factory=dict,
        description="Rights of users of config_file, or of names in client certificates: {prometheus: [metrics]}. "
        "Without this key every user has all; with it, users without an entry have [metrics].",
    )
    tokens: tuple[TokenOptions, ...] = ()
    mcp: _Mcp = Field(
        False,  # noqa: FBT003 - the default
        description="Whether assistants are answered at /mcp, with the right pages; needs the extra `mcp`.",
    )

    @property
    def host(self) -> str:
        """Name or address on which the server listens, without its port."""
        return host_of(self.listen)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect.

        >>> WebOptions(listen="[::1]:80").is_local, WebOptions(listen="0.0.0.0:80").is_local
        (True, False)
        """
        return is_loopback(self.listen)

    @property
    def pages(self) -> str | None:
        """Address of the pages that others can open, without a slash at its end; None if only this machine can.

        >>> WebOptions(listen="rag:80").pages, WebOptions(listen="127.0.0.1:80").pages
        ('http://rag:80', None)
        """
        if self.external_url is not None:
            return self.external_url.rstrip("/")
        return None if _is_local(self.host) or self.host in _WILDCARD_HOSTS else f"http://{self.listen}"


def is_local(url: str) -> bool:
    """Whether an address is a loopback one, which leads each reader to their own machine.

    >>> is_local("http://127.0.0.1:10477"), is_local("https://ragwatch.example.com"), is_local("http://127.example.com")
    (True, False, False)
    """
    return _is_local(urlsplit(url).hostname or "")


def _is_local(host: str) -> bool:
    name = host.strip("[]").lower()
    return name.endswith(".localhost") or is_loopback(f"[{name}]:0")
