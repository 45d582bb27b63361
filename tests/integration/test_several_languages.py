"""One model that translates into the language whose tag its source begins with."""

import dataclasses
import hashlib
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise, permutations
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

import t2t_jax
from t2t_jax.checkpointing.averaging import Selection
from t2t_jax.cli.evaluation.corpus import open_text, read_corpus
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import average
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.data.corpora.corpus import locator, parts_of, tag_of, with_tags
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.token_cache.token_cache import build_or_open
from t2t_jax.data.vocabulary.extension import extend_vocabulary
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.text.segments import make_segments
from t2t_jax.errors import ConfigError, DataError, UserError
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.main import main
from t2t_jax.run.inference.extend import extend_model
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.run.resume_rules import check_fingerprints
from t2t_jax.run.text import example_sentences, spec_of_names
from t2t_jax.run.workdir import Workdir
from tests.decoding.words import WordVocabulary, translator
from tests.exchange.exporting.counting import WORDS, write_text
from tests.faults import running
from tests.integration import tiny
from tests.made_once import made_once

FRENCH = dict(zip(WORDS, "un deux trois quatre cinq".split(), strict=True))
LINES = ["one two", "five", "", "three one four"]
TARGETS = {
    language: [" ".join(words[word] for word in line.split()) for line in LINES]
    for language, words in {"de": WORDS, "fr": FRENCH}.items()
}


