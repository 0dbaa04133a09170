"""Checks of the numbers that European states give to persons. All take digits and capital letters without formatting.

The rules are those that the issuing offices publish; the examples are made up or published for tests.
"""

from __future__ import annotations

from ragwatch.redaction.checksums import is_date, luhn, mod11_10, weighted

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU_SIGNS = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            2,
            4,
            18,
            20,
            11,
            3,
            6,
            8,
            12,
            14,
            16,
            10,
            22,
            25,
            24,
            23,
        ),
        strict=True,
    )
)
_NINO_UNUSED = frozenset({"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"})


def nino(value: str) -> bool:
    """UK: prefixes that are in use.

    >>> nino("AB123456C"), nino("BG123456C")
    (True, False)
    """
    return value[:2] not in _NINO_UNUSED


def nhs(value: str) -> bool:
    """UK: mod 11.

    >>> nhs("9434765919"), nhs("9434765918")
    (True, False)
    """
    return (11 - weighted(value[:9], range(10, 1, -1)) % 11) % 11 == int(value[9])


def nir(value: str) -> bool:
    """France: mod 97, with the departments of Corsica.

    >>> nir("255081416802538"), nir("255081416802539")
    (True, False)
    """
    if len(value) != 15 or not value[3:5].isdigit() or not 1 <= int(value[3:5]) <= 99 or value[0] not in "123478":
        return False
    if not (1 <= int(value[3:5]) <= 12 or 20 <= int(value[3:5]) <= 42 or int(value[3:5]) >= 50):
        return False
    digits = value[:13].replace("2A", "19").replace("2B", "18")
    return digits.isdigit() and 97 - int(digits) % 97 == int(value[13:])


def steuer_id(value: str) -> bool:
    """Germany: ISO 7064, one digit twice or three times among the first ten.

    >>> steuer_id("86095742719"), steuer_id("12345678901")
    (True, False)
    """
    counts = sorted(value[:10].count(digit) for digit in set(value[:10]))
    return value[0] != "0" and counts[-1] in (2, 3) and counts[-2] == 1 and mod11_10(value)


def dni(value: str) -> bool:
    """Spain: the letter by mod 23.

    >>> dni("12345678Z"), dni("12345678A")
    (True, False)
    """
    return _DNI_LETTERS[int(value[:8]) % 23] == value[8]


def nie(value: str) -> bool:
    """Spain, foreigners: X, Y and Z read as 0, 1 and 2.

    >>> nie("X1234567L"), nie("X1234567M")
    (True, False)
    """
    return dni(str("XYZ".index(value[0])) + value[1:])


def codice_fiscale(value: str) -> bool:
    """Italy: the last letter.

    >>> codice_fiscale("RSSMRA85T10A562S"), codice_fiscale("RSSMRA85T10A562T")
    (True, False)
    """
    odd = sum(_ODD[char] for char in value[:15:2])
    even = sum(int(char) if char.isdigit() else ord(char) - 65 for char in value[1:15:2])
    return chr(65 + (odd + even) % 26) == value[15]


def bsn(value: str) -> bool:
    """Netherlands: the test of eleven.

    >>> bsn("111222333"), bsn("111222334")
    (True, False)
    """
    return weighted(value, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and value != "000000000"


def belgian(value: str) -> bool:
    """Belgium: mod 97, with a 2 before it since 2000.

    >>> belgian("85073003328"), belgian("85073003329")
    (True, False)
    """
    check = int(value[9:])
    return any(97 - int(prefix + value[:9]) % 97 == check for prefix in ("", "2")) and int(value[2:4]) <= 52


def pesel(value: str) -> bool:
    """Poland: date of birth and weights.

    >>> pesel("44051401359"), pesel("44051401358")
    (True, False)
    """
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)
    return is_date(int(value[2:4]) % 20, int(value[4:6])) and weighted(value, weights) % 10 == 0


def personnummer(value: str) -> bool:
    """Sweden: date of birth and Luhn.

    >>> personnummer("8112189876"), personnummer("198112189876"), personnummer("8112189877")
    (True, True, False)
    """
    value = value[-10:]
    day = int(value[4:6])
    return is_date(int(value[2:4]), day - 60 if day > 60 else day) and luhn(value)


def cpr(value: str) -> bool:
    """Denmark: date of birth; the checksum is no longer used.

    >>> cpr("0707614285"), cpr("0713614285")
    (True, False)
    """
    return is_date(int(value[2:4]), int(value[:2]))


