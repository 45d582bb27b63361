"""What the example sentences of the phrasebook's model combine, and no training text.

The sentences are the package's, t2t_jax/data/corpora/phrasebook_examples.tsv. The
training text has no sentence, in any tense or frame, in which a teacher reads a book.
"""

COMBINATIONS = frozenset(
    {
        ("Lehrer", "lesen", "Buch"),
        ("ich", "haben", "Auto"),
        ("Kind", "essen", "Apfel"),
        ("Schwester", "sein", "müde"),
        ("", "sein", "Vogel"),
        ("", "sein", "Hotel"),
        ("Schuh", "sein", ""),
        ("sie", "geben", "Schlüssel"),
        ("Nachbar", "schwimmen", ""),
        ("du", "aufmachen", "Tür"),
        ("wer", "warten auf", "Bus"),
        ("Anna", "kochen", "was"),
        ("wir", "trinken", "Tasse Kaffee"),
        ("Eltern", "wohnen in", "Haus"),
        ("das", "sein", "Fahrrad"),
        ("Bauer", "verkaufen", "Pferd"),
        ("Arzt", "helfen", "Mädchen"),
    }
)
"""Subject, verb and complement of each, by their German lemmas."""
