"""A compiled function that lives on one device and refuses tensors of any other.

XLA does not honour placement inside one program, and a copy inside a step cannot
overlap with it, so no program spans devices: they meet only in `transfer`.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import tensorflow as tf

from myxtts.devices import silent_moves
from myxtts.errors import UserError

# Buckets are traced once each, and by design; a rise of the count is an alarm of our own.
tf.get_logger().addFilter(lambda record: "tf.function retracing" not in record.getMessage())


class WrongDeviceError(RuntimeError):
    """A program was given a tensor, or holds an operation, of another device."""


class NewShapeError(RuntimeError):
    """A program was given tensors of a shape that was not compiled before the first step."""


class OutOfMemoryError(UserError):
    """A device has no room for what a program needs."""

    exit_code = 1

    def __init__(self, program: str, device: str, message: str) -> None:
        self.device = device
        super().__init__(
            f"out of memory on {device} in program {program}: {message.splitlines()[0]}",
            "a smaller batch: --batch-size 8\n"
            "fewer batches waiting: pipeline.depth=1\n"
            "more room, where memory is capped: --model-gpu-memory, --data-gpu-memory",
        )


class Program:
    """The only maker of a `tf.function`: one device, one trace for each shape."""

    def __init__(
        self, function: Callable[..., Any], device: str, *, jit: bool = False, name: str = ""
    ) -> None:
        self.device = device
        self.name = name or function.__name__
        self._body = function
        self._closed = False
        # A variable's handle lies in host memory, which the explicit policy takes for another
        # device when XLA compiles. Arguments and captures are checked here in either case.
        self._moves = silent_moves if jit else nullcontext
        # A partial, because TensorFlow counts retraces by a method's code: all programs would
        # share one count, and their first traces would look like a fault.
        self._function = tf.function(partial(self._trace), autograph=False, jit_compile=jit)

    def __call__(self, *arguments: Any) -> Any:
        """Runs on the program's device; the results stay there."""
        self._check_arguments(arguments)
        # Around the call, not in the body: a function hands its results back on the
        # caller's device, whatever tf.device says inside it.
        with tf.device(self.device), self._moves():
            try:
                return self._function(*arguments)
            except tf.errors.ResourceExhaustedError as error:
                raise OutOfMemoryError(self.name, self.device, error.message) from error

    def close(self, *, closed: bool = True) -> None:
        """From now on a shape that was not met before is an error, not a long compile."""
        self._closed = closed

    @property
    def traces(self) -> int:
        """How many times the body has been traced: once for each new shape."""
        return int(self._function.experimental_get_tracing_count())

    def _trace(self, *arguments: Any) -> Any:
        if self._closed:
            shapes = ", ".join(str(t.shape) for t in tf.nest.flatten(arguments) if tf.is_tensor(t))
            raise NewShapeError(f"program {self.name} was not compiled for {shapes}")
        results = self._body(*arguments)
        graph = tf.compat.v1.get_default_graph()
        self._check_graph(graph.as_graph_def())
        self._check_captures(graph)
        return results

    def _check_arguments(self, arguments: tuple[Any, ...]) -> None:
        for tensor in tf.nest.flatten(arguments):
            if tf.is_tensor(tensor) and not is_on(tensor, self.device):
                raise WrongDeviceError(
                    f"program {self.name} runs on {self.device} and was given a tensor "
                    f"{tensor.dtype.name}{list(tensor.shape)} on {tensor.device}: transfer it first"
                )

    def _check_captures(self, graph: Any) -> None:
        """A variable or a constant from outside would be read across devices at every call."""
        for outer, _inner in graph.captures:
            if not is_on(outer, self.device):
                raise WrongDeviceError(
                    f"program {self.name} runs on {self.device} and reads a {outer.dtype.name} "
                    f"that lies on {outer.device}"
                )

    def _check_graph(self, graph: Any) -> None:
        nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
        for node in nodes:
            if node.device and not _same_device(node.device, self.device):
                raise WrongDeviceError(
                    f"program {self.name} runs on {self.device}, "
                    f"and its operation {node.name} asks for {node.device}"
                )


def is_on(tensor: tf.Tensor, device: str) -> bool:
    """Whether an eager tensor lies on the device; int32 lies in host memory beside a GPU."""
    if "GPU" in device and tensor.dtype == tf.int32:
        return True
    return _same_device(tensor.device, device)


def _same_device(full: str, device: str) -> bool:
    """Whether "/job:localhost/replica:0/task:0/device:CPU:1" is "/CPU:1"."""
    return full.rpartition("device:")[2] == device.removeprefix("/")
