"""Single settings: what they take, and errors that say what to write."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from myxtts.config import (
    GUIDE_KEYS,
    Config,
    ConfigError,
    DevicesConfig,
    load_config,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.yaml"


def problems_of(file: Path, text: str | bytes, **layers: Any) -> tuple[str, ...]:
    """The problems that loading this text reports, with FILE for the file's name."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(file, **layers)
    return tuple(line.replace(str(file), "FILE") for line in caught.value.problems)


def outcome(file: Path | None = None, **layers: Any) -> str:
    try:
        load_config(file, **layers)
    except ConfigError as error:
        count = len(error.problems)
        return f"{count} problem{'s' * (count > 1)}"
    return "loads"


def value_at(config: object, key: str) -> object:
    for part in key.split("."):
        config = getattr(config, part)
    return config


def test_settings_cannot_be_changed_after_loading() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().data.batch_size = 3


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("data: {batch_size: true}", "data.batch_size"),
        ("data: {batch_size: '16'}", "data.batch_size"),
        ("data: {batch_size: 16.0}", "data.batch_size"),
        ("data: {batch_size: 0}", "data.batch_size"),
        ("data: {batch_size: 99999999999}", "data.batch_size"),
        ("data: {batch_size: [16]}", "data.batch_size"),
        ("data: {batch_size: }", "data.batch_size"),
        ("data: {train: 2024}", "data.train"),
        ("data: {train: ''}", "data.train"),
        ('data: {train: "a\\0b"}', "data.train"),
        ('data: {train: "\\uD800"}', "data.train"),
        ("data: {prefetch_to_gpu: 1}", "data.prefetch_to_gpu"),
        ("devices: {data_gpu: 0.5}", "devices.data_gpu"),
        ("devices: {data_gpu_memory: all}", "devices.data_gpu_memory"),
        ("devices: {data_gpu_memory: true}", "devices.data_gpu_memory"),
        ("devices: {model_gpu: []}", "devices.model_gpu"),
        ("devices: {model_gpu: [true]}", "devices.model_gpu"),
        ("devices: {model_gpu: '1,,2'}", "devices.model_gpu"),
        ("devices: {emulate: 0}", "devices.emulate"),
        ("pipeline: {model_start_delay: -1}", "pipeline.model_start_delay"),
        ("pipeline: {model_start_delay: .inf}", "pipeline.model_start_delay"),
        ("training: {lr: .nan}", "training.lr"),
        ("training: {lr: 1e999}", "training.lr"),
        ("training: {lr: 0}", "training.lr"),
        ("training: {lr: true}", "training.lr"),
        ("training: {compile: XLA}", "training.compile"),
        ("training: {seed: -1}", "training.seed"),
    ],
)
def test_wrong_value_is_one_line_with_place_key_and_remedy(file: Path, line: str, key: str) -> None:
    (problem,) = problems_of(file, f"# one\n{line}\n")
    assert problem.startswith(f"FILE:2: {key}: got ")
    assert re.search(r", takes .*; (write|leave it out)", problem)


@pytest.mark.parametrize(
    ("given_text", "advice"),
    [
        ("training: {epochs: 1e3}", "write `epochs: 1000`"),
        ("training: {epochs: '7'}", "write `epochs: 7`"),
        ("training: {compile: xl}", "write `compile: xla`"),
        ("training: {mixed_precision: yes}", "write `mixed_precision: true`"),
        ("model: {size: Tiny}", "write `size: tiny`"),
        ("data: {val: 2024}", 'write `val: "2024"`'),
    ],
)
def test_remedy_is_the_value_that_was_probably_meant(
    file: Path, given_text: str, advice: str
) -> None:
    assert problems_of(file, given_text)[0].endswith(advice)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-4", 1e-4), ("5E-6", 5e-6), ("1", 1.0), (".5", 0.5), ("1.", 1.0), ("0.000_1", 1e-4)],
)
def test_numbers_are_read_as_people_write_them(file: Path, text: str, value: float) -> None:
    file.write_text(f"training: {{lr: {text}}}")
    assert load_config(file).training.lr == value
    assert load_config(overrides=[f"training.lr={text}"]).training.lr == value


