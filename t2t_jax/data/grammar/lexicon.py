"""The words of the phrasebook: what there is, and what goes with what.

Nouns come in classes that share determiners and adjectives, so that coats may be red
and milk may be cold; a verb names the classes that its complement is taken from, so
that people read letters and drive to airports. No English noun, adjective, or verb
with its particle has two German ones here: so the German of a sentence can be a
function of its English.
"""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.data.grammar.english import with_s
from t2t_jax.data.grammar.german import GermanDeterminer, GermanNoun


class Noun(NamedTuple):
    """A noun in both languages."""

    english: str
    english_plural: str
    german: GermanNoun


class Adjective(NamedTuple):
    """An adjective: the English word and the German stem that takes endings."""

    english: str
    german: str


class Determiner(NamedTuple):
    """A determiner and the number it calls for. English "a" becomes "an" by itself."""

    english: str
    german: GermanDeterminer
    plural: bool


class NounClass(NamedTuple):
    """Nouns alike in what may stand before them.

    Attributes:
      nouns: the nouns.
      determiners: any of them goes with any of the nouns.
      adjectives: likewise; a phrase has one or none.
    """

    nouns: tuple[Noun, ...]
    determiners: tuple[Determiner, ...]
    adjectives: tuple[Adjective, ...]

    def only(self, *english: str) -> NounClass:
        """Keeps the nouns named, and everything that may stand before them."""
        return self._replace(nouns=tuple(n for n in self.nouns if n.english in english))


_GENDERS = {"der": "m", "die": "f", "das": "n"}


def _noun(entry: str) -> Noun:
    """Reads "child/children das Kind Kinder"; "der*" is weak, "-" is no plural."""
    english, article, singular, plural = entry.split()
    english, _, english_plural = english.partition("/")
    gender = _GENDERS[article.rstrip("*")]
    german = GermanNoun(singular, plural, gender, article.endswith("*"))
    return Noun(english, english_plural or with_s(english), german)


def _nouns(
    determiners: tuple[Determiner, ...], adjectives: str, nouns: str
) -> NounClass:
    pairs = (pair.split("=") for pair in adjectives.split())
    return NounClass(
        tuple(_noun(entry) for entry in nouns.split(",")),
        determiners,
        tuple(Adjective(english, german) for english, german in pairs),
    )


def _determiner(
    english: str, german: str, kind: str, *, possessor: str = "", plural: bool = False
) -> Determiner:
    return Determiner(english, GermanDeterminer(german, kind, possessor), plural)


_THE = _determiner("the", "", "definite")
_A = _determiner("a", "ein", "ein-word")
_THIS = _determiner("this", "dies", "der-word")
_MY = _determiner("my", "mein", "ein-word")
_OUR = _determiner("our", "unser", "ein-word")
_HIS = _determiner("his", "sein", "ein-word")
_HER = _determiner("her", "ihr", "ein-word")
_UNCLES = _determiner("my uncle's", "", "definite", possessor="meines Onkels")
_AUNTS = _determiner("my aunt's", "", "definite", possessor="meiner Tante")
_PETERS = _determiner("Peter's", "Peters", "bare")
_NO_ARTICLE = _determiner("", "", "bare")
_SOME = _determiner("some", "etwas", "bare")
_MUCH = _determiner("a lot of", "viel", "bare")
_THE_PLURAL = _determiner("the", "", "definite", plural=True)
_THESE = _determiner("these", "dies", "der-word", plural=True)
_MY_PLURAL = _determiner("my", "mein", "ein-word", plural=True)
_TWO = _determiner("two", "zwei", "bare", plural=True)
_THREE = _determiner("three", "drei", "bare", plural=True)
_TEN = _determiner("ten", "zehn", "bare", plural=True)

DEFINITE = frozenset({_THE, _THIS, _THE_PLURAL, _THESE, _MY, _OUR, _HIS, _HER, _UNCLES})
"""Determiners of what is known; the others would ask for `kein` in a denial."""

_OF_PEOPLE = (_THE, _A, _THIS, _THE_PLURAL, _THESE, _TWO)
_OF_FAMILY = (_MY, _OUR, _HIS, _HER)
_OF_PLACES = (_THE, _A, _THIS)
_OF_MASSES = (_THE, _NO_ARTICLE, _MY, _OUR, _THIS, _SOME, _MUCH, _PETERS)
_OF_THINGS = (
    _THE, _A, _THIS, _MY, _OUR, _HIS, _HER, _UNCLES, _AUNTS, _PETERS,
    _THE_PLURAL, _THESE, _MY_PLURAL, _TWO, _THREE, _TEN,
)  # fmt: skip

