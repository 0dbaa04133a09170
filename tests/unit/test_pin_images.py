"""`make pin-images` against a registry on loopback: digests are looked up, checked, and written; none is made up."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

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
        asked: Paths that were asked for, with the Authorization header.
    """

    def __init__(self) -> None:
        self.manifests = {
            ("library/python", "3.12-slim"): b'{"schemaVersion":2,"manifests":[1]}',
            ("prom/prometheus", "v3.5.0"): b'{"schemaVersion":2,"manifests":[2]}',
        }
        self.told: str | None = None
        self.kind = MANIFESTS[0]
        self.challenge = "Bearer"
        self.asked: list[tuple[str, str | None]] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                registry.asked.append((url.path, self.headers["authorization"]))
                if url.path == "/token":
                    self.reply(200, json.dumps({"token": parse_qs(url.query)["scope"][0]}).encode())
                    return
                _, _, repository, _, tag = url.path.replace("library/", "library%").replace("prom/", "prom%").split("/")
                repository = repository.replace("%", "/")
                scope = f"repository:{repository}:pull"
                if self.headers["authorization"] != f"Bearer {scope}":
                    realm = f'realm="{registry.address}/token",service="loopback",scope="{scope}"'
                    self.reply(401, b"{}", {"WWW-Authenticate": f"{registry.challenge} {realm}"})
                    return
                body = registry.manifests.get((repository, tag))
                if body is None:
                    self.reply(404, b"{}")
                    return
                told = registry.told or f"sha256:{hashlib.sha256(body).hexdigest()}"
                self.reply(200, body, {"Docker-Content-Digest": told, "Content-Type": registry.kind})

            def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def digest(self, repository: str, tag: str) -> str:
        """What must be written."""
        return f"sha256:{hashlib.sha256(self.manifests[repository, tag]).hexdigest()}"


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A running registry."""
    registry = Registry()
    thread = threading.Thread(target=registry.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield registry
    registry.server.shutdown()
    thread.join()
    registry.server.server_close()


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
    assert {path for path, _ in registry.asked} == {
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
