"""The audit log: each change of a line is found, and restarts and rotations continue the chain."""

import json
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragwatch.audit import AuditLog, local_actor, verify
from ragwatch.commands import cli
from ragwatch.errors import ConfigError, StoreError


def write(path: Path, *keys: str) -> None:
    """One line for each key, each by a process of its own."""
    for key in keys:
        AuditLog(path, lambda: 1.5).record(actor="anna", action="read", keys=[key], address="127.0.0.1", status=200)


def test_lines(tmp_path: Path) -> None:
    """A line says who did what to which samples and when; the file is its owner's alone."""
    path = tmp_path / "audit.jsonl"
    write(path, "a")
    AuditLog(path).record(actor=local_actor(), action="read", keys=[str(number) for number in range(700)], reason=None)
    first, second = map(json.loads, path.read_text().splitlines())
    expected = {"at": 1.5, "actor": "anna", "address": "127.0.0.1", "action": "read", "status": 200, "keys": ["a"]}
    assert {name: first[name] for name in expected} == expected
    assert second["actor"].endswith(" (command line)")
    assert (len(second["keys"]), second["keys_left_out"], second["previous"]) == (600, 100, first["hash"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("harm", ["change", "delete", "insert", "swap", "garbage"])
def test_the_first_broken_line_is_named(tmp_path: Path, harm: str, number: int) -> None:
    """Wherever a line is changed, deleted, inserted or moved, the chain breaks there."""
    path = tmp_path / "audit.jsonl"
    write(path, *"abcd")
    lines = path.read_text().splitlines()
    at = number + 1
    match harm:
        case "change":
            lines[number] = lines[number].replace("anna", "hugo")
        case "delete":
            del lines[number]
            at = number + 1 if 0 < number < 3 else 0  # the first may be in another file; the last is told by the end
        case "insert":
            lines.insert(number, lines[number - 1])
            at = 2 if number == 0 else number + 1
        case "swap":
            lines[number], lines[number - 1] = lines[number - 1], lines[number]
            at = max(2, number) if number else 2
        case _:
            lines[number] = "{}"
    path.write_text("".join(f"{line}\n" for line in lines))
    result = verify([path])
    if harm == "delete" and number == 0:
        assert (result.error, result.first) == (None, 2)
    elif harm == "delete" and number == 3:
        assert "line 4 is missing" in str(result.error)
    else:
        assert str(result.error).startswith(f"{path}:{at}: ")


def test_restart_and_rotation_continue_the_chain(tmp_path: Path) -> None:
    """A renamed file, a copied and truncated one, and the current one are one chain."""
    path, renamed, copied = (tmp_path / name for name in ("audit.jsonl", "audit.jsonl.2", "audit.jsonl.1"))
    write(path, "a", "b")
    path.rename(renamed)
    write(path, "c")
    copied.write_bytes(path.read_bytes())
    os.truncate(path, 0)
    assert verify([renamed, copied, path]).error is None
    write(path, "d")
    assert (verify([renamed, copied, path]).lines, verify([path]).first) == (4, 4)
    assert "does not follow line 2" in str(verify([renamed, path]).error)


def test_crashes_between_the_two_writes(tmp_path: Path) -> None:
    """A line whose hash was not noted is continued; a torn line is named and the next one is whole."""
    path = tmp_path / "audit.jsonl"
    write(path, "a", "b")
    last = tmp_path / "audit.jsonl.last"
    content = last.read_bytes()
    write(path, "c")
    last.write_bytes(content)
    write(path, "d")
    assert verify([path]).lines == 4
    with path.open("ab") as file:
        file.write(b'{"at":1')
    write(path, "e")
    assert "5: is not a line" in str(verify([path]).error)
    assert json.loads(path.read_text().splitlines()[-1])["seq"] == 5


def test_another_last_line_is_noticed(tmp_path: Path) -> None:
    """A whole chain that somebody wrote with hashes of their own does not end as the original."""
    path, forged = tmp_path / "audit.jsonl", tmp_path / "forged"
    write(path, "a", "b")
    write(forged, "a", "x")
    path.write_bytes(forged.read_bytes())
    assert "not the one that was written last" in str(verify([path]).error)


def test_several_writers(tmp_path: Path) -> None:
    """Threads of several logs over one file interleave without a break."""
    path = tmp_path / "audit.jsonl"
    logs = [AuditLog(path), AuditLog(path)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: logs[number % 2].record(actor="a", action="read", number=number), range(40)))
    assert verify([path]).lines == 40


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    """The error names the key and the file; nothing starts whose reads could not be recorded."""
    folder = tmp_path / "none"
    folder.mkdir()
    log = AuditLog(folder / "audit.jsonl")
    shutil.rmtree(folder)
    with pytest.raises(StoreError, match=r"audit\.file: .*cannot be written"):
        log.record(actor="anna", action="read")
    with pytest.raises(ConfigError, match=r"^audit\.file: .*none/audit\.jsonl cannot be written: No such file"):
        AuditLog(folder / "audit.jsonl")


def test_the_command(tmp_path: Path) -> None:
    """Intact, broken and empty logs have exit codes of their own."""
    path, empty = tmp_path / "audit.jsonl", tmp_path / "empty"
    write(path, "a", "b")
    empty.touch()
    run = CliRunner().invoke
    result = run(cli, ["audit", "verify", str(path)], standalone_mode=False)
    assert (result.return_value, result.output) == (0, "intact: 2 lines, from 1 to 2\n")
    path.write_text(path.read_text().replace('"a"', '"x"'))
    result = run(cli, ["audit", "verify", str(path)], standalone_mode=False)
    assert (result.return_value, result.output.startswith(f"broken: {path}:1: was changed")) == (1, True)
    assert run(cli, ["audit", "verify", str(empty)], standalone_mode=False).return_value == 3
