"""From a plan and its clips to batches on the data device: a data set without Python in it.

Legend: N batches, R rows of the largest batch, B rows of this one, S samples, L text tokens,
K buckets, C clips.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from myxtts.audio import codes_for_frames, frames_for_samples
from myxtts.batch import Batch
from myxtts.config import DataConfig
from myxtts.devices import silent_moves
from myxtts.plan import NO_CLIP, Plan, Table
from myxtts.reader.rows import Codes, Numbers, Slices, Texts, pad_rows, slices
from myxtts.reader.source import Source
from myxtts.telemetry.record import Recorder

HOST = "/CPU:0"
STRETCH = 4096
"""Batches of one data set: enough that building it does not count, and its tables stay small."""
NAMELESS = "(no clip)"
"""In the place of an id in a row that holds no clip."""


class ReadAhead(NamedTuple):
    """Batches that wait ready."""

    host: int
    device: int


class Reader(NamedTuple):
    """What makes batches out of positions."""

    source: Source
    plan: Plan
    texts: Texts | None = None
    codes: Codes | None = None


def read_batches(
    reader: Reader, numbers: range, data: DataConfig, device: str, recorder: Recorder
) -> Iterator[Batch]:
    """The plan's batches with these numbers, on `device`; nothing is read to get to the first.

    Tensors: pcm int16 [B, S], samples int64 [B], weights float32 [B] (0 where a row holds no
    clip) and, with texts, text int64 [B, L] and text_tokens int64 [B]; with codes, codes int64
    [B, as many as the codec makes of S samples].
    """
    for first in range(0, len(numbers), STRETCH):
        stretch = numbers[first : first + STRETCH]
        table = _table(reader.plan, stretch)
        batches = _start(reader, table, data, device)
        for number, clips_R, bucket in zip(stretch, table.clips, table.buckets, strict=True):
            clips_B = clips_R[: reader.plan.rows[bucket]]
            with recorder.span("read", batch=number):
                try:
                    tensors = next(batches)
                except tf.errors.OpError as error:
                    raise reader.source.explain(error, clips_B) from None
            names = (reader.source.ids[i] if i != NO_CLIP else NAMELESS for i in clips_B)
            yield Batch(number, tuple(names), tensors)


def _table(plan: Plan, numbers: range) -> Table:
    """The batches with these numbers: every second one, say, where two devices take turns."""
    whole = plan.table(numbers.start, numbers[-1] + 1 - numbers.start)
    return Table(*(array[:: numbers.step] for array in whole))


def read_ahead(data: DataConfig, plan: Plan) -> ReadAhead:
    """How many batches wait on the host and how many on the data device."""
    clips = len(plan.samples) / (plan.batches_per_epoch * plan.worker.count)
    on_device = clips_on_data_device(data)
    on_host = max(0, data.buffer_size - on_device)
    return ReadAhead(
        host=max(data.prefetch_buffer_size, math.ceil(on_host / clips)),
        device=math.ceil(on_device / clips) if data.prefetch_to_gpu else 0,
    )


def clips_on_data_device(data: DataConfig) -> int:
    """Half of the clips that are kept ready, and never fewer than six, as the guides have it."""
    return max(6, data.buffer_size // 2)


def _start(reader: Reader, table: Table, data: DataConfig, device: str) -> Iterator[Any]:
    # TensorFlow lays a data set's handle on the device that its batches are copied to.
    with silent_moves(), tf.device(HOST):
        batches: Iterator[Any] = iter(_data_set(reader, table, data, device))
    return batches


def _data_set(reader: Reader, table: Table, data: DataConfig, device: str) -> tf.data.Dataset:
    ahead = read_ahead(data, reader.plan)
    # A call under way, or finished before its turn, is a batch in memory: calls are read ahead too.
    calls = min(data.num_workers, ahead.host)
    ragged = {"text": tf.constant(reader.texts.tokens, tf.int64)} if reader.texts else {}
    ragged |= {"codes": reader.codes.values} if reader.codes else {}
    batches = tf.data.Dataset.from_tensor_slices(_inputs(reader, table)).map(
        lambda given: _tensors(reader.source, ragged, given), calls, deterministic=True
    )
    batches = _prefetch(batches, ahead.host - calls).with_options(_options(data))
    return _onto(batches, device, ahead.device)


def _prefetch(batches: tf.data.Dataset, count: int) -> tf.data.Dataset:
    return batches.prefetch(count) if count else batches


def _onto(batches: tf.data.Dataset, device: str, ahead: int) -> tf.data.Dataset:
    """The data set's last stage: behind another one its copies would not run ahead."""
    if device == HOST:
        return _prefetch(batches, ahead)
    if ahead:
        return batches.apply(tf.data.experimental.prefetch_to_device(device, ahead))
    return batches.apply(tf.data.experimental.copy_to_device(device))


