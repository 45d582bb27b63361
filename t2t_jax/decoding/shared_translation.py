"""Translating with the parameters of a run, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.translator import Translator
from t2t_jax.parallelism.distributed import ALONE, Processes
from t2t_jax.parallelism.gathering import (
    GivenUp,
    on_local_devices,
    translate_together,
)
from t2t_jax.types import Params, StepModel

if TYPE_CHECKING:
    from t2t_jax.data.vocabularies import Vocabularies

Translate: TypeAlias = Callable[[Params, Sequence[str]], list[str]]
"""(params, lines) -> as many lines, in the same order."""


def make_translate(
    make_model: Callable[[Params], StepModel],
    *,
    vocabularies: Vocabularies,
    config: DecodingConfig,
    processes: Processes = ALONE,
    is_given_up: Callable[[], bool] = lambda: False,
) -> Translate:
    """Makes what translates with the parameters of a run, wherever they lie.

    Args:
      make_model: binds parameters to the model that they are of.
      vocabularies: turn text into subwords and back.
      config: how to search.
      processes: all that hold the parameters. Each translates a share of the lines on
        its own devices, so all must call what is returned, with the same lines.
      is_given_up: asked after each line whether to break off.

    Returns:
      A function that gives every process all translations, or raises `GivenUp` on all.
    """

    def translate(params: Params, lines: Sequence[str]) -> list[str]:
        model = make_model(on_local_devices(params))
        translator = Translator(model, vocabularies, config)

        def translate_share(share: list[str], first: int) -> list[str]:
            found = {}
            for number, translation in translator.iterate(share, first=first):
                found[number] = translation.text
                if is_given_up():
                    raise GivenUp
            return [found[number] for number in range(len(share))]

        return translate_together(translate_share, lines, processes)

    return translate
