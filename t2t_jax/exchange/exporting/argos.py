"""Exports to Argos Translate and LibreTranslate: a package `.argosmodel`.

It is a zip with one directory: a CTranslate2 model, one SentencePiece model of both
sides, and metadata.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import shown_tags
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import UserError, require_package
from t2t_jax.exchange.cards import fill_usage
from t2t_jax.exchange.exporting.base import (
    ExportFormat,
    ExportSpec,
    Original,
    require_sentencepiece,
    require_transformer,
    untagged,
)
from t2t_jax.exchange.exporting.ctranslate2 import (
    SUPPORTED,
    CTranslate2Backend,
    write_ctranslate2,
)
from t2t_jax.exchange.exporting.verification import Backend
from t2t_jax.exchange.formats import FILE_SUFFIXES
from t2t_jax.run.text import name_of_language


class ArgosFormat(ExportFormat):
    """Packages of Argos Translate."""

    library = "argostranslate"
    verified_with = "CTranslate2 and the model of this package"
    tags = ("ctranslate2", "libretranslate")

    def check_supported(self, config: Config) -> None:
        """Checks that CTranslate2 is installed, and that there is one vocabulary."""
        require_transformer(config, "argos", SUPPORTED)
        require_package("ctranslate2", user="--format=argos", extra="export")
        if config.vocabulary.source_size:
            raise UserError(
                "--format=argos requires one vocabulary of both sides: a package has "
                "one SentencePiece model. The model has two (vocabulary.source_size="
                f"{config.vocabulary.source_size}). Use --format=ctranslate2."
            )

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes `translate-SOURCE_TARGET.argosmodel`."""
        source, target = _languages(original)
        pieces = require_sentencepiece(original.model.vocabularies.target, "argos")
        names = [name_of_language(code) for code in (source, target)]
        metadata = dict.fromkeys(("package_version", "argos_version"), "1.0")
        metadata |= {"from_code": source, "from_name": names[0]}
        metadata |= {"to_code": target, "to_name": names[1]}
        about = f"Translates from {names[0]} to {names[1]}. Made with t2t_jax.\n"
        files = {
            "metadata.json": f"{json.dumps(metadata, indent=2)}\n".encode(),
            "README.md": about.encode(),
            "sentencepiece.model": pieces,
        }
        with TemporaryDirectory(dir=to) as directory:
            folder = Path(directory)
            write_ctranslate2(folder, original, spec, language=_tag_of(original))
            for path in sorted(folder.iterdir()):
                files[f"model/{path.name}"] = path.read_bytes()
        path = to / _file_name(source, target)
        with zipfile.ZipFile(path, "w") as package:
            for name, content in files.items():
                # Argos unpacks packages side by side; theirs are called en_de.
                info = zipfile.ZipInfo(f"t2t_jax-{source}_{target}/{name}")
                info.external_attr = 0o644 << 16
                package.writestr(info, content, zipfile.ZIP_DEFLATED)

    def load(self, directory: Path, original: Original) -> Backend:
        """Unpacks the package, and loads its model and SentencePiece model."""
        (path,) = directory.glob(f"*{FILE_SUFFIXES['argos']}")
        with TemporaryDirectory() as unpacked, zipfile.ZipFile(path) as package:
            folder = Path(package.namelist()[0]).parent
            shared = Vocabulary(package.read(f"{folder}/sentencepiece.model"))
            for name in package.namelist():
                if name.startswith(f"{folder}/model/"):
                    (Path(unpacked) / Path(name).name).write_bytes(package.read(name))
            return CTranslate2Backend(
                Path(unpacked),
                vocabularies=VocabularyPair(shared, shared),
                config=original.config,
                adds_tag=bool(shared.tags),
            )

    def usage(self, original: Original, *, name: str) -> str:
        """Describes Argos Translate and LibreTranslate."""
        file = _file_name(*_languages(original))
        return fill_usage("argos", untagged(original)[0], name, file=file)


def _languages(original: Original) -> tuple[str, str]:
    if original.languages is None:
        raise UserError(
            "--format=argos requires the languages of a package, one direction, and "
            "the training text of the model names "
            f"{', '.join(map('-'.join, original.directions)) or 'none'}. Set "
            "--languages=SOURCE,TARGET, such as en,de."
        )
    return original.languages


def _tag_of(original: Original) -> str:
    """Returns the language whose tag a package adds to each source; "" for none."""
    tags, target = original.model.vocabularies.source.tags, _languages(original)[1]
    if tags and target not in tags:
        raise UserError(
            f"--languages={','.join(_languages(original))}: the model has no tag of "
            f"{target}, but of {shown_tags(tags, target)}. Change --languages."
        )
    return target if tags else ""


def _file_name(source: str, target: str) -> str:
    return f"translate-{source}_{target}{FILE_SUFFIXES['argos']}"
