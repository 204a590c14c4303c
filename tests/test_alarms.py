from collections.abc import Callable, Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from myxtts.telemetry.alarms import (
    Alarm,
    AlarmLimits,
    AlarmWatch,
    StepRecord,
    memory_growth,
    oscillation,
    retrace,
    step_time_variation,
    variation,
)
from myxtts.telemetry.growth import find_growth, theil_sen
from myxtts.telemetry.periods import find_period

Floats = NDArray[np.float64]

ALPHA = 1e-5
MB = 1e6


def white(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(count)


def ar(count: int, memory: float, seed: int = 0) -> Floats:
    noise = white(count, seed)
    for step in range(1, count):
        noise[step] = memory * noise[step - 1] + np.sqrt(1 - memory**2) * noise[step]
    return noise


def noisy(shape: Floats | float, count: int = 400, seed: int = 0) -> Floats:
    return 0.1 * shape * (1 + 0.1 * white(count, seed))


def every(period: int, factor: float, count: int = 400) -> Floats:
    return np.where(np.arange(count) % period == period - 1, factor, 1.0)


def period_of(seconds: Floats) -> float:
    period = find_period(seconds, ALPHA)
    assert period is not None
    return period.steps


def flag_of(alarm: Alarm | None) -> str:
    assert alarm is not None
    return alarm.flag


# Step-time variation


def test_variation_is_the_root_mean_square_distance_from_the_median() -> None:
    seconds = np.array([0.08, 0.10, 0.12] * 20 + [9.0])
    assert variation(seconds) == pytest.approx(0.02 * np.sqrt(2 / 3) / 0.1)


def test_variation_against_the_usual_time_counts_a_drift() -> None:
    assert variation(np.full(100, 0.15), usual=0.1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("wait", "setting"),
    [
        ("read", "--prefetch-buffer-size or data.num_workers"),
        ("extract", "pipeline.depth"),
        ("transfer", "pipeline.depth"),
        ("handover", "pipeline.depth"),
    ],
)
def test_variation_names_the_setting_of_the_wait_that_causes_it(wait: str, setting: str) -> None:
    seconds = noisy(every(2, 18))
    waits = dict.fromkeys(("read", "extract", "transfer", "handover"), 0 * seconds)
    alarm = step_time_variation(seconds, {**waits, wait: seconds - seconds.min()}, 0.3)
    assert alarm is not None
    assert (alarm.name, alarm.flag) == ("step-time-variation", setting)
    assert f"waiting for {wait}" in alarm.message


def test_variation_without_waits_points_at_shapes() -> None:
    waits = {"read": np.full(400, 0.001)}
    assert "--enable-static-shapes" in flag_of(step_time_variation(noisy(every(2, 18)), waits, 0.3))


def test_variation_within_its_limit_is_silent() -> None:
    seconds = noisy(1.0)
    assert step_time_variation(seconds, {}, 0.3) is None
    assert step_time_variation(seconds, {}, 0.05) is not None


def test_one_hiccup_is_no_variation_but_every_fiftieth_step_is() -> None:
    assert step_time_variation(noisy(every(400, 50)), {}, 0.3) is None
    assert step_time_variation(noisy(every(50, 10)), {}, 0.3) is not None


def test_steps_that_saved_or_compiled_do_not_count_as_variation() -> None:
    slow = every(50, 10)
    assert step_time_variation(noisy(slow), {}, 0.3, unusual=slow > 1) is None


# Oscillation


@pytest.mark.parametrize("factor", [1.3, 3, 18])
def test_alternating_steps_are_reported_with_period_two(factor: float) -> None:
    assert period_of(noisy(every(2, factor))) == pytest.approx(2, abs=0.01)


def test_ninety_five_alternation_is_found_in_a_hundred_steps() -> None:
    assert period_of(noisy(every(2, 18, 100), 100)) == pytest.approx(2, abs=0.01)


def test_a_refill_every_sixteen_steps_is_reported_with_period_sixteen() -> None:
    assert period_of(noisy(every(16, 3))) == 16


def test_a_checkpoint_every_hundred_steps_is_found_in_six_hundred() -> None:
    assert period_of(noisy(every(100, 10, 600), 600)) == 100


def test_a_sine_has_its_period_between_whole_steps() -> None:
    wave = 1 + 0.2 * np.sin(2 * np.pi * np.arange(400) / 7.3)
    assert period_of(noisy(wave)) == pytest.approx(7.3, abs=0.05)


@pytest.mark.parametrize("shape", ["half", "ramp", "two"])
def test_the_fundamental_is_reported_and_no_harmonic(shape: str) -> None:
    phase = np.arange(512) % 16
    shapes = {"half": phase < 8, "ramp": phase / 16, "two": (phase == 3) | (phase == 8)}
    assert period_of(noisy(1 + 0.8 * shapes[shape], 512)) == pytest.approx(16, abs=0.1)


def test_a_period_without_any_noise_is_found() -> None:
    assert period_of(0.1 * every(2, 2.0)) == pytest.approx(2)


def test_equal_or_few_or_broken_steps_have_no_period() -> None:
    assert find_period(np.full(400, 0.1), ALPHA) is None
    assert find_period(noisy(every(2, 18, 20), 20), ALPHA) is None
    assert find_period(np.full(400, np.nan), ALPHA) is None


def test_cost_is_the_share_of_time_that_slow_steps_add() -> None:
    period = find_period(noisy(every(16, 3)), ALPHA)
    assert period is not None
    assert period.cost == pytest.approx(2 / 18, abs=0.01)


NOISES: dict[str, Callable[[int], Floats]] = {
    "white": lambda seed: noisy(1.0, seed=seed),
    "AR(1) 0.5": lambda seed: 0.1 + 0.01 * ar(400, 0.5, seed),
    "AR(1) 0.9": lambda seed: 0.1 + 0.01 * ar(400, 0.9, seed),
    "AR(1) -0.8": lambda seed: 0.1 + 0.01 * ar(400, -0.8, seed),
    "lognormal": lambda seed: 0.1 * np.exp(white(400, seed)),
    "bursts": lambda seed: 0.1 * np.exp(0.7 * ar(400, 0.9, seed)),
    "outliers": lambda seed: noisy(np.where(white(400, seed + 1000) > 2, 10.0, 1.0), seed=seed),
}


@pytest.mark.parametrize("noise", NOISES)
def test_noise_without_a_period_keeps_the_stated_false_alarm_rate(noise: str) -> None:
    found = [find_period(NOISES[noise](seed), 0.05) is not None for seed in range(200)]
    # Ten are expected at most; 20 or more would come by chance once in 400 such tests.
    assert sum(found) < 20


@pytest.mark.parametrize(
    ("setting", "source"),
    [
        ("pipeline.depth", "refilling the buffer"),
        ("--prefetch-buffer-size", "refilling the buffer"),
        ("log_every", "writing the log"),
        ("save_every", "writing a checkpoint"),
        ("data.shard_clips", "opening the next shard"),
    ],
)
def test_a_known_period_names_its_setting_and_source(setting: str, source: str) -> None:
    alarm = oscillation(noisy(every(16, 3)), {"other": 40, setting: 16}, ALPHA)
    assert alarm is not None
    assert (alarm.name, alarm.flag) == ("oscillation", setting)
    assert "every 16 steps (1.79 s)" in alarm.message
    assert source in alarm.message


def test_alternation_of_unknown_source_is_stages_taking_turns() -> None:
    alarm = oscillation(noisy(every(2, 18)), {}, ALPHA)
    assert alarm is not None
    assert "taking turns" in alarm.message


def test_a_certain_but_cheap_period_is_left_in_peace() -> None:
    seconds = 0.1 * every(16, 1.1)
    assert find_period(seconds, ALPHA) is not None
    assert oscillation(seconds, {}, ALPHA) is None


# Memory growth


STEPS = np.arange(600, dtype=np.float64)


def leak(rate: float, noise: float, seed: int = 0) -> Floats:
    return 4000 * MB + rate * STEPS + noise * white(600, seed)


def test_theil_sen_forgets_outliers() -> None:
    line = 3 * np.arange(20, dtype=np.float64)
    line[[4, 11]] = 1e6
    assert theil_sen(line) == pytest.approx(3, rel=0.01)


def test_a_megabyte_a_step_is_found_under_two_hundred_of_noise() -> None:
    found = [find_growth(leak(MB, 200 * MB, seed), 1e-4) for seed in range(20)]
    rates = [growth.bytes_per_step for growth in found if growth]
    assert len(rates) >= 16
    assert np.median(rates) == pytest.approx(MB, rel=0.1)


def test_a_leak_under_a_sawtooth_is_found() -> None:
    tooth = 200 * MB * (STEPS % 23) / 23
    growth = find_growth(leak(MB, 20 * MB) + tooth, ALPHA)
    assert growth is not None
    assert growth.bytes_per_step == pytest.approx(MB, rel=0.1)


def test_a_leak_behind_a_warm_up_is_found() -> None:
    growth = find_growth(leak(MB, MB) - 5000 * MB * np.exp(-STEPS / 30), ALPHA)
    assert growth is not None
    assert growth.bytes_per_step == pytest.approx(MB, rel=0.1)


def test_growth_tells_the_hours_until_free_memory_is_gone() -> None:
    alarm = memory_growth(leak(MB, MB), "/GPU:1", ALPHA, 1, 0.36, 2000 * MB)
    assert alarm is not None
    assert alarm.name == "memory-growth"
    assert "memory of /GPU:1 grows by 1 MB a step" in alarm.message
    assert "the free 2 GB will be gone in 0.2 hours" in alarm.message


def test_growth_counts_steps_between_samples_and_names_the_host() -> None:
    alarm = memory_growth(leak(MB, MB), "", ALPHA, steps_per_sample=10)
    assert alarm is not None
    assert "memory of the host grows by 100 kB a step" in alarm.message
    assert alarm.flag == "pipeline.depth"


def test_a_leak_of_a_few_bytes_a_step_is_not_worth_an_alarm() -> None:
    assert memory_growth(leak(500, 1), "", ALPHA) is None


def test_a_hundred_thousand_samples_are_judged() -> None:
    long = 10_000.0 * np.arange(100_000) + 200 * MB * white(100_000)
    growth = find_growth(long, ALPHA)
    assert growth is not None
    assert growth.bytes_per_step == pytest.approx(10_000, rel=0.05)


STEADY: dict[str, Callable[[int], Floats]] = {
    "white": lambda seed: 200 * MB * white(600, seed),
    "AR(1) 0.9": lambda seed: 200 * MB * ar(600, 0.9, seed),
    "sawtooth of 23": lambda seed: 400 * MB * ((STEPS + seed) % 23) + MB * white(600, seed),
    "sawtooth of 200": lambda seed: 400 * MB * ((STEPS + seed) % 200) + MB * white(600, seed),
    "one step": lambda seed: 1000 * MB * (4 * seed < STEPS) + 20 * MB * white(600, seed),
    "warm-up": lambda seed: -5000 * MB * np.exp(-STEPS / 100) + 20 * MB * white(600, seed),
    "shrinking": lambda seed: leak(-MB, 20 * MB, seed),
}


@pytest.mark.parametrize("kind", STEADY)
def test_memory_without_a_leak_keeps_the_stated_false_alarm_rate(kind: str) -> None:
    found = [find_growth(STEADY[kind](seed), 0.05) is not None for seed in range(150)]
    # Seven or eight are expected at most; 17 would come by chance once in 500 such tests.
    assert sum(found) < 17


def test_a_trace_after_step_one_names_the_program() -> None:
    alarm = retrace({"step": 1, "extract": 2}, {"step": 5, "extract": 2}, allowed=2)
    assert alarm is not None
    assert alarm.name == "retrace"
    assert "program step was traced 5 times, up from 1" in alarm.message
    assert "--enable-static-shapes" in alarm.flag


def test_one_trace_for_every_bucket_is_allowed() -> None:
    assert retrace({"step": 1}, {"step": 4}, allowed=4) is None
    assert retrace({"step": 6}, {"step": 6}, allowed=4) is None


LIMITS = AlarmLimits(0.3, 50, {"save_every": 16})


def fed(watch: AlarmWatch, records: Iterable[StepRecord]) -> list[tuple[int, str]]:
    return [(record.step, alarm.name) for record in records for alarm in watch.feed(record)]


def timed(seconds: Floats, first: int = 1) -> list[StepRecord]:
    return [StepRecord(step, time) for step, time in enumerate(seconds.tolist(), first)]


def test_a_quiet_run_raises_nothing() -> None:
    records = [
        StepRecord(step, time, {"read": 0.001}, {"": 1000}, {"": 9}, {"step": 1})
        for step, time in enumerate(noisy(1.0, 1000).tolist(), start=1)
    ]
    assert fed(AlarmWatch(LIMITS), records) == []


def test_a_lasting_fault_is_told_once() -> None:
    told = fed(AlarmWatch(LIMITS), timed(noisy(every(16, 3, 1000), 1000)))
    assert sorted(name for _, name in told) == ["oscillation", "step-time-variation"]


def test_a_fault_that_cleared_and_returned_is_told_again() -> None:
    uneven, even = noisy(every(2, 5, 300), 300), noisy(1.0, 800)
    told = fed(AlarmWatch(LIMITS), timed(np.concatenate([uneven, even, uneven])))
    steps = [step for step, name in told if name == "step-time-variation"]
    assert len(steps) == 2
    assert steps[0] <= 100
    assert steps[1] > 1100


def test_the_watch_looks_only_at_log_steps() -> None:
    told = fed(AlarmWatch(LIMITS), timed(noisy(every(2, 18, 500), 500)))
    assert told
    assert {step % 50 for step, _ in told} == {0}


def test_a_slow_drift_is_told_against_the_best_pace() -> None:
    told = fed(AlarmWatch(LIMITS), timed(noisy(1 + np.arange(1000) / 1000, 1000)))
    assert [name for _, name in told] == ["step-time-variation"]


def test_the_watch_finds_a_leak_on_its_device_between_sparse_samples() -> None:
    records = [
        StepRecord(step, 0.36, memory={"/GPU:1": int(MB * step)}, free={"/GPU:1": int(2000 * MB)})
        if step % 5 == 0
        else StepRecord(step, 0.36)
        for step in range(1, 1201)
    ]
    watch = AlarmWatch(LIMITS)
    alarms = [alarm for record in records for alarm in watch.feed(record)]
    assert [alarm.name for alarm in alarms] == ["memory-growth"]
    assert "/GPU:1 grows by 1 MB a step" in alarms[0].message
    assert "gone in 0.2 hours" in alarms[0].message


def test_memory_that_rises_with_each_trace_is_a_retrace_and_no_leak() -> None:
    traces = [1 + step // 100 for step in range(1000)]
    records = [
        StepRecord(step, 0.1, memory={"/GPU:1": int(100 * MB * count)}, traces={"step": count})
        for step, count in enumerate(traces, start=1)
    ]
    assert {name for _, name in fed(AlarmWatch(LIMITS), records)} == {"retrace"}
    untold = [StepRecord(each.step, 0.1, memory=each.memory) for each in records]
    assert {name for _, name in fed(AlarmWatch(LIMITS), untold)} == {"memory-growth"}


def test_retraces_are_told_once_and_again_after_standing_still() -> None:
    counts = [1] * 100 + [2] * 300 + [3] * 100
    records = [StepRecord(step, 0.1, traces={"step": n}) for step, n in enumerate(counts, 1)]
    assert fed(AlarmWatch(LIMITS), records) == [(150, "retrace"), (450, "retrace")]


def test_late_results_and_counts_of_other_steps_are_looked_at_by_the_next_log_line() -> None:
    watch = AlarmWatch(AlarmLimits(0.3, 50, results_lag=2))
    traces = {1: {"step": 1}, 40: {"step": 2}}
    records = [StepRecord(step, 0.1, traces=traces.get(step, {})) for step in range(1, 101)]
    assert fed(watch, records) == [(48, "retrace")]


def test_the_watch_marks_unusual_steps() -> None:
    slow = every(16, 4, 300)
    records = [
        StepRecord(step, 0.1 * factor, unusual=factor > 1)
        for step, factor in enumerate(slow.tolist(), start=1)
    ]
    assert "step-time-variation" not in [name for _, name in fed(AlarmWatch(LIMITS), records)]


def test_the_looks_of_an_endless_run_spend_no_more_than_the_stated_rate() -> None:
    spent: list[float] = []

    class Spy(AlarmWatch):
        def _spend(self, key: str, step: int, window: int) -> float:
            spent.append(super()._spend(key, step, window))
            return spent[-1]

    fed(Spy(LIMITS), timed(noisy(1.0, 20_000)))
    assert len([share for share in spent if share]) > 100
    assert sum(spent) < LIMITS.false_alarms
