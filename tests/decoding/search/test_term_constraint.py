import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.search.term_constraint import TermConstraint, term_rows
from tests.decoding.models import (
    EOS,
    PAD,
    outputs,
    recurrent,
    require_exhaustive,
    search,
)

V = 23
ADVANCE = jax.jit(lambda rule, state, rows, x: rule.advance(state, rows, tokens_BxW=x))


def words(size, *, joins=(), goes_on=()):
    """The constraint of a vocabulary where these tokens are parts of words."""
    numbers = jnp.arange(size)
    return TermConstraint(
        joins_V=jnp.isin(numbers, jnp.asarray([*joins, -1])),
        goes_on_V=jnp.isin(numbers, jnp.asarray([*goes_on, -1])),
    )


def holds(tokens, term):
    size = len(term)
    return any(
        tuple(tokens[n : n + size]) == tuple(term)
        for n in range(len(tokens) - size + 1)
    )


def follow(rule, rows, tokens):
    """The states after each of the tokens, of one hypothesis."""
    state = rule.init(rows, limits_B=jnp.asarray([99]), num_beams=1)
    for token in tokens:
        state = ADVANCE(rule, state, rows, np.asarray([[token]]))
        yield state


def progress(rule, terms, tokens, **options):
    rows = jax.tree.map(jnp.asarray, term_rows([terms], **options))
    return [rule.banks(state, rows).item() for state in follow(rule, rows, tokens)]


def test_a_term_that_is_not_continued_begins_again_where_it_can():
    rule = words(V)
    assert progress(rule, [(4, 4, 5)], [4, 4, 4, 5, 4]) == [1, 2, 2, 3, 3]
    assert progress(rule, [(4, 5, 4, 6)], [4, 5, 4, 5, 4, 6]) == [1, 2, 3, 2, 3, 4]
    assert progress(rule, [(4, 5)], [4, 7, 5, 4, 5]) == [1, 0, 0, 1, 2]


def test_of_terms_that_begin_alike_one_counts_at_a_time():
    rule = words(V)
    assert progress(rule, [(4, 5), (4, 6)], [4, 5, 4, 6]) == [1, 2, 3, 4]
    # Terms may share tokens.
    assert progress(rule, [(4, 5), (5, 6)], [4, 5, 6]) == [1, 3, 4]


def test_a_word_that_goes_on_is_not_the_term():
    ends = {"ends_word": [[True]]}
    before = words(V, joins=[9])  # as SentencePiece: what joins is not marked
    assert progress(before, [(4, 5)], [4, 5, 9, 4, 5, 8], **ends) == [1, 2, 0, 1, 2, 2]
    # A term that does not end with a word may be followed by anything.
    assert progress(before, [(4, 5)], [4, 5, 9]) == [1, 2, 2]
    after = words(V, goes_on=[8])  # as subword-nmt: 8 is the first part of a word
    assert progress(after, [(4, 5)], [8, 4, 5, 4, 5], **ends) == [0, 0, 0, 1, 2]


def test_what_was_there_once_stays():
    rule = words(V, joins=[9])
    terms = {"ends_word": [[True, True]]}
    assert progress(rule, [(4,), (5,)], [4, 7, 4, 9, 5], **terms) == [1, 1, 1, 1, 2]


def test_with_enough_beams_the_search_is_exhaustive_under_its_terms():
    for seed, terms in enumerate([[(4, 5)], [(5,), (4, 4)], [(3, 4), (4, 5)]]):
        require_exhaustive(
            recurrent(seed, 6, eos_bias=seed - 1.0),
            limit=5,
            beams=2 * 3**4,
            alpha=1.0,
            holds=lambda tokens, terms=terms: all(holds(tokens, one) for one in terms),
            constraint=words(6),
            constraint_rows=term_rows([terms], count=2, length=2),
        )


def random_terms(rng, sentences):
    """One to three terms of one to four tokens for each, with many alike."""
    return [
        [
            tuple(rng.integers(4, 10, rng.integers(1, 5)).tolist())
            for _ in range(rng.integers(1, 4))
        ]
        for _ in range(sentences)
    ]


@pytest.mark.parametrize(
    ("beam_rule", "beam_size"), [("fixed", 1), ("fixed", 4), ("shrinking", 5)]
)
def test_500_lines_hold_all_their_terms(beam_rule, beam_size):
    rng = np.random.default_rng(beam_size)
    source = rng.integers(3, V, (500, 7))
    terms = random_terms(rng, 500)
    result = search(
        recurrent(beam_size, V, eos_bias=1.0),
        jnp.asarray(source),
        beam_size=beam_size,
        beam_rule=beam_rule,
        max_extra_tokens=13,
        constraint=words(V),
        constraint_rows=term_rows(terms, count=3, length=4),
    )
    for sentence, wanted in zip(outputs(result), terms, strict=True):
        assert all(holds(sentence[0], term) for term in wanted)


def test_a_line_without_terms_is_translated_as_without_a_constraint():
    model = recurrent(3, V, eos_bias=1.0)
    source = jnp.asarray([[4, EOS, PAD, PAD], [5, 6, 7, EOS], [9, 6, EOS, PAD]])
    free = search(model, source, n_best=3)
    rule = {"constraint": words(V), "constraint_rows": term_rows([[], [(20, 21)], []])}
    mixed = search(model, source, n_best=3, **rule)
    for row in (0, 2):
        assert outputs(mixed)[row] == outputs(free)[row]
        np.testing.assert_array_equal(mixed.scores_BxW[row], free.scores_BxW[row])
    assert holds(outputs(mixed)[1][0], (20, 21))
