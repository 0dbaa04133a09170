"""Checks Kubernetes manifests, custom resources included, against published models of their definitions.

    python tools/crds.py FILE...

npm fetches the models into a new folder: their validators check values, and the TypeScript compiler finds keys that a
definition does not have, which a validator lets pass. A kind without a model is named, and is an error unless it is
listed in `WITHOUT_MODEL`.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

MODELS = {
    "monitoring.coreos.com": ("@kubernetes-models/prometheus-operator", "6"),
    "postgresql.cnpg.io": ("@kubernetes-models/cloudnative-pg", "2"),
}
CORE = ("kubernetes-models", "5")
COMPILER = "typescript@5"
WITHOUT_MODEL = {
    "kustomize.config.k8s.io": "read by kustomize, which `make check-deploy` runs",
    "pyrra.dev": "no package on npm holds its definition",
}
CHECK = ("--noEmit", "--skipLibCheck", "--strict", "--moduleResolution", "bundler", "--module", "esnext", "--target")
VALIDATE = """import fs from 'node:fs';
let bad = 0;
for (const {place, module, kind, manifest} of JSON.parse(fs.readFileSync('manifests.json'))) {
  try { new (await import(module))[kind](manifest).validate(); }
  catch (error) { bad = 1; console.error(`${place}: ${error.message}`); }
}
process.exit(bad);
"""


class Manifest(NamedTuple):
    """An object in a file, and the module of its model."""

    place: str  # file, kind and name
    module: str  # module of npm that exports the kind
    kind: str  # kind of the object
    manifest: dict[str, Any]  # the object


def manifests(paths: Iterable[Path]) -> Iterator[Manifest]:
    """Yield each object in the files that has a model."""
    for path in paths:
        for content in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if not content or "apiVersion" not in content:
                continue
            version, kind = content["apiVersion"], content["kind"]
            group = version.rpartition("/")[0]
            place = f"{path}: {kind} {content.get('metadata', {}).get('name', '')}"
            if group in WITHOUT_MODEL:
                print(f"{place}: not checked, {WITHOUT_MODEL[group]}")
            else:
                package = MODELS.get(group, CORE)[0]
                yield Manifest(place, f"{package}/{version}/{kind}", kind, content)


def typescript(one: Manifest) -> str:
    """TypeScript that declares an object as one of its kind."""
    return (
        f"import type {{I{one.kind}}} from '{one.module}';\n"
        f"export const manifest: I{one.kind} = {json.dumps(one.manifest)};"
    )


def main(paths: list[str]) -> int:
    """Check the files.

    Returns:
        Exit code: 0 if all objects are valid, or where npm is missing.
    """
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        print("npm is missing; custom resources were not checked")
        return 0
    objects = list(manifests(map(Path, paths)))
    with tempfile.TemporaryDirectory() as folder:
        packages = [f"{name}@{version}" for name, version in (*MODELS.values(), CORE)]
        subprocess.run([npm, "install", "--silent", "--prefix", folder, *packages, COMPILER], check=True, cwd=folder)
        Path(folder, "manifests.json").write_text(json.dumps([one._asdict() for one in objects]), encoding="utf-8")
        Path(folder, "validate.mjs").write_text(VALIDATE, encoding="utf-8")
        files = []
        for number, one in enumerate(objects):
            files.append(Path(folder, re.sub(r"[^\w.-]+", "-", f"{one.place}-{number}.ts")))
            files[-1].write_text(typescript(one), encoding="utf-8")
        valid = subprocess.run([node, "validate.mjs"], check=False, cwd=folder).returncode
        compiler = Path(folder) / "node_modules" / ".bin" / "tsc"
        typed = subprocess.run([compiler, *CHECK, "es2022", *files], check=False, cwd=folder).returncode
    print(f"{len(objects)} objects were checked against their models")
    return 1 if valid or typed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
