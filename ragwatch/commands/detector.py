"""`ragwatch detector`: downloads a model for judges of kind `detector`, and writes its int8 graph."""

from importlib import import_module

from ragwatch.errors import ConfigError, extra_for
from ragwatch.judges.detector.artefact import FAMILIES, GRAPHS, PIECES
from ragwatch.judges.detector.fetch import HUB_HOSTS, Hub, RemoteFile, parse_hashes
from ragwatch.outgoing.addresses import checked_url
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.administration import DetectorFetchArguments, DetectorQuantiseArguments
from ragwatch.terminal.output import escape_line, say

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
        say(f"{model.name} at commit {model.commit}")
        say(f"licence: {'not stated; read its card' if model.licence is None else model.licence}")
        await hub.fetch(model, given.folder, _show)
    finally:
        await hub.close()
    if not (given.folder / PIECES).exists():
        say(f"the model has no {PIECES}: docs/judges.md says where to get one")
    if not any((given.folder / name).exists() for name in GRAPHS):
        say("it has no ONNX graph: export one (docs/judges.md), or install the extra detector-torch")
    say(f"wrote {given.folder}; use it with {{kind: detector, model: {given.folder}}}")


def _show(file: RemoteFile, there: bool) -> None:  # noqa: FBT001 - a callback
    size = "" if file.size is None else f" ({file.size / _MEGABYTE:.1f} MB)"
    say(f"{'kept' if there else 'fetching'} {escape_line(file.name)}{size}")


def quantise(given: DetectorQuantiseArguments) -> int:
    """Write a folder with the int8 graph of a model. Returns 0."""
    family = next((name for name in FAMILIES if name == given.family), None)
    if family != given.family:
        raise ConfigError(f"--family: {given.family!r} is unknown; write one of: {', '.join(FAMILIES)}")
    with extra_for("detector quantise", "quantise"):
        import_module("onnx")
        from ragwatch.judges.detector.quantise import quantise_folder  # noqa: PLC0415 - an extra
    made = quantise_folder(
        given.folder, given.out, family=family, graph=given.graph, most=given.tolerance, replace=given.force
    )
    before, after = (size / _MEGABYTE for size in made.sizes)
    difference, (slow, fast) = made.difference, made.difference.seconds
    say(f"graph: {before:.1f} MB, as int8 {after:.1f} MB ({made.products} matrix products, {made.tables} tables)")
    say(f"both graphs read {difference.texts} texts: CPU {slow:.2f} s, as int8 {fast:.2f} s")
    say(f"probabilities differ by {difference.mean:.4f} in the mean, {difference.most:.4f} at most")
    say(f"other verdicts on {difference.flips} of {difference.texts} texts")
    say(f"wrote {given.out}; use it with {{kind: detector, model: {given.out}}}")
    say("These texts show whether the graph is damaged. To measure its quality on your labels, for both folders:")
    say(f"  ragwatch judge LOG --judge detector --set model={given.out} > VERDICTS")
    say("  ragwatch estimate VERDICTS --labels FILE")
    return 0