@pytest.mark.parametrize("text", ["no", "on", "off", "y", "2024-01-01", "12:30:00", "1.2.3"])
def test_words_that_yaml_1_1_converts_stay_text(file: Path, text: str) -> None:
    file.write_text(f"data: {{train: {text}}}")
    assert load_config(file).data.train == Path(text)


@pytest.mark.parametrize("text", ["1", "[1]", "'1'"])
def test_one_model_gpu_may_be_written_three_ways(file: Path, text: str) -> None:
    file.write_text(f"devices: {{model_gpu: {text}}}")
    assert load_config(file).devices.model_gpu == (1,)


def test_several_model_gpus_keep_their_order() -> None:
    for text in ("3,1,2", "[3, 1, 2]"):
        assert load_config(overrides=[f"devices.model_gpu={text}"]).devices.model_gpu == (3, 1, 2)
    assert load_config(flags={"devices.model_gpu": "3,1,2"}).devices.model_gpu == (3, 1, 2)


def test_negative_gpu_is_left_for_devices_to_refuse() -> None:
    config = load_config(flags={"devices.data_gpu": -1, "devices.model_gpu": "-2,1"})
    assert config.devices == DevicesConfig(data_gpu=(-1,), model_gpu=(-2, 1))


def test_tilde_in_a_file_is_the_home_folder(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    file.write_text("data: {train: ~/clips, val: ~other/clips}")
    data = load_config(file).data
    assert (data.train, data.val) == (Path("/home/someone/clips"), Path("~other/clips"))


def test_tilde_without_a_home_folder_is_an_error(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "expanduser", _homeless)
    (problem,) = problems_of(file, "data: {train: ~/clips}")
    assert problem.startswith("FILE:1: data.train: got the text '~/clips'")


def _homeless(path: Path) -> Path:
    raise RuntimeError(f"no home folder for {path}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt: {width: 500, heads: 12}", "model.gpt: width 500 does not divide into 12 heads"),
        ("codec: {codes: 64}", "write model.gpt.audio_tokens: 66"),
        ("vocoder: {upsample_rates: [8, 8, 4]}", "3 upsample_rates and 4 upsample_kernels"),
        ("vocoder: {upsample_rates: [8, 8, 4, 2]}", "multiply to 512"),
        ("vocoder: {width: 100}", "cannot be halved 4 times"),
        ("vocoder: {upsample_kernels: [16, 16, 4, 5]}", "longer by an even number"),
        ("vocoder: {residual_kernels: [3, 4]}", "even residual kernel"),
        ("discriminator: {periods: [2, 3, 2]}", "a period is written twice"),
        ("discriminator: {scale_width: 40}", "does not divide into 16 groups"),
        ("speaker: {blocks: [1]}", "write four of each"),
        ("speaker: {filters: [8, 8, 8, 9]}", "multiples of 8"),
    ],
)
def test_numbers_that_cannot_stand_together_name_their_line(
    file: Path, text: str, said: str
) -> None:
    (problem,) = problems_of(file, f"model:\n  {text}\n")
    assert problem.startswith("FILE:2: model")
    assert said in problem


def test_conflict_across_layers_names_both_places(file: Path) -> None:
    (problem,) = problems_of(file, "model: {gpt: {heads: 7}}", overrides=["model.gpt.width=64"])
    assert problem.startswith("override model.gpt.width=64 and FILE:1: model.gpt: width 64")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "data:\nmodel:\n", "{}", "~"])
