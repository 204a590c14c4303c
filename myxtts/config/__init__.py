"""Validated, frozen settings, and their YAML. Imports nothing of ours but the errors."""

from myxtts.config.augment import AugmentConfig
from myxtts.config.base import Settings
from myxtts.config.court import CourtConfig
from myxtts.config.guide_keys import FLAGS, GUIDE_KEYS
from myxtts.config.load import differences, json_schema, load_config, to_yaml
from myxtts.config.model import (
    CodecConfig,
    DiscriminatorConfig,
    GptConfig,
    ModelConfig,
    SpeakerConfig,
    VocoderConfig,
)
from myxtts.config.presets import PRESETS, SIZES
from myxtts.config.problems import ConfigError
from myxtts.config.settings import (
    Config,
    DataConfig,
    DevicesConfig,
    PipelineConfig,
    TelemetryConfig,
    TextConfig,
    TrainingConfig,
)
from myxtts.config.stages import (
    DvaeStageConfig,
    GptStageConfig,
    StagesConfig,
    VocoderStageConfig,
)

__all__ = [
    "FLAGS",
    "GUIDE_KEYS",
    "PRESETS",
    "SIZES",
    "AugmentConfig",
    "CodecConfig",
    "Config",
    "ConfigError",
    "CourtConfig",
    "DataConfig",
    "DevicesConfig",
    "DiscriminatorConfig",
    "DvaeStageConfig",
    "GptConfig",
    "GptStageConfig",
    "ModelConfig",
    "PipelineConfig",
    "Settings",
    "SpeakerConfig",
    "StagesConfig",
    "TelemetryConfig",
    "TextConfig",
    "TrainingConfig",
    "VocoderConfig",
    "VocoderStageConfig",
    "differences",
    "json_schema",
    "load_config",
    "to_yaml",
]
