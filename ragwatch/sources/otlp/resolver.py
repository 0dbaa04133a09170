"""Finds the texts of documents that spans name by id only, at an HTTP endpoint of the service: `resolve.url`."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import quote

import orjson
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from ragwatch.errors import SourceError
from ragwatch.formats.record import decode_body
from ragwatch.formats.traces.documents import document, documents_in
from ragwatch.outgoing.addresses import checked_url, url_parts
from ragwatch.outgoing.client import Guard, TooLargeError, async_client
from ragwatch.sources.record_options import Size

if TYPE_CHECKING:
    from httpx import AsyncClient

_NOT_THERE = frozenset({404, 410})
_NO_SEGMENTS = frozenset({"", ".", ".."})  # ids with which a request would leave the folder of `url`


class ResolveOptions(BaseModel):
    """Where the text of a document is, given its id."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(
        description="URL of one document; `{id}` stands for its id. Answers with text, or JSON with a text."
    )
    bearer: SecretStr | None = Field(None, description="Bearer token, as `env:NAME` or `file:path`.")
    timeout_seconds: float = Field(2.0, gt=0, le=30, description="Timeout of one request.")
    max_seconds: float = Field(5.0, gt=0, le=60, description="Most seconds for all documents of one trace.")
    max_bytes: Size = Field(1 << 20, gt=0, description="Most bytes of one reply.")
    cached: int = Field(10_000, ge=0, description="How many texts are kept in memory.")

    @field_validator("url")
    @classmethod
    def _url(cls, url: str) -> str:
        parts = url_parts(url)
        if parts is None or "{id}" not in parts.path + "?" + parts.query:
            raise ValueError(
                f"{url!r} is not a URL with {{id}} in its path; write one such as http://docs:8000/chunks/{{id}}"
            )
        return checked_url(url)


class Resolver:
    """Asks for one document after the other; texts that were found are kept for later traces.

    Requests run in an event loop of its own, where each has a deadline: timeouts of the library are per byte.
    """

    def __init__(self, options: ResolveOptions) -> None:
        import httpx  # noqa: PLC0415 - slow to import, and only this option needs it

        self._options = options
        self._texts: OrderedDict[str, str] = OrderedDict()
        headers = {"Accept": "application/json, text/plain", "Accept-Encoding": "identity"}
        if options.bearer is not None:
            headers["Authorization"] = f"Bearer {options.bearer.get_secret_value()}"
        guard = Guard(httpx, max_bytes=options.max_bytes)
        self._client: AsyncClient = async_client(httpx, guard=guard, timeout=None, headers=headers)
        self._thread, self._loop = ThreadPoolExecutor(1, "resolve"), asyncio.Runner()

    def __call__(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of the documents that exist, by id. Raises SourceError: no answer, or none in time."""
        return self._thread.submit(self._loop.run, self._found(ids)).result()

    def close(self) -> None:
        """Close connections. A second call does nothing: a source closes when it refuses requests, and at the end."""
        if self._client.is_closed:
            return
        self._thread.submit(self._loop.run, self._client.aclose()).result()
        self._thread.submit(self._loop.close).result()
        self._thread.shutdown()

    async def _found(self, ids: Sequence[str]) -> dict[str, str]:
        texts = {}
        seconds = self._options.max_seconds
        try:
            async with asyncio.timeout(seconds):
                for name in ids:
                    text = self._texts.get(name) or await self._fetched(name)
                    if text:
                        texts[name] = self._texts[name] = text
                        self._texts.move_to_end(name)
        except TimeoutError:
            raise SourceError(f"resolve.url: no answer for all documents within {seconds:g} s") from None
        while len(self._texts) > self._options.cached:
            self._texts.popitem(last=False)
        return texts

    async def _fetched(self, name: str) -> str | None:
        if name in _NO_SEGMENTS:
            return None
        import httpx  # noqa: PLC0415 - the same

        address, seconds = self._options.url.replace("{id}", quote(name, safe="")), self._options.timeout_seconds
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                response = await self._client.get(address)
        except TimeoutError:
            if not timeout.expired():  # that of all documents
                raise
            raise SourceError(f"resolve.url: no whole reply within {seconds:g} s") from None
        except httpx.HTTPError as error:
            if isinstance(error.__cause__, TooLargeError):
                return None
            raise SourceError(f"resolve.url: {type(error).__name__}: {error}") from error
        if response.status_code in _NOT_THERE:
            return None
        if not response.is_success:
            raise SourceError(f"resolve.url: answered with HTTP {response.status_code}")
        return _text_of(response.content)


def _text_of(body: bytes) -> str | None:
    """The text in a reply: of a JSON object, of its first document, or the reply itself."""
    try:
        value = decode_body(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace").strip() or None
    if isinstance(value, str):
        return value or None
    one = document(value)
    if one is not None and one.text:
        return one.text
    documents = documents_in(value)
    return documents[0].text if documents else None
