"""Claims and words: what of an answer is a claim, where it stands, and which forms of a word meet one another."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragwatch.judges.claims.claims import claims_of, other_sentences
from ragwatch.judges.claims.steps import names_action
from ragwatch.judges.claims.words import term, terms
from ragwatch.judges.lexical.tables import parse
from ragwatch.statistics.text.phrases import _any_of, without_leads


def claims(answer: str, question: str | None = None) -> list[str]:
    """The claims as they stand in the answer."""
    return [answer[claim.start : claim.end] for claim in claims_of(answer, question).claims]


WHOLE = """\
Dr. Ito met Mrs. Lund in St. Gallen at 5 p.m. on a Monday.
It holds, e.g. tea, i.e. a drink, vs. coffee, etc. and so on.
The U.S. Army moved to the U.K. border with J. R. Smith Jr. in May.
See No. 5 and Fig. 3 of vol. 2 for 3.14 and 1,000.50 dollars.
Open https://docs.example.org/a.b/c.html?x=1.2 or config.yaml with textwrap.dedent now.
He waited ... and then he left for good.
Version 2.0.1 of the tool, approx. five years old, is used by Acme Inc. in Oslo.
She asked him 'why not?' and he left the room.
Call `a.b(). C` never without `x = 1.5` in the same line""".splitlines()


def test_a_sentence_stays_whole() -> None:
    """No abbreviation, initial, decimal, address, file name, ellipsis or quote ends a sentence."""
    assert [claims(whole) for whole in WHOLE] == [[whole] for whole in WHOLE]


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("Tea is a green leaf. It grows in hills!", ["Tea is a green leaf.", "It grows in hills!"]),
        ("They live in the U.S. The law is old there.", ["They live in the U.S.", "The law is old there."]),
        ("It holds much vitamin C. The rest is water.", ["It holds much vitamin C.", "The rest is water."]),
        ('He said: "Tea is a leaf." Then he left us.', ['He said: "Tea is a leaf."', "Then he left us."]),
        ("Tea is a leaf.[1] It grows in hills [2][3].", ["Tea is a leaf.[1]", "It grows in hills [2][3]."]),
        ("Tea is a leaf. [1] It grows in hills.", ["Tea is a leaf. [1]", "It grows in hills."]),
        ("1. Boil the water.\n2. Add the tea.\n   Stir it well.", ["Boil the water.", "Add the tea.", "Stir it well."]),
        ("- Green tea\n* Black tea\n• White tea", ["Green tea", "Black tea", "White tea"]),
        ("Tea grows in\nthe green hills. It likes rain.", ["Tea grows in\nthe green hills.", "It likes rain."]),
        (
            "Use str.strip first of all. str.split() cuts the rest.",
            ["Use str.strip first of all.", "str.split() cuts the rest."],
        ),
        ("茶は緑です。水は熱い。", ["茶は緑です。", "水は熱い。"]),
        ("# Tea\n\n**Kinds:**\n\nSteps:\n1. Boil the water", ["Boil the water"]),
        (
            "Run this code in a new shell first:\n```python\nprint('a. B')\n\nx = 1\n```\nIt prints a letter.",
            ["Run this code in a new shell first:", "It prints a letter."],
        ),
        ("Call it from a new shell like this:\n```\nnever --closed", ["Call it from a new shell like this:"]),
        ("No. Tea is not black.", ["No. Tea is not black."]),
        ("Tea is a green leaf. Really.", ["Tea is a green leaf. Really."]),
        ("George Two", ["George Two"]),
        ("1.\nBoil the water well", ["Boil the water well"]),
        ("42.", ["42."]),
        (
            "Do this: 1. Boil the water. 2. Add the tea leaves. 3. Stir it well.",
            ["Boil the water.", "Add the tea leaves.", "Stir it well."],
        ),
        (
            "Tea is served at 5 p.m. Unfortunately, it is cold.",
            ["Tea is served at 5 p.m.", "Unfortunately, it is cold."],
        ),
        ("It opens at 9 a.m. Monday to Friday.", ["It opens at 9 a.m. Monday to Friday."]),
        ("It closed at 9 p.m. EST on 9 p.m. May 2.", ["It closed at 9 p.m. EST on 9 p.m. May 2."]),
        ("It closes at 9 p.m. London time.", ["It closes at 9 p.m. London time."]),
        ("At 9 a.m. Anna drinks her tea.", ["At 9 a.m. Anna drinks her tea."]),
        ("**25 users**", ["**25 users**"]),
        ("<think>\nTea is red.\n</think>\n\n**25 users**", ["**25 users**"]),
        ("Tea is surely red.\n</think>\nTea is a green leaf.", ["Tea is a green leaf."]),
        ("Tea is a leaf here.\n<think>\nIt may be red.", ["Tea is a leaf here."]),
        ("Put reasoning in a <think> tag. Close it.", ["Put reasoning in a <think> tag. Close it."]),
        ("| Tea | Price |\n|---|:-:|\n| Green tea leaves | 6 euros |", ["| Green tea leaves | 6 euros |"]),
        ("1. Boil the water. 2. Add the tea leaves.", ["Boil the water.", "Add the tea leaves."]),
        ("It was the year of the flood: 1. January was dry.", ["It was the year of the flood:", "January was dry."]),
        ("The score was low. 7. Nobody had won.", ["The score was low. 7.", "Nobody had won."]),
    ],
)
def test_an_answer_is_cut_where_its_claims_end(answer: str, parts: list[str]) -> None:
    """Sentences and list items are claims; labels, headings and code are not; fragments join their neighbour."""
    assert claims(answer) == parts


ABSTENTIONS = """\
I don't know.
I do not have that information.
I'm sorry, but I couldn't find an answer to that.
I could not find anything about moving medians in the documentation.
The context does not contain the answer.
The provided passages do not mention her age.
Based on the given context, it is not possible to answer this question.
Unable to answer based on the given passages.
There is no information about that in the documents provided.
No relevant documents were found.
None of the sources mention it.
The answer cannot be determined from the passages.
Not mentioned in the text.
Sorry, no answer.
I wasn't able to find anything on tea in our help center.
We weren't able to locate it.
The model cannot find sufficient information to answer the question.
The requested information is not available in the retrieved data. Please try another query or topic.
Unfortunately, the search results provide no details. I hope this helps!
I have no idea.
Unable to answer based on given passages. The passages discuss the history but do not mention its size.
The passages describe the mill and provide information about its owner, but they do not state its age.""".splitlines()
CLAIMS = """\
The dictionary does not contain the key.
The function does not return a value.
She does not have any technical skills.
The passages do not mention her age. She lives in Oslo with two cats.
I don't know the year, but the tower was built by monks.
The library has no documentation.
The police cannot find enough documents to answer the charges of fraud in 2019.
Try a different topic if the chapter on topic 4 is hard.
[^1]: Gift cards are left out.
This answer was generated by AI and the warranty lasts two years.
While the passages do not mention the date, they suggest that monks built the tower.
Although the passages do not give the exact figure, the town had roughly 34,000 people in 1900.
The passages do not mention the date; however, monks built the tower.
The passages do not mention the date but monks built the tower.
Plant sources do not contain vitamin D.
Wild pandas cannot be found outside of China.
It is not possible to see the wall from the moon.
If you are unable to find the serial number, look under the lid.
Passage 2 states that the drug relieves pain but does not give any protection from fever.
None of the kings died.
See a doctor if the pain lasts for more than two days.
It is recommended to seek medical advice if the pain lasts more than 2 days.
Trials showed mixed results, and more research is needed.
You should verify that the valve is closed.""".splitlines()
META = """\
:
Thought process:
I hope this helps!
Based on the context, here are the steps you asked for:
To boil the water in a kettle of this kind, follow these simple steps:
There are several requirements for this.
There are many ways to do this.
Please note that these are general guidelines and results may vary.
This information can be found in passages 1 and 2.
This quote is from passage 1.
Source: passage 2.
*This response was generated by AI and may contain mistakes.*
AI-generated content may be incorrect.
Please try another query or topic.
(Ref: Passage 1)
You should consult further resources.
Refer to additional sources for more details.
More research is needed.
It is always best to consult with a professional.
Information on the nests of ants can be found in these passages.
...""".splitlines()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [(ABSTENTIONS, (True, 0)), (CLAIMS, (False, 1)), ((*META, "", " \n"), (False, 0))],
    ids=["abstentions", "claims", "meta"],
)
def test_an_answer_abstains_or_claims_something_or_neither(answers: Sequence[str], expected: tuple[bool, int]) -> None:
    """What only says that it does not know abstains; negative statements about the world are claims; leads nothing."""
    found = {answer: claims_of(answer) for answer in answers}
    wrong = [answer for answer, one in found.items() if (one.abstained, len(one.claims)) != expected]
    assert wrong == []


OPENED = """\
Step 2: {}
Of course! Based on the passages you provided, {}
In conclusion, {}
Additionally, passage 2 states that {}
All three of the passages suggest that {}
However, it is important to note that {}
Note: {}
Passage ID 2 mentions that {}
(Ref: Passage 1) {}
Explanation: {}
Second, {}
I can answer this: {}""".splitlines()


def test_what_opens_a_sentence_is_no_part_of_its_claim() -> None:
    """No context holds "step 2" or "in conclusion": such words, and their numbers, are not looked for."""
    for opened in OPENED:
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


FAMILIES = """
apply applies applied applying; supply supplies supplied supplying; reply replies replied; imply implies implied
rely relies relied relying; rally rallies rallied; bully bullies bullied bullying; fly flies flying; assembly assemblies
family families; study studies studied studying; try tries tried trying; fry fries fried; sky skies
die dies died dying; tie ties tied tying; movie movies; cookie cookies; calorie calories
use uses used using; age ages aged aging; ice iced icing; owe owes owed owing; go goes going
agree agrees agreed agreeing; free frees freed freeing; employee employees; committee committees; tree trees; fee fees
need needs needed needing; speed speeds speeding; succeed succeeds succeeded; exceed exceeds exceeding
building buildings; meeting meetings; setting settings; embed embeds embedded embedding embeddings; hundred hundreds
control controls controlled controlling; cancel cancels cancelled canceling; travel travelled traveled
call calls called calling; install installs installing
add adds added adding; stuff stuffed; buzz buzzes buzzing; process processes processed
make makes making; write writes writing; type types typed typing; delete deletes deleted deleting; visit visited
cache caches cached caching; box boxes boxed; class classes; church churches; hero heroes; house houses housing
run runs running; plan plans planned planning; plane planes; hope hoped hoping; hop hopped hopping; stop stopped
virus viruses; bus buses; bias biases biased; lens lenses; status statuses; analysis analyses; crisis crises
api apis; gpu gpus; menu menus; program programs programme programmed programming; quiz quizzes
quick quickly; easy easily; possible possibly; simple simply; complete completely; increase increasing increasingly
"""

STRANGERS = """
apply app; supply supp; reply rep; early ear; july jul; news new; united unit; king ring sing string spring bring thing
bed red need seed species series; plane plan; hope hop; site sit; care car; code cod; time tim; rate rat; use bus us
paste past; suite suit; james jam; mine min; feed fee; web webb; man mann; marie mary; finale final; reading red
"""


def families(text: str) -> list[list[str]]:
    """The words of each entry."""
    return [entry.split() for line in text.strip().splitlines() for entry in line.split(";")]


def test_the_forms_of_a_word_meet_and_words_that_look_alike_stay_apart() -> None:
    """Plural, past and -ing have the term of the plain word, and so has what has two endings.

    An ending that only looks like one is not cut, and a cut ending leaves no other word behind. Of all these words,
    two share a term only where they are forms of one word.
    """
    known = families(FAMILIES)
    assert [forms for forms in known if {term(form) for form in forms} != {term(forms[0])}] == []
    assert [words for words in families(STRANGERS) if len({term(word) for word in words}) != len(words)] == []
    assert len({term(forms[0]) for forms in known}) == len(known)


def test_the_root_of_an_action_has_no_silent_e() -> None:
    """A closet closes nothing: the e that a short word keeps makes no beginning by which its root is known."""
    assert [names_action({term(word)}, ("close", "shut")) for word in ("closing", "closet")] == [True, False]
