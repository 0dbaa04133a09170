"""Writes a picture of every page of the demo: light, dark, and on a phone. Needs Debian's Chromium.

python tools/screenshots.py [FOLDER]
"""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.chromium import DESK, PHONE, Browser, chromium

PORT = 10493
HEALTHY_SECONDS, BROKEN_SECONDS = 45, 60
PAGES = {
    "overview": "/?window=15m",
    "route": "/routes?route=search",
    "trends": "/trends?range=1h",
    "samples": "/samples?quantity=faithfulness&sort=worst",
    "canaries": "/canaries",
    "drift": "/drift",
    "causes": "/causes",
    "segment": "/segments/release?window=15m",
    "changes": "/changes?route=search&at=1m",
    "label": "/label",
}
README = ("overview", "causes", "label")  # which stand in README, as much of them as a window shows
LOOKS = {"light": (DESK, False), "dark": (DESK, True), "phone": (PHONE, False)}


def get(path: str) -> str:
    """Body of a page of the demo."""
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=30) as reply:
        return str(reply.read().decode())


def main(folder: Path) -> int:
    """Run the demo with a fault, and take the pictures."""
    path = chromium()
    if path is None:
        print("no browser: install the Debian package chromium", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--port", str(PORT), "--degrade-after", str(HEALTHY_SECONDS), "--breakage-seconds", "600"]
    command = [sys.executable, "-m", "ragwatch", "demo", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as demo:
        try:
            time.sleep(HEALTHY_SECONDS + BROKEN_SECONDS)
            with Browser(path) as browser:
                take(browser, folder)
        finally:
            demo.terminate()
    return 0


def take(browser: Browser, folder: Path) -> None:
    """Take all pictures of the demo."""
    address = f"http://127.0.0.1:{PORT}"
    worst = json.loads(get("/api/v1/samples?quantity=faithfulness&sort=worst&limit=1"))["samples"]
    key = worst[0]["verdict"]["key"]
    pages = {**PAGES, "sample": f"/samples/{key}", "labelling": "/label?annotator=ann"}
    browser.open(f"{address}/label")
    browser.type('input[name="annotator"]', "ann")
    browser.click("form.begin button")
    for alarm in json.loads(get("/api/v1/snapshot"))["drift"][:1]:
        query = (
            f"judge={alarm['name']}" if alarm["kind"] == "judge" else f"quantity={alarm['name']}&route={alarm['route']}"
        )
        pages["acknowledge"] = f"/acknowledge?{query}"
    for name, path in pages.items():
        for look, (window, dark) in LOOKS.items():
            browser.size(window, dark=dark)
            browser.open(address + path)
            browser.picture(folder / f"{name}-{look}.png")
    browser.size(DESK)
    for name in README:
        browser.open(address + pages["labelling" if name == "label" else name])
        browser.picture(folder / f"{name}.png", whole=False)
    print(f"{len(pages) * len(LOOKS)} pictures in {folder}")
    for complaint in browser.complaints:
        print(complaint, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist/screenshots")))
