"""Modified pairs are a function of seed, epoch and pair, as many as their rates say.

Seen to fail: with the epoch left out of the random bits, with pairs numbered within a
chunk, with the same bits for all modifiers, with an item put into one side only.
"""

import re
import threading
from concurrent.futures import CancelledError
from random import Random

import numpy as np
import pytest

from t2t_jax.data.batching import modified_pairs, packing, sampled_epochs
from t2t_jax.data.batching.modified_pairs import ModifiedPairs
from t2t_jax.data.batching.modifiers import ITEMS, modify
from t2t_jax.data.batching.pipeline import batches, train_stream
from t2t_jax.data.batching.sampled_epochs import SampledEpochs
from t2t_jax.data.config import MODIFIERS, DataConfig, VocabularyConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.token_cache.token_cache import build_or_open
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import ConfigError
from t2t_jax.types import UNK, BatchShard
from tests.data.batching.test_pipeline import equal, pairs_of
from tests.data.conftest import ENGLISH, GERMAN, sentences

PAIRS = 700
ALL = ",".join(f"{name}:0.3" for name in MODIFIERS)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Files, and a vocabulary with a piece for each byte and the tags de and en."""
    home, lines = tmp_path_factory.mktemp("modified"), []
    for side, words in (("en", ENGLISH), ("de", GERMAN)):
        own = [f"{line.capitalize()}." for line in sentences(words, PAIRS, seed=4)]
        own[:3] = words[:3]
        (home / side).write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
        lines += own
    how = {"config": VocabularyConfig(byte_fallback=True)}
    vocabulary = Vocabulary.train(lines, 340, target_languages=["de", "en"], **how)
    return f"text:{home / 'en'},{home / 'de'}", VocabularyPair(vocabulary, vocabulary)


@pytest.fixture
def make(text, tmp_path):
    def made(modifiers=ALL, languages="", **keys):
        keys = {"row_length": 131, "max_length": 131, **keys}
        config = DataConfig(tokens_per_batch=7 * 131, modifiers=modifiers, **keys)
        spec, vocabularies = text
        cache = build_or_open(
            open_corpus(spec + languages), vocabularies, config=config
        )

        def epochs(seed=5):
            how = {"config": config, "seed": seed, "log": lambda line: None}
            return SampledEpochs(cache, vocabularies, **how)

        return cache, config, epochs

    return made


def texts(cache, vocabularies):
    """Returns the pairs of a cache as text, and the first id of each source."""
    ids = [*zip(*pairs_of(cache), strict=True)]
    pairs = zip(*map(vocabularies.target.decode, ids), strict=True)
    return [*pairs], [one[0] for one in ids[0]]


def test_an_epoch_is_the_same_in_other_chunks_and_no_other_epoch(make, monkeypatch):
    _, _, epochs = make()
    once = epochs().sample(3)
    monkeypatch.setattr(sampled_epochs, "CHUNK_PAIRS", 17)
    again, *others = epochs().sample(3), epochs().sample(2), epochs(6).sample(3)
    for side in ("source", "target"):
        one, other = getattr(once, side), getattr(again, side)
        assert np.array_equal(one.tokens, other.tokens)
        assert np.array_equal(one.offsets, other.offsets)
        for different in others:
            assert not np.array_equal(one.tokens, getattr(different, side).tokens)


@pytest.mark.parametrize(
    ("layout", "dropout"), [("packed", 0.1), ("length_buckets", 0.0)]
)
def test_two_processes_and_a_resumed_one_have_the_same_bits(
    make, monkeypatch, layout, dropout
):
    monkeypatch.setattr(packing, "WINDOW_PAIRS", 53)
    cache, config, epochs = make(layout=layout, target_bpe_dropout=dropout)

    def stream(**keys):
        keys = {"row_multiple": 2, "tokens": epochs(), **keys}
        return train_stream(cache, config, seed=5, **keys)

    with stream() as whole:
        found = [next(whole)]
        while found[-1][0].epoch < 1 or found[-1][0].batch < 4:
            found.append(next(whole))
    shards = [BatchShard(index=index, count=2) for index in (0, 1)]
    with stream(share=shards[0]) as one, stream(share=shards[1]) as two:
        for (after, batch), (_, first), (_, second) in zip(
            found, one, two, strict=False
        ):
            joined = map(np.concatenate, zip(first, second, strict=True))
            assert all(map(np.array_equal, joined, batch)), after
    middle = len(found) // 3
    for stop in (middle, len(found) - 3):  # in the first epoch, and in the second
        with stream(start=found[stop][0]) as again:
            for (after, batch), (position, other) in zip(
                found[stop + 1 :], again, strict=False
            ):
                assert after == position
                assert equal(batch, other)


def test_python_waits_at_its_end_for_the_thread_which_stops(make, monkeypatch):
    tokens = make()[2]()
    tokens.open(0)  # With a daemon thread the process was aborted in SentencePiece.
    assert not any(one.daemon for one in threading.enumerate() if "sampled" in one.name)
    monkeypatch.setattr(threading, "main_thread", threading.Thread)
    with pytest.raises(CancelledError):
        tokens.sample(1)
    tokens.close()


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0])
def test_a_share_of_the_pairs_is_modified(make, text, rate):
    (cache, _, epochs), vocabularies = make(f"upper:{rate},urls:{rate}"), text[1]
    pairs = [pair for n in range(3) for pair in texts(epochs().sample(n), text[1])[0]]
    upper = [re.sub(r"https\S+", "", one).isupper() for _, one in pairs]
    urls = ["https://" in one for one, _ in pairs]
    both = [a and b for a, b in zip(upper, urls, strict=True)]
    plain, _ = texts(cache, vocabularies)
    assert not any(one.isupper() or "https" in one for _, one in plain)
    for share, drawn in ((rate, upper), (rate, urls), (rate * rate, both)):
        # Six standard deviations of a binomial distribution.
        bound = 6 * (len(pairs) * share * (1 - share)) ** 0.5
        assert abs(sum(drawn) - share * len(pairs)) <= bound
    link = r"https://\w+\.\w+/\w+"
    for source, target in pairs:
        assert re.findall(link, source) == re.findall(link, target)


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_is_in_both_sides_whatever_else_is_done(name):
    for key in range(300):
        names = [name, "no_punctuation", "upper", "typos", "spaces", "double_spaces"]
        source, target = modify(names, "A dog barks.", "Ein Hund bellt.", Random(key))
        item = target.replace("EIN HUND BELLT", "").strip()
        assert item
        assert item in source


@pytest.mark.parametrize("name", MODIFIERS[1:])
def test_what_must_stay_stays(name):
    kept = ("https://x.org/A.b", "Ftp://x.org", "me@x.org", "<Ab1>", ">>de<<")
    source = f"<bt> >>de<< Don't use {' or '.join(kept)} here!"
    target = f"Nicht {' '.join(kept)} nehmen."
    made = {modify([name], source, target, Random(key)) for key in range(50)}
    for one, other in made:
        assert one.startswith("<bt> >>de<< ")
        assert all(word in one and word in other for word in kept)
    only_source = name in ("typos", "spaces", "double_spaces")
    assert {other == target for _, other in made} == {only_source}
    assert all(one.strip() for pair in made for one in pair)
    for blank in (" ", "."):
        assert modify([name], blank, blank, Random(0))[0]


def test_markup_stays_first_on_both_sides_or_on_none():
    pair = "<BT> <b>A dog</b> barks.", "<b>Ein Hund</b> bellt."
    for name in ITEMS:
        for key in range(50):
            source, target = modify([name], *pair, Random(key))
            assert source.startswith("<BT> <b>")
            assert target.startswith("<b>")
            one, other = (
                re.split(r"A dog</b> barks|Ein Hund</b> bellt", side)
                for side in (source.removeprefix("<BT> "), target)
            )
            assert one == other


def test_the_tag_of_a_language_stays_first(make, text):
    cache, _, epochs = make("words:0.5,upper:1,numbers:1", "#en-de,de-en")
    pairs, tags = texts(epochs().sample(0), text[1])
    assert tags == texts(cache, text[1])[1]
    assert len({*tags}) == 2
    known = text[1].source.tags
    for (source, target), tag in zip(pairs, tags, strict=True):
        words = [re.sub(r"[^A-Z]+", " ", one).split() for one in (source, target)]
        german = words[1] if tag == known["de"] else words[0]
        assert {*german} <= {word.upper() for word in GERMAN}


def test_a_target_begins_with_no_tag_of_the_sources_vocabulary(text, encode, tmp_path):
    targets = sentences(GERMAN, 90, seed=4)
    (tmp_path / "text").write_text("".join(f"a dog\t{one}\n" for one in targets))
    (tmp_path / "words").write_text("dog\tHund\n")
    source, words = text[1].source, VocabularyConfig(unit="words")
    both = VocabularyPair(source, Vocabulary.train(targets, 18, config=words))
    config = DataConfig(modifiers="words:1", glossary=f"tsv:{tmp_path}/words")
    cache = encode(f"tsv:{tmp_path}/text", both)
    starts = cache.target.tokens[cache.target.offsets[:-1]]
    assert {*source.tags.values()} & {*starts.tolist()}
    made = ModifiedPairs(cache, both, config=config, seed=5)
    _, (_, lengths) = made.encode(0, cache.num_pairs, 0)
    assert {*lengths.tolist()} == {2}  # one word, and its end


def test_words_come_from_the_corpus_or_a_glossary(make, text, tmp_path, monkeypatch):
    (tmp_path / "terms").write_text("tree house\tBaumhaus\n", encoding="utf-8")
    plain, _ = texts(make()[0], text[1])
    own = {pair for pair in plain if " " not in pair[0] + pair[1]}
    assert 3 < len(own) < 100
    terms = f"tsv:{tmp_path}/terms"
    for glossary, pool in (("", own), (terms, {("tree house", "Baumhaus")})):
        _, _, epochs = make("words:1", glossary=glossary)
        assert {*texts(epochs().sample(0), text[1])[0]} == pool
    (tmp_path / "terms").write_text("\t\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"words needs pairs of words: .*='tsv:"):
        make("words:1", glossary=terms)[2]().sample(0)
    monkeypatch.setattr(modified_pairs, "_MOST_SHORT", 200)  # of both parts evenly
    cache, _, epochs = make("words:1", "#en-de,de-en")
    pairs, tags = texts(epochs().sample(0), text[1])
    assert tags == texts(cache, text[1])[1]
    german = {" ".join(one.split()).casefold() for one in GERMAN}
    for (source, target), tag in zip(pairs, tags, strict=True):
        is_german = target.strip(".").casefold() in german
        assert is_german == (tag == text[1].source.tags["de"]), (source, target)


def test_a_pair_that_would_be_too_long_stays_as_it_is(make):
    cache, _, epochs = make("emails:1", max_length=20)
    epoch = epochs().sample(0)
    same = 0
    for side in ("source", "target"):
        lengths = getattr(epoch, side).lengths
        assert lengths.max() <= 20
        same += (lengths == getattr(cache, side).lengths).sum()
    assert 0 < same < 2 * cache.num_pairs


def test_a_pair_with_an_unknown_word_stays_as_it_is(tmp_path):
    (tmp_path / "a").write_text("a dog barks\na dog 漢 barks\n", encoding="utf-8")
    (tmp_path / "b").write_text("a 漢 dog\na dog\n", encoding="utf-8")
    letters = Vocabulary.train(["a dog barks? A DOG BARKS?"] * 9, 24)
    both = VocabularyPair(letters, letters)
    config = DataConfig(modifiers="upper:1.0")
    for spec, is_same in (("a,{0}/b", True), ("a,{0}/a", False)):
        spec = f"text:{tmp_path}/{spec.format(tmp_path)}"
        cache = build_or_open(open_corpus(spec), both, config=config)
        new = ModifiedPairs(cache, both, config=config, seed=0).encode(0, 2, 0)
        for (tokens, _), side in zip(new, (cache.source, cache.target), strict=True):
            assert np.array_equal(tokens, side.tokens) == is_same
            assert (tokens == UNK).sum() == (side.tokens == UNK).sum()


def test_a_rate_of_0_is_the_same_program(text, tmp_path):
    how = {"tokens_per_batch": 512, "row_length": 64, "workers": 1, "seed": 3}
    found = []
    for modifiers in ("", "upper:0,words:0.0", "upper:0.5"):
        with batches(*text, modifiers=modifiers, cache_dir=tmp_path, **how) as stream:
            found.append([next(stream) for _ in range(9)])
    assert [all(map(equal, found[0], one)) for one in found] == [True, True, False]
    assert not DataConfig(modifiers="upper:0").samples_epochs


@pytest.mark.parametrize(
    ("modifiers", "said"),
    [
        ("uper:0.1", "'uper:0.1'.*known are words, numbers, urls"),
        ("upper", "with a rate from 0 to 1.*'upper'"),
        ("upper:1.1", "'upper:1.1'"),
        ("upper:-0.1", "'upper:-0.1'"),
        ("upper:nan", "'upper:nan'"),
        ("upper:0.1,upper:0.2", "different names.*'upper:0.2'"),
    ],
)
def test_what_is_no_modifier_is_refused(modifiers, said):
    with pytest.raises(ConfigError, match=said):
        DataConfig(modifiers=modifiers)


def test_what_cannot_be_done_is_refused(make, cache, vocabularies, encode, tmp_path):
    def refuse(cache, said, **keys):
        with pytest.raises(ConfigError, match=said):
            ModifiedPairs(cache, vocabularies, config=DataConfig(**keys), seed=0)

    refuse(cache, "lacks pieces for .*byte_fallback", modifiers="emoji:0.1")
    _, _, epochs = make("words:0.1", "#en-de", glossary="phrasebook:dev:3#en-fr")
    with pytest.raises(ConfigError, match="has none in the languages"):
        epochs()
    with pytest.raises(ConfigError, match="requires the modifier words"):
        DataConfig(modifiers="upper:0.1", glossary="tsv:a")
    (tmp_path / "trees").write_text("(S (NP (NN a)) (VP (VB b)))\n" * 3)
    trees = encode(f"trees:{tmp_path}/trees")
    refuse(trees, "the text is trees", modifiers="upper:0.1")
