from t2t_jax.report.samples import read_samples
from t2t_jax.run.dev_outputs import read_step_samples
from t2t_jax.run.workdir import Workdir
from tests.report.made_up_run import formatted

TRIPLES = [("Ein  Haus.", "A house.", ""), ("source x", " b", "reference")]


def test_what_the_evaluator_formats_is_parsed(tmp_path):
    text = formatted([one[:2] for one in TRIPLES], [one[2] for one in TRIPLES])
    (tmp_path / "8.txt").write_text(text, encoding="utf-8")
    assert read_step_samples(tmp_path, 8) == TRIPLES


def test_sentences_are_followed_through_the_steps(tmp_path):
    workdir = Workdir(tmp_path)
    for step in (8, 16):
        workdir.write_samples(step, formatted([("a", "b")], [f"c{step}"]) + "\n")
    workdir.write_samples(24, formatted([("other", "b")], ["d"]))
    (tmp_path / "samples" / "x.txt").write_text("no step", encoding="utf-8")
    assert read_samples(workdir) == {
        "steps": [8, 16, 24],
        "sentences": [
            {"source": "a", "reference": "b", "translations": ["c8", "c16", None]},
            {"source": "other", "reference": "b", "translations": [None, None, "d"]},
        ],
        "left_out": 0,
    }
