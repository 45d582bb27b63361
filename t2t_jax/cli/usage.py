"""The text of `--help`: every mode, flag and key, and what each is for."""

from __future__ import annotations

from t2t_jax.cli.modes import MODES
from t2t_jax.cli.options import FLAGS
from t2t_jax.config import defaults

_USAGE = """\
Train, evaluate and run translation Transformers ("Attention Is All You Need").

  python -m t2t_jax.main [--config=FILE.py] [--workdir=DIR] [--mode=MODE]
                         [--config.KEY=VALUE …]

With no argument it trains the embedded English-German experiment. Modes:
"""


def usage() -> str:
    """Returns what `--help` prints."""
    modes = "\n".join(f"  {name:<10} {does}" for name, does in MODES.items())
    described = "\n".join(f"  --{name:<20} {flag.help}" for name, flag in FLAGS.items())
    names = "\n".join(f"  --config.{key}={v!r}" for key, v in defaults().items())
    return (
        f"{_USAGE}{modes}\n\nFlags:\n  --config               The experiment, a Python "
        f"file; FILE.py:ROW where it has rows.\n{described}\n\nKeys of the "
        f"configuration, with the paper's base model as default:\n{names}\n"
    )
