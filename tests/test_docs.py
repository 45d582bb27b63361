"""What the documents say of the program is true of it: files, keys, messages."""

import ast
import re
from functools import cache

import pytest

from t2t_jax.cli.flags.modes import FLAGS, MODES
from t2t_jax.config import keys, sections
from t2t_jax.config_files import shipped_names
from t2t_jax.errors import UserError
from tests.integration.tiny import ROOT
from tests.test_readme import anchor_of

# Tutorials and what else is run from its own text has tests in tests/docs.
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
    if "_build" not in path.parts
)
TEXT = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
GUARANTEES = "docs/explanation/reliability.md"
RELIABILITY = TEXT[GUARANTEES]
TROUBLE = TEXT["docs/how_to/troubleshooting.md"]
MESSAGES = re.findall(r"\*\*`(.+?)`\*\*", TROUBLE)
_CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def table(page, heading):
    """Returns the cells of the first table below a heading of a page."""
    below = TEXT[page][TEXT[page].index(f"# {heading}\n") :]
    rows = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


@cache
def printed():
    """Returns the strings of the package."""
    return frozenset(_strings())


def _strings():
    """Yields the strings of the package, … in the place of what is filled in."""
    for path in (ROOT / "t2t_jax").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", None) for part in node.values)
                yield "".join(p if isinstance(p, str) else "…" for p in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.sub(r"\{\w+\}", "…", node.value)  # of a template


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)]+)\)", _CODE.sub("", TEXT[page])):
        path, _, anchor = target.partition("#")
        place = (ROOT / page).parent / path if path else ROOT / page
        assert place.exists(), target
        if anchor:
            text = place.read_text(encoding="utf-8")
            headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            assert anchor in map(anchor_of, headings), target


def test_the_exit_codes_are_those_of_the_program():
    known = {kind.exit_code for kind in UserError.__subclasses__()}
    codes = known | {UserError.exit_code}
    rows = table("docs/reference/exit_codes.md", "Exit codes")
    told = {int(code) for code, *_ in rows if code.isdecimal()}
    assert told == codes | {0, 1, 70}
    headings = re.findall(r"^## (\d+):", TROUBLE, re.MULTILINE)
    assert {int(code) for code in headings} == told - {0}


def test_the_restore_order_is_said_as_the_code_has_it():
    from t2t_jax.checkpointing import newest_valid

    order = re.findall(r"^\d\. .*$", newest_valid.__doc__, re.MULTILINE)
    below = RELIABILITY[RELIABILITY.index("## From which checkpoint") :]
    said = re.findall(r"^\d\. .*$", below, re.MULTILINE)
    assert len(said) == 4
    assert said[:3] == order[:3]


def test_every_fault_has_a_row_and_a_proof():
    rows = table(GUARANTEES, "What was done to it")
    assert [row[0] for row in rows] == [str(number) for number in range(1, 23)]
    for row in rows:
        assert re.findall(r"\((\.\./\.\./tests/[\w/.]+)\)", row[-1])


def test_the_contract_is_said_in_full():
    assert re.findall(r"^\*\*(R\d+) ", RELIABILITY, re.MULTILINE) == [
        f"R{number}" for number in range(1, 14)
    ]


@pytest.mark.parametrize("message", MESSAGES)
def test_every_message_is_one_that_the_program_prints(message):
    assert any(message.replace("\\n", "\n") in text for text in printed())


@pytest.mark.parametrize(
    "page",
    ["README.md", "WORKSPACE.md", "launch/README.md", "benchmarks/README.md", *PAGES],
)
def test_every_flag_key_and_configuration_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for mode in re.findall(r"--mode=([a-z_]+)", text):
        assert mode in MODES
    for key in re.findall(r"--config\.([a-z]+(?:\.[a-z_0-9]+)?)\b", text):
        assert key in [*keys(), *sections()]
    for name in re.findall(r"--config=([a-z0-9_]+)[`:]", text):
        assert name in shipped_names()
    # Other programs have flags of their own.
    for key in re.findall(r"config\.([a-z]+\.[a-z_0-9]+)", TEXT.get(page, "")):
        assert key in keys() or key.endswith(".json")
    ours = TEXT.get(page, "")
    if "/from_" in page:  # The first column is another toolkit's.
        ours = re.sub(r"^\|[^|]*\|", "|", ours, flags=re.MULTILINE)
        for section, name in re.findall(r"`([a-z]+)\.([a-z_0-9]+)[=`]", ours):
            is_python = section == "model" and "flax" in page
            assert (
                f"{section}.{name}" in keys() or section not in sections() or is_python
            )
    for flag in re.findall(r"`--([a-z_]+)[=`]", ours):
        assert flag in [*FLAGS, "config", "help", "signal", "version"]
