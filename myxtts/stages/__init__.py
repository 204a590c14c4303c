"""What dvae, gpt and vocoder training each add to the loop."""

from myxtts.stages.dvae import DvaeStage
from myxtts.stages.gpt import GptStage
from myxtts.stages.stage import Developing, Encoding, Materials, Stage
from myxtts.stages.vocoder import VocoderStage

__all__ = ["Developing", "DvaeStage", "Encoding", "GptStage", "Materials", "Stage", "VocoderStage"]
