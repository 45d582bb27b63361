"""Translates on all processes of a run with its sharded parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.devices.distributed.gather import (
    Cancelled,
    gather_to_local_devices,
    map_lines_across_processes,
)
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.types import Params, StepModel

if TYPE_CHECKING:
    from t2t_jax.data.vocabulary.pair import VocabularyPair

# Processes exchange strings: whether an output has ended precedes its text.
_ENDED, _UNFINISHED = "+", "-"


class Output(NamedTuple):
    """The translation of one line.

    Attributes:
      text: the translation.
      ended: whether it ended before its length limit.
    """

    text: str
    ended: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translate:
    """Translates with the given parameters, sharded, on all processes.

    Lines are translated as they are, whatever `config.segment` is: the scores of their
    translations are compared with those of other checkpoints.

    Attributes:
      make_model: binds parameters to their model.
      processes: all that hold the parameters. Each translates a share of the lines on
        its own devices, so all must call it, with the same lines.
      is_cancelled: polled after each line.
    """

    make_model: Callable[[Params], StepModel]
    vocabularies: VocabularyPair
    config: DecodingConfig
    processes: Processes = SINGLE_PROCESS
    is_cancelled: Callable[[], bool] = lambda: False

    def __call__(
        self,
        params: Params,
        lines: Sequence[str],
        *,
        first: int = 0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> list[Output]:
        """Returns one output for each line, in the same order, on every process.

        Collective: call on every process, with the same lines.

        Args:
          params: on the devices of the run.
          lines: any text without line ends, with a tag or as they are.
          first: number of lines before these in the complete text.
          progress: called after each line with the number of lines this process has
            translated, and the number it translates in all.

        Raises:
          Cancelled: on all processes.
        """
        model = self.make_model(gather_to_local_devices(params))
        config = dataclasses.replace(self.config, segment="lines")
        translator = Translator(model, self.vocabularies, config)

        def translate_share(share: list[str], before: int) -> list[str]:
            found = {}
            for number, translation in translator.iter_translations(
                share, first=first + before, target_language=""
            ):
                mark = _UNFINISHED if translation.truncated else _ENDED
                found[number] = mark + translation.text
                progress(len(found), len(share))
                if self.is_cancelled():
                    raise Cancelled
            return [found[number] for number in range(len(share))]

        marked = map_lines_across_processes(translate_share, lines, self.processes)
        return [Output(text[1:], text[0] == _ENDED) for text in marked]
