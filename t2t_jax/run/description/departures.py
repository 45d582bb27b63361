"""What matches the paper exactly and what departs from it.

This is the only list, with the keys of `paper_defaults`; docs/explanation/departures.md
is written from it. Variations within the paper are not departures; see `table3_rows`.
What trains on trees is compared with the parser of §6.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from t2t_jax.config import ARCHITECTURES, Config, flatten, to_dict
from t2t_jax.data.config import DataConfig
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.run.description.paper_defaults import WORDS, paper_defaults
from t2t_jax.run.description.parsing import SETTINGS, is_parser

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


def _matches(*texts: str) -> dict[str, Match]:
    parts = (text.split(" | ") for text in texts)
    return {name: Match(name, paper, (*keys.split(),)) for name, paper, keys in parts}


_SEARCH = """decoding.beam_size decoding.length_penalty decoding.sample
  decoding.max_extra_tokens decoding.min_tokens decoding.length_normalization
  decoding.beam_rule decoding.max_length_ratio decoding.allow_unk decoding.constraint
  decoding.mbr decoding.shortlist"""

# name | how the paper has it | the keys that change it
_MATCHES = _matches(
    "layers | encoder and decoder stacks of LayerNorm(x + Sublayer(x)) (§3.1) | "
    "architecture network.norm network.norm_position network.num_decoder_layers",
    "attention | scaled dot-product attention in h heads, equation 1 (§3.2) | "
    "architecture network.attention_biases",
    "feed-forward networks | max(0, x W1 + b1) W2 + b2, equation 2 (§3.3) | "
    "architecture network.activation",
    "embeddings | one matrix for source, target and pre-softmax, times sqrt(d_model) "
    "(§3.4) | architecture network.tying vocabulary.source_size "
    "network.scale_embeddings network.output_bias",
    "positions | sinusoids (§3.5), or learned (Table 3 (E)) | architecture "
    "network.positions network.position_rates",
    "dropout | on sub-layer outputs and on embeddings plus positions (§5.4) | "
    "architecture network.attention_dropout network.relu_dropout",
    "loss | cross-entropy with label smoothing (§5.4) | training.simcut "
    "training.r_drop",
    "batch size | about 25,000 source and 25,000 target tokens (§5.1) | "
    "data.tokens_per_batch",
    "optimizer | Adam with beta1 = 0.9, beta2 = 0.98 and epsilon = 1e-9 (§5.3) | "
    "optimizer.name optimizer.beta1 optimizer.beta2 optimizer.epsilon "
    "training.gradient_dtype training.skip_gradient_norm",
    "learning rate | equation 3 with 4,000 warm-up steps (§5.3) | optimizer.name "
    "optimizer.schedule optimizer.warmup_steps optimizer.peak_learning_rate",
    "beam search | beam 4, alpha 0.6, at most 50 tokens more than the source (§6.1) | "
    f"{_SEARCH}",
    "checkpoint averaging | the last 5, or 20 of big models, written every 10 minutes "
    "(§6.1) | checkpoint.every_steps checkpoint.every_minutes checkpoint.every_epochs "
    "checkpoint.keep training.ema_decay",
)

# Of parsers, in place of those of the same name and beside the others.
_PARSING_MATCHES = _matches(
    "model | 4 layers with d_model 1,024, all else as of the base model (§6.3) | "
    "architecture network.num_layers network.d_model network.d_ff network.num_heads "
    "training.label_smoothing",
    "embeddings | one matrix for source, target and pre-softmax, times sqrt(d_model) "
    "(§3.4), with 16K or 32K tokens (§6.3) | architecture network.tying "
    "vocabulary.source_size vocabulary.size vocabulary.unit network.scale_embeddings "
    "network.output_bias",
    'dropout | "both attention and residual", chosen on section 22 and not printed '
    "(§6.3) | architecture network.relu_dropout",
    "learning rate | equation 3 with 4,000 warm-up steps (§5.3); its scale was chosen "
    "on section 22 and is not printed (§6.3) | optimizer.name optimizer.schedule "
    "optimizer.warmup_steps",
    "beam search | beam 21, alpha 0.3, at most 300 tokens more than the source (§6.3) "
    f"| {_SEARCH}",
)

_OPTIMIZERS = {
    "adamw": "AdamW: Adam with decoupled weight decay",
    "schedule_free": "schedule-free AdamW: the average of its steps is the model, and "
    "the learning rate is constant after the warm-up",
    "muon": "Muon for the kernels, Adam for the others",
    "adafactor": "Adafactor: second moments of rows and columns, no first ones",
}

_SPACING = dict(every_steps="steps", every_epochs="epoch(s)", every_minutes="minutes")


def _departures(*texts: str) -> list[Departure]:
    """Parses departures that no key decides: name | the paper | here."""
    parts = (text.split(" | ") for text in texts)
    return [Departure(name, paper, here, "") for name, paper, here in parts]


_PACKED = _departures(
    "packed rows | pairs batched by approximate length (§5.1) | several pairs share a "
    "row, kept apart by segments and positions; data.layout=length_buckets batches by "
    "length"
)
_ALWAYS = _departures(
    "dropout masks | unspecified (§5.4) | a hash of step, site, row and position: the "
    "same on any number of devices",
    "vocabulary | byte-pair encoding (En-De), word pieces (En-Fr) (§5.1) | "
    "SentencePiece's BPE on raw text, of a sample of large corpora",
    "scores | tokenized, compound-split BLEU (Table 2) | sacreBLEU on raw text, with "
    "its signature",
    "pad and bos | not mentioned (§6.1) | never generated",
)
_ALWAYS_OF_PARSERS = [
    _ALWAYS[0],
    *_departures(
        "trees as text | unspecified (§6.3); as in reference 37 | labelled closing "
        "brackets, and a symbol for each word",
        "outputs that are not a tree | unspecified (§6.3) | repaired and counted",
    ),
    _ALWAYS[-1],
]


# What a part from Python replaces, and the key that decides on it otherwise.
_REPLACED = (
    ("module", "the Transformer (Figure 1)", "architecture"),
    ("optimizer", "Adam, with equation 3 (§5.3)", "optimizer.name"),
)


def matches(config: Config) -> list[Match]:
    """Lists what the configuration does exactly as the paper.

    Example:
      >>> [match.name for match in matches(Config())]
      ['layers', 'attention', 'feed-forward networks', ..., 'checkpoint averaging']
    """
    changed = {departure.key for departure in departures(config)}
    section = ARCHITECTURES[config.architecture]
    known = _MATCHES | (_PARSING_MATCHES if is_parser(config) else {})
    return [
        match
        for match in known.values()
        if not changed & {key.replace("network", section) for key in match.keys}
    ]


def departures(config: Config) -> list[Departure]:
    """Lists all differences to the paper: fixed ones, then those of the configuration.

    Example:
      >>> [departure.name for departure in departures(Config())]
      ['packed rows', 'dropout masks', 'vocabulary', ..., 'shortest output']
    """
    fixed = _PACKED if config.data.layout == "packed" else []
    fixed = [*fixed, *(_ALWAYS_OF_PARSERS if is_parser(config) else _ALWAYS)]
    longest, most = config.data.max_length, config.decoding.max_source_length
    here = f"pairs with a side over {longest:,} subwords are left out of training; "
    here += f"sources over {most:,} are split"
    # There are always bounds; only another than the default is a choice.
    key = "" if longest == DataConfig.max_length else "data.max_length"
    fixed.append(Departure("longest sentence", "unspecified", here, key))
    if least := config.decoding.min_tokens:
        key = "" if least == DecodingConfig.min_tokens else "decoding.min_tokens"
        here = f"at least {least} before the end; none by the protocol vaswani2017"
        fixed.append(Departure("shortest output", "no bound (§6.1)", here, key))
    for name, paper, key in _REPLACED:
        if here := getattr(config.python, name):
            fixed.append(Departure(f"{name} from Python", paper, here, key))
    return [*fixed, *_from_defaults(config), *_derived(config)]


def _from_defaults(config: Config) -> Iterator[Departure]:
    values = dict(flatten(to_dict(config)))
    section = ARCHITECTURES[config.architecture]
    for default in paper_defaults(parsing=is_parser(config)):
        key = default.key.replace("network", section)
        # The recurrent baseline lacks some keys of the Transformer.
        if (value := values.get(key, default.faithful)) != default.faithful:
            here = default.here.format(WORDS.get(str(value), value))
            here = here.replace("model.", f"{section}.")
            yield Departure(default.name, default.paper, here, key)


def _derived(config: Config) -> Iterator[Departure]:
    """Yields departures that need more than a comparison with one value."""
    if isinstance(config.network, TransformerConfig):
        yield from _stacks(config.network)
    tokens = config.data.tokens_per_batch
    if not math.isclose(tokens, _TOKENS_PER_BATCH, rel_tol=_REL_TOL):
        key, here = "data.tokens_per_batch", f"{tokens:,} slots a side"
        paper = f"about {_TOKENS_PER_BATCH:,} tokens a side (§5.1)"
        yield Departure("batch size", paper, here, key)
    if is_parser(config):
        yield from _of_parsers(config)
    yield from _optimizer(config)
    yield from _checkpoints(config)


def _of_parsers(config: Config) -> Iterator[Departure]:
    """Yields other symbols than of reference 37, and sizes than the paper's (§6.3)."""
    if "#numbers" in config.data.train:
        paper = "unspecified (§6.3); the same for all in reference 37"
        here = "the number of each word in its sentence"
        yield Departure("symbols of words", paper, here, "data.train")
    key = "source_size" if config.vocabulary.source_size else "size"
    tokens = getattr(config.vocabulary, key)
    if tokens not in [setting.tokens for setting in SETTINGS]:
        name, paper = "size of the vocabulary", "16K tokens, semi-supervised 32K (§6.3)"
        yield Departure(name, paper, f"{tokens:,}", f"vocabulary.{key}")


