"""What a wrong command line is answered with: what was meant, once, and never Python.

Seen to fail: with absl as the parser, which named the first mistake with the text of a
Python exception, took `--mode=…` for the value of `--workdir`, and dropped what
`--undefok` names; without `_short_forms`' comparison (the last one counts, in silence).
"""

import re

import pytest

from tests.refusals import problems_of

pytestmark = pytest.mark.usefixtures("empty_directory")

PAIR = "evaluate --workdir=w --source=a --reference=b"
TWICE = "translate --workdir=w --beam_size=7"
EXPORT = "export --workdir=w --format=safetensors --to=x"


@pytest.mark.parametrize(
    ("line", "named", "meant"),
    [
        # What is near is named, hyphens and capitals included.
        ("translate --beam-size=3", "--beam-size", "--beam_size"),
        ("--dropout=3", "--dropout", "--config.model.dropout"),
        ("--translate", "--translate", "--mode=translate"),
        ("--config.data.num_layers=3", "data.num_layers", "--config.model.num_layers"),
        ("--config.modle.d_ff=3", "config.modle.d_ff", "--config.model.d_ff"),
        ("--config.model.vocab_size=3", "vocab_size", "config.vocabulary.size"),
        ("--config.model=3", "--config.model", "--help=model"),
        # Nothing is.
        ("--undefok=x", "--undefok", ""),
        ("--config.xyzzy=3", "config.xyzzy", ""),
        ("evaluate --lins=3", "--lins", ""),  # near a flag of another mode only
        # Values.
        ("--config.model.remat=maybe", "remat=maybe", "true or false"),
        ("--config.steps", "--config.steps", "--config.steps=VALUE"),
        ("--workdir=~nobody_of_that_name/run", "--workdir", "~user must be a user"),
        ("--coordinator_address=node:99999", "--coordinator_address", "host:port"),
        # Words.
        ("translte --workdir=w", "'translte'", "translate"),
        ("translate in.txt", "'in.txt'", "--name=value"),
        ("--", "'--'", "Modes: train"),
        ("translate --mode=train", "--mode=train", "are two modes"),
        ("--text=a dog barks", "'dog barks'", "--text='a dog barks'"),
        # Modes and their flags.
        ("--beam_size=1", "--beam_size", "--mode=translate, distill or evaluate"),
        (f"{PAIR} --n_best=2", "--n_best", "--mode=translate has"),
        ("average --workdir=w", "--to", "Directory to create"),
        # Flags that would be ignored.
        (f"{PAIR} --protocol=parsing --lowercase", "--lowercase", "protocol=tokenized"),
        ("translate --workdir=w --resume", "--resume", "requires --shards"),
        (f"{EXPORT} --source=a", "--source", "requires --reference"),
        (f"{EXPORT} --max_bleu_loss=2", "--max_bleu_loss", "--format=ctranslate2"),
        (f"{EXPORT} --shortlist=s.npz", "--shortlist", "--format=ctranslate2"),
        (f"{EXPORT} --languages=en,d", "--languages", "two codes"),
        ("translate --workdir=w --prefixes=x --stream", "--prefixes", "--stream are"),
        ("status --workdir=w --config.seed=1", "--config", "takes no configuration"),
        ("compare --workdirs=a,b --config.seed=1", "--config", "no configuration"),
        # Short forms of keys.
        (f"{TWICE} --config.decoding.beam_size=8", "--beam_size", "is short for"),
        (f"{PAIR} --top_p=1 --top_k=13 --nosample", "--top_k and --top_p", "--sample"),
        # Keys of the model that is not built.
        ("--config.rnn.d_hidden=8", "config.rnn.d_hidden", "'transformer'"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(line, named, meant):
    (problem,) = (p for p in problems_of(*line.split()).splitlines() if named in p)
    assert meant in problem
    assert meant or "Did you mean" not in problem


def test_a_long_or_unprintable_value_is_shortened():
    problem = problems_of("--config.steps=" + "9" * 5000, "--config.seed=a\nb")
    assert len(problem) < 600
    assert len(problem.splitlines()) == 2


@pytest.mark.parametrize(
    "line",
    [
        *("--config.seed=3 translate", "--translate", "runs/phrasebook", "workdir=w"),
        *("translte", "--workdir=runs/phrasebook please"),
    ],
)
def test_no_advice_about_words_is_a_command_that_trains(line):
    advice = problems_of(*line.split())
    assert "train" not in re.findall(r"(?:t2t-jax |mean |--mode=)(\w+)", advice)


def test_no_text_of_a_python_exception_reaches_the_user():
    texts = ["", "x", "-1", "1e400", "nan", "²", "\0", "9" * 5000, "True", "[1]", "'"]
    names = ["--config.steps", "--config.model.dropout", "--config.model.remat"]
    names += ["--last", "--devices", "--mfu", "--process_id", "--average_steps"]
    names += ["--sample", "--top_p", "--shards", "--config", "--workdir", "--mode"]
    for name in names:
        for text in texts:
            said = problems_of(f"{name}={text}", "--xyzzy")
            assert "There is no flag --xyzzy" in said
            for python in ("literal", "Error", "argument", "Exceeds", "<class", "\\x"):
                assert python not in said
