"""Configuration of the data and of the vocabulary."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

from t2t_jax.errors import ConfigError, ErrorCollector, one_of

# More tokens a batch fit no device.
_LIMITS = {"workers": 1_024, "tokens_per_batch": 100_000_000, "row_length": 1_000_000}
MAX_SUBWORDS = 1_000_000

SIDES = ("source", "target")

LAYOUTS = ("packed", "length_buckets")

FILTERS = (
    *("digits", "urls", "placeholders", "brackets", "punctuation", "capitals"),
    *("letters", "script", "language", "duplicate_targets"),
)

SCRIPTS = (
    *("arabic", "armenian", "bengali", "cjk", "cyrillic", "devanagari", "georgian"),
    *("greek", "hangul", "hebrew", "latin", "tamil", "thai"),
)

# The order in which they are applied; new ones go last, as numbers depend on places.
MODIFIERS = (
    *("words", "numbers", "urls", "emails", "emoji", "no_punctuation"),
    *("lower", "upper", "title", "typos", "spaces", "double_spaces"),
)

_BLANK = re.compile("[ \u2581]")
_SPECIAL = re.compile("<pad>|</?s>|<unk>|<0x[0-9A-F]{2}>")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Corpora, filters, and how pairs are batched.

    Paper: §5.1, "each training batch contained a set of sentence pairs containing
      approximately 25000 source tokens and 25000 target tokens".
    Departs: several pairs share a row, which leaves hardly any padding; the paper
      batched pairs "by approximate sequence length" instead. Neither BPE-dropout nor
      modifiers are in it.

    Attributes:
      train: Training corpus, such as "text:train.en,train.de". Prefixes: `text:`,
        `tsv:`, `trees:`, `tfds:` and `phrasebook:`; `++` joins several corpora.
        `#en-de` after one names its languages, `#en-de,de-en` both directions of it:
        sources get the tag of their target.
      dev: Development corpus, scored during training; named like `train`, without
        weights. Read only if evaluation is on.
      dev_pairs (pairs): If `dev` is empty, this many pairs at the beginning of `train`
        become the development corpus and are left out of training; 0 for none.
      held_out: Test sets, named like corpora. The training text is searched for their
        sentences and for those of `dev`; they have no other use. Empty for none.
      temperature (exponent): T, of the weights of a mixture: of each direction or
        corpus, the share of the pairs that are seen is proportional to its size^(1/T),
        and each pair of the largest is seen once in an epoch. 1 is as many as there
        are; 5 is usual for many languages. Weights in `train` require 1.
      subword_joiner: What the subwords of a word end with, but for the last, in text
        files that are split into subwords already, such as "@@" of subword-nmt. It is
        removed while text is read, with the space after it: the text of the run is
        words, which its own vocabulary splits. Of `text:` and `tsv:` corpora, and of
        the files that a mode translates, scores or compares. Empty for other text.
      tokens_per_batch (tokens): Size of a global batch on each side, padding included.
        An upper bound, at most 100,000,000; shared by all devices.
      row_length (tokens): Length of a packed row on each side.
      packed_row_lengths (lengths): How many lengths packed rows have, each half of the
        one before and in batches of its own: 3 packs rows of 256, 128 and 64. Each is
        one more shape to compile, and attention spans fewer tokens of other pairs. For
        text whose pairs are mostly far shorter than `row_length`.
      layout: How pairs form batches. "packed" puts several pairs into each row, with
        one shape per row length; "length_buckets" gives each pair a row and batches
        rows of similar length, in at most 10 shapes.
      max_length (tokens): Longest sentence kept, end of sentence included. A pair with
        a longer side is dropped and counted.
      max_length_ratio (ratio): A pair with one side more than this many times as long
        as the other, in tokens without tags, is dropped and counted; 0 keeps all pairs.
      drop_copies: Whether to drop pairs whose two sides are the same text.
      drop_duplicates: Whether to drop repeated pairs, keeping the first.
      filters: Names of further filters, with commas between them; a pair is dropped and
        counted if its sides have other numbers (`digits`), `urls` (and e-mail
        addresses), `placeholders` (`%s`, `{x}`, `<x>`) or `brackets`; or only one ends
        as a question, or only one has `punctuation` at its end; or only one begins with
        a capital letter, or only one, of several words, has `capitals` alone; or less
        than half of the characters of a side are `letters`; or less than half of its
        letters are of its `script`, as `script:latin-cyrillic` names both, and
        `script:en=latin-ru=cyrillic` those of text that names its languages; or a side
        is in the `language` of the other, by the trigrams of the text itself; or its
        target has another source that fits it better in length (`duplicate_targets`).
        Empty for none.
      source_bpe_dropout (probability): BPE-dropout of the training sources: the
        probability of skipping a merge when a word is split into subwords, anew in each
        epoch; 0 for none, and 0.1 in the paper of the method.
      target_bpe_dropout (probability): The same of the training targets.
      modifiers: Changes of training pairs, anew in each epoch, so that the model copes
        with such input: `upper:0.05,typos:0.1` writes 5 % of the pairs in capitals and
        makes typing errors in 10 % of the sources, in some both. `upper`, `lower`,
        `title` and `no_punctuation` (at the end) change both sides; `typos`, `spaces`
        (doubled, left out, inside of words) and `double_spaces` the source; `numbers`,
        `urls`, `emails` and `emoji` put one into both sides; `words` puts a pair of
        words in place of the pair. Empty for none.
      glossary: Where `words` takes them from, named like `train`, such as
        `tsv:terms.tsv`; empty for the pairs of `train` with one word on each side.
      workers (processes): Processes that encode text, at most 1,024; 0 for one per
        core, at most 16.
      cache_dir: Directory of the encoded corpora; empty for `t2t_jax` in the user's
        cache directory.
    """

    train: str = ""
    dev: str = ""
    dev_pairs: int = 0
    held_out: str = ""
    temperature: float = 1.0
    subword_joiner: str = ""
    tokens_per_batch: int = 24_576
    row_length: int = 256
    packed_row_lengths: int = 1
    layout: str = one_of(*LAYOUTS)
    max_length: int = 256
    max_length_ratio: float = 0.0
    drop_copies: bool = False
    drop_duplicates: bool = False
    filters: str = ""
    source_bpe_dropout: float = 0.0
    target_bpe_dropout: float = 0.0
    modifiers: str = ""
    glossary: str = ""
    workers: int = 0
    cache_dir: str = ""

    def __post_init__(self) -> None:
        problems = ErrorCollector("data", self)
        self._check_sizes(problems)
        for name, most in _LIMITS.items():
            problems.limit(most, name)
        joiner, bare = self.subword_joiner, "".join(self.subword_joiner.split())
        problems.check(
            joiner == bare,
            f"data.subword_joiner={joiner!r} must not contain spaces: the one after it "
            f'is removed with it. Set config.data.subword_joiner="{bare}".',
        )
        problems.try_call(lambda one: one.modifier_rates, self)
        problems.try_call(lambda one: one.filter_names, self)
        problems.check(
            not self.glossary or "words:" in self.modifiers,
            f"data.glossary={self.glossary!r} requires the modifier words. Add "
            "words:0.02 to config.data.modifiers, or set config.data.glossary=''.",
        )
        problems.raise_if_any()

    def _check_sizes(self, problems: ErrorCollector) -> None:
        """Checks the numbers."""
        of, row = problems.of, self.row_length
        of("be at least 2: a subword and eos", lambda x: x >= 2, "max_length")
        of("be at least 2", lambda x: x >= 2, "row_length")
        of("be at least 1, or 0 for none held out", lambda x: x >= 0, "dev_pairs")
        of("be at least 1, or 0 for one per core", lambda x: x >= 0, "workers")
        dropouts = (f"{side}_bpe_dropout" for side in SIDES)
        of("be a probability from 0 to 1", lambda x: 0 <= x <= 1, *dropouts)
        of("be from 1 to 1000", lambda x: 1 <= x <= 1000, "temperature")
        rule = "be at least 1, or 0 to keep every pair"
        of(rule, lambda x: x == 0 or 1 <= x < math.inf, "max_length_ratio")
        rule = f"be at least data.row_length={row}: a batch has a row or more"
        of(rule, lambda x: x >= row, "tokens_per_batch")
        halvings = range(1, row.bit_length())
        most = 1 + sum(row % 2**k == 0 and row >> k >= 2 for k in halvings)
        rule = (
            f"be at least 1 and, for data.row_length={row}, at most {most}: each "
            "length is half of the one before, an integer of at least 2 slots"
        )
        of(rule, lambda x: 1 <= x <= most, "packed_row_lengths")
        if self.layout != "packed":
            rule = f"be 1 with data.layout={self.layout!r}: it requires 'packed'"
            of(rule, lambda x: x == 1, "packed_row_lengths")
        rule = f"be at most data.row_length={row}: a pair never spans rows"
        of(rule, lambda x: x <= row, "max_length")

    @property
    def bpe_dropout(self) -> tuple[float, float]:
        """BPE-dropout of source and target."""
        return self.source_bpe_dropout, self.target_bpe_dropout

    @property
    def modifier_rates(self) -> dict[str, float]:
        """The share of the pairs that each modifier changes, in the order of MODIFIERS.

        Raises:
          ConfigError: a name is unknown or there twice, or a rate is no share.

        Example:
          >>> DataConfig(modifiers="typos:0.1,upper:0.05,lower:0").modifier_rates
          {'upper': 0.05, 'typos': 0.1}
        """
        rates: dict[str, float] = {}
        for part in filter(None, self.modifiers.split(",")):
            name, _, number = part.strip().partition(":")
            is_rate = re.fullmatch(r"(0?\.[0-9]+|[01](\.0*)?)", number)
            if name in rates or name not in MODIFIERS or not is_rate:
                raise ConfigError(
                    f"data.modifiers={self.modifiers!r} must be different names, each "
                    "with a rate from 0 to 1, as upper:0.05,typos:0.1, and has "
                    f"{part!r}. Change config.data.modifiers; known are "
                    f"{', '.join(MODIFIERS)}."
                )
            rates[name] = float(number)
        return {name: rates[name] for name in MODIFIERS if rates.get(name)}

    @property
    def filter_names(self) -> dict[str, dict[str, str]]:
        """The names of `filters`, and the scripts of languages that one may have.

        Raises:
          ConfigError: a name is unknown or there twice, or a script is unknown.

        Example:
          >>> DataConfig(filters="digits,script:en=latin-ru=cyrillic").filter_names
          {'digits': {}, 'script': {'en': 'latin', 'ru': 'cyrillic'}}
          >>> DataConfig(filters="script:latin-cyrillic").filter_names
          {'script': {'source': 'latin', 'target': 'cyrillic'}}
        """
        names: dict[str, dict[str, str]] = {}
        for part in filter(None, self.filters.split(",")):
            name, _, of = part.strip().partition(":")
            words = of.split("-") if of else []
            if len(words) == 2 and "=" not in of:
                words = list(map("=".join, zip(SIDES, words, strict=True)))
            named = (word.partition("=") for word in words)
            scripts = {language: script for language, _, script in named}
            is_right = name in FILTERS and {*scripts.values()} <= {*SCRIPTS}
            if name in names or bool(scripts) != (name == "script") or not is_right:
                raise ConfigError(
                    f"data.filters={self.filters!r} must be different names, such as "
                    f"digits,script:latin-cyrillic, and has {part!r}. Change config."
                    f"data.filters; known are {', '.join(FILTERS)}, and of scripts "
                    f"{', '.join(SCRIPTS)}."
                )
            names[name] = scripts
        return names

    @property
    def samples_epochs(self) -> bool:
        """Whether the tokens of a pair differ between epochs."""
        return any(self.bpe_dropout) or bool(self.modifier_rates)

    @property
    def row_lengths(self) -> tuple[int, ...]:
        """Slots of packed rows on each side, ascending.

        Example:
          >>> DataConfig(packed_row_lengths=3).row_lengths
          (64, 128, 256)
        """
        halvings = range(self.packed_row_lengths - 1, -1, -1)
        return tuple(self.row_length >> k for k in halvings)


@dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """How the subword vocabulary is trained, or which file it is loaded from.

    Paper: §5.1, "byte-pair encoding, which has a shared source-target vocabulary of
      about 37000 tokens".
    Departs: `source_size` above 0 gives the source a vocabulary of its own, for
      languages that share no script.

    Attributes:
      size (subwords): Size of the vocabulary, the four special tokens included: shared
        by both sides, or of the target alone if the source has its own.
      source_size (subwords): Size of a separate source vocabulary; 0 for a shared one.
      unit: What the text is split into: "subwords" by byte-pair encoding; or "words",
        all that has spaces around it, such as the symbols of trees. Of words the most
        frequent are in the vocabulary, at most `size`, and others are unk.
      source_unit: The same of a separate source vocabulary. Of words, those that occur
        once or are not frequent enough are replaced by classes after their shape and
        ending, such as <Aa-ing>: at most one of 8 in the vocabulary is a class.
      source_file: Existing SentencePiece model of the source, like `file`.
      shared_ids: Whether the vocabularies of `file` and `source_file` have the same
        pieces with the same ids, so that both sides can share one embedding: they only
        split text differently.
      file: Existing SentencePiece model with the ids pad 0, bos 1, eos 2 and unk 3;
        empty to train one on the training corpus.
      character_coverage (fraction): Fraction of the characters of the text that get a
        subword, above 0 and at most 1.
      byte_fallback: Whether other characters are encoded as bytes instead of unk.
      symbols: Pieces that each vocabulary has and never splits, such as tags, with
        commas between them: `>>de<<,>>fr<<`. In a vocabulary of words they stand
        between spaces. A `file` must have them too. Of corpora with languages those of
        this form are tags, and no text is split into them.
      sample_sentences (sentences): The vocabulary is trained on at most this many
        sentences, a seeded random sample of a larger corpus.
    """

    size: int = 37_000
    source_size: int = 0
    unit: str = one_of("subwords", "words")
    source_unit: str = one_of("subwords", "words")
    source_file: str = ""
    shared_ids: bool = False
    file: str = ""
    character_coverage: float = 1.0
    byte_fallback: bool = False
    symbols: str = ""
    # The sample is held in memory: 600,000 lines of 25 words peaked at 1,155 MB and 1.3
    # million at 2,054 MB. Each line is freed once the trainer has its copy, which took
    # synthetic lines from 827 MB to 541 MB (851 MB for a million).
    sample_sentences: int = 1_000_000

    def __post_init__(self) -> None:
        problems, symbols = ErrorCollector("vocabulary", self), self.symbol_list
        smallest = (261 if self.byte_fallback else 5) + len(symbols)
        more = ", 256 bytes" * self.byte_fallback + ", the symbols" * bool(symbols)
        rule = f"be at least {smallest}: four special ids{more} and a piece"
        sizes = ["size"] + ["source_size"] * (self.source_size != 0)
        problems.of(rule, lambda x: x >= smallest, *sizes)
        problems.limit(MAX_SUBWORDS, *sizes)
        self._check_symbols(problems)
        for name, usual in (("source_unit", "subwords"), ("source_file", "")):
            value = getattr(self, name)
            rule = f"vocabulary.{name}={value!r} requires a separate source vocabulary"
            none = "vocabulary.source_size=0. Change config.vocabulary.source_size."
            is_right = value == usual or self.source_size > 0
            problems.check(is_right, f"{rule}, but {none}")
        if self.shared_ids:
            rule = f"be vocabulary.size={self.size} with shared_ids"
            problems.of(rule, lambda x: x == self.size, "source_size")
        rule = "be above 0 and at most 1"
        problems.of(rule, lambda x: 0 < x <= 1, "character_coverage")
        problems.of("be at least 1", lambda x: x >= 1, "sample_sentences")
        problems.raise_if_any()

    def _check_symbols(self, problems: ErrorCollector) -> None:
        rule = "be different pieces without blanks, with commas between them, and "
        for symbol, count in Counter(self.symbol_list).items():
            broken = {
                "is empty": not symbol,
                "has a blank in it": not symbol.isprintable() or _BLANK.search(symbol),
                "is a special piece": _SPECIAL.fullmatch(symbol),
                "is there twice": count > 1,
            }
            reason = next((reason for reason in broken if broken[reason]), "")
            text, found = repr(self.symbols), f"{rule}{symbol!r} {reason}"
            problems.require("vocabulary.symbols", text, not reason, found)

    @property
    def symbol_list(self) -> tuple[str, ...]:
        """The symbols, in order.

        Example:
          >>> VocabularyConfig(symbols=">>de<<,>>fr<<").symbol_list
          ('>>de<<', '>>fr<<')
        """
        return tuple(self.symbols.split(",")) if self.symbols else ()

    @property
    def own_source_size(self) -> int:
        """Rows of a separate source embedding; 0 if both sides can share one."""
        return 0 if self.shared_ids else self.source_size
