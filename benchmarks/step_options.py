"""What `train_step.py` can be asked for: its flags, and the sizes and peers it has."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec

from variants import add_variant_flag

from t2t_jax.data.config import LAYOUTS
from t2t_jax.devices.processor import multiplies_bfloat16
from t2t_jax.model.config import TransformerConfig

SIZES = {
    "tiny": TransformerConfig(
        vocab_size=500, num_layers=1, d_model=32, d_ff=64, num_heads=2, d_k=16, d_v=16
    ),
    "small": TransformerConfig(
        vocab_size=8_000, num_layers=3, d_model=256, d_ff=1024, num_heads=4
    ),
    "base": TransformerConfig(),
    "big": TransformerConfig(d_model=1024, d_ff=4096, num_heads=16),
}
"""Models: two to look at programs, and the two of the paper."""

SHAPES = {"tiny": (8, 8), "small": (128, 16), "base": (32, 28), "big": (8, 28)}
"""(pairs, tokens of a side) of a batch, where a CPU computes."""

GPU_SHAPE = (768, 32)
"""The same for a GPU: 24,576 tokens a side, the paper's batch."""

PEERS = {
    "hf_marian": ("torch", "transformers"),
    "torch": ("torch",),
    "hf_marian_bfloat16": ("torch", "transformers"),
    "torch_bfloat16": ("torch",),
    "marian": ("pymarian",),
}
"""What has to be installed for each peer; those in bfloat16 are under autocast."""


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
    add("--size", choices=SIZES, default="small")
    add("--device", choices=("cpu", "gpu"), default="cpu")
    add(
        "--peer",
        type=peers_among(PEERS),
        default="hf_marian",
        help=f"none, or {','.join(PEERS)}",
    )
    add("--compile_peer", action="store_true", help="peers through torch.compile")
    add_variant_flag(parser)
    add("--pairs", type=positive, help="of a batch")
    add("--length", type=positive, help="tokens of each side of a pair")
    add("--pairs_per_row", type=positive, default=1, help="that share a row of ours")
    add("--vocabulary", type=positive, help="subwords, if not as many as the size has")
    add("--threads", type=positive, default=2, help="of a CPU, for each contestant")
    add("--rounds", type=positive, default=5)
    add("--seconds", type=float, default=5.0, help="of each contestant in a round")
    add("--steps", type=int, default=0, help="of a round, instead of --seconds")
    add("--peak_tflops", type=float, default=0.0, help="of the device")
    add("--real", default="", help="train on a corpus, such as text:a.en,a.de")
    add("--tokens", type=positive, default=2048, help="slots of --real's batches")
    add("--layout", choices=LAYOUTS, default="packed", help="of our --real batches")
    add("--row_length", type=positive, default=64, help="of our packed rows")
    add("--json", action="store_true")
    options = parser.parse_args(argv)
    shape = GPU_SHAPE if options.device == "gpu" else SHAPES[options.size]
    options.pairs = options.pairs or shape[0]
    options.length = options.length or shape[1]
    options.vocabulary = options.vocabulary or SIZES[options.size].vocab_size
    if options.pairs % options.pairs_per_row:
        parser.error(
            f"--pairs={options.pairs} must be divisible by --pairs_per_row="
            f"{options.pairs_per_row}."
        )
    if options.device == "cpu" and multiplies_bfloat16():
        halves = [f"{name}_bfloat16" for name in options.peer]
        more = (name for name in halves if name in PEERS)
        options.peer = tuple(dict.fromkeys((*options.peer, *more)))
    require_installed(parser, options.peer, PEERS)
    require_cpu_for_marian(parser, options)
    return options


def peers_among(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Makes what reads `--peer`: names with commas between them, or none.

    Args:
      known: the names that there are.

    Example:
      >>> peers_among(("torch", "flax"))("flax,torch"), peers_among(())("none")
      (('flax', 'torch'), ())
    """

    def peers(text: str) -> tuple[str, ...]:
        names = () if text == "none" else tuple(text.split(","))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"{unknown[0]!r} is not known; known are none, {', '.join(known)}"
            )
        return names

    return peers


def require_installed(
    parser: argparse.ArgumentParser,
    names: Iterable[str],
    needed: Mapping[str, Iterable[str]],
) -> None:
    """Ends the program where a peer is asked for that is not there.

    Args:
      parser: says so.
      names: of the peers.
      needed: the modules of each.
    """
    for name in names:
        missing = [module for module in needed[name] if not find_spec(module)]
        if missing:
            parser.error(
                f"--peer={name} needs {' and '.join(missing)}. Run `pip install "
                "'t2t-jax[bench]'`, or say --peer=none."
            )


def require_cpu_for_marian(
    parser: argparse.ArgumentParser, options: argparse.Namespace
) -> None:
    """Ends the program where Marian would have to compute on a GPU."""
    if "marian" in options.peer and options.device != "cpu":
        parser.error(
            f"--peer=marian computes on a CPU, not with --device={options.device}. "
            "Leave one of them out."
        )


def positive(text: str) -> int:
    """Reads a whole number of at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} must be at least 1")
    return number
