import itertools
import re

from t2t_jax.data.trees.drawing import draw_tree, lay_out
from tests.data.trees.sample import GOLD


def test_every_constituent_and_word_has_a_line_in_order():
    for tree in GOLD:
        lines = [re.sub("^[ │├└─]*", "", line) for line in draw_tree(tree).split("\n")]
        brackets = re.findall(r"[^() ]+(?: [^() ]+(?=\)))?", str(tree))
        assert lines == brackets


def test_words_stand_side_by_side_and_labels_over_their_words():
    for tree in GOLD:
        nodes = lay_out(tree)
        words = [node for node in nodes if node.is_word]
        assert [node.text for node in words] == tree.words()
        assert len({node.level for node in words}) == 1
        for left, right in itertools.pairwise(words):
            assert right.x - left.x >= (len(left.text) + len(right.text)) / 2 + 2
        for node in nodes[1:]:
            parent = nodes[node.parent]
            assert parent.level < node.level
            assert parent.start <= node.start < node.end <= parent.end
            assert words[node.start].x <= node.x <= words[node.end - 1].x
