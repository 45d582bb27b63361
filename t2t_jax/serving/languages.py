"""Served language pairs: their models, names, and the language of a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from t2t_jax.data.token_cache.known_words import words_of
from t2t_jax.errors import UserError
from t2t_jax.run.text import name_of_language

if TYPE_CHECKING:
    from t2t_jax.run.inference.model import TranslationModel

AUTO = "auto"
"""The source language of a request whose language is to be detected."""

# The commonest words of a language that are rare in the others.
_COMMON_WORDS = {
    "cs": "se na je že to jsem pro jako ale jsou není byl když",
    "da": "og det er ikke jeg der til som på de har med han",
    "de": "der die das und ist nicht ich ein eine sie es wir mit auf dem den zu sind",
    "en": "the of and to is in that it you was for are with he they this have not",
    "es": "el la de que y en los se no un una por con las es para del",
    "fi": "ja on ei se että hän oli mutta ovat kun niin minä",
    "fr": "le la les de et est un une des que pas dans il qui vous je pour sur",
    "it": "il di che la è un una non per sono con del le gli ho ma",
    "nl": "de het een van en is dat niet ik je zijn op te met voor hij",
    "pl": "się nie to na że jest do jak ale czy co był",
    "pt": "o que de não um uma para com os é do da em por eu mais",
    "ro": "și în nu este pe că cu un o mai sunt din pentru",
    "ru": "не на что он как это по но они мы так было их",
    "sv": "och det är inte jag att en som på har med för den han",
    "uk": "не на що він як це але ми та ви був його від",
}
_CONFIDENT_WORDS = 3


class Languages:
    """The models of a server by their pair of languages; one may have several.

    Attributes:
      codes: of all languages, those of sources first.
      targets: codes of the languages that a source is translated into, by its code.
      sources: codes of the languages that are translated into a target, by its code.

    Raises:
      UserError: there is none, or a model with tags has none of a language.
    """

    def __init__(self, models: Mapping[tuple[str, str], TranslationModel]):
        if not models:
            raise UserError("A server needs at least one model. Pass one.")
        self.models = dict(models)
        # A model of 202 languages has 40,602 pairs, which no request may go through.
        self.targets: dict[str, list[str]] = {}
        self.sources: dict[str, list[str]] = {}
        readers: dict[int, tuple[TranslationModel, set[str]]] = {}
        for (source, target), model in self.models.items():
            model.vocabularies.source.split_tags([], **self.arguments((source, target)))
            self.targets.setdefault(source, []).append(target)
            self.sources.setdefault(target, []).append(source)
            readers.setdefault(id(model), (model, set()))[1].add(source)
        self.codes = tuple(dict.fromkeys([*self.targets, *self.sources]))
        # What a model of several source languages knows tells nothing of one.
        self._of_one: defaultdict[str, list[TranslationModel]] = defaultdict(list)
        for model, read in readers.values():
            if len(read) == 1:
                self._of_one[min(read)].append(model)

    def arguments(self, pair: tuple[str, str]) -> dict[str, Any]:
        """Returns the languages of a pair as its model's `translate` takes them."""
        vocabulary = self.models[pair].vocabularies.source
        return {
            "source_language": pair[0] if vocabulary.reads_source else None,
            "target_language": pair[1] if vocabulary.tags else None,
        }

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterates over all languages, sources first: code, name and targets."""
        for code in self.codes:
            name, targets = name_of_language(code), self.targets.get(code, [])
            yield {"code": code, "name": name, "targets": targets}

    def detect(self, text: str, *, among: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Estimates the language of a text, among the served ones.

        Compares its words with the commonest words of each language, and with those of
        the training text where the model has them.

        Args:
          among: codes to choose from; () for all.

        Returns:
          `confidence`, from 0 to 100, and `language` of each code, the best first.
        """
        words = words_of(text)
        scores = {code: self._score(code, words, text) for code in among or self.codes}
        total = sum(scores.values()) or 1.0
        # A few words prove little.
        most = 100 * min(1.0, len(words) / _CONFIDENT_WORDS)
        shares = {code: round(most * scores[code] / total, 1) for code in scores}
        found = [{"confidence": shares[code], "language": code} for code in shares]
        return sorted(found, key=lambda one: -one["confidence"])

    def _score(self, code: str, words: list[str], text: str) -> float:
        if not words:
            return 0.0
        common = {*_COMMON_WORDS.get(code, "").split()}
        score = sum(word in common for word in words) / len(words)
        owns = (one.known_words for one in self._of_one.get(code, ()))
        if known := next(filter(None, owns), None):
            score += (1 - (known.unseen_shares([text])[0] or 0.0)) ** 2
        return score
