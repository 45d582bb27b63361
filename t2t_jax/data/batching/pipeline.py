"""Streams of batches from plan and token cache, assembled ahead of time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain, count, islice, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from t2t_jax.data.batching.collate import UNSHARDED, collate
from t2t_jax.data.batching.planner import (
    PlannedBatch,
    plan_epoch,
    train_shapes,
)
from t2t_jax.data.batching.sampled_epochs import SampledEpochs
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.python_pairs import Pairs, open_pairs
from t2t_jax.data.token_cache.token_cache import TokenCache, build_or_open
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError
from t2t_jax.types import Batch, BatchShard, DataPosition

if TYPE_CHECKING:
    from jax.sharding import Mesh

Item = TypeVar("Item")
_AHEAD = 4  # items


class Prefetcher(Iterator[Item], AbstractContextManager["Prefetcher[Item]"]):
    """An iterator that prefetches in a thread, whose exceptions `next` raises.

    Closing stops the thread; a closed iterator is exhausted.

    Args:
      on_close: called before the thread is joined, to end what it waits for.
    """

    def __init__(
        self, items: Iterator[Item], *, on_close: Callable[[], object] = lambda: None
    ):
        self._items, self._on_close = items, on_close
        self._ready: queue.Queue[tuple[Item] | BaseException] = queue.Queue(_AHEAD)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="prefetch", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            for item in self._items:
                if self._closed.is_set():
                    return
                self._ready.put((item,))
            self._ready.put(StopIteration())
        except BaseException as error:
            self._ready.put(error)

    def __next__(self) -> Item:
        if self._closed.is_set():
            raise StopIteration
        if isinstance(result := self._ready.get(), BaseException):
            self.close()
            raise result
        return result[0]

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the thread and drops prefetched items."""
        self._closed.set()
        self._on_close()
        while self._thread.is_alive():
            # The thread may be blocked on a full queue.
            while not self._ready.empty():
                self._ready.get_nowait()
            self._thread.join(timeout=0.01)


PositionedBatch: TypeAlias = tuple[DataPosition, Batch]

START = DataPosition(epoch=0, batch=0)


def train_stream(
    cache: TokenCache,
    config: DataConfig,
    *,
    seed: int,
    start: DataPosition = START,
    row_multiple: int = 1,
    share: BatchShard = UNSHARDED,
    tokens: SampledEpochs | None = None,
) -> Prefetcher[PositionedBatch]:
    """Streams the batches of one epoch after another, prefetched by a thread.

    Args:
      seed: the run's; with epoch and batch it determines every batch.
      start: where to resume; earlier batches are planned but not read.
      row_multiple: the number of rows of every batch is a multiple of it.
      tokens: of each epoch, closed with the stream; None for those of `cache`.

    Returns:
      An endless iterator of (position after the batch, batch), to be closed.
    """
    assemble = partial(collate, row_multiple=row_multiple, share=share)
    plans = _plan_epochs(cache, config, tokens, seed=seed, start=start)
    batches = ((after, assemble(sampled, planned)) for after, planned, sampled in plans)
    return Prefetcher(batches, on_close=tokens.close if tokens else lambda: None)


