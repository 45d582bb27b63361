import json

import pytest

from t2t_jax.evaluation.bracketing.__main__ import main

GOLD = "(S (NP (DT the) (NN cat)) (VP (VBZ eats)))"
TEST = "(S (DT the) (VP (NN cat) (VBZ eats)))"


@pytest.fixture
def files(tmp_path):
    gold, test = tmp_path / "gold", tmp_path / "test"
    gold.write_text(f"{GOLD}\n{GOLD}\n")
    test.write_text(f"{GOLD}\n{TEST}\n")
    return [str(gold), str(test)]


def test_one_json_object_is_printed(files, capsys, tmp_path):
    rules = tmp_path / "a.prm"
    rules.write_text("CUTOFF_LEN 2\nDELETE_LABEL S\n")
    columns = tmp_path / "columns.tsv"
    options = [f"--parameters={rules}", f"--sentences={columns}"]
    assert main([*files, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["recall"], found["precision"], found["f1"]) == (50.0, 66.67, 57.14)
    assert (found["sentences"], found["valid"]) == (2, 2)
    assert (found["short"]["longest"], found["short"]["sentences"]) == (2, 0)
    header, _, second = columns.read_text().splitlines()
    row = dict(zip(header.split("\t"), second.split("\t"), strict=True))
    assert (row["sentence"], row["crossing"], row["recall"]) == ("2", "1", "0.00")


def test_wrong_files_are_one_error(files, tmp_path, capsys):
    (tmp_path / "short").write_text(f"{GOLD}\n")
    assert main([files[0], str(tmp_path / "missing")]) == 66
    assert "missing" in capsys.readouterr().err
    assert main([files[0], str(tmp_path / "short")]) == 65
    assert "1 parses of 2 gold trees" in capsys.readouterr().err
