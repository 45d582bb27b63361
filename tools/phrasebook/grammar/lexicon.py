"""The lexicon of the phrasebook: words, and how they combine.

Nouns come in classes that share determiners and adjectives, so that coats may be red
and milk may be cold; a verb names the classes of its complement, so that people read
letters and drive to airports. No English noun, adjective, or verb with its particle has
two German translations, so that the German is a function of the English.
"""

from __future__ import annotations

from typing import NamedTuple

from grammar import determiners
from grammar.determiners import ByMood, Determiner, by_mood
from grammar.english import EnglishVerb, english_verb, with_s
from grammar.german import GermanNoun
from grammar.german_verbs import GermanVerb, german_verb


class Noun(NamedTuple):
    """A noun in both languages."""

    english: str
    english_plural: str
    german: GermanNoun


class Adjective(NamedTuple):
    """An adjective: in English, the German stem that takes endings, the predicate."""

    english: str
    german: str
    predicate: str


class NounClass(NamedTuple):
    """Nouns alike in what may stand before them.

    Attributes:
      determiners: any of them goes with any of the nouns, as often as it is there, in
        each of `MOODS`.
      adjectives: any of them goes with any of the nouns.
      colors: likewise, behind another adjective too: "a big red car".
    """

    nouns: tuple[Noun, ...]
    determiners: ByMood
    adjectives: tuple[Adjective, ...]
    colors: tuple[Adjective, ...] = ()

    def only(self, *english: str) -> NounClass:
        """Keeps the named nouns."""
        return self._replace(nouns=tuple(n for n in self.nouns if n.english in english))

    @property
    def all_adjectives(self) -> tuple[Adjective, ...]:
        """Adjectives and colors."""
        return self.adjectives + self.colors


