"""The blocks of a page that its reader runs, and how a test runs them.

A comment before a block, which the site does not show, is for the tests:

    <!-- test: --config.steps=800 => --config.steps=4 TINY -->
    <!-- test: skip, it needs a network -->
    <!-- test: elsewhere, tests/serving/test_serve.py -->

replaces text of the block (TINY stands for the smallest experiment, SIZES for two steps
of it without its text, FINE_TUNED for a short step); leaves it out, which the site says
with the reason; or names the test that runs it.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration import tiny

LANGUAGES = ("sh", "python")
BLOCK = re.compile(
    r"((?:^ *<!-- test: [^\n]* -->\n+)*)^( *)```(\w+)[^\n]*\n(.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
GENERATED = re.compile(r"^ *<!-- generated: .*?<!-- end -->$", re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"<!-- test: (.*) -->")
_FEW = {"steps": 2, "evaluation.every_steps": 0, "checkpoint.every_steps": 1}
_SHORT = {
    **{"steps": 1, "evaluation.every_steps": 0, "evaluation.patience": 0},
    **{"data.dev_pairs": 2, "data.tokens_per_batch": 512},
    "decoding.max_extra_tokens": 3,
}
_SETTINGS = {
    "TINY": tiny.TINY,
    "SIZES": {**dict(list(tiny.TINY.items())[2:]), **_FEW},
    "FINE_TUNED": _SHORT,
}


@dataclass
class Block:
    """A block of commands or of Python, with the notes before it."""

    language: str
    code: str
    notes: list[str]

    def noted(self, kind: str) -> str:
        """Returns what a note of a kind says; "" if there is none."""
        found = (note for note in self.notes if note.startswith(f"{kind}, "))
        return next(found, "").removeprefix(f"{kind}, ")

    @property
    def skipped(self) -> str:
        """Why it is not run; "" if it is."""
        return self.noted("skip")

    @property
    def elsewhere(self) -> str:
        """The test that runs it; "" if it is run from the page."""
        return self.noted("elsewhere")

    def changed(self) -> str:
        """Returns the code with the replacements of its notes."""
        code = self.code
        for note in self.notes:
            old, arrow, new = note.partition(" => ")
            assert arrow, f"unknown note: {note}"
            assert old in code, f"{old} is not in: {code}"
            code = code.replace(old, new)
        for word, values in _SETTINGS.items():
            flags = " ".join(f"--config.{key}={value}" for key, value in values.items())
            code = code.replace(word, flags)
        return code


def blocks(text: str) -> list[Block]:
    """Returns the blocks of a page that its reader runs, in order.

    What is generated from the code shows it, and is not run.
    """
    return [
        Block(language, code, NOTE.findall(notes))
        for notes, _, language, code in BLOCK.findall(GENERATED.sub("", text))
        if language in LANGUAGES
    ]


def run_shell(code: str, directory: Path, seconds: float = 600, **more: str) -> str:
    """Runs commands in bash, to the first that fails; returns what they print.

    A command of the program is a fork of a process that has imported it. `more` are
    variables of their environment.
    """
    script = ["bash", "-ec", f"set -o pipefail\nexec 2>&1\n{code}"]
    environ = tiny.server().for_shells({**tiny.environment(), **more})
    return run(script, directory, seconds=seconds, environ=environ).stdout


def run_python(code: str, directory: Path = tiny.ROOT, **how: Any) -> str:
    """Runs a program in Python as `run` does, and returns what it prints."""
    return run([sys.executable, "-c", code], directory, **how).stdout


def run(
    argv: list[str | Path],
    directory: Path,
    *,
    code: int | None = 0,
    stdin: str = "",
    seconds: float = 240,
    environ: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a program in a directory to its end, and returns what it prints.

    Args:
      code: with which it must end; None if it may be any.
    """
    done = subprocess.run(
        argv,
        input=stdin,
        cwd=directory,
        capture_output=True,
        text=True,
        env=environ or tiny.environment(),
        timeout=seconds,
        check=False,
    )
    assert code in (None, done.returncode), f"{argv}\n{done.stdout}\n{done.stderr}"
    return done
