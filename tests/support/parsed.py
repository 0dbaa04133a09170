"""The package's own modules, parsed once for all tests that look at its code."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def module_name(path: Path) -> str:
    """Dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def trees() -> dict[Path, ast.Module]:
    """Syntax tree of each module of the package."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "ragwatch").rglob("*.py"))}
