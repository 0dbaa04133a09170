"""Claims and words: what of an answer is a claim, where it stands, and which forms of a word meet one another."""

from collections.abc import Sequence

import pytest
from support.sentences import sections

from ragwatch.judges.claims.claims import claims_of, other_sentences
from ragwatch.judges.claims.steps import names_action
from ragwatch.judges.claims.words import term, terms
from ragwatch.judges.lexical.tables import parse
from ragwatch.statistics.text.phrases import _any_of, without_leads

SENTENCES = sections()


def claims(answer: str, question: str | None = None) -> list[str]:
    """The claims as they stand in the answer."""
    return [answer[claim.start : claim.end] for claim in claims_of(answer, question).claims]


def test_a_sentence_stays_whole() -> None:
    """No abbreviation, initial, decimal, address, file name, ellipsis or quote ends a sentence."""
    assert [line for line in SENTENCES["one whole sentence"] if claims(line) != [line]] == []


CUT = (
    "¦Tea is a green leaf.¦ ¦It grows in hills!¦",
    "¦They live in the U.S.¦ ¦The law is old there.¦",
    "¦It holds much vitamin C.¦ ¦The rest is water.¦",
    '¦He said: "Tea is a leaf."¦ ¦Then he left us.¦',
    "¦Tea is a leaf.[1]¦ ¦It grows in hills [2][3].¦",
    "¦Tea is a leaf. [1]¦ ¦It grows in hills.¦",
    "1. ¦Boil the water.¦\n2. ¦Add the tea.¦\n   ¦Stir it well.¦",
    "- ¦Green tea¦\n* ¦Black tea¦\n• ¦White tea¦",
    "¦Tea grows in\nthe green hills.¦ ¦It likes rain.¦",
    "¦Use str.strip first of all.¦ ¦str.split() cuts the rest.¦",
    "¦茶は緑です。¦¦水は熱い。¦",
    "# Tea\n\n**Kinds:**\n\nSteps:\n1. ¦Boil the water¦",
    "¦Run this code in a new shell first:¦\n```python\nprint('a. B')\n\nx = 1\n```\n¦It prints a letter.¦",
    "¦Call it from a new shell like this:¦\n```\nnever --closed",
    "¦No. Tea is not black.¦",
    "¦Tea is a green leaf. Really.¦",
    "¦George Two¦",
    "1.\n¦Boil the water well¦",
    "¦42.¦",
    "Do this: 1. ¦Boil the water.¦ 2. ¦Add the tea leaves.¦ 3. ¦Stir it well.¦",
    "¦Tea is served at 5 p.m.¦ ¦Unfortunately, it is cold.¦",
    "¦It opens at 9 a.m. Monday to Friday.¦",
    "¦It closed at 9 p.m. EST on 9 p.m. May 2.¦",
    "¦It closes at 9 p.m. London time.¦",
    "¦At 9 a.m. Anna drinks her tea.¦",
    "¦**25 users**¦",
    "<think>\nTea is red.\n</think>\n\n¦**25 users**¦",
    "Tea is surely red.\n</think>\n¦Tea is a green leaf.¦",
    "¦Tea is a leaf here.¦\n<think>\nIt may be red.",
    "¦Put reasoning in a <think> tag. Close it.¦",
    "| Tea | Price |\n|---|:-:|\n¦| Green tea leaves | 6 euros |¦",
    "1. ¦Boil the water.¦ 2. ¦Add the tea leaves.¦",
    "¦It was the year of the flood:¦ 1. ¦January was dry.¦",
    "¦The score was low. 7.¦ ¦Nobody had won.¦",
    "Dear Mr. Miller,\n\n¦Tea is a green leaf.¦",
    "¦Tea is a green leaf.¦ [Tea guide](https://example.com/tea)\n\n¹ tea.pdf",
    "- ¦Green tea,¦\n- ¦Black tea¦",
    "¦Tea is a green leaf,¦",
)


@pytest.mark.parametrize("marked", CUT)
def test_an_answer_is_cut_where_its_claims_end(marked: str) -> None:
    """Sentences and list items (between the bars) are claims; labels, headings and code are not; fragments join."""
    assert claims(marked.replace("¦", "")) == marked.split("¦")[1::2]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (SENTENCES["abstention"], (True, 0)),
        (SENTENCES["one claim"], (False, 1)),
        ([*SENTENCES["neither"], "", " \n"], (False, 0)),
    ],
    ids=["abstentions", "claims", "meta"],
)
def test_an_answer_abstains_or_claims_something_or_neither(answers: Sequence[str], expected: tuple[bool, int]) -> None:
    """What only says that it does not know abstains; negative statements about the world are claims; leads nothing."""
    found = {answer: claims_of(answer) for answer in answers}
    wrong = [answer for answer, one in found.items() if (one.abstained, len(one.claims)) != expected]
    assert wrong == []


def test_what_opens_a_sentence_is_no_part_of_its_claim() -> None:
    """No context holds "step 2" or "in conclusion": such words, and their numbers, are not looked for."""
    for opened in SENTENCES["opening of a claim"]:
        (claim,) = claims_of(opened.format("tea grows in green hills.")).claims
        assert terms(claim.words) == terms("tea grows in green hills"), opened


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("The passage does not say when, but monks built the tower.", "monks built the tower"),
        (
            "Tea is 1) green leaves, (2) black leaves and (3) kept for 50 years (at 7 degrees).",
            "tea green leaves black leaves kept 50 years 7 degrees",
        ),
        ("Please note that the renewal costs 45 dollars.", "the renewal costs 45 dollars"),
        ("According to passage 2, tea is green (passage 1).", "tea green"),
    ],
)
def test_the_words_of_a_claim_are_what_it_says(answer: str, words: str) -> None:
    """Without an abstention before a but, numbers of a list, general caution and leads; its place is the whole."""
    (claim,) = claims_of(answer).claims
    assert terms(claim.words) == terms(words)
    assert answer[claim.start : claim.end] == answer


