"""Checks manifests that helm or kustomize rendered: ragwatch starts with the configuration in each ConfigMap.

helm template NAME deploy/helm/ragwatch -f VALUES | python tools/rendered.py
"""

import re
import sys
from pathlib import Path

import yaml

from ragwatch.config import parse
from ragwatch.errors import ConfigError

VARIABLE = re.compile(r"\$\{(\w+)\}")


def configurations(manifests: str) -> dict[str, str]:
    """The text of each ragwatch.yaml, by the name of its ConfigMap."""
    return {
        manifest["metadata"]["name"]: manifest["data"]["ragwatch.yaml"]
        for manifest in yaml.safe_load_all(manifests)
        if manifest and manifest["kind"] == "ConfigMap" and "ragwatch.yaml" in manifest["data"]
    }


def main() -> int:
    """Reads manifests from standard input. Exit code 1 if a configuration is refused, or there is none."""
    texts = configurations(sys.stdin.read())
    if not texts:
        print("no ConfigMap holds ragwatch.yaml", file=sys.stderr)
        return 1
    for name, text in texts.items():
        data = yaml.safe_load(VARIABLE.sub("postgresql://ragwatch@db/ragwatch", text))
        try:
            parse(data, folder=Path("/etc/ragwatch"))
        except ConfigError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        print(f"{name}: the configuration is accepted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
