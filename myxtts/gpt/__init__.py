"""The GPT: text and a voice in, audio codes and their latents out."""

from myxtts.gpt.decoding import Decoder, Request, Spoken, TextError
from myxtts.gpt.kinds import DecodingWeights, Kind, decoding_weights
from myxtts.gpt.loss import GptLoss, Ignored, gpt_loss
from myxtts.gpt.network import ADDED, Gpt, Logits
from myxtts.gpt.sampling import GREEDY, Sampling, SamplingError
from myxtts.gpt.sequence import Sequence, lay_out

__all__ = [
    "ADDED",
    "GREEDY",
    "Decoder",
    "DecodingWeights",
    "Gpt",
    "GptLoss",
    "Ignored",
    "Kind",
    "Logits",
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
