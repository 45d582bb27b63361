"""Writes the sentence pairs of the embedded corpus, or others of its grammar.

python tools/phrasebook/generate.py
python tools/phrasebook/generate.py train 300000 more.tsv
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
from collections.abc import Iterator
from pathlib import Path

from grammar.derivation import SPLITS, fingerprint, tsv_lines

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "t2t_jax" / "data" / "corpora" / "phrasebook.tsv.xz"
SIZES = {"dev": 500, "test": 5_000, "train": 120_000}
"""Splits in the order of the file: the short ones are read without the rest."""

# Measured: 1.97 MB, where the defaults of xz make 2.3 MB.
_FILTERS = [
    {
        "id": lzma.FILTER_LZMA2,
        "preset": 9 | lzma.PRESET_EXTREME,
        "dict_size": 2**24,  # more than the text, and all that reading it takes
        "lc": 4,
        "lp": 0,
        "pb": 0,
    }
]


def shipped_lines() -> Iterator[str]:
    """Derives the lines of the shipped file."""
    for split, count in SIZES.items():
        yield from tsv_lines(split, count)


def main() -> None:
    """Writes the shipped file and prints its hashes, or writes a file of one split."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("split", nargs="?", choices=SPLITS)
    parser.add_argument("count", nargs="?", type=int)
    parser.add_argument("file", nargs="?", type=Path, help="tab-separated pairs")
    chosen = parser.parse_args()
    if chosen.split is None:
        text = "".join(shipped_lines()).encode()
        SHIPPED.write_bytes(lzma.compress(text, filters=_FILTERS))
        print(f"SHA-256 of the text: {hashlib.sha256(text).hexdigest()}")
        print(f"FINGERPRINT: {fingerprint()}")
    elif chosen.file is None:
        parser.error("a split needs a count and a file")
    else:
        with chosen.file.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(tsv_lines(chosen.split, chosen.count))


if __name__ == "__main__":
    main()
