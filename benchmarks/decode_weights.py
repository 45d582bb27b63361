"""The weights that all contestants decode with, in the formats of peers.

They are converted in a process of their own, so that a peer's has no JAX in it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
from decode_work import DecodeWork, MadeUpWords
from marian_files import write_vocabulary

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.inference.load import load
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import BOS, EOS, PAD, UNK, Params

_NO_PROBABILITY = -200.0  # as a bias of a logit: its exponential is 0 in float32


class Converter:
    """The weights of a trained model, or random ones, as a contestant."""

    def __init__(self, work: DecodeWork):
        self._model_config = work.config
        self._trained = bool(work.workdir)
        if self._trained:
            run = Workdir(Path(work.workdir))
            self._config = run.read_config()
            self._vocabularies = run.read_vocabularies(self._config.vocabulary)
            self._params = load(work.workdir).params
        else:
            self._config = dataclasses.replace(Config(), model=work.config)
            words: Any = MadeUpWords(work.config.vocab_size)
            self._vocabularies = VocabularyPair(words, words)
            self._params = random_params(work.config)

    def hf_marian(self, directory: str) -> None:
        """Writes a MarianMTModel."""
        from marian_weights import marian_with

        network: Any = marian_with(self._model_config, self._params)
        network.save_pretrained(directory)

    def marian(self, directory: str) -> None:
        """Writes a model of Marian, with tables of ids as words.

        A trained model generates neither pad nor bos. Random weights, of which lengths
        are to be forced, never end a sentence either; their positions are Marian's, of
        other wavelengths than the paper's.

        Raises:
          UserError: Marian has no model like the trained one.
        """
        from t2t_jax.exchange.exporting.marian import (
            MarianFormat,
            marian_tensors,
            write_npz,
        )

        to = Path(directory)
        if self._trained:
            MarianFormat().check_supported(self._config)
        to.mkdir()
        ids = [[EOS, UNK, *range(UNK + 1, side.size)] for side in self._vocabularies]
        for name, of_side in zip(("source", "target"), ids, strict=True):
            write_vocabulary(to / f"{name}.yml", of_side)
        tensors = marian_tensors(self._params, self._config.model, ids=ids)
        never = (PAD, BOS) if self._trained else (PAD, BOS, EOS)
        columns = [number for number, id_ in enumerate(ids[1]) if id_ in never]
        tensors["decoder_ff_logit_out_b"][:, columns] = _NO_PROBABILITY
        write_npz(to / "model.npz", tensors)

    def ctranslate2(self, directory: str) -> None:
        """Writes a model of CTranslate2, in float32."""
        from t2t_jax.exchange.exporting.base import ExportSpec, Original
        from t2t_jax.exchange.exporting.ctranslate2 import write_ctranslate2

        model = TranslationModel(
            make_module(self._config.network),
            self._params,
            self._vocabularies,
            self._config.decoding,
            step=0,
        )
        original = Original(model, self._config, origin={})
        write_ctranslate2(Path(directory), original, ExportSpec("ctranslate2"))


def random_params(config: TransformerConfig) -> Params:
    """Draws weights, the same ones every time.

    Args:
      config: of the model.
    """
    module = make_module(config)
    token = jax.numpy.ones((1, 1), jax.numpy.int32)
    params: Params = jax.jit(module.init)(jax.random.key(0), token, token)["params"]
    return params
