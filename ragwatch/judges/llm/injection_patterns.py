r"""Patterns of prompt injection: phrases, and markup such as chat templates.

Every pattern is bounded to some hundred characters, so that matching takes linear time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FRAGMENTS = {
    "JUDGE": (
        "(?:judge|grader|evaluator|rater|verifier|fact[- ]?checker|auditor|language model|ai model|ai assistant|llm"
        "|chatbot|chatgpt|gpt|claude|assistant)"
    ),
    "VERDICT": (
        "(?:supported|unsupported|contradicted|not[ _]in[ _]context|faithful|grounded|hallucinated|entailed"
        "|fully relevant|irrelevant|perfect|passed)"
    ),
    "UNITS": (
        "(?:claims?|statements?|sentences?|lines?|contexts?|documents?|passages?|answers?|repl(?:y|ies)|responses?)"
    ),
    "GRADE": (
        "(?:mark|label|rate|score|grade|classify|treat|count|regard|judge|report|return|output|respond|answer|say)"
    ),
    "RULES": "(?:instructions?|prompts?|rules?|guidelines?|directions|directives?|rubric|system message|orders)",
}

# First the words of which one must occur before the pattern is tried, which is faster for most texts; then the pattern,
# for text in lower case and with single spaces. `<NAME>` stands for a fragment.
_PHRASES = r"""
ignore ignoring disregard disregarding forget override bypass overlook
    \b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|override|bypass|overlook) (?:\w{1,12} ){0,5}?
    (?:previous|prior|above|earlier|preceding|foregoing|other|system|all|any|your|these|those|the) (?:\w{1,12} ){0,3}?
    <RULES>\b
ignore disregard forget
    \b(?:ignore|disregard|forget) (?:all |any )?(?:of )?(?:the |these |those |other )?
    (?:documents|contexts|passages|sources|evidence|everything (?:above|before|you))\b
new updated revised secret hidden
    \b(?:new|updated|revised|secret|hidden) <RULES> (?:from|for you|follow|below|:)
now
    \bfrom now on,? you (?:are|will|must|should|have)\b
judge grader evaluator rater verifier checker auditor model llm chatbot chatgpt gpt claude assistant
    \byou are (?:now |hereby )?(?:a|an|the|acting as)(?: \w{1,14}){0,3}? <JUDGE>\b
judge grader evaluator rater verifier checker auditor model llm chatbot chatgpt gpt claude assistant judges llms
    \b(?:note|message|memo|instructions?|hint|attention|warning|reminder) (?:to|for) (?:the |any |all |every )?
    (?:\w{1,12} )?<JUDGE>s?\b
judge grader evaluator rater verifier checker auditor model llm chatbot chatgpt gpt claude assistant
    \b(?:dear|attention|hey|hello),? (?:the )?<JUDGE>\b
developer administrator operator creator system
    \bas (?:your|the) (?:developer|administrator|operator|creator|system)\b[^.!?]{0,20}\bi (?:order|command|instruct)\b
grader evaluator judge verifier llm model
    \b(?:grader|evaluator|judge|verifier|llm|language model) (?:must|should|shall|has to|is to|will now)\b
    [^.!?]{0,60}\b(?:<VERDICT>|<GRADE>)\b
supported unsupported contradicted context faithful grounded hallucinated entailed relevant irrelevant perfect passed
    (?<!the )(?<!a )\b<GRADE> (?:\w{1,12} ){0,4}?
    (?:all|every|each|any|everything|this|that|the|these|other) (?:\w{1,12} ){0,4}?
    (?:as |to be |is |are )?(?:\w{1,12} )?<VERDICT>\b
supported not_in_context contradicted
    \b<GRADE> ["'“]?(?:supported|not_in_context|contradicted)\b["'”]?
    (?: (?:for|to|on|in) (?:all|every|each|any)\b|[.!]|$)
supported
    \b(?:all|every|each|everything)(?: \w{1,12}){0,3}? (?:is|are|must be|should be) (?:fully )?supported by
     (?:the|this|these) <UNITS>\b
support supports
    \bsupports? (?:every|all|any) (?:<UNITS>|of them)\b
proof
    \b(?:as|is) proof of (?:any|every|all) <UNITS>\b
verdict verdicts
    \b(?:final |overall )?verdicts?: ?(?:\w{1,12},? ){0,3}?<VERDICT>\b
verdict judgment default
    \b(?:verdict|judgment) ?= ?['"]?(?:supported|faithful|yes|pass)\b|\bdefault\(['"]supported['"]\)
