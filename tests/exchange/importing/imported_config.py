"""The configuration of an imported model."""

import dataclasses

from t2t_jax.config import default, parse
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.model.architectures import make_module, step_model


def config_of(imported):
    config = default()
    for key, value in imported.config.items():
        section, name = key.split(".")
        config[section][name] = value
    return parse(config)


def greedy_translator(imported, extra):
    """Translates by greedy search, into so many tokens more than the source has."""
    config = config_of(imported)
    decoding = dataclasses.replace(
        config.decoding, beam_size=1, length_penalty=0.0, max_extra_tokens=extra
    )
    model = step_model(make_module(config.network), imported.params)
    return Translator(model, imported.vocabularies, decoding)
