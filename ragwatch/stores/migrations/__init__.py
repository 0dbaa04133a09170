"""The schema of the store: one numbered list of migrations, of which some are for one engine, or differ between both.

`15_name.sql` is for both, `04_name.sqlite.sql` for one. A stored version is the number of scripts of its engine.
"""

import re
from functools import cache
from importlib.resources import files


@cache
def scripts_of(engine: str) -> tuple[str, ...]:
    """Return the scripts of an engine, `sqlite` or `postgres`, in their order."""
    scripts = {
        path.name: path for path in files(__name__).iterdir() if re.fullmatch(rf"\w+(\.{engine})?\.sql", path.name)
    }
    return tuple(scripts[name].read_text(encoding="utf-8") for name in sorted(scripts))
