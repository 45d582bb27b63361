import re

from t2t_jax.data.trees.drawing import draw_tree
from tests.data.trees.sample import GOLD


def test_every_constituent_and_word_has_a_line_in_order():
    for tree in GOLD:
        lines = [re.sub("^[ │├└─]*", "", line) for line in draw_tree(tree).split("\n")]
        brackets = re.findall(r"[^() ]+(?: [^() ]+(?=\)))?", str(tree))
        assert lines == brackets
