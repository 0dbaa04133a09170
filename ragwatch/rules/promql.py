"""Building blocks of the expressions in rules and panels, compatible with Prometheus 2.42."""

from __future__ import annotations

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def span(seconds: float) -> str:
    """Formats a duration in the largest unit that represents it exactly, as Prometheus writes it.

    >>> span(900.0), span(86400.0), span(90.0), span(0.25)
    ('15m', '1d', '90s', '250ms')
    """
    for size, unit in _UNITS:
        if seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{round(seconds * 1000)}ms"


def pick(name: str, **labels: str) -> str:
    """Builds a series selector.

    >>> pick("up", job="ragwatch")
    'up{job="ragwatch"}'
    """
    inner = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inner}}}" if inner else name


def gain(counter: str, window: str) -> str:
    """Builds the growth of a counter between the first and the last scrape within a window, without extrapolation.

    `increase()` extrapolates to the ends of the window by a factor that depends on the scrape times of an instance, and
    in a ratio over replicas these factors do not cancel. Maximum - minimum is exact as long as the counter was not
    reset; after a reset the expression falls back to `increase()`.
    """
    return (
        f"(max_over_time({counter}[{window}]) - min_over_time({counter}[{window}])) "
        f"unless resets({counter}[{window}]) > 0 or increase({counter}[{window}])"
    )
