"""How `--mode=status` shows what `t2t_jax.run.status` finds."""

import json

from t2t_jax import main
from t2t_jax.cli.modes.status import status_lines
from t2t_jax.run.status import _unknown
from t2t_jax.run.workdir import Workdir

RUNNING = {
    "state": "running",
    "reason": "training",
    "holder": {"process": 7, "host": "a", "since": "2026-11-23", "is_verified": True},
    "step": 1_500,
    "steps": 3_000,
    "percent": 50.0,
    "last_record": "2026-11-23T01:00:00Z",
    "record_age_seconds": 12,
    "target_tokens_per_second": 4_129.8,
    "seconds_per_step": 0.34,
    "wall_seconds": {"starting": 10, "training": 83, "saving": 7, "data": 0.1},
    "goodput": 0.829,
    "seconds_left": 510,
    "done_at": "2026-11-23T01:08:42Z",
    "loss": 1.25,
    "evaluation": {"step": 1_500, "bleu": 20.5},
    "best": {"step": 1_000, "bleu": 21.0},
}


def test_five_lines_about_a_running_run(tmp_path):
    status = {**_unknown(Workdir(tmp_path)), **RUNNING}
    assert list(status_lines(status)) == [
        f"{tmp_path}: running (training), at least step 1,500 of 3,000 (50 %)",
        "  lock     process 7 on a since 2026-11-23",
        "  speed    4,130 target tokens/s, 0.34 s a step with evaluations; goodput "
        "83 % (starting 10 %, saving 7 %)",
        "  time     about 8 min left, done at 2026-11-23T01:08:42Z; last record 12 s "
        "ago (2026-11-23T01:00:00Z)",
        "  quality  loss 1.250, development BLEU 20.50 at step 1,500, best 21.00 at "
        "step 1,000",
    ]


def test_a_model_takes_one_line(tmp_path, capsys):
    (tmp_path / "model.json").write_text('{"step": 1700}')
    assert main.main(["status", f"--workdir={tmp_path}"]) == 0
    assert capsys.readouterr().out == (
        f"{tmp_path}: a model and not a run, exported at step 1,700; nothing trains "
        "here\n"
    )
    assert main.main(["status", f"--workdir={tmp_path}", "--format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "model"
