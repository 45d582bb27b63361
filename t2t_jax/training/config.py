"""Configuration of the optimizer, the training step and its reports. Without JAX."""

from __future__ import annotations

import re
from dataclasses import dataclass

from t2t_jax.errors import (
    ConfigError,
    ErrorCollector,
    at_least_0,
    at_least_1,
    below_1,
    checked,
    off_or_more,
    one_of,
    positive,
)

OPTIMIZERS = ("adam", "adamw", "schedule_free", "muon", "adafactor")
_DECAYING = ("cosine", "linear", "warmup_stable_decay")
SCHEDULES = ("inverse_sqrt", "constant", *_DECAYING)

# A trace stays in memory until its last step.
_MAX_PROFILED = 100

_MAX_PARTS = 100_000
_MAX_WARMUP = 1_000_000_000  # optimizer steps
_POSITIVE_OR_PAPER = "be a positive number, or 0 for the paper's"
# Key -> the key that decides whether it is used, and the values with which it is.
_OF_MUON = ("muon_beta", "ns_steps", "consistent_rms", "adam_learning_rate")
_USED_BY = {
    **dict.fromkeys(("beta1", "beta2", "epsilon"), ("name", OPTIMIZERS[:-1])),
    "weight_decay": ("name", OPTIMIZERS[1:]),
    **dict.fromkeys(_OF_MUON, ("name", ("muon",))),
    "schedule": ("name", ("adam", "adamw", "muon", "adafactor")),
    **dict.fromkeys(("decay_steps", "end_fraction"), ("schedule", _DECAYING)),
    "decay_fraction": ("schedule", ("warmup_stable_decay",)),
}
_YEAR = 31_536_000  # seconds; the clocks of threads refuse far longer waits


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """The optimizer and its learning rate; by default Adam with that of §5.3.

    Paper: §5.3, with beta1 0.9, beta2 0.98, epsilon 1e-9 and 4,000 warm-up steps.

    Attributes:
      name: The optimizer: "adam", the paper's; "adamw", Adam with decoupled weight
        decay; "schedule_free", AdamW with an average of the parameters in place of a
        decaying learning rate; "muon", which orthogonalizes the updates of the
        kernels of attention and feed-forward networks, with Adam for the others; or
        "adafactor", whose state is a row and a column of each matrix that has at least
        128 of both, and which clips the updates of each parameter to the learning
        rate. Departs: all but "adam".
      schedule: The learning rate after the warm-up: "inverse_sqrt", the paper's;
        "constant"; "linear" or "cosine", which falls until `decay_steps`; or
        "warmup_stable_decay", constant until it falls linearly. Not for
        "schedule_free", whose learning rate is constant. Departs: all but
        "inverse_sqrt".
      warmup_steps (optimizer steps): Steps over which the learning rate rises linearly.
      peak_learning_rate (per update): Learning rate at the end of the warm-up; 0 for
        the paper's `d_model^-0.5 * warmup_steps^-0.5`, whatever the schedule.
      decay_steps (optimizer steps): With "cosine", "linear" and "warmup_stable_decay",
        the step at which the learning rate has fallen, warm-up included; it stays
        there. 0 for `config.steps` of the first start, which is recorded, so that more
        steps on resume change no learning rate of the past.
      decay_fraction (ratio): With "warmup_stable_decay", the last part of `decay_steps`
        over which the learning rate falls, in (0, 1].
      end_fraction (ratio): Learning rate at `decay_steps` over its peak, in [0, 1].
      beta1 (decay rate): Adam's decay rate of the first moment, in [0, 1). Of
        "schedule_free": the weight of the average in the parameters of the gradient.
      beta2 (decay rate): Adam's decay rate of the second moment, in [0, 1).
      epsilon (constant): Added to the square root of the second moment, above 0.
      weight_decay (per update): Times the learning rate, the share that kernels and
        embedding tables lose in an update; biases and norms are not decayed. 0 for
        none; not for "adam".
      muon_beta (decay rate): Muon's decay rate of the momentum, in [0, 1).
      ns_steps (iterations): Newton-Schulz iterations of Muon.
      consistent_rms (ratio): Root mean square of Muon's updates over the learning rate.
        With 0.2 they are about as large as Adam's.
      adam_learning_rate (per update): With "muon", peak learning rate of the parameters
        that Adam updates; 0 for the same as that of the matrices.
    """

    name: str = one_of(*OPTIMIZERS)
    schedule: str = one_of(*SCHEDULES)
    warmup_steps: int = at_least_1(4_000, most=_MAX_WARMUP)
    peak_learning_rate: float = at_least_0(0.0, _POSITIVE_OR_PAPER)
    decay_steps: int = at_least_0(0, most=_MAX_WARMUP)
    decay_fraction: float = checked(0.1, "lie in (0, 1]", lambda x: 0 < x <= 1)
    end_fraction: float = checked(0.0, "lie in [0, 1]", lambda x: 0 <= x <= 1)
    beta1: float = below_1(0.9)
    beta2: float = below_1(0.98)
    epsilon: float = positive(1e-9)
    weight_decay: float = at_least_0(0.0)
    muon_beta: float = below_1(0.95)
    ns_steps: int = checked(5, "lie in [1, 100]", range(1, 101).count)
    consistent_rms: float = positive(0.2)
    adam_learning_rate: float = at_least_0(0.0)

    def __post_init__(self) -> None:
        problems = ErrorCollector("optimizer", self)
        self._check_used(problems)
        if not problems.messages and self.decays and self.decay_steps:
            self._check_decay(problems)
        problems.raise_if_any()

    @property
    def decays(self) -> bool:
        """Whether the learning rate falls until `decay_steps`."""
        return self.schedule in _DECAYING

    @property
    def decay_begin(self) -> int:
        """Number of the last step before the learning rate falls, if it `decays`."""
        if self.schedule != "warmup_stable_decay":
            return self.warmup_steps
        return self.decay_steps - round(self.decay_fraction * self.decay_steps)

    def _check_used(self, problems: ErrorCollector) -> None:
        """Checks that optimizer and schedule use the keys that were changed."""
        known = {"name": OPTIMIZERS, "schedule": SCHEDULES}
        for name, (decides, users) in _USED_BY.items():
            chosen, only = getattr(self, decides), f", only with {', '.join(users)}"
            is_used = chosen in users or chosen not in known[decides]
            problems.used(name, decides, is_used, only=only)

    def _check_decay(self, problems: ErrorCollector) -> None:
        """Checks that the learning rate falls after the warm-up."""
        begin, end = self.decay_begin, self.decay_steps
        problems.check(
            self.warmup_steps <= begin < end,
            f"optimizer.schedule={self.schedule} would fall from step {begin:,} to "
            f"optimizer.decay_steps={end:,}: it must fall after optimizer.warmup_steps="
            f"{self.warmup_steps:,}. Change config.optimizer.decay_steps (0 is "
            "config.steps) or config.optimizer.warmup_steps.",
        )


