"""Detects the language of a text by its script and its function words, and reads texts in other languages than English.

Scripts of one language are recognized by their letters. In Latin script each language has a small table of function
words and of letters that others lack; the language with the most of both wins, where they are enough words of the text
and clearly more than any other language has. Names, tables, code and very short texts are in no language: None.

Answers in other languages are read so that their changes are measured; their accuracy is not known. German, Spanish,
French, Italian, Dutch and Portuguese are compared by the stems of words (Snowball) without function words; Japanese,
Chinese, Korean, Thai, Hindi and Arabic by character n-grams. All words weigh alike. What is known of English alone is
left out: facts within a sentence, names, conditions, denials, earlier turns, kinds of questions.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from threading import Lock
from typing import Literal, get_args

from ragwatch.judges.claims.claims import AnswerClaims, claims_of
from ragwatch.judges.claims.kinds import kind_of
from ragwatch.judges.claims.limits import Check
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import STOP_WORDS, fold, term, word_set
from ragwatch.judges.lexical.tables import FittedTables, Split, shipped
from ragwatch.model.sample import Sample

ENGLISH = "en"
OTHER = "und"
"""A language that is not recognized, but is not English."""

_MAX_CHARS = 3000  # read of a text, at most
_MIN_LETTERS = 2  # of a script that is not Latin
_OTHER_SCRIPT = 0.3  # share of the letters at which a text is in another script than Latin
_MIN_EVIDENCE = 2.0
_MIN_EVIDENCE_STRANGE = 0.75  # in a text whose words are not English
_STRANGE = 0.34  # share of the longer words that are English
_MAX_KNOWN = 0.6  # in a text that is in another language, unless there is plenty of evidence
_PLENTY = 4.0
_OTHER = 0.2  # share of English words at which a text without an English function word is in another language
_MIN_OTHER_WORDS = 3
_FEW_KNOWN = 0.25  # share of English words at which words that other languages have, too, make no text English
_MIN_SHARE = 0.16
_PLAIN_ENGLISH = 0.25  # share of English function words at which no other language is tried
_MIN_DISTINCT = 4
_LEAD = 1.25  # times the evidence of the next language
_LETTER_WEIGHT = 0.75  # of a word with a letter that is typical of a language
_OPENING = " \t\n\"'“”‘’«»*_#>-([{¿¡"
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LETTER = re.compile(r"[^\W\d_]")

_SCRIPTS = (
    ("el", "\u0370-\u03ff\u1f00-\u1fff"),
    ("cyrillic", "\u0400-\u052f"),
    ("hy", "\u0530-\u058f"),
    ("he", "\u0590-\u05ff"),
    ("arabic", "\u0600-\u06ff\u0750-\u077f"),
    ("hi", "\u0900-\u097f"),
    ("bn", "\u0980-\u09ff"),
    ("pa", "\u0a00-\u0a7f"),
    ("gu", "\u0a80-\u0aff"),
    ("ta", "\u0b80-\u0bff"),
    ("te", "\u0c00-\u0c7f"),
    ("kn", "\u0c80-\u0cff"),
    ("ml", "\u0d00-\u0d7f"),
    ("th", "\u0e00-\u0e7f"),
    ("lo", "\u0e80-\u0eff"),
    ("my", "\u1000-\u109f"),
    ("ka", "\u10a0-\u10ff"),
    ("am", "\u1200-\u137f"),
    ("km", "\u1780-\u17ff"),
    ("ja", "\u3040-\u30ff"),
    ("zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"),
    ("ko", "\uac00-\ud7af\u1100-\u11ff"),
)
_BY_SCRIPT = tuple((name, re.compile(f"[{letters}]")) for name, letters in _SCRIPTS)
_LATIN = re.compile("[^\\W\\d_\u0250-\u1dff\u1f00-\uff20\uff5b-\U0010ffff]")
_VARIANTS: Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    "cyrillic": (
        ("uk", re.compile("[іїєґ]")),
        ("sr", re.compile("[јљњћђџ]")),
        ("ru", re.compile("[ыэё]")),
        ("bg", re.compile("[ъщ]")),
    ),
    "arabic": (("ur", re.compile("[ٹڈڑںے]")), ("fa", re.compile("[پچژگی]"))),
}
_OTHERWISE: Mapping[str, str] = {"cyrillic": "ru", "arabic": "ar"}

_FUNCTION_WORDS: Mapping[str, str] = {
    ENGLISH: "two see",  # and `STOP_WORDS`
    "de": """der die das den dem des und ist nicht ein eine einen einem einer zu im mit auf für von sich es auch
            werden wird aus er hat dass sie nach bei wie oder wenn sind noch zum zur nur über kann können durch vor am
            als aber haben ich wir ihr ihre innerhalb keine kein sowie bis vom wurde nein ja""",
    "fr": """le la les des du de et est un une en que qui dans pour pas sur au aux avec ce cette ces son sa ses par
            plus ne se sont il elle ils nous vous ou mais être ont été peut leur comme d'un d'une c'est oui non sous
            chaque où à sans après""",
    "es": """el la los las de del y es un una en que por para con no se su sus al lo como más pero o este esta está
            son fue ha entre cuando muy sin sobre también desde hasta hay nos sí puede dentro durante""",
    "it": """il lo la i gli le di del della dei delle dello e è un una uno in nel nella che per con non si su sono
            come più ma al alla dal dalla da anche questo questa o ha essere entro ogni suo sua sì può senza nei dopo
            viene""",
    "pt": """o a os as de do da dos das e é um uma em no na nos nas que por para com não se seu sua ao à como mais
            mas ou foi são ser está também até pelo pela isso este esta há sim dentro quando pode""",
    "nl": """de het een en van is in dat op te met voor niet zijn aan er ook als maar bij uit door naar wordt worden
            deze dit die om of tot over wat hij ze heeft kan binnen geen nog werd na je u nee ja""",
    "sv": """och att det är en ett som på för med av den till inte har om vi de i kan men från så eller var sig ska
            inom efter alla nej ja när här också mycket""",
    "da": """og at det er en et som på for med af den til ikke har om vi de i kan men fra så eller var sig skal
            inden efter alle nej ja når også meget blev ved""",
    "nb": """og å det er en et som på for med av den til ikke har om vi de i kan men fra så eller var seg skal
            innen etter alle nei ja når også mye ble ved""",
    "fi": """ja on ei se että oli ovat kun myös mutta tai hän ne joka mitä niin kuin sen sekä voi sitä tämä
            mukaan jos vain enemmän eivät olla noin""",
    "pl": """i w z na do nie się jest że to o jak po co tak za od ale lub dla przez oraz są być może przy jego który
            która które ma tego jeśli czy tylko ze""",
    "cs": """a v se na je že s z do o k i to jako za by jsou pro ale po od nebo jeho při který která které není
            být může si tak také ve""",
    "ro": """și în de la cu nu este o un pe că din care pentru sunt mai al a au fost sau dar ce se prin după până
            dacă această acest poate fi""",
    "hu": """a az és nem hogy egy is van volt de meg ez ezt vagy ha csak már mint lehet kell után között minden
            alatt amely belül""",
    "tr": """ve bir bu için ile de da çok olarak daha olan var değil gibi en ne kadar sonra veya her içinde ancak
            göre ama ise tarafından""",
    "id": """yang dan di ini itu dengan untuk dari tidak dalam pada adalah ke akan atau juga oleh sebagai dapat
            ada karena telah bisa lebih hari""",
    "vi": """và là của có không được trong cho một các những với người này đã từ để khi thì đến như ở về ngày
            phải""",
    "hr": """i u je da se na za od su s ne koji koja koje što kao ali ili nije biti do iz te po samo može sve""",
}
_TABLES: Mapping[str, frozenset[str]] = {
    name: word_set(words) | (STOP_WORDS if name == ENGLISH else frozenset()) for name, words in _FUNCTION_WORDS.items()
}
_SHARED = word_set("a am an as at be die do for has he his i in let me no on or so to us was")
"""English function words that are words of other languages as well."""

_TYPICAL: Mapping[str, frozenset[str]] = {
    "de": frozenset("äöüß"),
    "fr": frozenset("éèêàçùœîôû"),
    "es": frozenset("ñáéíóú"),
    "it": frozenset("àèìòù"),
    "pt": frozenset("ãõçáéíóúâê"),
    "sv": frozenset("åäö"),
    "da": frozenset("æø"),
    "nb": frozenset("æø"),
    "fi": frozenset("äö"),
    "pl": frozenset("ąęłńśźżćó"),
    "cs": frozenset("ěřůčšžýáíé"),
    "ro": frozenset("ăâîșțşţ"),
    "hu": frozenset("őűáéíóúöü"),
    "tr": frozenset("ğışçöü"),
    "vi": frozenset("ăâđêôơưạảấầẩậắằẳặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ"),
    "hr": frozenset("čćđšž"),
}


def function_words(language: str) -> frozenset[str]:
    """The function words of a language by its code; empty for one without a table."""
    return _TABLES.get(language, frozenset())


@lru_cache(maxsize=256)
def language_of(text: str) -> str | None:
    """ISO 639 code of the language of a text; None where it is not clear.

    >>> [language_of(text) for text in ("It takes the most of the day.", "Es dauert mehr als zwei Tage.", "Bern")]
    ['en', 'de', None]
    """
    text = text[:_MAX_CHARS].replace("’", "'")
    if not text.isascii():
        letters = len(_LETTER.findall(text))
        others = letters - len(_LATIN.findall(text))
        if others >= _MIN_LETTERS and others > _OTHER_SCRIPT * letters and not _is_latin_with_names(text):
            return _by_script(text.lower())
    return _by_words(text)


def _is_latin_with_names(text: str) -> bool:
    """Whether only names are in another script: words in Latin script are more, and one has no capital."""
    words = _WORD.findall(text)
    latin = [word for word in words if _LATIN.match(word)]
    return len(words) < 2 * len(latin) and any(word.islower() for word in latin)


def _by_script(text: str) -> str | None:
    counts = {name: len(pattern.findall(text)) for name, pattern in _BY_SCRIPT}
    if counts["ja"] and counts["ja"] * 10 >= counts["zh"]:  # Japanese is written with both
        counts["ja"] += counts["zh"]
    name = max(counts, key=counts.__getitem__)
    if not counts[name]:
        return None
    typical = next((code for code, letters in _VARIANTS.get(name, ()) if letters.search(text)), None)
    return typical or _OTHERWISE.get(name, name)


def _by_words(text: str) -> str | None:
    """The language of a text in Latin script. Names say nothing of it: capitalised words count at its start only."""
    first = _WORD.match(text.lstrip(_OPENING))
    words = _WORD.findall(text)
    small = [word for word in words if word.islower()]
    counts = Counter([first.group().lower(), *small] if first and not first.group().islower() else small)
    english = [times for word, times in counts.items() if word in _TABLES[ENGLISH]]
    proper = any(word in _TABLES[ENGLISH] and word not in _SHARED for word in counts)
    if len(english) >= _MIN_DISTINCT and sum(english) >= _PLAIN_ENGLISH * len(words):
        return ENGLISH
    scores = {
        name: sum([times for word, times in counts.items() if word in table])
        + _LETTER_WEIGHT
        * sum([times for word, times in counts.items() if not _TYPICAL.get(name, frozenset()).isdisjoint(word)])
        for name, table in _TABLES.items()
    }
    best, *others = sorted(scores, key=lambda name: (-scores[name], name))
    rival = next(name for name in others if frozenset((best, name)) not in _ALIKE)
    known = _known_share(small)
    least = _MIN_EVIDENCE_STRANGE if known <= _STRANGE else _MIN_EVIDENCE
    if scores[best] < max(least, _MIN_SHARE * len(words)) or scores[best] < _LEAD * scores[rival]:
        is_other = known <= _OTHER and len(set(small)) >= _MIN_OTHER_WORDS and not proper
        return OTHER if is_other else None
    if best == ENGLISH and not proper and known <= _FEW_KNOWN and len(set(small)) > _MIN_OTHER_WORDS:
        return OTHER
    return best if best == ENGLISH or known <= _MAX_KNOWN or scores[best] >= _PLENTY else None


def _known_share(words: Sequence[str]) -> float:
    """Share of the longer words that are English words, by the table of rarity; 1 where hardly any word is longer."""
    longer = [word for word in words if len(word) > 2]
    rarity = shipped().rarity
    known = sum([term(fold(word)) in rarity or word in STOP_WORDS for word in longer])
    return known / len(longer) if len(longer) > 1 else 1.0


_ALIKE = frozenset({frozenset(("da", "nb")), frozenset(("da", "sv")), frozenset(("nb", "sv"))})


Language = Literal["de", "es", "fr", "it", "nl", "pt", "ar", "hi", "ja", "ko", "th", "zh"]
"""ISO 639 code of a language that is read for changes."""

LANGUAGES: tuple[Language, ...] = get_args(Language)

_STEMMERS = {"de": "german", "es": "spanish", "fr": "french", "it": "italian", "nl": "dutch", "pt": "portuguese"}
_GRAMS = {"ja": 2, "zh": 2, "ko": 2, "th": 3, "hi": 3, "ar": 3}  # characters
_CONTEXTS = 8  # their beginnings show the language of all
_CONTEXT_CHARS = 350
_WORD_OR_NUMBER = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")
_MARKS_OF_NUMBERS = str.maketrans(",.", ".,")  # "2.000,5" is written 2,000.5 in English
_ELIDED = re.compile(r"\b[^\W\d_]{1,5}['’](?=[^\W\d_])")  # "l'eau", "dell'ordine"
_RUN = re.compile(
    r"(?P<grams>[\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+|[\u0e01-\u0e3a\u0e40-\u0e4e]+"
    r"|[\u0900-\u0963\u0971-\u097f]+|[\u0620-\u065f\u066e-\u06d3\u06d5-\u06ef\u06fa-\u06ff]+)"
    r"|\d+(?:[.,]\d+)*|[a-z\u00df-\u024f]+"
)
_KANA = re.compile("[\u3040-\u309f]+")  # of Japanese words and endings that have no content


def language_of_sample(sample: Sample) -> str | None:
    """Language of a sample that is not English; None in English, or where it is not clear.

    `OTHER` where answer, contexts and question are in different languages, so that their words do not meet, or in one
    that is not recognized.

    >>> from ragwatch.model.sample import Context
    >>> english, german = Context("It takes the most of the day."), "Es dauert mehr als zwei Tage."
    >>> [language_of_sample(Sample("1", None, (english,), answer)) for answer in (german, "Bern")]
    ['und', None]
    >>> language_of_sample(Sample("1", "Wie lange dauert das?", (Context(german),), "Zwei Tage."))
    'de'
    """
    texts = "\n".join(context.text[:_CONTEXT_CHARS] for context in sample.contexts[:_CONTEXTS])
    answered, contexts = language_of(sample.answer), language_of(texts)
    if {answered, contexts} <= {ENGLISH, None}:
        return None
    # Short answers and questions are often of no clear language, contexts rarely.
    spoken = {answered, language_of(sample.question or "")} - {None, OTHER} | {contexts} - {None}
    return next(iter(spoken)) if len(spoken) == 1 and spoken != {ENGLISH} else OTHER


def claims_in(sample: Sample, *, max_claims: int | None, check: Check) -> AnswerClaims:
    """The claims of an answer in another language, which are whole sentences."""
    said = claims_of(sample.answer, sample.question, max_claims=max_claims, check=check)
    if said.claims or said.abstained:
        return said
    kinds = (kind_of(sample.answer[one.start : one.end]) for one in spans(sample.answer))
    return said._replace(abstained="abstention" in kinds)


@cache
def tables_in(language: str) -> FittedTables:
    """The tables for a language: the weights of English, words that weigh alike, and no names.

    >>> tables_in("de").terms("Die Häuser waren 2.000 Euro wert.")
    ['haus', 'war', '2000', 'euro', 'wert']
    >>> tables_in("zh").terms("退款需要5天。")
    ['退款', '款需', '需要', '5', '天']
    """
    split = _by_stems(language) if language in _STEMMERS else _by_grams(_GRAMS[language])
    return replace(shipped(), rarity={}, names=frozenset(), split=split)


def _by_stems(language: str) -> Split:
    import snowballstemmer  # noqa: PLC0415 - 0.1 s, for other languages than English only

    stemmer = snowballstemmer.stemmer(_STEMMERS[language])
    stop_words = function_words(language)
    lock = Lock()  # a stemmer holds the word that it works on, and judges read in threads

    @lru_cache(maxsize=1 << 14)
    def stem(word: str) -> str:
        if word in stop_words or (len(word) == 1 and word.isalpha()):
            return ""
        if word[0].isdigit():
            return term(word.translate(_MARKS_OF_NUMBERS))
        with lock:
            return fold(stemmer.stemWord(word))

    def split(text: str) -> list[str]:
        text = unicodedata.normalize("NFC", text).lower()
        return [name for name in map(stem, _WORD_OR_NUMBER.findall(_ELIDED.sub(" ", text))) if name]

    return split


def _by_grams(length: int) -> Split:
    def split(text: str) -> list[str]:
        names: list[str] = []
        for run in _RUN.finditer(unicodedata.normalize("NFKC", text).lower()):
            names += _grams(run.group(), length) if run["grams"] else filter(None, [term(run.group())])
        return names

    return split


def _grams(run: str, length: int) -> Sequence[str]:
    """The n-grams of a run of letters; those of hiragana alone say nothing."""
    parts = [run[index : index + length] for index in range(max(1, len(run) - length + 1))]
    return [part for part in parts if not _KANA.fullmatch(part)]
