"""Every setting with its one default, its unit and its limits."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo

from myxtts.config.augment import AugmentConfig
from myxtts.config.base import (
    LARGEST,
    ConflictError,
    Count,
    Folder,
    GpuIndices,
    Language,
    MemoryLimit,
    Patterns,
    PlugIn,
    Settings,
)
from myxtts.config.court import CourtConfig
from myxtts.config.model import ModelConfig
from myxtts.config.stages import StagesConfig


class DataConfig(Settings):
    """Clips on disk and the batches made of them."""

    train: Folder | None = None
    """Folder or list of the clips to learn from."""
    val: Folder | None = None
    """Folder or list of the clips that only judge."""
    format: Literal["ljspeech", "vctk", "commonvoice", "table", "folder"] | None = None
    """How the data folder is laid out; left out, `prepare` finds it out and says so."""
    language: Language | None = None
    """Language of clips whose list has no column for it, such as en or fa."""
    shard_mb: int = Field(default=1024, ge=1, le=65536)
    """Size of one file of prepared sound; a few large ones read fastest."""
    batch_size: Count = 16
    """Clips in one step of each model device."""
    frames_per_batch: Count | None = None
    """Mel frames in one step of each model device, padding included; takes batch_size's place."""
    buckets: Count = 6
    """Lengths, at most, that clips are padded to; each one is compiled once."""
    validation_share: float = Field(default=0.02, ge=0, lt=1)
    """Share of the training clips that only judge, picked by their ids; unused with val."""
    replay: Folder | None = None
    """Folder or list of clips in a model's old languages, mixed in so that it keeps them."""
    replay_share: float = Field(default=0.3, gt=0, lt=1)
    """Share of an epoch's clips that come from replay."""
    replay_language: Language | None = None
    """Language of replayed clips whose list has no column for it."""
    num_workers: Count = 16
    """Host threads that read and decode clips."""
    prefetch_buffer_size: Count = 16
    """Batches read ahead into host memory."""
    buffer_size: Count = 50
    """Clips of raw sound kept ready for the data device; half of them lie on it already."""
    prefetch_to_gpu: bool = True
    """Copies clips to the data device before it asks for them."""
    use_tf_native_loading: bool = False
    """Reads an unprepared folder of 16-bit WAV as it is; without it, prepared shards are read."""
    cache: Folder | None = None
    """Folder that keeps clips' codes for other runs too; left out, the run's own has them."""
    augment: AugmentConfig = AugmentConfig()
    """Random changes to clips."""
    court: CourtConfig = CourtConfig()
    """Which clips are refused."""


class TextConfig(Settings):
    """How a transcript becomes the text that is learnt and spoken."""

    vocabulary: Folder | None = None
    """The tokenizer's vocab.json; left out, training from nothing makes one of its texts."""
    vocabulary_size: Count = 2000
    """Tokens, at most, of a vocabulary that training makes."""
    new_tokens: int = Field(default=0, ge=0, le=LARGEST)
    """Tokens, at most, to add to the vocabulary that a run starts from; 2000 for a language."""
    join_suffixes: bool = True
    """Persian: parts of a word written apart (کتاب ها, می روم) are joined by a half-space."""
    spell_latin: Literal["none", "capitals", "all"] = "none"
    """Persian: the Latin words that are spelled out, letter by letter."""
    plug_in: PlugIn | None = None
    """Your own function of (text, language) that adds vowels or writes phonemes."""


class DevicesConfig(Settings):
    """Which GPU does what, by the numbers that nvidia-smi shows."""

    # Nothing is said here about negative or absent GPUs: `devices` knows the
    # machine, and so names the command that would work on it.
    arrangement: Literal["single", "split", "cached", "parallel", "hybrid"] | None = None
    """Who prepares and who learns (docs/arrangements.md); left out, two roles given mean split."""
    data_gpu: GpuIndices | None = None
    """GPU that prepares batches, or several (0,1), which take turns."""
    model_gpu: GpuIndices | None = None
    """GPU that learns, or several (1,2,3), each with a copy of the model."""
    emulate: Annotated[int, Field(ge=1, le=256)] | None = None
    """CPU devices that stand for GPUs, so that a machine without any runs the same code."""
    memory_isolation: bool = False
    """Caps each role's GPU memory at the two limits below."""
    data_gpu_memory: MemoryLimit = 8192
    """Cap in MB for the data GPU, or auto; holds only with memory_isolation."""
    model_gpu_memory: MemoryLimit = 16384
    """Cap in MB for each model GPU, or auto; holds only with memory_isolation."""


class PipelineConfig(Settings):
    """How far the data device may run ahead of the model device."""

    depth: int = Field(default=3, ge=1, le=1024)
    """Finished batches that may wait on the data device; one more waits on the model device."""
    model_start_delay: float = Field(default=2.0, ge=0, le=86400)
    """Seconds the first step waits while the queue fills."""


