"""Text so small that a model learns it at once, and of which all lines are alike."""

import functools
import random

from t2t_jax.config import Config
from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.exchange.exporting.base import ExportSpec, Original
from t2t_jax.model.architectures import make_module
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.inference.model_dir import save_model_dir
from tests.model.tiny import tiny_params

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
SIZE = 44


@functools.cache
def vocabulary():
    return Vocabulary.train([" ".join(pair) for pair in WORDS.items()] * 9, SIZE)


def original(network, *, vocabularies=None, params=None, decoding=None, **more):
    """What is exported of a model with drawn parameters."""
    decoding = decoding or DecodingConfig()
    sizes = {"size": network.vocab_size, "source_size": network.source_vocab_size}
    model = TranslationModel(
        module=make_module(network),
        params=tiny_params(network) if params is None else params,
        vocabularies=vocabularies or VocabularyPair(vocabulary(), vocabulary()),
        decoding=decoding,
        step=7,
    )
    vocabulary_config = VocabularyConfig(**sizes)
    config = Config(vocabulary=vocabulary_config, model=network, decoding=decoding)
    return Original(model, config, {"step": 7, "examples": ["one two"]}, **more)


def write_export(to, form, one):
    """Writes what a format makes of a model that it supports."""
    to.mkdir(exist_ok=True)
    form.check_supported(one.config)
    form.write(to, one, ExportSpec("any"))


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
    params = tiny_params(config.model)
    model = TranslationModel(None, params, vocabularies, config.decoding, step=200)
    origin = {"step": 200, "kinds": ["final"], **origin}
    save_model_dir(to, model, config=config, origin=origin)
    return to
