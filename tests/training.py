"""A corpus and a network small enough to train whole stages in seconds."""

from pathlib import Path
from typing import Any

from clips import save, speech

from myxtts.config import Config, load_config
from myxtts.devices import DevicePlan
from myxtts.train import train
from myxtts.train.resume import GoingOn

WORDS = ("red", "green", "blue", "seven", "house", "tree")
TINY = {
    "model.gpt.layers": 2,
    "model.gpt.width": 32,
    "model.gpt.heads": 2,
    "model.gpt.audio_tokens": 34,
    "model.codec.codes": 32,
    "model.codec.code_width": 8,
    "model.codec.width": 16,
    "model.codec.residual_blocks": 1,
    "model.vocoder.width": 16,
    "model.vocoder.upsample_rates": (16, 16),
    "model.vocoder.upsample_kernels": (32, 32),
    "model.vocoder.residual_kernels": (3,),
    "model.vocoder.residual_dilations": (1,),
    "model.discriminator.periods": (3,),
    "model.discriminator.period_width": 2,
    "model.discriminator.scales": 1,
    "model.discriminator.scale_width": 4,
    "model.discriminator.scale_groups": 2,
    "model.speaker.width": 8,
    "model.speaker.filters": (8, 8, 8, 8),
    "model.speaker.blocks": (1, 1, 1, 1),
    "data.language": "en",
    "data.batch_size": 4,
    "data.buckets": 2,
    "data.validation_share": 0.1,
    "data.num_workers": 2,
    "training.compile": "graph",
    "training.warmup_steps": 2,
    "training.log_every": 2,
    "training.save_every": 5,
    "training.validate_every": 5,
    "training.pictures_every": 5,
    "pipeline.model_start_delay": 0.0,
    "stages.dvae.steps": 10,
    "stages.dvae.plain_steps": 3,
    "stages.dvae.revive_every": 2,
    "stages.dvae.crop_frames": 32,
    "stages.gpt.steps": 10,
    "stages.vocoder.steps": 10,
    "stages.vocoder.window": 8,
}


def corpus(root: Path, clips: int = 30, words: tuple[str, ...] = WORDS) -> Path:
    """An LJSpeech folder of tones with words, 0.6 to 1.2 s each."""
    lines = []
    for number in range(clips):
        save(root / "wavs" / f"c{number:03d}.wav", speech(0.6 + number % 4 * 0.2, number))
        text = " ".join(words[(number + k) % len(words)] for k in range(2 + number % 2))
        lines.append(f"c{number:03d}|{text}|{text}\n")
    (root / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    return root


def config_for(data: Path, **flags: Any) -> Config:
    given = {**TINY, "data.train": str(data), "telemetry.runs": str(data.parent / "runs")}
    return load_config(flags=given | flags)


def trained(
    config: Config, plan: DevicePlan, going_on: Path | None = None, said: list[str] | None = None
) -> Path:
    """The run's folder."""
    resumed = GoingOn(going_on) if going_on else None
    return train(config, plan, resumed, (said if said is not None else []).append)
