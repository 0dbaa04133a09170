"""`make pin-images` against a registry on loopback: digests are looked up, checked, and written; none is made up."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.answering import Asked, Reply, answering

from tools.pin_images import FILES, MANIFESTS, ROOT, Image, images, main, pinned

DOCKERFILE = "FROM python:3.12-slim AS build\nRUN true\nFROM python:3.12-slim\nCOPY --from=build /a /a\n"
COMPOSE = "services:\n  a:\n    image: prom/prometheus:v3.5.0\n  b:\n    build: {context: ..}\n"


class Registry:
    """A registry that gives manifests to those with a token of its own.

    Attributes:
        manifests: Bodies by repository and tag.
        told: Digest in the header; None for that of the body.
        kind: Content type of manifests.
        challenge: The scheme that is asked for.
        address: Where it listens.
        asked: What it was asked.
    """

    def __init__(self) -> None:
        self.manifests = {
            ("library/python", "3.12-slim"): b'{"schemaVersion":2,"manifests":[1]}',
            ("prom/prometheus", "v3.5.0"): b'{"schemaVersion":2,"manifests":[2]}',
        }
        self.told: str | None = None
        self.kind = MANIFESTS[0]
        self.challenge = "Bearer"
        self.address = ""
        self.asked: list[Asked] = []

    def reply(self, asked: Asked) -> Reply:
        """A token, or a manifest for who has that of its repository."""
        if asked.path == "/token":
            return 200, {"token": asked.query["scope"]}, {}
        repository, _, tag = asked.path.removeprefix("/v2/").rsplit("/", 2)
        scope = f"repository:{repository}:pull"
        headers = {name.lower(): value for name, value in asked.headers.items()}
        if headers.get("authorization") != f"Bearer {scope}":
            realm = f'realm="{self.address}/token",service="loopback",scope="{scope}"'
            return 401, {}, {"WWW-Authenticate": f"{self.challenge} {realm}"}
        body = self.manifests.get((repository, tag))
        if body is None:
            return 404, {}, {}
        told = self.told or f"sha256:{hashlib.sha256(body).hexdigest()}"
        return 200, body, {"Docker-Content-Digest": told, "content-type": self.kind}

    def digest(self, repository: str, tag: str) -> str:
        """What must be written."""
        return f"sha256:{hashlib.sha256(self.manifests[repository, tag]).hexdigest()}"


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A running registry."""
    registry = Registry()
    with answering(registry.reply) as (registry.address, registry.asked):
        yield registry


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a Dockerfile and a compose file."""
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "deploy" / "compose.yaml").write_text(COMPOSE)
    return tmp_path


def run(root: Path, registry: Registry, *arguments: str) -> int:
    """The tool, with the registry in the place of Docker Hub."""
    return main([*arguments, "--mirror", f"docker.io={registry.address}"], root)


def test_digests_are_written_behind_the_tags(root: Path, registry: Registry) -> None:
    """Every mention gets the digest of the manifest, with a token where one is asked for; again, it follows the tag."""
    assert run(root, registry, "--check") == 1
    for _ in range(2):
        assert run(root, registry) == 0
        python = registry.digest("library/python", "3.12-slim")
        assert (root / "deploy" / "Dockerfile").read_text() == DOCKERFILE.replace("-slim", f"-slim@{python}")
        prometheus = registry.digest("prom/prometheus", "v3.5.0")
        assert (root / "deploy" / "compose.yaml").read_text() == COMPOSE.replace("v3.5.0", f"v3.5.0@{prometheus}")
        assert run(root, registry, "--check") == 0
        registry.manifests["library/python", "3.12-slim"] += b" "
    assert {one.path for one in registry.asked} == {
        *("/token", "/v2/library/python/manifests/3.12-slim", "/v2/prom/prometheus/manifests/v3.5.0")
    }


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ({"told": f"sha256:{'0' * 64}"}, "the header says sha256:000"),
        ({"kind": "text/html"}, "the reply is text/html, not a manifest"),
        ({"challenge": "Basic"}, "asks for a password"),
        ({"manifests": {}}, "HTTP 404"),
    ],
)
def test_what_cannot_be_looked_up_is_not_written(
    root: Path, registry: Registry, capsys: pytest.CaptureFixture[str], flaw: dict[str, object], message: str
) -> None:
    """A digest that does not fit its manifest, a page in its place, a password: the files stay, the reason is told."""
    for name, value in flaw.items():
        setattr(registry, name, value)
    assert run(root, registry) == 1
    error = capsys.readouterr().err
    assert "no digest was written" in error
    assert message in error
    assert (root / "deploy" / "Dockerfile").read_text() == DOCKERFILE


def test_a_registry_that_cannot_be_reached(root: Path, registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    """The address and the reason are told."""
    assert main(["--mirror", "docker.io=http://127.0.0.1:1"], root) == 1
    assert "http://127.0.0.1:1/v2/" in capsys.readouterr().err
    assert registry.asked == []


def test_every_image_of_others_is_known_to_the_tool() -> None:
    """What deploy/ pulls is what the tool would pin; images are named with a tag, and digests it has written stay."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in FILES]
    named = {
        line.split()[1] for text in texts for line in text.splitlines() if line.strip().startswith(("FROM", "image:"))
    }
    assert {f"{image.name}:{image.tag}" for text in texts for image in images(text)} == {
        name.partition("@")[0] for name in named
    }
    digest = "sha256:" + "a" * 64
    assert images(pinned(texts[0], {Image("python", "3.12-slim"): digest})) == {Image("python", "3.12-slim"): digest}
