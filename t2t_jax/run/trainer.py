"""Runs an experiment: makes batches, model, step and callbacks for the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import optax
from flax import linen as nn

from t2t_jax.config import Config, flatten, to_dict
from t2t_jax.data.batching.collate import collate
from t2t_jax.data.batching.pipeline import train_stream
from t2t_jax.data.batching.planner import plan_eval
from t2t_jax.data.corpora.open import reads_trees, train_and_dev
from t2t_jax.data.token_cache.token_cache import TokenCache
from t2t_jax.decoding.text.distributed_translate import Translate
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.devices.distributed.processes import (
    SINGLE_PROCESS,
    Processes,
    all_reduce_min,
)
from t2t_jax.devices.fault_injection import maybe_inject_fault
from t2t_jax.devices.processor import resolve_search_dtype
from t2t_jax.devices.sharding.mesh import local_batch_shard, make_mesh, row_shards
from t2t_jax.devices.sharding.rules import make_global_batch
from t2t_jax.evaluation.bleu import BleuSettings
from t2t_jax.evaluation.evaluator import Evaluator, TreeEvaluator, first_of_each
from t2t_jax.model.architectures import make_module, resolve_module, step_model
from t2t_jax.model.config import decoder_layers
from t2t_jax.run.callbacks import Callback, RunCallbacks
from t2t_jax.run.device_choices import choose_for_devices
from t2t_jax.run.estimates import estimate
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.run.state_checkpoints import RunCheckpointer
from t2t_jax.run.text import with_absolute_text
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.compiled_step import (
    BatchLayout,
    StepCompiler,
    device_memory_limit,
)
from t2t_jax.training.loop import TrainingLoop
from t2t_jax.training.optimizer import Schedule, make_optimizer, make_schedule
from t2t_jax.training.progress_and_patience import Intervals, RunProgress
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.reporting.metrics_writer import (
    MetricsWriter,
    NullMetricsWriter,
    read_metrics,
)
from t2t_jax.training.state import init_state, state_shapes
from t2t_jax.training.step import compile_evaluation, make_train_step
from t2t_jax.training.stopping import (
    StopRequest,
    Watchdog,
    abort_stuck_run,
    exit_on_signals,
)
from t2t_jax.types import Batch


def is_complete(config: Config, progress: RunProgress) -> bool:
    """Returns whether a run has made all its steps, or ended early."""
    return progress.completes(config.steps, patience=config.evaluation.patience)


def best_score_of(config: Config) -> str:
    """Returns which score decides what is best: "f1" of trees, else "bleu"."""
    return "f1" if reads_trees(train_and_dev(config.data)[1]) else "bleu"


@dataclass
class Trainer:
    """One experiment in one workdir, on one mesh.

    Attributes:
      workdir: the run's directory, which exists.
      devices: to train on; None means those of all processes.
      owns_process: whether a signal before the first step and the watchdog may end the
        process; False in a user's program.
      write_report: called on process 0 after each evaluation, and with True at the end
        of the training; raises nothing.
      callbacks, module, optimizer: of the user; see `t2t_jax.train`.
      checkpointer: saves and restores the state of the run.
      schedule: of the learning rate; None if it is not known.

    Raises:
      ConfigError: `config.mesh` does not fit the devices.
      UserError: `config.decoding.shortlist` does not exist, or does not fit the model.
    """

    config: Config
    workdir: Workdir
    text: PreparedData
    console: Console
    processes: Processes = SINGLE_PROCESS
    devices: Sequence[jax.Device] | None = None
    owns_process: bool = True
    write_report: Callable[[bool], None] = lambda is_over: None
    callbacks: Sequence[Callback] = ()
    module: nn.Module | None = None
    optimizer: optax.GradientTransformation | Schedule | None = None

    def __post_init__(self) -> None:
        self._mesh = make_mesh(self.devices, **self.config.mesh.axes)
        platform = self._mesh.devices.flat[0].platform
        self._on_cpu = platform == "cpu"
        begins = next(self.workdir.checkpoints.glob("*"), None) is None
        alone = self.processes.count == 1 and self.module is None
        config, auto, self._choices = choose_for_devices(
            with_absolute_text(self.config), self._mesh, may_choose=begins and alone
        )
        self.config, network, training = config, config.network, config.training
        module = make_module(network) if self.module is None else self.module
        self._module = resolve_module(module, self._mesh, auto=auto)
        width, own = network.d_model, self.optimizer
        self._optimizer = make_optimizer(
            config.optimizer, d_model=width, frozen=training.frozen, own=own
        )
        self.schedule = own or make_schedule(config.optimizer, d_model=width)
        if isinstance(self.schedule, optax.GradientTransformation):
            self.schedule = None  # It is inside, and not known.
        params_key, self._dropout_key = jax.random.split(jax.random.key(config.seed))
        model, ema = (self._module, self._optimizer), training.ema_decay > 0
        self.checkpointer = RunCheckpointer(
            config,
            workdir=self.workdir,
            init_state=partial(init_state, *model, params_key, ema=ema),
            shapes=state_shapes(*model, ema=ema),
            mesh=self._mesh,
            fingerprints=self.text.fingerprints,
            log=self.console.log,
            processes=self.processes,
            files=self.text.vocabularies.files,
        )
        shapes = jax.tree.leaves(self.checkpointer.shapes.params)
        self._num_parameters = sum(leaf.size for leaf in shapes)
        dtype = resolve_search_dtype(config.decoding.compute_dtype, platform)
        self._make_model = partial(step_model, self._module, compute_dtype=dtype)
        if config.decoding.shortlist and self.text.dev is not None:
            # Made once before the first step, to refuse what evaluations cannot use.
            bound = self._make_model(self.checkpointer.shapes.params)
            Translator(bound, self.text.vocabularies, config.decoding)

    def train(self, stop: StopRequest) -> RunProgress:
        """Trains from the newest checkpoint, or from the start, to the last step.

        Args:
          stop: polled after each step; entered only here, so that a signal before the
            first step ends the process at once.

        Returns:
          The progress of the run, which is incomplete only after a stop request.
        """
        signals = exit_on_signals() if self.owns_process else nullcontext()
        with signals, self._make_watchdog():
            state, progress = self.checkpointer.resume() or self.checkpointer.init()
            self._log_model()
            maybe_inject_fault(progress.step, "compiling")
            step = self._make_step()
        with (
            closing(self.console),
            # Before the others, so that it also covers the end of the run.
            self._make_watchdog() as watchdog,
            closing(self._make_metrics_writer(progress.step)) as metrics,
            self.checkpointer.closing(),
            train_stream(
                self.text.train,
                self.text.config,
                seed=self.text.seed,
                start=progress.position,
                row_multiple=step.layout.row_multiple,
                share=step.layout.share,
                tokens=self.text.sampled_epochs(log=self.console.log),
            ) as batches,
            stop,
        ):
            evaluator = self._make_evaluator(stop, watchdog)
            callbacks = RunCallbacks(self, metrics, evaluator)
            records = read_metrics(self.workdir.path / "metrics.jsonl")
            self.console.start(progress.step, history=records)
            with callbacks.profile.stop_on_exit(progress.step, programs=step.hlo_texts):
                run = TrainingLoop(step, self._intervals(), callbacks, stop, watchdog)
                _, progress = run.train(state, batches, progress)
                watchdog.begin("ending")
                if is_complete(self.config, progress):
                    metrics.write_final(progress, score=best_score_of(self.config))
                if self.processes.is_first:
                    self.write_report(True)
        callbacks.raise_failure()
        return progress

    def _log_model(self) -> None:
        """Logs size and precision of the model; logs and saves what was chosen."""
        config = getattr(self._module, "config", None)
        dtype = getattr(config, "compute_dtype", "the module's types")
        self.console.log(f"{self._num_parameters:,} parameters, computing in {dtype}")
        for line in self._choices:
            self.console.log(line)
        if self._choices and self.processes.is_first:
            self.workdir.write_json("config.json", to_dict(self.config))

    def _make_watchdog(self) -> Watchdog:
        """Makes the watchdog that ends a stuck run on all processes."""
        on, training = self.owns_process, self.config.training
        step, pause = training.step_timeout * on, training.pause_timeout * on
        return Watchdog(step=step, pause=pause, on_timeout=abort_stuck_run)

    def _intervals(self) -> Intervals:
        every = self.config.checkpoint
        return Intervals(
            steps=self.config.steps,
            log=self.config.logging.every_steps,
            evaluate=self.config.evaluation.every_steps,
            patience=self.config.evaluation.patience,
            show_seconds=self.console.every_seconds,
            save_steps=every.every_steps,
            save_minutes=every.every_minutes,
            save_epochs=every.every_epochs,
        )

    def estimate(self, step: int, **speed: Any) -> str:
        """Describes the time left after a step, at a speed, as `estimate` takes it."""
        dev, decoded = self.text.dev, self.config.evaluation.bleu_sentences or None
        dev_tokens = int(dev.lengths[1][:decoded].sum()) if dev else 0
        size: Any = {"dev_tokens": dev_tokens, "on_cpu": self._on_cpu}
        return estimate(self.config, step, **size, **speed)

    def _make_evaluator(
        self, stop: StopRequest, watchdog: Watchdog
    ) -> Evaluator | None:
        """Makes the evaluator of the development set; None if evaluation is off.

        The loss is computed on global batches over the full mesh. For BLEU each process
        translates a share of the lines with all parameters; the translations are
        gathered, so that every process computes the same BLEU. `stop` cancels it.
        """
        config, text, evaluation = self.config, self.text, self.config.evaluation
        if text.dev is None:
            return None

        def is_cancelled() -> bool:
            watchdog.reset()  # Polled whenever the evaluation has made progress.
            return stop.stop_requested()

        directions, most = text.dev_directions, evaluation.bleu_sentences
        chosen = first_of_each(directions, most) if most else range(len(directions))
        make = TreeEvaluator if best_score_of(config) == "f1" else Evaluator
        return make(
            sums=compile_evaluation(
                self._module,
                label_smoothing=config.training.label_smoothing,
                mesh=self._mesh,
                loss_chunks=config.training.loss_chunks,
            ),
            batches=partial(self._dev_batches, text.dev),
            translate=Translate(
                make_model=self._make_model,
                vocabularies=text.vocabularies,
                config=config.decoding,
                processes=self.processes,
                is_cancelled=is_cancelled,
            ),
            pairs=[text.dev_lines[number] for number in chosen],
            directions=[directions[number] for number in chosen],
            max_unfinished=evaluation.max_unfinished,
            bleu=BleuSettings(evaluation.tokenize),
            progress=self.console.advance,
        )

    def _dev_batches(self, dev: TokenCache) -> Iterator[Batch]:
        share = local_batch_shard(self._mesh, process=jax.process_index())
        multiple = row_shards(self._mesh)
        for planned in plan_eval(dev.lengths, config=self.text.config):
            batch = collate(dev, planned, row_multiple=multiple, share=share)
            yield make_global_batch(batch, self._mesh)

    def _make_metrics_writer(self, step: int) -> MetricsWriter:
        """Opens the metrics files, which process 0 writes."""
        if not self.processes.is_first:
            return NullMetricsWriter()
        return MetricsWriter(
            self.workdir.path,
            step=step,
            log=self.console.log,
            timestamps=self.console.timestamps,
            settings=dict(flatten(to_dict(self.config))),
        )

    def _make_step(self) -> StepCompiler:
        """Compiles the step for the longest rows; other shapes at first use."""
        training, network = self.config.training, self.config.network

        def make_step(micro_batches: int) -> Any:
            config = replace(training, micro_batches=micro_batches)
            places = self.checkpointer.shardings
            return make(config=config, mesh=self._mesh, shardings=places)

        make = partial(make_train_step, self._module, self._optimizer)
        planned, parts = self.text.batch_shapes, training.micro_batches or 1
        steps = StepCompiler(
            make_step,
            self.checkpointer.shapes,
            layout=BatchLayout(planned=planned, mesh=self._mesh, micro_batches=parts),
            key=self._dropout_key,
            log=self.console.log,
            # Measured: 1 to 2 s for each layer of the two stacks, on two CPU cores.
            about=f"about {network.num_layers + decoder_layers(network)} s on a CPU",
        )
        memory = 0 if training.micro_batches else self._min_device_memory()
        if memory:
            steps.choose_micro_batches(memory)
        self.console.log(steps.layout.text())
        if not memory:
            steps.compile_for(steps.layout.shapes[-1])
        return steps

    def _min_device_memory(self) -> int:
        """Returns the bytes that a step may use on every device; 0 if not known."""
        # During evaluation each device holds all parameters in addition to its state.
        sharded = self._mesh.size > self._mesh.shape["data"]
        reserved = sharded * self._num_parameters * 4  # float32
        available = max(0, device_memory_limit(self._mesh) - reserved)
        memory = all_reduce_min(self.processes, "memory of a device", available)
        if not memory:
            why = "the memory size of this device is not known. Using 1 micro-batch."
            self.console.log(f"training.micro_batches=auto: {why}")
        return memory
