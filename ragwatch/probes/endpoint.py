"""Options of HTTP endpoints, shared by all probes, and the templates of their requests.

A template is a JSON value with placeholders such as `{{ query }}` in its texts. A text that consists of `{{ k }}` alone
becomes the value itself, a number; inside a longer text the value is formatted. Inserted values are not expanded again,
so that a query may contain braces.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    model_validator,
)

from ragwatch.outgoing.addresses import forbidden, url_parts
from ragwatch.probes.expression import Column, valid_expression
from ragwatch.statistics.canary.definition import Direction

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[\x20-\x7e\t]{0,8192}")
_RESERVED_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}) | {
    "x-ragwatch-canary"
}

Expression = Annotated[str, AfterValidator(valid_expression)]


def _url(value: str) -> str:
    parts = url_parts(value)
    if parts is None:
        raise ValueError("is not a URL; write one such as http://127.0.0.1:8000/search")
    if parts.username is not None or parts.password is not None:
        raise ValueError("contains a name or password, which logs would show; use `bearer` or `headers` instead")
    if parts.port is None and ":" in parts.netloc.rpartition("]")[2]:
        raise ValueError("has an empty port; give a number or no colon")
    if forbidden(parts.hostname or ""):
        raise ValueError(
            f"{parts.hostname} is a metadata service, which probes must not query; give your retriever's URL"
        )
    return value


def _scalar(value: object) -> object:
    if not isinstance(value, str | int | float):
        raise ValueError("must be a text or a number")  # noqa: TRY004 - pydantic wants ValueError
    return value


def _header_text(value: SecretStr) -> SecretStr:
    if not _VALUE.fullmatch(value.get_secret_value()):
        raise ValueError("contains characters that a header cannot; write one line of ASCII")
    return value


def _header_names(headers: dict[str, object]) -> dict[str, object]:
    for name in headers:
        if not _HEADER.fullmatch(name):
            raise ValueError(f"{name[:40]!r} is not a header's name")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{name} is set by ragwatch; leave it out")
    return headers


Scalar = Annotated[str | int | float, BeforeValidator(_scalar)]
HeaderValue = Annotated[SecretStr, AfterValidator(_header_text)]


class EndpointOptions(BaseModel):
    """How to send a request over HTTP. Redirects are not followed, and proxies of the environment are not used."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    url: Annotated[str, AfterValidator(_url)] = Field(
        description="URL. Its host must not resolve to the address of a metadata service."
    )
    method: Literal["GET", "POST", "PUT"] = Field("POST", description="HTTP method.")
    headers: Annotated[dict[str, HeaderValue], AfterValidator(_header_names)] = Field(
        default_factory=dict, description="Headers, sent unchanged."
    )
    bearer: HeaderValue | None = Field(None, description="Sent as `Authorization: Bearer ...`.")
    params: dict[str, Scalar] = Field(
        default_factory=dict,
        description="Added to the query of the URL; texts may contain `{{ query }}` and `{{ k }}`.",
    )
    body: JsonValue = Field(
        None,
        description=(
            "Sent as JSON, with the same placeholders. A text that consists of `{{ k }}` alone becomes a number."
        ),
    )
    timeout: float = Field(
        10.0, gt=0.0, le=600.0, description="Seconds for the whole exchange, including name resolution and response."
    )
    verify: bool = Field(default=True, description="Whether the server's certificate is verified.")
    ca_file: Path | None = Field(
        None, description="PEM file of the certificate authorities; by default those of the system."
    )
    max_bytes: int = Field(5_000_000, ge=1, description="Maximum size of a response.")

    allowed_placeholders: ClassVar[frozenset[str]] = frozenset({"query", "k"})
    required_placeholders: ClassVar[frozenset[str]] = frozenset({"query"})

    @model_validator(mode="after")
    def _check_placeholders(self) -> Self:
        """Refuse unknown placeholders, and requests that would be the same for every query."""
        present = placeholders(self.params) | placeholders(self.body)
        for name in sorted(present - self.allowed_placeholders):
            raise ValueError(f"{{{{ {name} }}}} is not known; use {_listed(self.allowed_placeholders)}")
        if not present & self.required_placeholders:
            required = _listed(self.required_placeholders)
            raise ValueError(f"neither `body` nor `params` contains {required}; write it where the question goes")
        return self

    @model_validator(mode="after")
    def _check_body(self) -> Self:
        if self.method == "GET" and self.body is not None:
            raise ValueError("method GET sends no body; write `params`, or method POST")
        return self


def _listed(names: AbstractSet[str]) -> str:
    return " or ".join(f"{{{{ {name} }}}}" for name in sorted(names))


def _contexts(value: object) -> object:
    """Validate here, because pydantic would report an error for each member of a union."""
    if isinstance(value, str):
        return valid_expression(value)
    if not isinstance(value, dict) or not set(value) <= set(get_args(Column)):
        raise ValueError("must be JMESPath, or a mapping of `id`, `text` and `score` to one each")
    if not {"id", "text"} & set(value):
        raise ValueError("has nothing to identify contexts by; give `id`, `text` or both")
    for name, expression in value.items():
        try:
            valid_expression(str(expression))
        except ValueError as error:
            raise ValueError(f"{name} {error}") from error
    return value


Contexts = Annotated[str | dict[Column, str], BeforeValidator(_contexts)]


class RetrieverOptions(EndpointOptions):
    """An endpoint that returns passages."""

    contexts: Contexts = Field(
        description=(
            "JMESPath of a list of texts, or of objects with `id`, `text`, `score`; or one expression for each of "
            "these fields, for responses that return them as separate lists. A row that is null, or has neither "
            "id nor text, fails the canary; `hits[?id]` leaves such rows out."
        )
    )
    score: Direction | None = Field(
        None,
        description=(
            "Meaning of scores: `similarity` (more is better) or `distance` (less is better). Without it scores "
            "are displayed but not compared."
        ),
    )
    concurrency: int = Field(4, ge=1, le=64, description="Maximum number of concurrent queries.")


_PLACEHOLDER = re.compile(r"\{\{\s*(\w{1,40})\s*\}\}")


def fill(template: object, values: Mapping[str, object]) -> Any:  # noqa: ANN401 - of the kind of the template
    """Fill in the placeholders of a template.

    >>> fill({"q": "{{ query }}", "k": "{{ k }}", "note": "first {{ k }}"}, {"query": "why?", "k": 5})
    {'q': 'why?', 'k': 5, 'note': 'first 5'}
    """
    if isinstance(template, Mapping):
        return {key: fill(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill(value, values) for value in template]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template.strip())
    return values[whole[1]] if whole else _PLACEHOLDER.sub(lambda match: _formatted(values[match[1]]), template)


def placeholders(template: object) -> AbstractSet[str]:
    """Return the names of the placeholders in a template.

    >>> sorted(placeholders([{"q": "{{ query }} {{k}}"}]))
    ['k', 'query']
    """
    if isinstance(template, Mapping):
        return frozenset().union(*map(placeholders, template.values()))
    if isinstance(template, list | tuple):
        return frozenset().union(*map(placeholders, template))
    return frozenset(_PLACEHOLDER.findall(template)) if isinstance(template, str) else frozenset()


def _formatted(value: object) -> str:
    """Format a value inside a text: passages separated by a blank line, a vector as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return "\n\n".join(value)
    return orjson.dumps(value).decode()
