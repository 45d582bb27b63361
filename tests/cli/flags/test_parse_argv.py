"""What a right command line means: files, keys, runs, short flags and defaults.

Seen to fail: where every mode has the default workdir of training.
"""

import dataclasses
import os
from pathlib import Path

import pytest

from t2t_jax.api import _resolve_config
from t2t_jax.cli.flags.modes import FLAGS, MODES
from t2t_jax.cli.flags.options import OPTIONS, RunOptions
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.config import parse
from t2t_jax.config_files import shipped_directory
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS
from t2t_jax.errors import InputMissingError
from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir
from tests.refusals import problems_of

OWN_TEXT = shipped_directory() / "own_text.py"
CONFIG = """
from t2t_jax.config import default


def get_config(row="small"):
    config = default()
    config.steps = {"small": 17, "large": 19}[row]
    config.model.num_layers = 3
    return config
"""


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)


def make_run(path="run", **values):
    """Begins a run, of another size than any config file's."""
    workdir = Workdir(Path(path))
    workdir.checkpoints.mkdir(parents=True)
    layers = {"model": {"num_layers": 5}}
    workdir.write_config(parse({"steps": 23, "seed": 7, **layers, **values}))
    return workdir


def test_without_arguments_the_embedded_experiment_is_trained():
    options = parse_argv([])
    assert options.mode == "train"
    assert options.workdir.path == Path("runs/phrasebook")
    assert options.config.data.train.startswith("phrasebook:")
    assert (options.coordinator_address, options.process_id) == ("", None)
    assert options.processes is SINGLE_PROCESS


def test_flags_are_parsed_in_their_types():
    options = parse_argv(["translate", "--workdir=w", "--ensemble=a,~/b"])
    assert (options.checkpoint, options.input, options.output) == ("best", "-", "-")
    assert options.ensemble == ("a", str(Path.home() / "b"))
    argv = ["average", "--workdir=~/run", "--to=x", "--average_steps=10, 20,30"]
    options = parse_argv(argv)
    assert (options.last, options.average_steps) == (0, (10, 20, 30))
    assert (options.force, options.workdir.path) == (False, Path.home() / "run")
    assert parse_argv(["average", "--sliding", "--workdir=w"]).to == ""
    started = ["--coordinator_address=node:1234", "--num_processes=3", "--process_id=0"]
    options = parse_argv(started)
    assert options.coordinator_address == "node:1234"
    assert (options.num_processes, options.process_id) == (3, 0)


@pytest.mark.parametrize(
    "argv",
    [
        ["--config=mine.py", "--config.seed=3"],
        ["--config.seed", "3", "--config", "mine.py"],
        ["-config=mine.py", "-config.seed=3"],
    ],
)
def test_a_config_file_may_stand_anywhere_and_in_any_spelling(argv):
    options = parse_argv(argv)
    assert (options.config.steps, options.config.seed) == (17, 3)
    assert options.config.model.num_layers == 3
    assert options.workdir.path == Path("runs/mine")
    assert vars(parse_argv(argv)) == vars(options)


