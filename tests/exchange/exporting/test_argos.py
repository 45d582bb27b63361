"""An `.argosmodel` is laid out as Argos Translate reads it.

Seen to fail: with the vocabulary of CTranslate2's export among the files of the model;
with a name in the place of a code.
"""

import json
import zipfile

import pytest

from t2t_jax.exchange.exporting.argos import ArgosFormat
from t2t_jax.exchange.exporting.base import ExportSpec
from tests.exchange.exporting.counting import original
from tests.exchange.exporting.test_marian import MODEL

pytest.importorskip("ctranslate2")


def test_argos_finds_a_directory_with_model_tokenizer_and_metadata(tmp_path):
    to, languages = tmp_path / "to", ("en", "de")
    to.mkdir()
    ArgosFormat().write(to, original(MODEL, languages=languages), ExportSpec("argos"))
    (package,) = to.iterdir()
    assert package.name == "translate-en_de.argosmodel"
    with zipfile.ZipFile(package) as file:
        file.extractall(tmp_path / "packages")
    (content,) = (tmp_path / "packages").iterdir()
    names = {path.relative_to(content).as_posix() for path in content.rglob("*")}
    assert names == {
        *("metadata.json", "README.md", "sentencepiece.model", "model"),
        *("model/config.json", "model/model.bin", "model/shared_vocabulary.json"),
    }
    assert json.loads((content / "metadata.json").read_text()) == {
        "package_version": "1.0",
        "argos_version": "1.0",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
    }
