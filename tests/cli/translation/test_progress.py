import gzip

from t2t_jax.cli.translation import progress
from t2t_jax.cli.translation.progress import TranslationProgress, total_lines


def test_a_short_job_has_a_last_line_alone(clock, capsys):
    with TranslationProgress(3) as report:
        clock[0] += 1
        report.advance(3)
        told = ["ok a b", "empty ", "no_eos,repaired c"]
        assert list(report.count_statuses(told, first=0)) == ["a b", "", "c"]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "Translated 3 lines in 1.0 s, 3.0 lines/s: 1 empty, 1 without an end, "
        "1 repaired.\n"
    )


def test_a_long_one_tells_at_times_when_it_will_end(clock, capsys):
    with TranslationProgress(1_000, done=400) as report:
        for _ in range(3):
            clock[0] += 5
            report.advance(100)
    assert capsys.readouterr().err.splitlines()[0] == (
        "translated 600/1,000 lines (60 %)  20 lines/s  ETA 0:00:20"
    )


def test_lines_are_counted_where_a_file_can_be_read_twice(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"a\nb\nc")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"a\nb\n"))
    (tmp_path / "broken.gz").write_bytes(b"a\nb\n")
    assert total_lines(str(tmp_path / "a")) == 3
    assert total_lines(str(tmp_path / "b.gz")) == 2
    for name in ("-", "/dev/null", str(tmp_path / "broken.gz"), str(tmp_path / "no")):
        assert total_lines(name) is None
    monkeypatch.setattr(progress, "_COUNTED_BYTES", 4)
    assert total_lines(str(tmp_path / "a")) is None
