"""The commands; each imports what it needs when it runs, so that `--help` is quick."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from myxtts.cli.flags import BATCHES, DEVICES, FILES, PREPARING, TRAINING, Given, takes
from myxtts.cli.output import checked_output
from myxtts.errors import UserError

if TYPE_CHECKING:
    from myxtts.clips import ClipSound
    from myxtts.config import Config
    from myxtts.devices import Cluster, DevicePlan

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Trains, fine-tunes and speaks XTTS-v2: the data device prepares the next batch "
    "while the model device learns from this one.",
)
config_app = typer.Typer(no_args_is_help=True, help="Shows, describes and checks settings.")
app.add_typer(config_app, name="config")

REHEARSAL_STEPS = 50
CLIP_SECONDS = 4.0
STOPPED = 130


@app.command()
@takes(FILES, DEVICES, BATCHES, TRAINING, PREPARING)
def train(
    given: Given,
    resume: Annotated[
        str | None, typer.Option(help="Run to go on with: auto for the newest, or its folder.")
    ] = None,
) -> None:
    """Trains on your clips, prepared on first use: what is missing of codec and GPT, in order."""
    from myxtts.devices import read_cluster  # noqa: PLC0415
    from myxtts.train.resume import run_to_resume  # noqa: PLC0415

    cluster = read_cluster()
    config = given.config()
    going_on = run_to_resume(resume, config.telemetry.runs, _say) if resume else None
    if going_on:
        config = given.config(going_on.folder / "config.yaml")
    plan = _open(config, cluster)
    from myxtts.pipeline import Team  # noqa: PLC0415
    from myxtts.train import train as run_training  # noqa: PLC0415

    run_training(config, plan, going_on, _say, Team(cluster))


@app.command()
@takes(FILES, DEVICES, BATCHES)
def validate(given: Given) -> None:
    """Checks driver, devices, model, transfer and pipeline, in five stages."""
    from myxtts.validate import validate as run_checks  # noqa: PLC0415

    raise typer.Exit(run_checks(given.config(), _typed(), _say))


@app.command()
@takes(FILES, DEVICES, BATCHES)
def profile(
    given: Given,
    num_steps: Annotated[int, typer.Option(min=3, help="Steps to measure.")] = 100,
) -> None:
    """Measures every stage of the pipeline and says where the time goes."""
    from myxtts.profile import profile_lines, read_profile  # noqa: PLC0415

    config = given.config()
    folder = _rehearse(config, _open(config), num_steps)
    for line in profile_lines(read_profile(folder)):
        _say(line)


@app.command()
@takes(FILES, DEVICES, BATCHES)
def diagnose(
    given: Given,
    num_batches: Annotated[int, typer.Option(min=3, help="Batches to run.")] = 50,
    run: Annotated[Path | None, typer.Option(help="Look at this run's folder instead.")] = None,
) -> None:
    """Looks for slow stages, uneven steps, oscillation and growing memory."""
    from myxtts.profile import diagnosis_lines, read_profile  # noqa: PLC0415

    if run is None:
        config = given.config()
        run = _rehearse(config, _open(config), num_batches)
    for line in diagnosis_lines(read_profile(run)):
        _say(line)


@app.command()
def trace(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path | None, typer.Option(help="File to write.")] = None,
) -> None:
    """Writes a run's lanes as a trace that Perfetto opens (ui.perfetto.dev)."""
    from myxtts.telemetry.trace import write_trace  # noqa: PLC0415

    target = out or run / "trace.json"
    count = write_trace(run, target)
    _say(f"{count} events in {target}: open it in ui.perfetto.dev or chrome://tracing")


@app.command()
@takes(FILES[:1], PREPARING)
def prepare(
    given: Given,
    data: Annotated[Path, typer.Argument(help="Folder of clips, or the list that names them.")],
    out: Annotated[Path, typer.Option(help="Folder to make, beside the data.")],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that decode.", show_default="one a core")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compares hashes, not times.")] = False,
) -> None:
    """Turns recordings and their texts into shards and a manifest; names every refused clip."""
    from myxtts.clips import open_vocabulary  # noqa: PLC0415
    from myxtts.prepare import Order  # noqa: PLC0415
    from myxtts.prepare import prepare as run_prepare  # noqa: PLC0415

    config = given.config()
    vocabulary = open_vocabulary(config.text)
    run_prepare(Order(data, out, config.data, workers, vocabulary, check), _say)


@app.command("demo-corpus")
def demo_corpus(
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    clips: Annotated[int | None, typer.Option(min=16, help="Training clips, all voices.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which phrases are drawn.")] = 0,
) -> None:
    """Makes synthetic English and Persian speech to try everything out on (extra: demo)."""
    from myxtts.demo_corpus import CLIPS, make_corpus  # noqa: PLC0415

    make_corpus(out, clips or CLIPS, seed, _say)


@app.command("import")
def import_(
    files: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder with model.pth, config.json, vocab.json.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to make: the model's own.")],
) -> None:
    """Turns the downloaded files of XTTS-v2 into a model's folder; runs nothing of them."""
    from myxtts.importer.reading import import_model  # noqa: PLC0415

    import_model(files, out, _say)


@app.command()
def slim(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint, or a stage's or run's folder.")],
    out: Annotated[Path, typer.Option(help="Folder to make: the model's own.")],
) -> None:
    """Takes a model's folder out of a checkpoint, without what only training needs."""
    from myxtts.train.taking import take_model  # noqa: PLC0415

    take_model(checkpoint, out, _say)


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model's folder.")],
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    pth: Annotated[
        bool, typer.Option("--pth", help="Writes .pth files, as torch.load reads them.")
    ] = False,
) -> None:
    """Writes a model's weights under the reference's names, so that it can load them."""
    from myxtts.importer.writing import export_model  # noqa: PLC0415

    export_model(model, out, _say, pth=pth)


