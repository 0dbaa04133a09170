"""ragwatch: estimates the quality of the live answers of a RAG service per route, with confidence intervals.

Layers of the package, from top to bottom; imports go downward only (checked by import-linter):

    __main__     entry point: converts errors into exit codes
    commands     the commands of the CLI that need a daemon, or set one up
    offline      tools for files and stored state: judge, estimate, gate, compare, rollout, plan, diagnose, export
    terminal     options and output of both
    daemon       builds the components of a configuration, runs their loops, handles signals
    config       reads and validates the YAML configuration
    sources      transports that deliver records, such as log files
    judges       components that read a sample and return evidence
    probes       clients that send canary queries to the service under test
    stores       durable databases
    pipeline     the loops: intake, judging, digest, drift detection, canaries, retention
    rules        alerting and recording rules for Prometheus
    exporter     catalogue of series; converts a Snapshot into metric families
    web          pages and HTTP API
    demo         a small RAG service that can be degraded
    ports        Protocols between these packages
    board        holds the latest Snapshot
    telemetry    log events and counters of ragwatch itself
    formats      convert records of other tools into samples
    redaction    replaces personal data and secrets with tokens
    statistics   scores, estimators, levels, drift, causes, ranking: pure arithmetic
    model        values (samples, evidence) and tables (quantities, signals, reasons, stages)
    emit         writes answers to a log or sends them to ragwatch, from inside the service; standard library only
    errors       exceptions, by who has to act
    process      handling of SIGINT and SIGTERM, and garbage collection
"""

__version__ = "0.3.0"
