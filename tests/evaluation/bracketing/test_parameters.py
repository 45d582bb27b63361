import pytest

from t2t_jax.errors import DataError
from t2t_jax.evaluation.bracketing.parameters import Parameters, read_parameters


def test_a_parameter_file_is_read(tmp_path):
    file = tmp_path / "a.prm"
    file.write_text(
        "## Rules\nDEBUG 0\nMAX_ERROR\t10\n\nLABELED 0  \nCUTOFF_LEN   7\n"
        "DELETE_LABEL TOP\nDELETE_LABEL ,\nDELETE_LABEL_FOR_LENGTH -NONE-\n"
        "QUOTE_LABEL ''\nEQ_LABEL ADVP PRT\nEQ_WORD a \t b\n"
    )
    assert read_parameters(file) == Parameters(
        labeled=False,
        cutoff_length=7,
        deleted=("TOP", ","),
        deleted_for_length=("-NONE-",),
        quotes=("''",),
        equal_labels=(("ADVP", "PRT"),),
        equal_words=(("a", "b"),),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("DELET_LABEL X", r"line 2: unknown parameter 'DELET_LABEL'. Use one of"),
        ("EQ_LABEL A", "EQ_LABEL takes two values, found 1"),
        ("CUTOFF_LEN x", "CUTOFF_LEN takes a number, found 'x'"),
        ("DELETE_LABEL", "DELETE_LABEL has no value"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    file = tmp_path / "a.prm"
    file.write_text(f"LABELED 1\n{line}\n")
    with pytest.raises(DataError, match=message):
        read_parameters(file)
