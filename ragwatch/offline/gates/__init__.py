"""The gate: judged samples compared with thresholds and with a version before."""
