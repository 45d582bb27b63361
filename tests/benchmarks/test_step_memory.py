"""What a step takes of memory is asked of the compiler, for any change of any key.

Seen to fail: without `--tokens`, and without the check of `--size`.
"""

import json
import sys

import pytest
import step_memory

TINY = {
    "model.num_layers": 1,
    "model.d_model": 8,
    "model.d_ff": 16,
    "model.num_heads": 2,
    "vocabulary.size": 50,
}


@pytest.fixture
def report(monkeypatch, capsys):
    """Runs the program with these flags, and reads what it prints as JSON."""
    monkeypatch.setitem(step_memory.SIZES, "tiny", TINY)

    def run(*flags):
        argv = ["step_memory.py", "--size=tiny", "--tokens=512", "--json", *flags]
        monkeypatch.setattr(sys, "argv", argv)
        step_memory.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_each_variant_has_a_row_beside_the_one_without(report):
    whole, halves = report("--variant=training.micro_batches=2")["runs"]
    assert (whole["variant"], halves["variant"]) == ("", "training.micro_batches=2")
    # Each micro-batch holds half of the activations.
    assert halves["temporaries"] < whole["temporaries"]
    assert halves["arguments"] == whole["arguments"]
    assert whole["total"] >= whole["arguments"] + whole["temporaries"]


def test_more_tokens_take_more(report):
    (few,), (many,) = report()["runs"], report("--tokens=2048")["runs"]
    assert many["temporaries"] > 2 * few["temporaries"]
    assert many["flops"] == 4 * few["flops"]


def test_a_key_that_there_is_not_is_refused(report):
    with pytest.raises(KeyError, match="mikro"):
        report("--variant=training.mikro=2")


def test_a_size_that_there_is_not_is_refused(report, capsys):
    with pytest.raises(SystemExit):
        report("--size=huge")
    assert "huge" in capsys.readouterr().err


def test_people_get_a_table(report, capsys):
    step_memory.show(report())
    head, names, row = capsys.readouterr().out.splitlines()
    assert head.startswith("512 tokens a side on each of 1 x cpu")
    assert names.split()[0] == "size"
    assert row.split()[0] == "tiny"
    assert row.endswith("as it is")
