"""Small deterministic models to search, and a slow search to compare with."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.decoding.search.beam_search import beam_search
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.types import StepModel

PAD, BOS, EOS, UNK = 0, 1, 2, 3


class Lattice(NamedTuple):
    """A drawn tree: logits depend on the whole prefix, which only the cache knows.

    `logits` [P, V] says what comes after each of P nodes, `next_node` [P, V] where a
    token leads; node 0 is the root, the last node stands for all undrawn ones.
    The last token given to `step` moves the node, so a cache that was not reordered
    with its beam leads elsewhere.
    """

    logits: jax.Array
    next_node: jax.Array

    def encode(self, source_BxS):
        return source_BxS

    def init_cache(self, memory, num_beams, length):
        return {"node": jnp.full((memory.shape[0], num_beams), -1, jnp.int32)}

    def step(self, tokens_BxW, memory, cache, position):
        node = cache["node"]
        moved = self.next_node[jnp.maximum(node, 0), tokens_BxW]
        node = jnp.where(node < 0, 0, moved)
        return self.logits[node], {"node": node}

    def reorder(self, cache, parents_BxW):
        return {"node": jnp.take_along_axis(cache["node"], parents_BxW, axis=1)}

    def grow(self, cache, length):
        return cache


def lattice(tree: dict[tuple[int, ...], dict[int, float]], vocabulary: int) -> Lattice:
    """Draws {prefix: {token: probability}}; an undrawn prefix ends for certain."""
    nodes = {prefix: number for number, prefix in enumerate(sorted(tree, key=len))}
    probability = np.zeros((len(nodes) + 1, vocabulary))
    next_node = np.full((len(nodes) + 1, vocabulary), len(nodes), np.int32)
    probability[-1, EOS] = 1.0
    for prefix, number in nodes.items():
        for token, value in tree[prefix].items():
            probability[number, token] = value
            next_node[number, token] = nodes.get((*prefix, token), len(nodes))
    with np.errstate(divide="ignore"):
        logits = np.log(probability).astype(np.float32)
    return Lattice(jnp.asarray(logits), jnp.asarray(next_node))


class Recurrent(flax.struct.PyTreeNode):
    """A tiny random RNN that reads its source and writes its history into a cache.

    The history has a length axis that `grow` extends, and `step` reads it all.
    """

    embedding: jax.Array
    mix: jax.Array
    out: jax.Array
    bias: jax.Array
    # JAX 0.10 finds two pytrees of the same fields equal whatever their classes are,
    # and now and then takes a program that was compiled for the other one.
    kind: str = flax.struct.field(pytree_node=False, default="")

    def __post_init__(self):
        object.__setattr__(self, "kind", type(self).__qualname__)

    def encode(self, source_BxS):
        read = source_BxS != PAD
        reading = jnp.where(read[..., None], self.embedding[source_BxS], 0.0)
        slots = jnp.arange(1, source_BxS.shape[1] + 1, dtype=jnp.float32)
        return jnp.einsum("bsd,s->bd", reading, jnp.cos(slots))

    def init_cache(self, memory, num_beams, length):
        rows, width = memory.shape
        return jnp.zeros((rows, num_beams, length, width))

    def step(self, tokens_BxW, memory, cache, position):
        entry = jnp.tanh(self.embedding[tokens_BxW] + memory[:, None])
        cache = cache.at[:, :, position].set(entry)
        slots = jnp.arange(cache.shape[2])
        weights = jnp.where(slots <= position, 0.7 ** (position - slots), 0.0)
        state = jnp.tanh(jnp.einsum("bwld,l,de->bwe", cache, weights, self.mix))
        return state @ self.out + self.bias[None, None], cache

    def reorder(self, cache, parents_BxW):
        return jnp.take_along_axis(cache, parents_BxW[:, :, None, None], axis=1)

    def grow(self, cache, length):
        return jnp.pad(cache, [(0, 0), (0, 0), (0, length - cache.shape[2]), (0, 0)])


def recurrent(seed: int, vocabulary: int, *, eos_bias: float = 0.0) -> Recurrent:
    keys = jax.random.split(jax.random.key(seed), 3)
    width = 5
    return Recurrent(
        embedding=jax.random.normal(keys[0], (vocabulary, width)),
        mix=jax.random.normal(keys[1], (width, width)),
        out=2.0 * jax.random.normal(keys[2], (width, vocabulary)),
        bias=jnp.zeros(vocabulary).at[EOS].set(eos_bias),
    )


search_program = jax.jit(
    beam_search, static_argnames=("params", "max_extra_tokens", "max_length")
)


class Biased(flax.struct.PyTreeNode):
    """A model that likes or dislikes some tokens, whatever it has read."""

    model: StepModel
    bias_V: jax.Array

    def encode(self, source_BxS):
        return self.model.encode(source_BxS)

    def init_cache(self, memory, num_beams, length):
        return self.model.init_cache(memory, num_beams, length)

    def step(self, tokens_BxW, memory, cache, position):
        logits_BxWxV, cache = self.model.step(tokens_BxW, memory, cache, position)
        return logits_BxWxV + self.bias_V[None, None], cache

    def reorder(self, cache, parents_BxW):
        return self.model.reorder(cache, parents_BxW)

    def grow(self, cache, length):
        return self.model.grow(cache, length)


def plain_search(model, source, *, run=beam_search, **options):
    """`beam_search` with the fields of its parameters among the options."""
    names = BeamParams.__dataclass_fields__.keys() & options.keys()
    params = BeamParams(**{name: options.pop(name) for name in names})
    return run(model, source, params=params, **options)


def search(model, source, **options):
    """The same, compiled."""
    return plain_search(model, source, run=search_program, **options)


def outputs(result) -> list[list[tuple[int, ...]]]:
    """The tokens of all outputs of each sentence, eos included."""
    lengths = np.asarray(result.lengths_BxW).tolist()
    return [
        [tuple(row[:n]) for row, n in zip(rows, sizes, strict=True)]
        for rows, sizes in zip(
            np.asarray(result.tokens_BxWxT).tolist(), lengths, strict=True
        )
    ]


def best(result, sentence=0, rank=0) -> tuple[int, ...]:
    """The tokens of one output of a search, eos included."""
    return outputs(result)[sentence][rank]


def penalty(n: int, alpha: float, normalization: str = "paper") -> float:
    return (n if normalization == "power" else (5 + n) / 6) ** alpha


@jax.jit
def _next(model, tokens_1xP, memory, cache, position):
    logits_1xPxV, cache = model.step(tokens_1xP, memory, cache, position)
    return jax.nn.log_softmax(logits_1xPxV[0]), cache


def next_log_probabilities(model, source, prefixes) -> np.ndarray:
    """[P, V] what comes after P prefixes of equal length: P beams, never reordered."""
    memory = model.encode(jnp.asarray([source]))
    length = len(prefixes[0])
    # One room for all lengths: fewer shapes to compile.
    cache = model.init_cache(memory, len(prefixes), 16)
    read = np.array([(BOS, *prefix) for prefix in prefixes])
    for position in range(length + 1):
        logs_PxV, cache = _next(model, read[None, :, position], memory, cache, position)
    return np.asarray(logs_PxV, np.float64)


def exhaustive_search(model, source, *, limit: int, alpha: float, normalization):
    """All finished outputs {tokens: score}, the best first, tried one by one."""
    words = range(UNK, model.bias.shape[0])
    totals, finished = {(): 0.0}, {}
    for n in range(1, limit + 1):
        prefixes = list(itertools.product(words, repeat=n - 1))
        for prefix, gains in zip(
            prefixes, next_log_probabilities(model, source, prefixes), strict=True
        ):
            total = totals[prefix] + gains[EOS]
            finished[(*prefix, EOS)] = total / penalty(n, alpha, normalization)
            for word in words:
                totals[(*prefix, word)] = totals[prefix] + gains[word]
    return dict(sorted(finished.items(), key=lambda item: -item[1]))


def score_of(model, source, tokens, *, alpha) -> float:
    """The model's own log-probability of an output by the penalty of its length."""
    total = sum(
        next_log_probabilities(model, source, [tokens[:n]])[0, token]
        for n, token in enumerate(tokens)
    )
    return total / penalty(len(tokens), alpha)