@app.command()
def text(
    words: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be spoken.")],
    language: Annotated[str, typer.Option(help="Its language: en, fa, zh-cn …")],
    vocab: Annotated[Path | None, typer.Option(help="vocab.json to encode with.")] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings.")] = None,
) -> None:
    """Shows a text cleaned, its tokens' ids, and characters that the vocabulary lacks."""
    from myxtts.text import Tokenizer, audit, clean, described  # noqa: PLC0415

    given = {} if vocab is None else {"text.vocabulary": vocab}
    loaded = Given(file=config, settings=given).config()
    cleaned = clean(words, language, loaded.text)
    _say(f"text: {cleaned.text}")
    for character, count in cleaned.dropped.items():
        _say(f"dropped: {described(character)}: {count}×")
    if loaded.text.vocabulary is None:
        return
    tokenizer = Tokenizer.load(loaded.text.vocabulary)
    ids = tokenizer.encode(cleaned.text, language)
    _say(f"ids ({len(ids)}): {' '.join(map(str, ids))}")
    for unknown in audit(tokenizer, [(cleaned.text, language)], len(ids)).unknown.values():
        _say(f"unknown: {unknown}")


@config_app.command("show")
@takes(FILES, DEVICES, BATCHES, TRAINING, PREPARING)
def show_config(given: Given) -> None:
    """Prints every setting as YAML, as a run with the same arguments would have it."""
    from myxtts.config import to_yaml  # noqa: PLC0415

    _write(to_yaml(given.config()))


@config_app.command("schema")
def show_schema() -> None:
    """Prints the JSON schema of the settings, for an editor."""
    import json  # noqa: PLC0415

    from myxtts.config import json_schema  # noqa: PLC0415

    _say(json.dumps(json_schema(), indent=2, ensure_ascii=False))


@config_app.command("check")
def check_config(file: Annotated[Path, typer.Argument(help="YAML file.")]) -> None:
    """Says whether a file is right, and every line that is not."""
    from myxtts.config import load_config  # noqa: PLC0415

    load_config(file)
    _say(f"{file}: every key is known and every value is in range")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; a user's mistake is two lines and an exit code, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None when the caller closed it.
            stream.reconfigure(errors="backslashreplace")
    try:
        with checked_output():
            return _call(arguments)
    except UserError as error:
        return _tell(error)
    except MemoryError as error:
        return _tell(UserError(f"the host has no room: {error}", "a smaller --batch-size"))
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped\n")
        return STOPPED


def _call(arguments: Sequence[str] | None) -> int:
    try:
        app(args=arguments, standalone_mode=True)
    except SystemExit as end:
        if end.code == STOPPED:  # Typer's own answer to Ctrl-C, given without a word.
            sys.stderr.write("\nstopped\n")
        return end.code if isinstance(end.code, int) else 1
    return 0


def run_as(command: str) -> None:
    """What the guides' scripts call: the same arguments, behind the command's name."""
    sys.argv[1:1] = [command]
    sys.exit(main())


def _tell(error: UserError) -> int:
    from myxtts.devices.errors import DeviceError  # noqa: PLC0415

    if isinstance(error, DeviceError):
        error = error.for_command(_typed())
    sys.stderr.write(f"❌ {error.problem}\n")
    for line in error.remedy.splitlines():
        sys.stderr.write(f"   {line}\n")
    return error.exit_code


def _open(config: "Config", cluster: "Cluster | None" = None) -> "DevicePlan":
    from myxtts.devices import list_gpus, open_devices, plan_devices, prove_devices  # noqa: PLC0415

    gpus = list_gpus()
    plan = plan_devices(config.devices, gpus)
    open_devices(plan, _say, cluster)
    for proof in prove_devices(plan):
        _say(f"   {proof.role} device {proof.device} ran an op ({proof.name})")
    if len(plan.devices) > 1:
        _say("✅ Multi-GPU configuration completed successfully")
    idle = [gpu.index for gpu in gpus if gpu not in plan.gpus and not plan.emulated]
    if idle:
        numbers = ", ".join(str(index) for index in idle)
        _say(f"⚠ GPU {numbers} idle; to use two: --data-gpu 0 --model-gpu 1")
    return plan


def _rehearse(config: "Config", plan: "DevicePlan", steps: int) -> Path:
    from myxtts.rehearsal import rehearse  # noqa: PLC0415

    run = rehearse(config, plan, steps, _sound(config, len(plan.models)), _say)
    _say(f"telemetry: {run.folder}")
    return run.folder


def _sound(config: "Config", models: int) -> "ClipSound":
    """The user's clips, or noise where none are named."""
    from myxtts.clips import ClipSound, open_clips  # noqa: PLC0415
    from myxtts.noise import open_noise  # noqa: PLC0415

    if config.data.train:
        return ClipSound(open_clips(config, models, _say), config.data)
    _say("No --train-data: rehearsing on made-up clips.")
    return ClipSound(open_noise(config, CLIP_SECONDS, models), config.data)


def _typed() -> list[str]:
    """The command as the user typed it, to be amended in an error's remedy."""
    return ["myxtts", *sys.argv[1:]]


def _say(line: str) -> None:
    _write(line + "\n")


def _write(text: str) -> None:
    if sys.stdout is not None:
        sys.stdout.write(text)
        sys.stdout.flush()
