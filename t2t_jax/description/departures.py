"""What matches the paper exactly and what departs from it.

This is the only list; README.md and WORKSPACE.md quote it. Variations within the paper
are not departures; see `t2t_jax.description.table3`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from t2t_jax.config import ARCHITECTURES, Config, flatten, to_dict
from t2t_jax.data.config import DataConfig


class PaperDefault(NamedTuple):
    """A key that departs from the paper if its value is not `faithful`.

    Attributes:
      key: of the configuration; `network.` stands for the section of the architecture.
      faithful: the paper's value, or the usual one if the paper does not mention it.
      here: what other values do; a format string with the value as {0}.
    """

    key: str
    faithful: Any
    name: str
    paper: str
    here: str


PAPER_DEFAULTS = (
    PaperDefault(
        "architecture",
        "transformer",
        "recurrent baseline",
        "attention only (§3); compared with LSTMs (Table 1)",
        "bidirectional LSTM encoder, LSTM decoder, additive attention",
    ),
    PaperDefault(
        "network.norm_position",
        "post",
        "pre-norm",
        "LayerNorm(x + Sublayer(x)) (§3.1)",
        "x + Sublayer(LayerNorm(x)), and one more norm after each stack",
    ),
    PaperDefault(
        "network.attention_dropout",
        0.0,
        "attention dropout",
        "none on attention weights (§5.4)",
        "{0:g}",
    ),
    PaperDefault(
        "network.relu_dropout",
        0.0,
        "ReLU dropout",
        "none inside the feed-forward networks (§5.4)",
        "{0:g}",
    ),
    PaperDefault(
        "network.positions",
        "sinusoidal",
        "scale of learned positions",
        "initialisation and scale unspecified (Table 3 (E))",
        "as tokens are, one table for each stack",
    ),
    PaperDefault(
        "network.tying",
        "all",
        "tying",
        "one matrix for source, target and pre-softmax (§3.4)",
        "model.tying={0}",
    ),
    PaperDefault(
        "network.layer_norm_epsilon",
        1e-6,
        "epsilon of the norms",
        "unspecified; 1e-6 in the authors' code",
        "{0:g}",
    ),
    PaperDefault(
        "network.compute_dtype",
        "auto",
        "precision",
        "unspecified; by default bfloat16 on GPUs and TPUs, float32 on CPUs",
        "activations in {0}; parameters, softmax and norms in float32",
    ),
    PaperDefault(
        "vocabulary.source_size",
        0,
        "separate vocabularies",
        "one of both languages (§5.1)",
        "{0:,} pieces of the source's own",
    ),
    PaperDefault(
        "vocabulary.byte_fallback",
        False,
        "byte fallback",
        "unspecified (§5.1)",
        "characters without a piece are spelt in bytes",
    ),
    PaperDefault(
        "data.max_length_ratio",
        0.0,
        "pairs of unlike length",
        "unspecified",
        "a pair with a side over {0:g} times the other is left out",
    ),
    PaperDefault("data.drop_copies", False, "copies", "unspecified", "left out"),
    PaperDefault(
        "data.drop_duplicates", False, "duplicates", "unspecified", "left out"
    ),
    PaperDefault(
        "training.gradient_dtype",
        "float32",
        "gradients between devices",
        "unspecified (§5.2)",
        "rounded to {0} before they are added up",
    ),
    PaperDefault(
        "training.skip_gradient_norm",
        0.0,
        "large gradients",
        "every step makes its update (§5.3)",
        "no update where the gradient's norm is above {0:g}",
    ),
    PaperDefault(
        "optimizer.warmup_steps", 4000, "warm-up", "4,000 steps (§5.3)", "{0:,}"
    ),
    PaperDefault("optimizer.beta1", 0.9, "Adam's beta1", "0.9 (§5.3)", "{0:g}"),
    PaperDefault("optimizer.beta2", 0.98, "Adam's beta2", "0.98 (§5.3)", "{0:g}"),
    PaperDefault("optimizer.epsilon", 1e-9, "Adam's epsilon", "1e-9 (§5.3)", "{0:g}"),
    PaperDefault("decoding.beam_size", 4, "beam", "4 (§6.1)", "{0}"),
    PaperDefault("decoding.length_penalty", 0.6, "alpha", "0.6 (§6.1)", "{0:g}"),
    PaperDefault(
        "decoding.max_extra_tokens",
        50,
        "longest output",
        "source + 50 (§6.1)",
        "source + {0}",
    ),
    PaperDefault("decoding.min_tokens", 0, "shortest output", "no bound (§6.1)", "{0}"),
    PaperDefault("decoding.sample", False, "search", "beam search (§6.1)", "sampling"),
)
"""By section of the configuration, the architecture first."""


_TOKENS_PER_BATCH = 25_000
_REL_TOL = 0.2  # of the paper's "approximately 25000"


class Departure(NamedTuple):
    """A difference to the paper.

    Attributes:
      key: the configuration key that decides; "" if none does.
    """

    name: str
    paper: str
    here: str
    key: str


class Match(NamedTuple):
    """An exact match with the paper.

    Attributes:
      keys: the configuration keys that change it, as in `PaperDefault`.
    """

    name: str
    paper: str
    keys: tuple[str, ...] = ()


_MATCHES = (
    Match(
        "layers",
        "encoder and decoder stacks of LayerNorm(x + Sublayer(x)) (§3.1)",
        ("architecture", "network.norm_position"),
    ),
    Match(
        "attention",
        "scaled dot-product attention in h heads, equation 1 (§3.2)",
        ("architecture",),
    ),
    Match(
        "feed-forward networks",
        "max(0, x W1 + b1) W2 + b2, equation 2 (§3.3)",
        ("architecture",),
    ),
    Match(
        "embeddings",
        "one matrix for source, target and pre-softmax, times sqrt(d_model) (§3.4)",
        ("architecture", "network.tying", "vocabulary.source_size"),
    ),
    Match(
        "positions",
        "sinusoids (§3.5), or learned (Table 3 (E))",
        ("architecture", "network.positions"),
    ),
    Match(
        "dropout",
        "on sub-layer outputs and on embeddings plus positions (§5.4)",
        ("architecture", "network.attention_dropout", "network.relu_dropout"),
    ),
    Match("loss", "cross-entropy with label smoothing (§5.4)"),
    Match(
        "batch size",
        "about 25,000 source and 25,000 target tokens (§5.1)",
        ("data.tokens_per_batch",),
    ),
    Match(
        "optimizer",
        "Adam with beta1 = 0.9, beta2 = 0.98 and epsilon = 1e-9 (§5.3)",
        (
            *("optimizer.beta1", "optimizer.beta2", "optimizer.epsilon"),
            *("training.gradient_dtype", "training.skip_gradient_norm"),
        ),
    ),
    Match(
        "learning rate",
        "equation 3 with 4,000 warm-up steps (§5.3)",
        ("optimizer.warmup_steps", "optimizer.peak_learning_rate"),
    ),
    Match(
        "beam search",
        "beam 4, alpha 0.6, at most 50 tokens more than the source (§6.1)",
        (
            *("decoding.beam_size", "decoding.length_penalty", "decoding.sample"),
            *("decoding.max_extra_tokens", "decoding.min_tokens"),
        ),
    ),
    Match(
        "checkpoint averaging",
        "the last 5, or 20 of big models, written every 10 minutes (§6.1)",
        (
            *("checkpoint.every_steps", "checkpoint.every_minutes"),
            *("checkpoint.every_epochs", "checkpoint.keep"),
        ),
    ),
)

_PACKED = Departure(
    "packed rows",
    "pairs batched by approximate length (§5.1)",
    "several pairs share a row, kept apart by segments and positions; "
    "data.layout=length_buckets batches by length",
    "",
)

_ALWAYS = (
    Departure(
        "dropout masks",
        "unspecified (§5.4)",
        "a hash of step, site, row and position: the same on any number of devices",
        "",
    ),
    Departure(
        "vocabulary",
        "byte-pair encoding (En-De), word pieces (En-Fr) (§5.1)",
        "SentencePiece's BPE on raw text, of a sample of large corpora",
        "",
    ),
    Departure(
        "scores",
        "tokenised, compound-split BLEU (Table 2)",
        "sacreBLEU on raw text, with its signature",
        "",
    ),
    Departure("pad and bos", "not mentioned (§6.1)", "never generated", ""),
)


def matches(config: Config) -> list[Match]:
    """Lists what the configuration does exactly as the paper.

    Example:
      >>> [match.name for match in matches(Config())]
      ['layers', 'attention', 'feed-forward networks', ..., 'checkpoint averaging']
    """
    changed = {departure.key for departure in departures(config)}
    section = ARCHITECTURES[config.architecture]
    return [
        match
        for match in _MATCHES
        if not changed & {key.replace("network", section) for key in match.keys}
    ]


def departures(config: Config) -> list[Departure]:
    """Lists all differences to the paper: fixed ones, then those of the configuration.

    Example:
      >>> [departure.name for departure in departures(Config())]
      ['packed rows', 'dropout masks', 'vocabulary', ..., 'longest sentence']
    """
    fixed = [_PACKED, *_ALWAYS] if config.data.layout == "packed" else [*_ALWAYS]
    return [*fixed, _lengths(config), *_from_defaults(config), *_derived(config)]


def _lengths(config: Config) -> Departure:
    return Departure(
        "longest sentence",
        "unspecified",
        f"pairs with a side over {config.data.max_length:,} subwords are left out of "
        f"training; sources over {config.decoding.max_source_length:,} are split",
        # There is always a bound; only another than the default is a default.
        "" if config.data.max_length == DataConfig.max_length else "data.max_length",
    )


def _from_defaults(config: Config) -> Iterator[Departure]:
    values = dict(flatten(to_dict(config)))
    section = ARCHITECTURES[config.architecture]
    for default in PAPER_DEFAULTS:
        key = default.key.replace("network", section)
        # The recurrent baseline lacks some keys of the Transformer.
        value = values.get(key, default.faithful)
        if value != default.faithful:
            here = default.here.format(value).replace("model.", f"{section}.")
            yield Departure(default.name, default.paper, here, key)


def _derived(config: Config) -> Iterator[Departure]:
    """Yields departures that need more than a comparison with one value."""
    tokens = config.data.tokens_per_batch
    if not math.isclose(tokens, _TOKENS_PER_BATCH, rel_tol=_REL_TOL):
        yield Departure(
            "batch size",
            f"about {_TOKENS_PER_BATCH:,} tokens a side (§5.1)",
            f"{tokens:,} slots a side",
            "data.tokens_per_batch",
        )
    optimizer, peak = config.optimizer, config.optimizer.peak_learning_rate
    equation = (config.network.d_model * optimizer.warmup_steps) ** -0.5
    if peak and not math.isclose(peak, equation, rel_tol=1e-3):
        yield Departure(
            "peak learning rate",
            f"(d_model * warmup_steps)^-0.5 = {equation:.3e} (§5.3, equation 3)",
            f"{peak:.3e}",
            "optimizer.peak_learning_rate",
        )
    yield from _checkpoints(config)


def _checkpoints(config: Config) -> Iterator[Departure]:
    """Yields departures in the spacing and number of averaged checkpoints."""
    every, spacing = config.checkpoint, []
    if every.every_steps:
        spacing.append(("every_steps", f"{every.every_steps:,} steps"))
    if every.every_epochs:
        spacing.append(("every_epochs", f"{every.every_epochs} epoch(s)"))
    if every.every_minutes not in (0, 10) or (every.every_minutes and spacing):
        spacing.append(("every_minutes", f"{every.every_minutes:g} minutes"))
    if not spacing and not every.every_minutes:
        spacing.append(("every_minutes", "none but the best and the last"))
    if spacing:
        yield Departure(
            "spacing of checkpoints",
            "10 minutes (§6.1)",
            " and ".join(text for _, text in spacing),
            f"checkpoint.{spacing[0][0]}",
        )
    if every.keep not in (5, 20):
        yield Departure(
            "checkpoints averaged",
            "the last 5, of big models the last 20 (§6.1)",
            f"{every.keep}",
            "checkpoint.keep",
        )
