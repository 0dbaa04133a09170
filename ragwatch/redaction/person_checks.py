"""Checks of the numbers that states give to persons and companies, for those that python-stdnum lacks."""

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module

Check = Callable[[str], bool]


@cache
def _imported(module: str) -> Check:
    check: Check = import_module(f"stdnum.{module}").is_valid
    return check


def stdnum(module: str) -> Check:
    """Returns the check of a module of python-stdnum, which is imported when the first number is checked."""
    return lambda value: _imported(module)(value)  # noqa: PLW0108 - not imported before


luhn = stdnum("luhn")
"""Luhn's checksum."""
mod97 = stdnum("iso7064.mod_97_10")
"""ISO 7064, mod 97-10; letters are read as 10 to 35."""
_french_number, _mod11_2, _tfn = stdnum("fr.nir"), stdnum("iso7064.mod_11_2"), stdnum("au.tfn")
_birth_number, _anum, _south_african = stdnum("cz.rc"), stdnum("hu.anum"), stdnum("za.idnr")


def _sum(digits: str, weights: Iterable[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _is_date(month: str | int, day: str | int) -> bool:
    """Whether a year can have this day."""
    return 1 <= int(month) <= 12 and 1 <= int(day) <= (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[int(month) - 1]


def mrz(value: str) -> int:
    """Returns the check digit of a field in the machine-readable zone of a passport (ICAO 9303)."""
    numbers = (0 if char == "<" else int(char, 36) for char in value)
    return sum(number * (7, 3, 1)[place % 3] for place, number in enumerate(numbers)) % 10


def _digit_sum(digits: str, weights: Iterable[int]) -> int:
    """Sum of the digits of all products."""
    return sum(sum(divmod(int(digit) * weight, 10)) for digit, weight in zip(digits, weights, strict=False))


def _singapore(value: str) -> bool:
    rest = (_sum(value[1:8], (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(value[0], 0)) % 11
    signs = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "KLJNPQRTUWX"}.get(value[0], "XWUTRQPNMLK")
    return signs[10 - rest if value[0] == "M" else rest] == value[8]


def _hong_kong(value: str) -> bool:
    numbers = [36 if char == " " else int(char, 36) for char in value.rjust(9)[:8]]
    return "0A987654321"[sum(number * (9 - place) for place, number in enumerate(numbers)) % 11] == value[-1]


def _taiwan(value: str) -> bool:
    area = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(value[0]) + 10
    return (area // 10 + area % 10 * 9 + _sum(value[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def _unified(value: str) -> bool:
    total = _digit_sum(value, (1, 2, 1, 2, 1, 2, 4, 1))
    return total % 5 == 0 or (value[6] == "7" and (total + 1) % 5 == 0)


def _kazakh(value: str) -> bool:
    rest = _sum(value[:11], range(1, 12)) % 11
    return (_sum(value, (3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2)) % 11 % 10 if rest == 10 else rest) == int(value[11])


def _french(value: str) -> bool:
    """With the department of Corsica; the library admits any first digit and month, which times in ns have as well."""
    month = value[3:5]
    used = month.isdigit() and (1 <= int(month) <= 12 or 20 <= int(month) <= 42 or 50 <= int(month) <= 99)
    return value[0] in "123478" and used and _french_number(value)


CHECKS: dict[str, Check] = {
    "shape": bool,  # all there is to check
    "luhn": luhn,
    "atin": lambda value: value[0] == "9" and value[3:5] == "93",  # the library admits any number
    "ae id": lambda value: value.startswith("784") and luhn(value),
    # The second row of weights is that of numbers of eight digits, which the library reads with the weights of nine.
    "tfn": lambda value: _tfn(value) if len(value) > 8 else _sum(value, (10, 7, 8, 4, 6, 3, 5, 1)) % 11 == 0,
    "medicare": lambda value: value[0] in "23456" and _sum(value, (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == int(value[8]),
    "pis": lambda value: -_sum(value, (3, 2, 9, 8, 7, 6, 5, 4, 3, 2)) % 11 % 10 == int(value[10]),
    # No list of districts: the library's ends with the year of its release, and it fails on some numbers.
    "cn resident": lambda value: (
        value[6:8] in ("18", "19", "20") and _is_date(value[10:12], value[12:14]) and _mod11_2(value)
    ),
    "rodne cislo": lambda value: (len(value) == 10 or int(value[:2]) < 54) and _birth_number(value),  # 9 until 1953
    "pension": lambda value: (
        _digit_sum(f"{value[:8]}{ord(value[8]) - 64:02}{value[9:]}", (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2)) % 10
        == int(value[-1])
    ),
    "kvnr": lambda value: _digit_sum(f"{ord(value[0]) - 64:02}{value[1:9]}", (1, 2) * 5) % 10 == int(value[-1]),
    "mrz": lambda value: mrz(value[:9]) == int(value[9]),
    "eg id": lambda value: _is_date(value[3:5], value[5:7]),
    "es nss": lambda value: int(value[:10]) % 97 == int(value[10:]),
    "hetu": lambda value: (  # the sign of the century may be missing, as it is no letter
        _is_date(value[2:4], value[:2])
        and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(value[:6] + value[-4:-1]) % 31] == value[-1]
    ),
    "nir": _french,
    "nino": lambda value: value[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"},  # not in use
    "hkid": _hong_kong,
    "hu person": lambda value: _sum(value[:9], range(1, 10)) % 11 % 10 == int(value[9]),
    "taj": lambda value: _sum(value[:8], (3, 7) * 4) % 10 == int(value[8]),
    "hu tax": lambda value: _anum(value[:8]),
    "rrn": lambda value: _is_date(value[2:4], value[4:6]) and value[6] in "12345678",  # no checksum since 2020
    "iin": _kazakh,
    "snils": lambda value: _sum(value, range(9, 0, -1)) % 101 % 100 == int(value[9:]),
    "sa id": lambda value: value[0] in "12" and luhn(value),
    "personnummer": lambda value: (  # the library refuses the numbers of coordination, whose day is 60 more
        _is_date(value[-8:-6], int(value[-6:-4]) % 60) and luhn(value[-10:])
    ),
    "nric": _singapore,
    "tw id": _taiwan,
    "ubn": _unified,  # by 5, as since 2023; the library has the rule before
    "npi": lambda value: luhn(f"80840{value}"),
    "za id": lambda value: value[:2] not in ("16", "17", "18") and _south_african(value),  # times in ms since 1970
}
"""Checks that python-stdnum lacks, or has for fewer numbers than are in use. All take digits and capital letters."""
