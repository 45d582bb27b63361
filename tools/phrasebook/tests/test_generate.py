import hashlib
import lzma
import sys

import generate
import pytest

from t2t_jax.data.corpora import phrasebook

SHA256 = "0ac65e2ca6b3bbcc3124bcade1657a2c7356cff68d3b49cca7a37cc653a46f5c"


def test_the_shipped_text_is_what_the_grammar_derives():
    derived = "".join(generate.shipped_lines()).encode()
    assert hashlib.sha256(derived).hexdigest() == SHA256
    shipped = lzma.decompress(generate.SHIPPED.read_bytes())
    assert hashlib.sha256(shipped).hexdigest() == SHA256


def test_the_package_knows_sizes_and_fingerprint():
    assert phrasebook.SIZES == generate.SIZES
    assert generate.fingerprint() == phrasebook.FINGERPRINT


def test_the_file_is_written_with_its_hashes(tmp_path, monkeypatch, capsys):
    shipped = tmp_path / "pairs.tsv.xz"
    monkeypatch.setattr(generate, "SHIPPED", shipped)
    monkeypatch.setattr(generate, "SIZES", {"dev": 3, "train": 5})
    monkeypatch.setattr(sys, "argv", ["generate.py"])
    generate.main()
    text = lzma.decompress(shipped.read_bytes())
    assert text.count(b"\n") == text.count(b"\t") == 8
    assert hashlib.sha256(text).hexdigest() in capsys.readouterr().out


def test_other_pairs_are_written_as_tab_separated_text(tmp_path, monkeypatch):
    more = tmp_path / "more.tsv"
    monkeypatch.setattr(sys, "argv", ["generate.py", "train", "7", str(more)])
    generate.main()
    assert more.read_text("utf-8") == "".join(generate.tsv_lines("train", 7))
    monkeypatch.setattr(sys, "argv", ["generate.py", "train", "7"])
    with pytest.raises(SystemExit):
        generate.main()
