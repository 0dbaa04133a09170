"""The demo shows a calibrated route beside one that is not."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request

from functional.daemon import parse_series
from support.patience import DEADLINE, pauses


def test_one_route_of_the_demo_is_calibrated() -> None:
    """It labels answers of one route as a person would: the interval of its level is narrower, and holds the truth."""
    command = [sys.executable, "-W", "error", "-m", "ragwatch", "demo", "--port", "0", "--rate", "40"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            address = ""
            for line in process.stdout or ():
                address = line.split()[1].removesuffix("/metrics") if line.startswith("series") else address
                if "are labelled" in line:
                    break
            for _ in pauses():
                with urllib.request.urlopen(f"{address}/metrics", timeout=DEADLINE) as response:
                    series = parse_series(response.read().decode())
                if series.get('ragwatch_judge_labels{quantity="faithfulness"}') == 50:
                    break
            ends = {
                route: tuple(
                    series[
                        f'ragwatch_faithfulness_ratio_{end}{{corrected="yes",judge="embedded",route="{route}",window="1h"}}'
                    ]
                    for end in ("low", "high")
                )
                for route in ("search", "support")
            }
        finally:
            process.kill()
    assert ends["search"][1] - ends["search"][0] < (ends["support"][1] - ends["support"][0]) / 1.5
    assert ends["search"][1] >= 0.99  # the service is healthy: it quotes
