"""Damaged and hostile files of every toolkit: one error each, or a model.

Seen to fail: with options shown as they are, of which a few bytes of YAML can make
billions of characters, and without the bounds of the sizes.
"""

import itertools
import json
import os

import numpy as np
import pytest

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError, UserError
from t2t_jax.exchange.importing.imported import DEFAULTS, ImportOptions
from t2t_jax.exchange.importing.importer import FORMATS
from tests.exchange import hf_directory, m2m_100_directory, marian_save, torch_save
from tests.exchange.importing import test_fairseq as fairseq
from tests.exchange.importing import test_m2m_100
from tests.exchange.importing import test_t2t as t2t

pytest.importorskip("yaml")
pytest.importorskip("safetensors")
pytest.importorskip("google_crc32c")


def make_fairseq(folder, name):
    save = torch_save.save_legacy if name == "legacy" else torch_save.save_zip
    fairseq.small(folder, save=save)
    (folder / "codes").write_text(fairseq.CODES)
    if name == "spm.model":
        config = VocabularyConfig(size=24)
        model = Vocabulary.train(fairseq.PIECES, config.size, config=config)
        (folder / name).write_bytes(model.model)


def make_t2t(folder, name):
    t2t.small(folder)


def make_hf(folder, name):
    shared = name != "target_vocab.json"
    config = hf_directory.configuration(share_encoder_decoder_embeddings=shared)
    tensors = hf_directory.draw(config)
    hf_directory.write_directory(folder, config, tensors)
    if not shared:
        hf_directory.change_json(folder / name, **hf_directory.vocabulary())
        hf_directory.change_json(folder / "tokenizer_config.json", separate_vocabs=True)
    if name == "generation_config.json":
        never = [[config["pad_token_id"]]]
        search = {"eos_token_id": 0, "num_beams": 6, "bad_words_ids": never}
        hf_directory.change_json(folder / name, **search)
    if name == "pytorch_model.bin":
        entries = {key: torch_save.Tensor(one) for key, one in tensors.items()}
        torch_save.save_zip(folder / name, entries)
        (folder / "model.safetensors").unlink()


def make_marian(folder, name="vocab.spm"):
    marian_save.save(folder / "model.npz", positions=5)
    pieces = ["</s>", "<unk>", *(f"piece{number}" for number in range(22))]
    lists = {
        "vocab.yml": listed(pieces),
        "vocab.json": json.dumps(dict(zip(pieces, range(24), strict=True))),
        "vocab.txt": "".join(f"{piece}\n" for piece in pieces),
    }
    named = name if name in lists else "vocab.spm"
    content = lists.get(named, "").encode() or marian_save.sentencepiece_model()
    (folder / named).write_bytes(content)
    (folder / "model.npz.decoder.yml").write_text(
        f"beam-size: 6\nnormalize: 0.6\nvocabs:\n  - {named}\n  - {named}\n"
    )


def make_m2m_100(folder, name):
    kind = "M2M-100" if name == "vocab.json" else "NLLB-200"
    m2m_100_directory.write_directory(folder, kind)
    if name.endswith(".index.json"):
        test_m2m_100.split_weights(folder)
    if name == "tokenizer.json":
        tokens = [{"id": 0, "content": "<s>"}, {"id": 66, "content": "low_Latn"}]
        table = {"model": {"vocab": {"<pad>": 1}}, "added_tokens": tokens}
        hf_directory.change_json(folder / name, **table)


FILES = {
    ("fairseq", make_fairseq): "model.pt legacy dict.de.txt codes spm.model",
    ("t2t", make_t2t): "model.ckpt-7.index model.ckpt-7.data-00000-of-00002 "
    "hparams.json vocab.translate_ende.30.subwords checkpoint",
    ("hf_marian", make_hf): "config.json generation_config.json tokenizer_config.json "
    "vocab.json target_vocab.json source.spm target.spm model.safetensors "
    "pytorch_model.bin",
    ("m2m_100", make_m2m_100): "tokenizer_config.json vocab.json tokenizer.json "
    "sentencepiece.bpe.model model.safetensors.index.json",
    ("marian", make_marian): "model.npz vocab.spm model.npz.decoder.yml vocab.yml "
    "vocab.json vocab.txt",
}
REQUIRED = {"vocab.json", "source.spm", "model.safetensors", "hparams.json"}
REQUIRED |= {"vocab.translate_ende.30.subwords", "dict.de.txt"}
REQUIRED |= {"sentencepiece.bpe.model"}


def read(folder, toolkit="marian", options=DEFAULTS):
    source, target = FORMATS[toolkit].read(folder, options).vocabularies
    target.decode(source.encode(["the lower newest a"]))


