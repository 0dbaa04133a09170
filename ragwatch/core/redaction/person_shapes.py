"""Shapes of the numbers that states give to persons, and where in a text they are tried."""

from __future__ import annotations

import re
from collections.abc import Mapping

_AFTER = r"(?![\w]|[.,-]\d)"
SHAPES = (  # the first that matches counts
    (
        "nir",
        (
            r"[1-478][ ]\d\d[ ]\d\d[ ]\d[\dAB][ ]\d{3}[ ]\d{3}[ ]\d\d"
            r"|[1-478]\d{4}[\dAB]{2}\d{6}[ ]\d\d|[12]\d{4}\d[AB]\d{8}"
        ),
    ),
    ("cnpj", r"\d\d\.\d{3}\.\d{3}/\d{4}-\d\d"),
    ("cpf", r"\d{3}\.\d{3}\.\d{3}-\d\d"),
    ("belgian", r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d"),
    ("ahv", r"756\.\d{4}\.\d{4}\.\d\d"),
    ("rut", r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]"),
    ("thai", r"\d-\d{4}-\d{5}-\d\d-\d"),
    ("6-7", r"\d{6}-[1-8]\d{6}"),
    ("8-4", r"(?:19|20)\d{6}[-+]\d{4}"),
    ("6-4", r"\d{6}[-+ ]\d{4}"),
    ("6/4", r"\d{6}/\d{3,4}"),
    ("2-8-1", r"(?:20|23|24|27|30|33|34)-\d{8}-\d"),
    ("3-2-4", r"\d{3}-\d\d-\d{4}"),
    ("3 2 4", r"\d{3}[ ]\d\d[ ]\d{4}"),
    ("6 4 2 1", r"\d{6}[ ]\d{4}[ ]\d\d[ ]?\d"),
    ("6 5", r"\d{6}[ ]\d{5}"),
    ("4 4 4", r"\d{4}(?P<fours>[ -])\d{4}(?P=fours)\d{4}"),
    ("4 5 1", r"\d{4}[ ]\d{5}[ ]\d(?:[ /-]\d)?"),
    ("4 6", r"\d{4}[ ]\d{6}"),
    ("2 3 3 3", r"\d\d[ ]\d{3}[ ]\d{3}[ ]\d{3}|\d\d/\d{3}/\d{3}/\d{3}"),
    ("3 3 5", r"\d{3}[ ]\d{3}[ ]\d{5}"),
    ("3 3 4", r"\d{3}(?P<nhs>[ -])\d{3}(?P=nhs)\d{4}"),
    ("3 3 3", r"\d{3}(?P<threes>[ .-])\d{3}(?P=threes)\d{3}"),
    ("4.2.3", r"\d{4}\.\d\d\.\d{3}"),
    ("hetu", r"\d{6}[-+A-FU-Y]\d{3}[0-9A-Y]"),
    ("dni", r"\d{8}[ -]?[A-Z]|\d{2}\.\d{3}\.\d{3}[ -]?[A-Z]"),
    ("pps", r"\d{7}[A-W][A-IW]?"),
    ("18", r"\d{17}[\dX]"),
    ("plain", r"\d{8,15}"),
)
# Shapes by the number of digits that they begin with. Texts are full of numbers: only these shapes are tried, and none
# where no rule would take a value of them.
SHAPES_BY_DIGITS: Mapping[int, tuple[str, ...]] = {
    1: ("nir", "rut", "thai"),
    2: ("cnpj", "belgian", "rut", "2-8-1", "2 3 3 3", "dni"),
    3: ("cpf", "ahv", "3-2-4", "3 2 4", "3 3 5", "3 3 4", "3 3 3"),
    4: ("4 4 4", "4 5 1", "4 6", "4.2.3"),
    5: ("nir",),
    6: ("nir", "6-7", "6-4", "6/4", "6 4 2 1", "6 5", "hetu"),
    7: ("pps",),
    8: ("8-4", "dni", "plain"),
    **dict.fromkeys((9, 10, 11, 12, 14, 15), ("plain",)),
    13: ("nir", "plain"),
    **dict.fromkeys((17, 18), ("18",)),
}
NUMBER_BY_DIGITS = {
    digits: re.compile(
        "|".join(f"(?P<s{place}>{shape}){_AFTER}" for place, (name, shape) in enumerate(SHAPES) if name in names)
    )
    for digits, names in SHAPES_BY_DIGITS.items()
}
NUMBER_START = re.compile(r"\d(?<![\w+/-]\d)(?:(?<!\.\d)|(?i:(?<=n[or]\.\d)))\d*")  # behind a dot only as in `no.536`
LETTERED_SHAPES = (
    ("codice", r"[A-Z]{6}[\dLMNP-V]{2}[A-EHLMPRST][\dLMNP-V]{2}[A-Z][\dLMNP-V]{3}[A-Z]"),
    ("curp", r"[A-Z][AEIOUX][A-Z]{2}\d{6}[HMX][A-Z]{5}[0-9A-Z]\d"),
    ("pan", r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]"),
    ("nino", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?P<nino>[ ]?)\d\d(?P=nino)\d\d(?P=nino)\d\d(?P=nino)[A-D]"),
    ("nie", r"[XYZ]-?\d{7}-?[A-Z]"),
    ("nric", r"[STFGM]\d{7}[A-Z]"),
    ("taiwan", r"[A-Z][1289]\d{8}"),
    ("hkid", r"[A-Z]{1,2}\d{6}\([\dA]\)"),
)
LETTERED = re.compile("|".join(f"(?P<s{place}>{shape})(?!\\w)" for place, (_, shape) in enumerate(LETTERED_SHAPES)))
LETTERED_START = re.compile(r"[A-Z](?<![A-Za-z0-9_.-][A-Z])(?=[A-Z]{0,6}-? ?\d)")
