"""Translation sets of TensorFlow Datasets, read without TensorFlow.

`tfds:wmt14_translate/de-en:train[:1%]:en-de` is a set and its config, a split as TFDS
writes splits, and a direction. The prepared set is in TFDS_DATA_DIR, or in
~/tensorflow_datasets if that is not set, in the random-access format array_record. It
is opened from its own metadata files, without the builder's code. Preparing a set is
left to TFDS.

TFDS trusts its files and raises errors of three libraries; all of them are reported
as damage here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from t2t_jax.data.corpora.corpus import spec_error
from t2t_jax.data.files.lines import LineProblems
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.files import MAX_JSON_BYTES, expand_user, json_fault, read_limited

_GRAMMAR = re.compile(
    r"(?P<name>[a-z]\w*(?:/[\w.-]+){0,2})"
    r":(?P<split>[^:\[\]]+(?:\[[^\]]*\][^:\[\]]*)*)"
    r"(?::(?P<direction>[\w-]+))?"
)
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_INFO_FILE = "dataset_info.json"
_AGAIN = "Remove the directory, and prepare the set again."
_BATCH = 1_024
_SAMPLED = 100
_BREAK = re.compile(r"\r?\n|\0")
# Keys of feature classes in the old and new formats of TFDS.
_CLASSES = ("pythonClassName", "python_class_name", "type")


@dataclass(frozen=True)
class TfdsCorpus:
    """One split of a prepared set, in one direction.

    A line end inside a sentence would split its translation into two lines, so a space
    replaces line ends and NULs.
    """

    spec: str
    directory: Path
    split: str
    languages: tuple[str, str]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        problems = LineProblems()
        records = open_set(self.directory).as_data_source(split=self.split)
        for start in range(0, len(records), _BATCH):
            numbers = range(start, min(start + _BATCH, len(records)))
            pairs = self._read(records, numbers)
            for number, texts in zip(numbers, pairs, strict=True):
                sides = zip(texts, self.languages, strict=True)
                lines = [self._line(*side, number, problems) for side in sides]
                if not problems.count:
                    yield lines[0], lines[1]
        if not len(records):
            problems.add(f"{self.spec} is empty.")
        problems.raise_if_any()

    def _line(
        self, text: bytes, language: str, number: int, problems: LineProblems
    ) -> str:
        """Decodes a sentence, with spaces for line ends and NULs."""
        try:
            return _BREAK.sub(" ", text.decode())
        except UnicodeDecodeError as error:
            fault, name = f"invalid UTF-8 ({error.reason}).", f"{self.spec}, {language}"
            shown = f"{self.spec}: example {number}, {language}: {fault}"
            problems.add_line(name, number, fault, shown=shown)
            return ""

    def num_pairs(self) -> int:
        """Returns the number in the set's metadata; no text is read."""
        return int(open_set(self.directory).info.splits[self.split].num_examples)

    def fingerprint(self) -> str:
        """Returns a SHA-256 of the version, the split sizes and 100 sampled pairs."""
        builder = open_set(self.directory)
        splits = builder.info.splits
        pieces = [
            [Path(piece.filename).name, piece.examples_in_shard, piece.skip, piece.take]
            for piece in splits[self.split].file_instructions
        ]
        sizes = {name: splits[name].num_bytes for name in sorted(splits)}
        records = builder.as_data_source(split=self.split)
        count, texts = len(records), hashlib.sha256()
        sample = sorted({count * part // _SAMPLED for part in range(_SAMPLED)})
        for text in chain.from_iterable(self._read(records, sample if count else [])):
            texts.update(hashlib.sha256(text).digest())
        made_of = ["tfds", builder.info.full_name, *self.languages, pieces, sizes]
        made_of.append(texts.hexdigest())
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()

    def _read(self, records: Any, numbers: Sequence[int]) -> list[list[bytes]]:
        """Reads the undecoded sentences of some examples, numbered from 0.

        Raises:
          DataError: a record file is truncated or altered.
        """
        try:
            examples = records.__getitems__(numbers) if numbers else []
            texts = [[one[name] for name in self.languages] for one in examples]
            # From a file truncated between two blocks array_record silently reads
            # empty records, which TFDS turns into None.
            if not all(isinstance(text, bytes) for pair in texts for text in pair):
                raise TypeError("an example has no text")
            return texts
        except Exception as error:
            cause = (str(error) or type(error).__name__).splitlines()[0]
            fault = f"{self.directory}: a record file is damaged ({cause}). {_AGAIN}"
            raise DataError(fault) from error


def open_set(directory: Path) -> Any:
    """Opens a prepared set from its metadata files, as TFDS's builder.

    Raises:
      DataError: the metadata are damaged, or name classes outside TFDS.
    """
    try:
        import tensorflow_datasets  # half a second

        _check_feature_classes(directory / "features.json")
        return tensorflow_datasets.builder_from_directory(directory)
    except Exception as error:
        fault = f"{directory}: not a valid TFDS set ({error}). {_AGAIN}"
        raise DataError(fault) from error


def _check_feature_classes(path: Path) -> None:
    """Refuses a set with other classes: TFDS would import and run their modules."""
    content = read_limited(path, max_bytes=MAX_JSON_BYTES, advice=_AGAIN)
    try:
        names = list(_classes(json.loads(content)))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path.name}: {json_fault(error)}") from error
    for name in names:
        if not name.startswith("tensorflow_datasets."):
            raise ValueError(f"{path.name} names {name}, whose code would be run")


def _classes(values: Any) -> Iterator[str]:
    """Yields the class names of nested JSON, also of JSON inside strings."""
    if isinstance(values, list):
        for value in values:
            yield from _classes(value)
    elif isinstance(values, dict):
        for name, value in values.items():
            if name in _CLASSES and isinstance(value, str):
                yield value
            elif name == "json" and isinstance(value, str):
                yield from _classes(json.loads(value))
            else:
                yield from _classes(value)


def open_tfds(spec: str, rest: str, *, key: str) -> TfdsCorpus:
    """Opens a prepared set.

    Args:
      rest: set, split and direction. The default direction is that of the set: German
        to English for wmt14_translate/de-en.

    Raises:
      ConfigError: the spec is invalid, or the set lacks the split or languages.
      DataError: the set is damaged, or in a format that only TensorFlow reads.
      InputMissingError: the set is not prepared.
    """
    if (part := _GRAMMAR.fullmatch(rest)) is None:
        rule = (
            "be tfds:NAME/CONFIG:SPLIT:SOURCE-TARGET, as in "
            "tfds:wmt14_translate/de-en:train[:1%]:en-de: a slice belongs to the split"
        )
        raise spec_error(key, spec, rule)
    named = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    change = f"TFDS_DATA_DIR or config.{key}"
    home = expand_user(named, f"{named} of {key}={spec!r}", change)
    if (directory := _find(home, part["name"])) is None:
        raise InputMissingError(
            f"{home / part['name']}: not a prepared set of TFDS. Prepare it once "
            "(needs TensorFlow, which reading does not): pip install "
            f"'t2t-jax[tfds-prepare]' && tfds build {part['name']} "
            f"--file_format=array_record --data_dir={home}; or set TFDS_DATA_DIR to "
            f"where it is, or change config.{key}."
        )
    builder = open_set(directory)
    _require_split(builder, directory, part["split"], spec=spec, key=key)
    languages = _languages(builder.info, part["direction"], spec=spec, key=key)
    return TfdsCorpus(spec, directory, part["split"], languages)


def _find(home: Path, name: str) -> Path | None:
    """Finds the newest version of a set, or the version in its name."""
    directory = home / name
    if (directory / _INFO_FILE).is_file():
        return directory
    paths = (path.parent for path in directory.glob(f"*/{_INFO_FILE}"))
    known = (path for path in paths if _VERSION.fullmatch(path.name))
    numbers = {tuple(map(int, path.name.split("."))): path for path in known}
    return numbers[max(numbers)] if numbers else None


def _require_split(
    builder: Any, directory: Path, split: str, *, spec: str, key: str
) -> None:
    splits = builder.info.splits
    try:
        len(builder.as_data_source(split=split))  # Fails on train[7:5].
    except NotImplementedError as error:
        raise DataError(
            f"{directory}: is in a format that only TensorFlow reads. Where that is "
            "installed,\ntfds convert_format --out_file_format=array_record "
            f"--dataset_version_dir={directory}\nwrites one that is read at random."
        ) from error
    except ValueError as error:
        sizes = (f"{n} ({splits[n].num_examples:,} examples)" for n in sorted(splits))
        rule = f"have a valid split; the set has {', '.join(sizes) or 'no split'}"
        raise spec_error(key, spec, rule) from error
    files = {piece.filename for piece in splits[split].file_instructions}
    if missing := sorted(Path(name).name for name in files if not Path(name).is_file()):
        few = f"{len(missing)} of {len(files)} files are missing, such as {missing[0]}"
        raise DataError(f"{directory}: {few}. {_AGAIN}")


def _languages(
    info: Any, direction: str | None, *, spec: str, key: str
) -> tuple[str, str]:
    from tensorflow_datasets import features

    # Their stored order is not deterministic.
    kinds = dict(sorted(info.features.items()))
    names = [name for name, kind in kinds.items() if isinstance(kind, features.Text)]
    known = {f"{one}-{two}": (one, two) for one in names for two in names if one != two}
    if direction is None and info.supervised_keys is not None:
        direction = "-".join(map(str, info.supervised_keys))
    if not known:
        listed = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        rule = "be a translation set, with a feature of text for each language, and has"
        raise spec_error(key, spec, f"{rule} {listed}")
    if direction not in known:
        ends = ", ".join(f":{direction}" for direction in known)
        raise spec_error(key, spec, f"end in one of {ends}")
    return known[direction]
