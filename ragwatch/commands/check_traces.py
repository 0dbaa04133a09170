"""What `ragwatch check` says of a source of kind `otlp`: what became of its traces, and which switch is missing."""

from __future__ import annotations

from ragwatch.commands.check_web import NOBODY_SENDS, may_send
from ragwatch.commands.state_reader import stored_tallies
from ragwatch.config import Config
from ragwatch.core.tally import Tally
from ragwatch.daemon.web_access import read_rules
from ragwatch.sources.otlp import Options
from ragwatch.sources.otlp.capture import SWITCHES


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
