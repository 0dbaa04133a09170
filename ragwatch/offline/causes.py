"""`ragwatch causes`: what failing answers have in common, from the state. The daemon may be running."""

import json
import time

import click
from rich.console import Console

from ragwatch.config import Config, load
from ragwatch.errors import ConfigError
from ragwatch.offline.state_reader import state_reader
from ragwatch.terminal.given import judge_name, require_route
from ragwatch.terminal.options.people import CausesArguments
from ragwatch.terminal.output import escape_line, moment
from ragwatch.web.json_values import ParameterError
from ragwatch.web.pages.causes import DEFAULT_WINDOW, PARAMETERS, CauseQuestion, causes_view, question_of
from ragwatch.web.pages.drift_replies import CausesLine
from ragwatch.web.scope import PageScope

NOT_ENOUGH_DATA = 3


def causes(given: CausesArguments) -> int:
    """Find what failing answers of a route and time have in common."""
    config = load(given.path)
    require_route(config, given.route)
    judge_name(config, given.judge)
    scope = page_scope(config)
    pairs = [(name, value) for name in PARAMETERS if (value := getattr(given, name)) is not None]
    try:
        question = question_of(pairs, scope, now=time.time())
    except ParameterError as error:
        raise ConfigError(f"--{error}") from error
    _check(question, given)
    with state_reader(config) as reader:
        view = causes_view(reader.answers, question, scope, clock=lambda at: moment(at).removesuffix(" UTC"))
    if given.as_json:
        click.echo(json.dumps(view))
    else:
        _show(view, config.settings.web.pages or f"http://{config.settings.web.listen}")
    return 0 if view["answers"] else NOT_ENOUGH_DATA


def _check(question: CauseQuestion, given: CausesArguments) -> None:
    """Refuse limits that no score is beyond, and times that no answer is of."""
    if question.limit is not None and not 0.0 <= question.limit <= 1.0:
        limit = f"--above {given.above}" if given.below is None else f"--below {given.below}"
        raise ConfigError(f"{limit}: is no score; write a number from 0 to 1")
    if question.until is not None and question.until <= question.since:
        begin = f"--window {given.window or DEFAULT_WINDOW}" if given.since is None else f"--since {given.since}"
        raise ConfigError(f"--until {given.until}: is not later than the start of {begin}; give an earlier --since")


def page_scope(config: Config) -> PageScope:
    """Return the names and thresholds of a configuration."""
    settings = config.settings
    return PageScope(
        routes=settings.routes,
        thresholds={str(quantity): value for quantity, value in settings.live_thresholds.items()},
        route_thresholds={
            route: {str(quantity): value for quantity, value in limits.items()}
            for route, limits in settings.route_thresholds.items()
        },
        criteria=tuple(criterion.name for criterion in settings.criteria),
        texts=config.texts,
        confidence=settings.estimates.confidence,
    )


def _show(view: CausesLine, address: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    if not view["answers"]:
        console.print("no judged answer of this time is stored; choose an earlier --since or a longer --window")
        return
    by = "any stage at fault" if view["quantity"] is None else view["quantity"]
    console.print(
        f"{view['failing']} of {view['answers']} answers fail ({_percent(view['share'])} %; {by}, judge "
        f"{escape_line(view['judge'] or 'unknown')}) since {moment(view['since'])}; "
        f"{view['looked_at']} slices looked at"
    )
    for cause in view["causes"]:
        console.print(f"[red]{escape_line(cause['attribute'])}[/]: {escape_line(cause['text'])}")
        console.print(
            f"    fails in {_percent(cause['failing'])} % ({_percent(cause['low'])} to {_percent(cause['high'])}), "
            f"others {_percent(cause['others'])} %, n {cause['n']}; see"
        )
        for key in cause["examples"]:
            console.print(f"    {address}/samples/{key}")
        if cause["folded"]:
            names = (f"{folded['attribute']} {folded['value']}" for folded in cause["folded"])
            console.print(f"    explains too: {escape_line('; '.join(names))}")
    if not view["causes"]:
        console.print("no slice of them fails more than the rest, beyond chance")
    if view["texts"] != "all":
        console.print(f"store.texts is {view['texts']}: words of questions are not looked at")
    if view["without_traits"]:
        console.print(f"left out: {view['without_traits']} answers of which nothing but scores is stored")
    if not view["complete"]:
        console.print("there are more answers than can be read at once: these are the newest")


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.3g}"