@dataclass(frozen=True, kw_only=True)
class PythonConfig:
    """What `t2t_jax.train` was given in place of what the other sections configure.

    That function writes these keys, and alone can train such a run. Its other
    arguments leave no trace here: pairs from Python become `data.train`.

    Attributes:
      module: Name of the Linen module, with its attributes; empty for the model of
        `architecture`.
      optimizer: Names of the optimizer's states, or of the schedule of the learning
        rate; empty for those of `optimizer`.
    """

    module: str = ""
    optimizer: str = ""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """What the training step computes, and in how many parts.

    Attributes:
      label_smoothing (probability): Probability mass spread evenly over the vocabulary.
        Paper: §5.4, 0.1.
      simcut (weight): Weight of SimCut's consistency term, published with 3.0; 0 for
        none. A second pass of the model sees its inputs with the embeddings of random
        tokens zeroed, and its predictions have to agree with those of the first.
        A step costs about twice as much. Departs: above 0.
      simcut_probability (probability): With `simcut`, probability with which each
        token of source and target input is zeroed; published with 0.05.
      r_drop (weight): Weight of R-Drop's consistency term, published with 5.0 for
        translation; 0 for none. The predictions of two passes with different dropout
        have to agree. A step costs about twice as much. Departs: above 0.
      micro_batches (parts): Parts of its rows that each device processes one after the
        other, so that a large batch fits into small memory; 0 (`auto` on the command
        line) for the fewest that fit. Only the order of sums changes.
      gradient_dtype: Type of the gradients that devices exchange over the mesh axis
        `data`; "bfloat16" halves the bytes. Departs: "bfloat16" rounds the gradient of
        each group of devices to 8 bits.
      loss_chunks (parts): Parts of each target for which logits and loss are computed
        one after the other, so that no device holds the logits of all its tokens. Only
        the order of sums changes.
      on_nonfinite: What follows a step whose loss or gradient is infinite or NaN; its
        update is not applied. "skip" continues, "stop" ends the run.
      max_bad_steps (optimizer steps): The run ends after this many consecutive steps
        without an update.
      skip_gradient_norm (norm): Updates whose global gradient norm is above this are
        skipped; 0 to apply all. Departs: above 0, updates of the paper's optimizer are
        left out.
      ema_decay (decay rate): Decay rate of an exponential moving average of the
        parameters, in [0, 1), which is evaluated and saved as the model; 0 for none.
        In update t, from 0, it is at most (1 + t) / (10 + t). Departs: above 0.
      frozen: Parameters that are not trained: patterns of their paths, separated by
        commas, such as "encoder,embedding" or "*/self_attention/*"; empty for none.
        They have no state of the optimizer, and no gradient is computed for them.
      step_timeout (seconds): A run without a new step for this long counts as stuck:
        each process prints the stacks of its threads and exits. 0 for no limit.
      pause_timeout (seconds): The same limit while a run compiles, evaluates or saves,
        and for the first three steps after that; 0 for no limit.
    """

    label_smoothing: float = below_1(0.1, "lie in [0, 1) (§5.4)")
    simcut: float = off_or_more(0.0)
    simcut_probability: float = below_1(0.05)
    r_drop: float = off_or_more(0.0)
    micro_batches: int = at_least_0(
        1, "be at least 1, or 0 for the fewest that fit", most=_MAX_PARTS
    )
    gradient_dtype: str = one_of("float32", "bfloat16")
    loss_chunks: int = at_least_1(
        1, "be at least 1: parts of each row", most=_MAX_PARTS
    )
    on_nonfinite: str = one_of("skip", "stop")
    max_bad_steps: int = at_least_1(10)
    skip_gradient_norm: float = off_or_more(0.0)
    ema_decay: float = below_1(0.0, "lie in [0, 1); 0 is off")
    frozen: str = ""
    step_timeout: float = off_or_more(600.0, most=_YEAR, why="a year; 0 is no limit")
    pause_timeout: float = off_or_more(3600.0, most=_YEAR, why="a year; 0 is no limit")

    def __post_init__(self) -> None:
        problems = ErrorCollector("training", self)
        problems.check(
            not (self.simcut and self.r_drop),
            f"training.simcut={self.simcut:g} and training.r_drop={self.r_drop:g} "
            "both use the second pass of a step. Set one of them to 0.",
        )
        problems.used("simcut_probability", "simcut", self.simcut)
        problems.raise_if_any()

    @property
    def passes(self) -> int:
        """How often a step passes forwards and backwards; 2 with a consistency term."""
        return 2 if self.simcut or self.r_drop else 1


