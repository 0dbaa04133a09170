"""Settings of the documentation site, which `make docs` builds with Sphinx from the Markdown files of the repository.

The root of the sources is the root of the repository, so that links in the files are those that a forge shows. Pages
are changed in memory only: the start page gets the navigation, examples for doctest become blocks of code, and links
to folders, which a site does not have, become text.
"""
# ruff: noqa: INP001 - Sphinx reads this file by its name

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAVIGATION = {
    "Start": (
        *("docs/install", "docs/setup", "docs/logs", "docs/otlp", "docs/sending", "docs/brokers"),
        *("docs/figures", "docs/metrics", "docs/judges", "docs/canaries", "docs/diagnosis"),
        *("docs/exercise", "docs/ci", "docs/faq"),
    ),
    "Operate": (
        "docs/operating",
        "docs/upgrading",
        "docs/scaling",
        "docs/workers",
        "docs/oncall",
        "docs/alerts",
        "docs/mcp",
    ),
    "Protect": ("docs/security", "docs/privacy", "docs/redaction", "SECURITY"),
    "Look up": ("docs/commands", "docs/reference", "docs/glossary", "docs/views", "docs/parquet", "CHANGELOG"),
    "Understand": (
        "docs/statistics",
        "docs/requirements",
        "training/README",
        *("training/LOCAL", "training/KINDS", "training/INJECTION"),
        "docs/comparison",
        "docs/bench_peers",
        *("docs/month" for page in [ROOT / "docs" / "month.md"] if page.exists()),  # `make month` writes it
    ),
    "Change": ("docs/architecture", "CONTRIBUTING"),
    "Runbooks": tuple(sorted(f"deploy/runbooks/{path.stem}" for path in (ROOT / "deploy" / "runbooks").glob("*.md"))),
}

project = "ragwatch"
version = release = re.findall(r'(?m)^__version__ = "(.+)"$', (ROOT / "ragwatch/__init__.py").read_text())[0]
copyright = "the authors of ragwatch"  # noqa: A001 - Sphinx's name for it
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", *(f"{page}.md" for pages in NAVIGATION.values() for page in pages)]
exclude_patterns = [".*", "dist", "tests", "ragwatch", "reader/build", "bench"]
language = "en"
# A dialect of SQL that the highlighter does not know; the block is shown as it is.
suppress_warnings = ["misc.highlighting_failure"]
nitpicky = True
myst_heading_anchors = 6
myst_enable_extensions: list[str] = []
html_theme = "furo"
html_title = f"ragwatch {version}"
html_copy_source = False
html_show_sphinx = False
pygments_style = "default"


def _navigation() -> str:
    """The tables of contents of the start page."""
    blocks = (
        "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *(f"/{page}" for page in pages), "```"])
        for caption, pages in NAVIGATION.items()
    )
    return "\n\n" + "\n\n".join(blocks) + "\n"


def _text_of_folders(text: str, folder: Path) -> str:
    """The text with links to existing folders replaced by their words."""
    return re.sub(
        r"\[([^\]]+)\]\(([^)#:\s]+)\)",
        lambda link: link[1] if (folder / link[2]).is_dir() else link[0],
        text,
    )


def _change(app: Any, page: str, source: list[str]) -> None:  # noqa: ARG001, ANN401 - the signature is Sphinx's
    text = re.sub(r"(?m)^(?:>>> .*\n)(?:(?!\n).+\n)*", lambda example: f"```pycon\n{example[0]}```\n", source[0])
    source[0] = _text_of_folders(text, (ROOT / page).parent) + (_navigation() if page == root_doc else "")


def _start_page(app: Any, error: Exception | None) -> None:  # noqa: ANN401 - Sphinx has no stubs here
    """Copy the start page to the name under which a server looks for it."""
    if error is None:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Any) -> None:  # noqa: ANN401 - Sphinx has no stubs here
    """Connect to the events of a build."""
    app.connect("source-read", _change)
    app.connect("build-finished", _start_page)
