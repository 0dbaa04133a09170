r"""Detects phrases about the passages or the conversation, in three classes.

A **meta** sentence ("The passage does not mention ...", "I hope this helps") makes no claim and is left out: with meta
sentences, the area under the curve on real answers falls from .837 to .808, because no passage contains their words. An
**abstention** ("I don't know") is a meta sentence that declines to answer the question. A **lead** ("Based on the
passages, ...", "According to passage 2, ...") is blanked before the terms of a claim are extracted.

The tables below hold one pattern a line; an indented line continues the line above, and `<NAME>` stands for a fragment.
Every pattern is bounded: no match extends further than some hundred characters, which bounds the cost of hostile texts.
"""

import re
from functools import cache

from ragwatch.statistics.text.citations import without_markers

_FRAGMENTS = {
    "PAPERS": (
        "(?:passages?|contexts?|documents?|documentation|docs|texts?|excerpts?|snippets?|articles?|search results?"
        "|knowledge base|paragraphs?)"
    ),
    "WHAT": (
        "(?:passages?|contexts?|documents?|documentation|docs|texts?|information|sources?|excerpts?|snippets?"
        "|articles?|materials?|contents?|search results?|knowledge base|paragraphs?)"
    ),
    "KIND": (
        "(?:provided|given|available|retrieved|above|following|supplied|relevant|current|existing|specific|three|two"
        "|other|search|context|my|your|our|any|this|that|these|those|the|all|of)"
    ),
    "RANKS": r"#?\d{1,2}(?:(?:,? and |, ?)#?\d{1,2}){0,5}",
    "PASSAGES": (
        # "Plant sources" and "other materials" are no passages: such nouns need a determiner ("the", "these").
        r"(?:(?:<KIND> ){0,4}<PAPERS>|(?:<KIND> ){1,4}<WHAT>)"
        r"(?: (?:(?:and )?<WHAT>|provided|given|above|available|retrieved|at hand|here"
        r"|you (?:have )?(?:provided|gave|shared)|(?:that )?i have|\(?<RANKS>\)?|in the (?:context|prompt|question)))"
        r"{0,3}"
    ),
    "NOT": "(?:do(?:es)? not|don['’]t|doesn['’]t|did not|didn['’]t|cannot|can not|can['’]t|could not|couldn['’]t)",
    "TELL": (
        "(?:mention|provide|contain|specify|include|state|address|discuss|give|say|offer|answer|explain|cover|describe"
        "|have|indicate|explicitly|directly|clearly|specifically|seem to|appear to|tell|reference|list|define|refer"
        "|name|clarify|elaborate|detail|go into|identify|disclose|reveal|outline|touch on)"
    ),
    "TOLD": (
        "(?:mentioned|provided|stated|specified|discussed|addressed|given|found|contained|included|covered|described"
        "|answered|available|present|clear|detailed|apparent|evident|disclosed|explained|indicated|listed|named|offered"
        "|outlined|referenced|reported)"
    ),
    "HELP": "(?:information|details?|instructions?|help|assistance|advice|guidance|support|clarification|resources)",
    "WHO": (
        "(?:professionals?|doctors?|physicians?|gps?|pharmacists?|nurses?|dentists?|vets?|veterinarians?|dieti[ct]ians?"
        "|therapists?|counsel(?:l)?ors?|lawyers?|attorneys?|solicitors?|accountants?|advis[eo]rs?|planners?|brokers?"
        "|agents?|specialists?|experts?|technicians?|electricians?|plumbers?|engineers?|providers?|insurers?|airlines?"
        "|banks?|employers?|landlords?|managers?|embass(?:y|ies)|authorit(?:y|ies)|council|departments?|manufacturers?|vendors?"
        "|retailers?|sellers?|support|customer service|help ?desk|(?:support|care|service) team|hr|office)"
    ),
    "URGE": (
        r"(?:(?:it(?: is|['’]s| would be| may be| might be) (?:\w{1,12} )?(?:best|better|wise"
        "|prudent|sensible|important|crucial|essential|necessary|vital|advisable|advised|recommended|suggested"
        "|worth|helpful|a good idea)"
        r"|you (?:should|may (?:want|wish|need)|might (?:want|wish|need|consider))"
        r"|(?:i|we)(?: would|['’]d)? (?:\w{1,12}ly )?"
        "(?:recommend|suggest|advise|encourage|urge)(?: you)?|please|always|consider|remember|(?:be|make) sure)"
        r"(?: always| also)?(?: to| that you(?: should)?| for \w{1,12} to)?)"
    ),
    "HEAD": (
        r"(?![^.!?]*\b(?:two|three|four|five|six|seven|eight|nine|ten)(?: \w{1,12})? (?:hour|day|week|month|year)s\b)"
        r"\W{0,4}(?:(?:however|therefore|so|also|additionally|finally|lastly|ultimately|otherwise|again"
        r"|(?:if|when) in doubt),? )?(?:(?:if|when|before|in case|to|for)\b[^.!?\d,]{3,120}, )?"
    ),
    # What follows must not state something of its own ("..., and the warranty covers it", "..., as it is void").
    "CLAUSE": (
        r"(?:(?:[,;]| and| but| so) (?!whether|how|what|if|which|when|that|who)(?:[\w'’-]+ ){0,3}"
        r"(?:is|are|was|were|will|has|have|cannot|does|do|costs?|lasts?|covers?|must|needs?|gets?|pays?)\b"
        r"|\b(?:as|because|since) (?:[\w'’-]+ ){1,4}(?:is|are|was|were|will|has|have|can|cannot|could|may|might)\b)"
    ),
    "TAIL": r"(?![^.!?]*<CLAUSE>)[^.!?\d;:]{0,240}(?:\s?\[\d{1,3}\])*\W*$",
    "NO_NUMBER": r"(?![^!?]{0,400}(?:\d[\d\s().-]{4,}\d|@))(?![^.!?]{0,400}<CLAUSE>)",  # of a telephone
    "FIND": (
        "(?:find|answer|locate|determine|provide|say|tell|confirm|give|see|help|identify|verify|offer|explain|advise"
        "|do that)"
    ),
    "BE": "(?:is|are|was|were|has been|have been)",
    "NO": "(?:no|not any|not enough|insufficient|nothing)",
    "SURELY": "(?:accurately|definitively|conclusively|fully|reliably|exactly|precisely|directly)",
    "SETTLE": (
        "(?:answer|say|tell|determine|ascertain|conclude|know|(?:give|provide|offer) (?:an?|any|the|this|that|more)"
        "(?: [a-z]{1,15}){0,3} (?:answer|information|details?|estimate|explanation|response|figure|framework)"
        "|(?:confirm|verify|tell) (?:that|this|it|if|whether|from|based)"
        "|(?:give|provide|propose|calculate|estimate) [^.!?]{0,60}? (?:from|based on|with) <PASSAGES>)"
    ),
}