@dataclass(frozen=True, kw_only=True)
class LoggingConfig:
    """How often a run reports metrics.

    Attributes:
      every_steps (optimizer steps): Interval of the records in metrics.jsonl; the first
        step has one too.
      every_seconds (seconds): Interval of progress lines if stderr is not a terminal; 0
        for none but those of steps 1 and 20 of a process and of the last step, which
        always have one. On a terminal progress is shown each second.
    """

    every_steps: int = at_least_1(100)
    every_seconds: float = at_least_0(10.0, "be 0 (none) or more")

    def __post_init__(self) -> None:
        ErrorCollector("logging", self).raise_if_any()


@dataclass(frozen=True, kw_only=True)
class ProfileConfig:
    """Which steps of a run are profiled.

    Attributes:
      steps: First and last of at most 100 steps to trace, such as "10:15", into the
        `profile` directory of the workdir; empty for none.
    """

    steps: str = ""

    def __post_init__(self) -> None:
        if self.steps and not 1 <= len(self.span) <= _MAX_PROFILED:
            raise ConfigError(
                f'profile.steps={self.steps!r} must be "first:last" with '
                f"1 <= first <= last, at most {_MAX_PROFILED} steps in all, or empty "
                "for none. Change config.profile.steps."
            )

    @property
    def span(self) -> range:
        """The numbers of the steps; empty for none.

        Example:
          >>> list(ProfileConfig(steps="3:5").span)
          [3, 4, 5]
        """
        # At most twelve digits: a range of more could not be counted.
        found = re.fullmatch("([1-9][0-9]{0,11}):([1-9][0-9]{0,11})", self.steps)
        return range(int(found[1]), int(found[2]) + 1) if found else range(0)
