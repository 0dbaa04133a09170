"""What `ragwatch check` says of addresses to listen on, who may do what there, and what was received."""

from __future__ import annotations

import errno
import shlex
import socket
from collections.abc import Iterable, Sequence

from ragwatch.commands.state_reader import stored_tallies
from ragwatch.config import Config
from ragwatch.config.web import WebOptions
from ragwatch.core.tally import Tally
from ragwatch.daemon.web_access import read_rules
from ragwatch.formats.traces.assemble import SWITCHES
from ragwatch.ports.receiving import GrpcListener, host_of, is_loopback
from ragwatch.sources.otlp import Options
from ragwatch.web import Access, Right


def traces_so_far(options: Options, config: Config) -> tuple[bool, str]:
    """Return whether all is well with the traces of a source, and what is known about them, as text for people."""
    if not may_send(read_rules(config.settings.web).access):
        return False, NOBODY_SENDS
    name = options.name
    outcomes = {labels[1]: count for labels, count in stored_tallies(config, Tally.TRACES).items() if labels[0] == name}
    if not outcomes:
        grpc = "" if options.grpc is None else f" and calls over gRPC at {options.grpc.listen}"
        return True, f"receives POST /v1/traces{grpc}; no request in a trace is complete yet"
    counts = ", ".join(f"{count:,.0f} {outcome}" for outcome, count in sorted(outcomes.items()))
    text = f"requests in traces: {counts}"
    silent = {labels[1]: count for labels, count in stored_tallies(config, Tally.SILENT).items() if labels[0] == name}
    advice = [
        f"{count:,.0f} hold no texts, because content capture is off: {SWITCHES[kind]}"
        for kind, count in sorted(silent.items())
        if kind in SWITCHES
    ]
    return not advice and bool(outcomes.get("assembled")), "; ".join((text, *advice))


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


NOBODY_SENDS = "nobody has the right ingest: give it to a token, as `web.tokens: [{name, token, rights: [ingest]}]`"


def address_state(listen: str, owner: str | None) -> tuple[bool, str]:
    """Return whether an address is free, and this as text for people.

    Args:
        listen: As `host:port`.
        owner: The process that has the state; None if none has.

    Raises:
        OSError: It cannot be listened on.
    """
    host = host_of(listen)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, int(listen.rpartition(":")[2])))
        except OSError as error:
            if owner is None or error.errno != errno.EADDRINUSE:
                raise
            return False, f"{listen} is in use, as it is while ragwatch runs (process {owner})"
    return True, f"{listen} is free"


def web_state(web: WebOptions, listeners: Sequence[GrpcListener] = ()) -> tuple[bool, str]:
    """Return whether credentials are safe on their way, and who may do what, as text for people.

    Args:
        web: Addresses and credentials.
        listeners: Addresses over gRPC.

    Raises:
        ConfigError: See `read_rules`.
    """
    rules = read_rules(web, listeners)
    access = rules.access
    transport = "HTTP" if rules.tls is None else "TLS"
    if not access.has_credentials:
        return True, f"{transport}; nobody is asked for a password: {_rights(access.anonymous)}"
    who = [
        f"{len(access.users)} users" if access.users else "",
        f"{len(access.tokens)} tokens" if access.tokens else "",
    ]
    who += ["client certificates"] if access.certificates and not access.users else []
    text = f"{transport}; {', '.join(filter(None, who))}; without them: {_rights(access.anonymous) or 'nothing'}"
    addresses = (web.listen, *(listener.address for listener in listeners))
    if rules.tls is None and not all(map(is_loopback, addresses)):
        return False, f"{text}; passwords and tokens travel unencrypted: use TLS, here or in a proxy"
    return True, text


def may_send(access: Access) -> bool:
    """Return whether anybody may send records."""
    granted = [*(token.rights for token in access.tokens), *access.grants.values()]
    return Right.INGEST in access.anonymous.union(*granted, access.unlisted if access.users else ())


def _rights(rights: Iterable[Right]) -> str:
    return ", ".join(sorted(rights))