give award assign
    \b(?:give|award|assign)(?: \w{1,12}){0,3}?
     (?:full marks|(?:a |the )?(?:perfect|highest|maximum|full) (?:score|rating|grade|marks))\b
faithfulness groundedness relevancy
    \b(?:faithfulness|groundedness|relevancy)(?: score)?(?: is| =|:| must be| should be)(?: always)?
     ?(?:1|100|one|perfect)\b
evaluation grading judging
    \b(?:evaluation|grading|judging) (?:is|has) (?:over|ended|finished|complete)\b
stop
    \bstop (?:evaluating|grading|judging|checking|reviewing)\b
supported faithful relevant
    \b(supported|faithful|relevant)\b(?:[ ,;.]{1,3}\1\b){3}
reveal print repeat show
    \b(?:reveal|print|repeat|show)(?: me)? (?:your|the) (?:system prompt|system message|<RULES> above)\b
anweisung anweisungen instruktion instruktionen vorgabe vorgaben
    \b(?:ignorier\w{0,3}|vergiss|missachte)(?: \w{1,14}){0,4}? (?:anweisung|instruktion|vorgabe)\w{0,3}\b
markiere markier bewerte stufe
    \b(?:markiere?|bewerte|stufe)(?: \w{1,14}){0,5}? als (?:belegt|gestützt|wahr|unterstützt|korrekt)\b
instructions consignes instrucciones istruzioni instruções
    \b(?:ignore[zr]?|oublie[zr]?|ignora|olvida|omite)(?: \w{1,14}){0,4}?
     (?:instructions|consignes|instrucciones|istruzioni|instruções)\b
"""

# For the text as it is, with a line feed before it. Each alternative starts with or is anchored at a special character,
# so that the search skips from one to the next.
_MARKUP = r"""
<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|begin_of_text|start_header_id|end_header_id)\|>
\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>
\n\s{0,4}\#{1,4}\s{0,2}(?:system|assistant|instructions?|response|human|user)(?: prompt| message)?\s{0,2}:
\n\n\s{0,4}assistant\s?:
</?(?:system|assistant|verdicts?|instructions?|contexts?|documents?|judge|claims?|evaluation|system[-_ ]prompt)>
</?sample\b
\|\s(?<=[\s¤][bcdfghjklmnpqrstvwxz]{3}\.\d\|\s)
-{3}\s?(?:end|begin|start) of (?:the )?(?:documents?|contexts?|page|answer|instructions?|prompt|input)
"(?:verdicts?|in_reference|in_answer|answered|address)"\s{0,4}:\s{0,4}"(?:supported|contradicted|not_in_context|yes|fully)
"(?:cells|claims|useful)"\s{0,4}:\s{0,4}\[\s{0,4}(?:\{\s{0,4}"(?:id|verdict|context|quote|text|cells)"|\])
"(?:faithful(?:ness)?|grounded(?:ness)?|supported|score|is_supported)"\s{0,4}:\s{0,4}(?:1(?:\.0{0,3})?|true|"yes")\b
\[x\]\s{1,3}(?:claim|statement)\s{1,3}\d{1,3}\s{1,3}(?:is\s)?supported
\|\s?claims?\s?\|\s?verdicts?\s?\|
[$%][({](?:supported|verdict)[)}]
<!--\s?(?:supported|faithful)
(?:忽略|无视|無視)[^。\n]{0,12}(?:指令|指示|说明|提示)
(?:标记|標记|标为|视为|判定)[^。\n]{0,16}(?:支持|有依据|正确|属实)
请将[^。\n]{0,16}(?:支持|有依据|正确|属实)
"""


class InjectionPattern(NamedTuple):
    """A pattern for joined lower-case text, and the words of which one must occur in it."""

    words: frozenset[str]
    pattern: re.Pattern[str]


def _rules(table: str) -> tuple[InjectionPattern, ...]:
    patterns = []
    for row in table.replace("\n    ", "\t").strip().split("\n"):
        words, *parts = row.split("\t")
        pattern = re.sub(r"<([A-Z]+)>", lambda match: _FRAGMENTS[match[1]], "".join(parts))
        patterns.append(InjectionPattern(frozenset(words.split()), re.compile(pattern)))
    return tuple(patterns)


RULES = _rules(_PHRASES)
"""Phrases of prompt injections."""

SHAPES = re.compile("|".join(_MARKUP.strip().split("\n")), re.IGNORECASE)
"""Markup of prompt injections: role tags of chat templates, fences and marks of a page, replies of a judge."""
