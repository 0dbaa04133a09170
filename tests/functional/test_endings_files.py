"""Every command ends well where a file, a directory, a configuration or a port is not what it ought to be."""

import random
import socket
from itertools import cycle
from pathlib import Path

import pytest
from functional.endings import COMMANDS, Stage, ends_well

READERS = {
    "judge": "judge {file}",
    "gate": "gate {file}",
    "baseline": "gate log/rag.jsonl --baseline {file}",
    "compare": "compare {file} log/rag.jsonl",
    "log": "compare a b --log {file}",
    "backtest": "backtest {file}",
    "estimate": "estimate {file}",
    "levels": "estimate verdicts.jsonl --labels {file}",
    "plan": "plan --per-day 1000 --scores {file}",
    "import": "label --config ragwatch.yaml --annotator a --import {file}",
    "map": "init --print {file}",
}
WRITERS = {
    "junit": "gate log/rag.jsonl --junit {file}",
    "markdown": "gate log/rag.jsonl --markdown {file}",
    "svg": "backtest scores.jsonl --svg {file}",
    "rules": "rules --config ragwatch.yaml --out {file}",
    "export": "label --config ragwatch.yaml --annotator a --export {file}",
    "calibrate": "calibrate --config ragwatch.yaml --out {file}",
    "suggest": "canary suggest --config ragwatch.yaml --out {file}",
}
THOROUGH = {"judge", "import", "map"}
"""Those that read in three different ways; the others share their readers, and see three files each."""
CONFIGURED = [name for name, words in COMMANDS.items() if "{config}" in words]
STATE = ["kept", "run", "suggest", "diagnose", "rollout", "live", "stored", "import", "export", "label", "calibrate",
         "check"]  # fmt: skip


@pytest.fixture(scope="module")
def files(stage: Stage) -> dict[str, str]:
    """Files that nobody can read as what they are said to be."""
    folder = stage.folder / "files"
    folder.mkdir()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(random.Random(1).randbytes(50_000).replace(b"\n", b" "))
    (folder / "nul").write_bytes(bytes(10_000))
    (folder / "torn.gz").write_bytes(b"\x1f\x8b\x08\x00" + random.Random(2).randbytes(200))
    (folder / "latin").write_bytes("{'é': 1}\n".encode("latin-1"))
    (folder / "deep").write_text("[" * 100_000)
    (folder / "scalar").write_text("42\n")
    (folder / "strange").write_text('{"question": {"a": []}, "contexts": 1e400, "answer": "\\ud800", "at": "x"}\n')
    names = {path.name: str(path) for path in folder.iterdir()}
    return names | {
        "missing": "files/none",
        "below a file": "files/empty/none",
        "directory": "files",
        "unreadable": "/proc/self/mem",
        "a name that is too long": "n" * 300,
        "a name that is no text": "files/\udcff",
    }


@pytest.mark.parametrize("name", READERS)
def test_an_input_that_cannot_be_read(stage: Stage, files: dict[str, str], name: str) -> None:
    """Missing, empty, binary, torn, a directory, unreadable: said in a few lines that name the file."""
    some = {"missing", "binary", "strange"}
    for kind, file in files.items():
        if kind not in some and name not in THOROUGH:
            continue
        ended = stage.run(*(word.format(file=file) for word in READERS[name].split()))
        ends_well(ended, lines=30)
        assert ended.code != 0 or kind in {"empty", "scalar"} or name in {"judge", "import"}, ended.told
        if kind in {"missing", "below a file", "directory", "unreadable"}:
            assert Path(file).name in ended.err, ended.told


@pytest.mark.parametrize("name", WRITERS)
def test_an_output_that_cannot_be_written(stage: Stage, files: dict[str, str], name: str) -> None:
    """The directory is not there or is a file, the name is a directory, the disk is full, or nothing may be written."""
    places = [files["below a file"], files["directory"], "/dev/full"]
    for file in places:
        ended = stage.run(*(word.format(file=file) for word in WRITERS[name].split()))
        ends_well(ended)
        assert ended.code != 0 or (name == "rules" and file == "files"), ended.told
        assert Path(file).name in ended.err or ended.code in {0, 3}, ended.told


