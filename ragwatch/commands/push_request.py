"""The command that sends one answer to a source of kind `push`."""

from __future__ import annotations

import shlex

from ragwatch.config.web import WebOptions

EXAMPLE = '{"id": "1", "question": "Who wrote Faust?", "contexts": ["Faust is by Goethe."], "answer": "Goethe."}'
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - nothing is bound


def push_request(web: WebOptions, source: str | None, *, token: bool) -> str:
    r"""Return a curl command.

    >>> push_request(WebOptions(), "app", token=True)[-46:]
    "'http://127.0.0.1:10477/v1/samples?source=app'"

    Args:
        web: Address of the server.
        source: Name of the source, where there are several.
        token: Whether a bearer token is needed.
    """
    port = web.listen.rpartition(":")[2]
    host = "localhost" if web.host in _WILDCARDS else f"[{web.host}]" if ":" in web.host else web.host
    address = (web.external_url or f"http://{host}:{port}").rstrip("/") + "/v1/samples"
    if source is not None:
        address += f"?source={source}"
    authorization = '-H "Authorization: Bearer $TOKEN" ' if token else ""
    return f"curl {authorization}-H 'Content-Type: application/json' -d {shlex.quote(EXAMPLE)} {shlex.quote(address)}"