def test_words_meet_across_forms() -> None:
    """Accents, possessives, commas in numbers, number words and plural endings do not part equal words."""
    assert terms("São Paulo's 2,000 studies, 3.50 boxes ÉTÉ seven") == terms("sao paulo 2000 study 3.5 box ete 7")
    assert terms("x 1.2.3 5.0") == ["1.2.3", "5"]
    assert (claims("Yes."), claims("Yes.", "Is tea green?")) == ([], ["Yes."])  # a yes alone says nothing


def test_a_misspelt_fragment_is_an_error() -> None:
    """A table of phrases that names an unknown fragment must not silently match nothing."""
    with pytest.raises(ValueError, match="unknown fragment"):
        _any_of("<PASAGES> say")
    assert without_leads("plain") == "plain"


def test_the_version_of_the_tables_follows_their_content() -> None:
    """Verdicts of other weights or other words must not share a mean."""
    weights, words = (
        '{"support": {"bias": 1, "weights": {}}, "relevance": {"bias": 0, "weights": {}}}',
        '{"levels": {}}',
    )
    others = [parse(weights, words), parse(weights + " ", words), parse(weights, '{"levels": {"25": "tea"}}')]
    assert len({tables.version for tables in others}) == 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("## Warranty", "heading"),
        ("These are the steps:", "lead-in"),
        ("This answer is based on the passages.", "about the passages"),
        ("```\nx = 1\n```", "code"),
        ("Sources: [1] tea.pdf", "sources"),
        ("[^1]: tea.pdf, page 2", "sources"),
        ("<think>Tea may be red.</think>", "reasoning"),
    ],
)
def test_what_is_no_claim_has_a_kind(text: str, kind: str) -> None:
    """The claim beside it is not among the others."""
    answer = f"Tea is green.\n\n{text}"
    claims = [(claim.start, claim.end) for claim in claims_of(answer).claims]
    assert claims == [(0, 13)]
    ((start, end, shown),) = other_sentences(answer, claims)
    assert (answer[start:end], shown) == (text, kind)


def test_a_sentence_with_a_claim_in_it_is_none_of_the_others() -> None:
    """Facts are parts of sentences; a sentence counts with any of them."""
    answer = "Sure, tea is green, and it is hot. Enjoy it! The number 3 stays."
    others = [answer[start:end] for start, end, _ in other_sentences(answer, [(45, 64), (6, 18), (20, 34)])]
    assert others == ["Enjoy it!"]


def test_the_names_of_columns_are_a_heading() -> None:
    """The line below them says that a table begins."""
    kinds = [kind for _, _, kind in other_sentences("| Tea | Price |\n|---|---|\n| Green tea leaves | 6 |", [])]
    assert kinds == ["heading", "no claim"]


DAYS, FREE = "Refunds take five days.", "Shipping is free."


FENCED = (
    f"```\n{DAYS}\n{FREE}\n```",
    f"```\n{DAYS} {FREE}",
    f"```markdown\n- {DAYS}\n- {FREE}\n```",
    f"``` {DAYS}\n{FREE}",
    f"~~~text\n{DAYS}\n\n{FREE}\n~~~",
    f"{DAYS}\n```\n{FREE}",
    f"```python\nprint(days)\n\n{DAYS}\n{FREE}",
)
CODE = (
    "```python\ndef days(refund):\n    return refund.days + 1\n```",
    "```\npip install ragwatch\n```",
    "```\n$ ls -la\ntotal 4\n```",
    '```json\n{"answer": "Refunds take five days."}\n```',
    "```sql\nSELECT days FROM refunds WHERE free = 1;\n```",
    "~~~\nfor day in days: print(day)\n~~~",
    "```\n```",
)


def test_fenced_prose_is_prose_and_code_is_no_claim() -> None:
    """Whatever fence an answer begins with, or leaves open, its sentences are its claims.

    Code between sentences, at the beginning and at the end stays out.
    """
    assert [answer for answer in FENCED if claims(answer) != [DAYS, FREE]] == []
    for code in CODE:
        assert claims(f"{DAYS}\n{code}\n{FREE}") == [DAYS, FREE], code
        assert claims(f"{code}\n{DAYS}") == claims(f"{DAYS}\n{code.rsplit(chr(10), 1)[0]}") == [DAYS], code


def test_the_forms_of_a_word_meet_and_words_that_look_alike_stay_apart() -> None:
    """Plural, past and -ing have the term of the plain word, and so has what has two endings.

    An ending that only looks like one is not cut, and a cut ending leaves no other word behind. Of all these words,
    two share a term only where they are forms of one word.
    """
    known, strangers = (
        [words.split() for line in SENTENCES[name] for words in line.split(";")]
        for name in ("forms of a word", "words that look alike")
    )
    assert [forms for forms in known if {term(form) for form in forms} != {term(forms[0])}] == []
    assert [words for words in strangers if len({term(word) for word in words}) != len(words)] == []
    assert len({term(forms[0]) for forms in known}) == len(known)


def test_the_root_of_an_action_has_no_silent_e() -> None:
    """A closet closes nothing: the e that a short word keeps makes no beginning by which its root is known."""
    assert [names_action({term(word)}, ("close", "shut")) for word in ("closing", "closet")] == [True, False]
