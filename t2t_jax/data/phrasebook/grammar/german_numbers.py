"""German numbers for the phrasebook: cardinals, ordinals and clock times.

German says the unit before the ten (`fünfundvierzig`, five-and-forty) and counts the
half hour towards the next one (`halb acht` is half past seven).
"""

from __future__ import annotations

_UNITS = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
    "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
).split()
_TENS = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_ORDINALS = {1: "ersten", 3: "dritten", 7: "siebten", 8: "achten"}


def number(n: int) -> str:
    """Spells 0 to 99.

    Example:
      >>> number(7), number(45), number(21)
      ('sieben', 'fünfundvierzig', 'einundzwanzig')
    """
    if n < len(_UNITS):
        return _UNITS[n]
    tens, unit = divmod(n, 10)
    head = _UNITS[unit].removesuffix("s" * (unit == 1)) + "und" if unit else ""
    return head + _TENS[tens]


def ordinal(n: int) -> str:
    """Spells the ordinal of 1 to 99 as it stands behind `am`.

    Example:
      >>> ordinal(3), ordinal(19), ordinal(31)
      ('dritten', 'neunzehnten', 'einunddreißigsten')
    """
    return _ORDINALS.get(n) or number(n) + ("ten" if n < len(_UNITS) else "sten")


def clock(hour: int, quarters: int) -> str:
    """Spells the time `quarters` quarters of an hour after `hour` (1 to 12).

    Example:
      >>> clock(1, 0), clock(7, 1), clock(7, 2), clock(12, 3)
      ('ein Uhr', 'Viertel nach sieben', 'halb acht', 'Viertel vor eins')
    """
    following = number(hour % 12 + 1)
    if quarters == 0:
        return "ein Uhr" if hour == 1 else f"{number(hour)} Uhr"
    if quarters == 1:
        return f"Viertel nach {number(hour)}"
    return f"halb {following}" if quarters == 2 else f"Viertel vor {following}"
