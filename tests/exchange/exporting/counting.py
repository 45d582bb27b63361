"""Text so small that a model learns it at once, and of which all lines are alike."""

import random

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.run.inference.model_dir import save_model_dir
from tests.model.tiny import tiny_params

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}


def write_text(place):
    """Writes 400 pairs, `a.en` and `a.de`, and returns their corpus."""
    chance = random.Random(0)
    pairs = [chance.choices(list(WORDS.items()), k=1 + n % 4) for n in range(400)]
    for name, side in (("en", 0), ("de", 1)):
        text = (" ".join(word[side] for word in pair) + "\n" for pair in pairs)
        (place / f"a.{name}").write_text("".join(text), encoding="utf-8")
    return f"text:{place / 'a.en'},{place / 'a.de'}"


def write_model(to, config, *, corpus, **origin):
    """Writes the directory of a model that was never trained."""
    vocabularies = VocabularyPair.load_or_train(
        open_corpus(corpus), config=config.vocabulary, seed=0, log=print
    )
    save_model_dir(
        to,
        tiny_params(config.model),
        vocabularies=vocabularies,
        config=config,
        origin={"step": 200, "kinds": ["final"], **origin},
    )
    return to
