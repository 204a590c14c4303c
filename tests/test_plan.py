"""The plan as a pure function: every clip once, the same batches again, at most so many shapes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.config import DataConfig
from myxtts.errors import UserError
from myxtts.plan import (
    CODE,
    NO_CLIP,
    Ladder,
    Plan,
    Position,
    Worker,
    held_out,
    is_validation,
    make_plan,
    rows_per_batch,
    solve_ladder,
)
from myxtts.plan.ladder import Lengths, ladder_of, whole_codes
from myxtts.plan.rows import moves_up

RATE = 22050
QUICK = settings(max_examples=40, deadline=None, derandomize=True)
LENGTHS = st.lists(st.integers(1, 12 * RATE), min_size=1, max_size=300).map(np.array)


def like_ljspeech(clips: int) -> Lengths:
    """1.1 to 10.1 s with LJSpeech's mean of 6.6 s and deviation of 2.2 s."""
    seconds = 1.1 + 9 * np.random.default_rng(0).beta(1.87, 1.2, clips)
    return np.asarray(seconds * RATE, np.int64)


def planned(samples: Lengths, batch_size: int = 4, worker: Worker = Worker()) -> Plan:  # noqa: B008
    return make_plan(samples, DataConfig(batch_size=batch_size), 7, worker=worker)


def clips_of(plan: Plan, epoch: int) -> list[int]:
    first = plan.number(Position(epoch, 0))
    clips = plan.table(first, plan.batches_per_epoch).clips
    return [int(clip) for clip in clips.ravel() if clip != NO_CLIP]


def tuples(plan: Plan, numbers: range) -> list[tuple[int, ...]]:
    return [tuple(plan.batch(number).clips.tolist()) for number in numbers]


def cheapest(samples: Lengths, buckets: int) -> int:
    """The padded samples of the best ladder, by trying every one."""
    tops = np.unique(whole_codes(samples))
    best = {0: 0}
    for _ in range(min(buckets, len(tops))):
        best = {
            end: min(
                padded + int(tops[end - 1]) * len(held(samples, tops, begin, end))
                for begin, padded in best.items()
                if begin < end
            )
            for end in range(1, len(tops) + 1)
        } | {0: 0}
    return best[len(tops)]


def held(samples: Lengths, tops: Lengths, begin: int, end: int) -> Lengths:
    low = int(tops[begin - 1]) if begin else 0
    return np.flatnonzero((samples > low) & (samples <= tops[end - 1]))


@QUICK
@given(LENGTHS, st.integers(1, 8), st.integers(1, 9), st.integers(0, 3))
def test_every_clip_comes_once_in_an_epoch_over_all_workers(
    samples: Lengths, workers: int, batch_size: int, epoch: int
) -> None:
    plans = [planned(samples, batch_size, Worker(i, workers)) for i in range(workers)]
    shown = [clip for plan in plans for clip in clips_of(plan, epoch)]
    assert sorted(shown) == list(range(len(samples)))
    assert len({plan.batches_per_epoch for plan in plans}) == 1


@QUICK
@given(LENGTHS, st.integers(1, 8))
def test_all_workers_have_the_same_bucket_at_the_same_step(samples: Lengths, workers: int) -> None:
    plans = [planned(samples, 3, Worker(i, workers)) for i in range(workers)]
    tables = [plan.table(0, 2 * plan.batches_per_epoch) for plan in plans]
    assert all((table.buckets == tables[0].buckets).all() for table in tables)
    full = [int((table.clips != NO_CLIP).sum()) for table in tables]
    assert max(full) - min(full) <= 2 * len(plans[0].rows)  # One clip for each short group.


@QUICK
@given(LENGTHS)
def test_every_clip_fits_its_batch_and_the_waste_told_is_the_waste_there_is(
    samples: Lengths,
) -> None:
    plan = planned(samples)
    padded = real = 0
    for number in range(plan.batches_per_epoch):
        batch = plan.batch(number)
        lengths = samples[batch.clips[batch.clips != NO_CLIP]]
        assert (lengths <= plan.ladder.tops[batch.bucket]).all()
        padded += len(batch.clips) * plan.ladder.tops[batch.bucket]
        real += int(lengths.sum())
    assert plan.waste == pytest.approx(1 - real / padded)


@QUICK
@given(LENGTHS, st.integers(0, 50), st.integers(1, 30))
def test_resuming_anywhere_equals_going_on(samples: Lengths, start: int, count: int) -> None:
    whole = tuples(planned(samples), range(start + count))
    fresh = planned(samples)
    assert tuples(fresh, range(start, start + count)) == whole[start:]
    table = fresh.table(start, count)
    assert [
        tuple(clips[: fresh.rows[bucket]].tolist())
        for clips, bucket in zip(table.clips, table.buckets, strict=True)
    ] == whole[start:]


@QUICK
@given(LENGTHS, st.integers(0, 10_000))
def test_position_and_number_name_the_same_batch(samples: Lengths, number: int) -> None:
    plan = planned(samples)
    position = plan.position(number)
    assert plan.number(position) == number
    assert 0 <= position.index < plan.batches_per_epoch


def test_each_epoch_and_each_seed_has_its_own_order() -> None:
    samples = like_ljspeech(200)
    plan, other = planned(samples), make_plan(samples, DataConfig(batch_size=4), 8)
    assert clips_of(plan, 0) != clips_of(plan, 1)
    assert clips_of(plan, 0) != clips_of(other, 0)
    assert clips_of(plan, 0) == clips_of(planned(samples), 0)


