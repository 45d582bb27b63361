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
