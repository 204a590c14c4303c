"""The stages between the reader and the step: each a generator of batches, on one device."""

from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf

from myxtts.batch import Batch, Tensors
from myxtts.pipeline.program import Program
from myxtts.telemetry.record import Recorder


def extract(batches: Iterable[Batch], program: Program, recorder: Recorder) -> Iterator[Batch]:
    """Turns clips into features on the data device; what it yields is finished."""
    for batch in batches:
        with recorder.span("extract", program.device, batch.number):
            features = program(batch.tensors)
            finish(features)
        yield batch._replace(tensors=features)


def transfer(batches: Iterable[Batch], device: str, recorder: Recorder) -> Iterator[Batch]:
    """Copies each batch to `device`. No other code moves a tensor."""
    for batch in batches:
        with recorder.span("transfer", device, batch.number):
            moved = move(batch.tensors, device)
        recorder.count("bytes_moved", count_bytes(moved), device)
        yield batch._replace(tensors=moved)  # After the scopes, or the paused generator leaks them.


def deal(
    batches: Iterable[Batch], devices: Sequence[str], recorder: Recorder
) -> Iterator[tuple[Batch, ...]]:
    """Copies an equal share of each batch's rows to every model device, in device order."""
    for batch in batches:
        with recorder.span("transfer", ",".join(devices), batch.number):
            hands = [_rows(batch, share, len(devices)) for share in range(len(devices))]
            dealt = tuple(
                hand._replace(tensors=move(hand.tensors, device))
                for hand, device in zip(hands, devices, strict=True)
            )
        recorder.count("bytes_moved", sum(count_bytes(hand.tensors) for hand in dealt))
        yield dealt


def move(tensors: Tensors, device: str) -> Tensors:
    """The nest on another device; off a GPU it returns when the copy is there."""
    # Eager, not a tf.function: a function hands its results back on the
    # caller's device, whatever tf.device says inside it.
    with tf.device(device):
        return tf.nest.map_structure(tf.identity, tensors)


def finish(tensors: Tensors) -> None:
    """Waits until the program that made these tensors is done."""
    # Reading one value off a GPU waits for all that is queued there. Not an int32 tensor:
    # those lie in host memory and may be ready before the rest.
    waiting = [t for t in tf.nest.flatten(tensors) if t.dtype != tf.int32]
    if waiting:
        with tf.device(waiting[-1].device):
            tf.reshape(waiting[-1], [-1])[:1].numpy()


def count_bytes(tensors: Tensors) -> int:
    """The memory that the nest's values take."""
    return sum(_size(tensor) for tensor in tf.nest.flatten(tensors))


def _size(tensor: tf.Tensor) -> int:
    return int(tensor.shape.num_elements() * tensor.dtype.size)


def _rows(batch: Batch, share: int, shares: int) -> Batch:
    rows, rest = divmod(len(batch.clips), shares)
    if rest:
        raise ValueError(
            f"batch {batch.number} has {len(batch.clips)} clips, "
            f"which {shares} model devices cannot share equally"
        )
    mine = slice(share * rows, (share + 1) * rows)
    with tf.device(tf.nest.flatten(batch.tensors)[0].device):
        tensors = tf.nest.map_structure(lambda tensor: tensor[mine], batch.tensors)
    return Batch(batch.number, batch.clips[mine], tensors)
