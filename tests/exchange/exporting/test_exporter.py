"""What is not the model is caught before anybody can take it for the model.

Seen to fail: without the check after writing; where a failed export stays; without the
comparison of the arrays.
"""

import dataclasses
import functools
import json

import jax
import numpy as np
import pytest

import t2t_jax
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import export
from t2t_jax.config import Config, parse
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import DataError, UserError
from t2t_jax.exchange.exporting import ctranslate2, exporter, stablehlo
from t2t_jax.exchange.exporting import huggingface as hf_marian
from t2t_jax.exchange.exporting.base import ExportSpec
from t2t_jax.exchange.exporting.exporter import FORMATS
from t2t_jax.exchange.importing.imported import DEFAULTS
from t2t_jax.exchange.importing.importer import write_imported
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.first_start import adopt_model
from t2t_jax.run.inference.model_dir import save_model_dir
from t2t_jax.run.inference.provenance import run_facts
from t2t_jax.run.prepared_data import prepare_data
from t2t_jax.run.text import without_folders
from t2t_jax.run.workdir import Workdir
from tests.exchange.exporting.counting import original, write_model, write_text
from tests.exchange.exporting.test_marian import MODEL as MARIAN
from tests.exchange.m2m_100_directory import write_directory

pytest.importorskip("safetensors")


