"""The conditioning slices: XTTS.md §4 to the sample."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio import Slices, fixed_slices, random_slices, step_key
from myxtts.devices import DevicePlan
from myxtts.pipeline import Program

pytestmark = pytest.mark.usefixtures("plan")  # Logical devices come before the first op.

LENGTHS = [255995, 132300, 132299, 99225, 66150, 66149, 11026, 11025, 1]


def batch(lengths: list[int], room: int = 255995) -> tuple[tf.Tensor, tf.Tensor]:
    """Rows that count 1, 2, 3 …, so that a slice tells where it was, and zero padding."""
    places = np.arange(1, room + 1, dtype=np.float32)
    rows = [np.where(places <= length, places, 0) for length in lengths]
    return tf.constant(np.stack(rows)), tf.constant(lengths)


def assert_cut_where_it_says(slices: Slices) -> None:
    assert slices.wave.shape[1] == 132300
    for wave, start, end in zip(*(part.numpy() for part in slices), strict=True):
        assert (wave[: end - start] == np.arange(start + 1, end + 1)).all()
        assert not wave[end - start :].any()


def drawn(length: int, rows: int = 200) -> tuple[list[int], list[int]]:
    lengths = tf.fill([rows], length)
    slices = random_slices(tf.zeros([rows, 1]), lengths, step_key(0, 1))
    return slices.starts.numpy().tolist(), (slices.ends - slices.starts).numpy().tolist()


def test_evaluation_takes_the_first_four_and_a_half_seconds_or_half_a_shorter_clip() -> None:
    slices = fixed_slices(*batch([255995, 99226, 99225, 99224, 11025, 1]))
    assert slices.ends.numpy().tolist() == [99225, 99225, 99225, 49612, 5512, 0]
    assert not slices.starts.numpy().any()
    assert_cut_where_it_says(slices)


@pytest.mark.parametrize("step", range(3))
def test_slices_are_what_their_indices_say_and_zeros(step: int) -> None:
    wave, lengths = batch(LENGTHS)
    slices = random_slices(wave, lengths, step_key(7, step))
    assert_cut_where_it_says(slices)
    assert (slices.ends <= lengths).numpy().all()


def test_a_row_shorter_than_six_seconds_gives_a_slice_of_six() -> None:
    slices = random_slices(*batch([30000, 11025], room=30000), step_key(0, 0))
    assert (slices.ends - slices.starts).numpy().tolist() == [15000, 5512]
    assert_cut_where_it_says(slices)


def test_lengths_and_starts_are_spread_evenly_over_their_ranges() -> None:
    starts, lengths = drawn(255995)
    assert 66150 <= min(lengths) < 68000
    assert 131000 < max(lengths) <= 132300
    assert np.mean(lengths) == pytest.approx(99225, rel=0.03)
    shares = [start / (255995 - length) for start, length in zip(starts, lengths, strict=True)]
    assert np.quantile(shares, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.1)


def test_a_clip_shorter_than_three_seconds_gives_half_of_itself() -> None:
    starts, lengths = drawn(66149)
    assert set(lengths) == {33074}
    assert min(starts) < 1000
    assert 32000 < max(starts) <= 66149 - 33074


def test_a_clip_of_three_seconds_is_halved_unless_exactly_three_were_drawn() -> None:
    starts, lengths = drawn(66150)
    assert set(lengths) <= {33075, 66150}
    whole = [start for start, length in zip(starts, lengths, strict=True) if length == 66150]
    assert set(whole) <= {0}


def test_between_three_and_six_seconds_only_what_is_longer_than_the_clip_is_halved() -> None:
    _starts, lengths = drawn(100000)
    assert {length for length in lengths if length < 66150} == {50000}
    assert 99000 < max(lengths) <= 100000


def test_a_single_sample_gives_an_empty_slice() -> None:
    starts, lengths = drawn(1)
    assert set(lengths) == {0}
    assert set(starts) <= {0, 1}


def test_the_same_key_cuts_the_same_slices_and_another_key_others() -> None:
    lengths = tf.fill([8], 255995)

    def cut(seed: int, step: int) -> list[int]:
        slices = random_slices(tf.zeros([8, 1]), lengths, step_key(seed, step))
        return [*slices.starts.numpy().tolist(), *slices.ends.numpy().tolist()]

    assert cut(3, 5) == cut(3, 5)
    assert len({tuple(cut(*key)) for key in [(3, 5), (3, 6), (4, 5), (5, 3)]}) == 4


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_compiled_slices_are_the_eager_ones_in_a_static_shape(plan: DevicePlan, jit: bool) -> None:
    with tf.device(plan.data):
        wave, lengths = batch(LENGTHS)
        key = step_key(1, 2)
    program = Program(random_slices, plan.data, jit=jit)
    compiled, eager = program(wave, lengths, key), random_slices(wave, lengths, key)
    assert compiled.wave.shape == [len(LENGTHS), 132300]
    assert all((a.numpy() == b.numpy()).all() for a, b in zip(compiled, eager, strict=True))


def test_slices_are_cut_inside_a_dataset() -> None:
    dataset = tf.data.Dataset.from_tensors((*batch([90000, 20000], 90000), step_key(0, 0)))
    mapped = dataset.map(random_slices)
    assert mapped.element_spec.wave.shape == [2, 132300]
    assert_cut_where_it_says(next(iter(mapped)))
