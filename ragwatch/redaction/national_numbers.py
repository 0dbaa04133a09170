"""Tax, company and insurance numbers, one row each: all need one of their words near them, and most a checksum.

Weights and moduli are those that the issuing offices publish. A row without a checksum has a shape or a date instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragwatch.redaction.checksums import is_date, luhn, mod11_10, mrz, weighted

Check = Callable[[str], bool]
_SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CREDIT_CODE = "0123456789ABCDEFGHJKLMNPQRTUWXY"
_PUPIL = "ABCDEFGHJKLMNPQRTUVWXYZ"
_VAT_WORDS = "vat;ust;uid;tva;btw;p.iva;iva;moms;alv;dič;dph;nif;mwst;tax id;tax number;umsatzsteuer;afm;pvn;pvm"
_DOWN = (7, 6, 5, 4, 3, 2)


def _shape(value: str) -> bool:
    """The shape is all there is to check."""
    return bool(value)


def _zero(weights: Sequence[int], modulus: int, rest: tuple[int, ...] = (0,)) -> Check:
    """The weighted sum of all digits leaves nothing, or a rest that is in use."""
    return lambda value: weighted(value, weights) % modulus in rest


def _last(weights: Sequence[int], modulus: int, sign: int = 1) -> Check:
    """The last digit is the rest of the weighted sum of the others, 0 for 10."""
    return lambda value: sign * weighted(value[:-1], weights) % modulus % 10 == int(value[-1])


def _two_steps(first: Sequence[int], second: Sequence[int]) -> Check:
    """The same by mod 11, with other weights where the first give 10."""

    def check(value: str) -> bool:
        rest = weighted(value[:-1], first) % 11
        rest = weighted(value[:-1], second) % 11 % 10 if rest == 10 else rest
        return rest == int(value[-1])

    return check


def _dated(month: int, day: int, check: Check = _shape) -> Check:
    """A month and a day of birth stand at these places, two digits each."""
    return lambda value: is_date(int(value[month : month + 2]), int(value[day : day + 2])) and check(value)


def _inn(value: str) -> bool:
    tail = (2, 4, 10, 3, 5, 9, 4, 6, 8)
    return _last((7, *tail), 11)(value[:11]) and _last((3, 7, *tail), 11)(value)


def _snils(value: str) -> bool:
    return weighted(value[:9], range(9, 0, -1)) % 101 % 100 == int(value[9:])


def _ogrn(value: str) -> bool:
    return int(value[:-1]) % (len(value) - 2) % 10 == int(value[-1])


def _luhn_of_signs(value: str, base: int) -> bool:
    """Luhn with letters for digits above 9: in base 36, or in base 10 with letters as large as they are."""
    total = 0
    for place, sign in enumerate(reversed(value)):
        number = _SIGNS.index(sign) * (1 + place % 2)
        total += number // base + number % base if base == 36 else number - 9 * (place % 2 and number > 9)
    return total % base == 0


def _pension(value: str) -> bool:
    digits = f"{value[:8]}{ord(value[8]) - 64:02}{value[9:]}"
    products = (int(digit) * weight for digit, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2), strict=False))
    return sum(product // 10 + product % 10 for product in products) % 10 == int(value[-1])


def _cif(value: str) -> bool:
    check = "JABCDEFGHI".find(value[8])  # a letter stands for a digit
    last = value[8] if value[8].isdigit() else str(check)
    return last != "-1" and luhn(value[1:8] + last)


def _insured(value: str) -> bool:
    digits = f"{ord(value[0]) - 64:02}{value[1:]}"
    products = (int(digit) * (1 + place % 2) for place, digit in enumerate(digits[:-1]))
    return sum(product // 10 + product % 10 for product in products) % 10 == int(value[-1])


def _vkn(value: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(value[:9]), 1):
        number = (int(digit) + place) % 10
        total += (number * 2**place % 9 or 9) if number else 0
    return -total % 10 == int(value[9])


def _edrpou(value: str) -> bool:
    first = (7, 1, 2, 3, 4, 5, 6) if value[0] in "345" else (1, 2, 3, 4, 5, 6, 7)
    return _two_steps(first, [weight + 2 for weight in first])(value)


def _credit_code(value: str) -> bool:
    total = sum(_CREDIT_CODE.index(sign) * pow(3, place, 31) for place, sign in enumerate(value[:17]))
    return -total % 31 == _CREDIT_CODE.index(value[17])


def _corporate(value: str) -> bool:
    return 9 - weighted(value[:0:-1], (1, 2) * 6) % 9 == int(value[0])


def _unified(value: str) -> bool:
    products = (int(digit) * weight for digit, weight in zip(value, (1, 2, 1, 2, 1, 2, 4, 1), strict=True))
    total = sum(product // 10 + product % 10 for product in products)
    return total % 5 == 0 or (value[6] == "7" and (total + 1) % 5 == 0)


def _nit(value: str) -> bool:
    weights = (41, 37, 29, 23, 19, 17, 13, 7, 3)
    return int("01987654321"[weighted(value[:-1], weights[10 - len(value) :]) % 11]) % 10 == int(value[-1])


def _rif(value: str) -> bool:
    total = (" VEJPG".index(value[0]) * 4) + weighted(value[1:9], (3, 2, 7, 6, 5, 4, 3, 2))
    return "00987654321"[total % 11] == value[9]


def _cypriot(value: str) -> bool:
    odd = sum((1, 0, 5, 7, 9, 13, 15, 17, 19, 21)[int(digit)] for digit in value[:8:2])
    return chr(65 + (odd + sum(map(int, value[1:8:2]))) % 26) == value[8]


def _ico(value: str) -> bool:
    return ((-weighted(value[:7], range(8, 1, -1))) % 11 or 1) % 10 == int(value[7])


NATIONAL: tuple[tuple[str, str, str, Check, str], ...] = (
    ("ru-inn", "Russian INN of a company", "plain10", _last((2, 4, 10, 3, 5, 9, 4, 6, 8), 11), "инн;inn"),
    ("ru-inn-person", "Russian INN of a person", "plain12", _inn, "инн;inn"),
    ("ru-snils", "Russian SNILS", "3-3-3 2;plain11", _snils, "снилс;snils"),
    ("ru-ogrn", "Russian OGRN and OGRNIP", "plain13;plain15", _ogrn, "огрн;ogrn"),
    ("pl-nip", "Polish NIP", "3-3-2-2;plain10", _zero((6, 5, 7, 2, 3, 4, 5, 6, 7, -1), 11), "nip"),
    ("pl-regon", "Polish REGON", "plain9", _last((8, 9, 2, 3, 4, 5, 6, 7), 11), "regon"),
    ("in-gstin", "Indian GSTIN", "gstin", lambda value: _luhn_of_signs(value, 36), "gst"),
    ("us-ein", "US employer identification number", "2-7", _shape, "ein;fein;employer ident;tax id"),
    ("us-ein-plain", "The same without a hyphen", "plain9", _shape, "employer ident;fein"),
    ("us-ptin", "US number of a tax preparer", "ptin", _shape, "ptin"),
    ("us-npi", "US provider identifier (NPI)", "plain10", lambda value: luhn(f"80840{value}"), "npi;national provider"),
    ("us-mbi", "US Medicare beneficiary identifier", "mbi", _shape, "medicare;mbi"),
    ("eu-vat", "VAT numbers of Europe", "vat", _shape, _VAT_WORDS),
    ("at-tin", "Austrian tax number", "plain9", luhn, "steuernummer;abgabenkonto"),
    (
        "ch-uid",
        "Swiss UID",
        "che",
        lambda value: _zero((5, 4, 3, 2, 7, 6, 5, 4, 1), 11)(value[3:12]),
        "uid;mwst;tva;iva;che",
    ),
    ("fr-siren", "French SIREN", "plain9;3 3 3", luhn, "siren"),
    ("fr-siret", "French SIRET", "plain14;3 3 3 5", luhn, "siret"),
    ("fr-tax", "French tax number", "plain13", lambda value: int(value[:10]) % 511 == int(value[10:]), "fiscal;spi"),
    ("it-iva", "Italian partita IVA", "plain11", luhn, "partita iva;p.iva;p. iva;piva;vat"),
    (
        "es-cif",
        "Spanish CIF",
        "cif;ptin;nric",
        _cif,
        "cif;nif",
    ),
    (
        "es-nss",
        "Spanish social security number",
        "plain12;2-8-2",
        lambda value: int(value[:10]) % 97 == int(value[10:]),
        "seguridad social;nss;naf;nuss",
    ),
    ("pt-cc", "Portuguese citizen card", "cidadao", lambda value: _luhn_of_signs(value, 10), "cidad"),
    (
        "be-kbo",
        "Belgian enterprise number",
        "plain10;4.3.3",
        lambda value: -int(value[:8]) % 97 == int(value[8:]),
        "ondernemings;btw;tva;kbo;bce;entreprise",
    ),
    ("dk-cvr", "Danish CVR", "plain8", _zero((2, 7, 6, 5, 4, 3, 2, 1), 11), "cvr"),
    ("se-orgnr", "Swedish organisation number", "6-4;plain10", luhn, "organisationsn;org.nr;orgnr;org nr"),
    (
        "no-orgnr",
        "Norwegian organisation number",
        "plain9;3 3 3",
        _zero((3, 2, 7, 6, 5, 4, 3, 2, 1), 11),
        "organisasjonsn;org.nr;orgnr;org nr;mva",
    ),
    ("fi-ytunnus", "Finnish business id", "7-1", _zero((7, 9, 10, 5, 8, 4, 2, 1), 11), "y-tunnus;business id"),
    ("is-kennitala", "Icelandic kennitala", "6-4;plain10", _zero((3, 2, 7, 6, 5, 4, 3, 2, 1, 0), 11), "kennitala"),
    (
        "lv-code",
        "Latvian personal code",
        "6-5;plain11",
        lambda value: (1 + weighted(value[:10], (10, 5, 8, 4, 2, 1, 6, 3, 7, 9))) % 11 % 10 == int(value[10]),
        "personas kod",
    ),
    ("cz-ico", "Czech and Slovak company number", "plain8", _ico, "ičo;ico;ič"),
    (
        "yu-jmbg",
        "JMBG and EMŠO of former Yugoslavia",
        "plain13",
        _dated(2, 0, _last(_DOWN * 2, 11, -1)),
        "emšo;emso;jmbg;јмбг;матич;матични",
    ),
    ("rs-pib", "Serbian PIB", "plain9", mod11_10, "pib;пиб"),
    ("mk-edb", "Macedonian EDB", "plain13", _last(_DOWN * 2, 11, -1), "едб;edb"),
    (
        "hu-tax",
        "Hungarian tax number",
        "plain8;8-1-2",
        lambda value: _zero((9, 7, 3, 1) * 2, 10)(value[:8]),
        "adószám;adoszam",
    ),
    ("hu-person", "Hungarian tax number of a person", "plain10", _last(range(1, 10), 11), "adóazonos;adoazonos"),
    ("hu-taj", "Hungarian social security number", "plain9;3 3 3", _last((3, 7) * 4, 10), "taj"),
    (
        "ro-cui",
        "Romanian CUI",
        "plain8;plain9;plain10",
        lambda value: weighted(value[:-1].rjust(9, "0"), (7, 5, 3, 2, 1, 7, 5, 3, 2)) * 10 % 11 % 10 == int(value[-1]),
        "cui;cif",
    ),
    ("bg-eik", "Bulgarian EIK", "plain9", _two_steps(range(1, 9), range(3, 11)), "булстат;еик;bulstat;eik"),
    ("gr-afm", "Greek AFM", "plain9", _last((256, 128, 64, 32, 16, 8, 4, 2), 11), "αφμ;α.φ.μ;afm"),
    ("cy-tic", "Cypriot tax number", "dni", _cypriot, "tic;φπα;vat"),
    (
        "gb-utr",
        "UK taxpayer reference",
        "plain10;5 5",
        lambda value: "21987654321"[weighted(value[1:], (6, 7, 8, 9, 10, 5, 4, 3, 2)) % 11] == value[0],
        "utr;taxpayer ref",
    ),
    ("gb-vat", "UK VAT number", "plain9;3 4 2", _zero((8, 7, 6, 5, 4, 3, 2, 10, 1), 97, (0, 42, 55)), "vat"),
    (
        "gb-upn",
        "UK pupil number",
        "upn",
        lambda value: _PUPIL[weighted(value[1:], range(2, 14)) % 23] == value[0],
        "upn;pupil",
    ),
    ("tr-vkn", "Turkish tax number", "plain10", _vkn, "vkn;vergi"),
    ("ua-rnokpp", "Ukrainian tax number", "plain10", _last((-1, 5, 7, 9, 4, 6, 10, 5, 7), 11), "рнокпп;іпн;ідентифік"),
    ("ua-edrpou", "Ukrainian company number", "plain8", _edrpou, "єдрпоу;едрпоу;edrpou"),
    ("by-unp", "Belarusian UNP", "plain9", _last((29, 23, 19, 17, 13, 7, 5, 3), 11), "унп;unp"),
    (
        "kz-iin",
        "Kazakh IIN and BIN",
        "plain12",
        _two_steps(range(1, 12), (3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2)),
        "иин;жсн;бин;iin",
    ),
    ("md-idno", "Moldovan IDNO and IDNP", "plain13", _last((7, 3, 1) * 4, 10), "idno;idnp"),
    (
        "de-pension",
        "German pension insurance number",
        "rvnr",
        _pension,
        "rentenvers;sozialvers;rvnr;versicherungsn;sv-nummer;rv-nummer",
    ),
    ("de-tax-number", "German tax number of an office", "stnr", _shape, "steuernummer;steuer-nr;st.-nr;stnr"),
    (
        "de-card",
        "German identity card",
        "ausweis;kvnr;taiwan",
        lambda value: mrz(value[:9]) == int(value[9]),
        "personalausweis;ausweis;identity card",
    ),
    ("de-insured", "German health insurance number", "kvnr;taiwan", _insured, "kvnr;krankenvers;versichertenn"),
    ("il-company", "Israeli company number", "plain9", luhn, 'ח.פ;ח״פ;ח"פ;עוסק'),
    ("za-tax", "South African tax number", "plain10", luhn, "sars;tax ref;tax number"),
    (
        "cn-credit-code",
        "Chinese social credit code",
        "uscc;18",
        _credit_code,
        "信用代码;uscc;纳税人识别号;税号;credit code",
    ),
    ("jp-corporate", "Japanese corporate number", "plain13", _corporate, "法人番号;corporate number"),
    ("kr-business", "Korean business number", "3-2-5", _shape, "사업자;business reg"),
    ("tw-unified", "Taiwanese unified number", "plain8", _unified, "統一編號;統編;统一编号;ubn"),
    ("sg-uen", "Singapore UEN", "dni;uen", _shape, "uen"),
    ("my-nric", "Malaysian identity card", "6-2-4;plain12", _dated(2, 4), "mykad;nric;pengenalan;kad"),
    ("id-npwp", "Indonesian NPWP", "npwp;plain15", lambda value: luhn(value[:9]), "npwp"),
    ("id-nik", "Indonesian NIK", "plain16", lambda value: is_date(int(value[8:10]), int(value[6:8]) % 40), "nik;ktp"),
    (
        "vn-tax",
        "Vietnamese tax code",
        "plain10",
        lambda value: 10 - weighted(value[:9], (31, 29, 23, 19, 17, 13, 7, 5, 3)) % 11 == int(value[9]),
        "mã số thuế;mst;ma so thue",
    ),
    ("vn-id", "Vietnamese identity number", "plain12", _shape, "cccd;căn cước;cmnd"),
    (
        "au-abn",
        "Australian business number",
        "plain11;2 3 3 3",
        _zero((10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19), 89, (10,)),
        "abn;business number",
    ),
    ("au-acn", "Australian company number", "plain9;3 3 3", _last(range(8, 0, -1), 10, -1), "acn"),
    ("ca-bn", "Canadian business number", "plain9", luhn, "business number;gst"),
    ("mx-rfc", "Mexican RFC", "rfc", lambda value: is_date(int(value[-7:-5]), int(value[-5:-3])), "rfc"),
    ("mx-nss", "Mexican social security number", "plain11", luhn, "nss;imss;seguro social"),
    ("co-nit", "Colombian NIT", "3.3.3-1;plain9;plain10;9-1", _nit, "nit"),
    (
        "pe-ruc",
        "Peruvian RUC",
        "plain11",
        lambda value: (11 - weighted(value[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11) % 10 == int(value[10]),
        "ruc",
    ),
    ("pe-cui", "Peruvian DNI, Paraguayan RUC, Guatemalan NIT", "8-1;7-1", _shape, "cui;dni;ruc;nit"),
    ("ec-cedula", "Ecuadorian cédula", "plain10;9-1", luhn, "cédula;cedula"),
    ("ec-ruc", "Ecuadorian RUC", "plain13", lambda value: value.endswith("001"), "ruc"),
    (
        "uy-rut",
        "Uruguayan RUT",
        "plain12",
        lambda value: -weighted(value[:11], (4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)) % 11 == int(value[11]),
        "rut",
    ),
    ("ve-rif", "Venezuelan RIF", "rif", _rif, "rif"),
    ("do-cedula", "Dominican cédula", "plain11;3-7-1", luhn, "cédula;cedula"),
    (
        "do-rnc",
        "Dominican RNC",
        "plain9",
        lambda value: (10 - weighted(value[:8], (7, 9, 8, 6, 5, 4, 3, 2)) % 11) % 9 + 1 == int(value[8]),
        "rnc",
    ),
    ("cr-company", "Costa Rican company number", "1-3-6", _shape, "cédula;cedula"),
    (
        "br-pis",
        "Brazilian PIS",
        "plain11;3.5.2-1",
        lambda value: -weighted(value[:10], (3, 2, 9, 8, 7, 6, 5, 4, 3, 2)) % 11 % 10 == int(value[10]),
        "pis;pasep;nis",
    ),
    ("ma-ice", "Moroccan ICE", "plain15", lambda value: int(value) % 97 == 0, "ice"),
    ("eg-id", "Egyptian identity number", "plain14", _dated(3, 5), "الرقم القومي;egyptian;national id"),
    (
        "sa-id",
        "Saudi identity number and iqama",
        "plain10",
        lambda value: value[0] in "12" and luhn(value),
        "iqama;الهوية;saudi;الإقامة",
    ),
    ("ae-id", "Emirates ID", "784;plain15", lambda value: value.startswith("784") and luhn(value), "emirates;الهوية"),
    ("pk-cnic", "Pakistani CNIC", "5-7-1", _shape, "cnic;nadra"),
)
"""Name, what it is, shapes, check, and the words of which one must stand near it; `;` separates."""
