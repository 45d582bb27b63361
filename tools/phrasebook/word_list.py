"""Lists the words of the phrasebook, for trying its model.

python tools/phrasebook/word_list.py
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable

from grammar import determiners, lexicon
from grammar.content import deeds, people, times, whereabouts
from grammar.lexicon import NounClass, Verb

SENTENCES = (
    "statements, denials and questions (also with who, what, where, when, why, how), "
    "in the present, the past and the future, with can, must, want to, should, have "
    "to and would like to; is, are, was and were with an adjective, a place or a noun; "
    "there is; this is; orders; and after that, whether, because, although, if, as "
    "soon as, who and in order to"
)


def words() -> dict[str, tuple[str, ...]]:
    """Returns the English words of the grammar by kind, in alphabetical order."""
    classes = [c for c in vars(lexicon).values() if isinstance(c, NounClass)]
    others = [*people.PRONOUNS, people.IT, *people.NAMES]
    before = (d.english for c in classes for d in c.determiners[0] if d.english)
    return {
        "nouns": _sorted(n.english for c in classes for n in c.nouns),
        "adjectives": _sorted(a.english for c in classes for a in c.all_adjectives),
        "verbs": _sorted(
            verb.name
            for value in (*vars(deeds).values(), *vars(whereabouts).values())
            if isinstance(value, tuple)
            for verb in ((value,) if isinstance(value, Verb) else value)
            if isinstance(verb, Verb)
        ),
        "names and pronouns": _sorted(n.lemma for n in others),
        "before nouns": _sorted(before, *(d.english for d in determiners.WHICH)),
        "times": _sorted(anchor.english for anchor in times.TIMES if anchor.english),
        "languages, games, towns and others": _sorted(
            english
            for verb in (*deeds.ACTING, *deeds.FEELING)
            for english, _ in verb.phrases
            if english
        ),
    }


def _sorted(found: Iterable[str], *more: str) -> tuple[str, ...]:
    return tuple(sorted({*found, *more}, key=str.casefold))


def main() -> int:
    """Prints the words, and what kinds of sentences there are."""
    for kind, found in {"sentences": (SENTENCES,), **words()}.items():
        count = f" ({len(found)})" if kind != "sentences" else ""
        text = f"{kind}{count}: {', '.join(found)}"
        print(textwrap.fill(text, 80, subsequent_indent="  ", break_on_hyphens=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
