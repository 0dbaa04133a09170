"""Asks clients who they are, and refuses what they may not do: 401 without credentials, 403 without the right."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ragwatch.web.access import RequestPolicy, required_rights
from ragwatch.web.authenticator import Authenticator, Refusal, certificate_names

USER = "ragwatch.user"
"""Key of the ASGI scope that holds the name of the user or token; absent for clients that did not say who they are."""
RIGHTS = "ragwatch.rights"
"""Key of the ASGI scope that holds the rights of the client, where a request needs any."""
CERTIFICATE = "ragwatch.certificate"
"""Key of the ASGI scope that holds the verified client certificate, as `SSLSocket.getpeercert` returns it."""


class Authentication:
    """Middleware that lets requests pass whose client has the rights that they need."""

    def __init__(self, app: ASGIApp, policy: RequestPolicy) -> None:
        self._app = app
        self._authenticator = Authenticator(policy.access, policy.refused)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        needed = required_rights(scope["method"], scope["path"])
        given = Headers(scope=scope).get("authorization")
        decision = await self._authenticator.decide(needed, given, certificate_names(scope.get(CERTIFICATE)))
        if decision.user is not None:
            scope[USER] = decision.user.name
        if needed:
            scope[RIGHTS] = decision.rights
        await (self._app if decision.refusal is None else _response(decision.refusal))(scope, receive, send)


def _response(refusal: Refusal) -> Response:
    response = PlainTextResponse(f"{refusal.text}\n", status_code=refusal.status)
    for challenge in refusal.challenges:
        response.headers.append("WWW-Authenticate", challenge)
    if refusal.retry_seconds is not None:
        response.headers["Retry-After"] = f"{refusal.retry_seconds}"
    return response
