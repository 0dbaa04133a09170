"""Kind `sqlite`: stores everything in one SQLite database."""

from ragwatch.stores.sqlite.store import Options, build

__all__ = ["Options", "build"]
