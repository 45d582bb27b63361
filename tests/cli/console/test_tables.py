import io

from t2t_jax.cli.console.tables import Section, show, show_rows


def shown(*sections):
    file = io.StringIO()
    show(sections, file=file)
    return file.getvalue()


def test_columns_are_aligned_and_nothing_trails():
    section = Section(
        "Sizes", [("a", "1", "x"), ("bcd", "23,456", "")], ("", "n", ""), right=[1]
    )
    assert shown(section) == (
        "Sizes\n─────\n           n\na          1   x\nbcd   23,456\n\n"
    )


def test_notes_follow_the_table_and_stand_alone():
    assert shown(Section("T", [("a",)], notes=["n"])) == "T\n─\na\nn\n\n"
    assert shown(Section("T", notes=["n"])) == "T\n─\nn\n\n"


def test_markup_is_text_and_control_characters_are_escaped():
    cells = [("[red]x[/red].en", "a\x1b[2Jb")]
    text = shown(Section("[bold]", cells, notes=["[/dim] :smile: \x9b2K"]))
    for part in ("[bold]", "[red]x[/red].en", "a\\x1b[2Jb", "[/dim] :smile: \\x9b2K"):
        assert part in text


def test_a_file_gets_no_colours_and_at_most_100_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    text = shown(Section("T", [("a" * 70, "b " * 70)]))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("b") == 70


def test_rows_alone_have_no_title_and_are_not_folded_in_a_file():
    file = io.StringIO()
    show_rows([("a", "b", ""), ("long name", "v" * 300, "[red]note")], file=file)
    assert file.getvalue() == f"a          b\nlong name  {'v' * 300}  [red]note\n"
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    show_rows([("a", "v" * 300)], file=terminal)
    assert max(map(len, terminal.getvalue().splitlines())) <= 100
    assert terminal.getvalue().count("v") == 300
    show_rows([], file=file)
    assert file.getvalue().count("\n") == 2
