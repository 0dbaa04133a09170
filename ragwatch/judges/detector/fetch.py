"""Downloads a model by name and revision from a hub, checks every file, and writes it to a folder.

The hub's API names the commit, the files with their hashes (SHA-256 of large files, git's hash of small ones), and the
licence. Only data is taken: an ONNX graph or safetensors, the tokenizer, and texts; never pickle or code. A file is
written beside its place and renamed once its size and hash are right, so that a download that was cut short leaves
nothing half; the next one keeps the files that are whole. No key is sent. Redirects, which hubs use for large files,
are followed to the hub's own hosts alone.
"""

import hashlib
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpx

from ragwatch.judges.detector.artefact import (
    CONFIG,
    GRAPHS,
    MANIFEST,
    PIECES,
    TEXT_FILES,
    WEIGHTS,
    DetectorError,
    digest_of,
)
from ragwatch.outgoing.addresses import checked_url
from ragwatch.outgoing.client import Guard, async_client
from ragwatch.outgoing.proxies import proxies

HUB = "https://huggingface.co"
HUB_HOSTS = ("huggingface.co", "hf.co")
"""Domains to which the hub redirects downloads of large files, with their subdomains."""

_NAME = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*){0,3}")
_MODEL = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_MAX_LIST_BYTES = 8 << 20
_MAX_REDIRECTS = 4
_PIECE = 1 << 20
_SECONDS = 60.0  # without a byte
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a model."""

    name: str
    size: int | None  # in bytes; None if the hub does not say
    digest: str
    is_git: bool = False  # whether the digest is git's hash of a small file, else SHA-256


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What a hub says of a model: the commit that its revision names, and the licence if the model card has one."""

    name: str
    commit: str
    licence: str | None
    files: tuple[RemoteFile, ...]


