"""Adds entity tags to pages and JSON responses, and answers 304 to clients that have the same content.

No cache stores responses (`Cache-Control: no-store`): tags are for clients of the API that keep them themselves.
"""

import re
from hashlib import blake2b

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TYPES = ("application/json", "text/html")
_METHODS = ("GET", "HEAD")
_CLOCK = re.compile(rb'"(?:now|age_seconds|since_seconds)":[0-9][0-9.eE+-]*')
_HAS_CLOCK = re.compile(rb'\{[^\[{]{0,1000}"now":[0-9]')  # in the outermost object


class EntityTags:
    """Middleware that tags complete responses. Streamed ones and errors have no tag."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["method"] not in _METHODS:
            await self._app(scope, receive, send)
            return
        listed = Headers(scope=scope).get("if-none-match", "").split(",")
        known = {one.strip().removeprefix("W/") for one in listed}
        start: Message | None = None
        unchanged = False

        async def send_tagged(message: Message) -> None:
            nonlocal start, unchanged
            if message["type"] == "http.response.start" and _is_tagged(message):
                start = message  # held back until the body is known
                return
            if start is not None:
                first, start = start, None
                if not message.get("more_body", False):
                    tag = entity_tag(message.get("body", b""))
                    headers = MutableHeaders(scope=first)
                    headers["ETag"] = tag
                    unchanged = not known.isdisjoint(("*", tag.removeprefix("W/")))  # by weak comparison
                    if unchanged:
                        del headers["content-length"]
                        first["status"] = 304
                await send(first)
            await send({**message, "body": b""} if unchanged else message)

        await self._app(scope, receive, send_tagged)


def entity_tag(body: bytes) -> str:
    """Returns the weak tag of a response: bodies that differ only in the time of the request have the same one.

    >>> entity_tag(b'{"now":1.5,"state":"good"}') == entity_tag(b'{"now":2.5,"state":"good"}')
    True
    >>> entity_tag(b'{"now":1.5,"state":"good"}') == entity_tag(b'{"now":1.5,"state":"bad"}')
    False
    """
    content = _CLOCK.sub(b"", body) if _HAS_CLOCK.match(body) else body
    return f'W/"{blake2b(content, digest_size=16).hexdigest()}"'


def _is_tagged(message: Message) -> bool:
    """Whether a response is complete and of our own: streams, which have no length, begin at once."""
    headers = Headers(raw=message["headers"])
    is_page = headers.get("content-type", "").startswith(_TYPES)
    return message["status"] == 200 and is_page and "content-length" in headers
