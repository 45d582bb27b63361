"""Sets of TFDS as its own builders write them, with no download and no TensorFlow."""

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from unittest import mock

Pairs = Iterable[tuple[str, str]]


def write_wmt14(home: Path, splits: Mapping[str, Pairs]) -> None:
    """Has the builder of wmt14_translate/de-en prepare pairs, (German, English)."""
    tfds = importlib.import_module("tensorflow_datasets")
    wmt14 = importlib.import_module("tensorflow_datasets.translate.wmt14")

    def split_generators(builder, manager):
        return {name: builder._generate_examples(p) for name, p in splits.items()}

    def generate_examples(builder, pairs):
        for number, pair in enumerate(pairs):
            yield number, dict(zip(("de", "en"), pair, strict=True))

    fakes = {
        "_split_generators": split_generators,
        "_generate_examples": generate_examples,
    }
    with mock.patch.multiple(wmt14.Wmt14Translate, create=True, **fakes):
        builder = tfds.builder(
            "wmt14_translate/de-en", data_dir=home, file_format="array_record"
        )
        builder.download_and_prepare(
            download_config=tfds.download.DownloadConfig(try_download_gcs=False)
        )
