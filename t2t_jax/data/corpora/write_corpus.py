"""Writes a corpus as two aligned text files, for other tools and for tests.

``python -m t2t_jax.data.corpora.write_corpus phrasebook:test:500 test.en test.de``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.errors import UserError


def main(arguments: Sequence[str]) -> int:
    """Writes a corpus to two files, one a side; returns the exit code."""
    if len(arguments) != 3:
        print("usage: write_corpus CORPUS SOURCE_FILE TARGET_FILE", file=sys.stderr)
        return UserError.exit_code
    spec, *paths = arguments
    try:
        sides = zip(*open_corpus(spec, key="CORPUS"), strict=True)
    except UserError as error:
        print(*(f"error: {p}" for p in error.problems), sep="\n", file=sys.stderr)
        return error.exit_code
    for path, lines in zip(paths, sides, strict=True):
        text = "".join(f"{line}\n" for line in lines)
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
