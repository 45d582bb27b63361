"""The sections of a page on what a run is: configuration, data, environment, files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.config import SIDES
from t2t_jax.data.corpora.corpus import short_name
from t2t_jax.data.report.leakage import copy_warnings, leak_warnings
from t2t_jax.data.report.statistics import DROP_REASONS
from t2t_jax.files import read_json_if_valid, read_json_object, sha256_of
from t2t_jax.model.counting import count_parameters
from t2t_jax.quantities import format_bytes
from t2t_jax.report.page import Block, Note, Part, Table
from t2t_jax.run.description.departures import departures, matches
from t2t_jax.run.description.parsing import is_parser, paper_model
from t2t_jax.run.description.table3_rows import paper_result, table3_row
from t2t_jax.run.resume_rules import differences
from t2t_jax.run.workdir import Workdir

_MAX_EXAMPLES = 3
_MAX_HASHED = 256 << 20  # bytes: half a second
# These change while the page is written, or say nothing about the run.
_UNLISTED = ("lock", "report.html")


def setup(config: Config) -> Iterator[Part]:
    """Yields the model, its departures from the paper by name, and its settings."""
    parameters = count_parameters(config.network)
    rows = [
        ("parameters", f"{parameters.total:,}"),
        ("of the embeddings", f"{parameters.embedding:,}"),
        ("of the encoder", f"{parameters.encoder:,}"),
        ("of the decoder", f"{parameters.decoder:,}"),
    ]
    if own := config.python.module:
        rows = [("module from Python", own)]
    row = table3_row(config)
    if printed := paper_result(row):
        about = ", ".join(
            f"{name.replace('_', ' ')} {printed[name]:g}"
            for name in ("perplexity", "dev_bleu", "test_bleu")
            if printed[name] is not None
        )
        rows.append((f"row {row} of the paper", f"prints {about}"))
    yield Table("Parameters of the model", (), rows, numbers=(1,))
    here = [(one.name, one.paper, one.here) for one in departures(config)]
    title, header = f"Departures from the paper: {len(here)}", "what;the paper;here"
    yield Table(title, header.split(";"), here, headed=True)
    same = [(one.name, one.paper) for one in matches(config)]
    title, header = f"Exactly the paper's: {len(same)}", "what;how the paper has it"
    yield Table(title, header.split(";"), same, folded=True)
    changed = [
        (key, *(repr(v) if isinstance(v, str) else str(v) for v in values))
        for key, *values in differences(paper_model(config), config)
    ]
    model = "parser (§6.3)" if is_parser(config) else "base model"
    title = f"Settings that are not those of the paper's {model}: {len(changed)}"
    yield Table(title, ("key", "paper", "here"), changed, folded=True)


def data(workdir: Workdir) -> Iterator[Part]:
    """Yields the text of a run: what was read, dropped, and held out.

    Raises:
      OSError: there is no data.json.
      DataError: it is damaged.
    """
    report = read_json_object(workdir.path / "data.json", advice="")
    names = {"train": "training", "dev": "development"}
    corpora: dict[str, Any] = {name: report[name] for name in names if name in report}
    rows = [("text", *(short_name(corpus["spec"]) for corpus in corpora.values()))]
    dropped = {reason: f"dropped: {words}" for reason, words in DROP_REASONS.items()}
    for name, words in {"read": "pairs read", "kept": "kept", **dropped}.items():
        counts = [corpus["counts"].get(name, 0) for corpus in corpora.values()]
        if any(counts) or name not in dropped:
            rows.append((words, *(f"{count:,}" for count in counts)))
    for label, key, form in (
        ("tokens", "tokens", "{:,}"),
        ("mean length", "mean_length", "{:.2f}"),
        ("unknown tokens", "unknown_rate", "{:.3%}"),
    ):
        for side in SIDES:
            values = (form.format(corpus[key][side]) for corpus in corpora.values())
            rows.append((f"{label}, {side}", *values))
    columns = range(1, len(corpora) + 1)
    header = ("", *(names[name] for name in corpora))
    yield Table("Pairs and tokens", header, rows, numbers=columns, text=columns)
    yield _histograms(corpora["train"]["length_histogram"])
    yield from _leaks(report)
    yield from _examples(corpora)
    yield _fingerprints(report, corpora)


def _histograms(bins: Mapping[str, Any]) -> Part:
    """Draws how many sentences of the training text have how many tokens."""
    most = max(1, *(max(bins[side]) for side in SIDES))
    sides = {side: [60 * count / most for count in bins[side]] for side in SIDES}
    longest = len(bins[SIDES[0]]) * bins["width"]
    return Block("histograms.html", {"sides": sides, "longest": longest})


def _leaks(report: Mapping[str, Any]) -> Iterator[Part]:
    if not (leaks := report["leaks"]):
        yield Note("No held-out text was checked against the training text.", "")
        return
    title = "Held-out text in the training text"
    header = ("held-out text", "pairs", "both found", "source found", "target found")
    rows = [
        (short_name(spec), *(f"{counts[name]:,}" for name in ("pairs", "both", *SIDES)))
        for spec, counts in leaks.items()
    ]
    yield Table(title, header, rows, numbers=range(1, 5), text=(0,), headed=True)
    copies = report["train"].get("copies", {})
    warnings = *leak_warnings(leaks), *copy_warnings(leaks), *copy_warnings(copies)
    yield from (Note(warning, "warning") for warning in warnings)


def _examples(corpora: Mapping[str, Any]) -> Iterator[Part]:
    rows = [
        (DROP_REASONS[reason], pair["source"], pair["target"])
        for corpus in corpora.values()
        for reason in DROP_REASONS
        for pair in corpus["examples"].get(reason, ())[:_MAX_EXAMPLES]
    ]
    if rows:
        header = ("why", "source", "target")
        yield Table("Examples of dropped pairs", header, rows, text=(1, 2), folded=True)


def _fingerprints(report: Mapping[str, Any], corpora: Mapping[str, Any]) -> Part:
    rows = [
        (name.replace("_", " "), f"{one['size']:,} subwords", one["fingerprint"])
        for name in ("vocabulary", "source_vocabulary", "target_vocabulary")
        if (one := report.get(name))
    ]
    rows += [(name, "", one["fingerprint"]) for name, one in corpora.items()]
    header = ("of", "size", "SHA-256")
    return Table("Vocabulary and fingerprints", header, rows, code=(2,), folded=True)


def environment(workdir: Workdir) -> Iterator[Part]:
    """Yields the machine and the packages that a run was trained with."""
    if not (recorded := read_json_if_valid(workdir.path / "environment.json")):
        yield Note("The training did not record its environment.", "")
        return
    packages = recorded.pop("packages", {})
    recorded |= packages if isinstance(packages, dict) else {}
    rows = [(name.replace("_", " "), str(value)) for name, value in recorded.items()]
    yield Table("Environment of the training", (), rows)


def files(workdir: Workdir) -> Iterator[Part]:
    """Yields the files of a run with their sizes and hashes, its folders with sizes.

    Raises:
      OSError: the directory cannot be read.
    """
    rows = []
    for path in sorted(workdir.path.iterdir()):
        if path.name in _UNLISTED or path.name.startswith("."):
            continue
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                rows.append((f"{path.name}/", format_bytes(sum(_sizes(path))), ""))
            elif path.is_file():
                size = path.stat().st_size
                digest = sha256_of(path) if size <= _MAX_HASHED else ""
                rows.append((path.name, format_bytes(size), digest))
    header = ("file", "size", "SHA-256 now")
    yield Table("Files of the run", header, rows, numbers=(1,), text=(0,), code=(2,))


def _sizes(folder: Path) -> Iterator[int]:
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield os.lstat(os.path.join(directory, name)).st_size