def require_best(result, truth, *, count):
    """The n best outputs of a search are the first of {tokens: score}."""
    expected = list(truth.items())[:count]
    np.testing.assert_equal(outputs(result)[0], [tokens for tokens, _ in expected])
    # float32 sums of at most 8 logarithms
    scores = [score for _, score in expected]
    np.testing.assert_allclose(result.scores_BxW[0], scores, rtol=1e-5)


def require_exhaustive(
    model, *, limit, beams, alpha, normalization="paper", holds=bool, **constraint
):
    """With enough beams the three best outputs that hold are those of trying all."""
    source = (4, 5, EOS)
    sizes = {"beam_size": beams, "max_extra_tokens": limit - 2, "n_best": 3}
    rules = {"length_penalty": alpha, "length_normalization": normalization}
    result = search(model, jnp.asarray([source]), **sizes, **rules, **constraint)
    rules = {"alpha": alpha, "normalization": normalization}
    truth = exhaustive_search(model, source, limit=limit, **rules)
    held = {tokens: score for tokens, score in truth.items() if holds(tokens)}
    require_best(result, held, count=3)


def _continuations(model, source, living, *, never):
    """All [(tokens, log-probability)] one token longer, the best first."""
    gains = next_log_probabilities(model, source, [prefix for prefix, _ in living])
    found = [
        ((*prefix, token), total + gains[beam, token])
        for beam, (prefix, total) in enumerate(living)
        for token in range(gains.shape[1])
        if token not in never
    ]
    return sorted(found, key=lambda candidate: -candidate[1])


def slow_beam_search(
    model, source, *, beams: int, limit: int, alpha: float, normalization="paper"
):
    """The rules of the search on Python lists: ((tokens), score, finished)."""
    living, finished = [((), 0.0)], []
    for n in range(1, limit + 1):
        candidates = _continuations(model, source, living, never=(PAD, BOS))
        for tokens, total in candidates[: 2 * beams]:
            if tokens[-1] == EOS:
                finished.append((tokens, total / penalty(n, alpha, normalization)))
        finished = sorted(finished, key=lambda item: -item[1])[:beams]
        others = [item for item in candidates[: 2 * beams] if item[0][-1] != EOS]
        living = others[:beams]
        bound = living[0][1] / penalty(limit, alpha, normalization)
        if finished and finished[0][1] >= bound:
            break
    if finished:
        return *finished[0], True
    tokens, total = living[0]
    return tokens, total / penalty(len(tokens), alpha, normalization), False


def slow_shrinking_search(
    model, source, *, beams: int, limit: int, alpha: float, never=(PAD, BOS)
):
    """The rules of Marian's search on lists: [(tokens, score, ended)], best first."""
    living, done = [((), 0.0)], []
    for n in range(1, limit + 1):
        width = beams - len(done)
        taken = _continuations(model, source, living, never=never)[:width]
        living = [item for item in taken if item[0][-1] != EOS]
        done += [
            (tokens, total / n**alpha, tokens[-1] == EOS)
            for tokens, total in taken
            if tokens[-1] == EOS or n == limit
        ]
        if not living:
            break
    return sorted(done, key=lambda item: -item[1])
