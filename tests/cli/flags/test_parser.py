import dataclasses
from importlib import import_module
from pathlib import Path

import pytest

from t2t_jax.cli.flags.modes import MODES, module_of
from t2t_jax.cli.flags.parser import default_config, parse_argv
from t2t_jax.config import Config, parse
from t2t_jax.distributed.processes import SINGLE_PROCESS
from t2t_jax.errors import ConfigError, UserError
from t2t_jax.run.workdir import Workdir

OWN_TEXT = default_config().with_name("own_text.py")

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


@pytest.fixture
def run(tmp_path):
    """A run that has begun, of another size than any config file's."""
    workdir = Workdir(tmp_path / "run")
    workdir.create()
    workdir.write_config(
        parse({"steps": 23, "model": {"num_layers": 5}, "seed": 7, "data": {}})
    )
    return workdir


def test_without_arguments_the_embedded_experiment_is_trained():
    options = parse_argv([])
    assert options.mode == "train"
    assert options.workdir.path == Path("runs/phrasebook")
    assert options.config.data.train.startswith("phrasebook:")
    assert default_config().is_file()


def test_a_configuration_with_rows_says_which_one_it_takes(capsys):
    assert parse_argv(["train", "--config=mine.py"]).config.steps == 17
    assert capsys.readouterr().err == (
        "--config=mine.py has several rows. This is mine.py:small.\n"
    )
    parse_argv(["train", "--config=mine.py:large"])
    parse_argv(["train", "--config=phrasebook"])
    assert capsys.readouterr().err == ""


def test_the_defaults_of_the_other_flags():
    options = parse_argv(["translate", "--workdir=w"])
    assert (options.checkpoint, options.input, options.output) == ("best", "-", "-")
    options = parse_argv(["average", "--workdir=w", "--to=x"])
    assert (options.last, options.average_steps, options.force) == (0, (), False)
    options = parse_argv(["evaluate", "--workdir=w", "--source=a", "--reference=b"])
    assert (options.target_language, options.protocol) == ("", "")


def test_options_of_a_short_flag_have_the_value_of_its_key(run):
    argv = ["translate", f"--workdir={run.path}", "--config.decoding.min_tokens=3"]
    options = parse_argv([*argv, "--beam_size=7"])
    assert (options.beam_size, options.min_tokens, options.n_best) == (7, 3, 1)


@pytest.mark.parametrize(
    "argv",
    [
        ["--config=mine.py", "--config.seed=3"],
        ["--config.seed=3", "--config=mine.py"],
        ["--config", "mine.py", "--config.seed", "3"],
        ["--config.seed=3", "--config", "mine.py"],
        ["-config=mine.py", "-config.seed=3"],
    ],
)
def test_a_config_file_may_stand_anywhere_and_in_any_spelling(argv):
    options = parse_argv(argv)
    assert options.config.steps == 17
    assert options.config.model.num_layers == 3
    assert options.config.seed == 3
    assert options.workdir.path == Path("runs/mine")


def test_a_row_of_a_config_file_has_its_own_workdir():
    options = parse_argv(["--config=mine.py:large"])
    assert options.config.steps == 19
    assert options.workdir.path == Path("runs/mine_large")


@pytest.mark.parametrize(
    ("argument", "read"),
    [
        ("--config.steps=7", lambda c: c.steps == 7),
        ("--config.model.dropout=0", lambda c: c.model.dropout == 0.0),
        ("--config.model.norm_position=pre", lambda c: c.model.norm_position == "pre"),
        (
            "--config.optimizer.peak_learning_rate=3e-3",
            lambda c: c.optimizer.peak_learning_rate == 3e-3,
        ),
        (
            "--config.checkpoint.every_minutes=1",
            lambda c: c.checkpoint.every_minutes == 1,
        ),
    ],
)
def test_a_key_of_the_configuration_is_set_in_its_type(argument, read):
    assert read(parse_argv([argument]).config)


def test_the_same_words_give_the_same_options_again():
    argv = ["--config.seed=3", "--config=mine.py", "--workdir=w"]
    assert vars(parse_argv(argv)) == vars(parse_argv(argv))
    assert argv == ["--config.seed=3", "--config=mine.py", "--workdir=w"]


def test_rules_broken_on_the_command_line_are_all_named():
    with pytest.raises(ConfigError) as info:
        parse_argv(["--config.steps=0", "--config.model.d_model=7"])
    assert len(info.value.problems) == 2


