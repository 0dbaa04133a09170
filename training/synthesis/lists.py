"""Word lists out of plain text."""


def words(text: str) -> frozenset[str]:
    """Words between white space."""
    return frozenset(text.split())


def row(text: str) -> tuple[str, ...]:
    """Words between white space, in order."""
    return tuple(text.split())


def bars(text: str) -> tuple[str, ...]:
    """Entries between bars or line ends, in order."""
    return tuple(part.strip() for part in text.strip().replace("\n", "|").split("|"))
