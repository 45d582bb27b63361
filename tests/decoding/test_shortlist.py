"""A search over candidates: what they are, and that it is the same search over them.

Seen to fail: with the union of a batch in the place of each sentence's own candidates;
without prefixes, terms or tags among them; with tags anywhere; without a check of the
vocabulary; without the sum of a target token's probabilities in the model of words.
"""

import dataclasses
import random
from collections import defaultdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.ensemble import EnsembleStepModel
from t2t_jax.decoding.search.beam_search import beam_search
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.decoding.shortlist import (
    Shortlist,
    learn_shortlist,
    lexical_table,
    load_shortlist,
)
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.errors import ConfigError, DataError, InputMissingError, UserError
from t2t_jax.main import main
from t2t_jax.model.architectures import make_module, step_model
from t2t_jax.run.workdir import Workdir
from tests.decoding.models import Biased, outputs
from tests.decoding.words import CONFIG, ECHO, WORDS, V, WordVocabulary, sentences
from tests.exchange.exporting.counting import original
from tests.faults.running import refused
from tests.integration import tiny
from tests.model.tiny import TINY, TINY_RNN, rnn_params, tiny_params

SIZE = dataclasses.replace(TINY, num_layers=1, vocab_size=V)
UNTIED = dataclasses.replace(
    SIZE, tying="none", output_bias=True, source_vocab_size=V, start="eos"
)
TAG = 7
LINES = sentences(20)


class Words(WordVocabulary):
    """Words with a fingerprint, and a tag of a language in the place of one of them."""

    def __init__(self, fingerprint="words", tags=()):
        self.fingerprint, self.tags = fingerprint, dict(tags)


def transformer(config=SIZE, seed=0):
    return step_model(make_module(config), tiny_params(config, seed=seed))


def pair(**more):
    words = Words(**more)
    return VocabularyPair(words, words)


def translator(path, model=None, *, vocabularies=None, **changes):
    config = dataclasses.replace(CONFIG, shortlist=str(path or ""), **changes)
    return Translator(model or transformer(), vocabularies or pair(), config)


def written(path, shortlist, vocabularies=None):
    path.write_bytes(shortlist.to_bytes(vocabularies or pair()))
    return path


def few(seed=3, best=2, always=(0, 1, 2, 3)):
    best_VxK = np.random.default_rng(seed).integers(4, V, (V, best)).astype(np.int32)
    best_VxK[:4] = 0  # special ids have none
    return Shortlist(np.array(always, np.int32), best_VxK, V)


def results(translator, lines=LINES, **more):
    found = translator.translations(lines, **more)
    return [one.text for one in found], [one.log_probability for one in found]