_ABSTENTIONS = r"""
\bi (?:really |honestly |just )?(?:do not|don['’]t|did not|didn['’]t) (?:actually |really |currently )?
    (?:know|have|see|find)\b(?! that (?:i|you|the)\b)
\bi(?: am|['’]m) (?:not sure|unsure|not certain|not aware|unable to|not able to|not familiar)\b
\b(?:i|we) (?:could not|couldn['’]t|cannot|can not|can['’]t|(?:was|were) unable to
    |(?:was|were|wasn['’]t|weren['’]t) (?:not )?able to) <FIND>\b
\b<NOT> (?:find|have|locate) (?:enough|sufficient) (?:\w{1,15} )?<WHAT>
     to (?:\w{1,12} )?(?:answer|respond to) (?:this|that|the|your)(?: \w{1,12})? (?:question|query|request)\b
\brequested (?:information|details?|data|answer) (?:is|are|was|were|could|can) (?:currently )?not (?:be )?<TOLD>\b
^\W{0,3}(?:(?:sorry|unfortunately|but|however|so|therefore),? )?unable to (?:<SURELY> )?<FIND>\b
\bit(?: is|['’]s| was| would be| remains) (?:not possible|impossible)(?: for me)? to (?:<SURELY> )?<SETTLE>\b
    (?![^.!?]{0,240}\b(?:as|because|since) (?!of\b|given\b|asked\b|stated\b|written\b))
\b(?:(?:there is|there['’]s|there was|there are|there were|i found|i have|we have)(?: currently)? <NO>
    |there (?:is|are|was|were)n['’]t (?:any|enough)) ?[^.!?]{0,40}?\b(?:<WHAT>|answer|mention|details?|data|references?)
    (?=\W*$|[,;]|(?: \w{1,14}ly)? (?:about|on|of|for|regarding|concerning|as to|in|within|from|that|which
    |whether|to|here|at|available|provided|given|[a-z]{2,12}ing))
\bthere (?:is|are|was|were) no (?:[\w'’-]{1,20} ){1,6}(?:mentioned|specified|stated|named|described|discussed)
    (?=\W*$| (?:for|about|here)\b| (?:in|by|within|on|from) <PASSAGES>)
\bthere (?:is|are|was|were) no (?:\w{1,15} ){0,3}(?:question|statement|sentence|section|discussion|list|description
    |definition|account)\b[^.!?]{0,80}?(?:\b(?:in|within) <PASSAGES>|\bthat matches\b)
\bno (?:[\w'’-]{1,20} ){1,5}<BE> (?:\w{1,12}ly )?
    (?:(?:mentioned|specified|stated|described|discussed)\W*$|<TOLD>(?: \w{1,12})? (?:in|by|within|on|from) <PASSAGES>)
\bno (?:specific |relevant |explicit |direct |such |further |matching )?(?:answer|<WHAT>)
     (?:was |were |is |are |could be |can be )?(?:found|available|given|provided|mentioned|matched|about|on|for)\b
\b<PASSAGES>(?:,? (?:about|on|for|regarding|from|in|of|also|itself|themselves)[^.!?]{0,60}?)?
     <NOT> [^.!?]{0,25}?\b<TELL>\b
\b<NOT> (?:mention|provide|contain|give|include|offer) (?:enough|sufficient|any|the|this|that|an|a)
     ?(?:\w{1,15} )?<WHAT>\b
\b<PASSAGES> (?:\w{1,12} )?
    (?:discuss|talk about|focus on|describe|cover|deal with|mention(?! that)|provide (?:information|details))
    (?:e?s)? [^.!?]{0,200}?\b(?:but|and|yet|although|though)\b,? (?:they |it )?(?:\w{1,12} )?<NOT>
     [^.!?]{0,25}?\b<TELL>\b
(?:\b(?:not|never|nowhere)|n['’]t) (?:be )?(?:\w{1,12}ly |further )?<TOLD>(?: [^.!?]{0,30}?)?
    \b(?:in|by|from|within|on) <PASSAGES>
\b<BE>(?: not|n['’]t) (?:\w{1,12}ly )?(?:mentioned|specified|stated)\W*$
\b(?:exact|specific|precise) [^.!?,]{1,60} <BE>(?: not|n['’]t) (?:\w{1,12}ly )?(?:<TOLD>|known)\W*$
\b(?:do(?:es)?(?: not|n['’]t)) (?:exist|appear|occur) in <PASSAGES>
\b(?:missing|absent) from <PASSAGES>
\b(?:none of|nothing in|nowhere in|neither of|no) <PASSAGES> [^.!?]{0,25}?\b(?:<TELL>|match|relate)(?:e?s|ed)?\b
\b<PASSAGES> (?:\w{1,12} )?(?:gives?|provides?|offers?|contains?|has|have|makes?|includes?|says?)
     (?:no|nothing|little)\b
\b<PASSAGES> [^.!?]{0,80}?\b(?:but|and|yet)(?: \w{1,12})? (?:says?|gives?|provides?) (?:no|nothing|little)\b
\b<PASSAGES> (?:\w{1,12} )?(?:lacks?|omits?)\b
^\W{0,3}(?:while|although|though) <PASSAGES> [^.!?]{0,150}?, (?:it|they) (?:\w{1,12} )?<NOT> [^.!?]{0,25}?\b<TELL>\b
\b(?:i have no idea|nothing (?:was |is )?(?:found|matche[sd]|relevant))\b
\b(?:insufficient|not enough|lack of) <WHAT>(?=\W*$| (?:to|in|from|about|on|regarding|available|provided|given)\b)
^\W{0,3}no <WHAT>\b
\b<PASSAGES> (?:is|are|was|were) (?:insufficient|not sufficient|not enough|silent|unclear|not relevant|irrelevant)
\b(?:it|this) (?:is|remains) (?:unclear|unknown|not (?:clear|known(?! (?:for|as|to)\b)|specified|stated))\b
\b(?:cannot|can ?not|can['’]t|could not) be (?:answered|determined|found (?:in|from|within|on) <PASSAGES>|found\W{0,3}$)
^\W{0,3}(?:sorry|no answer|not found|n/a|none(?! of\b)|unanswerable|unknown|no idea|no results?)\b[^.!?]{0,20}\W{0,3}$
^\W{0,3}(?:not|nothing|none)(?: (?:is|are|was|were))? (?:found|mentioned|specified|available|provided|stated)\b
    [^.!?]{0,60}\W{0,3}$
\b(?:beyond|outside) (?:of )?(?:my|the) (?:knowledge|scope)\b
\b(?:unclear|unknown)(?:,? (?:from|in|based on|given)) <PASSAGES>
\b(?:definitive|definite|conclusive|certain|complete|exact|specific|precise) (?:answer|conclusion|figure)s?
     (?:cannot|can not|can['’]t|could not) be (?:given|provided|drawn|reached|determined)\b
\b(?:more|additional|further) (?:\w{1,12} )?(?:information|details?|context)\b[^.!?]{0,80}? would be (?:\w{1,12} )?
    (?:needed|required|necessary)(?=\W*$| to (?:be sure|<SETTLE>))
"""