class Verb(NamedTuple):
    """A verb in both languages, and what it can be about.

    Attributes:
      phrases: complements that are not of a class, as (English, German): "at home";
        the German of what is denied by it begins with "kein": "keine Musik".
      pronouns: which pronouns it takes: "me him it", or "".
      is_state: whether it has neither a progressive nor an imperative: "know".
    """

    english: EnglishVerb
    german: GermanVerb
    complements: tuple[NounClass, ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()
    pronouns: str = ""
    is_state: bool = False

    @property
    def name(self) -> str:
        """The English infinitive and particle."""
        return f"{self.english.base} {self.english.particle}".rstrip()


def make_verb(
    english: str, german: str, *complements: NounClass, governs: str = "acc",
    phrases: str = "", pronouns: str = "", is_state: bool = False,
) -> Verb:  # fmt: skip
    """Makes a verb of two dictionary entries.

    Args:
      english: the infinitive and its particle; behind a colon, if they are irregular,
        the past and the third person of the present: "go to: went goes".
      german: the infinitive, a separable prefix cut off by "|"; behind a colon the stem
        of du and er where its vowel changes ("-" where it does not), "ist" if its
        perfect is made with sein, and the participle if it is irregular:
        "ab|fahren: fähr ist gefahren".
      governs: "acc", "dat", or a preposition and one of them: "auf acc".
      phrases: complements that are not of a class: "at home=zu Hause, =", where
        nothing at all is a complement too.
    """
    words, _, forms = english.partition(": ")
    past, _, third = forms.partition(" ")
    infinitive, _, german_forms = german.partition(": ")
    changed, *others = german_forms.split() or [""]
    pairs = (entry.strip().split("=") for entry in phrases.split(",") if entry)
    return Verb(
        english_verb(words, past, third),
        german_verb(
            infinitive,
            changed=changed.strip("-"),
            participle="".join(form for form in others if form != "ist"),
            auxiliary="sein" if "ist" in others else "haben",
            governs=governs,
        ),
        complements,
        tuple((there, here) for there, here in pairs),
        pronouns,
        is_state,
    )


_GENDERS = {"der": "m", "die": "f", "das": "n"}


def _noun(entry: str) -> Noun:
    """Reads "child/children das Kind Kinder".

    "der*" is weak, "-" is no plural, and "_" is a space.
    """
    english, article, singular, plural = (w.replace("_", " ") for w in entry.split())
    english, _, english_plural = english.partition("/")
    gender = _GENDERS[article.rstrip("*")]
    german = GermanNoun(singular, plural, gender, article.endswith("*"))
    return Noun(english, english_plural or with_s(english), german)


def _adjectives(entries: str) -> tuple[Adjective, ...]:
    """Reads "old=alt tired=müd/müde": what stands behind "/" is the predicate."""
    pairs = (entry.split("=") for entry in entries.split())
    split = ((english, *german.partition("/")) for english, german in pairs)
    return tuple(Adjective(e, stem, whole or stem) for e, stem, _, whole in split)


_QUALITIES = "good=gut bad=schlecht"
_SIZES = f"old=alt new=neu big=groß small=klein beautiful=schön {_QUALITIES}"
_PRICES = "expensive=teur/teuer cheap=billig"
_CARE = "clean=sauber dirty=schmutzig"
_COLORS = _adjectives(
    "red=rot blue=blau green=grün white=weiß black=schwarz yellow=gelb brown=braun"
)


def noun_class(
    allowed: tuple[Determiner, ...], adjectives: str, nouns: str,
    colors: tuple[Adjective, ...] = (),
) -> NounClass:  # fmt: skip
    """Makes a class of dictionary entries.

    Args:
      adjectives: entries such as "old=alt tired=müd/müde".
      nouns: entries such as "child/children das Kind Kinder", with commas between.
    """
    return NounClass(
        tuple(_noun(entry) for entry in nouns.split(",")),
        by_mood(allowed),
        _adjectives(adjectives),
        colors,
    )


_OF_PERSONS = """old=alt young=jung good=gut bad=schlecht small=klein big=groß tall=groß
    beautiful=schön clever=klug friendly=freundlich nice=nett tired=müd/müde
    hungry=hungrig thirsty=durstig happy=glücklich sad=traurig angry=wütend sick=krank
    strong=stark rich=reich poor=arm famous=berühmt proud=stolz lazy=faul quiet=ruhig
    new=neu"""

PEOPLE = noun_class(
    determiners.OF_PEOPLE,
    _OF_PERSONS,
    """teacher der Lehrer Lehrer, doctor der Arzt Ärzte, baker der Bäcker Bäcker,
    neighbor der* Nachbar Nachbarn, student der* Student Studenten,
    customer der* Kunde Kunden, guest der Gast Gäste, man/men der Mann Männer,
    nurse die Krankenschwester Krankenschwestern, waitress die Kellnerin Kellnerinnen,
    actress die Schauspielerin Schauspielerinnen, woman/women die Frau Frauen,
    child/children das Kind Kinder, girl das Mädchen Mädchen, boy der* Junge Jungen,
    friend der Freund Freunde, king der König Könige, queen die Königin Königinnen,
    farmer der* Bauer Bauern, driver der Fahrer Fahrer, singer der Sänger Sänger,
    artist der Künstler Künstler, policeman/policemen der* Polizist Polizisten""",
)
CROWDS = noun_class(determiners.OF_CROWDS, _OF_PERSONS, "people/people die Leute Leute")
FAMILY = noun_class(
    determiners.OF_FAMILY,
    _OF_PERSONS,
    """brother der Bruder Brüder, father der Vater Väter, sister die Schwester
    Schwestern, mother die Mutter Mütter, grandmother die Großmutter Großmütter,
    grandfather der Großvater Großväter, son der Sohn Söhne, daughter die Tochter
    Töchter, uncle der Onkel Onkel, aunt die Tante Tanten, wife/wives die Frau Frauen,
    husband der Mann Männer""",
)
PARENTS = noun_class(
    determiners.OF_PARENTS, _OF_PERSONS, "parents/parents die Eltern Eltern"
)
ANIMALS = noun_class(
    determiners.OF_THINGS,
    """old=alt young=jung big=groß small=klein beautiful=schön good=gut bad=schlecht
    friendly=freundlich clever=klug tired=müd/müde hungry=hungrig thirsty=durstig
    sick=krank strong=stark fast=schnell slow=langsam lazy=faul quiet=ruhig
    dirty=schmutzig happy=glücklich""",
    """dog der Hund Hunde, cat die Katze Katzen, bird der Vogel Vögel, horse das Pferd
    Pferde, cow die Kuh Kühe, mouse/mice die Maus Mäuse, rabbit der* Hase Hasen,
    pig das Schwein Schweine, duck die Ente Enten""",
    _COLORS,
)
VEHICLES = noun_class(
    determiners.OF_THINGS,
    f"{_SIZES} {_PRICES} {_CARE} fast=schnell slow=langsam",
    """car das Auto Autos, bicycle das Fahrrad Fahrräder, bike das Fahrrad Fahrräder,
    truck der Lastwagen Lastwagen, motorcycle das Motorrad Motorräder,
    boat das Boot Boote""",
    _COLORS,
)
TRANSPORT = noun_class(
    determiners.OF_PLACES,
    f"{_SIZES} {_CARE} full=voll empty=leer fast=schnell slow=langsam",
    """bus/buses der Bus Busse, train der Zug Züge, tram die Straßenbahn Straßenbahnen,
    ferry die Fähre Fähren, ship das Schiff Schiffe, plane das Flugzeug Flugzeuge""",
    _COLORS,
)
READING = noun_class(
    determiners.OF_THINGS,
    f"""{_SIZES} {_PRICES} long=lang short=kurz interesting=interessant
    boring=langweilig important=wichtig difficult=schwierig easy=einfach""",
    """book das Buch Bücher, newspaper die Zeitung Zeitungen, letter der Brief Briefe,
    report der Bericht Berichte, novel der Roman Romane""",
)
FURNITURE = noun_class(
    determiners.OF_THINGS,
    f"{_SIZES} {_PRICES} {_CARE} heavy=schwer comfortable=bequem",
    """table der Tisch Tische, chair der Stuhl Stühle, bed das Bett Betten,
    shelf/shelves das Regal Regale, bench die Bank Bänke, sofa das Sofa Sofas""",
    _COLORS,
)
CLOTHES = noun_class(
    determiners.OF_THINGS,
    f"{_SIZES} {_PRICES} {_CARE} warm=warm long=lang short=kurz",
    """coat der Mantel Mäntel, shirt das Hemd Hemden, dress das Kleid Kleider,
    hat der Hut Hüte, jacket die Jacke Jacken, skirt der Rock Röcke,
    shoe der Schuh Schuhe, sweater der Pullover Pullover""",
    _COLORS,
)
DEVICES = noun_class(
    determiners.OF_THINGS,
    f"{_SIZES} {_PRICES} loud=laut fast=schnell slow=langsam broken=kaputt",
    """radio das Radio Radios, computer der Computer Computer, lamp die Lampe Lampen,
    television der Fernseher Fernseher, machine die Maschine Maschinen,
    phone das Telefon Telefone, clock die Uhr Uhren, camera die Kamera Kameras""",
    _COLORS,
)
OPENINGS = noun_class(
    determiners.OF_THINGS,
    f"{_SIZES} {_CARE} heavy=schwer open=offen closed=geschlossen",
    "door die Tür Türen, window das Fenster Fenster, gate das Tor Tore",
    _COLORS,
)
CONTAINERS = noun_class(
    determiners.OF_THINGS,
    f"{_SIZES} {_PRICES} {_CARE} heavy=schwer full=voll empty=leer open=offen",
    """suitcase der Koffer Koffer, box die Kiste Kisten, drawer die Schublade
    Schubladen, bag die Tasche Taschen, bottle die Flasche Flaschen, cup die Tasse
    Tassen, glass das Glas Gläser, plate der Teller Teller, basket der Korb Körbe""",
    _COLORS,
)
FOOD = noun_class(
    determiners.OF_MASSES,
    f"fresh=frisch cold=kalt warm=warm hot=heiß old=alt {_QUALITIES} {_PRICES}",
    """bread das Brot -, cheese der Käse -, soup die Suppe -,
    rice der Reis -, meat das Fleisch -, fish der Fisch -, chocolate die Schokolade -,
    salad der Salat -, butter die Butter -, fruit das Obst -""",
)
SNACKS = noun_class(
    determiners.OF_THINGS,
    f"fresh=frisch cold=kalt warm=warm hot=heiß {_SIZES} {_PRICES}",
    """apple der Apfel Äpfel, egg das Ei Eier, cake der Kuchen Kuchen,
    potato/potatoes die Kartoffel Kartoffeln, banana die Banane Bananen,
    tomato/tomatoes die Tomate Tomaten, orange die Orange Orangen""",
    _adjectives("red=rot green=grün yellow=gelb"),
)
DRINKS = noun_class(
    determiners.OF_MASSES,
    f"fresh=frisch cold=kalt warm=warm hot=heiß {_QUALITIES} {_PRICES}",
    """milk die Milch -, coffee der Kaffee -, tea der Tee -, water das Wasser -,
    juice der Saft -, beer das Bier -, wine der Wein -""",
)
SERVINGS = noun_class(
    determiners.OF_SERVINGS,
    "big=groß small=klein cold=kalt hot=heiß warm=warm good=gut",
    """cup_of_coffee die Tasse_Kaffee -, cup_of_tea die Tasse_Tee -,
    glass_of_water das Glas_Wasser -, glass_of_milk das Glas_Milch -,
    glass_of_wine das Glas_Wein -, bottle_of_beer die Flasche_Bier -,
    bottle_of_wine die Flasche_Wein -, piece_of_cake das Stück_Kuchen -""",
)
NEEDS = noun_class(
    determiners.OF_NEEDS,
    "",
    "money das Geld -, time die Zeit -, work die Arbeit -, help die Hilfe -",
)
GIFTS = noun_class(
    determiners.OF_THINGS,
    f"{_SIZES} {_PRICES} heavy=schwer interesting=interessant important=wichtig",
    """key der Schlüssel Schlüssel, picture das Bild Bilder, map die Karte Karten,
    ring der Ring Ringe, photo das Foto Fotos, umbrella der Regenschirm
    Regenschirme, ball der Ball Bälle, doll die Puppe Puppen, flower die Blume Blumen,
    present das Geschenk Geschenke, watch die Armbanduhr Armbanduhren, knife/knives das
    Messer Messer, pen der Stift Stifte, ticket die Fahrkarte Fahrkarten""",
    _COLORS,
)
_OF_PLACES = f"{_SIZES} {_CARE} famous=berühmt quiet=ruhig"
BUILDINGS = noun_class(
    determiners.OF_PLACES,
    f"{_OF_PLACES} open=offen closed=geschlossen expensive=teur/teuer",
    """school die Schule Schulen, museum das Museum Museen, church die Kirche Kirchen,
    library die Bibliothek Bibliotheken, castle das Schloss Schlösser, hospital das
    Krankenhaus Krankenhäuser, hotel das Hotel Hotels, restaurant das Restaurant
    Restaurants, shop der Laden Läden, theater das Theater Theater, cinema das Kino
    Kinos, office das Büro Büros, house das Haus Häuser""",
)
STATIONS = noun_class(
    determiners.OF_PLACES,
    _OF_PLACES,
    """station der Bahnhof Bahnhöfe, airport der Flughafen Flughäfen, harbor der Hafen
    Häfen""",
)
SQUARES = noun_class(
    determiners.OF_PLACES,
    _OF_PLACES,
    "street die Straße Straßen, market der Markt Märkte, bridge die Brücke Brücken",
)
LANDSCAPES = noun_class(
    determiners.OF_PLACES,
    f"{_OF_PLACES} green=grün",
    """garden der Garten Gärten, park der Park Parks, forest der Wald Wälder, city die
    Stadt Städte, village das Dorf Dörfer, tree der Baum Bäume, lake der See Seen,
    river der Fluss Flüsse, mountain der Berg Berge""",
)
ROOMS = noun_class(
    determiners.OF_PLACES,
    f"{_OF_PLACES} warm=warm cold=kalt dark=dunkl/dunkel empty=leer",
    """room das Zimmer Zimmer, kitchen die Küche Küchen, bathroom das Badezimmer
    Badezimmer, cellar der Keller Keller""",
)
WEATHER = noun_class(
    (determiners.THE,),
    f"{_QUALITIES} beautiful=schön cold=kalt warm=warm hot=heiß",
    "weather das Wetter -",
)
EVENTS = noun_class(
    determiners.OF_PLACES,
    """long=lang short=kurz important=wichtig boring=langweilig new=neu good=gut
    bad=schlecht interesting=interessant difficult=schwierig""",
    """meeting die Sitzung Sitzungen, course der Kurs Kurse, race das Rennen Rennen,
    concert das Konzert Konzerte, game das Spiel Spiele""",
)
FILMS = noun_class(
    determiners.OF_THINGS,
    """old=alt new=neu good=gut bad=schlecht long=lang short=kurz boring=langweilig
    interesting=interessant sad=traurig famous=berühmt beautiful=schön""",
    "film der Film Filme, movie der Film Filme",
)
TALK = noun_class(
    determiners.OF_THINGS,
    """old=alt new=neu good=gut bad=schlecht long=lang short=kurz easy=einfach
    difficult=schwierig important=wichtig interesting=interessant beautiful=schön""",
    """question die Frage Fragen, answer die Antwort Antworten, story die Geschichte
    Geschichten, song das Lied Lieder, word das Wort Wörter, sentence der Satz
    Sätze, problem das Problem Probleme, idea die Idee Ideen""",
)
PLACES = (BUILDINGS, STATIONS, SQUARES, LANDSCAPES)
"""Where one may go."""

PERSONS = (PEOPLE, FAMILY, PARENTS)
ANYBODY = "me you him her us them"
THEM = "it them"
LANGUAGES = """German=kein Deutsch, English=kein Englisch, French=kein Französisch,
    Spanish=kein Spanisch"""
CITIES = "Berlin=Berlin, Hamburg=Hamburg, London=London, Paris=Paris, Vienna=Wien"
