"""The ring: order, bounds, endings and errors."""

import gc
import itertools
import threading
import time
import traceback
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.pipeline import ConsumerDiedError, ProducerDiedError, RunAhead, run_ahead

PAUSES = st.lists(st.sampled_from([0.0, 0.0, 0.0005, 0.002]), min_size=1, max_size=8)


def pipeline_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name in ("producer", "results")]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    gc.collect()
    assert pipeline_threads() == []


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(0, 30),
    depth=st.integers(1, 5),
    producer_pauses=PAUSES,
    consumer_pauses=PAUSES,
)
def test_items_arrive_in_order_none_lost_none_twice(
    count: int, depth: int, producer_pauses: list[float], consumer_pauses: list[float]
) -> None:
    def paused(items: Iterator[int], pauses: list[float]) -> Iterator[int]:
        for item, pause in zip(items, itertools.cycle(pauses), strict=False):
            time.sleep(pause)
            yield item

    with run_ahead(paused(iter(range(count)), producer_pauses), depth) as ahead:
        assert list(paused(ahead, consumer_pauses)) == list(range(count))


@settings(max_examples=30, deadline=None)
@given(depth=st.integers(1, 5), taken=st.integers(0, 8))
def test_the_producer_never_makes_more_than_depth_ahead(depth: int, taken: int) -> None:
    made = []

    def items() -> Iterator[int]:
        for number in itertools.count():
            made.append(number)
            yield number

    with run_ahead(items(), depth) as ahead:
        for _ in range(taken):
            next(ahead)
        assert ahead.fill(10)
    assert taken <= len(made) <= taken + depth


def test_a_full_ring_holds_depth_finished_items() -> None:
    with run_ahead(itertools.count(), depth=3) as ahead:
        assert ahead.fill(10)
        assert ahead.waiting == 3


def test_producer_error_reaches_the_consumer() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("clip 7 is broken")

    ahead = run_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="clip 7 is broken") as caught:
        next(ahead)
    assert "in items" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_an_error_is_raised_again_and_never_becomes_a_quiet_end() -> None:
    def items() -> Iterator[int]:
        raise OSError("disk gone")
        yield 0

    ahead = run_ahead(items())
    for _ in range(2):
        with pytest.raises(OSError, match="disk gone"):
            next(ahead)


def test_items_made_before_an_error_still_arrive() -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise ValueError("after three")

    with run_ahead(items(), depth=5) as ahead:
        assert list(itertools.islice(ahead, 3)) == [0, 1, 2]
        with pytest.raises(ValueError, match="after three"):
            next(ahead)


def test_does_not_hang_after_the_end() -> None:
    ahead = run_ahead(range(2))
    assert list(ahead) == [0, 1]
    assert list(ahead) == []


def test_leaving_the_with_block_stops_an_endless_producer() -> None:
    with run_ahead(itertools.count(), depth=2) as ahead:
        assert next(ahead) == 0
    assert pipeline_threads() == []


def test_a_forgotten_consumer_stops_the_producer_within_a_second() -> None:
    ahead = run_ahead(itertools.count())
    next(ahead)
    (thread,) = pipeline_threads()
    del ahead
    gc.collect()
    thread.join(1.0)
    assert not thread.is_alive()


def test_a_dead_consumer_thread_stops_the_producer_within_a_second() -> None:
    held: list[RunAhead[int]] = []

    def consume() -> None:
        held.append(run_ahead(itertools.count()))
        next(held[0])

    consumer = threading.Thread(target=consume)
    consumer.start()
    consumer.join()
    for thread in pipeline_threads():  # It may be gone already.
        thread.join(1.0)
    assert pipeline_threads() == []


def test_the_source_is_closed_in_the_thread_that_ran_it() -> None:
    closed_in = []

    def items() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed_in.append(threading.current_thread().name)

    with run_ahead(items()) as ahead:
        next(ahead)
    assert closed_in == ["producer"]


def test_a_killed_producer_is_an_error_and_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("myxtts.pipeline.ring._produce", lambda *_: None)
    with pytest.raises(ProducerDiedError, match="killed"):
        next(run_ahead(range(3)))


def test_a_dropped_ring_lets_go_of_its_items() -> None:
    class Item:
        alive = 0

        def __init__(self) -> None:
            Item.alive += 1

        def __del__(self) -> None:
            Item.alive -= 1

    with run_ahead((Item() for _ in itertools.count()), depth=4) as ahead:
        assert ahead.fill(10)
        assert Item.alive >= 4
    gc.collect()
    assert Item.alive == 0


def test_a_ring_without_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one slot"):
        run_ahead(range(3), depth=0)


def test_rings_can_follow_one_another() -> None:
    doubled = (2 * item for item in run_ahead(range(20), depth=2))
    with run_ahead(doubled, depth=3) as ahead:
        assert list(ahead) == [2 * item for item in range(20)]


def test_items_left_by_a_dead_consumer_end_in_an_error_and_not_in_silence() -> None:
    ahead = run_ahead(range(10), 2)
    consumer = threading.Thread(target=lambda: next(ahead))
    consumer.start()
    consumer.join()
    with pytest.raises(ConsumerDiedError):  # noqa: PT012
        time.sleep(0.6)  # Longer than the producer's look at its consumer.
        list(ahead)


def test_closing_twice_is_closing_once() -> None:
    ahead = run_ahead(itertools.count())
    ahead.close()
    ahead.close()
    assert pipeline_threads() == []