def _optimizer(config: Config) -> Iterator[Departure]:
    """Yields departures of the optimizer and of its peak learning rate."""
    optimizer, peak = config.optimizer, config.optimizer.peak_learning_rate
    if optimizer.name != "adam":
        here = _OPTIMIZERS[optimizer.name]
        yield Departure("another optimizer", "Adam (§5.3)", here, "optimizer.name")
    if (here := optimizer.schedule) != "inverse_sqrt":
        name, paper = "schedule", "1 / sqrt(step) after the warm-up (§5.3, equation 3)"
        if optimizer.decays:
            end, step = optimizer.end_fraction, optimizer.decay_steps
            here += f", to {end:g} of the peak at step {step or config.steps:,}"
        yield Departure(name, paper, here, "optimizer.schedule")
    equation = (config.network.d_model * optimizer.warmup_steps) ** -0.5
    is_printed = not is_parser(config)  # a parser's was chosen on section 22
    if peak and is_printed and not math.isclose(peak, equation, rel_tol=1e-3):
        paper = f"(d_model * warmup_steps)^-0.5 = {equation:.3e} (§5.3, equation 3)"
        key = "optimizer.peak_learning_rate"
        yield Departure("peak learning rate", paper, f"{peak:.3e}", key)


def _stacks(model: TransformerConfig) -> Iterator[Departure]:
    """Yields departures of the stacks' depths, and of the positions below them."""
    if (depth := decoder_layers(model)) != model.num_layers:
        name, paper = "depth of the decoder", "as many layers as the encoder (§3.1)"
        here = f"{depth:,}, and {model.num_layers:,} of the encoder"
        yield Departure(name, paper, here, "model.num_decoder_layers")
    # Learned positions have no rates.
    if model.positions == "sinusoidal" and model.position_rates != "paper":
        paper, here = "10000^(-2i / d_model) (§3.5)", "10000^(-i / (d_model / 2 - 1))"
        yield Departure("rates of the sinusoids", paper, here, "model.position_rates")


def _checkpoints(config: Config) -> Iterator[Departure]:
    """Yields departures in the spacing and number of averaged checkpoints."""
    every, spacing = config.checkpoint, {}
    for key, unit in _SPACING.items():
        if value := getattr(every, key):
            spacing[key] = f"{value:,.9g} {unit}"
    if spacing != {"every_minutes": "10 minutes"}:
        key = f"checkpoint.{next(iter(spacing), 'every_minutes')}"
        here = " and ".join(spacing.values()) or "none but the best and the last"
        yield Departure("spacing of checkpoints", "10 minutes (§6.1)", here, key)
    if every.keep not in (5, 20):
        name, here = "checkpoints averaged", f"{every.keep}"
        paper = "the last 5, of big models the last 20 (§6.1)"
        yield Departure(name, paper, here, "checkpoint.keep")
