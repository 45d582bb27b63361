"""Configuration of evaluation during training (does not import JAX)."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_jax.errors import ErrorCollector, at_least_0, checked, one_of

TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""Those of sacreBLEU that need no further packages."""


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """When the development set is scored, and how many translations are logged.

    Attributes:
      every_steps (optimizer steps): Interval of evaluations; the last step is evaluated
        too. 0 turns evaluation off: no development text is read, and no checkpoint is
        the best one. A value above `steps` evaluates the last step only.
      bleu_sentences (sentences): Number of development sentences translated for BLEU,
        from the first, of each direction if there are several; 0 for all. The loss
        always covers all of them.
      num_samples (translations): Translations logged and saved at each evaluation; 0
        for none.
      max_unfinished (share): Bounds the cost of evaluating an untrained model, whose
        translations run on to their length limit. If more than this share of the first
        64 sentences reaches it, the others are not translated and only the loss is
        computed. 1 always translates all.
      tokenize: How sacreBLEU splits lines into the tokens of BLEU: 13a, its default, or
        intl, for raw text; zh for Chinese, char for single characters; none where the
        text of the run is tokenized already. With none, no protocol of
        `--mode=evaluate` tokenizes it again.
      patience (evaluations): Training ends, as complete, after this many evaluations
        in a row without a better development BLEU, or the same BLEU with a lower loss;
        0 for never.
    """

    every_steps: int = at_least_0(5_000)
    bleu_sentences: int = at_least_0(0)
    num_samples: int = at_least_0(5)
    max_unfinished: float = checked(
        0.25, "be between 0 and 1, which translates all", lambda x: 0 <= x <= 1
    )
    tokenize: str = one_of(*TOKENIZERS)
    patience: int = at_least_0(0)

    def __post_init__(self) -> None:
        problems = ErrorCollector("evaluation", self)
        problems.check(
            not self.patience or self.every_steps > 0,
            f"evaluation.patience={self.patience} requires evaluations, and "
            "evaluation.every_steps=0 turns them off. Change one of them.",
        )
        problems.raise_if_any()
