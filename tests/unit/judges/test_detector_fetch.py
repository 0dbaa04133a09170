"""`ragwatch detector fetch`: what a hub sends is checked, and a folder never holds half a model."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.answering import Asked, Reply, answering
from support.kit import a_judge_context

from ragwatch.commands import cli
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.judges.detector.artefact import open_detector
from ragwatch.judges.detector.judge import Options, build

DATA = Path(__file__).parents[2] / "data" / "detector" / "nli"
FILES = {name: (DATA / name).read_bytes() for name in ("config.json", "tokenizer.json", "model.onnx")} | {
    "README.md": b"# A model\n",
    "pytorch_model.bin": b"pickle",
    "modeling.py": b"import os",
    "flax_model.msgpack": b"other",
}
WANTED = {"config.json", "tokenizer.json", "model.onnx", "README.md"}
COMMIT = "c" * 40


class Hub:
    """What a hub of one model, `a/b`, says; a test makes it go wrong.

    Attributes:
        url: Its address.
        asked: Paths that were asked, in order.
        rows: What the API says of each file.
        bodies: What is sent of each file.
        location: Where a download is redirected to; the hub itself has the file below `/cdn`.
        cut: The file that is sent by half.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.bodies = dict(FILES)
        self.rows: dict[str, dict[str, Any]] = {name: row_of(name, content) for name, content in FILES.items()}
        self.said: dict[str, Any] = {"sha": COMMIT, "cardData": {"license": "mit"}, "tags": ["license:other"]}
        self.location = "/cdn/{name}"
        self.cut: str | None = None

    def reply(self, asked: Asked) -> Reply:
        """What it answers."""
        self.asked.append(asked.path)
        name = asked.path.rpartition("/")[2]
        if asked.path == "/api/models/a/b/revision/main":
            return 200, {**self.said, "siblings": list(self.rows.values())}, {}
        if asked.path.startswith(f"/a/b/resolve/{COMMIT}/") and name == "model.onnx" and self.location:
            return 302, b"", {"Location": self.location.format(name=name)}
        if name in self.bodies and asked.path.startswith(("/cdn/", f"/a/b/resolve/{COMMIT}/")):
            body = self.bodies[name]
            if name == self.cut:
                return 200, body[: len(body) // 2], {"content-length": str(len(body)), "connection": "close"}
            return 200, body, {}
        return 404, b"Not found", {}


def row_of(name: str, content: bytes) -> dict[str, Any]:
    """What the API of the real hub says of a file: large ones have a SHA-256, small ones git's hash."""
    git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    row: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": git}
    if name.endswith("onnx"):
        row["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return row


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub."""
    found = Hub()
    with answering(found.reply) as (found.url, _):
        yield found


def fetch(hub: Hub, folder: Path, *more: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["detector", "fetch", "a/b", str(folder), "--hub", hub.url, *more])


def fails(hub: Hub, folder: Path, *more: str) -> str:
    """Run the command, which fails; returns why."""
    done = fetch(hub, folder, *more)
    assert isinstance(done.exception, RagwatchError), done.output
    return str(done.exception)


def held(folder: Path) -> set[str]:
    """Names of all files below a folder, hidden ones too."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_model_is_fetched_and_runs(hub: Hub, tmp_path: Path) -> None:
    """The licence is shown, only data is taken, the commit is pinned, and a judge runs what lies there."""
    done = fetch(hub, tmp_path / "model")
    assert done.exit_code == 0, done.output
    assert f"a/b at commit {COMMIT}\nlicence: mit\n" in done.stderr
    assert held(tmp_path / "model") == {*WANTED, "ragwatch.json"}
    assert all(f"/{COMMIT}/" in path or path.startswith(("/api/", "/cdn/")) for path in hub.asked)
    manifest = json.loads((tmp_path / "model" / "ragwatch.json").read_bytes())
    assert (manifest["model"], manifest["commit"], manifest["licence"]) == ("a/b", COMMIT, "mit")
    assert manifest["files"]["model.onnx"] == hashlib.sha256(FILES["model.onnx"]).hexdigest()
    judge = build(Options(model=tmp_path / "model"), name="reader", context=a_judge_context())
    assert judge.fallback is None
    assert open_detector(tmp_path / "model", max_megabytes=1).version == open_detector(DATA, max_megabytes=1).version


def test_what_is_whole_is_kept(hub: Hub, tmp_path: Path) -> None:
    """A second run downloads only what is missing or damaged."""
    fetch(hub, tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"damaged")
    hub.asked.clear()
    done = fetch(hub, tmp_path)
    assert "kept config.json" in done.stderr
    assert [path for path in hub.asked if "resolve" in path] == [f"/a/b/resolve/{COMMIT}/model.onnx"]
    assert (tmp_path / "model.onnx").read_bytes() == FILES["model.onnx"]


GRAPH, CONFIG = FILES["model.onnx"], FILES["config.json"]
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "cut short": ({"cut": "model.onnx"}, "model.onnx: RemoteProtocolError"),
    "shorter than said": ({"bodies": FILES | {"model.onnx": GRAPH[:-100]}}, "bytes came instead of"),
    "another content": ({"bodies": FILES | {"model.onnx": GRAPH[:-1] + b"x"}}, "its hash is not the one that the hub"),
    "another small file": ({"bodies": FILES | {"config.json": CONFIG[:-1] + b" "}}, "config.json: its hash"),
    "longer than said": ({"bodies": FILES | {"model.onnx": GRAPH * 50}}, "are allowed"),
    "redirected elsewhere": (
        {"location": "http://files.example.org/{name}"},
        "http://files.example.org, which is no host of the hub",
    ),
    "redirected to a metadata service": ({"location": "http://169.254.169.254/{name}"}, "may not be asked"),
    "redirected to a file": ({"location": "file:///etc/passwd"}, "may not be asked"),
    "redirected in a circle": ({"location": f"/a/b/resolve/{COMMIT}/{{name}}"}, "more than 4 redirects"),
    "gone": ({"location": "/nowhere/{name}"}, "HTTP 404"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_and_leaves_nothing_half(hub: Hub, tmp_path: Path, name: str) -> None:
    """What was there stays, no part of a file remains, and the same command ends the work once the hub is well."""
    fault, why = FAULTS[name]
    (tmp_path / "model.onnx").write_bytes(b"an earlier model")
    vars(hub).update(fault)
    assert why in fails(hub, tmp_path)
    assert held(tmp_path) <= WANTED
    assert (tmp_path / "model.onnx").read_bytes() == b"an earlier model"
    hub.bodies, hub.location, hub.cut = dict(FILES), "/cdn/{name}", None
    assert fetch(hub, tmp_path).exit_code == 0
    assert {name: (tmp_path / name).read_bytes() for name in WANTED} == {name: FILES[name] for name in WANTED}


def test_another_host_may_be_allowed(hub: Hub, tmp_path: Path) -> None:
    """A mirror that redirects elsewhere is used where its host is named."""
    hub.location = f"{hub.url.replace('127.0.0.1', 'localhost')}/cdn/{{name}}"
    assert "localhost, which is no host of the hub" in fails(hub, tmp_path)
    assert fetch(hub, tmp_path, "--host", "localhost").exit_code == 0


ROWS = {name: row_of(name, content) for name, content in FILES.items()}
NO_HASH = ROWS | {"config.json": {**ROWS["config.json"], "blobId": None}}
HUGE = ROWS | {"model.onnx": {**ROWS["model.onnx"], "lfs": {**ROWS["model.onnx"]["lfs"], "size": 10**15}}}
LISTS: dict[str, tuple[dict[str, Any], str]] = {
    "no format that is run": ({"rows": {"x": ROWS["pytorch_model.bin"]}}, "pickle can hold code"),
    "no hash": ({"rows": NO_HASH}, "config.json: the hub names no hash"),
    "no list": ({"said": {"siblings": 3}}, "does not answer as a hub of models"),
    "a huge file": ({"rows": HUGE}, "are allowed"),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_is_wrong_is_refused_before_anything_is_written(hub: Hub, tmp_path: Path, name: str) -> None:
    """Nothing is downloaded and no file is made."""
    fault, why = LISTS[name]
    vars(hub).update(fault)
    assert why in fails(hub, tmp_path)
    assert held(tmp_path) == set()
    assert not any("resolve" in path for path in hub.asked)


def test_a_name_that_leads_out_of_the_folder_is_never_written(hub: Hub, tmp_path: Path) -> None:
    """Neither one that the hub names nor one that is asked for."""
    hub.rows["x"] = {"rfilename": "model.onnx_data/../../x", "size": 1, "blobId": "0"}
    del hub.rows["README.md"]
    assert fetch(hub, tmp_path / "model").exit_code == 0
    assert "is not a file of the model" in fails(hub, tmp_path / "model", "--file", "../x")
    assert held(tmp_path) == {f"model/{name}" for name in {*WANTED - {"README.md"}, "ragwatch.json"}}


def test_hashes_of_ones_own_take_the_place_of_the_hubs(hub: Hub, tmp_path: Path) -> None:
    """A mirror that names none, or a hash that was published elsewhere."""
    hub.rows = dict(NO_HASH)
    hashes = tmp_path / "SHA256SUMS"
    hashes.write_text(f"{hashlib.sha256(FILES['config.json']).hexdigest()}  config.json\n")
    assert fetch(hub, tmp_path / "model", "--hashes", str(hashes)).exit_code == 0
    hashes.write_text(f"{'0' * 64} *config.json\n")
    (tmp_path / "model" / "config.json").unlink()
    assert "config.json: its hash" in fails(hub, tmp_path / "model", "--hashes", str(hashes))
    hashes.write_text("nonsense\n")
    assert "line 1 is not a SHA-256 and a name" in fails(hub, tmp_path / "model", "--hashes", str(hashes))


def test_single_files_may_be_asked_for(hub: Hub, tmp_path: Path) -> None:
    """Such as the tokenizer of the base model where the model has none; what lay there stays in the manifest.

    What a judge lacks is said: weights without a graph need torch, and a model without a fast tokenizer needs one.
    """
    fetch(hub, tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert fetch(hub, tmp_path, "--file", "tokenizer.json").exit_code == 0
    assert set(json.loads((tmp_path / "ragwatch.json").read_bytes())["files"]) == WANTED
    assert "is not a file of the model" in fails(hub, tmp_path, "--file", "absent.json")
    for name in ("model.onnx", "tokenizer.json"):
        del hub.rows[name]
    hub.bodies["model.safetensors"] = b"weights"
    hub.rows["model.safetensors"] = row_of("model.safetensors", b"weights")
    said = fetch(hub, tmp_path / "other").stderr
    assert ("has no tokenizer.json" in said, "has no ONNX graph" in said) == (True, True)
    assert "model.safetensors" in held(tmp_path / "other")


def test_what_is_no_model_or_no_hub(hub: Hub, tmp_path: Path) -> None:
    """Each has a message of its own."""
    run = CliRunner().invoke
    named = run(cli, ["detector", "fetch", "../b", str(tmp_path), "--hub", hub.url]).exception
    assert "is not a model; write one such as" in str(named)
    wrong = run(cli, ["detector", "fetch", "a/b", str(tmp_path), "--hub", "http://169.254.169.254"]).exception
    assert isinstance(wrong, ConfigError)
    assert "HTTP 404" in fails(hub, tmp_path, "--revision", "absent")
    hub.said = {"sha": COMMIT, "tags": []}
    assert "licence: not stated" in fetch(hub, tmp_path).stderr
