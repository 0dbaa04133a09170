"""What stands around the true sentences in real life: page furniture, other passages, a treebank's spaces."""

import random
import re

from .lists import bars

TOP = bars(
    """
Skip to main content Home About Us Services News Contact Search
We use cookies to give you the best experience on our site. Accept all Reject all Manage preferences
Home > Articles > Reference
Menu Sign in Subscribe My account Basket (0)
Share this page Facebook Twitter Pinterest Email Print
Last updated: 3 March. Reading time: 4 minutes
By Staff Writer · Updated 2 days ago · 14 comments
Table of contents 1 Overview 2 Details 3 See also 4 References
This site requires JavaScript. Please enable it in your browser settings.
Breaking news Live updates Video Opinion Weather
Advertisement Scroll down to continue
You have 2 free articles left this month. Log in to read more.
Download PDF Cite this article Request permissions
Welcome, guest! Register or log in to post a reply.
English Français Deutsch Español Italiano
« Previous · Next »
Categories: General, Reference, Uncategorised
Free delivery on orders over 50. Returns within 30 days.
Jump to navigation Jump to search
Topics A-Z Library Resources Help Ask a question
Listen to this article
Photo: archive. Click to enlarge
"""
)
BOTTOM = bars(
    """
Related articles You might also like Most read this week
Copyright All rights reserved. Terms of use Privacy policy
Was this page helpful? Yes No Send feedback
Sign up for our newsletter and never miss a story. Enter your email address Subscribe
Leave a comment Your email address will not be published. Required fields are marked *
Tags: history, people, places
Follow us on social media
Back to top
See also External links References Further reading
Posted in Uncategorised · Tagged reference · Leave a reply
Read more »
Report an error on this page
Contact us Careers Press Investors Site map Accessibility
Thank you for your support. Donate now
0 people found this answer useful. Reply Share Report
Add to cart Add to wish list Compare
This page was generated automatically and may contain errors.
Loading comments...
Next page 1 2 3 4 5 ... 12
Want to learn more? Take our free online course today.
"""
)
SPEAKERS = (
    *(("Agent", "Customer"), ("Host", "Guest"), ("A", "B"), ("Interviewer", "Speaker"), ("Ann", "Bob")),
    *(("Moderator", "Panelist"), ("Operator", "Analyst"), ("Teacher", "Student"), ("User", "Assistant")),
)
_PENN = (
    (re.compile(r" ?\("), " -LRB- "), (re.compile(r"\)"), " -RRB-"), (re.compile(r"(?<=\w)([,;:])(?= )"), r" \1"),
    (re.compile(r"\.$"), " ."), (re.compile(r"(?<=\w)('s)\b"), r" \1"), (re.compile(r'"(\w[^"]*)"'), r"`` \1 ''"),
)  # fmt: skip


def furnished(text: str, rng: random.Random) -> str:
    """A text as it is scraped from a page: menus above, links below, now and then one in the middle."""
    link = rng.choice((" ", "\n", "\n\n"))
    parts = [*rng.sample(TOP, rng.randint(0, 3)), text, *rng.sample(BOTTOM, rng.randint(0, 3))]
    if rng.random() < 0.3:
        parts[parts.index(text)] = _broken(text, rng.choice((*TOP, *BOTTOM)))
    return link.join(parts)


def spoken(text: str, rng: random.Random) -> str:
    """A text as two people say it in turn, a sentence or two each."""
    first, second = rng.choice(SPEAKERS)
    turns = re.split(r"(?<=[a-z0-9][.]) (?=[A-Z])", text)
    lines, speaker = [], 0
    while turns:
        count = rng.choice((1, 1, 2))
        lines.append(f"{(first, second)[speaker]}: {' '.join(turns[:count])}")
        turns, speaker = turns[count:], 1 - speaker
    return "\n".join(lines)


def _broken(text: str, furniture: str) -> str:
    stops = [match.end() for match in re.finditer(r"[a-z][.] (?=[A-Z])", text)]
    if not stops:
        return text
    middle = stops[len(stops) // 2]
    return f"{text[:middle]}\n{furniture}\n{text[middle:]}"


def treebank(text: str) -> str:
    """A sentence in a treebank's spelling."""
    for pattern, new in _PENN:
        text = pattern.sub(new, text)
    return text
