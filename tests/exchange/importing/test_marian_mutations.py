"""Damaged and hostile files of Marian: one error each, or a model.

Seen to fail: with options shown as they are, of which a few bytes of YAML can make
billions of characters, and without the bounds of the sizes.
"""

import os

import numpy as np
import pytest

from t2t_jax.errors import DataError, UserError
from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.exchange.importing.marian import read_marian
from tests.exchange import marian_save
from tests.exchange.importing.mutations import check_mutations, mutated

pytest.importorskip("yaml")


@pytest.fixture
def folder(tmp_path):
    tensors = marian_save.tensors_of(
        marian_save.OPTIONS, (24, 24), rng=np.random.default_rng(0), positions=5
    )
    marian_save.save(tmp_path / "model.npz", tensors=tensors)
    (tmp_path / "vocab.spm").write_bytes(marian_save.sentencepiece_model())
    (tmp_path / "model.npz.decoder.yml").write_text(
        "beam-size: 6\nnormalize: 0.6\nvocabs:\n  - vocab.spm\n  - vocab.spm\n"
    )
    return tmp_path


def read(path):
    return read_marian(path, ImportOptions())


@pytest.mark.parametrize("name", ["model.npz", "vocab.spm", "model.npz.decoder.yml"])
def test_a_mutated_file_is_read_or_is_one_error(folder, name):
    names = sorted(os.listdir(folder))
    assert check_mutations(folder / name, lambda: read(folder)) > 20
    assert sorted(os.listdir(folder)) == names


@pytest.mark.parametrize("suffix", ["yml", "json", "txt"])
def test_a_mutated_list_of_pieces_is_read_or_is_one_error(folder, suffix):
    pieces = ["</s>", "<unk>", *(f"piece{number}" for number in range(22))]
    path = folder / f"vocab.{suffix}"
    lines = {
        "yml": "".join(f'"{piece}": {n}\n' for n, piece in enumerate(pieces)),
        "json": "{" + ",\n".join(f'"{p}": {n}' for n, p in enumerate(pieces)) + "}",
        "txt": "".join(f"{piece}\n" for piece in pieces),
    }
    path.write_text(lines[suffix])
    options = ImportOptions(vocabularies=(path,))
    assert check_mutations(path, lambda: read_marian(folder, options)) > 10


def write_options(folder, content):
    with np.load(folder / "model.npz") as archive:
        tensors = dict(archive)
    tensors["special:model.yml"] = np.frombuffer(content, np.int8)
    np.savez(folder / "model.npz", **tensors)


def options_of(folder):
    with np.load(folder / "model.npz") as archive:
        return archive["special:model.yml"].tobytes().rstrip(b"\0")


def test_mutated_options_are_read_or_are_one_error(folder):
    intact, rng = options_of(folder), np.random.default_rng(11)
    errors = 0
    for _ in range(200):
        write_options(folder, mutated(intact, rng) + b"\0")
        try:
            read(folder)
        except UserError:
            errors += 1
    assert errors > 60


HOSTILE = [
    *("[]", "{}", "null", "-1", "0", "7", "1000000000000", "1e99", ".inf", ".nan"),
    *("[[1], {a: 1}]", "2020-01-01", "!!binary aGVsbG8=", "1" * 5000),
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_options_of_any_type_are_read_or_are_one_error(folder, value):
    options = options_of(folder).decode().splitlines()
    for number, line in enumerate(options):
        changed = [*options]
        changed[number] = f"{line.partition(':')[0]}: {value}"
        write_options(folder, "\n".join(changed).encode())
        try:
            read(folder)
        except DataError as error:
            assert len(str(error)) < 1_000  # noqa: PT017 (it may also be read)


@pytest.mark.parametrize("name", ["Wpos", "Wemb", "decoder_ff_logit_out_b"])
def test_arrays_of_other_ranks_are_one_error(folder, name):
    with np.load(folder / "model.npz") as archive:
        tensors = dict(archive)
    for shape in ((), (0,), (0, 8), (3,), (2, 2, 2)):
        np.savez(folder / "model.npz", **tensors | {name: np.ones(shape, np.float32)})
        with pytest.raises(DataError, match=r"model\.npz|vocab\.spm"):
            read(folder)
