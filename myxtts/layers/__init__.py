"""What the parts of the network are built of."""

from myxtts.layers.adapted import Adapted, Adapter
from myxtts.layers.attention import Form, attend, merge_heads, split_heads
from myxtts.layers.convolution import Convolution, convolve
from myxtts.layers.dropout import Dropout
from myxtts.layers.linear import Linear, Table, starts
from myxtts.layers.norm import GroupNorm, LayerNorm, RmsNorm
from myxtts.layers.normed import Kernel, NormedConvolution, NormedUpsampling
from myxtts.layers.part import Network, Part, Precision, size_of_leading

__all__ = [
    "Adapted",
    "Adapter",
    "Convolution",
    "Dropout",
    "Form",
    "GroupNorm",
    "Kernel",
    "LayerNorm",
    "Linear",
    "Network",
    "NormedConvolution",
    "NormedUpsampling",
    "Part",
    "Precision",
    "RmsNorm",
    "Table",
    "attend",
    "convolve",
    "merge_heads",
    "size_of_leading",
    "split_heads",
    "starts",
]
