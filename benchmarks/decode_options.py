"""What `decode.py` can be asked for: its flags, and the peers that it knows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from step_options import (
    SIZES,
    peers_among,
    positive,
    require_cpu_for_marian,
    require_installed,
)

LENGTHS = {"tiny": 8, "small": 16, "base": 28, "big": 28}
"""Tokens of each source, and of each output."""

CUTS = {"cpu": (32, 64, 128, 256), "gpu": (128, 256, 512)}
"""Sentences that may be computed at once; each contestant takes what suits it."""

PEERS = {
    "hf_marian": ("torch", "transformers"),
    "ctranslate2": ("ctranslate2",),
    "ctranslate2_int8": ("ctranslate2",),
    "marian": ("pymarian",),
    "ours_bfloat16": (),
}
"""What has to be installed for each peer; the last is our own search in bfloat16."""


def parse_arguments(
    argv: Sequence[str] | None = None, *, description: str = ""
) -> argparse.Namespace:
    """Reads the command line, and fills in what the size and the device decide.

    Args:
      argv: without the program's name; None is that of this process.
      description: of the program, for `--help`.
    """
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add("--size", choices=SIZES, default="small", help="of a model with random weights")
    add("--device", choices=("cpu", "gpu"), default="cpu")
    add(
        "--peer",
        type=peers_among(PEERS),
        default="ctranslate2,hf_marian",
        help=f"none, or {','.join(PEERS)}; the first is the one of `ratio`",
    )
    add(
        "--batches", type=_several, default="1,32,512", help="sentences waiting at once"
    )
    add("--cuts", type=_several, help="sentences computed at once; the best is taken")
    add("--length", type=positive, help="tokens of each source and of each output")
    add("--beam_size", type=positive, default=4)
    add(
        "--length_penalty",
        type=float,
        default=0.6,
        help="alpha; a power of n for peers",
    )
    add("--compute_dtype", choices=("auto", "float32", "bfloat16"), default="auto")
    add("--threads", type=positive, default=2, help="of a CPU, for each contestant")
    add("--rounds", type=positive, default=5)
    add("--seconds", type=float, default=5.0, help="of each contestant in a round")
    add("--workdir", help="a trained run or model, which translates --source freely")
    add("--source", help="lines to translate")
    add("--reference", help="what they should have become, for BLEU")
    add("--first_line", action="store_true", help="time single short lines of --source")
    add("--json", action="store_true")
    options = parser.parse_args(argv)
    options.length = options.length or LENGTHS[options.size]
    options.cuts = options.cuts or CUTS[options.device]
    _check_text(parser, options)
    require_installed(parser, options.peer, PEERS)
    require_cpu_for_marian(parser, options)
    return options


def _check_text(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if bool(options.workdir) != bool(options.source):
        parser.error("--workdir and --source need one another: say both, or neither.")
    for name in ("reference", "first_line"):
        if getattr(options, name) and not options.workdir:
            parser.error(f"--{name} needs text: say --workdir and --source too.")


def _several(text: str) -> tuple[int, ...]:
    """Reads numbers with commas between them; in ascending order, none twice."""
    return tuple(sorted({positive(number) for number in text.split(",")}))
