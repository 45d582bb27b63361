"""The 40 trees that were written for these tests."""

from pathlib import Path

from t2t_jax.data.trees.tree import TreeReader, normalize

SAMPLE = Path(__file__).with_name("sample.mrg")


def sample_trees():
    """The trees as they are in the file."""
    reader, found = TreeReader(), []
    for number, line in enumerate(SAMPLE.read_text("utf-8").splitlines(), start=1):
        found.extend(reader.read(number, line))
    reader.end()
    return found


GOLD = [normalize(tree) for tree in sample_trees()]
"""The trees as a corpus has them."""