@pytest.fixture(scope="session")
def counting_twice(shared_directory):
    """A run that counts in German or French, beside its text and lines for it."""

    def train(place):
        write_text(place)
        english = (place / "a.en").read_text(encoding="utf-8").split("\n")
        text = "\n".join(" ".join(map(FRENCH.get, line.split())) for line in english)
        (place / "a.fr").write_text(text, encoding="utf-8")
        for name, lines in {"in": LINES, **TARGETS}.items():
            (place / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        pairs = [f"text:{place}/a.en,{place}/a.{x}#en-{x}" for x in ("de", "fr")]
        keys = {
            "data__train": "++".join(f"{pair}[9:]" for pair in pairs),
            "data__dev": "++".join(f"{pair}[:9]" for pair in pairs),
            "data__temperature": 5,
            "evaluation__every_steps": 300,
            "checkpoint__every_steps": 300,
            "evaluation__bleu_sentences": 7,
            "optimizer__peak_learning_rate": 0.01,
            "optimizer__warmup_steps": 50,
            "steps": 300,
            "vocabulary__size": 64,
            "model__dropout": 0.0,
            "decoding__max_source_length": 24,
        }
        done = tiny.succeed(*tiny.arguments(place / "run", **keys))
        assert b"/run --target_language=de < in.txt\n" in done.stderr

    return made_once(shared_directory / "counting_twice", train) / "run"


def test_a_model_translates_into_the_language_that_is_asked_for(counting_twice):
    model = tiny.load(counting_twice)
    assert list(model.vocabularies.source.tags) == ["de", "fr"]
    for language, expected in TARGETS.items():
        tagged = [f">>{language}<< {line}" for line in LINES]
        for found in (
            model.translate(LINES, target_language=language),
            model.translate(tagged),
            model.translate(LINES, target_language=language, segment="sentences"),
            model.translator().translate(LINES, target_language=language),
            t2t_jax.translate(counting_twice, tagged),
        ):
            assert found == expected
        scores = model.score(LINES, expected, target_language=language)
        other = model.score(tagged, TARGETS["de" if language == "fr" else "fr"])
        gains = [a.score - b.score for a, b in zip(scores, other, strict=True)]
        assert min(gain for gain, line in zip(gains, LINES, strict=True) if line) > 0
        source = model.encode(["one two"], target_language=language)
        np.testing.assert_array_equal(source, model.encode([f">>{language}<< one two"]))
        assert model.vocabularies.source.pieces(source[0][:1]) == [f">>{language}<<"]
        tag = model.vocabularies.source.tags[language]
        text, vocabulary = ["One. Two. Three."], model.vocabularies.source
        config = dataclasses.replace(model.decoding, segment="sentences")
        segments = make_segments(text, vocabulary, config, tags=[[tag]])
        firsts = [(one.subwords[0], one.subwords.count(tag)) for one in segments]
        assert firsts == [(tag, 1)] * 3
    with pytest.raises(UserError, match=r"several languages.* one of de, fr, or begin"):
        model.translate(["one"])
    with pytest.raises(UserError, match=r"target_language=pt must .* tags of de, fr"):
        model.translate([""], target_language="pt")


def test_no_search_generates_a_tag(counting_twice):
    model = tiny.load(counting_twice)
    # The tags become by far the most probable outputs.
    table = model.params["embedding"]["table"]
    tags = np.array([*model.vocabularies.target.tags.values()])
    pushed = table.at[tags].set(40 * table[2])
    params = {**model.params, "embedding": {"table": pushed}}
    changed = dataclasses.replace(model, params=params)
    for search in ({"beam_size": 3, "n_best": 3}, {"sample": True, "n_best": 3}):
        found = changed.translations(["one two"], target_language="de", **search)
        pieces = {piece for h in found[0].hypotheses for piece in h.tokens}
        assert not [piece for piece in pieces if piece.startswith(">>")]


def test_a_language_is_added_and_what_the_others_give_stays(counting_twice, tmp_path):
    place, more, run = counting_twice.parent, tmp_path / "more", tmp_path / "run"
    spanish = dict(zip(WORDS, "uno dos tres cuatro cinco".split(), strict=True))
    english, *_, french = (
        (place / f"a.{name}").read_text(encoding="utf-8").split("\n")
        for name in ("en", "de", "fr")
    )
    text = "\n".join(" ".join(map(spanish.get, line.split())) for line in english)
    (tmp_path / "a.es").write_text(text, encoding="utf-8")
    tiny.succeed(
        *("--mode=extend", f"--workdir={counting_twice}", f"--to={more}"),
        *("--language=es", "--like=fr", f"--learn_from={tmp_path}/a.es", "--pieces=30"),
        f"--keep={place}/a.en,{place}/a.de,{place}/a.fr",
    )
    record = json.loads((more / "model.json").read_text("utf-8"))
    assert record["kinds"] == ["extended"]
    assert "development" not in record  # They are of the model before.
    before, after = tiny.load(counting_twice), tiny.load(more)
    old, new = before.vocabularies.target, after.vocabularies.target
    assert new.tags == {**old.tags, "es": old.size}
    assert new.pieces(range(old.size)) == old.pieces(range(old.size))
    assert new.encode([*english, *french]) == old.encode([*english, *french])
    words = [*spanish.values()]
    assert sum(map(len, new.encode(words))) < 0.7 * sum(map(len, old.encode(words)))
    tables = [np.asarray(one.params["embedding"]["table"]) for one in (before, after)]
    np.testing.assert_array_equal(tables[1][: old.size], tables[0])
    np.testing.assert_array_equal(tables[1][old.size], tables[0][old.tags["fr"]])
    (whole,) = set(new.encode(["uno"])[0])
    split = tables[0][old.encode(["uno"])[0]]
    np.testing.assert_allclose(tables[1][whole], split.mean(axis=0), rtol=1e-6)
    tagged = [f">>{name}<< {line}" for name in ("de", "fr", "es") for line in LINES]
    like = [line.replace(">>es<<", ">>fr<<") for line in tagged]
    for beams in (1, 6):
        found = after.translate(tagged, beam_size=beams)
        assert found == before.translate(like, beam_size=beams)
    keys = {
        **{key: value for key, value in tiny.TINY.items() if key.startswith("data.")},
        **{"data.dev": "", "data.dev_pairs": 0, "evaluation.every_steps": 0},
        "evaluation.patience": 0,
        "data.train": f"text:{place}/a.en,{tmp_path}/a.es#en-es",
        **{"steps": 80, "optimizer.name": "adafactor", "model.dropout": 0.0},
        **{"optimizer.peak_learning_rate": 0.01, "optimizer.warmup_steps": 30},
    }
    given = [f"--config.{key}={value}" for key, value in keys.items()]
    first = ("--config=fine_tune", f"--config.init_from={more}", f"--workdir={run}")
    done = tiny.succeed(*first, *given)
    # Of three tags the text has one: the commands that are printed name it.
    assert b"/run --target_language=es < in.txt\n" in done.stderr
    expected = [" ".join(map(spanish.get, line.split())) for line in LINES]
    tuned, kept = tiny.load(run), [0, 1, 3]
    scores = t2t_jax.evaluate(
        tuned, *([x[n] for n in kept] for x in (LINES, expected)), target_language="es"
    )
    assert scores["chrf"] > 60


def test_a_language_that_cannot_be_added_is_refused(counting_twice, tmp_path):
    for language, like, message in (
        ("fr", "de", "language=fr must be a new code"),
        ("es", "pt", "like=pt one of de, fr"),
        ("e s", "de", "such as gsw"),
    ):
        how = {"language": language, "like": like}
        with pytest.raises(UserError, match=message):
            extend_model(counting_twice, tmp_path / "more", **how)
    text = ["a dog barks", "ein Hund bellt"] * 9
    config = VocabularyConfig(size=20, unit="words")
    words = Vocabulary.train(text, 20, config=config, target_languages=["de"])
    untagged = Vocabulary.train(text, 30)
    for has, message in ((untagged, "has no tags"), (words, "of the kind 'words'")):
        with pytest.raises(UserError, match=message):
            extend_vocabulary(has, "gsw", like="de")


def test_the_command_line_takes_the_target_language(counting_twice):
    place, run = counting_twice.parent, f"--workdir={counting_twice}"
    text = (place / "in").read_bytes()
    command = ("--mode=translate", run, "--format=text")
    done = tiny.succeed(*command, "--target_language=fr", stdin=text)
    assert done.stdout.decode().split("\n")[:-1] == TARGETS["fr"]
    running.refused(tiny.run(*command, stdin=text), 64, "several languages")
    files = (f"--source={place / 'in'}", f"--reference={place / 'fr'}")
    done = tiny.succeed("--mode=evaluate", run, *files, "--target_language=fr")
    assert json.loads(done.stdout)["chrf"] > 99
    spec = "++".join(f"text:{place}/in,{place}/{x}#en-{x}" for x in ("de", "fr"))
    done = tiny.succeed("--mode=evaluate", run, f"--corpus={spec}")
    result = json.loads(done.stdout)
    assert [*result["chrf_by_direction"]] == ["en-de", "en-fr"]
    assert min(result["chrf_by_direction"].values()) > 99
    assert result["bleu"] == sum(result["bleu_by_direction"].values()) / 2
    table = [line.split()[:2] for line in done.stderr.decode().splitlines()]
    assert ["en-de", f"{result['bleu_by_direction']['en-de']:.2f}"] in table
    one = f"--corpus=text:{place}/in,{place}/de#en-"
    done = tiny.succeed("--mode=evaluate", run, f"{one}de")
    assert "bleu" in json.loads(done.stdout)["intervals"]
    for corpus, hypotheses in ((f"{one}pl", "new"), (f"{one}de", "de")):
        argv = ("--mode=evaluate", run, corpus, f"--hypotheses={place / hypotheses}")
        rule = "has none of pl" if hypotheses == "new" else "is one of the input files"
        assert rule in tiny.run(*argv).stderr.decode()
    scored = tiny.succeed("--mode=score", run, *files, "--target_language=fr")
    assert b"Scored 4 pairs" in scored.stderr
    text = (counting_twice / "dev_outputs/source.txt").read_text(encoding="utf-8")
    tags = [line[:7] for line in text.splitlines()]
    assert tags == [">>de<< "] * 7 + [">>fr<< "] * 7
    record = [one for one in running.metrics(counting_twice) if "chrf" in one][-1]
    assert record["chrf"] > 60
    by_direction = record["bleu_by_direction"]
    assert [*by_direction] == ["en-de", "en-fr"]
    assert record["bleu"] == sum(by_direction.values()) / 2
    page = (counting_twice / "report.html").read_text(encoding="utf-8")
    assert "BLEU of the best step by direction" in page


def test_a_server_lists_the_directions_and_translates_into_each(counting_twice):
    from tests.serving.running import serving

    pytest.importorskip("uvicorn")
    generator = np.random.default_rng(0)
    lines = [" ".join(generator.choice([*WORDS], 3)) for _ in range(100)]
    targets = generator.choice(["de", "fr"], 100)
    with serving(f"--workdir={counting_twice},fr-de={counting_twice}") as server:
        assert "Loaded en-de, en-fr, fr-de:" in "".join(server.lines)

        def post(text, target, source="en"):
            fields = {"q": text, "source": source, "target": target, "split": "lines"}
            return server.post("/translate", fields)

        with ThreadPoolExecutor(8) as threads:
            found = [answer for _, answer in threads.map(post, lines, targets)]
        tagged = [f">>{to}<< {line}" for to, line in zip(targets, lines, strict=True)]
        texts = [answer["translatedText"] for answer in found]
        assert texts == t2t_jax.translate(counting_twice, tagged)
        words = {"de": {*WORDS.values()}, "fr": {*FRENCH.values()}}
        for to, text in zip(targets, texts, strict=True):
            assert [one for one in words if {*text.split()} & words[one]] == [to]
        text = "\n".join(LINES[:2])  # each of its lines gets the tag
        assert post(text, "fr")[1]["translatedText"] == "\n".join(TARGETS["fr"][:2])
        _, answer = post(["one", ">>fr<< two"], "de")
        assert answer["translatedText"] == ["eins", "zwei"]
        with urllib.request.urlopen(f"{server.url}/languages") as answer:
            listed = {one["code"]: one["targets"] for one in json.load(answer)}
        assert listed == {"en": ["de", "fr"], "fr": ["de"], "de": []}
        with urllib.request.urlopen(f"{server.url}/spec") as answer:
            parameters = json.load(answer)["parameters"]
        assert parameters["source"]["schema"]["enum"] == ["en", "fr", "auto"]
        assert parameters["target"]["schema"]["enum"] == ["de", "fr"]
        for source, target, message in (
            ("en", "pt", "pt is not supported; supported: en, fr, de"),
            ("fr", "en", "target language from French (fr); available: de"),
        ):
            status, answer = post("one", target, source)
            assert (status, message in answer["error"]) == (400, True)
    argv = ("--mode=serve", f"--workdir=en-pt={counting_twice}", "--port=0")
    said = "=pt must be a language that the model has a tag of"
    running.refused(tiny.run(*argv), 64, said)


def test_a_comparison_names_a_language_for_the_models_with_tags(
    counting, counting_twice, tmp_path, capsys
):
    place, folder = counting_twice.parent, tmp_path / "exported"
    export = ["export", f"--workdir={counting_twice}", "--format=ctranslate2"]
    assert main([*export, f"--to={folder}", "--check_lines=9"]) == 0
    files = [f"--source={place / 'in'}", f"--reference={place / 'fr'}"]
    # The third model has no tags, and counts in German.
    compare = ["compare", f"--workdirs={counting_twice},{folder},{counting}", *files]
    capsys.readouterr()
    assert main([*compare, "--target_language=fr"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    # Two are called "run", so their paths are shown, in several rows.
    rows = [row for row in rows if len(row) == 9 and row[5][0].isdecimal()]
    chrf = [float(row[5]) for row in rows]
    assert (chrf[0], chrf[1] > 80, chrf[2] < 30) == (100, True, True), chrf
    assert main(compare) == 64
    assert "several languages, and a line names no" in capsys.readouterr().err


def test_exports_put_the_tags_on_their_sources(counting_twice, tmp_path, capsys):
    ctranslate2 = pytest.importorskip("ctranslate2")
    place, model = counting_twice.parent, tiny.load(counting_twice)
    search = {"beam_size": 1, "length_penalty": 0.0}
    lines = [" ".join(pair) for pair in permutations(WORDS, 2)]
    wanted = {
        to: model.translate(lines, target_language=to, **search) for to in ("de", "fr")
    }

    def export(form, *argv):
        to, run = f"{tmp_path}/{form}", f"--workdir={counting_twice}"
        argv = ["export", run, f"--format={form}", f"--to={to}", *argv]
        assert main([*argv, "--check_lines=9"]) == 0
        return to

    def translate(folder, spm, to=None):
        tag, more = [f">>{to}<<"] if to else [], model.decoding.max_extra_tokens
        translator = ctranslate2.Translator(folder, device="cpu")
        outputs = []
        for pieces in spm.encode(lines, out_type=str):
            how = {"beam_size": 1, "max_decoding_length": 1 + len(pieces) + more}
            (one,) = translator.translate_batch([[*tag, *pieces]], **how)
            outputs.append(one.hypotheses[0])
        return spm.decode(outputs)

    folder = export("ctranslate2")
    spm = SentencePieceProcessor(model_file=f"{folder}/vocab.model")
    assert {to: translate(folder, spm, to) for to in wanted} == wanted
    card = Path(folder, "README.md").read_text(encoding="utf-8")
    assert "A translation model from en to de, en to fr: a" in card
    assert 'language: ["en", "de", "fr"]' in card
    back = f"{tmp_path}/back"
    assert main(["import", f"--from={export('hf_marian')}", f"--to={back}"]) == 0
    again = tiny.load(back)
    for to in wanted:
        assert again.translate(lines, target_language=to, **search) == wanted[to]
    files = [f"--source={place / 'in'}", f"--reference={place / 'fr'}"]
    folder = export("argos", *files, "--languages=en,fr")
    # Argos knows no tags: the package adds that of its direction.
    ZipFile(f"{folder}/translate-en_fr.argosmodel").extractall(tmp_path / "argos")
    package = tmp_path / "argos/t2t_jax-en_fr"
    spm = SentencePieceProcessor(model_file=str(package / "sentencepiece.model"))
    assert translate(str(package / "model"), spm) == wanted["fr"]
    command = ["export", f"--workdir={counting_twice}", "--format=argos"]
    for argv, message in (
        ([], "the training text of the model names en-de, en-fr"),
        (["--languages=en,pt"], "has no tag of pt, but of de, fr"),
    ):
        assert main([*command, f"--to={tmp_path}/x", *argv]) == 64
        assert message in capsys.readouterr().err


def test_a_corpus_is_inspected_with_its_tags(counting_twice, tmp_path, capsys):
    to = f"--to={tmp_path / 'pairs.tsv'}"
    command = ["inspect_data", f"--workdir={counting_twice}", to]
    assert main([*command, "--drop_worst=10%"]) == 0
    out = capsys.readouterr().out
    named = "--config.data.train="
    for to, words in (("de", WORDS), ("fr", FRENCH)):
        kept = [tmp_path / f"pairs.kept.en-{to}.{x}.txt" for x in ("source", "target")]
        named += f"++text:{kept[0]},{kept[1]}#en-{to}"
        source, target = (side.read_text("utf-8").splitlines() for side in kept)
        assert {*" ".join(source).split()} <= {*WORDS}
        assert {*" ".join(target).split()} <= {*words.values()}
        assert len(source) == len(target) > 300
    assert named.replace("=++", "=") in out
    assert "several directions" in out


def test_pairs_from_python_name_their_languages(tmp_path):
    rows = [("a dog barks", "ein Hund bellt")] * 3
    lines = [*rows[0], "a cat un chat"] * 9
    words = Vocabulary.train(lines, 60, target_languages=["de", "en", "fr"])
    pairs = {"en-de,de-en": rows, "en-fr": [{"en": "a cat", "fr": "un chat"}]}
    how = {"tokens_per_batch": 512, "row_length": 32, "cache_dir": str(tmp_path)}
    with t2t_jax.batches(pairs, words, workers=1, drop_duplicates=False, **how) as some:
        source = np.asarray(next(some).source)
    counts = [int((source == words.tags[to]).sum()) for to in ("de", "en", "fr")]
    assert counts == [3, 3, 1]
    with pytest.raises(TypeError, match=r"train must be an iterable .* not a dict"):
        t2t_jax.train({}, tmp_path / "run", train={"en": rows})


def test_a_model_without_tags_refuses_a_target_language(counting):
    with pytest.raises(UserError, match=r"=de must be .* it has none. Leave it out"):
        t2t_jax.load(counting).translate(["one"], target_language="de")


def test_the_source_of_each_pair_begins_with_the_tag_of_its_direction(tmp_path):
    spec = "phrasebook:dev:5#en-de,de-en++2*phrasebook:test:7#en-fr[3:]"
    corpus, plain = open_corpus(spec), list(open_corpus("phrasebook:dev:5"))
    parts = parts_of(corpus)
    assert [(part.corpus.spec, part.weight) for part in parts] == [
        ("phrasebook:dev:5#en-de", 1),
        ("phrasebook:dev:5#de-en", 1),
        ("phrasebook:test:7[3:]#en-fr", 2),
    ]
    pairs = list(corpus)
    assert pairs[:10] == plain + [(target, source) for source, target in plain]
    config = DataConfig(cache_dir=str(tmp_path), drop_duplicates=True)
    lines = [line for pair in pairs for line in pair]
    words = Vocabulary.train(lines, 90, target_languages=["de", "en", "fr"])
    assert next(iter(with_tags(corpus, words)))[0] == f">>de<< {plain[0][0]}"
    both = VocabularyPair(words, words)
    cache = build_or_open(corpus, both, config=config)
    tags = [words.tags[x] for x in ["de"] * 5 + ["en"] * 5 + ["fr"] * 4]
    ids = words.encode([source for source, _ in pairs])
    source = cache.source
    for number, (begin, end) in enumerate(pairwise(source.offsets)):
        assert source.tokens[begin:end].tolist() == [tags[number], *ids[number], 2]
    assert cache.locate(6) == ("phrasebook:dev:5", 2)
    # The direction changes the fingerprint; without one it is what it was.
    fingerprints = {part.corpus.fingerprint() for part in parts[:2]}
    assert len({open_corpus("phrasebook:dev:5").fingerprint(), *fingerprints}) == 3
    few = Vocabulary.train(lines, 90, target_languages=["de"])
    with pytest.raises(DataError, match="none of en, fr; it has tags of de"):
        build_or_open(corpus, VocabularyPair(few, few), config=config)


def test_a_tag_of_a_corpus_stands_after_that_of_its_language(tmp_path):
    """Text that was translated back has its columns exchanged, and marked sources."""
    path = tmp_path / "back.tsv"
    path.write_text("ein Hund\ta dog\t-0.1\n\t\t0\nzwei\ttwo\t-0.2\n", "utf-8")
    back = f"tsv:{path}#2,1#<BT>"
    corpus = open_corpus(f"phrasebook:dev:3#en-de++2*{back}#en-de[2:]")
    (own, _), (tagged, weight) = parts_of(corpus)
    assert [(tag_of(own), tag_of(tagged)), weight] == [("", "<BT>"), 2]
    assert list(tagged) == [("<BT> two", "zwei")]
    assert list(open_corpus(back))[1] == ("", "")  # is dropped, and has no tag
    assert locator(corpus)(4) == (f"tsv:{path}#2,1", 3)
    assert corpus.num_pairs() == 4
    fingerprints = {open_corpus(back.replace("BT", x)).fingerprint() for x in "ab"}
    assert len(fingerprints | {open_corpus(back[:-5]).fingerprint()}) == 3
    name = "2*tsv:back.tsv#2,1#<BT>[2:]#en-de"
    assert spec_of_names(f"2*{back}#en-de[2:]") == name

    lines = [x for pair in corpus for x in pair]
    config = DataConfig(cache_dir=str(tmp_path))
    trained = partial(Vocabulary.train, lines * 9, 50, target_languages=["de"])
    words = trained(config=VocabularyConfig(symbols="<BT>"))
    assert list(with_tags(corpus, words))[3:] == [(">>de<< <BT> two", "zwei")]
    cache = build_or_open(corpus, VocabularyPair(words, words), config=config)
    begin = cache.source.offsets[3]
    pieces = words.pieces(cache.source.tokens[begin:])
    assert [one for one in pieces if one != "\u2581"][:2] == [">>de<<", "<BT>"]
    path.write_text("eins\tone\na b\ta b\neins <x>\tone\n", "utf-8")
    config = dataclasses.replace(config, drop_copies=True, filters="placeholders")
    pair = VocabularyPair(words, words)
    cache = build_or_open(open_corpus(back), pair, config=config)
    counts = cache.meta["counts"]  # as if there were no tag
    assert [counts[x] for x in ("kept", "copies", "placeholders")] == [1, 1, 1]
    few = trained()
    with pytest.raises(DataError, match=r"must have '<BT>' .*symbols='<BT>'"):
        build_or_open(corpus, VocabularyPair(few, few), config=config)


def test_a_temperature_raises_the_weights_of_small_directions(tmp_path):
    parts = ("train:40#en-de", "test:40#en-fr", "dev:40#en-de")
    spec = "++".join(f"phrasebook:{part}" for part in parts)
    lines = [line for pair in open_corpus(spec) for line in pair]
    words = Vocabulary.train(lines, 90, target_languages=["de", "fr"])
    both, found = VocabularyPair(words, words), {}
    for temperature in (1.0, 2.0, 5.0):
        config = DataConfig(cache_dir=str(tmp_path), temperature=temperature)
        cache = build_or_open(open_corpus(spec), both, config=config)
        found[temperature] = cache.weights
    assert found[1.0] == (1, 1, 1)
    assert found[2.0] == pytest.approx((1, 2**0.5, 1))  # 80 pairs and 40
    assert 40 * found[5.0][1] / 80 == pytest.approx((40 / 80) ** (1 / 5))
    with pytest.raises(ConfigError, match=r"temperature=5 computes .* has weights"):
        build_or_open(open_corpus(f"2*{spec}"), both, config=config)


def test_columns_and_sets_of_files_take_languages(tmp_path):
    path, other = tmp_path / "t", tmp_path / "u"
    path.write_text("a\tx\tb\n", encoding="utf-8")
    other.write_text("c\ty\td\n", encoding="utf-8")
    found = open_corpus(f"tsv:{path}+{other}#3,1#en-pt_BR,pt_BR-en")
    assert list(found) == [("b", "a"), ("d", "c"), ("a", "b"), ("c", "d")]
    targets = [part.corpus.direction[1] for part in parts_of(found)]
    assert targets == ["pt_BR", "pt_BR", "en", "en"]


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        *((f"phrasebook:dev:5#{x}", "must name two") for x in ("en", "EN-DE", "en-en")),
        ("phrasebook:dev:5#en-de,fr-en", "must name two languages after #"),
        ("phrasebook:dev:5#en-de,en-fr", "must name two languages after #"),
        ("trees:x.mrg#en-de", "trees have none"),
        ("phrasebook:dev:5#<BT>#en-de,de-en", "<BT>, and goes with one direction"),
        ("phrasebook:dev:5#de-en", "begin with the direction .*#en-de by the name"),
        ("phrasebook:dev:5#en-de++phrasebook:dev:7", "of all of its corpora or of no"),
    ],
)
def test_wrong_languages_of_a_corpus_are_refused(spec, rule):
    with pytest.raises(ConfigError, match=rule):
        open_corpus(spec)


@pytest.mark.parametrize(
    ("dev", "code", "rule"),
    [
        ("phrasebook:dev:5", 78, "must both name their languages"),
        ("phrasebook:dev:5#en-fr", 65, "none of fr; it has tags of de, en"),
    ],
)
def test_development_text_has_the_languages_of_training(tmp_path, dev, code, rule):
    train = "phrasebook:train:300#en-de,de-en"
    keys = tiny.arguments(tmp_path / "run", data__train=train, data__dev=dev)
    running.refused(tiny.run(*keys), code, rule)


@pytest.fixture(scope="module")
def both_tags():
    """A vocabulary as that of M2M-100: each side begins with its own language."""
    spm = Vocabulary.train(["a dog barks", "ein Hund bellt"] * 9, 30)
    pieces = [*spm.pieces(range(30)), "__de__", "__en__", "__fr__"]
    tags = {name: f"__{name}__" for name in ("de", "en", "fr")}
    options = {"language_tokens": tags, "source_tag": "source"}
    return Vocabulary(
        table_file("sentencepiece_table", pieces, sentencepiece=spm.model, **options)
    )


def test_a_vocabulary_may_have_tags_of_both_sides(both_tags, tmp_path):
    words = both_tags
    assert words.tags == {"de": 30, "en": 31, "fr": 32}
    (plain,), (target,) = words.encode(["a dog"]), words.encode(["ein Hund"])
    for line, languages in (
        (">>en-de<<a dog", {}),
        (">>de<<a dog", {"source_language": "en"}),
        ("a dog", {"source_language": "en", "target_language": "de"}),
        (">>fr-fr<<a dog", {"source_language": "en", "target_language": "de"}),
    ):
        assert words.split_tags([line], **languages) == (["a dog"], [[31]], [[30]])
    assert words.split_tags(["a", ""], target_language="")[1:] == ([[], []], [[], []])
    assert words.decode([[30, *target]]) == ["ein Hund"]
    for languages, message in (
        ({}, "names no target. Pass target_language, one of de, en, fr, .* >>de-en<<"),
        ({"target_language": "de"}, "names no source. Pass source_language, one of de"),
        ({"source_language": "pt"}, "source_language=pt must .* tags of de, en, fr"),
    ):
        with pytest.raises(UserError, match=message):
            words.split_tags(["a dog"], **languages)
    (tmp_path / "x").write_text("a dog\tein Hund\n", encoding="utf-8")
    config, both = DataConfig(cache_dir=str(tmp_path)), VocabularyPair(words, words)
    hashes = []
    for spec, tags in (("#en-de", (31, 30)), ("#fr-de", (32, 30))):
        corpus = open_corpus(f"tsv:{tmp_path}/x{spec}")
        cache = build_or_open(corpus, both, config=config)
        hashes.append(PreparedData(config, 0, both, cache, cache, ()).fingerprints)
        assert cache.source.tokens.tolist() == [tags[0], *plain, 2]
        assert cache.target.tokens.tolist() == [tags[1], *target, 2]
    # The hash of a corpus is as before, without the language of its sources.
    name = f"to de as it is {open_corpus(f'tsv:{tmp_path}/x').fingerprint()}"
    assert {one["train"] for one in hashes} == {
        hashlib.sha256(name.encode()).hexdigest()
    }
    with pytest.raises(DataError, match=r"languages of train \(en-de, now fr-de\)"):
        check_fingerprints(*hashes)
    before = {key: hashes[0][key] for key in hashes[0] if "languages" not in key}
    check_fingerprints(before, hashes[0])
    without = {key: value for key, value in hashes[0].items() if "dev" not in key}
    check_fingerprints(hashes[0], without)


@pytest.mark.parametrize("reads_source", [False, True])
def test_every_reader_of_a_corpus_writes_the_tags_that_the_model_needs(
    both_tags, tmp_path, reads_source
):
    table = json.loads(both_tags.model)
    table["source_tag"] = "source" if reads_source else "target"
    words = Vocabulary(json.dumps(table).encode())
    (tmp_path / "x").write_text("a dog\tein Hund\n", encoding="utf-8")
    spec, run = f"tsv:{tmp_path}/x#en-de", Workdir(tmp_path / "run")
    run.create()
    text, size = DataConfig(train=spec, dev=spec), VocabularyConfig(size=words.size)
    run.write_config(Config(data=text, vocabulary=size))
    words.save(run.path)
    both = VocabularyPair(words, words)
    run.write_json("fingerprints.json", {"vocabulary": both.fingerprint})
    export = parse(run, "export", "--format=model_dir", "--to=x")
    found = [next(iter(open_text(export)))[0], *example_sentences(run)]
    found += read_corpus(parse(run, "evaluate", f"--corpus={spec}")).sources
    assert found == [">>en-de<< a dog" if reads_source else ">>de<< a dog"] * 3
    assert words.split_tags(found).texts == [" a dog"] * 3


def test_a_sliding_average_is_scored_on_the_first_lines_of_each_direction(
    both_tags, tmp_path, monkeypatch
):
    run = Workdir(tmp_path / "run")
    run.create()
    text = DataConfig(train="tsv:x#en-de", dev="phrasebook:dev:7#en-de,de-en")
    most = EvaluationConfig(bleu_sentences=2)
    size = VocabularyConfig(size=both_tags.size)
    run.write_config(Config(data=text, evaluation=most, vocabulary=size))
    both_tags.save(run.path)
    scored = []
    window = Selection((1, 2), spacing=None)
    monkeypatch.setattr(average, "_windows", lambda options: [window])
    monkeypatch.setattr(average, "_score", lambda *given: scored.append(given[-1]))
    with pytest.raises(TypeError):  # None has no BLEU
        average._slide(parse(run, "average", "--sliding", "--last=2"))
    directions = [direction for *_, direction in scored[0]]
    assert directions == ["en-de", "en-de", "de-en", "de-en"]


def parse(run, mode, *flags):
    return parse_argv([f"--mode={mode}", f"--workdir={run.path}", *flags])


@pytest.mark.parametrize("sample", [False, True])
def test_the_tag_of_a_target_is_forced_and_costs_nothing(sample):
    class Both(WordVocabulary):
        tags = {"de": 4, "en": 5}  # noqa: RUF012 (the ids of two words)
        reads_source = True

    search = {"sample": True, "top_k": 1} if sample else {}
    pair = VocabularyPair(Both(), Both())
    own = translator(segment="sentences", **search)
    both = dataclasses.replace(own, vocabularies=pair)
    to = {"source_language": "en", "target_language": "de"}
    found = both.translations(["Hund! 🙂 Das Haus!", "Hund"], **to)
    two, one = (translation.hypotheses[0] for translation in found)
    assert one.tokens == ("der", "Hund", "</s>")  # not die, the tag of the source
    assert two.tokens.count("der") == found[0].num_parts == 2
    assert min(one.log_probability, two.log_probability) > -0.01


@pytest.mark.parametrize("unit", ["subwords", "words"])
def test_tags_are_pieces_that_no_text_has(unit):
    config = VocabularyConfig(unit=unit, symbols=">>pt<<,XX", size=50)
    lines = ["a dog >>de<< barks", "XX ein Hund"] * 9
    words = Vocabulary.train(lines, 50, config=config, target_languages=["de"])
    assert words.tags == {"de": 4, "pt": 5}
    encoded = words.encode([">>de<< a dog"] if unit == "subwords" else ["a dog XX"])
    assert not {4, 5} & {*encoded[0]}
    assert words.encode_sources([">>pt<< a dog", "", "a"], target_language="") == [
        [5, *words.encode(["a dog"])[0]],
        [],
        words.encode(["a"])[0],
    ]
    VocabularyPair(words, words).check(config, name="it")
