"""Checks of the numbers that states outside Europe give to persons. All take digits and capital letters.

The rules are those that the issuing offices publish; the examples are made up or published for tests.
"""

from __future__ import annotations

from ragwatch.redaction.checksums import is_date, luhn, verhoeff, weighted

_TAIWAN = "ABCDEFGHJKLMNPQRSTUVXYWZIO"


def anything(value: str) -> bool:
    """Whether the shape is all there is to check."""
    return bool(value)


def ssn(value: str) -> bool:
    """US: areas and groups that are in use, among them those of taxpayers without a social security number.

    >>> ssn("536904399"), ssn("666904399"), ssn("912704399"), ssn("912104399")
    (True, False, True, False)
    """
    area, group, serial = int(value[:3]), int(value[3:5]), value[5:]
    if area in (0, 666) or not group or serial == "0000" or len(set(value)) == 1 or value == "123456789":
        return False
    return area < 900 or 50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 99


def _two_digits(value: str, first: tuple[int, ...]) -> bool:
    """Brazil: two check digits by mod 11."""
    for weights, place in ((first, -2), ((first[0] + 1 if len(first) == 9 else 6, *first), -1)):
        rest = weighted(value, weights) % 11
        if (11 - rest if rest > 1 else 0) != int(value[place]):
            return False
    return len(set(value)) > 1


def cpf(value: str) -> bool:
    """Brazil, persons.

    >>> cpf("52998224725"), cpf("52998224726"), cpf("11111111111")
    (True, False, False)
    """
    return _two_digits(value, (10, 9, 8, 7, 6, 5, 4, 3, 2))


def cnpj(value: str) -> bool:
    """Brazil, companies.

    >>> cnpj("11222333000181"), cnpj("11222333000182")
    (True, False)
    """
    return _two_digits(value, (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))


def curp(value: str) -> bool:
    """Mexico: date of birth and check digit.

    >>> curp("BOXW310820HNERXN09"), curp("BOXW310820HNERXN08")
    (True, False)
    """
    signs = "0123456789ABCDEFGHIJKLMN\xd1OPQRSTUVWXYZ"
    total = sum(signs.index(char) * (18 - place) for place, char in enumerate(value[:17]))
    return is_date(int(value[6:8]), int(value[8:10])) and -total % 10 == int(value[17])


def cuit(value: str) -> bool:
    """Argentina: mod 11, with 9 for 10.

    >>> cuit("20267565393"), cuit("20267565394")
    (True, False)
    """
    rest = -weighted(value[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return min(rest, 9) == int(value[10]) and value[0] in "23"


def rut(value: str) -> bool:
    """Chile: mod 11, with K for 10.

    >>> rut("125319092"), rut("125319093")
    (True, False)
    """
    total = sum(int(digit) * (2 + place % 6) for place, digit in enumerate(reversed(value[:-1])))
    return "0K987654321"[total % 11] == value[-1]


def aadhaar(value: str) -> bool:
    """India: Verhoeff.

    >>> aadhaar("234123412346"), aadhaar("234123412347")
    (True, False)
    """
    return value[0] not in "01" and verhoeff(value)


def resident(value: str) -> bool:
    """China: date of birth and ISO 7064, mod 11-2.

    >>> resident("11010519491231002X"), resident("110105194912310021")
    (True, False)
    """
    if value[6:8] not in ("18", "19", "20") or not is_date(int(value[10:12]), int(value[12:14])):
        return False
    total = weighted(value[:17], (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2))
    return "10X98765432"[total % 11] == value[17]


def rrn(value: str) -> bool:
    """Korea: date of birth; numbers since 2020 have no checksum.

    >>> rrn("9001011234568"), rrn("9013011234568")
    (True, False)
    """
    return is_date(int(value[2:4]), int(value[4:6])) and value[6] in "12345678"


def my_number(value: str) -> bool:
    """Japan: mod 11.

    >>> my_number("123456789018"), my_number("123456789012")
    (True, False)
    """
    rest = weighted(value[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if rest <= 1 else 11 - rest) == int(value[11])


def tfn(value: str) -> bool:
    """Australia, tax: mod 11.

    >>> tfn("123456782"), tfn("123456783")
    (True, False)
    """
    weights = (1, 4, 3, 7, 5, 8, 6, 9, 10) if len(value) == 9 else (10, 7, 8, 4, 6, 3, 5, 1)
    return weighted(value, weights) % 11 == 0


def medicare(value: str) -> bool:
    """Australia, health: mod 10.

    >>> medicare("2123456701"), medicare("2123456711")
    (True, False)
    """
    return value[0] in "23456" and weighted(value[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == int(value[8])


def sin(value: str) -> bool:
    """Canada: Luhn.

    >>> sin("046454286"), sin("046454287")
    (True, False)
    """
    return luhn(value) and len(set(value)) > 1


def south_african(value: str) -> bool:
    """South Africa: date of birth, citizenship and Luhn.

    >>> south_african("8001015009087"), south_african("8001015009088"), south_african("1712015009081")
    (True, False, False)
    """
    stamp = value[:2] in ("16", "17", "18")  # times in ms since 1970
    return not stamp and is_date(int(value[2:4]), int(value[4:6])) and value[10] in "012" and luhn(value)


def kimlik(value: str) -> bool:
    """Turkey: two check digits.

    >>> kimlik("10000000146"), kimlik("10000000147")
    (True, False)
    """
    digits = [int(digit) for digit in value]
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return digits[0] != 0 and tenth == digits[9] and sum(digits[:10]) % 10 == digits[10]


def nric(value: str) -> bool:
    """Singapore: the letter by mod 11.

    >>> nric("S1234567D"), nric("S1234567E"), nric("F1234567N")
    (True, False, True)
    """
    start = {"T": 4, "G": 4, "M": 3}.get(value[0], 0)
    rest = (weighted(value[1:8], (2, 7, 6, 5, 4, 3, 2)) + start) % 11
    signs = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "KLJNPQRTUWX"}.get(value[0], "XWUTRQPNMLK")
    return signs[10 - rest if value[0] == "M" else rest] == value[8]


def hkid(value: str) -> bool:
    """Hong Kong: mod 11.

    >>> hkid("A1234563"), hkid("A1234564")
    (True, False)
    """
    padded = value.rjust(9)
    numbers = [36 if char == " " else int(char, 36) for char in padded[:8]]
    total = sum(number * (9 - place) for place, number in enumerate(numbers))
    return "0A987654321"[total % 11] == value[-1]


def taiwanese(value: str) -> bool:
    """Taiwan: mod 10.

    >>> taiwanese("A123456789"), taiwanese("A123456788")
    (True, False)
    """
    area = _TAIWAN.index(value[0]) + 10
    return (area // 10 + area % 10 * 9 + weighted(value[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def thai(value: str) -> bool:
    """Thailand: mod 11.

    >>> thai("1101700230708"), thai("1101700230709")
    (True, False)
    """
    return (11 - weighted(value[:12], range(13, 1, -1)) % 11) % 10 == int(value[12])


def israeli(value: str) -> bool:
    """Israel: Luhn.

    >>> israeli("123456782"), israeli("123456783")
    (True, False)
    """
    return luhn(value)


def ird(value: str) -> bool:
    """New Zealand: mod 11 in two steps.

    >>> ird("049091850"), ird("049091851")
    (True, False)
    """
    value = value.rjust(9, "0")
    for weights in ((3, 2, 7, 6, 5, 4, 3, 2), (7, 4, 3, 2, 5, 2, 7, 6)):
        check = -weighted(value[:8], weights) % 11
        if check < 10:
            return check == int(value[8])
    return False
