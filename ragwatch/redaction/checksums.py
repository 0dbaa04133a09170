"""Checksums of numbers that identify a person, a card or an account. All take it without formatting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Contribution of a digit to the Luhn sum: itself, or the digit sum of its double.
_ONCE = bytes.maketrans(b"0123456789", bytes(range(10)))
_TWICE = bytes.maketrans(b"0123456789", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))

# Multiplication of the dihedral group of order 10, and the permutations by place of a digit.
_DIHEDRAL = (
    *("0123456789", "1234067895", "2340178956", "3401289567", "4012395678"),
    *("5987604321", "6598710432", "7659821043", "8765932104", "9876543210"),
)
_PERMUTED = (
    *("0123456789", "1576283094", "5803796142", "8916043527"),
    *("9453126870", "4286573901", "2793806415", "7046913258"),
)


_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_date(month: int, day: int) -> bool:
    """Whether a year can have this day.

    >>> is_date(2, 29), is_date(2, 30), is_date(13, 1)
    (True, False, False)
    """
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]


def luhn(digits: str) -> bool:
    """Whether the last digit is the Luhn check digit.

    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    encoded = digits.encode()
    return (sum(encoded[-1::-2].translate(_ONCE)) + sum(encoded[-2::-2].translate(_TWICE))) % 10 == 0


def verhoeff(digits: str) -> bool:
    """Whether the last digit is the Verhoeff check digit.

    >>> verhoeff("2363"), verhoeff("2364")
    (True, False)
    """
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = int(_DIHEDRAL[check][int(_PERMUTED[place % 8][int(digit)])])
    return check == 0


def mod97(value: str) -> bool:
    """Whether letters and digits, the letters read as 10 to 35, leave 1 (ISO 7064, mod 97-10).

    >>> mod97("370400440532013000DE89")
    True
    """
    return int("".join(str(int(char, 36)) for char in value)) % 97 == 1


def mod11_10(digits: str) -> bool:
    """Whether the last digit is the check digit of ISO 7064, mod 11,10.

    >>> mod11_10("86095742719"), mod11_10("86095742718")
    (True, False)
    """
    product = 10
    for digit in digits[:-1]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(digits[-1])


def weighted(digits: str, weights: Sequence[int]) -> int:
    """Sum of the digits, each times its weight.

    >>> weighted("123", (3, 2, 1))
    10
    """
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def mrz(value: str) -> int:
    """The check digit of a field in the machine-readable zone of a passport (ICAO 9303).

    >>> mrz("L898902C3")
    6
    """
    numbers = (0 if char == "<" else int(char, 36) for char in value)
    return sum(number * (7, 3, 1)[place % 3] for place, number in enumerate(numbers)) % 10


def _mod11(digits: str) -> bool:
    """Whether weights that fall to 1 from the left give a multiple of 11."""
    return weighted(digits, range(len(digits), 0, -1)) % 11 == 0


CHECKSUMS: dict[str, Callable[[str], bool]] = {
    "luhn": luhn,
    "verhoeff": verhoeff,
    "mod97": mod97,
    "mod11": _mod11,
    "mod11_10": mod11_10,
}
"""Checksums that a rule of the configuration may name."""
DIGITS_ONLY = frozenset(CHECKSUMS) - {"mod97"}
"""Of these, those that are defined for digits and no letters."""