def test_empty_file_and_empty_sections_mean_the_defaults(file: Path, text: str) -> None:
    file.write_text(text)
    assert load_config(file) == load_config() == Config()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\nb: 2", "FILE:2: "),
        ("data:\n\tbatch_size: 1", "FILE:2: a tab stands"),
        ("data:\n  batch_size:\t1\n\tx: 2", "a tab stands"),
        ("- 1", "FILE:1: the top level must be sections"),
        ("word", "FILE:1: the top level must be sections"),
        ("''", "FILE:1: the top level must be sections"),
        ("data: {}\n---\nmodel: {}", "FILE:2: expected a single document"),
        ("data: *nowhere", "FILE:1: found undefined alias"),
        ("data: {}\nx: \x07", "FILE:2: the character 0x7"),
        (b"data: {}\nx: \xff", "FILE:2: not UTF-8"),
        (b"\xff\xfed\0", "FILE:1: not UTF-8"),
        ("[" * 50_000, "FILE:1: nested too deeply"),
        ("#" * 70_000, "FILE: larger than"),
        ("data: 5", "FILE:1: data: is a section"),
        ("data: ''", "FILE:1: data: is a section"),
        ("? [a, b]\n: 1", "FILE:1: a key is one word"),
        ("'': 1", "FILE:1: a key is one word"),
        ("data: {batch_size: {a: 1}}", "FILE:1: data.batch_size: this key takes a value"),
        ("data: {batch_size: &a [*a]}", "FILE:1: data.batch_size: a list here holds single"),
        ("data: &d {train: *d}", "FILE:1: data.train: this key takes a value"),
        ("data: {train: !!python/name:os.system x}", "FILE:1: data.train: the tag"),
        ("data: {batch_size: !!int x}", "FILE:1: data.batch_size: the tag"),
        ("data: {batch_size: " + "9" * 5000 + "}", "a number of 5000 characters"),
        ("x: &x {seed: 1}\ntraining: {<<: *x}", "merge keys are not read"),
        ("data.batch_size: 8", "FILE:1: data.batch_size: dots join keys only"),
        ("model: {gpt.width: 8}", "write `width:` under `model.gpt:`"),
    ],
)
def test_unusable_file_is_an_error_that_names_the_line(
    file: Path, text: str | bytes, said: str
) -> None:
    assert said in "\n".join(problems_of(file, text))


def test_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    for name in ("absent.yaml", ".", "a\0b"):
        with pytest.raises(ConfigError, match=r"cannot be read .*; name a YAML file"):
            load_config(tmp_path / name)


def test_byte_order_mark_and_windows_line_ends_are_read(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfdata:\r\n  batch_size: 3\r\n")
    assert load_config(file).data.batch_size == 3


@pytest.mark.parametrize("text", ["data: {}\ndata: {}", "data:\n  val: a\n  val: a"])
def test_duplicate_key_is_refused_and_both_lines_named(file: Path, text: str) -> None:
    (problem,) = problems_of(file, text)
    assert re.match(r"FILE:(\d): .*: also on line (\d); keep one", problem)


def test_all_problems_of_a_file_are_reported_at_once_in_order(file: Path) -> None:
    text = "data:\n  batch_size: x\n  wokers: 1\n  val: 3\ntraining:\n  enable_graph_mode: true\n"
    problems = problems_of(file, text, overrides=["=1", "training.lr=x"])
    assert [line.split(": ")[0] for line in problems] == [
        *("FILE:2", "FILE:3", "FILE:4", "FILE:6"),
        *("override =1", "override training.lr=x"),
    ]


def test_fault_is_reported_although_a_later_layer_covers_it(file: Path) -> None:
    (problem,) = problems_of(file, "data: {batch_size: x}", flags={"data.batch_size": 4})
    assert problem.startswith("FILE:1: data.batch_size")


def test_file_of_another_kind_does_not_fill_the_screen(file: Path) -> None:
    problems = problems_of(file, "".join(f"key{n}: {n}\n" for n in range(4000)))
    assert len(problems) == 101
    assert problems[-1] == "and perhaps more: these fill the list"


def test_long_value_is_shown_short(file: Path) -> None:
    numbers = "[" + "12345678, " * 5000 + "]"
    for section in ("data: {model_gpu: ", "data: {batch_size: ", "training: {grad_accum: "):
        (problem,) = problems_of(file, section + numbers + "}")
        assert len(problem) < 300


def test_endless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(ConfigError, match="larger than"):
        load_config(Path("/dev/zero"))


def test_aliases_of_aliases_do_not_multiply(file: Path) -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
        for old, new in zip("abcdefghi", "bcdefghij", strict=True)
    )
    assert len(problems_of(file, bomb + "data: {batch_size: *j}")) == 11