PEOPLE = _nouns(
    _OF_PEOPLE,
    """young=jung clever=klug friendly=freundlich tired=müd famous=berühmt
    hungry=hungrig""",
    """teacher der Lehrer Lehrer, doctor der Arzt Ärzte, baker der Bäcker Bäcker,
    neighbor der* Nachbar Nachbarn, student der* Student Studenten,
    customer der* Kunde Kunden, guest der Gast Gäste, man/men der Mann Männer,
    nurse die Krankenschwester Krankenschwestern, waitress die Kellnerin Kellnerinnen,
    actress die Schauspielerin Schauspielerinnen, woman/women die Frau Frauen,
    child/children das Kind Kinder, girl das Mädchen Mädchen""",
)
FAMILY = _nouns(
    _OF_FAMILY,
    "dear=lieb tired=müd proud=stolz friendly=freundlich hungry=hungrig sick=krank",
    """brother der Bruder Brüder, father der Vater Väter, sister die Schwester
    Schwestern, mother die Mutter Mütter, grandmother die Großmutter Großmütter""",
)
VEHICLES = _nouns(
    _OF_THINGS,
    "old=alt new=neu red=rot blue=blau green=grün expensive=teur fast=schnell",
    """car das Auto Autos, bicycle das Fahrrad Fahrräder, truck der Lastwagen
    Lastwagen, motorcycle das Motorrad Motorräder, boat das Boot Boote""",
)
TRANSPORT = _nouns(
    _OF_PLACES,
    "red=rot blue=blau full=voll old=alt slow=langsam",
    """bus der Bus Busse, train der Zug Züge, tram die Straßenbahn Straßenbahnen,
    ferry die Fähre Fähren""",
)
READING = _nouns(
    _OF_THINGS,
    "long=lang short=kurz interesting=interessant boring=langweilig important=wichtig",
    """book das Buch Bücher, newspaper die Zeitung Zeitungen, letter der Brief Briefe,
    report der Bericht Berichte, novel der Roman Romane""",
)
FURNITURE = _nouns(
    _OF_THINGS,
    "old=alt new=neu big=groß small=klein beautiful=schön heavy=schwer",
    """table der Tisch Tische, chair der Stuhl Stühle, bed das Bett Betten,
    shelf/shelves das Regal Regale, bench die Bank Bänke""",
)
CLOTHES = _nouns(
    _OF_THINGS,
    "red=rot blue=blau white=weiß black=schwarz warm=warm new=neu expensive=teur",
    """coat der Mantel Mäntel, shirt das Hemd Hemden, dress das Kleid Kleider,
    hat der Hut Hüte, jacket die Jacke Jacken, skirt der Rock Röcke""",
)
DEVICES = _nouns(
    _OF_THINGS,
    "old=alt new=neu expensive=teur cheap=billig small=klein",
    """radio das Radio Radios, computer der Computer Computer, lamp die Lampe Lampen,
    television der Fernseher Fernseher, machine die Maschine Maschinen""",
)
OPENINGS = _nouns(
    _OF_THINGS,
    "big=groß small=klein old=alt heavy=schwer green=grün",
    """door die Tür Türen, window das Fenster Fenster, suitcase der Koffer Koffer,
    box die Kiste Kisten, drawer die Schublade Schubladen""",
)
FOOD = _nouns(
    _OF_MASSES,
    "fresh=frisch cold=kalt warm=warm good=gut cheap=billig",
    """bread das Brot -, cheese der Käse -, soup die Suppe -,
    rice der Reis -, meat das Fleisch -, fish der Fisch -""",
)
DRINKS = _nouns(
    _OF_MASSES,
    "fresh=frisch cold=kalt warm=warm good=gut",
    """milk die Milch -, coffee der Kaffee -, tea der Tee -,
    water das Wasser -, juice der Saft -, beer das Bier -""",
)
GIFTS = _nouns(
    _OF_THINGS,
    "new=neu old=alt small=klein beautiful=schön important=wichtig",
    """key der Schlüssel Schlüssel, picture das Bild Bilder, map die Karte Karten,
    ring der Ring Ringe, photo das Foto Fotos, umbrella der Regenschirm
    Regenschirme""",
)
PLACES = _nouns(
    _OF_PLACES,
    "old=alt new=neu big=groß small=klein beautiful=schön",
    """station der Bahnhof Bahnhöfe, airport der Flughafen Flughäfen,
    school die Schule Schulen, market der Markt Märkte, museum das Museum Museen,
    church die Kirche Kirchen, library die Bibliothek Bibliotheken,
    castle das Schloss Schlösser, harbor der Hafen Häfen""",
)
EVENTS = _nouns(
    _OF_PLACES,
    "long=lang short=kurz important=wichtig boring=langweilig",
    "meeting die Sitzung Sitzungen, course der Kurs Kurse, race das Rennen Rennen",
)
