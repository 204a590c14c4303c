"""What dvae, gpt and vocoder training each add to the loop."""

from myxtts.stages.dvae import DvaeStage
from myxtts.stages.gpt import GptStage
from myxtts.stages.stage import Materials, Stage

__all__ = ["DvaeStage", "GptStage", "Materials", "Stage"]
