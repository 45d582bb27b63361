"""The configuration: every folder's dataclass, composed and parsed once.

A config file fills a locked `ConfigDict` that starts from `default()`; `parse` turns it
into a frozen `Config`. This module does not import JAX, so errors are reported at once.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any, get_type_hints

from ml_collections import config_dict

from t2t_jax.checkpointing.config import CheckpointConfig
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.errors import (
    ConfigError,
    ErrorCollector,
    choices_of,
    one_of,
    short_repr,
)
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.model.config import BLOCKS, ModelConfig, RNNConfig, TransformerConfig
from t2t_jax.training.config import (
    LoggingConfig,
    OptimizerConfig,
    ProfileConfig,
    PythonConfig,
    TrainingConfig,
)

DERIVED = {
    f"{section}.{prefix}vocab_size": f"vocabulary.{prefix}size"
    for section in ("model", "rnn")
    for prefix in ("", "source_")
}
"""Key -> the key whose value it has. Not set, so that no number is declared twice."""

KINDS = {int: "an integer", float: "a number", bool: "true or false", str: "text"}
"""Names of the types in messages and help texts."""


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields nested values as (`section.name`, value).

    Example:
      >>> list(flatten({"steps": 3, "model": {"d_ff": 8}}))
      [('steps', 3), ('model.d_ff', 8)]
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def set_keys(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Sets keys, `section.name`, of nested values in place, and returns these.

    Example:
      >>> set_keys({"steps": 3}, {"steps": 5, "model.d_ff": 8})
      {'steps': 5, 'model': {'d_ff': 8}}
    """
    for key, value in changes.items():
        section, _, name = key.rpartition(".")
        (values.setdefault(section, {}) if section else values)[name] = value
    return values


_hints = functools.cache(get_type_hints)  # 1 ms for each class

ARCHITECTURES = {"transformer": "model", "rnn": "rnn"}
"""Values of `architecture`, and the section that configures each."""

_MAX_STEPS = 1_000_000_000  # more is a typo; 2^31 would overflow counters


