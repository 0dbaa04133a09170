"""Writes the digest of each image into deploy/, as its registry tells it now: `python:3.12-slim@sha256:...`.

    python tools/pin_images.py                                    # make pin-images
    python tools/pin_images.py --check                            # which images are named by tag alone
    python tools/pin_images.py --mirror docker.io=https://mirror.example.org

Nothing is written unless every digest could be looked up. Run it again to follow a tag.
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

ROOT = Path(__file__).parent.parent
FILES = ("deploy/Dockerfile", "deploy/compose.yaml", "deploy/compose.secured.yaml", "deploy/compose.fleet.yaml")
HUB, HUB_HOST = "docker.io", "registry-1.docker.io"
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
MAX_MANIFEST_BYTES = 4 << 20
TIMEOUT_SECONDS = 30.0
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_IMAGE = re.compile(
    r"(?m)^(?P<before>[ \t]*(?:FROM(?:[ ]--platform=\S+)?|image:)[ \t]+)"
    r"(?P<name>[a-z0-9][\w./:-]*?):(?P<tag>[\w][\w.-]{0,127})"
    r"(?P<digest>@sha256:[0-9a-f]{64})?(?=\s|$)"
)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class RegistryError(Exception):
    """A digest could not be looked up."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image by its name, as it stands in the file, and its tag."""

    name: str
    tag: str

    @property
    def place(self) -> tuple[str, str]:
        """Registry and repository.

        >>> Image("python", "3.12").place, Image("prom/prometheus", "v3").place, Image("ghcr.io/a/b", "1").place
        (('docker.io', 'library/python'), ('docker.io', 'prom/prometheus'), ('ghcr.io', 'a/b'))
        """
        first, slash, rest = self.name.partition("/")
        if slash and ("." in first or ":" in first or first == "localhost"):
            return first, rest
        return HUB, self.name if slash else f"library/{self.name}"


def images(text: str) -> dict[Image, str | None]:
    """The images of a Dockerfile or a compose file, each with its digest; None where it has none."""
    return {Image(match["name"], match["tag"]): (match["digest"] or "")[1:] or None for match in _IMAGE.finditer(text)}


def pinned(text: str, digests: Mapping[Image, str]) -> str:
    """The file with these digests."""
    return _IMAGE.sub(
        lambda match: (
            f"{match['before']}{match['name']}:{match['tag']}@{digests[Image(match['name'], match['tag'])]}"
            if Image(match["name"], match["tag"]) in digests
            else match[0]
        ),
        text,
    )


def digest_of(image: Image, client: httpx.Client, mirrors: Mapping[str, str]) -> str:
    """Look up the digest of the manifest, or of the index of all platforms, under a tag.

    Raises:
        RegistryError: The registry cannot be reached, does not know the image, or its reply is not what it says it is.
    """
    registry, repository = image.place
    base = mirrors.get(registry, f"https://{HUB_HOST if registry == HUB else registry}")
    url = f"{base.rstrip('/')}/v2/{repository}/manifests/{image.tag}"
    headers = {"Accept": ", ".join(MANIFESTS)}
    try:
        response = client.get(url, headers=headers)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            token = _token(response.headers.get("www-authenticate", ""), client)
            response = client.get(url, headers=headers | {"Authorization": f"Bearer {token}"})
    except httpx.HTTPError as error:
        raise RegistryError(f"{image.name}:{image.tag}: {url}: {error or type(error).__name__}") from error
    if response.status_code != httpx.codes.OK:
        raise RegistryError(f"{image.name}:{image.tag}: {url}: HTTP {response.status_code}")
    return _checked(image, response)


def _checked(image: Image, response: httpx.Response) -> str:
    """The digest of the body, which must be a manifest with the digest that the header says."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in MANIFESTS or len(response.content) > MAX_MANIFEST_BYTES:
        raise RegistryError(
            f"{image.name}:{image.tag}: {response.url}: the reply is {kind or 'nothing'}, not a manifest"
        )
    digest = f"sha256:{hashlib.sha256(response.content).hexdigest()}"
    told = response.headers.get("docker-content-digest", digest)
    if told != digest or not _DIGEST.fullmatch(told):
        raise RegistryError(f"{image.name}:{image.tag}: {response.url}: the body is {digest}, the header says {told}")
    return digest


def _token(challenge: str, client: httpx.Client) -> str:
    """A token for anybody, from where the registry says."""
    parts = dict(_CHALLENGE.findall(challenge))
    realm = urlsplit(parts.get("realm", ""))
    if not challenge.lower().startswith("bearer ") or (realm.scheme != "https" and realm.hostname not in LOOPBACK):
        raise RegistryError(f"the registry asks for a password: {challenge[:200]!r}")
    wanted = {name: parts[name] for name in ("service", "scope") if name in parts}
    response = client.get(parts["realm"], params=wanted)
    try:
        values = response.raise_for_status().json()
        return str(values.get("token") or values["access_token"])
    except (ValueError, LookupError, AttributeError) as error:
        raise RegistryError(f"{parts['realm']}: the reply has no token") from error


def main(arguments: Iterable[str] | None = None, root: Path = ROOT) -> int:
    """Returns 0; 1 where a digest could not be looked up or, with --check, is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say which images have no digest")
    parser.add_argument("--mirror", action="append", default=[], metavar="REGISTRY=URL", help="ask URL in its place")
    options = parser.parse_args(None if arguments is None else list(arguments))
    mirrors = dict(pair.split("=", 1) for pair in options.mirror if "=" in pair)
    texts = {name: (root / name).read_text(encoding="utf-8") for name in FILES if (root / name).is_file()}
    stated = {(name, image): digest for name, text in texts.items() for image, digest in images(text).items()}
    if options.check:
        missing = [f"{name}: {image.name}:{image.tag}" for (name, image), digest in stated.items() if digest is None]
        print(*(f"{line} has no digest" for line in missing), sep="\n", end="\n" if missing else "")
        return 1 if missing else 0
    try:
        with httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=True) as client:
            digests = {image: digest_of(image, client, mirrors) for image in {image for _, image in stated}}
    except RegistryError as error:
        print(f"no digest was written: {error}", file=sys.stderr)
        return 1
    for name, text in texts.items():
        (root / name).write_text(pinned(text, digests), encoding="utf-8")
    for image in sorted(digests, key=lambda image: image.name):
        print(f"{image.name}:{image.tag}@{digests[image]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
