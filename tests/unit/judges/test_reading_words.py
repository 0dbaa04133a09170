"""Words: the forms of a word meet one another, and no other word."""

from __future__ import annotations

from itertools import combinations

import pytest

from ragwatch.judges.claims.steps import names_action
from ragwatch.judges.claims.words import term

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


@pytest.mark.parametrize("forms", families(FAMILIES), ids=" ".join)
def test_the_forms_of_a_word_meet(forms: list[str]) -> None:
    """Plural, past and -ing have the term of the plain word, and so has what has two endings."""
    assert {term(form) for form in forms} == {term(forms[0])}


@pytest.mark.parametrize("words", families(STRANGERS), ids=" ".join)
def test_words_that_look_alike_stay_apart(words: list[str]) -> None:
    """An ending that only looks like one is not cut, and a cut ending leaves no other word behind."""
    assert len({term(word) for word in words}) == len(words)


def test_no_family_takes_the_term_of_another() -> None:
    """Of all the words above, two share a term only where they are forms of one word."""
    told = [{term(form) for form in forms} for forms in families(FAMILIES)]
    assert all(one.isdisjoint(other) for one, other in combinations(told, 2))


def test_the_root_of_an_action_has_no_silent_e() -> None:
    """A closet closes nothing: the e that a short word keeps makes no beginning by which its root is known."""
    assert [names_action({term(word)}, ("close", "shut")) for word in ("closing", "closet")] == [True, False]
