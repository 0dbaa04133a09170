"""Entry point: sets up signals and streams, runs the command line and exits with its exit code."""

import sys

from ragwatch import process


def main() -> None:
    """Run the command line. `ragwatch --help` documents the exit codes."""
    process.exit_on_interrupt()
    if sys.argv[1:2] in (["run"], ["demo"]) and "--once" not in sys.argv:
        process.TERMINATION.await_start()
    # Imported afterwards, so that signals during the import find their handlers.
    with process.without_garbage_collection():
        from ragwatch.commands import runner  # noqa: PLC0415 - see above

    code = runner.run()
    process.ignore()
    process.skip_garbage_at_exit()
    sys.exit(code)


if __name__ == "__main__":
    main()
