"""The configuration of an imported model, and what it computes."""

import dataclasses

import jax
import numpy as np

from t2t_jax.config import default, parse
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.model.architectures import make_module, step_model
from t2t_jax.run.inference.model import TranslationModel


def config_of(imported):
    config = default()
    for key, value in imported.config.items():
        section, name = key.split(".")
        config[section][name] = value
    return parse(config)


def as_search(**settings):
    """Returns settings by key, as an importer gives them."""
    return {f"decoding.{name}": value for name, value in settings.items()}


def as_model(imported, decoding):
    """Returns an imported model, to search with in float32."""
    network = dataclasses.replace(config_of(imported).network, compute_dtype="float32")
    return TranslationModel(
        module=make_module(network),
        params=jax.tree.map(jax.numpy.asarray, imported.params),
        vocabularies=imported.vocabularies,
        decoding=decoding,
        step=0,
    )


def logits_of(imported, sources, inputs):
    """Returns logits [B, T, V] of rows of our ids, however long each row is."""
    apply = jax.jit(make_module(config_of(imported).network).apply)
    with jax.default_matmul_precision("highest"):
        found = apply({"params": imported.params}, _padded(sources), _padded(inputs))
    return np.asarray(found)


def _padded(rows):
    longest = max(map(len, rows))
    return np.array([[*row, *[0] * (longest - len(row))] for row in rows])


def without_mean(matrix, mean):
    """Leaves out what all outputs share, for one token would always win."""
    found = matrix - np.outer(matrix @ mean / (mean @ mean), mean)
    return found.astype(np.float32)


def greedy_translator(imported, extra):
    """Translates by greedy search, into so many tokens more than the source has."""
    config = config_of(imported)
    decoding = dataclasses.replace(
        config.decoding, beam_size=1, length_penalty=0.0, max_extra_tokens=extra
    )
    model = step_model(make_module(config.network), imported.params)
    return Translator(model, imported.vocabularies, decoding)