_META = r"""
\b(?:consult|refer to|check|seek|look (?:at|into|for|up)|review|explore|search for|need|requires?|see)(?:ing)?
     (?:\w{1,14} ){0,3}
    (?:further|additional|other|more|external|outside|reliable|reputable|official|up-to-date)
     (?:\w{1,14} ){0,2}(?:resources?|sources?|information|research|details|context|references?|materials?)\W{0,3}$
^\W{0,3}(?:\w{1,14},? )?(?:much )?(?:further|additional|more)
     (?:research|information|context|details?|investigation|clarification)
     (?:is|are|may be|might be|would be|will be|could be) (?:needed|required|necessary|helpful|useful)\W{0,3}$
\b(?:information|details?) (?:[^.!?]{0,60} )?(?:is|are|was|were|can be|may be) (?:\w{1,12} )?(?:found|provided|given)
     in <PASSAGES>(?: \w{1,4})?\W{0,3}$
^\D{0,240}\b(?:these|the following)(?: \w{1,15}){0,2}
     (?:steps?|instructions?|directions?|guidelines?|tips?)\W{0,3}:\W{0,3}$
^\W{0,3}there (?:are|can be|may be) (?:also )?(?:several|many|various|multiple|numerous|some|a few|different|other)
     (?:\w{1,15} ){0,2}(?:reason|way|factor|step|type|kind|benefit|method|requirement|option|thing|cause|difference)s?
    (?: (?:for|to|of|behind|in|you can|that can) (?:this|that|it|these|do(?:ing)? (?:so|this|that|it)|consider))?
    \W{0,3}$
^\W{0,3}(?:here (?:is|are)|here['’]s|below (?:is|are)|the following (?:is|are)|these are|let['’]s)\b.{0,200}:\W{0,3}$
\b(?:if you (?:have|need|want|would like|could|can) [^.!?]{0,40}(?:question|information|detail|help|assist|context))
^\W{0,3}(?:please )?(?:try|ask|use) (?:another|a different|a new|a more specific)
     (?:query|question|topic|search|wording|keyword)(?: or \w{1,12}(?: \w{1,12})?)?\W{0,3}$
^\W{0,3}(?:(?:this|the) (?:answer|response|reply|message|summary|content) (?:is|was|has been) (?:\w{1,14} )?
    (?:generated|created|written|produced)(?: (?:by|with|using) (?:an? )?(?:\w{1,14} )?
    (?:ai|llm|assistant|artificial intelligence|(?:language )?model))?|ai[- ]generated (?:answers?|content|responses?))
    (?:,?(?: and| so)?(?: it)? (?:may|might|can|could) (?:\w{1,14} ){0,3}
    (?:mistakes?|errors?|inaccura\w{1,8}|wrong|incorrect|incomplete))\W{0,3}$
^\W{0,3}(?:(?:remember|(?:please )?(?:note|keep in mind))(?: that)?,? )?(?:these|the above(?: \w{1,12})?) are
     (?:(?:only |just )?general (?:guidelines|tips|suggestions|recommendations|trends)
    |(?:only|just) (?:\w{1,12} )?(?:examples|estimates))(?=\W*$|,? (?:and|so|but)\b)[^.!?\d]{0,160}\W*$
\b(?:as an ai|i am an ai|i['’]m an ai)\b
\b(?:based|basing|relying) (?:solely |only |purely |entirely )?(?:up)?on <PASSAGES>.{0,160}:\W{0,3}$
\baccording to <PASSAGES>.{0,160}:\W{0,3}$
^\W{0,3}(?:the )?answer (?:to (?:your|the|this) question )?(?:is|can be found)[^.!?:]{0,30}
    (?:in <PASSAGES>|as follows|below)?\W{0,3}$
\bi (?:can|will|would|could|have|['’]ll|['’]ve) (?:\w{1,12} ){0,2}
    (?:answer|provide|summarize|try|help|use|list|explain)\b
\b(?:this|the|my|that) (?:answer|response|summary|information|list) (?:is|was|has been|comes) (?:\w{1,14} ){0,2}
    (?:based|drawn|taken|derived|from|found|provided|mentioned)\b.{0,20}\b<PASSAGES>
^\W{0,3}(?:this|these|the|that|more|all of this) (?:\w{1,12} )?(?:answer|information|quote|fact|detail|statement|data)s?
     (?:is|are|was|were|comes?|can be|could be) (?:\w{1,12} ){0,2}(?:in|from|by|on) <PASSAGES>\W{0,3}$
"""

