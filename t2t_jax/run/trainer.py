"""A training run, wired together: the only file that knows everyone.

Text becomes batches, the configuration becomes a model and an optimizer, and the loop
is given what it calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from functools import partial

import jax

from t2t_jax.config import Config, flatten, to_dict
from t2t_jax.distributed.consensus import all_reduce_min
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.model.architectures import make_module
from t2t_jax.run.callbacks import RunCallbacks
from t2t_jax.run.dev_evaluation import make_evaluator
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.run.state_checkpoints import RunCheckpointer
from t2t_jax.run.time_estimate import RunSize
from t2t_jax.run.workdir import Workdir
from t2t_jax.runtime.fault_injection import maybe_inject_fault
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training import loop
from t2t_jax.training.accumulation import MicroBatching
from t2t_jax.training.batch_layout import BatchLayout
from t2t_jax.training.compiled_step import StepCompiler, device_memory_limit
from t2t_jax.training.health.stop_signals import (
    StopRequest,
    abort_stuck_run,
    exit_on_signals,
)
from t2t_jax.training.health.watchdog import Watchdog
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.progress import Intervals, RunProgress
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.reporting.metrics_writer import MetricsWriter, NullMetricsWriter
from t2t_jax.training.state import init_state
from t2t_jax.training.step import skip_bad_updates, train_step


class Trainer:
    """One experiment in one workdir, on one mesh.

    Args:
      workdir: the run's directory, which exists.
      processes: those that run the experiment together.
      devices: to train on; None means all of all processes.
      owns_process: whether a signal before the first step and the watchdog may end the
        process, which they must not where a user's program has called.

    Raises:
      ConfigError: the devices cannot be arranged as `config.mesh` says.
    """

    def __init__(
        self,
        config: Config,
        *,
        workdir: Workdir,
        text: PreparedData,
        console: Console,
        processes: Processes = SINGLE_PROCESS,
        devices: Sequence[jax.Device] | None = None,
        owns_process: bool = True,
    ):
        self._config, self._workdir, self._text = config, workdir, text
        self._console, self._processes = console, processes
        self._owns_process = owns_process
        self._mesh = make_mesh(devices, config=config.mesh)
        platform = self._mesh.devices.flat[0].platform
        self._module = make_module(config.network, platform=platform)
        self._optimizer = make_optimizer(
            config.optimizer, d_model=config.network.d_model
        )
        params_key, self._dropout_key = jax.random.split(jax.random.key(config.seed))
        self._snapshots = RunCheckpointer(
            config,
            workdir=workdir,
            init=partial(init_state, self._module, self._optimizer, params_key),
            mesh=self._mesh,
            fingerprints=text.fingerprints,
            say=console.log,
            processes=processes,
            files=text.vocabularies.files,
        )

    def train(self, stop: StopRequest) -> RunProgress:
        """Trains from the newest checkpoint, or from the start, to the last step.

        Args:
          stop: asked after each step whether to save and end; entered only here, so
            that until then a signal just ends the process.

        Returns:
          Where the run stands; it does not complete the run only if a stop was
          requested.
        """
        leaving = exit_on_signals() if self._owns_process else nullcontext()
        with leaving, self._deadlines():
            state, progress = self._snapshots.resume() or self._snapshots.init()
            self._console.log(self._model_text())
            maybe_inject_fault(progress.step, "compiling")
            step = self._make_step()
        with ExitStack() as stack:
            stack.callback(self._console.close)
            # First, and so left last: what ends a run can hang too.
            deadlines = stack.enter_context(self._deadlines())
            reporter = self._make_reporter(progress.step)
            stack.callback(reporter.close)
            stack.push(self._close_snapshots)
            batches = stack.enter_context(
                self._text.train_batches(
                    progress.position,
                    row_multiple=step.layout.row_multiple,
                    share=step.layout.share,
                )
            )
            self._console.start(progress.step)
            stack.enter_context(stop)
            journal = self._make_callbacks(reporter, stop, deadlines)
            stack.enter_context(
                journal.profile.watching(progress.step, programs=step.hlo_texts)
            )
            _, progress = loop.train(
                state,
                batches,
                step=step,
                progress=progress,
                intervals=self._intervals(),
                callbacks=journal,
                stop=stop,
                deadlines=deadlines,
            )
            deadlines.begin("ending")
            if progress.completes(self._config.steps):
                reporter.write_final(progress)
        return progress

    def _close_snapshots(self, kind: type[BaseException] | None, *_: object) -> None:
        """Completes what is being saved, unless that would wait for the dead."""
        if kind is None or self._processes.count == 1:
            self._snapshots.close()

    def _deadlines(self) -> Watchdog:
        """Makes what ends this process, and with it all, if nothing goes on."""
        if not self._owns_process:
            return Watchdog(step=0.0, pause=0.0, expired=abort_stuck_run)
        every = self._config.training
        return Watchdog(
            step=every.step_timeout, pause=every.pause_timeout, expired=abort_stuck_run
        )

    def _model_text(self) -> str:
        """Says how large the model is, and in which numbers it computes."""
        parameters = jax.tree.leaves(self._snapshots.shapes.params)
        dtype = self._module.config.compute_dtype
        return f"{sum(x.size for x in parameters):,} parameters, computing in {dtype}"

    def _intervals(self) -> Intervals:
        every = self._config.checkpoint
        return Intervals(
            steps=self._config.steps,
            log=self._config.logging.every_steps,
            evaluate=self._config.evaluation.every_steps,
            show_seconds=self._console.every_seconds,
            save_steps=every.every_steps,
            save_minutes=every.every_minutes,
            save_epochs=every.every_epochs,
        )

    def _make_callbacks(
        self,
        reporter: MetricsWriter | NullMetricsWriter,
        stop: StopRequest,
        deadlines: Watchdog,
    ) -> RunCallbacks:
        """Makes what the loop calls; `stop` interrupts what takes long in it."""

        def is_given_up() -> bool:
            deadlines.reset()  # It is asked whenever something has been done.
            return stop.stop_requested()

        return RunCallbacks(
            self._config,
            workdir=self._workdir,
            console=self._console,
            reporter=reporter,
            snapshots=self._snapshots,
            evaluator=make_evaluator(
                self._config,
                self._text,
                module=self._module,
                mesh=self._mesh,
                processes=self._processes,
                is_given_up=is_given_up,
                progress=self._console.advance,
            ),
            size=self._size(),
            processes=self._processes,
        )

    def _make_reporter(self, step: int) -> MetricsWriter | NullMetricsWriter:
        """Opens what programs read, which the first process writes for all."""
        if not self._processes.is_first:
            return NullMetricsWriter()
        return MetricsWriter(
            self._workdir.path,
            step=step,
            say=self._console.log,
            timestamps=self._console.timestamps,
            settings=dict(flatten(to_dict(self._config))),
        )

    def _size(self) -> RunSize:
        """Counts what the time of the run depends on."""
        config, dev_tokens = self._config, 0
        if self._text.dev is not None:
            decoded = config.evaluation.bleu_sentences or None
            dev_tokens = int(self._text.dev.target_lengths[:decoded].sum())
        parameters = jax.tree.leaves(self._snapshots.shapes.params)
        return RunSize(
            steps=config.steps,
            evaluate_every=config.evaluation.every_steps,
            dev_tokens=dev_tokens,
            tokens_per_batch=config.data.tokens_per_batch,
            parameters=sum(x.size for x in parameters),
            on_cpu=self._mesh.devices.flat[0].platform == "cpu",
        )

    def _make_step(self) -> StepCompiler:
        """Compiles the step for the longest rows; for others when they first come."""
        config = self._config
        # Measured: 1 to 2 s for each layer of the two stacks, on two CPU cores.
        seconds = 2 * config.network.num_layers
        micro_batches = config.training.micro_batches
        steps = StepCompiler(
            partial(
                skip_bad_updates(
                    train_step, skip_gradient_norm=config.training.skip_gradient_norm
                ),
                module=self._module,
                optimizer=self._optimizer,
                label_smoothing=config.training.label_smoothing,
            ),
            self._snapshots.shapes,
            layout=BatchLayout(
                planned=self._text.batch_shapes,
                mesh=self._mesh,
                micro_batches=micro_batches or 1,
            ),
            split=MicroBatching.of(config.training, micro_batches or 1),
            shard_optimizer=config.mesh.shard_optimizer,
            key=self._dropout_key,
            say=self._console.log,
            about=f"about {seconds} s on a CPU",
        )
        memory = 0 if micro_batches else self._min_device_memory()
        if memory:
            steps.choose_micro_batches(memory)
            self._console.log(steps.layout.text())
        else:
            self._console.log(steps.layout.text())
            steps.compile_for(steps.layout.shapes[-1])
        return steps

    def _min_device_memory(self) -> int:
        """Asks for the memory that a step may take; 0 where nobody knows."""
        # To translate, each device holds all of the parameters beside its state.
        split = self._mesh.size > self._mesh.shape["data"]
        parameters = jax.tree.leaves(self._snapshots.shapes.params)
        kept = split * sum(x.size * x.dtype.itemsize for x in parameters)
        found = max(0, device_memory_limit(self._mesh) - kept)
        memory = all_reduce_min(self._processes, "memory of a device", found)
        if not memory:
            self._console.log(
                "training.micro_batches=auto: this device does not tell how much "
                "memory it has. There is 1 micro-batch."
            )
        return memory
