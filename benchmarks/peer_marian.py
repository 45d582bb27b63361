"""Training with Marian, as contestants; needs `pymarian`, of the extra `bench`.

Its model has our sizes, places of dropout, label smoothing and Adam; besides it has
biases in its projections and in the logits. It computes in float32. The wheel has MKL
with one thread a call, so each thread has a network of its own and takes its share of
every batch (`--cpu-threads`, `--sync-sgd`).
"""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from contest import Work
from marian_files import training_ids, write_lines, write_vocabulary
from marian_process import MarianTraining
from step_figures import versions

from t2t_jax.data.token_cache.token_cache import TokenSide
from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.model.counting import count_parameters
from t2t_jax.types import EOS

_BATCHES = 100  # of made-up text, before it is read again

_TRAINING_OPTIONS = (
    "--learn-rate=1e-4",
    "--clip-norm=0",  # which would cost a pass over the gradients
    "--sync-sgd",
    "--shuffle-in-ram",
    "--max-length=10000",  # no pair is left out: ours are no longer than our rows
)


class PeerStep:
    """Training on made-up sentences, all of one length."""

    def __init__(self, work: Work):
        chance = np.random.default_rng(0)
        shape = (_BATCHES * work.rows, work.length - 1)  # an eos follows
        sides = [
            chance.integers(EOS + 2, work.config.vocab_size, shape).tolist()
            for _ in range(2)
        ]
        self._tokens = work.target_tokens
        self._trainer = _Trainer(
            work, sides, [f"--mini-batch={work.rows}", f"--maxi-batch={_BATCHES}"]
        )
        self.facts = self._trainer.facts
        self.peak_megabytes = self._trainer.training.peak_megabytes

    def seconds(self, steps: int) -> float:
        """Times so many steps.

        Raises:
          ValueError: they had other batches than were asked for.
        """
        seconds, tokens = self._trainer.training.train(updates=steps)
        if tokens != steps * self._tokens:
            raise ValueError(
                f"{steps} steps must have {steps * self._tokens} target tokens, and "
                f"Marian's had {tokens}."
            )
        return seconds


class PeerLoop:
    """Training on real text: subwords of our cache, in batches that Marian makes.

    A batch ends with the sentence with which its source tokens are more than our slots
    of a side; pairs of like length are sought among 64,000.
    """

    def __init__(self, work: Work):
        cache, data = work.text.open(), work.text.data
        self._trainer = _Trainer(
            work,
            [_sentences(cache.source), _sentences(cache.target)],
            [f"--mini-batch-words={data.tokens_per_batch}", "--maxi-batch=1000"],
        )
        self.peak_megabytes = self._trainer.training.peak_megabytes

    def train_for(self, seconds: float) -> tuple[float, int]:
        """Trains for a while, from where it stopped.

        Args:
          seconds: after which no step is begun.

        Returns:
          The seconds that it took, and the real target tokens of its steps.
        """
        return self._trainer.training.train(seconds=seconds)

    def facts(self) -> dict[str, Any]:
        """Tells what does not change from round to round, and the steps made."""
        return {**self._trainer.facts(), "steps": self._trainer.training.made}


class _Trainer:
    """Marian on a text of ids, and the files that it reads."""

    def __init__(self, work: Work, sides: list[Any], batches: list[str]):
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        texts = [folder / "source", folder / "target"]
        for path, sentences in zip(texts, sides, strict=True):
            write_lines(path, sentences)
        vocabulary = folder / "vocabulary.yml"
        write_vocabulary(vocabulary, training_ids(work.config.vocab_size))
        self.training = MarianTraining(
            [
                *_TRAINING_OPTIONS,
                *model_options(work.config),
                f"--label-smoothing={work.training.label_smoothing}",
                *("--optimizer-params", "0.9", "0.98", "1e-9"),
                f"--cpu-threads={work.threads}",
                *("--train-sets", *map(str, texts)),
                *("--vocabs", str(vocabulary), str(vocabulary)),
                f"--model={folder / 'model.npz'}",
                *batches,
            ]
        )
        self._parameters = parameters(work.config)

    def facts(self) -> dict[str, Any]:
        return {
            "parameters": self._parameters,
            "dtype": "float32",
            "device": "cpu",
            "versions": versions(["pymarian"]),
            "own_words_per_second": statistics.median(self.training.rates),
        }


def model_options(config: TransformerConfig) -> list[str]:
    """Returns the flags of a model as large as ours, post-norm with one tied matrix.

    Example:
      >>> model_options(TransformerConfig())[:3]
      ['--type=transformer', '--tied-embeddings-all', '--enc-depth=6']
    """
    return [
        "--type=transformer",
        "--tied-embeddings-all",
        f"--enc-depth={config.num_layers}",
        f"--dec-depth={decoder_layers(config)}",
        f"--dim-emb={config.d_model}",
        f"--transformer-dim-ffn={config.d_ff}",
        f"--transformer-heads={config.num_heads}",
        f"--transformer-ffn-activation={config.activation}",
        f"--transformer-dropout={config.dropout}",
    ]


def parameters(config: TransformerConfig) -> int:
    """Counts the parameters of that model, which has more biases than ours.

    Example:
      >>> parameters(TransformerConfig()) - count_parameters(TransformerConfig()).total
      73864
    """
    biased = dataclasses.replace(config, attention_biases=True, output_bias=True)
    return count_parameters(biased).total


def _sentences(side: TokenSide) -> list[list[int]]:
    """Returns the sentences of one language of a corpus, without eos."""
    ends = side.offsets[1:].tolist()
    starts = side.offsets[:-1].tolist()
    return [
        side.tokens[start : end - 1].tolist()
        for start, end in zip(starts, ends, strict=True)
    ]
