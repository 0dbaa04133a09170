"""What `ragwatch check` says of addresses to listen on, who may do what there, and what was received."""

from __future__ import annotations

import errno
import shlex
import socket
from collections.abc import Iterable, Sequence

from ragwatch.commands.checking.finding import OK, WARNING, Finding, noted
from ragwatch.config import Config
from ragwatch.config.web import WebOptions
from ragwatch.daemon.web_access import read_rules
from ragwatch.formats.traces.assemble import SWITCHES
from ragwatch.offline.state_reader import stored_tallies
from ragwatch.ports.receiving import GrpcListener, host_of, is_loopback
from ragwatch.sources.otlp import Options
from ragwatch.sources.push import Options as PushOptions
from ragwatch.statistics.tally import Tally
from ragwatch.web import Access, Right


def check_traces(subject: str, options: Options, config: Config) -> Finding:
    """What is known about the traces of a source so far."""
    if not _may_send(read_rules(config.settings.web).access):
        return Finding(subject, WARNING, NOBODY_SENDS)
    name = options.name
    outcomes = {labels[1]: count for labels, count in stored_tallies(config, Tally.TRACES).items() if labels[0] == name}
    if not outcomes:
        grpc = "" if options.grpc is None else f" and calls over gRPC at {options.grpc.listen}"
        return Finding(subject, OK, f"receives POST /v1/traces{grpc}; no request in a trace is complete yet")
    counts = ", ".join(f"{count:,.0f} {outcome}" for outcome, count in sorted(outcomes.items()))
    text = f"requests in traces: {counts}"
    silent = {labels[1]: count for labels, count in stored_tallies(config, Tally.SILENT).items() if labels[0] == name}
    advice = [
        f"{count:,.0f} hold no texts, because content capture is off: {SWITCHES[kind]}"
        for kind, count in sorted(silent.items())
        if kind in SWITCHES
    ]
    return noted(subject, "; ".join((text, *advice)), well=not advice and bool(outcomes.get("assembled")))


EXAMPLE = '{"id": "1", "question": "Who wrote Faust?", "contexts": ["Faust is by Goethe."], "answer": "Goethe."}'
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - nothing is bound


def check_push(subject: str, options: PushOptions, config: Config) -> Finding:
    """How to send a record to a source, and whether anybody may."""
    web = config.settings.web
    access = read_rules(web).access
    if not _may_send(access):
        return Finding(subject, WARNING, NOBODY_SENDS)
    port = web.listen.rpartition(":")[2]
    host = "localhost" if web.host in _WILDCARDS else f"[{web.host}]" if ":" in web.host else web.host
    address = (web.external_url or f"http://{host}:{port}").rstrip("/") + "/v1/samples"
    if sum(isinstance(source.options, PushOptions) for source in config.sources) > 1:
        address += f"?source={options.name}"
    headers = "" if Right.INGEST in access.anonymous else '-H "Authorization: Bearer $TOKEN" '
    headers += "-H 'Content-Type: application/json'"
    request = f"curl {headers} -d {shlex.quote(EXAMPLE)} {shlex.quote(address)}"
    return Finding(subject, OK, f"receives answers; send one with: {request}")


NOBODY_SENDS = "nobody has the right ingest: give it to a token, as `web.tokens: [{name, token, rights: [ingest]}]`"


def check_address(subject: str, listen: str, owner: str | None) -> Finding:
    """Whether an address is free; `owner` is the process that has the state. `OSError` says why it is not."""
    host = host_of(listen)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, int(listen.rpartition(":")[2])))
        except OSError as error:
            if owner is None or error.errno != errno.EADDRINUSE:
                raise
            return Finding(subject, WARNING, f"{listen} is in use, as it is while ragwatch runs (process {owner})")
    return Finding(subject, OK, f"{listen} is free")


def check_web(subject: str, web: WebOptions, listeners: Sequence[GrpcListener]) -> Finding:
    """Whether credentials are safe on their way, and who may do what."""
    rules = read_rules(web, listeners)
    access = rules.access
    transport = "HTTP" if rules.tls is None else "TLS"
    if not access.has_credentials:
        return Finding(subject, OK, f"{transport}; nobody is asked for a password: {_rights(access.anonymous)}")
    who = [
        f"{len(access.users)} users" if access.users else "",
        f"{len(access.tokens)} tokens" if access.tokens else "",
    ]
    who += ["client certificates"] if access.certificates and not access.users else []
    text = f"{transport}; {', '.join(filter(None, who))}; without them: {_rights(access.anonymous) or 'nothing'}"
    addresses = (web.listen, *(listener.address for listener in listeners))
    if rules.tls is None and not all(map(is_loopback, addresses)):
        text += "; passwords and tokens travel unencrypted: use TLS, here or in a proxy"
        return Finding(subject, WARNING, text)
    return Finding(subject, OK, text)


def _may_send(access: Access) -> bool:
    """Return whether anybody may send records."""
    granted = [*(token.rights for token in access.tokens), *access.grants.values()]
    return Right.INGEST in access.anonymous.union(*granted, access.unlisted if access.users else ())


def _rights(rights: Iterable[Right]) -> str:
    return ", ".join(sorted(rights))
