"""A browser without a window, driven over a pipe (Chrome DevTools Protocol), as a person would use it."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from support.patience import DEADLINE, pauses

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--hide-scrollbars", "--no-first-run", "--no-proxy-server"),
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--remote-debugging-pipe",
)
KEYS = {"Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}}
DESK, PHONE = (1200, 900), (390, 844)


def chromium() -> str | None:
    """Path of a browser; None without one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page. As a context manager it is ended, whatever happened.

    Args:
        path: Path of the browser.
    """

    def __init__(self, path: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="ragwatch-browser-", ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 100) for one in (theirs_in, theirs_out)]
        silent = os.open(os.devnull, os.O_WRONLY)
        self._process = os.posix_spawn(
            path,
            [path, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            {**os.environ, "TMPDIR": self._profile.name},  # it leaves folders there
            file_actions=[
                (os.POSIX_SPAWN_DUP2, silent, 2),
                (os.POSIX_SPAWN_DUP2, high[0], 3),
                (os.POSIX_SPAWN_DUP2, high[1], 4),
            ],
            setpgroup=0,
        )
        for one in (theirs_in, theirs_out, *high, silent):
            os.close(one)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._documents: set[str] = set()
        self._loads = 0

    def __enter__(self) -> Self:
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")
        self.size(DESK)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (reply := self._receive()).get("id") != self._number:
            pass
        assert "error" not in reply, f"{method}: {reply['error']}"
        result: dict[str, Any] = reply["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        """The next message; what it tells of the page is noted."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], DEADLINE)
            assert ready, "the browser does not answer"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loads += 1
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
                if parameters.get("type") == "Document":
                    self._documents.add(parameters["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(parameters["args"]))
            case "Log.entryAdded":
                entry = parameters["entry"]
                if entry["source"] != "network" or entry.get("url") not in self._documents:  # a page may be a 404
                    self.complaints.append(entry["text"])
        return message

    def _loading(self, act: Callable[[], object]) -> None:
        """Do what leads to another page, and wait until that is loaded."""
        before = self._loads
        act()
        while self._loads == before:
            self._receive()

    def size(self, window: tuple[int, int], *, dark: bool = False) -> None:
        """Set width and height, and the colour scheme that the person prefers."""
        width, height = window
        self._send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])

    def scripts(self, *, on: bool) -> None:
        """Whether pages may run scripts."""
        self._send("Emulation.setScriptExecutionDisabled", value=not on)

    def open(self, address: str) -> None:
        """Go to an address."""
        self._loading(lambda: self._send("Page.navigate", url=address))

    def ask(self, expression: str) -> Any:
        """Value of an expression on the page; promises are awaited."""
        reply = self._send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        for _ in pauses():
            if self.ask(expression):
                return
        raise AssertionError(f"{expression}: not true on {self.address}")

    @property
    def address(self) -> str:
        """Address of the page."""
        return str(self.ask("location.href"))

    @property
    def text(self) -> str:
        """Text of the page, as a person sees it."""
        return " ".join(str(self.ask("document.body.innerText")).split())

    def click(self, selector: str, *, loads: bool = True) -> None:
        """Click the first element of a CSS selector, with the mouse."""
        place = self.ask(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); if (!one) return null;"
            "one.scrollIntoView({block: 'center'}); const box = one.getClientRects()[0];"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        assert place is not None, f"{selector}: is not on {self.address}"

        def press() -> None:
            for kind in ("mousePressed", "mouseReleased"):
                self._send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

        self._loading(press) if loads else press()

    def press(self, key: str, *, loads: bool = False) -> None:
        """Press a key."""
        parts = KEYS.get(key, {"key": key, "text": key})

        def stroke() -> None:
            self._send("Input.dispatchKeyEvent", type="keyDown", **parts)
            self._send("Input.dispatchKeyEvent", type="keyUp", **{**parts, "text": ""})

        self._loading(stroke) if loads else stroke()

    def type(self, selector: str, text: str) -> None:
        """Replace the text of a field."""
        self.ask(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.focus(); one.select(); }})()"
        )
        self._send("Input.insertText", text=text)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write a picture of the page as PNG."""
        data = self._send(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole=whole)
        )
        path.write_bytes(base64.b64decode(data["data"]))

    def _clip(self, *, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        box = self._send("Page.getLayoutMetrics")["cssContentSize"]
        height = min(box["height"], 6000)
        return {"clip": {"x": 0, "y": 0, "width": box["width"], "height": height, "scale": 1}}

    def foreign(self, address: str) -> list[str]:
        """Addresses that were asked for and are not of this host, nor part of a page."""
        here = urlsplit(address).netloc
        return [one for one in self.requests if urlsplit(one).scheme != "data" and urlsplit(one).netloc != here]