def test_a_run_that_exists_is_the_base_and_overrides_apply(run):
    options = parse_argv([f"--workdir={run.path}", "--config.decoding.beam_size=1"])
    saved = run.read_config()
    decoding = dataclasses.replace(saved.decoding, beam_size=1)
    assert options.config == dataclasses.replace(saved, decoding=decoding)


def test_a_top_level_key_of_a_run_can_be_overridden_too(run):
    options = parse_argv([f"--workdir={run.path}", "--config.steps=29"])
    assert options.config == dataclasses.replace(run.read_config(), steps=29)


def test_an_override_is_judged_by_the_run_and_not_by_the_embedded_experiment(tmp_path):
    # 200 would not fit the embedded experiment's rows of 64.
    workdir = Workdir(tmp_path / "other")
    workdir.create()
    workdir.write_config(parse({"data": {"max_length": 200, "row_length": 200}}))
    argv = [f"--workdir={workdir.path}", "--config.data.max_length=200"]
    assert parse_argv(argv).config == workdir.read_config()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--config.seed=11"], ["seed was 7", "is 11 now"]),
        (["--config.model.num_layers=2"], ["model.num_layers was 5", "is 2 now"]),
        (["--config=mine.py"], ["model.num_layers was 5 ", "is 3 now", "seed was 7"]),
    ],
)
def test_a_refused_change_names_key_old_and_new_value(run, argv, said):
    with pytest.raises(ConfigError) as info:
        parse_argv([f"--workdir={run.path}", *argv])
    for part in [*said, "new workdir"]:
        assert part in str(info.value)


def test_the_same_config_file_again_goes_on():
    config = parse_argv(["--config=mine.py"]).config
    workdir = Workdir(Path("runs/mine"))
    workdir.create()
    workdir.write_config(config)
    assert parse_argv(["--config=mine.py"]).config == config


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_its_file(mode):
    assert callable(import_module(f"t2t_jax.cli.modes.{module_of(mode)}").run)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--mode=evaluate", "--last=3"], "--last requires --protocol"),
        (["--mode=evaluate", "--force"], "--force requires --protocol"),
        (
            ["--mode=evaluate", "--protocol=vaswani2017", "--lowercase"],
            "--lowercase requires --protocol=tokenized",
        ),
        (["--mode=describe", "--mfu=0.5"], "--mfu requires --peak_tflops"),
        (
            ["--mode=average", "--last=3", "--average_steps=1,2"],
            "--last and --average_steps are mutually exclusive",
        ),
        (["--mode=average", "--average_steps=,"], "--average_steps=, must be integers"),
        (["--mode=score", "--format=json"], "--format=json must be one of tsv, jsonl"),
        (["--mode=describe", "--format=tsv"], "--format=tsv must be one of text, json"),
        (
            ["--mode=translate", "--format=json"],
            "=json must be one of text, tsv, jsonl",
        ),
        (
            ["--mode=translate", "--resume"],
            "--resume requires --shards",
        ),
        (
            ["--mode=translate", "--shards=2", "--stream"],
            "--shards and --stream are mutually exclusive",
        ),
        (
            ["--mode=translate", "--prefixes=x", "--stream"],
            "--prefixes and --stream are mutually exclusive",
        ),
    ],
)
def test_a_flag_that_would_be_ignored_is_refused(argv, said):
    with pytest.raises(UserError, match=said):
        parse_argv(argv)


def test_keys_of_the_model_that_is_not_built_are_refused():
    with pytest.raises(UserError, match=r"'transformer'.* config\.rnn\.d_hidden"):
        parse_argv(["--config.rnn.d_hidden=8"])
    with pytest.raises(UserError, match=r"'rnn'.* config\.model\.d_ff"):
        parse_argv(["--config.architecture=rnn", "--config.model.d_ff=8"])


def test_a_sliding_average_needs_no_directory():
    options = parse_argv(["--mode=average", "--sliding", "--last=3", "--workdir=w"])
    assert (options.sliding, options.force, options.last, options.to) == (
        *(True, False, 3),
        "",
    )


