"""Steps: claims that tell what to do ("Build your Docker image"), and whether a text says it at all.

The words of a step are mostly those of the things it handles, and a text may name all of these without a word on what
to do with them: "The registry stores Docker images" holds two words of three. Recall of words cannot see that the
third was the point, the more so as verbs are common words and weigh little. So a text supports a step only where it
holds a trace of an action that the step names, as it is or as another word for the same action.

A step is recognised by its form: it opens with a verb of the table below (behind "then", "please", "you should" and
the like), which may be followed by what such a verb takes. Verbs that carry no action of their own (use, make, ensure,
run) are not in the table: a step that opens with one of these is read as any other claim. So is a step of more than
`LONG` terms, in which the action is one word of many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import pairwise

from ragwatch.judges.lexical.words import TOKEN, fold, term, terms

LONG = 10

_SAME = """
add append insert attach include; adjust modify change edit alter update; allocate assign; apply; arrange
schedule plan; authenticate login; authorize permit grant; boil heat cook bake; build compile assemble
construct; calculate compute; cancel terminate end abort; choose select pick; clean wash rinse wipe; click press
tap hit; close shut; collect gather; combine merge mix blend; compare; configure setup set; confirm verify check
validate; connect attach link join; consult; contact call phone email; convert transform translate; copy
duplicate clone; create; decrease reduce lower; define declare; delete remove erase clear drop; deploy; describe
explain; disable deactivate; disconnect unplug detach; dissolve stir; divide split separate; download fetch
pull; drain pour; enable activate; encrypt; enroll register subscribe; enter type; evaluate assess; export;
extract; fill; filter; format; generate; identify locate; import; increase raise; inspect examine; install;
integrate; invite; limit restrict; load; measure; migrate move transfer; mount; multiply; navigate browse;
obtain acquire receive; open launch; order purchase buy; paste; peel chop slice; prepare; print; provision;
publish release; push upload; record log; refresh reload; rename; renew; repair fix; repeat; replace swap; reply
respond answer; report notify; request ask; reset; resolve; restart reboot; restore recover; return; review
read; revoke; rotate; save store; scan; send mail; share; sign; sort; specify; stop halt; submit file; switch;
tag label; test; tighten; turn; uninstall; unlock; upgrade; visit; withdraw; wrap; write
"""
_IRREGULAR: Mapping[str, str] = {
    "build": "built",
    "buy": "bought",
    "choose": "chose chosen choice",
    "send": "sent",
    "withdraw": "withdrew withdrawn withdrawal",
    "write": "wrote written",
}
_VERBS: Mapping[str, tuple[str, ...]] = {
    verb: tuple(line.split()) for line in reversed(_SAME.split(";")) for verb in line.split()
}
_OPENING = re.compile(
    r"\A[\W_]*(?:(?:first|second|third|next|then|finally|lastly|now|also|optionally|afterwards|please|always|simply"
    r"|never|do not|don['’]t|you (?:should|must|need to|have to))[\W_]+){0,3}",
    re.IGNORECASE,
)
_NO_OBJECT = frozenset(
    {
        *("is", "are", "was", "were", "has", "have", "had", "does", "did", "of"),
        *("can", "could", "will", "would", "may", "might", "must", "should"),
    }
)  # behind a word that could be a verb, they say that it was none
_BEFORE = frozenset({"to", "and", "or", "then", "by"})  # what joins one action of a step to another
_ROOT = 5  # letters from which the beginning of a word tells its root: install, installation


def actions(words: str) -> tuple[tuple[str, ...], ...]:
    """Actions that a step names, each as the verbs for it; empty for a claim that is no step, or a long one.

    The opening verb, those joined to it, and those that say what it is for: "Configure kubectl to connect" has two.

    >>> [verbs[0] for verbs in actions("Configure kubectl to connect to your cluster")]
    ['configure', 'connect']
    >>> actions("Build servers are slow"), actions("The image is built")
    ((), ())
    """
    tokens = TOKEN.findall(fold(_OPENING.sub("", words, count=1)))
    if len(tokens) < 2 or tokens[0] not in _VERBS or not _NO_OBJECT.isdisjoint(tokens[1:3]):
        return ()
    if len(set(terms(words))) > LONG:
        return ()
    found = [tokens[0], *(token for before, token in pairwise(tokens) if before in _BEFORE and token in _VERBS)]
    return tuple(dict.fromkeys(_VERBS[verb] for verb in found))


def named(verbs: tuple[str, ...], found: AbstractSet[str]) -> bool:
    """Whether the terms of a text hold a trace of an action: any form of any of its verbs, or a word of its root.

    >>> [named(("build", "compile"), {term(word)}) for word in ("built", "compilation", "images")]
    [True, True, False]
    """
    forms, roots = _forms(verbs)
    return not forms.isdisjoint(found) or any(each.startswith(roots) for each in found)


@cache
def _forms(verbs: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Terms of the forms of verbs, and the beginnings by which words of their roots are known."""
    written = [form for verb in verbs for form in (verb, f"{verb}s", f"{verb[:-1]}ied", f"{verb[:-1]}ing")]
    written += [form for verb in verbs for form in _IRREGULAR.get(verb, "").split()]
    roots = [term(verb).rstrip("ey") for verb in verbs]
    return frozenset(map(term, written)) - {""}, tuple(root for root in roots if len(root) >= _ROOT)