_ADVICE = r"""
^<HEAD>(?:consult|<URGE> consult(?:ing)?)\b<TAIL>
^<HEAD>(?:<URGE> )?(?:(?:check|work|speak|talk)(?:ing)? with|(?:speak|talk|turn)(?:ing)? to)
     (?:[\w'’/-]{1,18} ){0,5}<WHO>\b<TAIL>
^<HEAD>(?:<URGE> )?(?:contact|reach(?:ing)? out to|see(?:ing)?|ask|call)(?:ing)? (?:[\w'’/-]{1,18} ){0,5}<WHO>
    (?: directly)?(?: (?:for|to (?:get|request|obtain))(?: [\w'’-]{1,15}){0,4} <HELP>\b<TAIL>
    | (?:if|about|regarding|on|whether)\b<TAIL>|(?:\s?\[\d{1,3}\])*\W*$)
^<HEAD>(?:<URGE> )?(?:seek|get|do)(?:ing)? (?:[\w'’-]{1,15} ){0,4}
    (?:advice|guidance|counsel|opinion|medical (?:help|attention)|research)\b<TAIL>
^<HEAD>(?:<URGE> )?(?:check|visit|review|see|refer to)(?:ing)?(?: out)?(?: to)? (?:[\w'’-]{1,18} ){0,4}
    (?:official (?!<WHAT> on )[\w-]{1,18}|website|webpage|documentation|docs|manual)\b<TAIL>
^\W{0,4}(?:\w{1,14},? )?(?:for (?:[\w-]{1,14},? ){1,6}<HELP>|to (?:learn|find out|read|know) more)\b[^.!?,]{0,120},
     (?:(?:<URGE>|you (?:can|may|could)) )?(?:also )?(?:see|consult(?:ing)?|refer(?:ring)? to|visit|check|read|contact
    |look(?:ing)? at|reach(?:ing)? out to|call)(?:ing)?\b<NO_NUMBER>
^\W{0,4}(?:\w{1,14},? )?(?:<URGE> )?(?:see|refer to|visit|check(?: out)?|contact|read) [^.!?\d]{1,200}
     (?:for|to (?:learn|find out|get)) (?:more|further|additional|detailed)\b(?! than\b)[^.!?\d]{0,80}\W*$
^\W{0,4}(?:\w{1,14},? )?(?:you can (?:also )?(?:find|get|read)|there (?:is|are))
     (?:more|further|additional) <HELP>\b<NO_NUMBER>
"""

