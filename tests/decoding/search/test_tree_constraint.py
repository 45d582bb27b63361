import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.data.trees.linearization import delinearize
from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.decoding.search.tree_constraint import tree_constraint
from t2t_jax.errors import DataError
from tests.decoding.models import (
    EOS,
    outputs,
    recurrent,
    require_best,
    score_of,
    search,
)

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
SMALL = [*SPECIAL, "(A", ")A", "(B", ")B", "XX"]
PIECES = [*SPECIAL, *"(S )S (NP )NP NN (VP )VP VB (X )Y <u>".split()]


def is_tree(tokens, pieces, num_words):
    try:
        delinearize([pieces[token] for token in tokens], ["w"] * num_words)
    except ValueError:
        return False
    return True


def all_trees(pieces, num_words, limit):
    """Every sequence of symbols that is a tree and has an eos before the limit."""
    found, begun = [], [()]
    while begun:
        begun = [(*tokens, n) for tokens in begun for n in range(4, len(pieces))]
        begun = [tokens for tokens in begun if _may_go_on(tokens, pieces, num_words)]
        begun = [tokens for tokens in begun if len(tokens) < limit]
        found += [tokens for tokens in begun if is_tree(tokens, pieces, num_words)]
    return found


def _may_go_on(tokens, pieces, num_words):
    """Whether the symbols begin a tree: bounds that no tree breaks."""
    symbols = [pieces[token] for token in tokens]
    depth = sum((s[0] == "(") - (s[0] == ")") for s in symbols)
    held = sum(s[0] not in "()" for s in symbols)
    return symbols[0][0] == "(" and 0 <= depth and held <= num_words


def test_with_enough_beams_the_search_finds_the_best_of_all_trees():
    num_words, limit, source = 2, 8, (4, 5, EOS)
    assert len(all_trees(SMALL, num_words, 6)) == 2  # (A XX XX )A, and B
    trees = [(*tokens, EOS) for tokens in all_trees(SMALL, num_words, limit)]
    assert len(trees) > 10
    for seed in range(2):
        model = recurrent(seed, len(SMALL))
        sizes = {"beam_size": 64, "n_best": 4, "max_extra_tokens": limit - 2}
        rows = jnp.asarray([num_words])
        rule = {"constraint": tree_constraint(SMALL), "constraint_rows": rows}
        given = model, jnp.asarray([source])
        result = search(*given, length_penalty=1.0, **sizes, **rule)
        scores = {tree: score_of(model, source, tree, alpha=1.0) for tree in trees}
        best = sorted(scores, key=lambda tree: -scores[tree])
        require_best(result, {tree: scores[tree] for tree in best}, count=4)


@pytest.mark.parametrize(
    ("beam_rule", "beam_size", "extra"),
    [("fixed", 1, 3), ("fixed", 4, 4), ("shrinking", 3, 17)],
)
def test_every_output_is_a_tree_over_exactly_the_words(beam_rule, beam_size, extra):
    rng = np.random.default_rng(extra)
    num_words = rng.integers(1, 10, 300)
    source = np.where(
        np.arange(9)[None] < num_words[:, None], rng.integers(4, 15, (300, 9)), 0
    )
    for seed in range(3):
        model = recurrent(seed, len(PIECES), eos_bias=seed - 1.0)
        sizes = {"beam_size": beam_size, "beam_rule": beam_rule}
        rule = {"constraint": tree_constraint(PIECES), "constraint_rows": num_words}
        result = search(model, source, max_extra_tokens=extra, **sizes, **rule)
        assert np.asarray(result.finished_BxW).all()
        for (tokens, *_), number in zip(outputs(result), num_words, strict=True):
            assert tokens[-1] == EOS
            assert is_tree(tokens[:-1], PIECES, number)


def test_a_tree_is_no_deeper_than_the_constraint_has_room_for():
    model = recurrent(0, len(SMALL))
    # Opening is all that the model likes.
    model = model.replace(bias=model.bias.at[4].set(50.0))
    rule = tree_constraint(SMALL, max_depth=3)
    result = chunked_search(
        model,
        np.asarray([[8, 8, EOS]]),
        max_extra_tokens=60,
        search_params=BeamParams(beam_size=2),
        constraint=rule,
        constraint_rows=np.asarray([2]),
    )
    tokens = outputs(result)[0][0]
    assert is_tree(tokens[:-1], SMALL, 2)
    assert tokens[:4] == (4, 4, 4, 8)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (["▁(S", "▁)S", "▁XX"], "be one symbol of a tree, .* has parts of symbols, "),
        (["(", "S", "XX"], r"has parts of symbols, such as '\('; "),
        (["(S", ")NP", "XX"], "it has 0 labels that open and close constituents"),
        (["(S", ")S"], "and 0 symbols of words"),
    ],
)
def test_a_vocabulary_without_symbols_of_trees_is_refused(pieces, message):
    with pytest.raises(DataError, match=message):
        tree_constraint([*SPECIAL, *pieces])