class TrainingConfig(Settings):
    """How long and how fast the network learns."""

    start_from: Folder | None = None
    """Model folder to go on from: an import of XTTS-v2, or an earlier training's."""
    freeze: Patterns = ()
    """Weights that stay as start_from has them, by names with * and ?."""
    lora_rank: int = Field(default=0, ge=0, le=1024)
    """Width of the GPT's adapters, which then learn alone; 0 makes none and all weights learn."""
    lora_scale: float = Field(default=1.0, gt=0, le=1000)
    """What the adapters' results are multiplied by."""
    epochs: Count = 100
    """Passes over the training clips."""
    max_steps: Count | None = None
    """Steps after which a run ends even inside an epoch."""
    stage: Literal["dvae", "gpt", "vocoder"] | None = None
    """Stage to train; left out, those that are missing, in their order."""
    lr: Annotated[float, Field(gt=0, le=1)] | None = None
    """AdamW's highest learning rate, per step; left out, the stage's own."""
    schedule: Literal["cosine", "steps", "constant"] = "cosine"
    """How the learning rate falls after the warm-up; steps halves it three times."""
    warmup_steps: int = Field(default=100, ge=0, le=LARGEST)
    """Updates in which the learning rate rises to its highest."""
    lowest_lr_share: float = Field(default=0.05, ge=0, le=1)
    """Share of the highest learning rate that a cosine ends at."""
    weight_decay: float = Field(default=0.01, ge=0, le=1)
    """AdamW's decay of weights; biases, norms and embeddings have none."""
    clip_norm: float = Field(default=1.0, ge=0, le=1e6)
    """Length to which longer gradients are cut; 0 cuts none."""
    ema: float = Field(default=0.0, ge=0, lt=1)
    """Share of the old value in a moving average of the weights, which speaks; 0 keeps none."""
    gradient_accumulation_steps: Count = 1
    """Batches whose gradients are averaged into one update."""
    mixed_precision: bool = False
    """Computes in 16 bits and keeps the weights in 32."""
    compile: Literal["auto", "graph", "xla"] = "auto"
    """How the step is compiled; auto times graph mode and XLA and takes the faster."""
    oom: Literal["stop", "shrink"] = "stop"
    """Without room on a model device: end and say what holds it, or learn batches in pieces."""
    recompute: bool = False
    """Computes activations again in the backward pass: less memory, slower steps."""
    log_every: Count = 10
    """Steps from one log line to the next."""
    save_every: Count = 500
    """Steps from one checkpoint to the next; the last step is always saved."""
    keep: Count = 3
    """Newest checkpoints that stay; the best one stays besides."""
    validate_every: Count = 500
    """Steps from one judging of held-out clips to the next; the last step is always judged."""
    pictures_every: int = Field(default=500, ge=0, le=LARGEST)
    """Steps from one look at mels in TensorBoard to the next; 0 makes none."""
    validation_batches: Count = 16
    """Batches, at most, of held-out clips that each judging takes."""
    seed: int = Field(default=0, ge=0, le=LARGEST)
    """Start of every random number: weights, order, slices, dropout."""

    @model_validator(mode="after")
    def _beside_a_model(self) -> Self:
        for key in ("freeze", "lora_rank"):
            if getattr(self, key) and self.start_from is None:
                raise ConflictError(
                    f"{key} needs a model to stay as it is",
                    "name its folder: start_from, or --start-from FOLDER",
                    key,
                )
        if self.lora_rank and self.stage not in (None, "gpt"):
            raise ConflictError(
                f"the stage {self.stage} has no adapters",
                "leave lora_rank out, or write stage: gpt",
                "lora_rank",
                "stage",
            )
        return self


class TelemetryConfig(Settings):
    """What a run writes about itself, and when it raises an alarm."""

    runs: Folder = Path("runs")
    """Folder that holds one folder for each run."""
    results_lag: int = Field(default=2, ge=0, le=1024)
    """Steps after which a step's results are read, so that reading does not stop the device."""
    step_variation_limit: float = Field(default=0.30, gt=0, le=100)
    """Spread of the step time, as a share of the usual step, above which an alarm is raised."""
    false_alarm_rate: float = Field(default=1e-3, gt=0, lt=1)
    """Share of healthy runs in which the tests for oscillation and for leaks may each cry wolf."""


class Config(Settings):
    """All of it; every part of the program receives only its own section."""

    data: DataConfig = DataConfig()
    """Clips and batches."""
    text: TextConfig = TextConfig()
    """Cleaning and tokens."""
    devices: DevicesConfig = DevicesConfig()
    """GPUs and their roles."""
    pipeline: PipelineConfig = PipelineConfig()
    """Running ahead."""
    model: ModelConfig = ModelConfig()
    """The network."""
    training: TrainingConfig = TrainingConfig()
    """The loop."""
    stages: StagesConfig = StagesConfig()
    """What each stage has of its own."""
    telemetry: TelemetryConfig = TelemetryConfig()
    """Logs and alarms."""


def section_of(field: FieldInfo) -> type[Settings] | None:
    """The settings class behind a field that is a section, None for a single value."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Settings) else None


def leaves(kind: type[Settings] = Config, prefix: str = "") -> dict[str, FieldInfo]:
    """Every single setting by its dotted name, in the order written above."""
    found: dict[str, FieldInfo] = {}
    for name, field in kind.model_fields.items():
        section = section_of(field)
        found |= leaves(section, f"{prefix}{name}.") if section else {prefix + name: field}
    return found


def sections(kind: type[Settings] = Config, prefix: str = "") -> dict[str, type[Settings]]:
    """Every section by its dotted name."""
    found: dict[str, type[Settings]] = {}
    for name, field in kind.model_fields.items():
        if section := section_of(field):
            found |= {prefix + name: section} | sections(section, f"{prefix}{name}.")
    return found