def mutated(content, rng):
    """Cuts a file off, changes a few bytes, or repeats a part of it."""
    damaged = bytearray(content)
    kind = rng.integers(4)
    if kind == 0:
        del damaged[rng.integers(len(damaged)) :]
    elif kind == 1:
        begin, end = sorted(rng.integers(len(damaged), size=2))
        damaged[begin:end] = damaged[begin:end] * 2
    for _ in range(rng.integers(1, 4) if kind else 0):
        damaged[rng.integers(len(damaged))] = rng.integers(256)
    return bytes(damaged)


@pytest.mark.parametrize(
    ("toolkit", "make", "name"),
    [(*key, name) for key, names in FILES.items() for name in names.split()],
)
def test_a_mutated_file_is_read_or_is_one_error(tmp_path, toolkit, make, name):
    make(tmp_path, name)
    path = tmp_path / (name if name != "legacy" else "model.pt")
    names, intact = sorted(os.listdir(tmp_path)), path.read_bytes()
    messages, rng = [], np.random.default_rng(7)
    for _ in range(50):
        path.write_bytes(mutated(intact, rng))
        try:
            read(tmp_path, toolkit)
        except UserError as error:
            messages.append(str(error))
    assert max(map(len, messages), default=0) < 2_000
    # A damaged `checkpoint` names none, and the last is read.
    assert len(messages) > 3 or name == "checkpoint"
    assert sorted(os.listdir(tmp_path)) == names
    path.unlink()
    if name in REQUIRED and toolkit != "marian":
        with pytest.raises(InputMissingError, match=r"such file|has neither|has [01]"):
            read(tmp_path, toolkit)


def fairseq_args(**changes):
    """Arguments that the tensors were not drawn for."""

    def change(folder):
        args = fairseq.arguments()
        fairseq.write(folder, fairseq.state_of(args, old=True), args=args | changes)
        fairseq.write_dictionary(folder / "dict.de.txt", fairseq.GERMAN)

    return change


def fairseq_file(content):
    return lambda folder: torch_save.save_zip(folder / "model.pt", content)


def fairseq_small(**changes):
    return lambda folder: fairseq.small(folder, **changes)


def values(name, **changes):
    return lambda folder: hf_directory.change_json(folder / name, **changes)


def more_tensors(folder):
    hparams = t2t.hparams_of()
    extra = {"transformer/body/encoder/extra": np.ones(3, np.float32)}
    t2t.write(folder, t2t.State(hparams).tensors | extra, hparams)


def zero_positions(folder):
    config = hf_directory.configuration()
    table = np.zeros((40, config["d_model"]), np.float32)
    tensors = {**hf_directory.draw(config)}
    tensors["model.decoder.embed_positions.weight"] = table
    hf_directory.write_directory(folder, config, tensors)


def text(name, content):
    return lambda folder: (folder / name).write_text(content)


def given(content, *before):
    """Passes a list of pieces as the vocabulary, or as that of the target."""

    def change(folder):
        (folder / "given.yml").write_text(content)
        files = (*(folder / name for name in before), folder / "given.yml")
        return ImportOptions(vocabularies=files)

    return change


def listed(pieces):
    return "".join(f'"{piece}": {n}\n' for n, piece in enumerate(pieces))


BOMB = ["x"]
for _ in range(40):
    BOMB = [BOMB] * 9