def configs(stage: Stage) -> dict[str, bytes]:
    """What may be found in place of a configuration."""
    good = (stage.folder / "ragwatch.yaml").read_bytes()
    bomb = b"a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + b"".join(
        b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 5)) for n in range(1, 9)
    )
    return {
        "binary": random.Random(3).randbytes(5000),
        "empty": b"",
        "huge": b"a: 1\n" * 300_000,
        "NUL": good.replace(b"listen", b"lis\0ten"),
        "NUL in a path": good.replace(b"/state", b"/st\\0ate").replace(b"state: ", b'state: "', 1),
        "bad UTF-8": good + b"x: \xff\xfe\n",
        "deep": b"a: " + b"[" * 50_000,
        "deep mapping": b"".join(b" " * n + b"a:\n" for n in range(1000)),
        "aliases": bomb,
        "loop": b"sources: &a [*a]\n",
        "tag": b"state: !!python/object/apply:os.system [id]\n",
        "list": b"- 1\n",
        "date": good + b"gate: 2026-13-45\n",
        "sexagesimal": good.replace(b"200ms", b"1:30"),
        "key of a mapping": good + b"{a: 1}: 2\n",
        "numbers": good.replace(b"200ms", b"9" * 5000),
        "infinite": good.replace(b"200ms", b".inf"),
        "state is a file": good.replace(b"/state", b"/scores.jsonl"),
        "an address of another machine": good.replace(b"127.0.0.1:0", b"192.0.2.1:80"),
        "an address that is no name": good.replace(b"127.0.0.1:0", b"no such host:80"),
    }


def test_a_configuration_that_is_none(stage: Stage) -> None:
    """Whatever stands in the file, it is refused in a few lines, quickly and with code 2."""
    for kind, content in configs(stage).items():
        (stage.folder / "bad.yaml").write_bytes(content)
        ended = stage.drive("run", config="bad.yaml", signals=[])
        ends_well(ended, {1} if kind == "state is a file" else {2})
        assert ended.err.startswith(("ragwatch: ", '{"event": "configuration loaded"')), ended.told


def test_every_command_refuses_a_configuration_alike(stage: Stage) -> None:
    """Missing, with a NUL, or wrong: code 2, and the file is named. Each has one of them; all read it in one place."""
    (stage.folder / "nul.yaml").write_bytes(configs(stage)["NUL"])
    (stage.folder / "wrong.yaml").write_text("sources: 3\nstate: [1:30]\n")
    for name, config in zip(CONFIGURED, cycle(("none.yaml", "nul.yaml", "wrong.yaml")), strict=False):
        ended = stage.drive(name, config=config, signals=[])
        ends_well(ended, {2})
        assert config in ended.err, ended.told


def test_a_port_in_use(stage: Stage) -> None:
    """One line: which address, under which key or option, that another has it, and how to find out who."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = (stage.folder / "ragwatch.yaml").read_text()
        (stage.folder / "taken.yaml").write_text(config.replace("127.0.0.1:0", f"127.0.0.1:{port}"))
        taken = f"cannot listen on 127.0.0.1:{port}: Address already in use; another process has this port"
        served = stage.drive("run", config="taken.yaml", signals=[])
        ends_well(served, {2})
        assert [line for line in served.err.splitlines() if line[0] != "{"] == [
            f"ragwatch: web.listen: {taken} (see `ss -ltnp 'sport = :{port}'`); stop it or write another port"
        ]
        shown = stage.run("demo", "--port", str(port))
        ends_well(shown, {2})
        assert f"ragwatch: --port: {taken}" in shown.err
        checked = stage.drive("check", config="taken.yaml")
        ends_well(checked, {1})
        assert "Address already in use" in checked.out


def test_a_state_that_cannot_be_used(stage: Stage, files: dict[str, str]) -> None:
    """Below a file, on a disk that takes nothing, or a file: said with the path, by every command that wants it."""
    config = (stage.folder / "ragwatch.yaml").read_text()
    for place, names in ((files["empty"] + "/state", STATE), ("/proc/state", ["run"]), (files["binary"], ["kept"])):
        (stage.folder / "stateless.yaml").write_text(config.replace(f"{stage.folder}/state", place))
        for name in names:
            ended = stage.drive(name, config="stateless.yaml", state=place)
            ends_well(ended, {1, 2})
            assert place in " ".join((ended.err + ended.out).split()) or name == "check", ended.told
