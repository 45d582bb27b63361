"""A training run, wired together: the only file that knows everyone.

Text becomes batches, the configuration becomes a model and an optimizer, and the loop
is given what it calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import jax
from jax.sharding import Mesh

from t2t_jax.config import Config
from t2t_jax.decoding.translator import Translator
from t2t_jax.evaluation.evaluator import Evaluator
from t2t_jax.model.architectures import make_module, make_step_model
from t2t_jax.parallelism.arrays import to_devices
from t2t_jax.parallelism.mesh import make_mesh, rows_for
from t2t_jax.snapshots import Snapshots
from t2t_jax.text import Text
from t2t_jax.training import loop
from t2t_jax.training.compiled_steps import CompiledSteps
from t2t_jax.training.guard import StopRequest
from t2t_jax.training.optimizer import learning_rate, make_optimizer
from t2t_jax.training.reporting import Console, Reporter
from t2t_jax.training.state import TrainState, init_state
from t2t_jax.training.step import compile_evaluation, train_step
from t2t_jax.types import Batch, Params
from t2t_jax.workdir import Workdir


class Run:
    """One experiment in one workdir, on one mesh; `loop.Callbacks` for the loop.

    Args:
      config: of the whole experiment.
      workdir: the run's directory, which exists.
      text: the corpora, ready.
      console: where people are told.
      mesh: the devices; None means all of this process's.
    """

    def __init__(
        self,
        config: Config,
        *,
        workdir: Workdir,
        text: Text,
        console: Console,
        mesh: Mesh | None = None,
    ):
        self._config, self._workdir, self._text = config, workdir, text
        self._console = console
        self._mesh = mesh or make_mesh()
        self._shards = rows_for(self._mesh, 1)
        self._shapes = text.batch_shapes
        self._module = make_module(config.network)
        self._optimizer = make_optimizer(
            config.optimizer, d_model=config.network.d_model
        )
        params_key, self._dropout_key = jax.random.split(jax.random.key(config.seed))
        self._snapshots = Snapshots(
            config,
            workdir=workdir,
            init=partial(init_state, self._module, self._optimizer, params_key),
            mesh=self._mesh,
            fingerprints=text.fingerprints,
        )
        self._evaluator = self._make_evaluator()
        self._bleu: dict[int, float] = {}

    def train(self, stop: StopRequest) -> loop.Progress:
        """Trains from the newest checkpoint, or from the start, to the last step.

        Args:
          stop: asked after each step whether to save and end; entered only here, so
            that until then a signal just ends the process.

        Returns:
          Where the run stands; before `config.steps` only if a stop was requested.
        """
        newest = self._snapshots.newest()
        if newest:
            self._console.say(f"Going on from step {newest:,} in {self._workdir.path}.")
            state, progress = self._snapshots.restore(newest)
        else:
            state, progress = self._snapshots.begin()
        self._describe()
        step = self._make_step()
        with ExitStack() as stack:
            stack.callback(self._console.close)
            self._reporter = Reporter(self._workdir.path, step=newest)
            stack.callback(self._reporter.close)
            stack.callback(self._snapshots.close)
            batches = stack.enter_context(
                self._text.train_batches(progress.position, row_multiple=self._shards)
            )
            self._console.start(newest)
            stack.enter_context(stop)
            _, progress = loop.train(
                state,
                batches,
                step=step,
                progress=progress,
                intervals=self._intervals(),
                callbacks=self,
                stop=stop,
            )
            if progress.step == self._config.steps:
                self._reporter.write_final(progress)
        return progress

    def log(self, record: loop.Record) -> None:
        """Writes down a training record."""
        self._reporter.write(self._with_rate(record))

    def show(self, record: loop.Record) -> None:
        """Shows a training record to people."""
        self._console.show(self._with_rate(record))

    def evaluate(self, state: TrainState, step: int) -> loop.Record:
        """Scores the development set, and shows and writes sample translations."""
        self._console.say(f"Evaluating step {step:,} …")
        record, hypotheses = self._evaluator.evaluate(state.params, step=step)
        self._bleu = {step: record["bleu"]}
        self._reporter.write(record)
        samples = self._evaluator.samples(
            hypotheses, self._config.evaluation.num_samples
        )
        self._workdir.write_samples(step, samples + "\n")
        self._console.say_evaluation(record, samples)
        return record

    def save(
        self, state: TrainState, progress: loop.Progress, kinds: tuple[str, ...]
    ) -> None:
        """Writes a checkpoint; waits for it if it is the last of this process."""
        self._snapshots.save(
            state, progress, kinds=kinds, bleu=self._bleu.get(progress.step)
        )
        if "stopped" in kinds or "final" in kinds:
            self._snapshots.wait()
            self._console.say(f"Saved step {progress.step:,} in {self._workdir.path}.")

    def _with_rate(self, record: loop.Record) -> loop.Record:
        """Adds the learning rate of the record's last update."""
        rate = learning_rate(
            record["step"] - 1,
            config=self._config.optimizer,
            d_model=self._config.network.d_model,
        )
        return {**record, "learning_rate": float(rate)}

    def _describe(self) -> None:
        """Says how large the model is, and how its batches lie on the devices."""
        parameters = sum(
            leaf.size for leaf in jax.tree.leaves(self._snapshots.shapes.params)
        )
        devices, planned = self._mesh.size, self._shapes
        shapes = [(rows_for(self._mesh, rows), length) for rows, length in planned]
        named = ", or ".join(
            f"{rows // devices} rows x {length} slots" for rows, length in shapes
        )
        slots = max(rows * length for rows, length in shapes)
        self._console.say(
            f"{parameters:,} parameters; {devices} device(s) x {named} = "
            f"{'at most ' * (len(shapes) > 1)}{slots:,} token slots a side"
        )
        for (rows, length), (full, _) in zip(shapes, planned, strict=True):
            if rows > full:
                fills = (  # Another number would make other length groups.
                    f" A data.tokens_per_batch of {rows * length:,} would fill them."
                    if len(shapes) == 1
                    else ""
                )
                self._console.say(
                    f"{rows - full} of {rows} rows x {length} slots are empty, so that "
                    f"the devices share the batch evenly.{fills}"
                )

    def _intervals(self) -> loop.Intervals:
        every = self._config.checkpoint
        return loop.Intervals(
            steps=self._config.steps,
            log=self._config.logging.every_steps,
            evaluate=self._config.evaluation.every_steps,
            show_seconds=self._console.every_seconds,
            save_steps=every.every_steps,
            save_minutes=every.every_minutes,
            save_epochs=every.every_epochs,
        )

    def _make_step(self) -> CompiledSteps:
        """Compiles the step for the longest rows; for others when they first come."""
        # Measured: 1 to 2 s for each layer of the two stacks, on two CPU cores.
        seconds = 2 * self._config.network.num_layers
        steps = CompiledSteps(
            partial(
                train_step,
                module=self._module,
                optimizer=self._optimizer,
                label_smoothing=self._config.training.label_smoothing,
            ),
            self._snapshots.shapes,
            mesh=self._mesh,
            key=self._dropout_key,
            say=self._console.say,
            about=f"about {seconds} s on a CPU",
            name_shapes=len(self._shapes) > 1,
        )
        rows, length = self._shapes[-1]
        steps.compile_for((rows_for(self._mesh, rows), length))
        return steps

    def _make_evaluator(self) -> Evaluator:
        config, text = self._config, self._text
        lines = text.dev_lines[: config.evaluation.bleu_sentences or None]

        def batches() -> Iterator[Batch]:
            for batch in text.dev_batches(row_multiple=self._shards):
                yield to_devices(batch, self._mesh)

        def translate(params: Params, sources: Sequence[str]) -> list[str]:
            model = make_step_model(self._module, params)
            translator = Translator(model, text.vocabularies, config.decoding)
            return translator.translate(sources)

        return Evaluator(
            sums=compile_evaluation(
                self._module,
                label_smoothing=config.training.label_smoothing,
                mesh=self._mesh,
            ),
            batches=batches,
            translate=translate,
            sources=[source for source, _ in lines],
            references=[reference for _, reference in lines],
        )
