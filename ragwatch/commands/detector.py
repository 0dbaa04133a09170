"""`ragwatch detector fetch`: downloads a model for judges of kind `detector`."""

from __future__ import annotations

import click

from ragwatch.errors import ConfigError
from ragwatch.judges.detector.artefact import GRAPHS, PIECES
from ragwatch.judges.detector.fetch import HUB_HOSTS, Hub, RemoteFile, parse_hashes
from ragwatch.outgoing.addresses import checked_url
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.administration import DetectorFetchArguments
from ragwatch.terminal.output import escape_line, printable

_MEGABYTE = 1_000_000


def fetch(given: DetectorFetchArguments) -> int:
    """Download a model into a folder. Returns 0."""
    run_async(_fetch(given))
    return 0


async def _fetch(given: DetectorFetchArguments) -> None:
    try:
        address = checked_url(given.hub)
        hashes = parse_hashes(given.hashes.read_text(encoding="utf-8")) if given.hashes else None
    except UnicodeDecodeError as error:
        raise ConfigError(f"--hashes: is not a text: {error}") from error
    except ValueError as error:
        raise ConfigError(f"--hub: {error}") from error
    hub = Hub(address, max_bytes=given.max_mb * _MEGABYTE, hosts=(*HUB_HOSTS, *given.hosts))
    try:
        model = await hub.model(given.model, given.revision, names=given.names, hashes=hashes)
        click.echo(f"{model.name} at commit {printable(model.commit)}", err=True)
        licence = "not stated; read its card" if model.licence is None else printable(model.licence)
        click.echo(f"licence: {licence}", err=True)
        await hub.fetch(model, given.folder, _show)
    finally:
        await hub.close()
    if not (given.folder / PIECES).exists():
        click.echo(f"the model has no {PIECES}: docs/judges.md says where to get one", err=True)
    if not any((given.folder / name).exists() for name in GRAPHS):
        click.echo("it has no ONNX graph: export one (docs/judges.md), or install the extra detector-torch", err=True)
    click.echo(f"wrote {given.folder}; use it with {{kind: detector, model: {given.folder}}}", err=True)


def _show(file: RemoteFile, there: bool) -> None:  # noqa: FBT001 - a callback
    size = "" if file.size is None else f" ({file.size / _MEGABYTE:.1f} MB)"
    click.echo(f"{'kept' if there else 'fetching'} {escape_line(file.name)}{size}", err=True)
