"""What the text of a run or model is: its languages, and sentences from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.phrasebook import examples
from t2t_jax.errors import UserError
from t2t_jax.files import read_json_object
from t2t_jax.run.workdir import Workdir

_SUFFIX = re.compile(r"(?:^|.\.)([a-z]{2,3}(?:[_-][A-Za-z]+)?)(?:\.txt)?(?:\.gz)?$")
# Extensions of text in any language.
_NO_LANGUAGES = (
    *("bpe", "hyp", "in", "out", "raw", "ref", "spm", "src", "tgt", "tok", "trg"),
    *("tsv", "txt"),
)

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
      >>> [language_of_file(name) for name in ("train.fr", "a/dev.pt_BR.gz", "fr.txt")]
      ['fr', 'pt_BR', 'fr']
      >>> [language_of_file(name) for name in ("source.txt", "test.src", "de")]
      ['', '', 'de']
    """
    found = _SUFFIX.search(Path(path).name)
    return found[1] if found and found[1] not in _NO_LANGUAGES else ""


def languages_of_spec(spec: str) -> list[Pair]:
    """Lists the pairs of languages that the corpora of a spec name, each once.

    Example:
      >>> languages_of_spec("text:train.en.gz,train.de.gz++2*text:a.en,a.fr[:9]")
      [('en', 'de'), ('en', 'fr')]
      >>> languages_of_spec("tfds:wmt14_translate/de-en:train[:1%]:en-de++tsv:a.tsv")
      [('en', 'de')]
    """
    found = [_languages_of_corpus(corpus) for corpus in spec.split("++")]
    return list(dict.fromkeys(pair for pair in found if pair))


def _languages_of_corpus(spec: str) -> Pair | None:
    plain = re.sub(r"\[[^\]]*\]", "", re.sub(r"^[\d.]+\*", "", spec))
    kind, _, rest = plain.partition(":")
    if kind == "phrasebook":
        return "en", "de"
    if kind == "tfds":
        source, dash, target = rest.rpartition(":")[2].partition("-")
        return (source, target) if dash and ":" in rest else None
    sides = [language_of_file(files.split("+")[0]) for files in rest.split(",")]
    # The same ending of both files is not a language.
    if kind != "text" or len(sides) != 2 or not all(sides) or sides[0] == sides[1]:
        return None
    return sides[0], sides[1]


def languages_of(workdir: Workdir, config: Config) -> list[Pair]:
    """Lists the pairs of languages of a run or model; empty if they are not known.

    Args:
      config: of the workdir. Of an imported model, the languages that its files name
        take precedence over those of `data.train`.
    """
    with suppress(OSError, UserError, KeyError, TypeError, ValueError):
        model = read_json_object(workdir.path / "model.json", advice="")
        source, target = model["imported"]["languages"]
        return [(str(source), str(target))]
    return languages_of_spec(config.data.train)


def only_pair(workdir: Workdir, config: Config) -> Pair | None:
    """Returns the languages of a run or model; None if not known, or several pairs."""
    pairs = languages_of(workdir, config)
    return pairs[0] if len(pairs) == 1 else None


MAX_EXAMPLES = 4
"""Number of example sentences."""

_SHORT = 60  # characters; several of these fit on a line or two
_SEARCHED = 50  # sentences searched for short ones
_SAMPLE_SOURCE = re.compile(r"^ *source +(.*\S)", re.MULTILINE)


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
    if stored := _stored_examples(workdir.path / "model.json"):
        return stored
    if not workdir.has_config:
        return ()
    config = workdir.read_config()
    if config.data.train.startswith("phrasebook:"):
        return tuple(example.english for example in examples()[:MAX_EXAMPLES])
    sampled = _sampled_sources(workdir.path / "samples")
    return _short_lines(sampled) or _short_lines(_dev_sources(config))


def _stored_examples(path: Path) -> tuple[str, ...]:
    """Reads the examples of model.json, which are optional."""
    try:
        examples = read_json_object(path, advice="").get("examples")
    except (UserError, OSError):
        return ()
    return (
        tuple(map(str, examples[:MAX_EXAMPLES])) if isinstance(examples, list) else ()
    )


def _sampled_sources(folder: Path) -> list[str]:
    """Reads the sources of the last evaluation's samples."""
    try:
        files = [path for path in folder.glob("*.txt") if path.stem.isdecimal()]
        latest = max(files, key=lambda path: int(path.stem), default=None)
        text = latest.read_text(encoding="utf-8") if latest else ""
    except (OSError, UnicodeError):
        return []
    return _SAMPLE_SOURCE.findall(text)


def _dev_sources(config: Config) -> list[str]:
    """Reads the first sources of the development text, if it still exists."""
    try:
        data = config.data
        corpus = open_corpus(data.dev, key="data.dev", joiner=data.subword_joiner)
        return [source for source, _ in islice(corpus, _SEARCHED)]
    except (UserError, OSError):
        return []


def _short_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Returns the first short lines, or else the shortest one."""
    lines = [line.strip() for line in lines if line.strip()]
    short = [line for line in lines if len(line) <= _SHORT]
    return tuple(short[:MAX_EXAMPLES] or sorted(lines, key=len)[:1])