_LEADS = r"""
(?:based (?:solely |only |purely |entirely )?(?:up)?on|according to|as (?:stated|mentioned|described|noted|explained) in
    |as per|per|in|from) <PASSAGES>(?=\W|$)(?:,|:)?
    (?: (?:it (?:is|can be|seems|appears)|we can|one can)(?: \w{1,12})? that)?
\b(?:in )?(?:<KIND> ){0,4}(?:passage|document|context|source|excerpt|snippet|text|article)s?(?: id)? ?(?:<RANKS>)?
     (?:also |further |explicitly )?(?:states?|mentions?|says?|suggests?|notes?|indicates?|explains?|describes?
    |provides?|adds?|confirms?|discuss(?:es)?|highlights?|recommends?)(?: that)?\b
[\[(](?:see )?(?:(?:ref(?:erence)?s?|sources?|from|cf)[.:]{0,2} )?
    (?:passage|document|context|source|doc|ref)s?(?: id)? ?#?\d{1,2}
    (?:(?:,? (?:and |& )?|-)(?:\w{1,9} )?#?\d{1,2}){0,5}[\])]
\b(?:mentioned|provided|described|stated|listed|outlined|given|discussed|found|contained|explained)
     (?:in|by|from|within|on) <PASSAGES>(?=\W|$)
\b(?:the |these |this |both |all )?(?:provided |given |above |retrieved )?passages?(?: id\b)?
    (?: (?:provided|given|above|<RANKS>))?\b
\b(?:the )?(?:provided|given|retrieved) <WHAT>(?=\W|$)
\[\^?\d{1,3}(?:[,;–-] ?\d{1,3}){0,8}\]
\b(?:the )?answer (?:to (?:your|the|this) question )?is(?: that)?\b
\b(?:the )?answer to (?:your|the|this) question(?=,? ["“])
^\W{0,3}(?:final |short |direct )?(?:answer|response|a) ?:
^\W{0,3}(?:sources?|references?|citations?|explanation|note|conclusion|summary|rationale|reasoning) ?:
^\W{0,3}step (?:\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten) ?[:.)–-]
(?<![\w.])\(?\d{1,2}\) (?=[^\W\d_])
^\W{0,3}(?:in (?:conclusion|summary|short|addition|general|other words|contrast|fact)
    |to (?:summari[sz]e|conclude|sum up)|overall|additionally
    |furthermore|moreover|finally|lastly|similarly|likewise|specifically|consequently
    |for (?:example|instance)|as a result|on the other hand|(?:first|second|third|fourth)(?:ly)?|next|of course|sure
    |certainly|absolutely|great question) ?[,:!]
\bit(?: is|['’]s) (?:also )?(?:important|worth|essential|necessary|helpful) (?:to )?
    (?:note|noting|mention|mentioning|remember|keep in mind)(?: that)?\b
^\W{0,3}(?:please )?(?:note|keep in mind|remember) that\b
"""


