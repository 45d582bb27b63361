"""`--mode=shortlist`: makes the lexical shortlist of a model from its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from random import Random

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.text_io import open_output
from t2t_jax.cli.evaluation.corpus import open_text
from t2t_jax.cli.flags.options import ShortlistOptions
from t2t_jax.data.batching import modifiers
from t2t_jax.decoding.shortlist import Pair, learn_shortlist

_WINDOW, _LONGEST = 4_096, 4_096  # pairs; characters of a side that is modified


def run(options: ShortlistOptions) -> None:
    """Writes the shortlist to `options.to`.

    Raises:
      UserError: the workdir, its text or a flag is invalid.
    """
    config, corpus = options.config, open_text(options, split="train")
    vocabularies = options.workdir.read_vocabularies(config.vocabulary)
    every = max(1, -(-corpus.num_pairs() // options.pairs))
    some = islice(corpus, 0, None, every)
    text = _with_modified(some, config.data.modifier_rates, seed=config.seed)

    def pairs() -> Iterator[Pair]:
        while window := [*islice(text, _WINDOW)]:
            lines, targets = zip(*window, strict=True)
            sources = vocabularies.source.encode_sources(lines, target_language="")
            yield from zip(sources, vocabularies.target.encode(targets), strict=True)

    files = filter(None, (options.source, options.reference))
    with open_output(options.to, flag="to", inputs=files) as out:
        found = learn_shortlist(
            (pair for pair in pairs() if max(map(len, pair)) < config.data.max_length),
            vocabularies,
            best=options.best,
            frequent=options.frequent,
        )
        out.write(found.to_bytes(vocabularies))
    covered = (found.best_VxK[:, 0] > 0).mean()
    log(
        f"Wrote {options.to}: up to {options.best} target pieces for each of "
        f"{covered:.0%} of the source pieces, and {len(found.always_A):,} for every "
        f"sentence. Use it with --config.decoding.shortlist={options.to}."
    )


def _with_modified(
    text: Iterable[modifiers.Pair], rates: Mapping[str, float], *, seed: int
) -> Iterator[modifiers.Pair]:
    """Yields pairs, and some of them once more, modified about as in training.

    Args:
      rates: name of a modifier -> share of the pairs. `words` gives no new words.
    """
    rng = Random(seed)
    for pair in text:
        yield pair
        names = [one for one in rates if one != "words" and rng.random() < rates[one]]
        if names and max(map(len, pair)) <= _LONGEST:
            yield modifiers.modify(names, *pair, rng)
