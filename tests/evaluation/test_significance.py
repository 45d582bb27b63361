import json
import os
import random
import re
import sys

import pytest

from t2t_jax.evaluation.bleu import METRICS, corpus_scores
from t2t_jax.evaluation.significance import bootstrap_intervals, paired_test
from tests.docs.commands import run

WORDS = "der die das Hund Katze Haus bellt schläft steht nie immer dort . , ?".split()


def corpus(seed, *, lines=43):
    """Draws sentences of 5 to 11 words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(5, 11))) for _ in range(lines)]


def damaged(lines, *, share, seed):
    """Drops words: the more are dropped, the worse the translation."""
    draw = random.Random(seed)
    return [
        " ".join(w for w in line.split() if draw.random() > share) for line in lines
    ]


REFERENCES = corpus(1)
GOOD = damaged(REFERENCES, share=0.05, seed=2)
POOR = damaged(REFERENCES, share=0.30, seed=3)


def sacrebleu(folder, *argv):
    """Runs sacreBLEU's own command on files of a folder; returns its stdout."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("SACREBLEU")}
    command = [sys.executable, "-m", "sacrebleu", *argv]
    return run(command, folder, environ=environ).stdout


def test_a_single_line_has_no_chance():
    found = paired_test(REFERENCES[:1], REFERENCES[:1], baseline=["Hund"])
    assert (found["chrf"]["better"], found["chrf"]["p_value"]) == ("system", None)


def test_intervals_and_p_values_are_the_command_s_to_the_last_digit(tmp_path):
    near = damaged(REFERENCES, share=0.08, seed=4)  # near enough for a doubt
    argv = ["reference", "-i", "baseline", "hypotheses", "--paired-bs", "-w", "15"]
    files = {"reference": REFERENCES, "baseline": near, "hypotheses": GOOD}
    for name, lines in files.items():
        text = "".join(f"{line}\n" for line in lines)
        (tmp_path / name).write_text(text, encoding="utf-8")
    ours = paired_test(GOOD, REFERENCES, baseline=near, metrics=METRICS)
    theirs = json.loads(sacrebleu(tmp_path, *argv, "-m", "bleu"))[1]["BLEU"]
    assert ours["bleu"]["p_value"] == theirs["p_value"]
    interval = bootstrap_intervals(GOOD, REFERENCES)["bleu"]
    assert interval["half_width"] == theirs["ci"] > 0
    # The mean of 1,000 numbers, summed in another order.
    assert interval["mean"] == pytest.approx(theirs["mean"], rel=1e-12)
    # Of chrF and TER the command can print a table only, with rounded chances.
    table = sacrebleu(tmp_path, *argv, "-m", *METRICS, "-f", "text")
    chances = [float(chance) for chance in re.findall(r"p = ([\d.]+)", table)]
    assert [round(ours[name]["p_value"], 4) for name in METRICS] == chances
    assert all(0.001 < chance < 1 for chance in chances)


def test_the_interval_holds_19_of_20_scores_of_resampled_corpora():
    found = bootstrap_intervals(GOOD, REFERENCES)["bleu"]
    draw = random.Random(5)
    inside = 0
    for _ in range(200):
        chosen = draw.choices(range(len(GOOD)), k=len(GOOD))
        score = corpus_scores(
            [GOOD[n] for n in chosen], [REFERENCES[n] for n in chosen]
        )["bleu"]
        inside += abs(score - found["mean"]) <= found["half_width"]
    # 190 are expected with a standard deviation of 3.
    assert 178 <= inside <= 199


def test_a_second_run_gives_the_same_figures_whatever_the_environment(monkeypatch):
    def figures():
        intervals = bootstrap_intervals(GOOD, REFERENCES, metrics=METRICS)
        return intervals, paired_test(GOOD, REFERENCES, baseline=POOR, metrics=METRICS)

    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    first = figures()
    assert "SACREBLEU_SEED" not in os.environ
    monkeypatch.setenv("SACREBLEU_SEED", "none")
    assert figures() == first
    assert os.environ["SACREBLEU_SEED"] == "none"