SHAPES = dict(num_layers=1, d_model=16, d_ff=32, num_heads=2, d_k=8, d_v=8)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that was never trained, of the shapes of tests/integration/tiny.py."""
    place = tmp_path_factory.mktemp("exporter")
    corpus = write_text(place)
    config = Config(
        init_from=str(place / "first"),
        data=DataConfig(train=corpus, dev=corpus, cache_dir=str(place)),
        vocabulary=VocabularyConfig(size=44),
        model=TransformerConfig(**SHAPES, vocab_size=44, dropout=0.0),
        decoding=DecodingConfig(max_source_length=24, max_extra_tokens=5),
    )
    data = {"train": {"spec": corpus, "fingerprint": "f", "pairs": 400}}
    return write_model(place / "model", config, corpus=corpus, data=data)


def exported(model, to, form, *flags):
    if form in ("ctranslate2", "stablehlo"):
        pytest.importorskip({"stablehlo": "flatbuffers"}.get(form, form))
    argv = ["--mode=export", f"--workdir={model}", f"--format={form}", f"--to={to}"]
    export.run(parse_argv([*argv, *flags]))


@pytest.mark.parametrize(
    "form", ["model_dir", "safetensors", "ctranslate2", "hf_marian"]
)
def test_no_folder_of_the_text_leaves_with_an_export(model, tmp_path, capsys, form):
    to, own = tmp_path / "made", json.loads((model / "config.json").read_text())
    search = {"beam_size": 3, "length_penalty": 1.5, "min_tokens": 2}
    flags = [f"--config.decoding.{key}={value}" for key, value in search.items()]
    exported(model, to, form, "--check_lines=3", *flags)
    # The beam of the comparison is that of the model.
    result = json.loads(capsys.readouterr().out)
    assert (result["beam_size"], result["length_penalty"]) == (3, 1.5)
    folder = str(model.parent).encode()
    files = [path for path in to.rglob("*") if path.is_file()]
    assert [path for path in files if folder in path.read_bytes()] == []
    card = (to / "README.md").read_text()
    for words in (
        "a beam of 3 at alpha 1.5, the exponent of (5 + n) / 6",
        "| train text | `text:a.en,a.de`",
        "3 lines of `text:a.en,a.de`",
        "| began with | `first` |",
    ):
        assert words in card
    if form in ("model_dir", "safetensors"):
        found = json.loads((to / "config.json").read_text())
        assert found["data"]["dev"] == "text:a.en,a.de"
        assert (found["init_from"], found["data"]["cache_dir"]) == ("first", "")
        data = json.loads((to / "model.json").read_text())["data"]
        assert data["train"]["spec"] == "text:a.en,a.de"
    assert own == json.loads((model / "config.json").read_text())
    assert str(model.parent) in own["data"]["dev"]


def number_changed(fill, spec, *args, **kwargs):
    fill(spec, *args, **kwargs)
    spec.encoder.layer[0].ffn.linear_1.weight[3, 5] += 0.1


def tensor_changed(to_tensors, *args, **kwargs):
    tensors = to_tensors(*args, **kwargs)
    tensors["model.encoder.layers.0.fc2.weight"][3, 5] += 0.1
    return tensors


def bit_changed(save, to, model, **kwargs):
    leaves, tree = jax.tree.flatten(model.params)
    leaves[3] = np.nextafter(leaves[3], 9, dtype=np.float32)
    changed = dataclasses.replace(model, params=jax.tree.unflatten(tree, leaves))
    save(to, changed, **kwargs)


def another_alpha(search, model, decoding):
    alpha = 30.0 * (decoding.beam_size > 1)
    return search(model, dataclasses.replace(decoding, length_penalty=alpha))


def array_changed(savez, path, **arrays):
    name = "decoder/layer_0/feed_forward/outer/bias"
    savez(path, **{**arrays, name: arrays[name] + np.float32(0.5)})


ARRAYS = r"1 of \d+ arrays differ after writing"


@pytest.mark.parametrize(
    ("form", "place", "name", "spoil", "message"),
    [
        ("ctranslate2", ctranslate2, "fill_stacks", number_changed, "differs from the"),
        ("hf_marian", hf_marian, "to_tensors", tensor_changed, ARRAYS),
        ("model_dir", exporter, "save_model_dir", bit_changed, ARRAYS),
        ("safetensors", exporter, "save_model_dir", bit_changed, ARRAYS),
        ("stablehlo", stablehlo, "_search", another_alpha, "outputs of a beam of 4"),
        ("stablehlo", np, "savez", array_changed, ARRAYS),
    ],
)
def test_an_export_that_is_wrong_is_caught_and_nothing_is_left(
    model, tmp_path, monkeypatch, form, place, name, spoil, message
):
    monkeypatch.setattr(place, name, functools.partial(spoil, getattr(place, name)))
    with pytest.raises(DataError, match=message):
        exported(model, tmp_path / "made" / "x", form, "--check_lines=20")
    assert list((tmp_path / "made").iterdir()) == []


THEIRS = ("marian", "hf_marian")
ROTARY = {"positions": "rotary", "position_rates": "paper"}
ROTARY |= {"d_model": 12, "d_k": 6, "d_v": 6}
UNSUPPORTED = [
    ("marian", {"position_rates": "paper"}, "position_rates=tensor2tensor"),
    ("marian", {"activation": "quick_gelu"}, "=relu or swish or gelu, "),
    *((name, {"norm": "rms"}, "norm=layer, and .* rms") for name in THEIRS),
    ("hf_marian", ROTARY, "positions=sinusoidal, and .* has rotary"),
    ("hf_marian", {"activation": "geglu"}, "activation=relu or .*, and .* has geglu"),
    ("marian", {"norm_position": "pre"}, "norm_position=post, and .* has pre"),
    ("marian", {"d_k": 5}, "d_k=7, and the model has 5"),
    ("hf_marian", {"positions": "learned", "max_positions": 2_000}, "positions=sinus"),
    ("hf_marian", {"layer_norm_epsilon": 1e-3}, "layer_norm_epsilon=1e-05 or less"),
    ("argos", {"source_vocab_size": 44, "tying": "none"}, "one vocabulary of both"),
]


@pytest.mark.parametrize(("form", "changes", "message"), UNSUPPORTED)
def test_a_key_that_a_format_does_not_have_is_named(form, changes, message):
    if form == "argos":
        pytest.importorskip("ctranslate2")
    network = dataclasses.replace(MARIAN, **changes)
    with pytest.raises(UserError, match=message) as raised:
        FORMATS[form].check_supported(original(network).config)
    assert len(raised.value.problems) == 1


@pytest.mark.parametrize("form", ["marian", "hf_marian", "argos"])
def test_pieces_without_a_splitter_are_refused(tmp_path, form):
    names = [*SPECIAL_PIECES, *map(str, range(40))]
    table = Vocabulary(table_file("byte_pairs", names, merges=None))
    pair = VocabularyPair(table, table)
    network = dataclasses.replace(MARIAN, start="bos")
    one = original(network, vocabularies=pair, languages=("en", "de"))
    with pytest.raises(UserError, match="SentencePiece"):
        FORMATS[form].write(tmp_path, one, ExportSpec(form))


def test_what_a_format_needs_to_know_is_asked_for(tmp_path):
    with pytest.raises(UserError, match="Set --languages=SOURCE,TARGET"):
        FORMATS["argos"].write(tmp_path, original(MARIAN), ExportSpec("argos"))
    sampling = Config(decoding=DecodingConfig(sample=True))
    with pytest.raises(UserError, match=r"exports beam search|flatbuffers"):
        FORMATS["stablehlo"].check_supported(sampling)


def test_the_licence_of_an_import_follows_what_is_trained_from_it(tmp_path, capsys):
    write_directory(tmp_path / "hf", "NLLB-200", num_beams=1, max_length=4)
    write_imported(tmp_path / "hf", tmp_path / "first", toolkit="", options=DEFAULTS)
    model = t2t_jax.load(tmp_path / "first")
    for side in ("a", "b"):
        (tmp_path / side).write_text("low newest\nwidest low\n" * 9)
    files = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    for name, base in (("one", "first"), ("two", "one")):
        workdir = Workdir(tmp_path / name)
        workdir.create()
        data = {"train": f"text:{files}#eng_Latn-deu_Latn", "cache_dir": str(tmp_path)}
        own = {"init_from": str(tmp_path / base), "evaluation": {"every_steps": 0}}
        config = parse(adopt_model({**own, "data": data}, saved=None))
        text = prepare_data(config, workdir=workdir, log=print)
        workdir.write_config(config)
        workdir.write_json("fingerprints.json", dict(text.fingerprints))
        (tmp_path / base).rename(tmp_path / f"{base} elsewhere")
        prepare_data(config, workdir=workdir, log=print)  # as to resume
    save_model_dir(
        tmp_path / "model",
        model,
        config=without_folders(config),
        origin={"step": 1, "kinds": ["last"], **run_facts(workdir)},
    )
    given = tmp_path / "model", tmp_path / "ct2", "ctranslate2", "--check_lines=1"
    text = [f"--source={tmp_path / 'a'}", f"--reference={tmp_path / 'b'}"]
    with pytest.raises(UserError, match=r"^--languages=en,de: .* mean deu_Latn\?"):
        exported(*given, *text, "--languages=en,de", "--license=mit")
    assert "with the licence cc-by-nc-4.0, not for" in capsys.readouterr().err
    exported(*given, *text, "--languages=eng_Latn,deu_Latn")
    assert 'license: "cc-by-nc-4.0"' in (tmp_path / "ct2/README.md").read_text()
    assert "warning" not in capsys.readouterr().err
