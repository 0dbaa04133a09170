"""HTTP client of probes: sends one request and returns its JSON response. The only module that imports httpx."""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
import orjson

from ragwatch import __version__
from ragwatch.errors import ConfigError
from ragwatch.formats.record import decode_body
from ragwatch.outgoing.client import ForbiddenAddressError, async_client
from ragwatch.probes.endpoint import EndpointOptions, fill
from ragwatch.probes.expression import ExchangeError
from ragwatch.statistics.canary.definition import Failure


class HttpExchange:
    """Sends requests to one endpoint. Its client checks addresses and follows no redirects.

    Args:
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
            raise ConfigError(f"url: {endpoint.url!r} is not a URL") from error
        self._client = async_client(
            httpx,
            verify=_tls(endpoint),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # cookies could pin the probe to one replica
            timeout=None,
        )

    async def send(self, values: Mapping[str, object]) -> object:
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
            if isinstance(error.__cause__, ForbiddenAddressError):
                raise ExchangeError(Failure.FORBIDDEN_ADDRESS, str(error)) from error
            raise ExchangeError(Failure.CONNECT, _message(error)) from error
        try:
            return decode_body(content)
        except orjson.JSONDecodeError as error:
            raise ExchangeError(Failure.NOT_JSON, f"a reply of {len(content)} bytes is not JSON") from error

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _reply(self, values: Mapping[str, object]) -> bytes:
        try:
            request = self._request(values)
        except (TypeError, ValueError, httpx.InvalidURL) as error:  # half of a surrogate pair, a URL too long
            raise ExchangeError(
                Failure.UNSENDABLE, f"no request can be made of the query: {_message(error)}"
            ) from error
        response = await self._client.send(request, stream=True)
        try:
            return await self._content(response)
        finally:
            await response.aclose()

    def _request(self, values: Mapping[str, object]) -> httpx.Request:
        endpoint = self._endpoint
        request: httpx.Request = self._client.build_request(
            endpoint.method,
            self._url.copy_merge_params(fill(endpoint.params, values)),
            headers=self._headers(),
            content=None if endpoint.body is None else orjson.dumps(fill(endpoint.body, values)),
        )
        return request

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": f"ragwatch/{__version__}"}
        if self._endpoint.body is not None:
            headers["Content-Type"] = "application/json"
        headers |= {name: value.get_secret_value() for name, value in self._endpoint.headers.items()}
        if self._endpoint.bearer is not None:
            headers["Authorization"] = f"Bearer {self._endpoint.bearer.get_secret_value()}"
        # Not compressed, so that decompression cannot exceed `max_bytes`.
        return headers | {
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
