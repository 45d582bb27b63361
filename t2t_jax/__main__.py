"""Runs the command line: `python -m t2t_jax`."""

from __future__ import annotations

from t2t_jax.main import console

if __name__ == "__main__":
    console()
