import io

from t2t_jax.cli.console.tables import show
from t2t_jax.report.page import Table


def shown(*tables):
    file = io.StringIO()
    show(tables, file=file)
    return file.getvalue()


def test_markup_is_text_and_control_characters_are_escaped():
    cells = [("[red]x[/red].en", "a\x1b[2Jb")]
    text = shown(Table("[bold]", (), cells, notes=["[/dim] :smile: \x9b2K"]))
    for part in ("[bold]", "[red]x[/red].en", "a\\x1b[2Jb", "[/dim] :smile: \\x9b2K"):
        assert part in text


def test_a_file_gets_no_colours_and_at_most_100_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    text = shown(Table("T", (), [("a" * 70, "b " * 70)]))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("b") == 70
