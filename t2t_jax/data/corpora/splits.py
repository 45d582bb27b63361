"""Which text trains, which is the development set, and which is only held out.

`data.dev_pairs` cuts held-out pairs from the beginning of the training corpus.
"""

from __future__ import annotations

from collections.abc import Callable

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.corpus import Corpus
from t2t_jax.data.corpora.open import (
    SLICE,
    open_corpus,
    parse_part,
    require_joined,
    split_spec,
)
from t2t_jax.errors import ConfigError, ErrorCollector, InputMissingError


def train_and_dev(config: DataConfig) -> tuple[str, str]:
    """Returns the specs of the training and the development corpus; "" is none.

    Raises:
      ConfigError: no pairs can be held out of the training corpus.

    Example:
      >>> train_and_dev(DataConfig(train="text:a.en,a.de", dev_pairs=1_000))
      ('text:a.en,a.de[1000:]', 'text:a.en,a.de[:1000]')
    """
    pairs = config.dev_pairs
    if config.dev or not pairs:
        return config.train, config.dev
    # As the user wrote it, without slices.
    require_joined(config.train, key="data.train")
    first, *others = split_spec(config.train) or [""]
    _, name = parse_part(first, key="data.train")
    if SLICE.fullmatch(name) or name.startswith("tfds:"):
        raise ConfigError(
            f"Cannot hold data.dev_pairs={pairs} out of {name!r}: it is a slice or a "
            "set of TFDS. Set config.data.dev, and config.data.dev_pairs=0."
        )
    return "++".join([f"{first}[{pairs}:]", *others]), f"{name}[:{pairs}]"


def open_held_out(
    spec: str, *, log: Callable[[str], None], joiner: str = ""
) -> tuple[Corpus, ...]:
    """Opens the test sets of `data.held_out`, but for TFDS sets that are not prepared.

    Args:
      joiner: `data.subword_joiner`.

    Raises:
      ConfigError: the spec is invalid.
      InputMissingError: a file does not exist or cannot be read.
    """
    errors = ErrorCollector()

    def open_one(name: str) -> Corpus | None:
        try:
            return open_corpus(name, key="data.held_out", joiner=joiner)
        except InputMissingError:
            if not name.startswith("tfds:"):
                raise
            log(f"{name} is not prepared: it is not checked against the training text.")
            return None

    found = [errors.try_call(open_one, name) for name in split_spec(spec)]
    errors.raise_if_any()
    return tuple(corpus for corpus in found if corpus is not None)
