"""`--mode=evaluate` and the paper's protocol, as a user runs them."""

import hashlib
import json
import re
import shutil

import pytest

from t2t_jax.evaluation.bleu import METRICS
from t2t_jax.evaluation.robustness import CHANGES
from t2t_jax.evaluation.tokenized_bleu import moses_tokenizer, paper_bleu
from tests.evaluation.test_significance import sacrebleu
from tests.faults.running import refused
from tests.integration import tiny

NEEDS_MOSES = "the extra `paper` is not installed"
NUM_PAIRS = 9


@pytest.fixture(scope="module")
def workdir(newspaper):
    return newspaper


@pytest.fixture(scope="module")
def texts(newspaper, tmp_path_factory):
    """Holds aligned files, and as baseline the references but for their last words."""
    folder = tmp_path_factory.mktemp("texts")
    for name in ("en", "de"):
        shutil.copy(newspaper.parent / name, folder)
    references = (folder / "de").read_text(encoding="utf-8").splitlines()
    _write(folder / "baseline", [line[:-35] for line in references])
    return folder


@pytest.fixture(scope="module")
def evaluated(workdir, texts):
    """Runs the protocol once, with everything that there is to it."""
    pytest.importorskip("sacremoses", reason=NEEDS_MOSES)
    flags = ("--protocol=vaswani2017", "--last=3")
    flags += ("--config.decoding.length_penalty=2.0",)
    return _evaluate(workdir, texts, *flags, hypotheses=texts / "hypotheses")


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _arguments(workdir, texts, *argv):
    files = (f"--source={texts / 'en'}", f"--reference={texts / 'de'}")
    return ("--mode=evaluate", f"--workdir={workdir}", *files, *argv)


def _evaluate(workdir, texts, *argv, hypotheses=None):
    """Runs the mode; beside a baseline, if hypotheses are to be written."""
    if hypotheses:
        argv += (f"--baseline={texts / 'baseline'}", f"--hypotheses={hypotheses}")
    done = tiny.succeed(*_arguments(workdir, texts, *argv))
    return json.loads(done.stdout), done.stderr.decode()


def _sacrebleu(*argv, folder):
    """Runs the `sacrebleu` command with more digits than a float has."""
    return json.loads(sacrebleu(folder, *argv, "-w", "18", "-f", "json"))


def test_scores_intervals_and_p_values_are_the_command_s_on_them(evaluated, texts):
    result, _ = evaluated
    for name in METRICS:
        theirs = _sacrebleu("de", "-i", "hypotheses", "-m", name, folder=texts)
        assert result[name] == theirs["score"] > 0
        assert result[f"{name}_signature"] == theirs["signature"]
    both = ("-i", "baseline", "hypotheses", "--paired-bs")
    baseline, ours = _sacrebleu("de", *both, folder=texts)
    told = result["paired_test"]["bleu"]
    assert told["baseline"] == baseline["BLEU"]["score"]
    assert told["p_value"] == ours["BLEU"]["p_value"]
    gain = result["bleu"] - told["baseline"]
    assert told["better"] == ("system" if gain > 0 else "baseline")
    assert result["intervals"]["bleu"]["half_width"] == ours["BLEU"]["ci"]
    both = [(texts / name).read_text().splitlines() for name in ("hypotheses", "de")]
    moses = {"tokenize": moses_tokenizer("de"), "language": "de"}
    assert result["paper_bleu"] == paper_bleu(*both, **moses)


def test_the_paper_s_search_is_used_whatever_run_and_command_say(evaluated):
    result, table = evaluated
    used = result["decoding"]
    assert (used["beam_size"], used["length_penalty"]) == (4, 0.6)
    assert used["max_extra_tokens"] == 50
    assert result["overruled"] == {
        "beam_size": {"asked": 2, "used": 4},  # the run's
        "length_penalty": {"asked": 2.0, "used": 0.6},  # the command's
        "max_extra_tokens": {"asked": 5, "used": 50},
    }
    assert "the protocol overrides 2.0" in table


def test_model_and_files_are_on_record(evaluated, workdir, texts):
    result, table = evaluated
    assert result["averaged_steps"] == [33, 44, 55]
    assert result["checkpoint_step"] == 55
    assert result["sentences"] == NUM_PAIRS
    vocabulary = hashlib.sha256((workdir / "vocab.model").read_bytes()).hexdigest()
    assert result["vocabulary_sha256"] == {"source": vocabulary, "target": vocabulary}
    assert set(result["files"]) == {"source", "reference", "baseline", "hypotheses"}
    files = {"source": "en", "reference": "de", "hypotheses": "hypotheses"}
    for name, file in files.items():
        told = result["files"][name]
        content = (texts / file).read_bytes()
        assert told["sha256"] == hashlib.sha256(content).hexdigest()
        assert told["lines"] == NUM_PAIRS
    assert table.splitlines()[-1] == (
        f"chrF = {result['chrf']:.1f} ({result['chrf_signature']})"
    )
    assert "not comparable with sacreBLEU" in table


