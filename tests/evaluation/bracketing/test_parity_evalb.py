"""The scores are those of the C program, to every digit that it prints."""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from t2t_jax.data.files.lines import read_lines
from t2t_jax.data.trees.tree import Tree, TreeReader
from t2t_jax.evaluation.bracketing.parameters import Parameters, read_parameters
from t2t_jax.evaluation.bracketing.scoring import Status, score_corpus, summarize

DATA = Path(os.environ.get("T2T_JAX_TEST_DATA", "missing"))
COMPILER = shutil.which("gcc") or shutil.which("cc")
SUMMARY = {
    "Number of sentence": "sentences",
    "Number of Error sentence": "errors",
    "Number of Skip  sentence": "skipped",
    "Number of Valid sentence": "valid",
    "Bracketing Recall": "recall",
    "Bracketing Precision": "precision",
    "Bracketing FMeasure": "f1",
    "Complete match": "complete_match",
    "Average crossing": "average_crossing",
    "No crossing": "no_crossing",
    "2 or less crossing": "two_or_less_crossing",
    "Tagging accuracy": "tagging_accuracy",
}

pytestmark = [
    pytest.mark.skipif(
        not (DATA / "evalb" / "evalb.c").exists(),
        reason="T2T_JAX_TEST_DATA has no evalb/evalb.c",
    ),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]


@pytest.fixture(scope="module")
def evalb(tmp_path_factory):
    program = tmp_path_factory.mktemp("evalb") / "evalb"
    source = DATA / "evalb" / "evalb.c"
    subprocess.run([COMPILER, "-w", "-O1", "-o", program, source], check=True)
    return program


def scores_of_c(program, gold, test, rules, directory):
    """Returns the columns of each sentence, and the two summaries."""
    command = [program, "-e", "100000"]
    if rules:  # It stops after so many errors.
        text = rules.read_text("latin-1")
        patient = directory / "patient.prm"
        patient.write_text(
            re.sub("(?m)^MAX_ERROR.*", "MAX_ERROR 99999", text), "latin-1"
        )
        command += ["-p", patient]
    printed = subprocess.run([*command, gold, test], capture_output=True, check=True)
    table, _, summaries = printed.stdout.decode(errors="replace").partition("-- All --")
    rows = re.findall(r"(?m)^ *\d+ +\d+ +\d  .*$", table)
    return [row.split() for row in rows], summaries.split("-- len")


def columns(number, score):
    counts = (score.matched, score.gold_brackets, score.test_brackets, score.crossing)
    return [
        *map(str, (number, score.length, int(score.status))),
        f"{score.recall:.2f}",
        f"{score.precision:.2f}",
        *map(str, (*counts, score.words, score.correct_tags)),
        f"{score.tagging_accuracy:.2f}",
    ]


def compare(program, gold, test, rules, directory):
    rows, summaries = scores_of_c(program, gold, test, rules, directory)
    parameters = read_parameters(rules) if rules else Parameters()
    scores = score_corpus(read_lines(gold), read_lines(test), parameters)
    assert rows == [columns(number, score) for number, score in enumerate(scores, 1)]
    short = [s for s in scores if s.length <= parameters.cutoff_length]
    for text, part in zip(summaries, (scores, short), strict=True):
        found = summarize(part)
        for printed, name in SUMMARY.items():
            value = re.search(rf"{re.escape(printed)} +=\s*(\S+)", text)[1]
            assert float(value) == found[name], name
    return scores


@pytest.mark.parametrize("rules", ["", "sample", "COLLINS", "new"])
def test_its_own_sample(evalb, tmp_path, rules):
    folder = DATA / "evalb"
    rules = folder / f"{rules}.prm" if rules else None
    compare(evalb, folder / "sample.gld", folder / "sample.tst", rules, tmp_path)


LABELS = ["NP", "S", "PP-TMP", "ADVP", "PRT", "-NONE-", "ROOT", "NP=2", ".", ","]
TAGS = ["''", "``", "POS", ":", ",", ".", "NN", "-NONE-"]
QUOTES = ["'", '"', "/"]


def damaged(tree, rng):
    """Returns a tree with other labels, tags, words and brackets here and there."""
    if rng.random() > (0.02 if tree.is_word else 0.3):
        if tree.is_word:
            return tree
        return tree._replace(children=damaged_children(tree, rng))
    if tree.is_word:
        tag = rng.choice([tree.label, *TAGS])
        return Tree(tag, (rng.choice([*tree.children] * 9 + QUOTES),))
    children = damaged_children(tree, rng)
    if rng.random() < 0.5:
        begin = rng.randrange(len(children))
        end = rng.randint(begin, len(children))
        inner = Tree(rng.choice(LABELS), children[begin:end])
        return tree._replace(children=(*children[:begin], inner, *children[end:]))
    return tree._replace(label=rng.choice(LABELS), children=children)


def damaged_children(tree, rng):
    kept = []
    for child in tree.subtrees():
        found = damaged(child, rng)
        is_dissolved = rng.random() < 0.2 and not found.is_word
        kept += found.subtrees() if is_dissolved else [found]
    drops_first = rng.random() < 0.01 and len(kept) > 1
    return tuple(kept[drops_first:])


def with_quotes(tree, rng):
    """Returns a tree some words of which are quotation marks."""
    if tree.is_word:
        if rng.random() > 0.05:
            return tree
        return Tree(rng.choice(TAGS[:3]), (rng.choice(QUOTES),))
    children = tuple(with_quotes(child, rng) for child in tree.subtrees())
    return tree._replace(children=children)


@pytest.fixture(scope="module")
def damaged_files(tmp_path_factory):
    """Gold trees, and parses of which some are wrong in all ways that it survives."""
    reader, gold = TreeReader(), []
    for number, line in enumerate(read_lines(DATA / "gum" / "dev.ptb.gz"), start=1):
        gold.extend(reader.read(number, line))
    rng = random.Random(7)
    gold = [with_quotes(tree, rng) for tree in gold]
    # It reads lines of 5,000 bytes and 200 brackets.
    gold = [tree for tree in gold if str(tree).count("(") < 150][:1_000]
    assert len(gold) == 1_000
    test = [str(damaged(tree, rng)) for tree in gold]
    for number in range(0, 1_000, 37):
        test[number] = test[number].removesuffix(")")
    directory = tmp_path_factory.mktemp("damaged")
    for name, trees in (("gold", gold), ("test", test)):
        (directory / name).write_text("".join(f"{tree}\n" for tree in trees))
    return directory


@pytest.mark.parametrize("rules", ["", "COLLINS", "new"])
def test_a_thousand_damaged_parses(evalb, damaged_files, tmp_path, rules):
    rules = DATA / "evalb" / f"{rules}.prm" if rules else None
    files = damaged_files / "gold", damaged_files / "test"
    scores = compare(evalb, *files, rules, tmp_path)
    assert {Status.VALID, Status.ERROR} <= {score.status for score in scores}
    assert 300 < sum(score.status == 0 for score in scores)
    assert 5 < sum(score.crossing > 0 for score in scores)
