"""Checkpoints of fairseq, beside a NumPy transcription of its model.

Seen to fail: with positions from 1, with the paper's rates, with bos at the start, with
stacked projections or the norms of a list in the other order, with learned positions
scaled, with ids as they are, and where matrices that are shared are not compared.
"""

import argparse
import collections

import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.fairseq import is_fairseq, read_fairseq
from t2t_jax.exchange.importing.imported import DEFAULTS, ImportOptions
from t2t_jax.exchange.importing.importer import find_format
from t2t_jax.exchange.importing.vocabularies import read_dictionary
from tests.exchange.fairseq_state import D_MODEL, POSITIONS, State, arguments
from tests.exchange.importing.imported_config import (
    as_search,
    greedy_translator,
    logits_of,
    without_mean,
)
from tests.exchange.torch_save import Tensor, save_legacy, save_zip
from tests.reference import fairseq as reference

PIECES = ["the", "lo@@", "w", "wer", "new@@", "est", "a", "b", "c", "madeupword0000"]
GERMAN = ["das", "ist", "lo@@", "w", "klein", "gro@@", "ß", "x", "y", "z", "q"]
SIZES = (len(PIECES) + 4, len(GERMAN) + 4)


def state_of(args, *, sizes=SIZES, **how):
    return State(args, sizes=sizes, **how).tensors


def write(folder, state, *, args=None, cfg=None, save=save_zip, name="model.pt"):
    """Writes a checkpoint with its dictionaries."""
    tensors = collections.OrderedDict((key, Tensor(x)) for key, x in state.items())
    known = None if args is None else argparse.Namespace(**args)
    content = {"args": known, "cfg": cfg, "model": tensors, "extra_state": {"epoch": 3}}
    save(folder / name, content)
    write_dictionary(folder / "dict.en.txt", PIECES)
    joined = args is not None and args["share_all_embeddings"]
    write_dictionary(folder / "dict.de.txt", PIECES if joined else GERMAN)
    return folder / name


def write_dictionary(path, pieces):
    path.write_text("".join(f"{piece} {100 - n}\n" for n, piece in enumerate(pieces)))


def ids(tokens):
    """Fairseq's ids, of which the first two change places."""
    return [{0: 1, 1: 0}.get(token, token) for token in tokens]


# In fairseq's ids.
SENTENCES = [([5, 7, 3, 9, 2], [2, 8, 9, 6]), ([4, 2], [2]), ([4, 13, 2], [2, 3, 13])]


def check(path, state, args):
    imported = read_fairseq(path, DEFAULTS)
    # Our decoder starts with bos, whatever it stands for.
    inputs = [[1, *ids(target[1:])] for _, target in SENTENCES]
    found = logits_of(imported, [ids(source) for source, _ in SENTENCES], inputs)
    found = found[..., ids(range(found.shape[-1]))]
    for row, (source, target_inputs) in zip(found, SENTENCES, strict=True):
        expected = reference.transformer(source, target_inputs, state, args)
        # float32 sums over two layers of width 12, against float64
        assert_allclose(row[: len(target_inputs)], expected, rtol=1e-5, atol=1e-5)
    return imported


@pytest.mark.parametrize(
    ("save", "old", "pre", "tying"),
    [
        (save_zip, False, False, "decoder"),
        (save_legacy, True, False, "all"),
        (save_zip, True, True, "none"),
        (save_legacy, False, True, "all"),
    ],
)
def test_a_model_computes_what_fairseq_does(tmp_path, save, old, pre, tying):
    args = arguments(
        encoder_normalize_before=pre,
        decoder_normalize_before=pre,
        share_all_embeddings=tying == "all",
        share_decoder_input_output_embed=tying == "decoder",
    )
    sizes = (SIZES[0],) * 2 if tying == "all" else SIZES
    state = state_of(args, sizes=sizes, old=old)
    path = write(tmp_path, state, args=args, save=save)
    imported = check(path, state, args)
    assert imported.config["model.tying"] == tying
    assert imported.vocabularies.shared == (tying == "all")
    search = as_search(beam_size=5, length_penalty=1.0, max_extra_tokens=200)
    search |= as_search(length_normalization="power", min_tokens=1)
    assert imported.search.items() >= search.items()
    assert imported.languages == ("en", "de")
    names = {file.name for file in imported.files}
    assert names == {"model.pt", "dict.en.txt", "dict.de.txt"}


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize("old", [True, False])
def test_what_torch_itself_saved_computes_what_fairseq_does(tmp_path, is_zip, old):
    torch = pytest.importorskip("torch")
    args = arguments()
    state = state_of(args, old=old)
    weights = {
        name: torch.nn.Parameter(torch.tensor(one)) for name, one in state.items()
    }
    optimizer = torch.optim.Adam(weights.values())
    sum(one.sum() for one in weights.values()).backward()
    optimizer.step()
    content = {
        "args": argparse.Namespace(**args, lr=[0.0005], adam_betas="(0.9, 0.98)"),
        "model": collections.OrderedDict(weights),
        "last_optimizer_state": optimizer.state_dict(),
        "optimizer_history": [{"lr_scheduler_state": {"best": None}, "num_updates": 1}],
    }
    path = write(tmp_path, state, args=args)
    torch.save(content, path, _use_new_zipfile_serialization=is_zip)
    check(path, {name: one.detach().numpy() for name, one in weights.items()}, args)


