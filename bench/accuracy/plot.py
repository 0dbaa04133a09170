"""Plot of AUROC by set as an SVG, written by hand as the charts of `ragwatch backtest` are."""

from collections.abc import Sequence
from html import escape

from accuracy.readings import LEXICAL, LOCAL, OVERLAP
from accuracy.scoring import Scored

WIDTH, LEFT, RIGHT, TOP, LINE, FOOT = 960, 330, 70, 64, 26, 34
LOW, HIGH = 0.3, 1.0
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#3b4252}.title{font-weight:600;font-size:14px}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.grid{stroke:#e6e9ef}.chance{stroke:#5d6778;stroke-dasharray:5 4}"
    ".fitted{fill:#8a93a3}.overlap{fill:#c8ced8}.lexical{fill:#9ec5f4}.local{fill:#1d5fb4}"
    ".span{stroke:#1d5fb4;stroke-width:1.6}.bar{stroke:#b3261e;stroke-width:2}"
)
_CLASSES = {OVERLAP: "overlap", LEXICAL: "lexical", LOCAL: "local"}


def plot(found: Sequence[Scored], title: str) -> str:
    """One line a set: a mark for each judge, the interval of the best of them, and the bar that was set."""
    found = [each for each in found if each.figures["AUROC"].value is not None]
    names = list(dict.fromkeys(each.of.name for each in found))
    height = TOP + LINE * len(names) + FOOT
    lines = "".join(
        _line([each for each in found if each.of.name == name], TOP + LINE * (place + 0.5))
        for place, name in enumerate(names)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}"><style>{_STYLE}</style>'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>{_head(title)}{_grid(height)}{lines}</svg>\n'
    )


def _x(value: float) -> float:
    share = (min(HIGH, max(LOW, value)) - LOW) / (HIGH - LOW)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _head(title: str) -> str:
    parts = [f'<text class="title" x="16" y="24">{escape(title)}</text>']
    for place, (name, mark) in enumerate(_CLASSES.items()):
        x = LEFT + place * 130
        parts.append(f'<circle class="{mark}" cx="{x}" cy="44" r="5"/><text x="{x + 10}" y="48">{name}</text>')
    x = LEFT + 3 * 130
    parts.append(f'<line class="bar" x1="{x}" x2="{x}" y1="37" y2="51"/><text x="{x + 8}" y="48">bar</text>')
    parts.append('<text x="16" y="48" class="fitted">grey: seen in training</text>')
    return "".join(parts)


def _grid(height: int) -> str:
    parts = []
    for step in range(round(LOW * 10), round(HIGH * 10) + 1):
        x = _x(step / 10)
        kind = "chance" if step == 5 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - FOOT}"/>')
        parts.append(f'<text class="middle" x="{x:.1f}" y="{height - FOOT + 18}">{step / 10:.1f}</text>')
    return "".join(parts)


def _line(found: Sequence[Scored], y: float) -> str:
    name = found[0].of.name.removeprefix("judge/")
    fitted = any(each.fitted for each in found if each.judge == LOCAL)
    parts = [f'<text class="end{" fitted" if fitted else ""}" x="{LEFT - 12}" y="{y + 4:.1f}">{escape(name)}</text>']
    bar = found[0].of.bar
    if bar is not None:
        parts.append(f'<line class="bar" x1="{_x(bar):.1f}" x2="{_x(bar):.1f}" y1="{y - 9:.1f}" y2="{y + 9:.1f}"/>')
    best = found[-1].figures["AUROC"]
    if best.low is not None and best.high is not None:
        parts.append(f'<line class="span" x1="{_x(best.low):.1f}" x2="{_x(best.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
    for each in found:
        value = each.figures["AUROC"].value
        if value is not None:
            parts.append(f'<circle class="{_CLASSES[each.judge]}" cx="{_x(value):.1f}" cy="{y:.1f}" r="5"/>')
    if best.value is not None:
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{y + 4:.1f}">{best.value:.3f}</text>')
    return "".join(parts)
