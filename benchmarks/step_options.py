"""What `train_step.py` can be asked for: its flags, and the sizes and peers it has."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec

from t2t_jax.data.config import LAYOUTS
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

PEERS = {"hf_marian": ("torch", "transformers"), "torch": ("torch",)}
"""What has to be installed for each peer."""


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
    add("--peer", type=_peers, default="hf_marian", help=f"none, or {','.join(PEERS)}")
    add("--compile_peer", action="store_true", help="peers through torch.compile")
    add("--pairs", type=_positive, help="of a batch")
    add("--length", type=_positive, help="tokens of each side of a pair")
    add("--vocabulary", type=_positive, help="subwords, if not as many as the size has")
    add("--threads", type=_positive, default=2, help="of a CPU, for each contestant")
    add("--rounds", type=_positive, default=5)
    add("--seconds", type=float, default=5.0, help="of each contestant in a round")
    add("--steps", type=int, default=0, help="of a round, instead of --seconds")
    add("--peak_tflops", type=float, default=0.0, help="of the device")
    add("--components", action="store_true", help="parts of our step and their floors")
    add("--real", default="", help="train on a corpus, such as text:a.en,a.de")
    add("--tokens", type=_positive, default=2048, help="slots of --real's batches")
    add("--layout", choices=LAYOUTS, default="packed", help="of our --real batches")
    add("--row_length", type=_positive, default=64, help="of our packed rows")
    add("--json", action="store_true")
    options = parser.parse_args(argv)
    shape = GPU_SHAPE if options.device == "gpu" else SHAPES[options.size]
    options.pairs = options.pairs or shape[0]
    options.length = options.length or shape[1]
    options.vocabulary = options.vocabulary or SIZES[options.size].vocab_size
    for name in options.peer:
        missing = [module for module in PEERS[name] if not find_spec(module)]
        if missing:
            parser.error(
                f"--peer={name} needs {' and '.join(missing)}. Run `pip install -e "
                "'.[bench]'`, or say --peer=none."
            )
    return options


def _peers(text: str) -> tuple[str, ...]:
    names = () if text == "none" else tuple(text.split(","))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r} is not known; known are none, {', '.join(PEERS)}"
        )
    return names


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} must be at least 1")
    return number
