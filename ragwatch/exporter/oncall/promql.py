"""PromQL: the few forms that rules and panels are made of. Nothing newer than Prometheus 2.42."""

from __future__ import annotations

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def span(seconds: float) -> str:
    """A duration in the largest unit that tells it exactly, as Prometheus writes it.

    >>> span(900.0), span(86400.0), span(90.0), span(0.25)
    ('15m', '1d', '90s', '250ms')
    """
    for size, unit in _UNITS:
        if seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{round(seconds * 1000)}ms"


def pick(name: str, **labels: str) -> str:
    """A selector of series.

    >>> pick("up", job="ragwatch")
    'up{job="ragwatch"}'
    """
    inner = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inner}}}" if inner else name


def gain(counter: str, window: str) -> str:
    """By how much a counter grew between the first and the last scrape within a window.

    `increase()` stretches that to the ends of the window, by a factor that depends on when an instance was scraped:
    in a ratio over replicas those factors do not cancel. Largest less smallest is exact as long as the counter did
    not begin anew; where it did, `increase()` has to do.
    """
    return (
        f"(max_over_time({counter}[{window}]) - min_over_time({counter}[{window}])) "
        f"unless resets({counter}[{window}]) > 0 or increase({counter}[{window}])"
    )
