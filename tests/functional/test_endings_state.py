"""Every command ends well where the state is damaged, vanishes, or its disk is full."""

import random
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, append_records
from functional.endings import CODES, Stage, ends_well, fault_of

READS = ("kept", "run", "export", "calibrate", "stored", "live", "suggest")


@pytest.fixture
def spare(stage: Stage) -> Iterator[Path]:
    """A copy of the state, which `spare.yaml` names, and all of whose pages are in the database."""
    state = stage.folder / "spare"
    shutil.copytree(stage.folder / "state", state)
    with closing(sqlite3.connect(state / "ragwatch.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    config = (stage.folder / "ragwatch.yaml").read_text()
    (stage.folder / "spare.yaml").write_text(config.replace("/state", "/spare"))
    yield state
    shutil.rmtree(state, ignore_errors=True)


def damaged(whole: bytes, seed: int) -> bytes:
    """The file after an accident: other bytes, a stretch that is zero or noise, or an end that is gone."""
    rng, content = random.Random(seed), bytearray(whole)
    kind = seed % 5
    if kind == 0:
        return bytes(content[: rng.randrange(len(content))])
    if kind == 1:
        content[:100] = bytes(100)
        return bytes(content)
    if kind == 2:
        start = rng.randrange(len(content))
        content[start : start + 4096] = rng.randbytes(len(content[start : start + 4096]))
        return bytes(content)
    used = [place for place, byte in enumerate(content) if byte]  # most of a young database is empty
    for _ in range(rng.choice((1, 5, 200))):
        content[rng.choice(used)] = rng.randrange(256)
    return bytes(content)


@pytest.mark.parametrize(
    "seeds",
    [range(8), *(pytest.param(range(n, n + 100), marks=pytest.mark.slow) for n in range(1000, 2000, 100))],
    ids=lambda seeds: str(seeds.start),
)
def test_a_damaged_database(stage: Stage, spare: Path, seeds: range) -> None:
    """Whatever happened to its bytes, a command says so in a line, or does not notice; the daemon goes on or ends."""
    database = spare / "ragwatch.db"
    whole, faults = database.read_bytes(), []
    for seed in seeds:
        for rest in spare.glob("ragwatch.db-*"):
            rest.unlink()
        database.write_bytes(damaged(whole, seed))
        name = READS[seed % len(READS)]
        signals = [(signal.SIGTERM, 1.0)] if name == "run" else []
        ended = stage.drive(name, config="spare.yaml", state="spare", signals=signals)
        # A daemon that is told to end before it listens to that is ended by the system.
        if fault := fault_of(ended, CODES | {-15} if name == "run" else CODES):
            faults.append(f"seed {seed}: {fault}: {ended.told}")
    assert faults == [], "\n".join(faults[:5])


def test_a_state_that_vanishes(stage: Stage, spare: Path) -> None:
    """Its directory, or what is in it, is deleted under the daemon: it says so, goes on serving, and can be ended."""
    for vanish in (shutil.rmtree, lambda path: (path / "ragwatch.db").unlink()):
        config = stage.folder / "spare.yaml"
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            vanish(spare)
            append_records(stage.folder, [random.randrange(10**9)])
            assert "state: " in ragwatch.wait_until_ready(503)
            assert ragwatch.get("/metrics")[0] == 200
            ragwatch.signal(signal.SIGTERM)
            assert ragwatch.end() == 0
        assert not any("Traceback" in line for line in ragwatch.lines), ragwatch.lines
        shutil.rmtree(spare, ignore_errors=True)
        shutil.copytree(stage.folder / "state", spare)


def test_a_state_on_a_full_disk(stage: Stage, tmp_path: Path) -> None:
    """No room for a first start, or for a later one: said with advice, by every command that wants to write there."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        config = (stage.folder / "ragwatch.yaml").read_text()
        (stage.folder / "small.yaml").write_text(config.replace(f"{stage.folder}/state", f"{place}/state"))
        with (place / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            while ballast.write(bytes(4096)):
                pass
        for name in ("kept", "run", "stored", "export", "import", "check"):
            ended = stage.drive(name, config="small.yaml", state=f"{place}/state", signals=[])
            ends_well(ended, {1, 2})
            assert "/small" in ended.err + ended.out, ended.told
        for words in (
            "rules --config ragwatch.yaml --out",
            "gate log/rag.jsonl --junit",
            "backtest scores.jsonl --svg",
        ):
            ended = stage.run(*words.split(), place / "out")
            ends_well(ended, {1, 2})
            assert f"{place}/out" in ended.err, ended.told
    finally:
        subprocess.run(["umount", "-l", place], check=True)