def test_a_configuration_with_rows_says_which_one_it_takes(capsys):
    assert parse_argv(["train", "--config=mine.py"]).config.steps == 17
    assert "This is mine.py:small.\n" in capsys.readouterr().err
    options = parse_argv(["--config=mine.py:large"])
    assert (options.config.steps, options.workdir.path) == (19, Path("runs/mine_large"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("argument", "key", "value"),
    [
        ("--config.model.dropout=0", "model.dropout", 0.0),
        ("--config.model.norm_position=pre", "model.norm_position", "pre"),
        ("--config.data.drop_copies", "data.drop_copies", True),
        ("--noconfig.data.drop_copies", "data.drop_copies", False),
        ("--config.decoding.attention_layer -1", "decoding.attention_layer", -1),
        ("--config.training.micro_batches=auto", "training.micro_batches", 0),
        ("-config.training.micro_batches auto", "training.micro_batches", 0),
    ],
)
def test_a_key_of_the_configuration_is_set_in_its_type(argument, key, value):
    found = parse_argv(argument.split()).config
    for name in key.split("."):
        found = getattr(found, name)
    assert (found, type(found)) == (value, type(value))


def test_a_run_that_exists_is_the_base_and_overrides_apply():
    run = make_run()
    argv = ["--workdir=run", "--config.decoding.beam_size=1", "--config.steps=29"]
    saved = run.read_config()
    decoding = dataclasses.replace(saved.decoding, beam_size=1)
    expected = dataclasses.replace(saved, decoding=decoding, steps=29)
    assert parse_argv(argv).config == expected
    # 200 would not fit the embedded experiment's rows of 64.
    other = make_run("other", data={"max_length": 200, "row_length": 200})
    argv = ["--workdir=other", "--config.data.max_length=200"]
    assert parse_argv(argv).config == other.read_config()


def test_overrides_of_earlier_commands_still_hold(tmp_path):
    given = [f"--workdir={tmp_path}", f"--config={OWN_TEXT}"]
    begun = parse_argv([*given, "--config.seed=3", "--config.steps=10"])
    begun.workdir.write_config(begun.config, begun.overrides)
    again = parse_argv([*given, "--config.steps=20"])
    assert (again.config.seed, again.config.steps) == (3, 20)
    assert again.overrides == {"seed": 3, "steps": 20}


@pytest.mark.parametrize("again", [[], ["--config.optimizer.decay_steps=0"]])
def test_the_end_of_a_schedule_is_that_of_the_first_start(tmp_path, again):
    given = [f"--workdir={tmp_path}", f"--config={OWN_TEXT}"]
    given += ["--config.optimizer.schedule=cosine", "--config.optimizer.warmup_steps=3"]
    begun = parse_argv([*given, *again, "--config.steps=10"])
    begun.workdir.write_config(begun.config, begun.overrides)
    for argv in ([*given, *again], [f"--workdir={tmp_path}", *again]):
        config = parse_argv([*argv, "--config.steps=20"]).config
        assert (config.steps, config.optimizer.decay_steps) == (20, 10)
    # From Python too.
    unset = dataclasses.replace(config.optimizer, decay_steps=0)
    config = dataclasses.replace(config, optimizer=unset, steps=30)
    found, _ = _resolve_config(config, begun.workdir, None, None)
    assert found.optimizer.decay_steps == 10


SHORT = {
    "beam_size": 7,
    "length_penalty": 0.7,
    "length_normalization": "power",
    "n_best": 3,
    "mbr": "chrf",
    "shortlist": "",
    "segment": "lines",
    "min_tokens": 2,
    "max_extra_tokens": 11,
    "temperature": 0.5,
    "top_k": 13,
    "top_p": 0.9,
}


def test_short_flags_set_their_keys_and_are_options():
    make_run()
    given = [f"--{name}={value}" for name, value in SHORT.items()]
    argv = ["translate", "--workdir=run", *given, "--sample", "--sampling_seed=17"]
    # The same value twice is no contradiction.
    options = parse_argv([*argv, "--config.decoding.length_penalty=0.70"])
    assert options.config.decoding == DecodingConfig(**SHORT, sample=True, seed=17)
    assert {name: getattr(options, name) for name in SHORT} == SHORT
    assert options.config.steps == 23
    argv = "evaluate --workdir=w --source=a --reference=b --tokenize=zh"
    assert parse_argv(argv.split()).config.evaluation.tokenize == "zh"
    # Every flag that is a short form is tried here.
    tried = {f"decoding.{name}" for name in [*SHORT, "sample", "seed"]}
    keys = {flag.key for flag in FLAGS.values() if flag.key}
    assert keys == {*tried, "evaluation.tokenize"}


def test_a_mode_that_uses_a_run_requires_its_workdir():
    reads_run = [mode for mode in MODES if issubclass(OPTIONS[mode], RunOptions)]
    others = {"train", "prepare", "describe", "doctor", "figures", "import", "compare"}
    assert {*MODES} - {*reads_run} == others
    for mode in reads_run:
        assert f"--mode={mode} requires --workdir, the run to use" in problems_of(mode)
    for mode in ("prepare", "describe", "doctor"):
        assert parse_argv([mode]).workdir.path == Path("runs/phrasebook")


def test_the_newest_runs_are_listed_where_the_workdir_is_missing_or_wrong(capsys):
    for index in range(7):
        os.utime(make_run(f"runs/run{index}").path / "config.json", (index, index))
    named = "runs/run6, runs/run5, runs/run4, runs/run3, runs/run2 and 2 more."
    assert problems_of("translate").endswith(f"newest first: {named}")
    assert main(["translate", "--workdir=runs/rum0"]) == 66
    assert "Did you mean runs/run0?" in capsys.readouterr().err


def test_a_run_to_describe_must_be_there():
    make_run("runs/run0")
    problem = problems_of("describe", "--workdir=runs/rum0", error=InputMissingError)
    assert "Did you mean runs/run0?" in problem
    assert parse_argv(["describe", "--workdir=runs/run0"]).workdir.has_config
    Path("runs/file").touch()
    argv = ["describe", "--workdir=runs/file", "--config=phrasebook"]
    assert "is a file" in problems_of(*argv, error=InputMissingError)
    # What a configuration would make there.
    parse_argv(["describe", "--workdir=runs/new", "--config=phrasebook"])


def test_without_a_config_a_new_workdir_is_said_and_a_filled_one_refused(capsys):
    make_run("runs/mine")
    parse_argv(["prepare", "--workdir=runs/mien"])
    assert "of the phrasebook. Did you mean runs/mine?" in capsys.readouterr().err
    parse_argv(["--workdir=runs/phrasebook"])
    assert not capsys.readouterr().err
    Path("text").mkdir()
    Path("text/train.en").touch()
    assert "is not a run" in problems_of("--workdir=text", error=InputMissingError)
    parse_argv(["--workdir=text", "--config=phrasebook"])