class Hub:
    """A hub of models. Downloads may be redirected to `hosts`, which are domains, besides the hub's own host."""

    def __init__(self, address: str, *, max_bytes: int, hosts: Sequence[str] = HUB_HOSTS) -> None:
        self._address = address.rstrip("/")
        self._max_bytes = max_bytes
        self._hosts = hosts
        self._client = async_client(
            httpx, guard=Guard(httpx, proxies()), timeout=_SECONDS, headers={"Accept-Encoding": "identity"}
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def model(
        self, name: str, revision: str, *, names: Sequence[str] = (), hashes: Mapping[str, str] | None = None
    ) -> RemoteModel:
        """Ask what a model consists of.

        A model is named `owner/name`; a revision is a branch, tag or commit. Without names, the files are those that a
        judge needs. `hashes` (SHA-256 by name) take the place of the hub's.

        Raises:
            DetectorError: There is no such model, or it has no file that a judge can run.
        """
        if not _MODEL.fullmatch(name):
            raise DetectorError(f"{name[:100]!r} is not a model; write one such as KRLabsOrg/tinylettuce-ettin-17m-en")
        where = f"{self._address}/api/models/{name}/revision/{quote(revision, safe='')}?blobs=true"
        body = b"".join([piece async for piece in self._read(where, f"{name} at {revision}", _MAX_LIST_BYTES)])
        try:
            said = json.loads(body)
            listed = {str(row["rfilename"]): row for row in said["siblings"]}
            commit = str(said["sha"])
            chosen = tuple(names) or _chosen(listed)
            files = tuple(_remote(file, listed.get(file), (hashes or {}).get(file)) for file in chosen)
            return RemoteModel(name, commit, _licence(said), files)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DetectorError(f"{self._address} does not answer as a hub of models: {error!r}"[:300]) from error

    async def fetch(self, model: RemoteModel, folder: Path, on_file: Callable[[RemoteFile, bool], None]) -> None:
        """Download the files of a model that a folder lacks, then write the manifest.

        `on_file` is called for each file, with whether it was there already.

        Raises:
            DetectorError: A file is missing, larger than allowed, or not what the hub said.
        """
        for file in model.files:
            if file.size is not None and file.size > self._max_bytes:
                raise _too_large(file.name, file.size, self._max_bytes)
        try:
            for file in model.files:
                there = _is_whole(folder / file.name, file)
                on_file(file, there)
                if not there:
                    await self._fetch_file(model, file, folder / file.name)
            digests = {file.name: digest_of(folder / file.name) for file in model.files}
            manifest = {"model": model.name, "commit": model.commit, "licence": model.licence}
            _write_manifest(folder / MANIFEST, manifest, digests)
        except OSError as error:
            raise DetectorError(f"{error.filename or folder}: {error.strerror or error}") from error

    async def _fetch_file(self, model: RemoteModel, file: RemoteFile, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        where = f"{self._address}/{model.name}/resolve/{quote(model.commit, safe='')}/{quote(file.name)}"
        with _whole_file(path) as partial:
            size = 0
            async for piece in self._read(where, file.name, self._max_bytes if file.size is None else file.size):
                size += len(piece)
                partial.write(piece)
            if file.size is not None and size != file.size:
                raise DetectorError(f"{file.name}: {size} bytes came instead of {file.size}; run the command again")
            partial.flush()
            if not _is_whole(Path(partial.name), file):
                raise DetectorError(f"{file.name}: its hash is not the one that the hub names; nothing was kept of it")

    async def _read(self, where: str, what: str, limit: int) -> AsyncIterator[bytes]:
        """Yield the body of a reply, which may be redirected."""
        try:
            async with self._response(where, what) as response:
                size = 0
                async for piece in response.aiter_raw(_PIECE):
                    size += len(piece)
                    if size > limit:
                        raise _too_large(what, size, limit)
                    yield piece
        except httpx.HTTPError as error:
            raise DetectorError(f"{what}: {type(error).__name__}: {str(error)[:200]}") from error

    @asynccontextmanager
    async def _response(self, where: str, what: str) -> AsyncIterator[httpx.Response]:
        for _ in range(_MAX_REDIRECTS + 1):
            async with self._client.stream("GET", where) as response:
                if response.status_code not in _REDIRECTS:
                    if not response.is_success:
                        raise DetectorError(f"{what}: {self._address} answers with HTTP {response.status_code}")
                    yield response
                    return
                where = self._target(where, response.headers.get("location", ""), what)
        raise DetectorError(f"{what}: more than {_MAX_REDIRECTS} redirects")

    def _target(self, where: str, location: str, what: str) -> str:
        """Where a redirect leads, which must be a host of the hub, and no less safe."""
        try:
            target = checked_url(urljoin(where, location))
        except ValueError as error:
            raise DetectorError(f"{what}: is redirected to an address that may not be asked: {error}") from error
        host, own = urlsplit(target).hostname or "", urlsplit(self._address)
        is_known = host == own.hostname or any(host == name or host.endswith(f".{name}") for name in self._hosts)
        if not is_known or (own.scheme == "https" and not target.startswith("https:")):
            scheme = urlsplit(target).scheme
            raise DetectorError(
                f"{what}: is redirected to {scheme}://{host}, which is no host of the hub; --host allows it"
            )
        return target


def parse_hashes(text: str) -> dict[str, str]:
    """Parse a list of hashes as `sha256sum` writes it.

    >>> parse_hashes("ab" * 32 + "  model.onnx")["model.onnx"][:4]
    'abab'

    Raises:
        DetectorError: A line is not a hash and a name.
    """
    hashes = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = re.fullmatch(r"([0-9a-fA-F]{64})[ *]{1,2}(?:\./)?(\S+)", line.strip())
        if match is None and line.strip():
            raise DetectorError(f"--hashes: line {number} is not a SHA-256 and a name, as sha256sum writes them")
        if match is not None:
            hashes[match[2]] = match[1].lower()
    return hashes


def _chosen(listed: Mapping[str, object]) -> tuple[str, ...]:
    """What a judge needs of a model: a graph if there is one, else weights; config, tokenizer, and texts."""
    graph = next((name for name in GRAPHS if name in listed), None)
    model = graph or (WEIGHTS if WEIGHTS in listed else None)
    if model is None:
        raise DetectorError(
            f"it has neither {GRAPHS[0]} nor {WEIGHTS}; other formats are not run (pickle can hold code)"
        )
    data = [name for name in listed if re.fullmatch(re.escape(model) + r"[._]data[\w.-]*", name)]
    texts = [name for name in listed if TEXT_FILES.fullmatch(name)]
    return (*sorted(texts), *(name for name in (CONFIG, PIECES) if name in listed), *sorted(data), model)


def _remote(name: str, row: object, digest: str | None) -> RemoteFile:
    if not _NAME.fullmatch(name) or not isinstance(row, dict):
        raise DetectorError(f"{name[:100]!r} is not a file of the model")
    large = row.get("lfs") or {}
    size = large.get("size", row.get("size"))
    bytes_ = size if isinstance(size, int) else None
    sha256 = digest or large.get("sha256")
    if sha256 is not None:
        return RemoteFile(name, bytes_, str(sha256).lower())
    if row.get("blobId") is None or bytes_ is None:
        raise DetectorError(f"{name}: the hub names no hash; give one with --hashes")
    return RemoteFile(name, bytes_, str(row["blobId"]).lower(), is_git=True)


def _licence(said: Mapping[str, Any]) -> str | None:
    card = said.get("cardData")
    named = card.get("license") if isinstance(card, dict) else None
    tags = said.get("tags")
    tagged = [str(tag).removeprefix("license:") for tag in tags or () if str(tag).startswith("license:")]
    return str(named or next(iter(tagged), "")) or None


def _is_whole(path: Path, file: RemoteFile) -> bool:
    """Whether a file has the content that the hub names."""
    if not path.is_file():
        return False
    hasher = (
        hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False) if file.is_git else hashlib.sha256()
    )
    with path.open("rb") as opened:
        while piece := opened.read(_PIECE):
            hasher.update(piece)
    return bool(hasher.hexdigest() == file.digest)


@contextmanager
def _whole_file(path: Path) -> Iterator[Any]:
    """A temporary file beside a path, which takes its place if nothing fails, and else goes."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False) as partial:
        try:
            yield partial
            partial.flush()
            os.fsync(partial.fileno())
            Path(partial.name).chmod(0o644)
            Path(partial.name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(partial.name).unlink()
            raise


def _write_manifest(path: Path, manifest: Mapping[str, object], digests: Mapping[str, str]) -> None:
    """Write what the folder holds; files of an earlier download stay in it."""
    before: dict[str, str] = {}
    with suppress(OSError, ValueError, KeyError, TypeError):
        before = dict(json.loads(path.read_bytes())["files"])
    with _whole_file(path) as partial:
        files = {name: digest for name, digest in before.items() if (path.parent / name).is_file()} | dict(digests)
        partial.write(json.dumps({**manifest, "files": files}, indent=1).encode() + b"\n")


def _too_large(what: str, size: int, limit: int) -> DetectorError:
    return DetectorError(f"{what}: has {size} bytes or more, and {limit} are allowed")
