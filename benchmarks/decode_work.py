"""What contestants in decoding are given alike, and how they may go about it.

Nothing that imports JAX or PyTorch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from contest import Work

from t2t_jax.devices.processor import resolve_compute_dtype


@dataclass(frozen=True, kw_only=True)
class DecodeWork(Work):
    """What every contestant decodes.

    Attributes:
      beam_size: hypotheses alive per sentence.
      length_penalty: alpha, by each contestant's own formula.
      cuts: numbers of sentences that may be computed at once, to choose from.
      workdir: a trained run or model; "" for random weights.
      weights: the directory with the weights in a peer's own format.
      lines: what it translates.
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    cuts: tuple[int, ...] = (64,)
    workdir: str = ""
    weights: str = ""
    lines: Sequence[str] = field(default=(), repr=False)

    @property
    def dtype(self) -> str:
        """What activations are computed in, "float32" or "bfloat16"."""
        return resolve_compute_dtype(self.config.compute_dtype, self.device)

    @property
    def search_dtype(self) -> str:
        """What our own search computes in: `decoding.compute_dtype`."""
        return "bfloat16" if self.network.endswith("_bfloat16") else "auto"


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a contestant may go about a number of sentences.

    Attributes:
      at_once: sentences of one computation.
      workers: computations side by side, which share the threads.
      dtype: of the activations; "" where there is no choice.
    """

    at_once: int
    workers: int = 1
    dtype: str = ""

    def __str__(self) -> str:
        return f"{self.at_once} x {self.workers} {self.dtype}".rstrip()


class MadeUpWords:
    """Stands in for a vocabulary where nobody has learnt one.

    Args:
      size: how many words, the special ones included.
    """

    def __init__(self, size: int):
        self.size = size

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Spells the words with these numbers.

        Example:
          >>> MadeUpWords(9).pieces([2, 7])
          ['</s>', 'w7']
        """
        special = ("<pad>", "<s>", "</s>", "<unk>")
        return [special[n] if n < len(special) else f"w{n}" for n in ids]

    def save(self, directory: str) -> None:
        """Writes nothing: no text is to be cut into these words."""
