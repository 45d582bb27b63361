"""Real models and text, where the machine has them."""

import os
from pathlib import Path

import pytest


def real_file(name):
    """Returns the path of a file in the folder of test data; skips without it."""
    folder = os.environ.get("T2T_JAX_TEST_DATA")
    if not folder:
        pytest.skip("T2T_JAX_TEST_DATA does not name a folder of test data")
    path = Path(folder) / name
    if not path.exists():
        pytest.skip(f"T2T_JAX_TEST_DATA has no {name}")
    return path