@dataclass(frozen=True, kw_only=True)
class Config:
    """An experiment; the defaults are the paper's base model and schedule.

    Paper: Table 3, row base; §5.2: 100,000 steps.

    Attributes:
      steps (optimizer steps): Length of the training, at most 1,000,000,000.
      seed (random seed): Seed of the initial parameters, the order of the data and
        dropout.
      init_from: Directory of a run or a model whose network, vocabulary and parameters
        a new run begins with; empty for random parameters. Optimizer, step and the
        order of the data begin anew.
      data: Corpora, filters and batches.
      vocabulary: The subword vocabulary.
      architecture: Which model is trained: the Transformer, or the recurrent baseline
        of Table 1.
      model: The Transformer; its `vocab_size` always equals `vocabulary.size`.
      rnn: The recurrent baseline; its `vocab_size` too.
      optimizer: The optimizer and its learning-rate schedule.
      python: A module or an optimizer that `t2t_jax.train` was given.
      training: The loss, micro-batches, and when a run stops.
      mesh: How parameters and batches are sharded over devices.
      evaluation: Scoring the development set during training.
      decoding: Beam search and sampling.
      checkpoint: When checkpoints are saved, and which are kept.
      logging: How often metrics are reported.
      profile: Which steps are traced.
    """

    steps: int = 100_000
    seed: int = 0
    init_from: str = ""
    data: DataConfig = field(default_factory=DataConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    architecture: str = one_of(*ARCHITECTURES)
    model: TransformerConfig = field(default_factory=TransformerConfig)
    rnn: RNNConfig = field(default_factory=RNNConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    python: PythonConfig = field(default_factory=PythonConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    mesh: MeshConfig = field(default_factory=MeshConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    profile: ProfileConfig = field(default_factory=ProfileConfig)

    def __post_init__(self) -> None:
        problems = ErrorCollector(config=self)
        problems.of("be at least 1", lambda x: x >= 1, "steps")
        problems.limit(_MAX_STEPS, "steps", why="12 days at 1,000 steps per second")
        problems.of("lie in [0, 2^32)", lambda x: 0 <= x < 2**32, "seed")
        if section := ARCHITECTURES.get(self.architecture):
            self.mesh.check_divisible(problems, self.network, section=section)
            self._check_passes(problems, section=section)
        problems.check(
            not (self.training.ema_decay and self.optimizer.name == "schedule_free"),
            f"training.ema_decay={self.training.ema_decay} cannot be combined with "
            "optimizer.name=schedule_free, whose parameters are an average already. "
            "Set config.training.ema_decay=0, or change config.optimizer.name.",
        )
        if self.architecture == "rnn":
            self._check_blocks(problems)
        if self.architecture == "transformer" and self.model.positions == "learned":
            self._check_positions(problems)
        problems.raise_if_any()

    def _check_passes(self, problems: ErrorCollector, *, section: str) -> None:
        """Checks that two passes of a step differ."""
        network, training = self.network, self.training
        rates = ("dropout", "attention_dropout", "relu_dropout")
        differ = any(getattr(network, rate, 0.0) for rate in rates)
        differ |= training.simcut > 0 and training.simcut_probability > 0
        problems.check(
            training.passes == 1 or differ,
            "Two passes that training.r_drop or training.simcut compares are the same "
            f"with {section}.dropout=0. Change config.{section}.dropout.",
        )

    def _check_blocks(self, problems: ErrorCollector) -> None:
        """Checks that no block is chosen that the recurrent baseline has not got."""
        for name, values in BLOCKS.items():
            value = getattr(self.model, name)
            problems.check(
                value not in values,
                f"model.{name}={value} has no effect with architecture=rnn. Leave "
                f"config.model.{name} out, or change config.architecture.",
            )

    def _check_positions(self, problems: ErrorCollector) -> None:
        """Checks that no sequence exceeds a learned table of positions."""
        most, decoding = self.model.max_positions, self.decoding
        problems.check(
            self.data.max_length <= most,
            f"data.max_length={self.data.max_length} must not exceed "
            f"model.max_positions={most} with learned positions. "
            "Change config.model.max_positions.",
        )
        longest = max(decoding.max_source_length, decoding.longest_output())
        problems.check(
            longest <= most,
            f"{decoding.longest_output_formula(prefix='decoding.')}={longest} must not "
            f"exceed model.max_positions={most} with learned positions. Change "
            "config.decoding.max_source_length: positions beyond data.max_length="
            f"{self.data.max_length} are never trained.",
        )

    @property
    def network(self) -> ModelConfig:
        """The configuration of the selected architecture."""
        network: ModelConfig = getattr(self, ARCHITECTURES[self.architecture])
        return network

    def with_network(self, **changes: Any) -> Config:
        """Changes keys of the selected architecture."""
        section = ARCHITECTURES[self.architecture]
        network: Any = {section: replace(self.network, **changes)}
        return replace(self, **network)


def default() -> config_dict.ConfigDict:
    """Returns the paper's base experiment as a locked ConfigDict.

    Example:
      >>> config = default()
      >>> config.model.d_model
      512
    """
    config = config_dict.ConfigDict(to_dict(Config()))
    config.lock()
    return config


def to_dict(config: Config) -> dict[str, Any]:
    """Returns `config` as nested dicts of JSON values, without derived keys."""
    values = asdict(config)
    for section, _, name in (key.partition(".") for key in DERIVED):
        del values[section][name]
    return values


def parse(values: Mapping[str, Any]) -> Config:
    """Parses nested mappings (a ConfigDict, or config.json) into a `Config`.

    Raises:
      ConfigError: with all errors at once: unknown keys, wrong types, invalid values.
    """
    problems = ErrorCollector()
    top = {name: value for name, value in values.items() if name not in sections()}
    fields = _check_types(Config, top, problems)
    for name in sections():
        given = values.get(name, {})
        section = problems.try_call(_parse_section, name, given=given, others=fields)
        if section is not None:
            fields[name] = section
    config: Config = problems.try_call(lambda known: Config(**known), fields)
    problems.raise_if_any(ConfigError)
    return config


def _parse_section(name: str, *, given: Any, others: Mapping[str, Any]) -> Any:
    """Constructs the dataclass of a section, after `others`."""
    if not isinstance(given, Mapping | config_dict.ConfigDict):
        raise ConfigError(f"{name}={given!r} must hold keys. Change config.{name}.")
    cls, problems = _hints(Config)[name], ErrorCollector()
    fields = _check_types(cls, given, problems, prefix=f"{name}.")
    if name in ARCHITECTURES.values():
        vocabulary = others.get("vocabulary", VocabularyConfig())
        fields["vocab_size"] = vocabulary.size
        # Not checked for the architecture that is not selected.
        if ARCHITECTURES.get(others.get("architecture", "transformer")) == name:
            fields["source_vocab_size"] = vocabulary.own_source_size
    problems.raise_if_any()
    return cls(**fields)


def _check_types(
    cls: type, given: Mapping[str, Any], problems: ErrorCollector, *, prefix: str = ""
) -> dict[str, Any]:
    """Returns the values with a known key and the right type; reports the others."""
    hints, checked = _hints(cls), {}
    for name, value in given.items():
        key, kind = f"{prefix}{name}", hints.get(name)
        if kind is None or key in DERIVED:
            problems.check(False, unknown_key(key))
        elif type(value) is kind or (kind is float and type(value) is int):
            checked[name] = kind(value)  # isinstance would take True for 1
        else:
            problems.require(key, short_repr(value), False, f"be {KINDS[kind]}")
    return checked


RETIRED: frozenset[str] = frozenset()
"""Keys of former versions, `section.name`: read from saved runs, and ignored."""


def parse_saved(
    values: Mapping[str, Any], *, overrides: Callable[[], Mapping[str, Any]] = dict
) -> Config:
    """Parses a configuration that a run has saved, with this version or an older one.

    Before there was `decoding.segment`, the default of `decoding.min_tokens` was 0: a
    stored 0 is then the default of today, unless a command line set it.

    Args:
      overrides: reads the keys that command lines have set.

    Raises:
      ConfigError: as `parse` does.
    """
    decoding, kept, ignored = values.get("decoding"), {}, RETIRED
    if isinstance(decoding, Mapping) and "segment" not in decoding:
        key = "decoding.min_tokens"
        if decoding.get("min_tokens") == 0 and key not in overrides():
            ignored |= {key}
    for name, value in values.items():
        if isinstance(value, Mapping):
            value = {k: v for k, v in value.items() if f"{name}.{k}" not in ignored}
        if name not in ignored:
            kept[name] = value
    return parse(kept)


@functools.cache
def defaults() -> Mapping[str, Any]:
    """Returns every settable key, `section.name`, and its default."""
    return dict(flatten(to_dict(Config())))


def keys() -> list[str]:
    """Returns every settable key as `section.name`."""
    return list(defaults())


def choices() -> dict[str, tuple[str, ...]]:
    """Returns the values of the keys that accept only some words."""
    classes = {"": Config, **{f"{one}.": _hints(Config)[one] for one in sections()}}
    return {
        f"{section}{name}": known
        for section, cls in classes.items()
        for name, known in choices_of(cls).items()
        if isinstance(known[0], str)
    }


def sections() -> list[str]:
    """Returns the sections of the configuration, in order."""
    return [name for name, hint in _hints(Config).items() if is_dataclass(hint)]


def choose_row(rows: Mapping[str, Mapping[str, Any]], row: str) -> dict[str, Any]:
    """Selects a row of a config file with several experiments.

    Args:
      rows: what each row changes, `section.name` to value.
      row: given after the colon of `--config=FILE.py:ROW`.

    Returns:
      The changes, for `ConfigDict.update_from_flattened_dict`.

    Raises:
      ConfigError: the row does not exist or is missing; the message lists all rows.

    Example:
      >>> choose_row({"small": {"steps": 3}}, "small")
      {'steps': 3}
    """
    if row not in rows:
        hint, fault = "", "was chosen"
        if row:
            hint, fault = did_you_mean(row, list(rows)), f"is {row!r}"
        raise ConfigError(
            f"This config has several rows, and none {fault}.{hint} Pass one after a "
            f"colon, such as :{next(iter(rows))}. Rows: {', '.join(rows)}."
        )
    return dict(rows[row])


def alternatives(words: Sequence[str], *, word: str = "or") -> str:
    """Joins words to a list in prose.

    Example:
      >>> alternatives(["a", "b", "c"])
      'a, b or c'
    """
    return f" {word} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def similar(name: str, known: Sequence[str]) -> list[str]:
    """Finds known names that are similar to a wrong one.

    Args:
      name: the wrong name, `section.name` or `name`.

    Returns:
      Known names with the same last word, in the most similar section if one is similar
      enough; otherwise the name with the closest spelling, if any.

    Example:
      >>> similar("data.d_model", ["model.d_model", "seed"])
      ['model.d_model']
    """
    section, _, last = name.rpartition(".")
    if same := [key for key in known if key.rpartition(".")[2] == last]:
        of_same = [key.rpartition(".")[0] for key in same]
        near = difflib.get_close_matches(section, of_same, n=1)
        return [key for key in same if key.rpartition(".")[0] in near] or same
    whole = difflib.get_close_matches(name, known, n=1)
    tails = {key.rpartition(".")[2]: key for key in reversed(known)}
    # With a lower cutoff "file" would match "flagfile".
    near = difflib.get_close_matches(last, tails, n=1, cutoff=0.75)
    return (whole if section else []) or [tails[tail] for tail in near] or whole


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Returns " Did you mean …?" for similar known names, or "".

    Example:
      >>> did_you_mean("stps", ["steps", "seed"])
      ' Did you mean steps?'
    """
    return _suggest(similar(name, known))


def unknown_key(key: str) -> str:
    """Returns the error about a key that does not exist, `section.name` or `name`.

    Example:
      >>> unknown_key("stps")
      'There is no key config.stps. Did you mean steps?'
    """
    return f"There is no key config.{key}.{key_hint(key)}"


def key_hint(name: str, *, flag: str = "") -> str:
    """Suggests keys that are similar to a wrong one, `section.name` or `name`.

    Args:
      flag: how they are written, before the key.

    Example:
      >>> key_hint("num_layers", flag="--config.")
      ' Did you mean --config.model.num_layers?'
    """
    if name in DERIVED:
        return f" It always equals config.{DERIVED[name]}."
    # Names shared by both architectures suggest the Transformer's.
    usual = [key for key in keys() if not key.startswith("rnn.")]
    near = similar(name, keys() if name.startswith("rnn.") else usual)
    return _suggest([f"{flag}{key}" for key in near or similar(name, keys())])


def _suggest(near: Sequence[str]) -> str:
    return f" Did you mean {alternatives(near)}?" if near else ""
