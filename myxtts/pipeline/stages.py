"""The stages between the reader and the step: each a generator of batches, on one device."""

from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf

from myxtts.batch import Batch, Tensors
from myxtts.pipeline.program import Program
from myxtts.telemetry.record import Recorder


def extract(batches: Iterable[Batch], program: Program, recorder: Recorder) -> Iterator[Batch]:
    """Turns clips into features on the data device; what it yields is finished.

    The program takes the tensors and the batch's number, the key of all that is random in it.
    """
    for batch in batches:
        with recorder.span("extract", program.device, batch.number):
            with tf.device(program.device):
                number = tf.constant(batch.number, tf.int64)
            features = program(batch.tensors, number)
            finish(features)
        yield batch._replace(tensors=features)


def transfer(
    batches: Iterable[Batch], devices: Sequence[str], recorder: Recorder
) -> Iterator[tuple[Batch, ...]]:
    """Copies an equal share of each batch's rows to every model device. Nothing else moves one."""
    for batch in batches:
        with recorder.span("transfer", ",".join(devices), batch.number):
            hands = tuple(_hand(batch, share, devices) for share in range(len(devices)))
        recorder.count("bytes_moved", sum(_bytes_copied(batch, hand) for hand in hands))
        yield hands  # After the scopes, or the paused generator leaks them.


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
    flat = tf.nest.flatten(tensors)
    waiting = next((t for t in flat if t.dtype != tf.int32), None)
    if waiting is None:
        kinds = ", ".join(tensor.dtype.name for tensor in flat)
        raise ValueError(f"a batch of {kinds or 'nothing'} alone does not tell when it is made")
    with tf.device(waiting.device):
        tf.reshape(waiting, [-1])[:1].numpy()


def _hand(batch: Batch, share: int, devices: Sequence[str]) -> Batch:
    rows = share_of(batch, share, len(devices)) if len(devices) > 1 else batch
    return rows._replace(tensors=move(rows.tensors, devices[share]))


def _bytes_copied(batch: Batch, hand: Batch) -> int:
    """CPU devices share memory: a move between them copies nothing."""
    pairs = zip(tf.nest.flatten(batch.tensors), tf.nest.flatten(hand.tensors), strict=True)
    return sum(_size(moved) for source, moved in pairs if _apart(source, moved))


def _apart(source: tf.Tensor, moved: tf.Tensor) -> bool:
    places = {source.backing_device, moved.backing_device}
    return len(places) > 1 and not all("CPU" in place for place in places)


def _size(tensor: tf.Tensor) -> int:
    return int(tensor.shape.num_elements() * tensor.dtype.size)


def share_of(batch: Batch, share: int, shares: int) -> Batch:
    """An equal part of a batch's rows, where the batch lies."""
    rows, rest = divmod(len(batch.clips), shares)
    if rest:
        raise ValueError(
            f"batch {batch.number} has {len(batch.clips)} clips, "
            f"which cannot be shared equally by {shares}"
        )
    shapes = [tensor.shape for tensor in tf.nest.flatten(batch.tensors)]
    if any(shape.rank == 0 or shape[0] != len(batch.clips) for shape in shapes):
        raise ValueError(
            f"batch {batch.number} has {len(batch.clips)} clips and tensors of shape "
            f"{', '.join(str(shape) for shape in shapes)}: without a row for each clip "
            "they cannot be shared"
        )
    mine = slice(share * rows, (share + 1) * rows)
    tensors = tf.nest.map_structure(lambda tensor: _slice(tensor, mine), batch.tensors)
    return Batch(batch.number, batch.clips[mine], tensors)


def _slice(tensor: tf.Tensor, rows: slice) -> tf.Tensor:
    with tf.device(tensor.device):
        return tensor[rows]
