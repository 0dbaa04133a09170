"""Building blocks of the expressions in rules and panels, compatible with Prometheus 2.42."""

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


def in_words(seconds: float) -> str:
    """Formats a duration as texts for people write it.

    >>> in_words(900.0), in_words(86400.0)
    ('15 min', '1 d')
    """
    text = span(seconds)
    number = text.rstrip("mshd")
    unit = text.removeprefix(number)
    return f"{number} {'min' if unit == 'm' else unit}"


def of_window(name: str, window: str | None) -> str:
    """Name of a recorded series over a window, which it carries after the operation; other names stay as they are.

    >>> of_window("route:ragwatch_quality:mean", "1h"), of_window("up", None)
    ('route:ragwatch_quality:mean1h', 'up')
    """
    return f"{name}{window}" if window is not None and ":" in name else name


def pick(name: str, *matchers: str, **labels: str) -> str:
    """Builds a series selector; the name of a recorded series carries its window. Empty matchers are left out.

    >>> pick("up", job="ragwatch")
    'up{job="ragwatch"}'
    >>> pick("route:ragwatch_quality:mean", 'route!="x"', "", window="1h")
    'route:ragwatch_quality:mean1h{window="1h",route!="x"}'
    """
    inner = ",".join([*(f'{label}="{value}"' for label, value in labels.items()), *filter(None, matchers)])
    name = of_window(name, labels.get("window"))
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


def unless_paged(expr: str, window: str, *other_pages: str) -> str:
    """Builds a condition that does not start while another page about its route fires, for up to a day.

    Nor within a window after that page: it would be about answers from before the mend. Alertmanager cannot do this:
    alerts that inhibit each other are both hidden, and one that inhibits another one-way sends it as a fresh alert when
    it ends. Only critical alerts count, so that a warning never mutes a page.

    The condition, over a window, has the labels job and route; `other_pages` are matchers of the other alerts.
    """
    series = [f'ALERTS{{{matchers},alertstate="firing",severity="critical"}}' for matchers in other_pages]
    recent = "\n    or ".join(f"max_over_time({name}[{window}])" for name in series)
    standing = "\n    or ".join(f"{name} offset 1d" for name in series)
    return f"{expr}\nunless on (job, route) (\n    ({recent})\n  unless on (job, route)\n    ({standing})\n)"