def test_a_model_averaged_before_has_equal_figures(evaluated, workdir, texts, tmp_path):
    result, _ = evaluated
    to = tmp_path / "average"
    tiny.succeed("--mode=average", f"--workdir={workdir}", f"--to={to}", "--last=3")
    again, _ = _evaluate(to, texts, "--protocol=vaswani2017")
    same = ("params_sha256", "averaged_steps", "checkpoint_step", "intervals")
    for name in (*same, *METRICS, "paper_bleu"):
        assert again[name] == result[name]
    hypotheses = {**result["files"]["hypotheses"], "path": None}
    assert again["files"]["hypotheses"] == hypotheses
    argv = _arguments(to, texts, "--protocol=vaswani2017", "--last=2")
    refused(tiny.run(*argv), 64, "--last=2, which can be left out: ")


def test_changed_sets_a_baseline_and_hypotheses_need_no_protocol(
    workdir, texts, tmp_path
):
    own = shutil.copytree(workdir, tmp_path / "run")
    hypotheses = tmp_path / "hypotheses"
    result, errors = _evaluate(own, texts, "--robustness", hypotheses=hypotheses)
    assert "ter" not in result
    assert "averaged_steps" not in result
    assert set(result["paired_test"]) == {"test", "resamples", "seed", "bleu", "chrf"}
    lines = hypotheses.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(CHANGES) * NUM_PAIRS
    scores = result["robustness"]
    assert scores["unchanged"]["bleu"] == result["bleu"]
    # Doubled spaces are one space to the vocabulary.
    assert scores["double_spaces"] == scores["unchanged"]
    _write(tmp_path / "upper", lines[2 * NUM_PAIRS : 3 * NUM_PAIRS])
    capitals = (texts / "de").read_text(encoding="utf-8").upper()
    (tmp_path / "capitals").write_text(capitals, encoding="utf-8")
    upper = _sacrebleu("capitals", "-i", "upper", folder=tmp_path)
    assert scores["upper"]["bleu"] == pytest.approx(upper["score"])
    kept = json.loads((own / "robustness.json").read_text(encoding="utf-8"))
    files = {"source": str(texts / "en"), "reference": str(texts / "de")}
    assert kept == result | files
    assert "numbers and links" in errors
    _, baseline, _, bleu, chrf = errors.splitlines()[-5:]
    assert baseline.startswith("baseline's BLEU  ")
    assert "better: this model, p = 0.00" in baseline
    assert [bleu[:7], chrf[:7]] == ["BLEU = ", "chrF = "]


def test_tokens_are_scored_with_the_run_s_own_search(workdir, texts, tmp_path):
    pytest.importorskip("sacremoses", reason=NEEDS_MOSES)
    hypotheses, protocol = tmp_path / "hypotheses", "--protocol=tokenized"
    flags = (protocol, "--lowercase")
    result, errors = _evaluate(workdir, texts, *flags, hypotheses=hypotheses)
    assert (result["protocol"], result["overruled"]) == ("tokenized", {})
    assert result["decoding"]["beam_size"] == 2
    assert result["averaged_steps"] == []
    tokens, tokenize = result["tokenized_bleu"], moses_tokenizer("de")
    for file in (hypotheses, texts / "de"):
        lines = file.read_text(encoding="utf-8").splitlines()
        _write(tmp_path / file.name, [tokenize(line.lower()) for line in lines])
    argv = ("de", "-i", "hypotheses", "-tok", "none", "-lc", "--force", "-m", "bleu")
    theirs = _sacrebleu(*argv, folder=tmp_path)
    assert tokens["score"] == theirs["score"] > 0
    named = theirs["signature"].replace("tok:none", "tok:moses-de")
    assert tokens["signature"] == named
    assert result["target_language"] == "de"
    assert re.search("^target language +de ", errors, re.MULTILINE)
    assert tokens["paired_test"]["better"] == "system"
    last = errors.splitlines()[-1]
    assert last.startswith(f"BLEU of tokens = {tokens['score']:.2f} (nrefs:1|case:lc")
    assert "not comparable with sacreBLEU on raw text" in last
    # On what is tokenised already nothing is done, and it needs no sacremoses.
    flags = (protocol, "--last=3", "--tokenize=none")
    again, errors = _evaluate(workdir, texts, *flags)
    assert again["averaged_steps"] == [33, 44, 55]
    assert again["bleu"] == again["tokenized_bleu"]["score"]
    assert again["bleu_signature"] == again["tokenized_bleu"]["signature"]
    assert f"warning: --reference={texts / 'de'} looks raw." in errors


def test_joins_are_undone_in_files_compared_or_translated(workdir, texts, tmp_path):
    joiner = "--config.data.subword_joiner=@@"
    for name in ("en", "de"):
        text = (texts / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("ei", "e@@ i"), encoding="utf-8")
    for mode, names in {
        "evaluate": ("source=en", "reference=de"),
        "translate": ("input=de",),
        "score": ("source=en", "reference=de"),
    }.items():
        outputs = []
        for folder, joins in ((texts, ()), (tmp_path, (joiner,))):
            files = [f"--{name.replace('=', f'={folder}/')}" for name in names]
            done = tiny.run(f"--mode={mode}", f"--workdir={workdir}", *files, *joins)
            outputs.append(re.sub(rb'"seconds": [^,]+', b"", done.stdout))
        assert outputs[0] == outputs[1] != b""
