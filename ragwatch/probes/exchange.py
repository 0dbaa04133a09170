"""HTTP client of probes: sends one request and returns its JSON response. The only module that imports httpx."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
import orjson

from ragwatch import __version__
from ragwatch.core.canary.definition import Failure
from ragwatch.errors import ConfigError
from ragwatch.formats.record import decode_body
from ragwatch.probes.addresses import forbidden, resolve
from ragwatch.probes.endpoint import EndpointOptions
from ragwatch.probes.failure import ExchangeError
from ragwatch.probes.template import fill

_PORTS = {"http": 80, "https": 443}


class HttpExchange:
    """Sends requests to one endpoint. Connects to the very address that was checked, which prevents DNS rebinding.

    Args:
        endpoint: Options of the endpoint.
        mark: Returns what is sent as `X-Ragwatch-Canary`; a service that logs it keeps canaries out of its traffic.

    Raises:
        ConfigError: `url` is invalid, or `ca_file` cannot be read.
    """

    def __init__(self, endpoint: EndpointOptions, *, mark: Callable[[], str]) -> None:
        self._endpoint = endpoint
        self._mark = mark
        try:
            self._url = httpx.URL(endpoint.url)
        except httpx.InvalidURL as error:
            raise ConfigError(f"url: {endpoint.url!r} is not a URL: {error}") from error
        self._host = self._url.raw_host.decode("ascii")  # as DNS and TLS require
        self._client = httpx.AsyncClient(
            verify=_tls(endpoint),
            follow_redirects=False,
            trust_env=False,  # a proxy would resolve names itself
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # cookies could pin the probe to one replica
            timeout=None,  # noqa: S113 - `asyncio.timeout` below limits the whole exchange
        )

    async def send(self, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
        """Fill the placeholders of the request with `values`, send it, and return the decoded response.

        Raises:
            ExchangeError: There is no usable response; its reason is counted.
        """
        try:
            async with asyncio.timeout(self._endpoint.timeout):
                content = await self._reply(values)
        except TimeoutError as error:
            raise ExchangeError(Failure.TIMEOUT, f"no reply within {self._endpoint.timeout:g} s") from error
        except (httpx.TransportError, OSError) as error:
            raise ExchangeError(Failure.CONNECT, _message(error)) from error
        try:
            return decode_body(content)
        except orjson.JSONDecodeError as error:
            raise ExchangeError(Failure.NOT_JSON, f"a reply of {len(content)} bytes is not JSON") from error

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _reply(self, values: Mapping[str, Any]) -> bytes:
        addresses = await resolve(self._host, self._url.port or _PORTS[self._url.scheme])
        if any(map(forbidden, addresses)):
            raise ExchangeError(Failure.FORBIDDEN_ADDRESS, f"{self._host} is at the address of a metadata service")
        for address in addresses[:-1]:
            try:
                return await self._ask(address, values)
            except httpx.ConnectError:  # try the next one: localhost is ::1 and 127.0.0.1
                continue
        return await self._ask(addresses[-1], values)

    async def _ask(self, address: str, values: Mapping[str, Any]) -> bytes:
        try:
            request = self._request(address, values)
        except (TypeError, ValueError, httpx.InvalidURL) as error:  # half of a surrogate pair, a URL too long
            raise ExchangeError(
                Failure.UNSENDABLE, f"no request can be made of the query: {_message(error)}"
            ) from error
        response = await self._client.send(request, stream=True)
        try:
            return await self._content(response)
        finally:
            await response.aclose()

    def _request(self, address: str, values: Mapping[str, Any]) -> httpx.Request:
        endpoint = self._endpoint
        return self._client.build_request(
            endpoint.method,
            self._url.copy_with(host=address).copy_merge_params(fill(endpoint.params, values)),
            headers=self._headers(),
            content=None if endpoint.body is None else orjson.dumps(fill(endpoint.body, values)),
            extensions={"sni_hostname": self._host},  # the certificate is the name's, not the address's
        )

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": f"ragwatch/{__version__}"}
        if self._endpoint.body is not None:
            headers["Content-Type"] = "application/json"
        headers |= {name: value.get_secret_value() for name, value in self._endpoint.headers.items()}
        if self._endpoint.bearer is not None:
            headers["Authorization"] = f"Bearer {self._endpoint.bearer.get_secret_value()}"
        # Not compressed, so that decompression cannot exceed `max_bytes`.
        return headers | {
            "Host": self._url.netloc.decode("ascii"),
            "Accept-Encoding": "identity",
            "X-Ragwatch-Canary": self._mark(),
        }

    async def _content(self, response: httpx.Response) -> bytes:
        if response.is_redirect:
            raise ExchangeError(Failure.REDIRECT, f"HTTP {response.status_code} to elsewhere, which is not followed")
        if not response.is_success:
            raise ExchangeError(Failure.STATUS, f"HTTP {response.status_code}")
        max_bytes, content = self._endpoint.max_bytes, bytearray()
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > max_bytes:
                raise ExchangeError(Failure.TOO_LARGE, f"a reply of more than {max_bytes} bytes")
        return bytes(content)


def _tls(endpoint: EndpointOptions) -> ssl.SSLContext | bool:
    if not endpoint.verify or not endpoint.url.startswith("https:"):
        return False
    try:
        return ssl.create_default_context(cafile=endpoint.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"ca_file: {endpoint.ca_file} cannot be read; give a file of PEM certificates") from error


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
