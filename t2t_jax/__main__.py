"""Runs the command line: `python -m t2t_jax`."""

from __future__ import annotations

from t2t_jax.main import cli_entry_point

if __name__ == "__main__":
    cli_entry_point()