@dataclass(eq=False)
class Batches(Iterator[Batch], AbstractContextManager["Batches"]):
    """The batches of `t2t_jax.batches`: an endless iterator, to be closed.

    Attributes:
      position: (epoch, batch) after the batch that `next` returned last. Saved with the
        state, and passed as `start`, it gives the batches after that, bit for bit.
    """

    _stream: Prefetcher[PositionedBatch]
    _place: Callable[[Batch], Batch]
    position: DataPosition

    def __next__(self) -> Batch:
        self.position, batch = next(self._stream)
        return self._place(batch)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the thread that assembles batches."""
        self._stream.close()


def batches(
    pairs: Pairs | str,
    vocabulary: Vocabulary | VocabularyPair,
    *,
    mesh: Mesh | None = None,
    seed: int = 0,
    start: Sequence[int] = START,
    micro_batches: int = 1,
    **settings: Any,
) -> Batches:
    """Streams training batches of sentence pairs, shuffled anew in each epoch.

    The pairs are encoded once, in processes, into the token cache; batches are planned,
    packed and assembled ahead of time by a thread, as those of the program are. Seed
    and position determine every batch, whatever the devices.

    Of several processes all call it, with the same pairs, and each reads its share.

    Args:
      pairs: any iterable of (source, target); or of mappings from two languages to
        texts, the source first, as rows of Hugging Face's `datasets` (also those under
        the key "translation") and examples of TFDS are; or those of each direction,
        `{"en-de": pairs, "de-en": others}`; or the name of a corpus as in
        `config.data.train`, such as "text:train.en,train.de".
      vocabulary: of both sides, or a pair of them.
      mesh: over whose devices rows are split; None for all devices along `data`. Empty
        rows fill a batch up to a multiple of these devices times `micro_batches`.
      start: the position to continue from.
      micro_batches: those of the step, which divide the rows of a device.
      settings: `tokens_per_batch=24_576` (slots of all devices, on each side),
        `row_length=256`, `layout="packed"` or "length_buckets", `max_length`
        (`row_length` if not given), and the filters, BPE-dropout, modifiers, `workers`
        and `cache_dir` of `config.data`.

    Returns:
      An iterator of batches on the devices of the mesh.

    Raises:
      DataError: text is not valid, or no pair is short enough; or processes have read
        different pairs.
      TypeError: something else than pairs of text, or an unknown setting.
      ConfigError: a setting is not valid.
      ValueError: `start` or `micro_batches` is not valid.

    Example:
      >>> import tempfile
      >>> pairs = [("a dog barks", "ein Hund bellt"), ("a cat", "eine Katze")] * 90
      >>> vocabulary = Vocabulary.train((side for pair in pairs for side in pair), 40)
      >>> how = {"tokens_per_batch": 512, "row_length": 32, "workers": 1}
      >>> how["cache_dir"] = tempfile.mkdtemp()
      >>> with batches(pairs, vocabulary, seed=1, **how) as stream:
      ...     first, after, second = next(stream), stream.position, next(stream)
      >>> first.source.shape, after
      ((16, 32), DataPosition(epoch=0, batch=1))
      >>> with batches(pairs, vocabulary, seed=1, start=after, **how) as stream:
      ...     bool((next(stream).source == second.source).all())
      True
    """
    import jax

    from t2t_jax.devices.sharding import mesh as meshes
    from t2t_jax.devices.sharding.rules import make_global_batch

    if micro_batches < 1 or min(start) < 0:
        raise ValueError(
            f"micro_batches={micro_batches} must be at least 1, and epoch and batch of "
            f"start={(*start,)} at least 0. Pass those of the step, and a position."
        )
    mesh, config = meshes.mesh_or_default(mesh), _batch_config(settings)
    if isinstance(vocabulary, Vocabulary):
        vocabulary = VocabularyPair(vocabulary, vocabulary)
    cache, start = _encode(pairs, vocabulary, config), DataPosition(*start)
    sampled = None
    if config.samples_epochs:
        sampled = SampledEpochs(
            cache, vocabulary, config=config, seed=seed, log=lambda text: None
        )
    stream = train_stream(
        cache,
        config,
        seed=seed,
        start=start,
        row_multiple=meshes.row_shards(mesh) * micro_batches,
        share=meshes.local_batch_shard(mesh, process=jax.process_index()),
        tokens=sampled,
    )
    return Batches(stream, partial(make_global_batch, mesh=mesh), start)


def _encode(
    pairs: Pairs | str, vocabularies: VocabularyPair, config: DataConfig
) -> TokenCache:
    """Opens the token cache of some pairs, which are the same on every process."""
    from t2t_jax.devices.distributed import processes as all_of

    processes = all_of.current_processes()
    with all_of.failing_together(processes, "read the pairs"):
        corpus = (
            open_corpus(pairs)
            if isinstance(pairs, str)
            else open_pairs(pairs, config=config)
        )
        cache = build_or_open(corpus, vocabularies, config=config)
    first = all_of.broadcast_from_first(processes, "pairs", cache.fingerprint)
    if cache.fingerprint != first:
        raise DataError(
            "Every process must read the pairs of process 0, with its vocabulary, and "
            "this one has others. Pass the same to all of them."
        )
    return cache


_OF_A_RUN = {"train", "dev", "dev_pairs", "held_out", "subword_joiner"}


def _batch_config(settings: dict[str, Any]) -> DataConfig:
    """Makes the configuration of `batches` of its settings.

    Raises:
      TypeError: a setting is not one of `batches`.
      ConfigError: a value is not valid.
    """
    known = {field.name for field in fields(DataConfig)} - _OF_A_RUN
    if wrong := sorted(settings.keys() - known):
        names = ", ".join(sorted(known))
        raise TypeError(f"{wrong[0]} is no setting of batches. They are {names}.")
    longest = settings.get("row_length", DataConfig.row_length)
    return DataConfig(**{"max_length": longest, **settings})


def find_batch(
    cache: TokenCache,
    config: DataConfig,
    *,
    seed: int,
    start: DataPosition,
    ahead: int,
    tokens: SampledEpochs | None = None,
) -> tuple[DataPosition, PlannedBatch, TokenCache]:
    """Finds a batch of `train_stream` without collating those before.

    Args:
      ahead: number of batches after `start`; 0 is the first one.
      tokens: as for `train_stream`.

    Returns:
      The position of the batch, its plan, and the tokens of its epoch.
    """
    position = start
    batches = _plan_epochs(cache, config, tokens, seed=seed, start=start)
    for after, *_ in islice(batches, ahead):
        position = after
    _, planned, sampled = next(batches)
    return position, planned, sampled


def _plan_epochs(
    cache: TokenCache,
    config: DataConfig,
    tokens: SampledEpochs | None,
    *,
    seed: int,
    start: DataPosition,
) -> Iterator[tuple[DataPosition, PlannedBatch, TokenCache]]:
    """Plans all epochs; yields the position after each batch, its plan and tokens."""
    shapes, skipped = train_shapes(config, cache.lengths), start.batch
    for epoch in count(start.epoch):
        sampled = tokens.open(epoch) if tokens else cache
        plan = plan_epoch(
            sampled.lengths,
            config=config,
            seed=seed,
            epoch=epoch,
            part_pairs=cache.part_pairs,
            weights=cache.weights,
            shapes=shapes,
        )
        done = 0
        for done, (planned, following) in enumerate(pairwise(chain(plan, [None])), 1):
            if planned is not None and done > skipped:
                is_last = following is None
                after = DataPosition(epoch + is_last, 0 if is_last else done)
                yield after, planned, sampled
        if skipped > done:
            raise DataError(
                f"The run stopped after batch {skipped} of epoch {epoch}, which has "
                f"only {done} batches: the data are not the same. Restore data.train, "
                "or start a new run."
            )
        skipped = 0
