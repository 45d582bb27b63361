import ast
import dataclasses
from pathlib import Path

import jax
import pytest

from configs import table3
from t2t_jax.cli.console.describe_report import sections
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.config import Config, parse
from t2t_jax.data.corpora.open import train_and_dev
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.errors import UserError
from t2t_jax.model.counting import count_parameters
from t2t_jax.run.description import summary
from t2t_jax.run.description.costs import Compiled, Memory, state_shapes
from t2t_jax.run.resume_rules import differences
from t2t_jax.training.optimizer import make_schedule
from tests.integration.tiny import ROOT

FILES = sorted(
    path for path in (ROOT / "configs").glob("*.py") if path.name != "__init__.py"
)


# Tables 3 and 2 as the paper prints them: millions of parameters, where the row has
# some, perplexity, BLEU and, of base, big and En-Fr, BLEU in Table 2.
_PRINTED = """
base 65 4.92 25.8 27.3
A_h1 - 5.29 24.9
A_h4 - 5.00 25.5
A_h16 - 4.91 25.8
A_h32 - 5.01 25.4
B_dk16 58 5.16 25.1
B_dk32 60 5.01 25.4
C_N2 36 6.11 23.7
C_N4 50 5.19 25.3
C_N8 80 4.88 25.5
C_d256 28 5.75 24.5
C_d1024 168 4.66 26.0
C_ff1024 53 5.12 25.4
C_ff4096 90 4.75 26.2
D_drop0 - 5.77 24.6
D_drop02 - 4.95 25.5
D_ls0 - 4.67 25.3
D_ls02 - 5.47 25.7
E_learned - 4.92 25.7
big 213 4.33 26.4 28.4
En-Fr_base - 38.1
En-Fr_big - 41.8
"""
PRINTED = {row: figures for row, *figures in map(str.split, _PRINTED.split("\n")[1:-1])}
ROWS = [row for row in PRINTED if not row.startswith("En-Fr")]
MILLIONS = {row: int(PRINTED[row][0]) for row in ROWS if PRINTED[row][0] != "-"}


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


def _config(name: str, *row: str) -> Config:
    path, scope = ROOT / "configs" / f"{name}.py", {}
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), scope)
    return parse(scope["get_config"](*row).to_dict())


