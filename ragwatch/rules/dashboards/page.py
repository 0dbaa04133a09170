"""Data links from panels to the ragwatch pages: the answers, canaries or alarms behind a line.

Grafana fills in the variables. `pages` is a constant of the dashboard, the labels are those of the line that was
clicked, and the times are those of the dashboard.
"""

from collections.abc import Collection
from dataclasses import dataclass

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity

PAGES = "${pages:raw}"
SHOWN_TIME = ("since=${__from:date:seconds}", "until=${__to:date:seconds}")
WINDOW = ("since=${window:percentencode}",)
JUDGE = "judge=${judge:percentencode}"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of ragwatch: text of the link, path below the URL of the pages, and query parameters.

    `parameters` are fixed; `labels` are those of a line that are parameters as well.
    """

    title: str
    path: str
    parameters: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def url(self, labels: Collection[str] = (), *, cells: bool = False) -> str:
        """Builds the URL for a line with these labels, or with `cells` for a row of a table with these columns."""
        place = "__data.fields" if cells else "__field.labels"
        filled = (f"{label}=${{{place}.{label}:percentencode}}" for label in self.labels if label in labels)
        query = "&".join((*self.parameters, *filled))
        return f"{PAGES}{self.path}{'?' * bool(query)}{query}"


OVERVIEW = Page("Overview page", "/")
CANARIES = Page("Canaries and their history", "/canaries")
DRIFT = Page("Alarms, baselines and events", "/drift")
ANSWERS = Page("Answers", "/samples", SHOWN_TIME, ("route",))
JUDGED = Page("Judged answers", "/samples", ("outcome=judged", *SHOWN_TIME), ("route", "judge", "stage"))
UNJUDGED = Page("Unjudged answers", "/samples", ("outcome=unjudged", *SHOWN_TIME), ("route", "judge"))


_SEGMENT = "metadata=${__field.labels.segment:percentencode}%3D${__field.labels.value:percentencode}"
JUDGED_BY_SEGMENT = Page("Judged answers", "/samples", ("outcome=judged", _SEGMENT, *SHOWN_TIME))


def scored_by_segment(quantity: Quantity) -> Page:
    """Page of the answers of a segment that the selected judge did not score best, the worst first."""
    whole = scored(quantity)
    return Page(whole.title, whole.path, (*whole.parameters, _SEGMENT))


def scored(quantity: Quantity, since: tuple[str, ...] = SHOWN_TIME) -> Page:
    """Page of the answers that the selected judge did not score best for a quantity, the worst first."""
    short_of_best = "above=0" if quantity in LOW_IS_GOOD else "below=1"
    parameters = (JUDGE, f"quantity={quantity}", short_of_best, "sort=worst", *since)
    return Page("Answers behind this", "/samples", parameters, ("route",))
