"""What a run shows, writes down and saves when the training loop asks for it."""

from __future__ import annotations

from t2t_jax.config import Config
from t2t_jax.evaluation.evaluator import Evaluator
from t2t_jax.parallelism.agreement import of_first
from t2t_jax.parallelism.distributed import ALONE, Processes
from t2t_jax.parallelism.faults import strike
from t2t_jax.parallelism.gathering import GivenUp
from t2t_jax.snapshots import Snapshots
from t2t_jax.training.bad_steps import require_progress, warning
from t2t_jax.training.optimizer import learning_rate
from t2t_jax.training.profile import Profile
from t2t_jax.training.progress import Progress, Record
from t2t_jax.training.records import NoReporter, Reporter
from t2t_jax.training.reporting import Console
from t2t_jax.training.state import TrainState
from t2t_jax.workdir import Workdir


class Journal:
    """Keeps the records of a run; `turn.Callbacks` for the loop.

    Args:
      config: of the whole experiment.
      workdir: the run's directory.
      console: where people are told.
      reporter: where programs are told.
      snapshots: what saves states.
      evaluator: what scores them.
      processes: those that run the experiment together.

    Attributes:
      profile: of the steps that `config.profile` asks for.
    """

    def __init__(
        self,
        config: Config,
        *,
        workdir: Workdir,
        console: Console,
        reporter: Reporter | NoReporter,
        snapshots: Snapshots,
        evaluator: Evaluator,
        processes: Processes = ALONE,
    ):
        self._config, self._workdir = config, workdir
        self._console, self._reporter = console, reporter
        self._snapshots, self._evaluator = snapshots, evaluator
        self._processes = processes
        self._bleu: dict[int, float] = {}
        folder = workdir.path / "profile" / config.profile.steps.replace(":", "-")
        if processes.count > 1:  # They may be on one machine, whose name JAX takes.
            folder /= f"rank-{processes.index}"
        self.profile = Profile(config.profile.span, folder=folder, say=console.say)

    def log(self, record: Record) -> None:
        """Writes down a training record; tells of a save that has failed by now."""
        self._reporter.write(self._with_rate(record))
        self._snapshots.check()

    def show(self, record: Record) -> None:
        """Shows a training record to people."""
        self._console.show(self._with_rate(record))

    def skip(self, record: Record) -> None:
        """Writes down and shows a step without an update; ends a run that diverged."""
        self._reporter.write(record)
        self._console.say(warning(record, workdir=self._workdir.path))
        require_progress(record, config=self._config.training)

    def evaluate(self, state: TrainState, step: int) -> Record | None:
        """Scores the development set, and shows and writes sample translations."""
        self._console.say(f"Evaluating step {step:,} …")
        strike(step, "evaluating")
        try:
            record, hypotheses = self._evaluator.evaluate(state.params, step=step)
        except GivenUp:
            return None
        self._bleu = {step: record["bleu"]}
        self._reporter.write(record)
        samples = self._evaluator.samples(
            hypotheses, self._config.evaluation.num_samples
        )
        write = self._workdir.write_samples
        self._reporter.attempt(f"samples/{step}.txt", write, step, samples + "\n")
        self._console.say_evaluation(record, samples)
        return record

    def is_time(self, step: int, due: bool) -> bool:
        """Lets the first process's clock decide for all, where it is asked."""
        if self._processes.count == 1:
            return due
        if step % self._config.logging.every_steps:
            return False
        return of_first(self._processes, f"time at {step}", str(due)) == str(True)

    def save(
        self, state: TrainState, progress: Progress, kinds: tuple[str, ...]
    ) -> None:
        """Writes a checkpoint; waits for it if it is the last of this process."""
        self._snapshots.save(
            state, progress, kinds=kinds, bleu=self._bleu.get(progress.step)
        )
        strike(progress.step, "saving")
        if "stopped" in kinds or "final" in kinds:
            self._snapshots.wait()
            self._console.say(f"Saved step {progress.step:,} in {self._workdir.path}.")

    def _with_rate(self, record: Record) -> Record:
        """Adds the learning rate of the record's last update."""
        rate = learning_rate(
            record["step"] - record["skipped"] - 1,
            config=self._config.optimizer,
            d_model=self._config.network.d_model,
        )
        return {**record, "learning_rate": float(rate)}
