"""The text of a run or model: its paths, its languages, and sentences from it.

Paths are absolute, so that every later command works from anywhere; what leaves with an
export has the names of the files alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.corpus import directions_of, with_tags
from t2t_jax.data.corpora.open import open_corpus, split_directions, split_spec
from t2t_jax.data.corpora.phrasebook import examples
from t2t_jax.data.vocabulary.tokenizers import LANGUAGE_CODE
from t2t_jax.errors import UserError
from t2t_jax.files import read_json_if_valid
from t2t_jax.run.dev_outputs import read_step_samples, steps_in
from t2t_jax.run.workdir import Workdir

_FILES = re.compile(
    r"(?P<before>(?:[^:]*\*)?(?P<kind>text|tsv|trees):)(?P<files>.*?)"
    # The columns of a tsv file, which have a comma, a tag, and a slice.
    r"(?P<after>(?:#\d+,\d+)?(?:#<[^<>#,\s]+>)?(?:\[[^\[\]]*\])?)"
)
# In the name of a directory they would separate file names in a spec.
_SEPARATORS = set("+,:#*[]$~")


def with_absolute_text(config: Config) -> Config:
    """Returns a configuration whose corpora, first model and shortlist are absolute.

    Relative paths are those of the working directory. Other keys stay as they are:
    `vocabulary.file` is read once.
    """
    first, some = config.init_from, config.decoding.shortlist
    first, some = first and os.path.abspath(first), some and os.path.abspath(some)
    decoding = replace(config.decoding, shortlist=some)
    to_absolute = partial(absolute_spec, directory=os.getcwd())
    return _with_specs(config, to_absolute, init_from=first, decoding=decoding)


def _with_specs(config: Config, change: Callable[[str], str], **others: Any) -> Config:
    """Changes the specs of all corpora of a configuration, and other sections."""
    names = ("train", "dev", "held_out", "glossary")
    specs: Any = {name: change(getattr(config.data, name)) for name in names}
    return replace(config, data=replace(config.data, **specs), **others)


def absolute_spec(spec: str, directory: str) -> str:
    """Makes the paths of a spec absolute; those after `~` or `$NAME` stay.

    Nothing changes below a directory whose name has a character that separates the
    file names of a spec.

    Args:
      directory: an absolute path, which relative ones begin from.

    Example:
      >>> absolute_spec("2*text:a.en+/b.en,a.de+/b.de[9:]++tsv:../x#3,1", "/home/me")
      '2*text:/home/me/a.en+/b.en,/home/me/a.de+/b.de[9:]++tsv:/home/x#3,1'
    """
    if _SEPARATORS & set(directory):
        return spec

    def to_absolute(name: str) -> str:
        is_relative = name and name[0] not in "/~$"
        return os.path.normpath(os.path.join(directory, name)) if is_relative else name

    return _with_names(spec, to_absolute, directory=directory)


def without_folders(config: Config) -> Config:
    """Returns a configuration that tells no folder of the machine it was trained on."""
    data, words = replace(config.data, cache_dir=""), config.vocabulary
    file, source_file = map(os.path.basename, (words.file, words.source_file))
    return _with_specs(
        replace(config, data=data),
        spec_of_names,
        vocabulary=replace(words, file=file, source_file=source_file),
        init_from=os.path.basename(config.init_from.rstrip("/")),
        decoding=replace(config.decoding, shortlist=""),
    )


def spec_of_names(spec: str) -> str:
    """Leaves out the folders of a spec's files.

    Example:
      >>> spec_of_names("2*text:/home/me/a.en+/b.en,/a.de+~/b.de[9:]++tsv:../x#3,1")
      '2*text:a.en+b.en,a.de+b.de[9:]++tsv:x#3,1'
    """
    return _with_names(spec, os.path.basename)


def _with_names(spec: str, change: Callable[[str], str], *, directory: str = "") -> str:
    """Changes the file names of a spec, one at a time.

    Args:
      directory: in which they are; "" for the working directory.
    """
    parts = split_spec(spec)
    for number, part in enumerate(parts):
        plain, directions = split_directions(part)
        if found := _FILES.fullmatch(plain):
            sides = []
            for side in found["files"].split(","):
                # One name may have a + in it.
                is_one = os.path.isfile(os.path.join(directory, side))
                names = [side] if is_one else side.split("+")
                sides.append("+".join(map(change, names)))
            tags = f"#{','.join(map('-'.join, directions))}" * bool(directions)
            parts[number] = f"{found['before']}{','.join(sides)}{found['after']}{tags}"
    return "++".join(parts)


_SUFFIX = re.compile(rf"(?:^|.\.)({LANGUAGE_CODE})(?:\.txt)?(?:\.gz)?$")
# Extensions of text in any language.
_NO_LANGUAGES = set("bpe hyp in out raw ref spm src tgt tok trg tsv txt".split())

_NAMES = (
    "ar Arabic az Azerbaijani bg Bulgarian bn Bengali ca Catalan cs Czech da Danish "
    "de German el Greek en English eo Esperanto es Spanish et Estonian eu Basque fa "
    "Persian fi Finnish fr French ga Irish gl Galician gu Gujarati ha Hausa he Hebrew "
    "hi Hindi hr Croatian hu Hungarian id Indonesian is Icelandic it Italian ja "
    "Japanese ka Georgian kk Kazakh ko Korean lt Lithuanian lv Latvian mk Macedonian "
    "mr Marathi ms Malay nb Norwegian nl Dutch no Norwegian pl Polish ps Pashto pt "
    "Portuguese ro Romanian ru Russian sk Slovak sl Slovenian sq Albanian sr Serbian "
    "sv Swedish sw Swahili ta Tamil te Telugu th Thai tl Tagalog tr Turkish uk "
    "Ukrainian ur Urdu vi Vietnamese zh Chinese"
).split()
_NAME_OF = dict(zip(_NAMES[::2], _NAMES[1::2], strict=True))
Pair = tuple[str, str]
"""Codes of the source and the target language."""


def name_of_language(code: str) -> str:
    """Returns the English name of a language; its code if the name is not known."""
    return _NAME_OF.get(code, code)


def language_of_file(path: str) -> str:
    """Returns the language that a file's name ends in; "" if it names none.

    Example:
      >>> [language_of_file(name) for name in ("train.fr", "a/dev.pt-BR.gz", "fr.txt")]
      ['fr', 'pt_BR', 'fr']
      >>> [language_of_file(name) for name in ("source.txt", "test.src", "de")]
      ['', '', 'de']
    """
    found = _SUFFIX.search(Path(path).name.replace("-", "_"))
    return found[1] if found and found[1] not in _NO_LANGUAGES else ""


def languages_of_spec(spec: str) -> list[Pair]:
    """Lists the pairs of languages that the corpora of a spec name, each once.

    Example:
      >>> languages_of_spec("text:train.en.gz,train.de.gz++2*text:a.en,a.fr[:9]")
      [('en', 'de'), ('en', 'fr')]
      >>> languages_of_spec("tfds:wmt14_translate/de-en:train[:1%]:en-de++tsv:a.tsv")
      [('en', 'de')]
      >>> languages_of_spec("tsv:a.tsv#en-de,de-en[:9]")
      [('en', 'de'), ('de', 'en')]
      >>> languages_of_spec("text:c++/a.en,c++/a.de++text:a.en,a.fr+b.fr")
      [('en', 'de'), ('en', 'fr')]
    """
    parts = [split_directions(part) for part in split_spec(spec)]
    found = (named or filter(None, [_languages_of_corpus(n)]) for n, named in parts)
    return list(dict.fromkeys(pair for some in found for pair in some))


def _languages_of_corpus(spec: str) -> Pair | None:
    plain = re.sub(r"\[[^\]]*\]", "", re.sub(r"^[\d.]+\*", "", spec))
    kind, _, rest = plain.partition(":")
    if kind == "phrasebook":
        return "en", "de"
    if kind == "tfds":
        source, dash, target = rest.rpartition(":")[2].partition("-")
        return (source, target) if dash and ":" in rest else None
    # A + may also stand in the name of a directory.
    named = (map(language_of_file, files.split("+")) for files in rest.split(","))
    sides = [next(filter(None, names), "") for names in named]
    # The same ending of both files is not a language.
    is_pair = kind == "text" and len(sides) == len(set(sides)) == 2 and all(sides)
    return (sides[0], sides[1]) if is_pair else None


def languages_of(workdir: Workdir, config: Config) -> list[Pair]:
    """Lists the pairs of languages of a run or model; empty if they are not known.

    Args:
      config: of the workdir. Of an imported model, the languages that its files name
        take precedence over those of `data.train`.
    """
    with suppress(KeyError, TypeError, ValueError):
        model = read_json_if_valid(workdir.path / "model.json")
        source, target = model["imported"]["languages"]
        return [(str(source), str(target))]
    return languages_of_spec(config.data.train)


MAX_EXAMPLES = 4
"""Number of example sentences."""

_SHORT = 60  # characters; several of these fit on a line or two
_SEARCHED = 50  # sentences searched for short ones


def example_sentences(workdir: Workdir) -> tuple[str, ...]:
    """Lists sentences that a model should be able to translate.

    An exported or averaged model has them in model.json. A model of the phrasebook has
    its `examples()`, which are not in its training text. Any other run has short
    sentences of its development text, from the samples of its last evaluation.

    Returns:
      Up to `MAX_EXAMPLES` sentences; empty if there is no text.

    Raises:
      UserError: config.json cannot be read.
    """
    listed = read_json_if_valid(workdir.path / "model.json").get("examples")
    if isinstance(listed, list) and listed:
        return tuple(map(str, listed[:MAX_EXAMPLES]))
    if not workdir.has_config:
        return ()
    config = workdir.read_config()
    if config.data.train.startswith("phrasebook:"):
        return tuple(example.english for example in examples()[:MAX_EXAMPLES])
    folder = workdir.path / "samples"
    newest = [read_step_samples(folder, step) for step in steps_in(folder)[-1:]]
    sampled = [source for samples in newest for source, *_ in samples]
    return _short_lines(sampled) or _short_lines(_dev_sources(workdir, config))


def _dev_sources(workdir: Workdir, config: Config) -> list[str]:
    """Reads the first sources of the development text, if it still exists."""
    with suppress(UserError, OSError):
        data = config.data
        corpus = open_corpus(data.dev, key="data.dev", joiner=data.subword_joiner)
        if directions_of(corpus):
            both = workdir.read_vocabularies(config.vocabulary)
            corpus = with_tags(corpus, both.source)
        return [source for source, _ in islice(corpus, _SEARCHED)]
    return []


def _short_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Returns the first short lines, or else the shortest one."""
    lines = [line.strip() for line in lines if line.strip()]
    short = [line for line in lines if len(line) <= _SHORT]
    return tuple(short[:MAX_EXAMPLES] or sorted(lines, key=len)[:1])
