"""The command line as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest
from training import TINY, corpus

from myxtts.cli.flags import BATCHES, DEVICES, FILES, PREPARING, TRAINING
from myxtts.config import FLAGS

ROOT = Path(__file__).parent.parent
MYXTTS = [sys.executable, "-c", "import sys; from myxtts.cli import main; sys.exit(main())"]
SMALL = ["--model-size", "tiny", "--batch-size", "2"]
FEW = [f"{key}={list(value) if isinstance(value, tuple) else value}" for key, value in TINY.items()]
"""A network of few numbers, for commands that run one."""
COMMANDS = [
    [],
    ["train"],
    ["validate"],
    ["profile"],
    ["diagnose"],
    ["trace"],
    ["prepare"],
    ["demo-corpus"],
    ["import"],
    ["export"],
    ["slim"],
    ["text"],
    ["config"],
    ["config", "show"],
    ["config", "schema"],
    ["config", "check"],
]


def run(*arguments: str, cwd: Path = ROOT, program: list[str] | None = None) -> tuple[int, str]:
    ran = subprocess.run(
        [*(program or MYXTTS), *arguments], cwd=cwd, check=False, capture_output=True, text=True
    )
    return ran.returncode, ran.stdout + ran.stderr


LOADED = """
import sys
from myxtts.cli import main
code = main({arguments!r})
heavy = {{"tensorflow", "keras", "numpy", "tokenizers", "num2words"}} & set(sys.modules)
print("HEAVY", heavy)
sys.exit(code or bool(heavy))
"""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_imports_neither_tensorflow_nor_numpy(command: list[str]) -> None:
    asked = LOADED.format(arguments=[*command, "--help"])
    code, printed = run(program=[sys.executable, "-c", asked])
    assert (code, "Usage" in printed) == (0, True), printed


def test_every_flag_of_the_guides_sets_the_setting_that_the_errors_name() -> None:
    taken = {
        flag.name: flag.setting for flag in (*FILES, *DEVICES, *BATCHES, *PREPARING, *TRAINING)
    }
    for setting, flag in FLAGS.items():
        assert taken[flag] == ("" if setting == "preset" else setting)


GUIDES_COMMAND = """
    --data-gpu 0 --model-gpu 1 --train-data ../dataset/dataset_train --val-data ./data/val
    --batch-size 32 --epochs 100 --buffer-size 25 --model-start-delay 5.0 --num-workers 16
    --enable-memory-isolation --data-gpu-memory 4096 --model-gpu-memory 12288 --model-size tiny
    --enable-static-shapes --prefetch-buffer-size 8 --optimization-level enhanced --grad-accum 4
    --mixed-precision --max-steps 100 training.lr=1e-4