_FRAGMENT = re.compile("<[A-Z]+>")


@cache
def _any_of(table: str) -> re.Pattern[str]:
    """Compiles a table, at its first use, to one pattern that matches where any of its lines matches."""
    joined = table.replace("\n    ", "")
    while _FRAGMENT.search(joined):
        before = joined
        for name, fragment in _FRAGMENTS.items():
            joined = joined.replace(f"<{name}>", fragment)
        if joined == before:  # a misspelt fragment must not become a pattern that never matches
            raise ValueError(f"unknown fragment in {joined}")
    return re.compile("|".join(f"(?:{line})" for line in joined.splitlines() if line), re.IGNORECASE)


_MAX_CHARS = 600  # only the head of a sentence is searched


def abstains(sentence: str) -> bool:
    """Returns whether the sentence declines to answer the question."""
    return _any_of(_ABSTENTIONS).search(sentence[:_MAX_CHARS]) is not None


def is_meta(sentence: str) -> bool:
    """Returns whether the sentence is about the answer or the passages and makes no other claim."""
    return _any_of(_META).search(sentence[:_MAX_CHARS]) is not None or advises(sentence)


def advises(sentence: str) -> bool:
    """Returns whether the sentence only sends the reader to somebody, or to another text, for more.

    >>> [advises(text) for text in ("It is best to consult a doctor.", "You should consult a doctor within 2 days.")]
    [True, False]
    """
    return _any_of(_ADVICE).search(sentence[:_MAX_CHARS]) is not None


def without_leads(sentence: str) -> str:
    """Returns the sentence with leads, citation marks and references to passages blanked."""
    return _any_of(_LEADS).sub(" ", without_markers(sentence))


MAX_ABSTENTION_CHARS = 400  # a longer answer with doubts in it is still an answer
_CUES = re.compile(
    r"\bn(?:o|ot|one|or|othing|owhere|ever|either)\b|n[’']t\b|cannot|\bun|\bin?(?:m|rr|suff)|sorry|lack|beyond|outside|n/a|silent"
)
_STOP = re.compile(r"(?<=[.!?])\s")


def is_abstention(answer: str) -> bool:
    """Returns whether an answer abstains: it is short, and its first sentence declines to answer.

    Cheap enough for every request: most answers are too long, or contain no word of an abstention.

    >>> is_abstention("I could not find that in the documentation.")
    True
    >>> is_abstention("The passages do not mention his birthday.")
    True
    >>> is_abstention("It returns None. The documents do not say why.")
    False
    """
    if len(answer) > MAX_ABSTENTION_CHARS or not _CUES.search(answer.lower()):
        return False
    return abstains(_STOP.split(answer.strip(), maxsplit=1)[0])