def fodselsnummer(value: str) -> bool:
    """Norway: date of birth and two check digits.

    >>> fodselsnummer("15108695088"), fodselsnummer("15108695089")
    (True, False)
    """
    day, month = int(value[:2]), int(value[2:4])
    if not is_date(month - 40 if month > 40 else month, day - 40 if day > 40 else day):
        return False
    first = weighted(value, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1))
    second = weighted(value, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1))
    return first % 11 == 0 and second % 11 == 0


def hetu(value: str) -> bool:
    """Finland: date of birth and mod 31. The sign of the century may be missing, as it is no letter.

    >>> hetu("131052308T"), hetu("131052A308T"), hetu("131052308U")
    (True, True, False)
    """
    number = value[:6] + value[-4:-1]
    return is_date(int(value[2:4]), int(value[:2])) and _HETU_SIGNS[int(number) % 31] == value[-1]


def nif(value: str) -> bool:
    """Portugal: mod 11.

    >>> nif("501964843"), nif("501964842")
    (True, False)
    """
    check = 11 - weighted(value[:8], range(9, 1, -1)) % 11
    return (check if check < 10 else 0) == int(value[8]) and value[0] not in "04"


def pps(value: str) -> bool:
    """Ireland: the letter by mod 23.

    >>> pps("1234567T"), pps("1234567FA"), pps("1234567A")
    (True, True, False)
    """
    second = ord(value[8]) - 64 if len(value) > 8 and value[8] != "W" else 0
    return "WABCDEFGHIJKLMNOPQRSTUV"[(weighted(value[:7], range(8, 1, -1)) + 9 * second) % 23] == value[7]


def svnr(value: str) -> bool:
    """Austria: the fourth digit by mod 11.

    >>> svnr("1237010180"), svnr("1238010180")
    (True, False)
    """
    return weighted(value, (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)) % 11 == int(value[3])


def ahv(value: str) -> bool:
    """Switzerland: the check digit of an EAN-13.

    >>> ahv("7569217076985"), ahv("7569217076986")
    (True, False)
    """
    return value[:3] == "756" and weighted(value, (1, 3) * 6 + (1,)) % 10 == 0


def rodne_cislo(value: str) -> bool:
    """Czechia and Slovakia: date of birth and mod 11; nine digits until 1953.

    >>> rodne_cislo("7103192745"), rodne_cislo("7103192746")
    (True, False)
    """
    month = int(value[2:4])
    month -= 50 if month > 50 else 0
    dated = is_date(month - 20 if month > 20 else month, int(value[4:6]))
    if len(value) == 9:
        return dated and int(value[:2]) < 54
    return dated and (int(value) % 11 == 0 or (int(value[:9]) % 11 == 10 and value[9] == "0"))


def cnp(value: str) -> bool:
    """Romania: date of birth and mod 11.

    >>> cnp("1800101221144"), cnp("1800101221145")
    (True, False)
    """
    rest = weighted(value[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return (
        value[0] in "12345678"
        and is_date(int(value[3:5]), int(value[5:7]))
        and rest % 10 + rest // 10 == int(value[12])
    )


def egn(value: str) -> bool:
    """Bulgaria: date of birth and mod 11.

    >>> egn("7523169263"), egn("7523169264")
    (True, False)
    """
    month = int(value[2:4])
    dated = is_date(month % 20, int(value[4:6])) and month <= 52
    return dated and weighted(value[:9], (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == int(value[9])


def oib(value: str) -> bool:
    """Croatia: ISO 7064, mod 11,10.

    >>> oib("33392005961"), oib("33392005962")
    (True, False)
    """
    return mod11_10(value)


def isikukood(value: str) -> bool:
    """Estonia and Lithuania: date of birth and mod 11 in two steps.

    >>> isikukood("37605030299"), isikukood("37605030298")
    (True, False)
    """
    rest = weighted(value[:10], (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if rest == 10:
        rest = weighted(value[:10], (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return is_date(int(value[3:5]), int(value[5:7])) and rest == int(value[10])


def amka(value: str) -> bool:
    """Greece: date of birth and Luhn.

    >>> amka("01013099997"), amka("01013099998")
    (True, False)
    """
    return is_date(int(value[2:4]), int(value[:2])) and luhn(value)