"""


def test_the_guides_full_command_line_is_understood() -> None:
    code, printed = run("config", "show", *GUIDES_COMMAND.split(), "data.val=../data set/eval")
    assert code == 0, printed
    for line in ("batch_size: 32", "memory_isolation: true", "recompute: true", "lr: 0.0001"):
        assert line in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data-gpu", "0", "--model-gpu", "1"], "Multi-GPU requires at least 2 GPUs"),
        (["--data-gpu", "-1", "--model-gpu", "1"], "GPUs are numbered from 0"),
        (["--emulate", "2", "--data-gpu", "1", "--model-gpu", "1"], "--data-gpu 1 --model-gpu 0"),
        (["--emulate", "2", "--batch-size", "0"], "--batch-size"),
        (["--emulate", "2", "data.btch_size=3"], "did you mean data.batch_size?"),
        (["--train-data", "no-such-folder"], "no-such-folder"),
        (["--optimization-level", "highest"], "write basic or enhanced"),
        (["--config", "absent.yaml"], "absent.yaml"),
        (["--emulate", "two"], "'--emulate'"),
        (["--data-gpu-memory", "4096"], "caps nothing without --enable-memory-isolation"),
        (["--model-gpu-memory", "²"], "--model-gpu-memory"),
    ],
)
def test_a_users_mistake_is_told_without_a_traceback(arguments: list[str], words: str) -> None:
    code, printed = run("train", *arguments)
    assert (code, words in printed, "Traceback" in printed) == (2, True, False), printed


def test_the_guides_config_file_is_read_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "config.yaml").write_text("data:\n  batch_size: 7\n")
    code, printed = run("config", "show", cwd=tmp_path)
    assert (code, "batch_size: 7" in printed) == (0, True)
    assert "settings: configs/config.yaml" in printed


def test_the_remedy_repeats_the_command_that_was_typed() -> None:
    _, printed = run("train", "--data-gpu", "0", "--model-gpu", "1", *SMALL)
    assert "run: myxtts train --model-size tiny --batch-size 2\n" in printed
    assert "--data-gpu 0 --model-gpu 1 --emulate 2" in printed


def test_validate_passes_its_five_stages_on_two_emulated_devices(tmp_path: Path) -> None:
    code, printed = run("validate", "--emulate", "2", "--batch-size", "2", cwd=tmp_path)
    stages = [line for line in printed.splitlines() if line[:2] in ("1.", "2.", "3.", "4.", "5.")]
    assert (code, len(stages)) == (0, 5), printed
    for line in (
        "GPU indices valid: data_gpu=0, model_gpu=1",
        "Model created successfully on CPU:1",
        "Pipeline simulation successful: 12 steps",
    ):
        assert line in printed
    assert "🎉 All validation checks passed!" in printed


def test_validate_fails_with_1_and_says_what_would_work() -> None:
    code, printed = run("validate", "--data-gpu", "0", "--model-gpu", "1")
    assert code == 1
    assert "❌ Multi-GPU requires at least 2 GPUs; 0 found" in printed
    assert "run: myxtts validate --data-gpu 0 --model-gpu 1 --emulate 2" in printed
    assert "🎉" not in printed


def test_train_says_the_guides_lines_in_split(tmp_path: Path) -> None:
    devices = ["--emulate", "4", "--data-gpu", "2", "--model-gpu", "3"]
    asked = ["--train-data", str(corpus(tmp_path / "clips", 9)), "--stage", "dvae", *FEW]
    asked += ["--max-steps", "2", "pipeline.model_start_delay=2.0"]
    code, printed = run("train", *devices, *asked, cwd=tmp_path)
    assert code == 0, printed
    for line in GUIDE_LINES:
        assert line in printed
    assert "trained: runs/" in printed


def test_training_without_clips_says_how_to_name_them() -> None:
    code, printed = run("train", "--emulate", "2")
    assert (code, "name them: --train-data FOLDER" in printed) == (2, True), printed


GUIDE_LINES = (
    "🎯 Configuring Multi-GPU Mode...",
    "   Data Processing GPU: 2",
    "   Model Training GPU: 3",
    "   Set visible devices: GPU 2 and GPU 3",
    "✅ Multi-GPU configuration completed successfully",
    "🚀 Intelligent GPU Pipeline: Multi-GPU Mode",
    "   - Data Processing GPU: 2",
    "   - Prefetching to /CPU:2 with buffer_size=25",
    "🎯 Multi-GPU Mode: Model will be placed on /CPU:3",
    "   (Original GPU 3 is now mapped to CPU:3)",
    "Creating model on device: /CPU:3",
    "🕐 Multi-GPU Mode: Waiting 2.0s for data pipeline to warm up...",
    "✅ Model training starting now",
)


@pytest.mark.parametrize(
    ("script", "flag"),
    [
        ("train_main.py", "--grad-accum"),
        ("validate_dual_gpu_pipeline.py", "--data-gpu"),
        ("utilities/dual_gpu_bottleneck_profiler.py", "--num-steps"),
        ("utilities/gpu_profiler.py", "--num-steps"),
        ("utilities/diagnose_gpu_bottleneck.py", "--num-batches"),
    ],
)
def test_the_guides_scripts_run_the_command_behind_them(script: str, flag: str) -> None:
    code, printed = run("--help", program=[sys.executable, script])
    assert (code, flag in printed) == (0, True), printed


def test_profile_diagnose_and_trace_read_one_run(tmp_path: Path) -> None:
    asked = ["--emulate", "2", "--num-steps", "12", *FEW]
    code, printed = run("profile", *asked, cwd=tmp_path)
    assert (code, "bottleneck: " in printed) == (0, True), printed
    assert "the text is made up" in printed
    (folder,) = (tmp_path / "runs").iterdir()
    assert run("diagnose", "--run", str(folder))[0] == 0
    assert run("trace", str(folder))[0] == 0
    assert (folder / "trace.json").stat().st_size > 0


def test_diagnosing_a_folder_without_a_run_is_a_clear_error(tmp_path: Path) -> None:
    code, printed = run("diagnose", "--run", str(tmp_path))
    assert (code, "telemetry.jsonl cannot be read" in printed) == (2, True), printed


def test_text_is_shown_cleaned_with_ids_and_what_is_missing() -> None:
    vocab = "tests/golden/tiny_vocab.json"
    code, printed = run("text", "Hello 12 😀 ж", "--language", "en", "--vocab", vocab)
    assert code == 0, printed
    assert "text: hello twelve ж" in printed
    assert "dropped: 😀 U+1F600 GRINNING FACE: 1×" in printed
    assert "ids (9): 4 291 55 2 209 178 191 2 1" in printed
    assert "unknown: ж U+0436 CYRILLIC SMALL LETTER ZHE: 1×" in printed


def test_text_in_a_language_that_the_vocabulary_lacks_is_an_error() -> None:
    code, printed = run(
        "text", "سلام", "--language", "fa", "--vocab", "tests/golden/tiny_vocab.json"
    )
    assert code == 2
    assert "has no tag [fa] for Persian" in printed
