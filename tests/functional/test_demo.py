"""`ragwatch demo --degrade-after`: each breakage moves the scores that ought to move, and names the right stage."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from functional.daemon import parse_series

HEALTHY, LASTING, RATE = 4, 6, 40


@dataclass(frozen=True)
class Phase:
    """What was counted while the service was in one state."""

    release: str
    before: dict[str, float]
    after: dict[str, float]

    def grown(self, name: str) -> Counter[str]:
        """Growth of a counter by the value of its last interesting label."""
        found: Counter[str] = Counter()
        for key, value in self.after.items():
            if key.partition("{")[0] == name:
                found[key] += value - self.before.get(key, 0.0)  # type: ignore[assignment]
        return found

    def stages(self) -> Counter[str]:
        """Judged answers by stage."""
        found: Counter[str] = Counter()
        for key, amount in self.grown("ragwatch_stage_samples_total").items():
            found[key.split('stage="')[1].split('"')[0]] += int(amount)
        return found

    def mean(self, quantity: str) -> float:
        """Mean of a quantity, from the addends."""
        weights = self.grown(f"ragwatch_{quantity}_weight_total").total()
        return self.grown(f"ragwatch_{quantity}_weighted_score_total").total() / weights


def _play() -> dict[str, Phase]:
    """Run the demo through its schedule; a scrape at every announcement cuts it into phases."""
    seconds = HEALTHY + 6 * LASTING + 2
    command = [sys.executable, "-W", "error", "-m", "ragwatch", "demo", "--port", "0", "--seconds", str(seconds)]
    command += ["--degrade-after", str(HEALTHY), "--breakage-seconds", str(LASTING), "--rate", str(RATE)]
    phases: dict[str, Phase] = {}
    before: dict[str, float] = {}
    release, address = "v1", ""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            for line in process.stdout or ():
                if line.startswith("series"):
                    address = line.split()[1]
                elif line.startswith("release"):
                    with urllib.request.urlopen(address, timeout=10) as reply:
                        now = parse_series(reply.read().decode())
                    phases.setdefault(release, Phase(release, before, now))
                    release, before = line.split()[1].rstrip(":"), now
            assert process.wait(60) == 0
        finally:
            process.kill()
    return phases


def test_each_breakage_is_seen_and_named() -> None:
    """Vanished documents are retrieval, inventions generation, an ignored top passage alignment; health is none."""
    phases = _play()
    healthy = phases["v1"]
    assert healthy.stages()["none"] > 0.8 * healthy.stages().total()

    vanish = phases["v2-index"]
    assert vanish.mean("context_precision") < healthy.mean("context_precision") - 0.3
    assert vanish.stages()["retrieval"] > 0.5 * vanish.stages().total()

    invent = phases["v3-model"]
    assert invent.mean("faithfulness") < healthy.mean("faithfulness") - 0.3
    assert invent.stages()["generation"] > 0.5 * invent.stages().total()

    ignore = phases["v4-prompt"]
    assert ignore.mean("top_ranked_ignored") > healthy.mean("top_ranked_ignored") + 0.3
    assert ignore.mean("faithfulness") > healthy.mean("faithfulness") - 0.1
    assert ignore.stages()["alignment"] > 0.5 * ignore.stages().total()


def test_no_log_of_the_demo_stays_behind(tmp_path: Path) -> None:
    """Everything the demo writes goes to a temporary directory, and goes with it."""
    command = [sys.executable, "-m", "ragwatch", "demo", "--port", "0", "--seconds", "2"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert "overview" in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