RNN_SIZE = dataclasses.replace(TINY_RNN, num_layers=1, vocab_size=V)
MODELS = {
    "one matrix": lambda: transformer(),
    "three matrices": lambda: transformer(UNTIED),
    "recurrent": lambda: step_model(make_module(RNN_SIZE), rnn_params(RNN_SIZE)),
    "ensemble": lambda: EnsembleStepModel((transformer(), transformer(UNTIED))),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_candidates_of_all_ids_change_nothing(tmp_path, model):
    every = written(tmp_path / "all.npz", few(always=range(V)))
    (texts, scores), (wanted, others) = (
        results(translator(path, model())) for path in (every, None)
    )
    assert texts == wanted
    assert_allclose(scores, others, rtol=1e-5)


def test_tags_are_candidates_that_are_said_only_where_forced(tmp_path):
    tagged = pair(tags={"de": TAG})
    path = written(tmp_path / "tags.npz", few(always=(0, 1, 2, 3, TAG, 4)), tagged)
    every = few(always=(0, 1, 2, 3, TAG, *range(4, TAG), *range(TAG + 1, V)))
    other = written(tmp_path / "all.npz", every, tagged)
    some, all_, none = (
        translator(one, vocabularies=tagged) for one in (path, other, None)
    )
    word, options = WORDS[TAG - 4], {"target_language": "de"}
    assert not any(word in text.split() for text in results(some, **options)[0])
    options["prefixes"] = [f"{word} {word}"] * len(LINES)
    assert results(some, **options)[0][0].startswith(f"{word} {word}")
    (texts, scores), (wanted, others) = (results(o, **options) for o in (all_, none))
    assert texts == wanted
    assert_allclose(scores, others, rtol=1e-5)


class Masked(Biased):
    """The full model, with -inf wherever a sentence has no candidate."""

    best_VxK: jax.Array

    def encode(self, source_BxS):
        allowed_BxV = jnp.zeros((len(source_BxS), V), bool).at[:, :4].set(True)
        rows = jnp.arange(len(source_BxS))[:, None, None]
        allowed_BxV = allowed_BxV.at[rows, self.best_VxK[source_BxS]].set(True)
        return self.model.encode(source_BxS), allowed_BxV

    def init_cache(self, memory, num_beams, length):
        return super().init_cache(memory[0], num_beams, length)

    def step(self, tokens_BxW, memory, cache, position):
        logits, cache = super().step(tokens_BxW, memory[0], cache, position)
        return jnp.where(memory[1][:, None], logits, -jnp.inf), cache


def test_it_is_the_search_of_a_model_that_gives_no_other_id_a_probability(tmp_path):
    path, short = written(tmp_path / "few.npz", few()), few()
    ids = [[*one, 2] for one in Words().encode(LINES)]
    source_BxS = np.zeros((len(ids), max(map(len, ids))), np.int32)
    for row, line in zip(source_BxS, ids, strict=True):
        row[: len(line)] = line
    model = Masked(transformer(), jnp.zeros(V), jnp.asarray(short.best_VxK))
    params = BeamParams(3, 0.6, min_tokens=1)
    search = jax.jit(lambda s: beam_search(model, s, params=params, max_extra_tokens=5))
    wanted = search(source_BxS)
    texts, scores = results(translator(path))
    assert_allclose(scores, wanted.log_probabilities_BxW[:, 0], rtol=1e-4)
    tokens = [[t for t in best if t != 2] for best, *_ in outputs(wanted)]
    assert texts == Words().decode(tokens)
    # A line's output is that of the line alone.
    for line, text, score in [*zip(LINES, texts, scores, strict=True)][:5]:
        ((alone,), (own,)) = results(translator(path), [line])
        assert alone == text
        assert_allclose(own, score, rtol=1e-5)


def test_what_is_forced_is_a_candidate_of_its_line_alone(tmp_path):
    path = written(tmp_path / "none.npz", few(always=(0, 1, 2, 3, 4), best=0))
    short, lines = translator(path), LINES[:6]
    prefixes, terms = ["", "rot und", ""] * 2, [[], [], ["nicht"]] * 2
    found = short.translations(lines, prefixes=prefixes, terms=terms)
    for one, prefix, wanted in zip(found, prefixes, terms, strict=True):
        assert one.text.startswith(prefix)
        assert not one.unmet_terms
        assert {*one.text.split()} <= {"?", WORDS[0], *prefix.split(), *wanted}


def test_files_that_are_not_of_the_model_are_refused(tmp_path):
    path = written(tmp_path / "few.npz", few())
    with pytest.raises(DataError, match="made for other vocabularies"):
        load_shortlist(path, pair(fingerprint="others"))
    with pytest.raises(InputMissingError, match="no such file"):
        load_shortlist(tmp_path / "none", pair())
    content, draw = path.read_bytes(), random.Random(0)
    for number in range(60):
        damaged = bytearray(content[: draw.randrange(len(content))])
        if number % 2:
            damaged = bytearray(content)
            damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            found = load_shortlist(path, pair())
        except DataError:
            continue
        jax.tree.map(np.testing.assert_array_equal, found, few())
    specials = few()._replace(best_VxK=few().best_VxK + np.int32(1))
    tagged = pair(tags={"de": TAG})
    bad = [(0, 1, 2, 3, V), (4, 5, 6), (0, 1, 2, 3, 5, 5), (0, 1, 2, 3, 4, TAG)]
    for one in (specials, *(few(always=ids) for ids in bad)):
        with pytest.raises(DataError, match="Make one of this model"):
            load_shortlist(written(tmp_path / "bad.npz", one, tagged), tagged)
    for absent in (tmp_path / "none", tmp_path):  # Before any line is translated.
        with pytest.raises(UserError):
            translator(absent)
    for keys in ({"sample": True}, {"constraint": "tree"}):
        with pytest.raises(ConfigError, match=r"Unset config\.decoding\.shortlist"):
            DecodingConfig(shortlist="x", **keys)
    with pytest.raises(UserError, match="needs models that compute"):
        translator(path, ECHO)


@pytest.mark.parametrize("cells", [1, 50, 10**6])  # of a chunk
def test_probabilities_of_words_are_those_of_ibm_model_1(monkeypatch, cells):
    monkeypatch.setattr("t2t_jax.decoding.shortlist._CELLS", cells)
    draw = np.random.default_rng(0)
    pairs = [
        (draw.integers(4, 9, a).tolist(), draw.integers(4, 9, b).tolist())
        for a, b in draw.integers(1, 6, (40, 2))
    ]
    table = defaultdict(lambda: 1.0)
    for _ in range(5):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for f in target:
                total = sum(table[e, f] for e in [0, *source])
                for e in [0, *source]:
                    counts[e, f] += table[e, f] / total
                    totals[e] += table[e, f] / total
        table = {(e, f): n / totals[e] for (e, f), n in counts.items()}
    keys, found = lexical_table([*pairs, ([], [5]), ([5], [])], 9)
    assert keys.tolist() == sorted(9 * e + f for e, f in table)
    assert_allclose(found, [table[divmod(key, 9)] for key in keys.tolist()])
    # The most probable of each, the same word, and the most frequent.
    learnt = learn_shortlist(pairs, pair(), best=2, frequent=3)
    best = sorted(range(4, 9), key=lambda f: -table.get((6, f), 0))
    assert learnt.best_VxK[6].tolist() == [*best[:2], 6]
    counts = np.bincount([f for _, target in pairs for f in target])
    assert learnt.always_A.tolist() == [0, 1, 2, 3, *np.argsort(-counts)[:3]]


def test_ctranslate2_finds_the_same_with_the_map_of_an_export(tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    from t2t_jax.exchange.exporting.base import ExportSpec
    from t2t_jax.exchange.exporting.ctranslate2 import (
        piece_names,
        vocabulary_map,
        write_ctranslate2,
    )

    path = written(tmp_path / "few.npz", few())
    to, one = tmp_path / "exported", original(SIZE, vocabularies=pair())
    write_ctranslate2(to, one, ExportSpec("any"))
    names = piece_names(pair())
    (to / "vmap.txt").write_text("".join(vocabulary_map(few(), *names)))
    peer, options = ctranslate2.Translator(str(to)), {"min_decoding_length": 1}
    options |= {"beam_size": 1, "suppress_sequences": [["<pad>"], ["<s>"]]}
    # Pad and bos are in our sums of the scores.
    texts, _ = results(translator(path, beam_size=1, length_penalty=0.0))
    differ = 0
    for line, text in zip(LINES, texts, strict=True):
        tokens = [names[0][one] for one in Words().encode([line])[0]]
        options["max_decoding_length"] = len(tokens) + 5
        plain, mapped = (
            peer.translate_batch([tokens], use_vmap=one, **options)[0].hypotheses[0]
            for one in (False, True)
        )
        assert text.split() == mapped
        differ += plain != mapped
    assert differ > 5


def test_the_command_makes_one_of_the_text_of_a_run(tiny_run, tmp_path, monkeypatch):
    to = f"--to={tmp_path / 's.npz'}"
    make = "--mode=shortlist", f"--workdir={tiny_run}"
    done = tiny.succeed(*make, to, "--best=5")
    assert b"up to 5 target pieces for each of" in done.stderr
    (tmp_path / "in").write_text("The dog barks.\n")
    flags = f"--workdir={tiny_run}", f"--input={tmp_path / 'in'}"
    short = f"--shortlist={tmp_path / 's.npz'}"
    found = tiny.succeed("--mode=translate", *flags, short, "--beam_size=2").stdout
    assert found.count(b"\n") == 1
    # A job in shards that goes on has the shortlist with which it began.
    out = f"--output={tmp_path / 'out'}"
    job = ("--mode=translate", *flags, short, out, "--shards=1")
    tiny.succeed(*job)
    tiny.succeed(*make, to, "--best=6")
    refused(tiny.run(*job, "--resume"), 78, "the content of --shortlist was")
    # Training and a server without theirs do not start.
    starts = (
        tiny.arguments(tmp_path / "run", decoding__shortlist="none.npz"),
        ("serve", flags[0], "--port=0", "--config.decoding.shortlist=none.npz"),
    )
    for start in starts:
        refused(tiny.run(*start), 66, "none.npz: no such file")
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
    words = Workdir(tiny_run).read_vocabularies(VocabularyConfig(size=150))
    found = load_shortlist(tmp_path / "s.npz", words)
    assert found.best_VxK.shape == (150, 7)
    # Pairs that training modifies are counted modified, too.
    monkeypatch.setattr(DataConfig, "modifier_rates", {"words": 1.0, "upper": 1.0})
    assert main([*make, to, "--best=5"]) == 0
    more = load_shortlist(tmp_path / "s.npz", words).best_VxK
    assert (more[:, 0] > 0).sum() > (found.best_VxK[:, 0] > 0).sum()
    # A model keeps its translator, but for one of a file, which may change.
    model, options = tiny.load(tiny_run), {"shortlist": str(tmp_path / "s.npz")}
    assert model.translator(**options) is not model.translator(**options)
