"""The flags of the guides, each written once, and the commands that take them.

A flag's default is the setting's own, so here there is none: what was not given stays None.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from myxtts.config import Config

NOT_A_SETTING = ""
ISOLATION = "--enable-memory-isolation"
GUIDES_FILE = Path("configs", "config.yaml")
"""The file that the guides edit; read when it is there and no other is named."""


@dataclass(frozen=True)
class Flag:
    """One flag and the setting that it gives."""

    name: str
    setting: str
    kind: type
    help: str

    @property
    def parameter(self) -> inspect.Parameter:
        """The flag as a command's keyword, for typer to read."""
        option = typer.Option(self.name, help=self.help, show_default=False)
        return inspect.Parameter(
            self.name.removeprefix("--").replace("-", "_"),
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[self.kind | None, option],
        )


FILES = (
    Flag("--config", NOT_A_SETTING, Path, "YAML file with settings."),
    Flag("--preset", NOT_A_SETTING, str, "Settings for a card: 12gb, 16gb, 24gb, rtx-4090 …"),
    Flag("--model-size", "model.size", str, "tiny, small, normal or big."),
)
CAPS = (
    Flag("--data-gpu-memory", "devices.data_gpu_memory", str, "Cap in MB, or auto."),
    Flag("--model-gpu-memory", "devices.model_gpu_memory", str, "Cap in MB, or auto."),
)
DEVICES = (
    Flag("--data-gpu", "devices.data_gpu", str, "GPU that prepares batches; several: 0,1."),
    Flag("--model-gpu", "devices.model_gpu", str, "GPU that learns; several: 1,2,3."),
    Flag("--emulate", "devices.emulate", int, "CPU devices that stand for GPUs 0 to N-1."),
    Flag("--arrangement", "devices.arrangement", str, "single, split, cached, parallel or hybrid."),
    Flag(ISOLATION, "devices.memory_isolation", bool, "Caps GPU memory by role."),
    *CAPS,
)
BATCHES = (
    Flag("--batch-size", "data.batch_size", int, "Clips in a batch."),
    Flag("--buffer-size", "data.buffer_size", int, "Clips of raw sound kept ready."),
    Flag("--prefetch-buffer-size", "data.prefetch_buffer_size", int, "Batches read ahead."),
    Flag("--num-workers", "data.num_workers", int, "Host threads that read clips."),
    Flag("--model-start-delay", "pipeline.model_start_delay", float, "Seconds for the first fill."),
)
TRAINING = (
    Flag("--train-data", "data.train", Path, "Folder or list of clips to learn from."),
    Flag("--val-data", "data.val", Path, "Folder or list of clips that only judge."),
    Flag("--stage", "training.stage", str, "dvae, gpt or vocoder; else those that are missing."),
    Flag("--start-from", "training.start_from", Path, "Model folder to fine-tune."),
    Flag("--epochs", "training.epochs", int, "Passes over the clips."),
    Flag("--max-steps", "training.max_steps", int, "Steps after which the run ends."),
    Flag("--grad-accum", "training.gradient_accumulation_steps", int, "Batches in one update."),
    Flag("--mixed-precision", "training.mixed_precision", bool, "Computes in 16 bits."),
    Flag("--oom", "training.oom", str, "stop, or shrink: a batch without room in pieces."),
    Flag("--optimization-level", "training.recompute", str, "basic, or enhanced: less memory."),
    Flag("--enable-static-shapes", NOT_A_SETTING, bool, "Always so here: accepted, not needed."),
)
PREPARING = (
    Flag("--format", "data.format", str, "ljspeech, vctk, commonvoice, table or folder."),
    Flag("--language", "data.language", str, "Language of clips whose list names none: en, fa …"),
)
LEVELS = {"basic": False, "enhanced": True}


@dataclass(frozen=True)
class Given:
    """What the user typed: flags by setting, and KEY=VALUE overrides."""

    file: Path | None = None
    preset: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()

    def config(self, file: Path | None = None) -> "Config":
        """The configuration that all layers give together; a run's own file stands for others."""
        from myxtts.config import load_config  # noqa: PLC0415  It takes a third of `--help`.

        file = file or self.file
        if file is None and GUIDES_FILE.is_file():
            file = GUIDES_FILE
            # Not to stdout: `config show` prints YAML there.
            sys.stderr.write(f"settings: {file}\n")
        config = load_config(
            file, preset=self.preset, flags=self.settings, overrides=self.overrides
        )
        self._check_caps(config)
        return config

    def _check_caps(self, config: "Config") -> None:
        flags = [flag.name for flag in CAPS if flag.setting in self.settings]
        if flags and not config.devices.memory_isolation:
            from myxtts.devices import DeviceError  # noqa: PLC0415

            uncapped: dict[str, str | None] = dict.fromkeys(flags)
            fixes = [uncapped] if config.devices.emulate else [{ISOLATION: ""}, uncapped]
            raise DeviceError(f"{' and '.join(flags)} caps nothing without {ISOLATION}", *fixes)


Command = Callable[..., None]


def takes(*groups: Sequence[Flag]) -> Callable[[Command], Command]:
    """Gives a command these flags and overrides; it is called with `given` and its own options."""
    flags = [flag for group in groups for flag in group]

    def decorate(command: Command) -> Command:
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "given"
        ]

        def wrapper(overrides: list[str] | None = None, **typed: Any) -> None:
            mine = {parameter.name: typed.pop(parameter.name) for parameter in own}
            command(_collect(flags, typed, overrides or []), **mine)

        argument = typer.Argument(metavar="[KEY=VALUE]...", help="Any other setting.")
        overrides = inspect.Parameter(
            "overrides",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[list[str] | None, argument],
        )
        # Own arguments first: KEY=VALUE takes all that is left.
        parameters = [*own, overrides, *(flag.parameter for flag in flags)]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
        wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
        return wrapper

    return decorate


def _collect(flags: Sequence[Flag], typed: dict[str, Any], overrides: list[str]) -> Given:
    values = {flag: typed[flag.parameter.name] for flag in flags}
    settings = {
        flag.setting: _as_setting(flag, value)
        for flag, value in values.items()
        if flag.setting and value is not None
    }
    return Given(typed.get("config"), typed.get("preset"), settings, tuple(overrides))


def _as_setting(flag: Flag, value: Any) -> Any:
    if flag.setting.endswith("_gpu_memory") and value.isascii() and value.isdigit():
        return int(value)
    if flag.name == "--optimization-level":
        if value not in LEVELS:
            raise typer.BadParameter(f"{value}: write basic or enhanced", param_hint=flag.name)
        return LEVELS[value]
    return value
