"""The GPT: text and a voice in, audio codes and their latents out."""

from myxtts.gpt.decoding import Decoder, Request, Spoken, TextError
from myxtts.gpt.kinds import DecodingWeights, Kind, decoding_weights
from myxtts.gpt.loss import GptLoss, Ignored, gpt_loss
from myxtts.gpt.network import Gpt
from myxtts.gpt.sampling import GREEDY, Sampling, SamplingError
from myxtts.gpt.sequence import Sequence, lay_out

__all__ = [
    "GREEDY",
    "Decoder",
    "DecodingWeights",
    "Gpt",
    "GptLoss",
    "Ignored",
    "Kind",
    "Request",
    "Sampling",
    "SamplingError",
    "Sequence",
    "Spoken",
    "TextError",
    "decoding_weights",
    "gpt_loss",
    "lay_out",
]
