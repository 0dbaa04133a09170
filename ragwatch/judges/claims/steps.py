"""Detects instructions ("Build your Docker image") among claims, and whether a text names their action.

Most words of an instruction are its objects, and a text may name all of them without the action: "The registry stores
Docker images" has two words of three. Recall of words does not notice that the action is missing, because verbs are
common words with little weight. So a text supports an instruction only if it names one of its actions, by the same verb
or by a synonym.

An instruction is recognised by its form: it starts with a verb of the table below (after "then", "please", "you should"
and so on), followed by an object. Verbs without an action of their own (use, make, ensure, run) are not in the table:
an instruction with such a verb is read like any other claim. So is one of more than `MAX_STEP_TERMS` terms, in which
the action is one word of many.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import pairwise

from ragwatch.judges.claims.words import TOKEN, fold, term, terms, word_set

MAX_STEP_TERMS = 10

_SYNONYMS = """
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
    verb: tuple(line.split()) for line in reversed(_SYNONYMS.split(";")) for verb in line.split()
}
_OPENING = re.compile(
    r"\A[\W_]*(?:(?:first|second|third|next|then|finally|lastly|now|also|optionally|afterwards|please|always|simply"
    r"|never|do not|don['’]t|you (?:should|must|need to|have to))[\W_]+){0,3}",
    re.IGNORECASE,
)
# after one of these, the first word is no verb
_NO_OBJECT = word_set("is are was were has have had does did of can could will would may might must should")
_BEFORE_VERB = word_set("to and or then by")  # join one action of an instruction to another
_MIN_ROOT_CHARS = 5  # of a prefix that identifies words of the same root: install, installation


def actions(words: str) -> tuple[tuple[str, ...], ...]:
    """Actions of an instruction, each as its synonyms; empty for any other claim, and for a long one.

    They are the first verb, those joined to it, and those of its purpose: "Configure kubectl to connect" has two.

    >>> [verbs[0] for verbs in actions("Configure kubectl to connect to your cluster")]
    ['configure', 'connect']
    >>> actions("Build servers are slow"), actions("The image is built")
    ((), ())
    """
    tokens = TOKEN.findall(fold(_OPENING.sub("", words, count=1)))
    if len(tokens) < 2 or tokens[0] not in _VERBS or not _NO_OBJECT.isdisjoint(tokens[1:3]):
        return ()
    if len(set(terms(words))) > MAX_STEP_TERMS:
        return ()
    verbs = [tokens[0], *(token for before, token in pairwise(tokens) if before in _BEFORE_VERB and token in _VERBS)]
    return tuple(dict.fromkeys(_VERBS[verb] for verb in verbs))


def names_action(text_terms: AbstractSet[str], verbs: tuple[str, ...]) -> bool:
    """Whether the terms of a text name an action: any form of any of its verbs, or a word of the same root.

    >>> [names_action({term(word)}, ("build", "compile")) for word in ("built", "compilation", "images")]
    [True, True, False]
    """
    forms, roots = _forms(verbs)
    return not forms.isdisjoint(text_terms) or any(name.startswith(roots) for name in text_terms)


@cache
def _forms(verbs: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Terms of the forms of verbs, and the prefixes of words of the same roots."""
    inflected = [form for verb in verbs for form in (verb, f"{verb}s", f"{verb[:-1]}ied", f"{verb[:-1]}ing")]
    inflected += [form for verb in verbs for form in _IRREGULAR.get(verb, "").split()]
    roots = [term(verb).rstrip("ey") for verb in verbs]
    return frozenset(map(term, inflected)) - {""}, tuple(root for root in roots if len(root) >= _MIN_ROOT_CHARS)
