"""The GPT: text and a voice in, audio codes and their latents out."""

from myxtts.gpt.loss import GptLoss, Ignored, gpt_loss
from myxtts.gpt.network import Gpt
from myxtts.gpt.sequence import Sequence, lay_out

__all__ = ["Gpt", "GptLoss", "Ignored", "Sequence", "gpt_loss", "lay_out"]