def test_every_config_is_a_page_of_the_notebook(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 60
    header = ast.get_docstring(ast.parse(text))
    assert "Score" in header
    assert "python -m t2t_jax.main" in header


def test_configs_have_neither_conditions_nor_each_other(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    assert not any(isinstance(node, ast.If | ast.IfExp) for node in nodes)
    imported = [n.module for n in nodes if isinstance(n, ast.ImportFrom)]
    lists = {"t2t_jax.run.description.table3_rows", "t2t_jax.run.description.parsing"}
    assert set(imported) <= {"t2t_jax.config", *lists}


@pytest.mark.parametrize("row", MILLIONS)
def test_a_row_of_table_3_has_the_printed_number_of_parameters(row):
    model = _config("table3", row).model
    assert model.vocab_size == 37_000
    # The paper's numbers fit a vocabulary of about 40,000; "about 37000", it says.
    counted = count_parameters(dataclasses.replace(model, vocab_size=40_000))
    assert counted.total == pytest.approx(MILLIONS[row] * 1e6, rel=0.03)


@pytest.mark.parametrize("row", ["A_h1", "A_h4", "A_h16", "A_h32"])
def test_rows_a_change_heads_and_no_number_of_parameters(row):
    base, varied = _config("table3", "base").model, _config("table3", row).model
    assert varied.num_heads == int(row.removeprefix("A_h"))
    assert varied.num_heads * varied.d_k == varied.num_heads * varied.d_v == 512
    assert count_parameters(varied) == count_parameters(base)


def test_table_3_has_every_printed_row_and_each_is_another_experiment():
    assert set(table3.ROWS) == {*ROWS}
    configs = [_config("table3", row) for row in table3.ROWS]
    assert len(configs) == len(set(configs)) == 20


# Beside the base.
CHANGED = {
    "base": "",
    "B_dk16": "model.d_k=16",
    "C_N2": "model.num_layers=2",
    "C_d1024": "model.d_model=1024 model.d_k=128 model.d_v=128",
    "D_drop0": "model.dropout=0.0",
    "D_ls02": "training.label_smoothing=0.2",
    "E_learned": "model.positions=learned decoding.max_source_length=256",
}


@pytest.mark.parametrize("row", CHANGED)
def test_a_row_changes_what_it_names_and_no_more(row):
    changed = differences(_config("table3", "base"), _config("table3", row))
    assert " ".join(f"{key}={now}" for key, _, now in changed) == CHANGED[row]


def test_own_text_has_a_row_for_each_size_and_its_table_states_what_is_in_them():
    header = ast.get_docstring(ast.parse((ROOT / "configs/own_text.py").read_text()))
    for row in ("small", "quick", "medium", "large", "student"):
        config = _config("own_text", row)
        (line,) = (x for x in header.splitlines() if x.startswith(f"{row} "))
        steps, slots = f"{config.steps:,}", f"{config.data.tokens_per_batch:,}"
        numbers = [f"{config.vocabulary.size:,}", str(config.model.num_layers)]
        numbers += [str(config.model.d_model), str(config.model.dropout)]
        assert line.split()[-6:] == [*numbers, steps, slots]
    assert _config("own_text") == _config("own_text", "medium")
    base = Config().model
    large = _config("own_text", "large").model
    assert dataclasses.replace(large, vocab_size=base.vocab_size) == base


@pytest.mark.parametrize("row", ["small", "medium", "large"])
def test_files_named_once_on_the_command_line_are_trained_and_scored_on(row, tmp_path):
    argv = [f"--config={ROOT}/configs/own_text.py:{row}", f"--workdir={tmp_path}"]
    config = parse_argv([*argv, "--config.data.train=text:a.en,a.de"]).config
    assert train_and_dev(config.data) == (
        *("text:a.en,a.de[1000:]", "text:a.en,a.de[:1000]"),
    )


def test_multi30k_tokenised_is_the_same_recipe_on_other_text():
    raw, tokenized = _config("multi30k_en_de"), _config("multi30k_en_de", "tokenized")
    assert raw == _config("multi30k_en_de", "raw")
    changed = {key: now for key, _, now in differences(raw, tokenized)}
    assert changed.pop("data.train").count("/multi30k_bpe/train.") == 2
    assert changed.pop("data.dev").count("/multi30k_bpe/valid.") == 2
    assert changed == {"data.subword_joiner": "@@", "evaluation.tokenize": "none"}
    simcut = _config("multi30k_en_de", "tokenized_simcut")
    assert differences(tokenized, simcut) == [("training.simcut", 0.0, 3.0)]


TEXT = {"data.train", "data.dev", "data.held_out"}


def changed_keys(one, other):
    return {key for key, _, _ in differences(one, other)}


def test_base_and_big_are_the_same_experiments_wherever_they_stand():
    assert _config("table3", "base") == _config("wmt_en_de")
    assert _config("table3", "big") == _config("wmt_en_de_big")
    assert changed_keys(Config(), _config("wmt_en_de")) == TEXT


def test_english_to_french_differs_in_text_and_vocabulary():
    keys = changed_keys(_config("wmt_en_de"), _config("wmt_en_fr"))
    assert keys == {*TEXT, "vocabulary.size"}
    big = changed_keys(_config("wmt_en_de_big"), _config("wmt_en_fr_big"))
    assert big == {*keys, "model.dropout"}


def test_the_learning_rate_of_the_big_model_peaks_where_equation_3_does():
    config = _config("wmt_en_de_big")
    schedule = make_schedule(config.optimizer, d_model=config.network.d_model)
    # Updates made before.
    rates = [float(schedule(count)) for count in (3_998, 3_999, 4_000)]
    assert max(rates) == rates[1] == pytest.approx(4.9411e-4, rel=1e-4)


@pytest.mark.parametrize("given", ["table3", "table3:"])
def test_table_3_without_a_row_lists_the_rows(given):
    with pytest.raises(UserError, match=r"Rows: base, A_h1, .*, big"):
        parse_argv([f"--config={given}"])


MULTI30K = ("tokenized", "tokenized_simcut", "tokenized_ema")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        *((path.stem, ()) for path in FILES if path.stem != "table3"),
        *(("table3", (row,)) for row in ROWS),
        *(("own_text", (row,)) for row in ("small", "quick", "large", "student")),
        *(("multi30k_en_de", (row,)) for row in MULTI30K),
    ],
    ids=lambda value: value if isinstance(value, str) else "".join(value),
)
def test_every_config_and_row_is_described(name, row, monkeypatch):
    # All but the compiler's part, which takes 5 s each; the command line has it. The
    # state is traced of one layer: no number of it is asserted.
    memory = Memory(arguments=7, outputs=5, aliased=3, temporaries=2)
    compiled = Compiled(flops=1.0, memory=memory, platform="cpu")
    monkeypatch.setattr(summary, "compile_costs", lambda *_, **__: compiled)
    config = _config(name, *row)
    one_layer = dataclasses.replace(config.model, num_layers=1)
    state = state_shapes(dataclasses.replace(config, model=one_layer))
    monkeypatch.setattr(summary, "state_shapes", lambda _: state)
    assert config.data.train
    assert config.data.dev or config.data.dev_pairs
    told = summary.describe(config, mesh=make_mesh(jax.devices()[:1]))
    if name == "table3":
        assert told["row"] == row[0]
        assert told["paper_results"] is not None
    assert told["flops_per_step"] > 0
    assert told["row"] or told["paper_results"] is None
    assert [s.title for s in sections(told)]
