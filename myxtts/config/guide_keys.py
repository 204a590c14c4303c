"""What the guides call things: keys refused with their replacement, and the train flags."""

from collections.abc import Mapping
from typing import NamedTuple


class Refusal(NamedTuple):
    """Why a key of the guides is not read, and the line that does its work."""

    reason: str
    section: str
    line: str  # `{value}` stands for what the file gave to the refused key.

    def sentence(self, value: str) -> str:
        """The whole answer, on one line."""
        if not self.section:
            return f"{self.reason}; {self.line}"
        return f"{self.reason}; write `{self.line.format(value=value)}` under `{self.section}:`"


_AHEAD = "batches always run ahead of the model device"
_COMPILED = "every step is a compiled graph"
_ROLE = "GPU roles stand under devices"

GUIDE_KEYS: Mapping[str, Refusal] = {
    "data.enhanced_gpu_prefetch": Refusal(_AHEAD, "pipeline", "depth: 3"),
    "data.optimize_cpu_gpu_overlap": Refusal(_AHEAD, "pipeline", "depth: 3"),
    "data.data_gpu": Refusal(_ROLE, "devices", "data_gpu: {value}"),
    "data.model_gpu": Refusal(_ROLE, "devices", "model_gpu: {value}"),
    "training.enable_graph_mode": Refusal(_COMPILED, "training", "compile: graph"),
    "training.enable_xla_compilation": Refusal(
        "one key chooses the compiler: xla, graph or auto", "training", "compile: auto"
    ),
    "training.enable_eager_debug": Refusal(
        f"{_COMPILED}, there is no eager loop", "training", "compile: graph"
    ),
    # The guides' flags, where someone writes them down as keys.
    "data.train_data": Refusal("the key is called train", "data", "train: {value}"),
    "data.val_data": Refusal("the key is called val", "data", "val: {value}"),
    "data.model_start_delay": Refusal(
        "running ahead has its own section", "pipeline", "model_start_delay: {value}"
    ),
    "data.enable_static_shapes": Refusal(
        "batches always come in a few fixed shapes", "", "delete the line"
    ),
    "devices.enable_memory_isolation": Refusal(
        "the key is called memory_isolation", "devices", "memory_isolation: {value}"
    ),
    "training.grad_accum": Refusal(
        "the key is called gradient_accumulation_steps",
        "training",
        "gradient_accumulation_steps: {value}",
    ),
    "training.optimization_level": Refusal(
        "`enhanced` means recomputing activations", "training", "recompute: true"
    ),
    "model.model_size": Refusal("the key is called size", "model", "size: {value}"),
}

# The flag of `myxtts train`, or of `prepare`, that sets a key. Flags that set none:
# --enable-static-shapes (always so). --optimization-level takes a word, of which `enhanced` sets
# the key here to true.
FLAGS: Mapping[str, str] = {
    "data.train": "--train-data",
    "data.val": "--val-data",
    "data.format": "--format",
    "data.language": "--language",
    "data.batch_size": "--batch-size",
    "data.num_workers": "--num-workers",
    "data.prefetch_buffer_size": "--prefetch-buffer-size",
    "data.buffer_size": "--buffer-size",
    "devices.arrangement": "--arrangement",
    "devices.data_gpu": "--data-gpu",
    "devices.model_gpu": "--model-gpu",
    "devices.emulate": "--emulate",
    "devices.memory_isolation": "--enable-memory-isolation",
    "devices.data_gpu_memory": "--data-gpu-memory",
    "devices.model_gpu_memory": "--model-gpu-memory",
    "pipeline.model_start_delay": "--model-start-delay",
    "model.size": "--model-size",
    "training.epochs": "--epochs",
    "training.max_steps": "--max-steps",
    "training.gradient_accumulation_steps": "--grad-accum",
    "training.mixed_precision": "--mixed-precision",
    "training.recompute": "--optimization-level",
    "preset": "--preset",
}
