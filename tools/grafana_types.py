"""Type-checks the dashboards against Grafana's own types; node and npm fetch both packages into a new folder."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.dashboard_linter import panels

PACKAGES = ("@grafana/schema@13.2.3", "typescript@5")
BOARDS = Path(__file__).parent.parent / "grafana"
RAW = "@grafana/schema/dist/esm/raw/composable"
KINDS = {"timeseries": "TimeSeries", "stat": "Stat", "table": "Table"}
TYPED = """import {Dashboard} from '@grafana/schema';
type J<T> = T extends string ? T | `${T}` : T extends number ? T : T extends object ? {[K in keyof T]: J<T[K]>} : T;
type Some<T> = T extends object ? {[K in keyof T]?: Some<T[K]>} : T;
"""
CHECK = ("--noEmit", "--skipLibCheck", "--strict", "--moduleResolution", "bundler", "--module", "esnext", "--target")
OF_SOURCES = (
    "expr",
    "rawQuery",
    "titleFormat",
    "target",
    "useValueForTime",
)  # of an annotation: added by data sources, missing from the common type


def typescript(board: dict[str, Any]) -> str:
    """TypeScript that declares a dashboard, and of each panel the options and the custom fields of its type."""
    imports = (
        f"import * as {kind} from '{RAW}/{kind}/panelcfg/x/{name}PanelCfg_types.gen';" for kind, name in KINDS.items()
    )
    lines = [*imports, TYPED, f"export const board: J<Dashboard> = {json.dumps(board)};"]
    for panel in panels(board):
        kind = panel["type"]
        number, custom = panel["id"], panel["fieldConfig"]["defaults"]["custom"]
        lines.append(f"export const options{number}: J<Some<{kind}.Options>> = {json.dumps(panel['options'])};")
        if custom:
            lines.append(f"export const custom{number}: J<Some<{kind}.FieldConfig>> = {json.dumps(custom)};")
    return "\n".join(lines)


def main() -> int:
    """Type-checks all dashboards.

    Returns:
        Exit code of the compiler; 0 where npm is missing.
    """
    npm = shutil.which("npm")
    if npm is None:
        print("npm is missing; dashboards were not type-checked")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([npm, "install", "--silent", "--prefix", folder, *PACKAGES], check=True, cwd=folder)
        for file in (*BOARDS.glob("dashboards/*.json"), *BOARDS.glob("postgres/*.json")):
            board = json.loads(file.read_text(encoding="utf-8"))
            for annotation in board["annotations"]["list"]:
                for key in OF_SOURCES:
                    annotation.pop(key, None)
            Path(folder, f"{file.stem}.ts").write_text(typescript(board))
        files = sorted(str(path) for path in Path(folder).glob("*.ts"))
        compiler = Path(folder) / "node_modules" / ".bin" / "tsc"
        return subprocess.run([str(compiler), *CHECK, "es2022", *files], check=False, cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