def _options(data: DataConfig) -> tf.data.Options:
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = False  # The settings say how many threads and batches.
    # Rewriting the data set would copy what its functions capture: all of the mapped sound.
    options.experimental_optimization.apply_default_optimizations = False
    options.threading.private_threadpool_size = data.num_workers
    return options


def _inputs(reader: Reader, table: Table) -> dict[str, Any]:
    plan, (buckets_N, clips_NR) = reader.plan, table
    tops_N = np.array(plan.ladder.tops, np.int64)[buckets_N]
    rows_N = np.array(plan.rows, np.int64)[buckets_N]
    is_clip_NR = clips_NR != NO_CLIP
    inputs = {
        "sound": reader.source.inputs(table, tops_N, rows_N),
        "top": tops_N,
        "rows": rows_N,
        "samples": np.where(is_clip_NR, plan.samples[clips_NR], 0).astype(np.int64),
        "weights": is_clip_NR.astype(np.float32),
    }
    if reader.texts:
        begins, lengths = reader.texts.splits[:-1], reader.texts.lengths
        inputs["text_width"] = _text_widths(plan, lengths)[buckets_N]
        inputs["text"] = slices(clips_NR, inputs["text_width"], rows_N, begins, lengths)
    if reader.codes:
        inputs["codes_width"] = codes_for_frames(frames_for_samples(tops_N))
        inputs["codes"] = _codes(reader.codes, table, inputs["codes_width"], rows_N)
    return inputs


def _codes(codes: Codes, table: Table, widths_N: Numbers, rows_N: Numbers) -> Slices:
    """Each clip's codes as its batch's bucket has them."""
    clips = codes.begins_KC.shape[1]
    places_NR = np.where(
        table.clips == NO_CLIP,
        NO_CLIP,
        table.clips + table.buckets[:, None].astype(np.int64) * clips,
    )
    begins = codes.begins_KC.ravel()
    if (begins[places_NR[places_NR != NO_CLIP]] < 0).any():
        raise ValueError("a clip is to be read with codes that nobody has made")
    return slices(places_NR, widths_N, rows_N, begins, codes.lengths_KC.ravel())


def _text_widths(plan: Plan, lengths: Numbers) -> Numbers:
    """Each bucket's longest text, so that a bucket has one shape; clips may move up a bucket."""
    widths = np.ones(len(plan.rows), np.int64)
    np.maximum.at(widths, plan.ladder.buckets_of(plan.samples), lengths)
    return np.maximum.accumulate(widths)


def _tensors(source: Source, ragged: dict[str, tf.Tensor], given: dict[str, Any]) -> dict[str, Any]:
    """One batch, in the graph of the data set."""
    # No int32: TensorFlow looks for a program's int32 arguments on the host, whatever its device.
    rows = given["rows"]
    tensors = {
        "pcm": source.read(given["sound"], given["top"]),
        "samples": given["samples"][:rows],
        "weights": given["weights"][:rows],
    }
    for name, values in ragged.items():
        padded = pad_rows(values, given[name], given[f"{name}_width"])
        tensors[name] = tf.cast(padded, tf.int64)
    if "text" in ragged:
        tensors["text_tokens"] = given["text"].lengths[:rows]
    return tensors