def test_average_steps_are_whole_numbers():
    argv = ["average", "--workdir=w", "--to=x", "--average_steps=10, 20,30"]
    assert parse_argv(argv).average_steps == (10, 20, 30)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--mode=trian"], r"--mode=trian must be one of .* Did you mean train\?"),
        (["--source=x"], r"=train .*--source.*=evaluate, score, average or export"),
        (["--mode=translate", "--to=x"], r"=translate .*--to.*--mode=average"),
        (["--mode=evaluate", "--source=x"], r"--mode=evaluate requires --reference"),
        (["--mode=average"], r"--mode=average requires --to"),
        (["--mode=attention", "--to=x"], r"--mode=attention requires --text"),
        (["--mode=describe", "--devices=0"], r"--devices=0 must be an integer"),
        (["--mode=describe", "--mfu=40"], r"--mfu=40 must be .* at most 1"),
        (["--mode=describe", "--peak_tflops=-1"], r"--peak_tflops=-1 must be a number"),
        (
            ["--mode=evaluate", "--source=x", "--reference=y", "--protocol=x"],
            r"--protocol=x must be one of vaswani2017, tokenized",
        ),
        (
            ["--mode=average", "--to=x", "--last=0"],
            r"--last=0 must be an integer from 1\. Change --last\.",
        ),
        (["--mode=average", "--to=x", "--last=²"], r"--last=² must be"),
        (["--mode=average", "--to=x", "--average_steps=1,b"], r"--average_steps=1,b"),
        (["--workdir"], r"--workdir needs a value"),
    ],
)
def test_a_wrong_flag_is_named(argv, said):
    with pytest.raises(UserError, match=said) as info:
        parse_argv(argv)
    assert info.value.exit_code == 64


def test_options_know_a_whole_configuration():
    assert isinstance(parse_argv([]).config, Config)


def test_another_experiment_on_a_run_is_one_message(tmp_path):
    begun = parse_argv([f"--workdir={tmp_path}"])
    begun.workdir.write_config(begun.config)
    with pytest.raises(ConfigError, match="holds another experiment") as info:
        parse_argv([f"--workdir={tmp_path}", f"--config={OWN_TEXT}"])
    assert len(info.value.problems) == 1


def test_overrides_of_earlier_commands_still_hold(tmp_path):
    given = [f"--workdir={tmp_path}", f"--config={OWN_TEXT}"]
    begun = parse_argv([*given, "--config.seed=3", "--config.steps=10"])
    begun.workdir.write_config(begun.config, begun.overrides)
    again = parse_argv([*given, "--config.steps=20"])
    assert (again.config.seed, again.config.steps) == (3, 20)
    assert again.overrides == {"seed": 3, "steps": 20}


def test_processes_are_known_by_three_flags():
    options = parse_argv(
        ["--coordinator_address=node:1234", "--num_processes=3", "--process_id=0"]
    )
    assert options.coordinator_address == "node:1234"
    assert (options.num_processes, options.process_id) == (3, 0)


def test_without_the_flags_nothing_is_said_of_processes():
    options = parse_argv([])
    assert options.coordinator_address == ""
    assert (options.num_processes, options.process_id) == (0, None)
    assert options.processes is SINGLE_PROCESS


@pytest.mark.parametrize(
    ("argument", "rule"),
    [
        ("--coordinator_address=node", "must be host:port"),
        ("--coordinator_address=node:99999", "must be host:port"),
        ("--num_processes=0", "must be an integer from 1"),
        ("--num_processes=two", "must be an integer from 1"),
        ("--process_id=-1", "must be an integer from 0"),
        ("--workdir=~nobody_of_that_name/run", "~user must be a user of this machine"),
    ],
)
def test_the_value_of_a_flag_has_a_rule(argument, rule):
    with pytest.raises(UserError, match=rule) as raised:
        parse_argv([argument])
    assert raised.value.exit_code == 64


@pytest.mark.parametrize("mode", ["describe", "prepare", "score"])
def test_processes_mean_nothing_to_other_modes(mode):
    pair = ["--source=a", "--reference=b"] if mode == "score" else []
    with pytest.raises(UserError, match=r"--process_id.*--mode=tr"):
        parse_argv([f"--mode={mode}", *pair, "--process_id=0"])


def test_paths_may_begin_with_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    options = parse_argv(["--mode=average", "--to=~/mean", "--workdir=~/run"])
    assert options.to == str(tmp_path / "mean")
    assert options.workdir.path == tmp_path / "run"


@pytest.mark.parametrize(
    "argv",
    [
        ["--config.training.micro_batches=auto"],
        ["-config.training.micro_batches", "auto"],
    ],
)
def test_the_command_line_spells_as_many_micro_batches_as_memory_asks_for(argv):
    assert parse_argv(argv).config.training.micro_batches == 0


def test_the_word_auto_is_for_that_key_alone():
    with pytest.raises(ConfigError, match=r"config\.steps=auto must be an integer"):
        parse_argv(["--config.steps=auto"])
    with pytest.raises(ConfigError, match="many must be an integer or auto"):
        parse_argv(["--config.training.micro_batches=many"])
