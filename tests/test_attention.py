"""Attention in blocks: the plain form's numbers, its own dropout's, and no square of the length."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from myxtts.gpt.block import Block
from myxtts.layers import Dropout, attend
from myxtts.layers import blocks as in_blocks
from myxtts.layers.attention import Form, _is_large
from myxtts.pipeline import Program

DEVICE = "/CPU:1"
COMPILERS = pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
BATCH, HEADS, WIDTH, BLOCK = 2, 3, 8, 16

Case = tuple[int, int, bool, bool]
"""Queries, keys, whether causal, whether padded."""
CASES: list[Case] = [
    (48, 48, True, False),
    (37, 37, True, True),
    (5, 5, True, True),
    (37, 37, False, False),
    (32, 45, False, True),
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_blocks, "BLOCK", BLOCK)


def given(queries: int, keys: int, dtype: tf.DType = tf.float32) -> list[tf.Tensor]:
    """Queries, keys, values, and what the result's errors are."""
    random = np.random.default_rng(0)
    lengths = (queries, keys, keys, queries)
    with tf.device(DEVICE):
        return [
            tf.constant(random.normal(size=(BATCH, HEADS, length, WIDTH)), dtype)
            for length in lengths
        ]


def learn(case: Case, form: Form, tensors: list[tf.Tensor], key: Any = None) -> list[tf.Tensor]:
    """The result, and the gradients of queries, keys and values."""
    _, keys, causal, padded = case
    seen_BS = tf.range(keys) < tf.constant([[keys], [keys * 2 // 3]]) if padded else None
    *inputs, error = tensors
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        drop = None if key is None else Dropout(0.3, key)
        heard = attend(*inputs, seen_BS=seen_BS, causal=causal, dropout=drop, form=form)
        sum_ = tf.reduce_sum(tf.cast(heard, tf.float32) * tf.cast(error, tf.float32))
    return [heard, *tape.gradient(sum_, inputs)]


def distances(ours: list[tf.Tensor], theirs: list[tf.Tensor]) -> Iterator[float]:
    for our, their in zip(ours, theirs, strict=True):
        numbers = tf.cast(their, tf.float32).numpy()
        difference = tf.cast(our, tf.float32).numpy() - numbers
        yield float(np.abs(difference).max() / np.abs(numbers).max())


@COMPILERS
def test_blocks_give_the_plain_forms_result_and_gradients(jit: bool) -> None:
    def everything(tensors: list[list[tf.Tensor]]) -> Any:
        return [
            [learn(case, form, each) for form in ("blocks", "plain")]
            for case, each in zip(CASES, tensors, strict=True)
        ]

    tensors = [given(queries, keys) for queries, keys, *_ in CASES]
    found = Program(everything, DEVICE, jit=jit)(tensors)
    for case, (ours, theirs) in zip(CASES, found, strict=True):
        assert max(distances(ours, theirs)) < 1e-5, case


@COMPILERS
@pytest.mark.parametrize(("dtype", "within"), [(tf.bfloat16, 0.03), (tf.float16, 0.004)])
def test_blocks_in_half_precision_stay_close(jit: bool, dtype: tf.DType, within: float) -> None:
    case = CASES[1]
    exact = given(*case[:2])
    program = Program(lambda t: learn(case, "blocks", t), DEVICE, jit=jit)
    ours = program(given(*case[:2], dtype))
    assert {x.dtype for x in ours} == {dtype}
    assert max(distances(ours, learn(case, "plain", exact))) < within


@COMPILERS
def test_blocks_serve_lengths_unknown_when_traced(jit: bool) -> None:
    specs = [tf.TensorSpec([None, HEADS, None, WIDTH])] * 4
    case = CASES[1]

    def traced(*tensors: tf.Tensor) -> Any:
        outer = tf.function(lambda *t: learn(case, "auto", list(t)), input_signature=specs)
        return outer(*tensors)

    tensors = given(*case[:2])
    found = Program(traced, DEVICE, jit=jit)(*tensors)
    assert max(distances(found, learn(case, "plain", tensors))) < 1e-5


@COMPILERS
def test_the_gradient_is_that_of_the_weights_that_were_kept(jit: bool) -> None:
    case, step = CASES[1], 1e-2
    tensors, key = given(*case[:2]), tf.constant([1, 2])
    random = np.random.default_rng(1)
    ways = [tf.constant(random.normal(size=x.shape), tf.float32) for x in tensors[:3]]

    def slopes(tensors: list[tf.Tensor], ways: list[tf.Tensor], key: tf.Tensor) -> Any:
        _, *gradients = learn(case, "blocks", tensors, key)
        for place, (way, gradient) in enumerate(zip(ways, gradients, strict=True)):
            sums = []
            for sign in (step, -step):
                moved = [x + sign * way if n == place else x for n, x in enumerate(tensors)]
                sums.append(tf.reduce_sum(learn(case, "blocks", moved, key)[0] * tensors[3]))
            yield tf.reduce_sum(gradient * way), (sums[0] - sums[1]) / (2 * step)

    with tf.device(DEVICE):
        tensors, ways, key = ([tf.constant(x.numpy()) for x in t] for t in (tensors, ways, [key]))
    found = Program(lambda *t: list(slopes(*t)), DEVICE, jit=jit)(tensors, ways, key[0])
    for ours, differences in found:
        assert float(ours) == pytest.approx(float(differences), rel=2e-3, abs=2e-2)


def test_each_key_drops_its_own_weights_and_as_many_as_it_should() -> None:
    # All scores are alike and all values 1, so each result is the kept share of its keys.
    length = 64
    with tf.device(DEVICE):
        alike, ones = tf.zeros([4, 8, length, 2]), tf.ones([4, 8, length, 2])

        def share(key: list[int]) -> Any:
            drop = Dropout(0.3, tf.constant(key))
            return attend(alike, alike, ones, dropout=drop, form="blocks").numpy()

        first, again, other = (share(key) for key in ([1, 2], [1, 2], [1, 3]))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.mean() == pytest.approx(1, abs=0.01)
    # So many keys dropped alike and independently spread their mean so much.
    assert first.std() == pytest.approx((0.3 / 0.7 / length) ** 0.5, rel=0.1)


def test_long_or_unknown_lengths_go_in_blocks_and_the_perceiver_does_not() -> None:
    def large(queries: int | None, keys: int | None) -> bool:
        graph = tf.Graph()
        with graph.as_default():
            rows, columns = (
                tf.compat.v1.placeholder(tf.float32, [1, 1, length, 8])
                for length in (queries, keys)
            )
            return _is_large(rows, columns)

    assert large(1024, 1024)
    assert large(None, 100)
    assert large(100, None)
    assert not large(32, 4000)
    assert not large(1000, 1000)


@pytest.mark.parametrize("recompute", [False, True], ids=["kept", "recomputed"])
def test_no_tensor_of_a_training_step_has_the_length_twice(recompute: bool) -> None:
    squares = [square_tensors(form, recompute=recompute) for form in ("plain", "blocks")]
    assert squares[0]  # The search finds them where they are.
    assert squares[1] == []


def square_tensors(form: Form, *, recompute: bool) -> list[str]:
    """The operations of a block's step that give as many numbers as the length's square."""
    length, width = 112, 8
    with tf.device(DEVICE):
        block = Block(width, 1, 1, "block", recompute=recompute, form=form)
        block.build()

    def step(x_BSD: tf.Tensor, key: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x_BSD)
            heard = block(x_BSD, tf.ones([1, length], tf.bool), dropout=Dropout(0.1, key))
            loss = tf.reduce_sum(heard)
        return tape.gradient(loss, x_BSD)

    specs = [tf.TensorSpec([1, length, width]), tf.TensorSpec([2], tf.int32)]
    traced = tf.function(step, input_signature=specs).get_concrete_function()
    graph = traced.graph.as_graph_def(add_shapes=True)
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    shapes = [(n.name, shape) for n in nodes for shape in n.attr["_output_shapes"].list.shape]
    sizes = [(name, np.prod([axis.size for axis in shape.dim])) for name, shape in shapes]
    assert len(sizes) > 200  # Those in the loops' bodies too.
    return [name for name, size in sizes if size >= length**2]