def test_the_order_is_pinned_so_that_no_library_can_change_it() -> None:
    plan = planned(np.array([1000, 5000, 9000, 30000, 31000, 32000, 33000, 2000]))
    assert tuples(plan, range(4)) == [(3, 4, 6, 5), (0, 7, 1, 2), (0, 7, 1, 2), (3, 4, 5, 6)]


def test_long_and_short_batches_come_mixed() -> None:
    plan = planned(like_ljspeech(2000))
    buckets = plan.table(0, plan.batches_per_epoch).buckets.astype(float)
    assert abs(np.corrcoef(buckets, np.arange(len(buckets)))[0, 1]) < 0.1
    assert abs(np.corrcoef(buckets[1:], buckets[:-1])[0, 1]) < 0.1


@QUICK
@given(
    st.lists(st.integers(1, 14 * CODE), min_size=1, max_size=60).map(np.array), st.integers(1, 7)
)
def test_no_ladder_pads_less(samples: Lengths, buckets: int) -> None:
    ladder = solve_ladder(samples, buckets)
    padded = np.array(ladder.tops)[ladder.buckets_of(samples)].sum()
    assert padded == cheapest(samples, buckets)
    assert ladder.waste == pytest.approx(1 - samples.sum() / padded)
    assert len(ladder.tops) <= buckets
    assert all(top % CODE == 0 for top in ladder.tops)


def test_six_buckets_waste_under_a_tenth_on_lengths_like_ljspeechs() -> None:
    plan = make_plan(like_ljspeech(13_100), DataConfig(), 0)
    assert len(plan.ladder.tops) == 6
    assert plan.ladder.waste < 0.10
    assert plan.waste < 0.10


@pytest.mark.parametrize("mean", [1.5, 3.0, 5.0])
def test_the_solved_ladder_beats_even_steps_and_equal_counts(mean: float) -> None:
    seconds = np.random.default_rng(1).gamma(4, mean / 4, 10_000).clip(0.5, 11.6)
    samples = (seconds * RATE).astype(np.int64)
    even = whole_codes(np.linspace(samples.max() / 6, samples.max(), 6).astype(np.int64))
    equal = whole_codes(np.quantile(samples, np.linspace(1 / 6, 1, 6)).astype(np.int64))
    waste = solve_ladder(samples, 6).waste
    assert waste < 0.18
    for tops in (even, equal):
        assert waste < ladder_of(samples, tuple(tops.tolist())).waste - 0.01


def test_ten_thousand_lengths_all_different_are_solved() -> None:
    samples = np.arange(1, 10_001) * CODE
    ladder = solve_ladder(samples, 6)
    assert len(ladder.tops) == 6
    assert ladder.waste == pytest.approx(1 / 7, abs=0.001)  # Even steps: the best there is.


@pytest.mark.parametrize("samples", [[5000] * 9, [5000], [5000, 90_000]])
def test_few_lengths_get_a_bucket_each(samples: list[int]) -> None:
    ladder = solve_ladder(np.array(samples), 6)
    assert ladder.tops == tuple(sorted({int(n) for n in whole_codes(np.array(samples))}))


def test_a_shape_that_costs_more_than_it_saves_is_left_out() -> None:
    samples = np.array([CODE] * 10 + [2 * CODE])
    assert solve_ladder(samples, 6, shape_cost=10 * CODE - 1).tops == (CODE, 2 * CODE)
    assert solve_ladder(samples, 6, shape_cost=10 * CODE).tops == (2 * CODE,)


def test_no_clips_are_an_error_that_says_so() -> None:
    with pytest.raises(UserError, match="no clips"):
        solve_ladder(np.empty(0, np.int64), 6)


def test_a_frame_budget_fits_as_many_clips_as_it_holds() -> None:
    ladder = Ladder((10 * CODE, 40 * CODE), 0.0)
    assert rows_per_batch(ladder, DataConfig(frames_per_batch=200)) == (5, 1)
    assert rows_per_batch(ladder, DataConfig(frames_per_batch=200), devices=3) == (15, 3)
    with pytest.raises(UserError, match="longest clips have 160 frames"):
        rows_per_batch(ladder, DataConfig(frames_per_batch=159))


def test_left_over_clips_ride_in_a_longer_batch_when_that_pads_less() -> None:
    assert moves_up([5, 3], [10, 11], [4, 4]) == [1, 0]
    assert moves_up([7, 4], [10, 11], [4, 4]) == [0, 0]
    assert moves_up([1, 0, 3], [10, 11, 12], [4, 4, 4]) == [1, 1, 0]


def test_a_small_set_on_many_workers_gives_each_the_same_steps() -> None:
    plans = [planned(np.array([CODE, 9 * CODE]), 2, Worker(i, 8)) for i in range(8)]
    assert {plan.batches_per_epoch for plan in plans} == {1}
    assert sorted(clip for plan in plans for clip in clips_of(plan, 0)) == [0, 1]


def test_the_validation_split_stays_when_clips_are_added() -> None:
    clips = [f"LJ{i:06d}" for i in range(20_000)]
    chosen = {clip for clip in clips if is_validation(clip, 0.02)}
    assert 0.017 < len(chosen) / len(clips) < 0.023
    assert chosen <= {clip for clip in clips if is_validation(clip, 0.05)}
    assert held_out(clips, DataConfig()).tolist() == [clip in chosen for clip in clips]


def test_a_validation_folder_leaves_all_training_clips_to_learn_from() -> None:
    assert not held_out(["a"] * 9, DataConfig(val=Path("eval"), validation_share=0.99)).any()
