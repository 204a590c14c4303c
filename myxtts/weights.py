"""A network's weights by name: to arrays, from arrays, to and from safetensors files.

A name is the path of the Keras variable without the model's own: "block_0/qkv/kernel".
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import keras
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from myxtts.errors import UserError


class WeightsError(UserError):
    """A file of weights does not fit the network."""


def named_weights(network: keras.Model) -> dict[str, keras.Variable]:
    """The variables that make up the network, but for its random seeds."""
    seeds = {id(v) for v in network.variables} - {id(v) for v in network.weights}
    return {_name(v): v for v in network.weights if id(v) not in seeds}


def load_weights(
    network: keras.Model, file: Path, wanted: Callable[[str], bool] = lambda _name: True
) -> None:
    """Reads every weight from a safetensors file, one at a time, or says what does not fit.

    Weights that are not `wanted` keep what they have: the file is to have none of their names.
    """
    variables = {name: v for name, v in named_weights(network).items() if wanted(name)}
    try:
        with safe_open(file, framework="numpy") as stored:
            names = stored.keys()
            shapes = {name: tuple(stored.get_slice(name).get_shape()) for name in names}
            check_fit(network.name, variables, shapes, str(file))
            for name, variable in variables.items():
                variable.assign(stored.get_tensor(name))
    except FileNotFoundError as error:
        raise WeightsError(f"{file} does not exist") from error
    except SafetensorError as error:
        raise WeightsError(f"{file} is no safetensors file: {error}") from error


def assign_weights(network: keras.Model, arrays: Mapping[str, NDArray[Any]], source: str) -> None:
    """Gives every weight its array; `source` is named in the error."""
    variables = named_weights(network)
    check_fit(network.name, variables, {name: a.shape for name, a in arrays.items()}, source)
    for name, variable in variables.items():
        variable.assign(arrays[name])


def save_weights(network: keras.Model, file: Path) -> None:
    """Writes every weight to a safetensors file."""
    save_file({name: v.numpy() for name, v in named_weights(network).items()}, file)


def check_fit(
    network: str,
    wanted: Mapping[str, keras.Variable],
    found: Mapping[str, tuple[int, ...]],
    source: str,
) -> None:
    """Raises with every missing, unexpected and misshapen name."""
    shapes = {name: tuple(v.shape) for name, v in wanted.items()}
    faults = [
        *_listed("missing", shapes.keys() - found.keys()),
        *_listed("unexpected", found.keys() - shapes.keys()),
        *(
            f"{name} is {list(found[name])}, the {network} has {list(shape)}"
            for name, shape in shapes.items()
            if name in found and found[name] != shape
        ),
    ]
    if faults:
        raise WeightsError(
            f"{source} does not fit the {network}: " + "; ".join(faults[:20]) + _rest(faults),
            "use the settings (config.yaml) that were saved beside it",
        )


def _name(variable: keras.Variable) -> str:
    return str(variable.path).partition("/")[2]


def _listed(word: str, names: Iterable[str]) -> list[str]:
    return [f"{word} {name}" for name in sorted(names)]


def _rest(faults: list[str]) -> str:
    return f"; and {len(faults) - 20} more" if len(faults) > 20 else ""
