"""A translator of a dozen words, whose models say what can be told in advance."""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.translator import Translator
from tests.decoding.models import EOS, PAD, UNK, Recurrent, recurrent

WORDS = "der die das Haus Hund Katze geht schläft rot und nicht 🙂 heute".split()
V = 4 + len(WORDS)
CONFIG = DecodingConfig(
    beam_size=3, max_extra_tokens=5, max_source_length=16, tokens_per_batch=84
)


class Untagged:
    """A vocabulary without tags of languages."""

    tags: Mapping[str, int] = {}
    reads_source = False
    split_tags = Vocabulary.split_tags
    encode_sources = Vocabulary.encode_sources


class WordVocabulary(Untagged):
    """One id per word, as far as it knows them; zero-width spaces are no words."""

    size = V

    def encode(self, lines):
        known = {word: number for number, word in enumerate(WORDS, start=4)}
        words = (line.replace("\u200b", "").split() for line in lines)
        return [[known.get(word, UNK) for word in line] for line in words]

    def decode(self, sequences):
        assert not any({PAD, 1, EOS} & set(sequence) for sequence in sequences)
        return [
            " ".join(["?", *WORDS][token - UNK] for token in sequence)
            for sequence in sequences
        ]

    def pieces(self, ids):
        return [["<pad>", "<s>", "</s>", "?", *WORDS][token] for token in ids]


class Numbers(Untagged):
    """Text is ids already: "7 11" is [7, 11]."""

    def __init__(self, size=29):
        self.size = size

    def encode(self, lines):
        return [[int(word) for word in line.split()] for line in lines]

    def decode(self, sequences):
        return [" ".join(map(str, sequence)) for sequence in sequences]

    def pieces(self, ids):
        names = ["<pad>", "<s>", "</s>", "<unk>"]
        return [names[n] if n < len(names) else f"<{n}>" for n in ids]


def numbers(count, *, least=0, longest=15, seed=0):
    """Draws lines of ids."""
    random = np.random.default_rng(seed)
    counts = random.integers(least, longest + 1, count)
    return [" ".join(map(str, random.integers(3, 29, size))) for size in counts]


class Echo(Recurrent):
    """Says its source again, then eos: a translation that can be told in advance."""

    def encode(self, source_BxS):
        return jax.nn.one_hot(source_BxS, V)

    def init_cache(self, memory, num_beams, length):
        return ()

    def step(self, tokens_BxW, memory, cache, position):
        said_BxV = jax.lax.dynamic_index_in_dim(memory, position, 1, keepdims=False)
        logits_Bx1xV = 30.0 * said_BxV[:, None]
        return jnp.broadcast_to(logits_Bx1xV, (*tokens_BxW.shape, V)), cache

    def reorder(self, cache, parents_BxW):
        return cache

    def grow(self, cache, length):
        return cache


ECHO = Echo(*jax.tree.leaves(recurrent(0, V)))


def translator(model=ECHO, **changes):
    words = VocabularyPair(WordVocabulary(), WordVocabulary())
    return Translator(model, words, dataclasses.replace(CONFIG, **changes))


def sentences(number, seed=0):
    random = np.random.default_rng(seed)
    return [
        " ".join(random.choice(WORDS, random.integers(1, 15))) for _ in range(number)
    ]


class Counted(Recurrent):
    """Counts how often it is compiled."""

    times = []  # noqa: RUF012 (shared on purpose)

    def step(self, tokens_BxW, memory, cache, position):
        Counted.times.append(tokens_BxW.shape)
        return super().step(tokens_BxW, memory, cache, position)
