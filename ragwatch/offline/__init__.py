"""Tools for files and stored state, without a daemon: arithmetic, text and command of a tool side by side."""
