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
    ("npwp", r"\d\d\.\d{3}\.\d{3}\.\d-\d{3}\.\d{3}"),
    ("3.3.3-1", r"\d{3}\.\d{3}\.\d{3}-\d"),
    ("3.5.2-1", r"\d{3}\.\d{5}\.\d\d-\d"),
    ("4.3.3", r"[01]\d{3}\.\d{3}\.\d{3}"),
    ("rut", r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]"),
    ("thai", r"\d-\d{4}-\d{5}-\d\d-\d"),
    ("gstin", r"\d\d[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]"),
    ("rvnr", r"\d{8}[A-Z]\d{3}|\d\d[ ]\d{6}[ ][A-Z][ ]?\d{3}"),
    ("cidadao", r"\d{8}[ ]?\d[ ]?[A-Z]{2}\d"),
    (
        "mbi",
        r"[1-9][AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y]\d-?[AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y]\d-?[AC-HJKMNP-RT-Y]{2}\d\d",
    ),
    ("18", r"\d{17}[\dX]"),
    ("uscc", r"\d{8}(?=[0-9A-Z]{0,9}[A-Z])[0-9A-HJ-NP-RTUWXY]{10}"),
    ("stnr", r"\d{2,3}/\d{3}/\d{4,5}"),
    ("784", r"784-\d{4}-\d{7}-\d"),
    ("3-3-3 2", r"\d{3}-\d{3}-\d{3}[ -]\d\d"),
    ("3-3-2-2", r"\d{3}-\d{3}-\d\d-\d\d|\d{3}-\d\d-\d\d-\d{3}"),
    ("3-7-1", r"\d{3}-\d{7}-\d"),
    ("3-2-5", r"\d{3}-\d\d-\d{5}"),
    ("3 3 3 5", r"\d{3}[ ]\d{3}[ ]\d{3}[ ]\d{5}"),
    ("3 4 2", r"\d{3}[ ]\d{4}[ ]\d\d"),
    ("5 5", r"\d{5}[ ]\d{5}"),
    ("5-7-1", r"\d{5}-\d{7}-\d"),
    ("6-5", r"\d{6}-\d{5}"),
    ("6-2-4", r"\d{6}-\d\d-\d{4}"),
    ("2-7", r"\d\d-\d{7}"),
    ("2-8-2", r"\d\d[ /-]\d{8}[ /-]\d\d"),
    ("1-3-6", r"\d-\d{3}-\d{6}"),
    ("8-1-2", r"\d{8}-\d-\d\d"),
    ("9-1", r"\d{9}-\d"),
    ("8-1", r"\d{8}-\d"),
    ("7-1", r"\d{7}-\d"),
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
    ("uen", r"\d{9}[A-Z]"),
    ("plain", r"\d{8,16}"),
)
# Shapes by the number of digits that they begin with. Texts are full of numbers: only these shapes are tried, and none
# where no rule would take a value of them.
SHAPES_BY_DIGITS: Mapping[int, tuple[str, ...]] = {
    1: ("nir", "rut", "thai", "mbi", "1-3-6"),
    2: ("npwp", "cnpj", "belgian", "rut", "gstin", "rvnr", "stnr", "2-7", "2-8-2", "2-8-1", "2 3 3 3", "dni"),
    3: (
        *("3.3.3-1", "3.5.2-1", "cpf", "ahv", "stnr", "784", "3-3-3 2", "3-3-2-2", "3-7-1", "3-2-5", "3 3 3 5"),
        *("3 4 2", "3-2-4", "3 2 4", "3 3 5", "3 3 4", "3 3 3"),
    ),
    4: ("4.3.3", "4 4 4", "4 5 1", "4 6", "4.2.3"),
    5: ("nir", "5-7-1", "5 5"),
    6: ("nir", "6-7", "6-5", "6-2-4", "6-4", "6/4", "6 4 2 1", "6 5", "hetu"),
    7: ("7-1", "pps"),
    8: ("8-4", "rvnr", "cidadao", "uscc", "8-1-2", "8-1", "dni", "plain"),
    9: ("cidadao", "uscc", "9-1", "uen", "plain"),
    **dict.fromkeys((10, 11, 12, 14, 15, 16), ("uscc", "plain")),
    13: ("nir", "uscc", "plain"),
    **dict.fromkeys((17, 18), ("uscc", "18")),
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
    (
        "vat",
        (
            r"ATU\d{8}|BE[ ]?[01]\d{9}|CY\d{8}[A-Z]|CZ\d{8,10}|(?:BG|LT)\d{9,12}|(?:DE|EE|EL|GB|PT|XI)[ ]?\d{9}"
            r"|(?:DK|FI|HU|LU|MT|SI)\d{8}|ES[A-Z\d]\d{7}[A-Z\d]|FR[ ]?[\dA-Z]{2}[ ]?\d{9}|(?:HR|IT|LV)\d{11}"
            r"|IE\d[A-Z\d]\d{5}[A-Z]{1,2}|NL\d{9}B\d\d|(?:PL|SK)\d{10}|RO\d{6,10}|SE\d{12}"
        ),
    ),
    ("che", r"CHE-?\d{3}\.?\d{3}\.?\d{3}"),
    ("rif", r"[VEJPG]-\d{8}-?\d|[VEJPG]\d{8}-\d"),
    ("rfc", r"[A-Z]{3,4}\d{6}[A-Z0-9]{3}"),
    ("ptin", r"P\d{8}"),
    ("nie", r"[XYZ]-?\d{7}-?[A-Z]"),
    ("nric", r"[STFGM]\d{7}[A-Z]"),
    ("taiwan", r"[A-Z][1289]\d{8}"),
    ("upn", r"[A-Z]\d{12}"),
    ("kvnr", r"[A-Z]\d{9}"),
    ("cif", r"[ABCDEFGHJNPQRSUVW]-?\d{7}-?[0-9A-J]"),
    ("ausweis", r"[CFGHJKLMNPRTVWXYZ][0-9CFGHJKLMNPRTVWXYZ]{8}\d"),
    ("hkid", r"[A-Z]{1,2}\d{6}\([\dA]\)"),
)
LETTERED = re.compile("|".join(f"(?P<s{place}>{shape})(?!\\w)" for place, (_, shape) in enumerate(LETTERED_SHAPES)))
LETTERED_START = re.compile(r"[A-Z](?<![A-Za-z0-9_.-][A-Z])(?=[A-Z]{0,6}-? ?\d)")