NO_LANGUAGES = "of both languages that the checkpoint names"
REFUSED = {
    ("fairseq", make_fairseq): [
        (fairseq_args(encoder_layers_to_keep=torch_save.Tensor(np.ones(3))), "'array"),
        (fairseq_args(decoder_normalize_before=True), "decoder_normalize_before=True"),
        (fairseq_args(encoder_layers=1 << 40), "encoder_layers=1099511627776 is not"),
        (fairseq_args(encoder_attention_heads=5, decoder_attention_heads=5), "divisib"),
        (fairseq_args(decoder_layers=2), r"tensors that .* decoder\.layers\.2"),
        (fairseq_args(share_all_embeddings=True), "one matrix for both languages"),
        *(
            (fairseq_small(**{"layernorm_embedding": [1], name: BOMB}), "not supported")
            for name in ("layernorm_embedding", "dropout", "activation_fn")
        ),
        *(
            (fairseq_small(target_lang=language), NO_LANGUAGES)
            for language in ("../en", "a/b", "", None, ["en"], "e\n")
        ),
        *(
            (fairseq_file(content), r"model\.pt has no (tensors|arguments)")
            for content in (None, [1], {"model": {}}, {"args": {"x": 1}})
        ),
        (text("dict.en.txt", "the 7\nthe 5\n"), "line 2: 'the 5' is not a new piece"),
        (text("dict.de.txt", "a 1\n"), "has 15 rows, and the dictionary 5"),
        (text("codes", "l o\n"), "codes does not begin with '#version"),
        (text("spm.model", "x"), "spm.model: it is not a table|no SentencePiece model"),
    ],
    ("t2t", make_t2t): [
        (values("hparams.json", norm_type="batch"), "norm_type='batch' is not"),
        (values("hparams.json", num_heads=0), "num_heads=None is not"),
        (values("hparams.json", num_encoder_layers=2), "no tensor .*encoder/layer_1"),
        (values("hparams.json", norm_epsilon="x"), "norm_epsilon='x'"),
        (values("hparams.json", vocab_divisor=7), "symbol_modality_35|has 0"),
        (more_tensors, "does not: transformer/body/encoder/extra"),
        (given("'a'\n'b'\n"), r"begin with <pad> and <EOS>, and .* \['a', 'b'\]"),
        (given("<pad>\n"), r"and begins with \['<pad>'\]"),
        (given("<p>\n"), "is not a subword in quotes"),
        (given("'<pad>'\n'<EOS>'\n'x'\n"), "each of its characters as a subword"),
    ],
    ("hf_marian", make_hf): [
        (values("vocab.json", low=500), "different ids from 0 to"),
        (values("vocab.json", low=5), "different ids from 0 to"),
        (values("vocab.json", **{"</s>": 5, ">>de<<": 0}), "different ids|</s> with"),
        (zero_positions, "embed_positions.weight must be sinusoids"),
    ],
    ("marian", make_marian): [
        (text("vocab.spm", "x"), "SentencePiece"),
        (lambda folder: (folder / "vocab.spm").unlink(), "Pass --vocabularies=SOURCE,"),
        (given(listed("abcdefghijklmnopqrstuvw")), "has 23 pieces, the model 24"),
        (given(listed("abcdefghijklmnopqrstuvwx")), "has no pieces </s> and <unk>"),
        (
            given(listed(["</s>", "<unk>", *"abcdefghijklmnopqrstuv"]), "vocab.spm"),
            "one embedding for both sides",
        ),
    ],
}


@pytest.mark.parametrize(
    ("toolkit", "make", "change", "message"),
    [(*key, *row) for key, rows in REFUSED.items() for row in rows],
    ids=itertools.count(),
)
def test_another_model_is_refused_by_name(tmp_path, toolkit, make, change, message):
    make(tmp_path, "vocab.spm")
    options = change(tmp_path)
    options = options if isinstance(options, ImportOptions) else DEFAULTS
    with pytest.raises((DataError, InputMissingError), match=message) as caught:
        read(tmp_path, toolkit, options)
    assert len(str(caught.value)) < 1_000


def change_npz(path, **changes):
    with np.load(path) as archive:
        np.savez(path, **{**archive, **changes})


HOSTILE = [
    *("[]", "null", "-1", "1000000000000", ".nan", "[[1], {a: 1}]"),
    *("2020-01-01", "!!binary aGVsbG8=", "1" * 5000),
]


@pytest.mark.parametrize("value", [None, *HOSTILE], ids=range(len(HOSTILE) + 1))
def test_options_of_any_type_are_read_or_are_one_error(tmp_path, value):
    make_marian(tmp_path)
    with np.load(tmp_path / "model.npz") as archive:
        intact = archive["special:model.yml"].tobytes().rstrip(b"\0")
    lines, rng = intact.splitlines(), np.random.default_rng(11)
    errors = 0
    for number in range(70 if value is None else len(lines)):
        content = mutated(intact, rng) + b"\0"
        if value is not None:
            line = lines[number].partition(b":")[0] + f": {value}".encode()
            content = b"\n".join([*lines[:number], line, *lines[number + 1 :]])
        options = np.frombuffer(content, np.int8)
        change_npz(tmp_path / "model.npz", **{"special:model.yml": options})
        try:
            read(tmp_path)
        except UserError as error:
            errors += 1
            assert len(str(error)) < 2_000  # noqa: PT017 (it may also be read)
    assert errors > 20 or value is not None


@pytest.mark.parametrize("name", ["Wpos", "Wemb", "decoder_ff_logit_out_b"])
def test_arrays_of_other_ranks_are_one_error(tmp_path, name):
    make_marian(tmp_path)
    for shape in ((), (0,), (0, 8), (3,), (2, 2, 2)):
        change_npz(tmp_path / "model.npz", **{name: np.ones(shape, np.float32)})
        with pytest.raises(DataError, match=r"model\.npz|vocab\.spm"):
            read(tmp_path)
