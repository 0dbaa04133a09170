"""ragwatch: how good the live answers of a RAG service are, with an interval, per route, now.

The house, from the door down; imports go downward only (import-linter proves it):

    __main__     one place where an error becomes an exit code
    commands     one file per verb: run, judge, check, map, demo
    daemon       builds kinds, joins rooms, repeats their steps, listens to signals
    config       YAML in, a frozen Config out; errors name the key
    sources      transports that yield records (tail)
    judges       readers of one sample (lexical)
    stores       durable memory (sqlite)
    pipeline     the loops: intake, judging, digest, keeping; knows no kind
    exporter     catalogue of series, Snapshot -> metric families
    web          pages and endpoints
    demo         a small real RAG service, and a way to make it worse
    ports        every door between those rooms
    board        where the latest Snapshot hangs
    telemetry    our own life: logs and counts
    formats      foreign shapes -> Sample
    core         the floor: pure values and arithmetic
    errors       who must act
    interrupts   what Ctrl-C does, by phase
"""

__version__ = "0.1.0"
