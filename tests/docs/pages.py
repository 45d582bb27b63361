"""Runs the commands of a page in order and in one directory, as its reader does.

Blocks fenced as `sh` and `python` are run; Python blocks without a `sh` block between
them are one program. A block fenced as `text` is what the last block printed, of both
streams: each of its lines must be printed by the test too, with any numbers in it. `…`
stands for anything.

Comments before a block change it for the test, as in `tests/docs/commands.py`; one more

    <!-- test: other output, of the whole training -->

says that the test cannot print the output below it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from tests.docs.commands import BLOCK, LANGUAGES, NOTE, Block, run_shell
from tests.integration.tiny import ROOT

_NUMBER = r"[-+]?\d+(?:[,.:\-]\d+)*(?:e[-+]?\d+)?"


def steps(text: str) -> list[tuple[Block, list[str]]]:
    """Returns the blocks of a page that are run, with the outputs that it shows."""
    found: list[tuple[Block, list[str]]] = []
    for comments, _, language, code in BLOCK.findall(text):
        block = Block(language, code, NOTE.findall(comments))
        is_other = any(note.startswith("other output") for note in block.notes)
        if language in LANGUAGES and not block.skipped:
            found.append((block, []))
        elif language == "text" and not is_other:
            found[-1][1].append(code)
    return found


def run(page: str, directory: Path) -> None:
    """Runs the blocks of a page and compares what they print with what it shows.

    Args:
      page: its path in the repository.
      directory: where its commands are run.
    """
    found = steps((ROOT / page).read_text(encoding="utf-8"))
    for name in ("launch", "configs"):  # as in a clone
        (directory / name).symlink_to(ROOT / name)
    # As of a reader who has encoded no text yet.
    more = {"COLUMNS": "100", "XDG_CACHE_HOME": str(directory / "cache")}
    text = run_shell(_script(found, directory), directory, seconds=1_200, **more)
    _, *printed = re.split(r"^=== block \d+ ===\n", text, flags=re.MULTILINE)
    assert len(printed) == len(found)
    for (block, outputs), text in zip(found, printed, strict=True):
        for output in outputs:
            assert missing(output, text) == [], f"{page}, below {block.code}: {text}"


def missing(shown: str, printed: str) -> list[str]:
    """Returns the lines of an output that were not printed, whatever their numbers.

    Example:
      >>> missing("step 800  loss 1.2 …", "step 4  loss 8.1  0.2 s")
      []
      >>> missing("steps 800", "step 4")
      ['steps 800']
    """
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    wanted = [line for line in shown.splitlines() if line.strip(" …")]
    return [
        line
        for line in wanted
        if not any(map(re.compile(_pattern(line)).fullmatch, lines))
    ]


def _pattern(line: str) -> str:
    # Every second part is a number or …
    parts = re.split(rf"({_NUMBER}|…)", " ".join(line.split()))
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [".*" if part == "…" else _NUMBER for part in parts[1::2]]
    return "".join(parts)


def _script(found: Sequence[tuple[Block, list[str]]], directory: Path) -> str:
    """Returns the page as one script, which says where each block begins."""
    lines = ["set +o pipefail"]  # as in a terminal
    program: Path | None = None
    for number, (block, _) in enumerate(found):
        mark = f"=== block {number} ==="
        if block.language == "sh":
            lines += [f"echo '{mark}'", block.changed()]
            program = None
            continue
        if program is None:
            program = directory / f"page_{number}.py"
            lines.append(f"python -u {program.name}")
        with program.open("a", encoding="utf-8") as file:
            file.write(f"print({mark!r}, flush=True)\n{block.changed()}\n")
    return "\n".join(lines)