def nested(args):
    """The sections of a newer checkpoint; those of both stacks are their own."""
    sections = {"task": {}, "model": {"encoder": {}, "decoder": {}, "quant_noise": {}}}
    for name, value in args.items():
        prefix, _, rest = name.partition("_")
        if prefix in ("encoder", "decoder"):
            sections["model"][prefix][rest] = value
        else:
            kind = "task" if name.endswith("_lang") else "model"
            sections[kind][name] = value
    return sections | {"optimizer": {"lr": [0.5]}}


@pytest.mark.parametrize("unscaled", [False, True])
def test_learned_positions_gelu_half_precision_and_sections(tmp_path, unscaled):
    args = arguments(
        encoder_learned_pos=True,
        decoder_learned_pos=True,
        activation_fn="gelu",
        no_scale_embedding=unscaled,
    )
    state = {name: each.astype(np.float16) for name, each in state_of(args).items()}
    imported = check(write(tmp_path, state, cfg=nested(args)), state, args)
    assert imported.config["model.max_positions"] == POSITIONS
    assert imported.languages == ("en", "de")
    assert any("a limit of 40 tokens" in note for note in imported.notes)


def varied(state, args):
    name = "decoder.output_projection.weight"
    vectors = state | {name: np.eye(D_MODEL)}
    inputs = [2, *range(3, len(GERMAN) + 4)]
    mean = reference.transformer([5, 7, 9, 2], inputs, vectors, args).mean(axis=0)
    return state | {name: without_mean(state[name], mean)}


def test_greedy_translation_is_fairseqs(tmp_path):
    args, extra = arguments(share_decoder_input_output_embed=False), 9
    state = varied(state_of(args, seed=17), args)
    imported = read_fairseq(write(tmp_path, state, args=args), DEFAULTS)
    translator = greedy_translator(imported, extra)
    rng = np.random.default_rng(5)
    sources = [rng.integers(4, len(PIECES) + 4, size).tolist() for size in range(1, 9)]
    lines = [" ".join(PIECES[token - 4] for token in source) for source in sources]
    outputs = [
        reference.greedy([*source, 2], state, args, most=len(source) + extra)
        for source in sources
    ]
    pieces = [[["<unk>", *GERMAN][token - 3] for token in one] for one in outputs]
    expected = [" ".join([*one, ""]).replace("@@ ", "").strip() for one in pieces]
    assert translator.translate(lines) == expected
    assert len({len(set(one)) for one in outputs}) > 2
    pairs = zip(outputs, sources, strict=True)
    assert any(len(output) < len(source) + extra for output, source in pairs)


def small(folder, *, save=save_zip, **changes):
    """Writes a model of one layer a stack."""
    args = arguments(encoder_layers=1, decoder_layers=1, **changes)
    return write(folder, state_of(args), args=args, save=save)


CODES = "#version: 0.2\nl o\nw e\nwe r</w>\nt h\nth e</w>\n"


@pytest.mark.parametrize(
    ("codes", "line", "pieces", "text", "note"),
    [
        (CODES, "the lower  a", ["the", "lo@@", "wer", "a"], "the lower a", "Moses"),
        ("", "lo@@ wer zz", ["lo@@", "wer", "<unk>"], "lower <unk>", "given in pieces"),
    ],
)
def test_codes_beside_the_model_split_words(tmp_path, codes, line, pieces, text, note):
    small(tmp_path)
    if codes:
        (tmp_path / "bpecodes").write_text(codes)
    imported = read_fairseq(tmp_path, DEFAULTS)
    source = imported.vocabularies.source
    (encoded,) = source.encode([line])
    assert source.pieces(encoded) == pieces
    assert source.decode([encoded]) == [text]
    assert (tmp_path / "bpecodes" in imported.files) == bool(codes)
    assert any(note in one for one in imported.notes)


def test_a_sentencepiece_model_beside_the_model_splits_lines(tmp_path):
    small(tmp_path)
    model = Vocabulary.train(["low", "lower", "newest", "widest"] * 3, 24)
    pieces, line = [*model.pieces(range(4, 14))], ["low lowest"]
    (tmp_path / "spm.model").write_bytes(model.model)
    write_dictionary(tmp_path / "dict.en.txt", pieces)
    source = read_fairseq(tmp_path, DEFAULTS).vocabularies.source
    known = [x if x in pieces else "<unk>" for x in model.pieces(model.encode(line)[0])]
    assert source.pieces(source.encode(line)[0]) == known


def test_given_dictionaries_are_used(tmp_path):
    path = small(tmp_path, source_lang=None)
    given = (tmp_path / "dict.en.txt", tmp_path / "dict.de.txt")
    imported = read_fairseq(path, ImportOptions(vocabularies=given))
    assert imported.vocabularies.source.pieces(range(4, 14)) == PIECES
    assert imported.languages is None


def test_pieces_that_look_special_have_their_own_ids():
    text = "<unk> 5 #fairseq:overwrite\nb 4\n"
    assert read_dictionary(text, name="dict")[4:] == ["<unk>", "b"]


def test_a_checkpoint_is_found_in_its_directory(tmp_path):
    small(tmp_path)
    for path in (tmp_path, tmp_path / "model.pt"):
        assert find_format(path) == "fairseq"
    assert not is_fairseq(tmp_path / "dict.en.txt")
    (tmp_path / "model.pt").rename(tmp_path / "other.pt")
    assert read_fairseq(tmp_path, DEFAULTS).files[0].name == "other.pt"
    (tmp_path / "other2.pt").write_text("")
    with pytest.raises(DataError, match=r"a single other \.pt file, and has 2"):
        read_fairseq(tmp_path, DEFAULTS)
    small(tmp_path).rename(tmp_path / "checkpoint_best.pt")
    assert read_fairseq(tmp_path, DEFAULTS).files[0].name == "checkpoint_best.pt"