def test_section_with_a_tag_is_refused(file: Path) -> None:
    (problem,) = problems_of(file, "data: !!python/object:os.system {batch_size: 1}")
    assert problem.startswith("FILE:1: data: the tag")


def test_hostile_key_is_shown_short_and_on_one_line(file: Path) -> None:
    (problem,) = problems_of(file, '"a\\nb\\u001b[2J' + "x" * 2000 + '": 1')
    assert "\n" not in problem
    assert "\x1b" not in problem
    assert len(problem) < 300


yaml_texts = st.lists(
    st.sampled_from([*"\n\t :-[]{}&*!|>'\"%@`,?#~<", "  ", "data", "train", "a", "1", ": ", "- "])
    | st.characters(),
    max_size=30,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(yaml_texts)
def test_no_text_in_a_file_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert re.fullmatch(r"loads|[1-9][0-9]* problems?", outcome(file))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("data: {btach_size: 1}", "data.batch_size"),
        ("batch_size: 1", "data.batch_size"),
        ("data: {lr: 1}", "training.lr"),
        ("trainning: {}", "training"),
        ("model: {gpt: {with: 1}}", "model.gpt.width"),
        ("data: {Batch_Size: 1}", "data.batch_size"),
        ("presets: 24gb", "preset"),
    ],
)
def test_unknown_key_names_the_nearest_known_key(file: Path, text: str, meant: str) -> None:
    (problem,) = problems_of(file, text)
    assert problem.endswith(f"unknown key; did you mean {meant}?")


def test_key_like_no_other_names_the_sections(file: Path) -> None:
    (problem,) = problems_of(file, "zzzzzzzzzz: 1")
    assert problem.endswith(
        "the sections are data, text, devices, pipeline, model, training, stages, telemetry"
    )


@pytest.mark.parametrize("key", GUIDE_KEYS)
def test_refused_guide_key_names_its_line_and_a_replacement_that_loads(
    file: Path, key: str
) -> None:
    section, _, name = key.rpartition(".")
    words = {"model_size": "tiny", "train_data": "clips", "val_data": "clips"}
    value = words.get(name, "true" if name.startswith("enable") else "1")
    (problem,) = problems_of(file, f"{section}:\n  {name}: {value}\n")
    assert problem.startswith(f"FILE:2: {key}: ")
    replacement = re.search(r"write `(.*)` under `(.*):`$", problem)
    file.write_text(f"{replacement[2]}:\n  {replacement[1]}\n" if replacement else "")
    assert isinstance(load_config(file), Config)
    assert replacement or problem.endswith("; delete the line")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data.use_tf_native_loading", True),
        ("data.prefetch_to_gpu", True),
        ("data.num_workers", 24),
        ("data.prefetch_buffer_size", 32),
        ("data.batch_size", 16),
        ("training.gradient_accumulation_steps", 2),
    ],
)
def test_guide_key_that_stayed_is_read(file: Path, key: str, value: object) -> None:
    section, name = key.split(".")
    file.write_text(yaml.safe_dump({section: {name: value}}))
    assert value_at(load_config(file), key) == value


def test_guide_key_without_its_section_is_still_recognised(file: Path) -> None:
    text = "use_tf_native_loading: true\nenable_graph_mode: true\nenable_xla_compilation: true\n"
    native, graph, xla = problems_of(file, text)
    assert native.endswith("did you mean data.use_tf_native_loading?")
    assert graph.endswith("write `compile: graph` under `training:`")
    assert "`compile: auto`" in xla


def test_refused_gpu_key_repeats_the_value_it_had(file: Path) -> None:
    (problem,) = problems_of(file, "data: {model_gpu: [1, 2]}")
    assert problem.endswith("write `model_gpu: [1, 2]` under `devices:`")
