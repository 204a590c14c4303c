"""Layers in order, presets and sizes, and settings written down and read again."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.config import (
    PRESETS,
    SIZES,
    Config,
    ConfigError,
    DataConfig,
    DevicesConfig,
    GptConfig,
    ModelConfig,
    TrainingConfig,
    differences,
    json_schema,
    load_config,
    to_yaml,
)
from myxtts.config.settings import leaves, sections


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.yaml"


def problems_of(file: Path, text: str | bytes, **layers: Any) -> tuple[str, ...]:
    """The problems that loading this text reports, with FILE for the file's name."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(file, **layers)
    return tuple(line.replace(str(file), "FILE") for line in caught.value.problems)


def override_problem(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(overrides=overrides)
    (problem,) = caught.value.problems
    return problem


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


def test_each_layer_beats_the_ones_before(file: Path) -> None:
    key = "data.batch_size"
    assert load_config().data.batch_size == 16
    assert load_config(preset="rtx-4090").data.batch_size == 32
    file.write_text("data: {batch_size: 5}")
    assert load_config(file, preset="rtx-4090").data.batch_size == 5
    assert load_config(file, preset="rtx-4090", flags={key: 6}).data.batch_size == 6
    last = load_config(file, preset="rtx-4090", flags={key: 6}, overrides=[f"{key}=7"])
    assert last.data.batch_size == 7


def test_explicit_key_beats_a_preset_named_in_any_layer(file: Path) -> None:
    file.write_text("preset: rtx-4090\ndata: {batch_size: 5}")
    assert load_config(file).data.batch_size == 5
    file.write_text("data: {batch_size: 5}")
    for config in (
        load_config(file, preset="rtx-4090"),
        load_config(file, flags={"preset": "rtx-4090"}),
        load_config(file, overrides=["preset=rtx-4090"]),
    ):
        assert (config.data.batch_size, config.data.num_workers) == (5, 24)


def test_explicit_model_number_beats_the_size_of_any_layer(file: Path) -> None:
    file.write_text("model: {size: big, gpt: {layers: 2}}")
    assert load_config(file).model.gpt == GptConfig(layers=2, width=1024, heads=16)
    gpt = load_config(file, size="tiny").model.gpt
    assert gpt == GptConfig(layers=2, width=256, heads=4)


def test_preset_on_the_command_line_replaces_the_files_preset(file: Path) -> None:
    file.write_text("preset: rtx-4090")
    data = load_config(file, preset="low-memory").data
    assert data == DataConfig(batch_size=16, buffer_size=25)


def test_size_asked_for_beats_the_presets_size() -> None:
    assert load_config(preset="rtx-4090-tiny").model == ModelConfig(size="tiny")
    assert load_config(preset="rtx-4090-tiny", size="small").model == ModelConfig(size="small")


def test_flag_that_is_none_was_not_given(file: Path) -> None:
    file.write_text("data: {batch_size: 5}")
    config = load_config(file, flags={"data.batch_size": None, "training.epochs": None})
    assert config == Config(data=DataConfig(batch_size=5))


def test_size_that_a_complete_file_leaves_without_effect_is_refused(file: Path) -> None:
    file.write_text(to_yaml(Config(model=ModelConfig(size="small"))))
    assert load_config(file, size="small").model.size == "small"
    with pytest.raises(ConfigError, match=r"--model-size: model\.size: changes nothing"):
        load_config(file, size="tiny")


def test_preset_that_a_complete_file_leaves_without_effect_is_refused(file: Path) -> None:
    file.write_text(to_yaml(Config()))
    with pytest.raises(
        ConfigError, match=r"take data\.batch_size, data\.num_workers, .* out of the file"
    ):
        load_config(file, preset="rtx-3060")


def test_override_value_is_text_not_yaml_syntax() -> None:
    for text in ("/a #b", "/a: b", "{x}", "&a", "*b", "!c", "a=b", "@d", "%e", "سلام"):
        assert load_config(overrides=[f"data.train={text}"]).data.train == Path(text)


def test_override_with_no_value_takes_a_setting_back(file: Path) -> None:
    file.write_text("data: {train: a}\ntraining: {max_steps: 5}")
    config = load_config(file, overrides=["data.train=", "training.max_steps = null"])
    assert config == Config()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("=1", "needs a key and a value"),
        ("training.lr", "needs a key and a value"),
        ("", "needs a key and a value"),
        ("data=5", "data: is a section"),
        ("data=", "data: is a section"),
        ("a.b.c.d=1", "unknown key"),
        ("data.batch_size.x=1", "did you mean data.batch_size?"),
        (".data.batch_size=1", "did you mean data.batch_size?"),
        ("data.batch_size=", "data.batch_size: got nothing"),
        ("data.batch_size=-1", "got -1"),
        ("data.batch_size='3'", "write data.batch_size=3"),
        ("data.batch_size=" + "9" * 5000, "a number of 5000 characters"),
        ("data.train=[", "data.train: "),
        ("data.train='x", "data.train: "),
        ("data.train=[[1]]", "holds single values only"),
        ("training.enable_graph_mode=true", "write `compile: graph` under `training:`"),
        ("preset=24g", "did you mean 24gb?"),
        ("preset=3", "no preset is called 3"),
        ("__class__=1", "unknown key"),
        ("model.size=huge", "takes tiny, small, normal or big"),
        ("devices.model_gpu=۱", "got the text '۱'"),
    ],
)
def test_faulty_override_names_itself_in_one_line(override: str, said: str) -> None:
    problem = override_problem(override)
    assert problem.startswith("override ")
    assert said in problem
    assert "\n" not in problem


def test_faulty_flag_is_named_as_it_was_typed() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(size="huge", preset="25gb", flags={"data.num_workers": 0, "data.x": 1})
    starts = [line.split(": ")[0] for line in caught.value.problems]
    assert starts == ["--model-size", "--num-workers", "the flag for data.x", "--preset"]


@settings(max_examples=300, deadline=None)
@given(st.text(), st.text())
def test_no_override_ends_in_a_traceback(key: str, value: str) -> None:
    assert outcome(overrides=[f"{key}={value}"]) in {"loads", "1 problem"}


paths = st.none() | st.text(min_size=1).filter(lambda text: "\0" not in text).map(Path).filter(
    lambda path: path.parts[:1] != ("~",)
)
gpus = st.none() | st.lists(st.integers(-9, 99), min_size=1, max_size=4).map(tuple)
memory = st.integers(1, 2**31 - 1) | st.just("auto")
configs = st.builds(
    Config,
    data=st.builds(DataConfig, train=paths, val=paths, batch_size=st.integers(1, 2**31 - 1)),
    devices=st.builds(DevicesConfig, model_gpu=gpus, data_gpu_memory=memory),
    model=st.sampled_from([ModelConfig(size="tiny"), ModelConfig(gpt=GptConfig(layers=1))]),
    training=st.builds(
        TrainingConfig,
        lr=st.floats(1e-300, 1),
        max_steps=st.none() | st.integers(1, 100),
        recompute=st.booleans(),
    ),
)


@settings(max_examples=200, deadline=None)
@given(configs)
def test_every_config_survives_yaml_unchanged(
    tmp_path_factory: pytest.TempPathFactory, config: Config
) -> None:
    file = tmp_path_factory.getbasetemp() / "round.yaml"
    file.write_text(to_yaml(config), encoding="utf-8")
    assert load_config(file) == config


@pytest.mark.parametrize(
    "name", ["no", "null", "1e-4", "0o17", "007", "1_0", "~x", "-", "a: b", "\x85", "a\u2028b\n"]
)
def test_path_that_looks_like_something_else_survives_yaml(file: Path, name: str) -> None:
    config = Config(data=DataConfig(train=Path(name)))
    file.write_text(to_yaml(config))
    assert load_config(file) == config
    assert yaml.safe_load(to_yaml(config))["data"]["train"] == name


def test_differences_name_key_and_both_values() -> None:
    other = load_config(overrides=["data.batch_size=8", "devices.model_gpu=1,2"])
    assert differences(Config(), Config()) == []
    assert differences(Config(), other) == [
        "data.batch_size: 16 → 8",
        "devices.model_gpu: null → [1, 2]",
    ]


def test_schema_carries_the_words_limits_and_presets() -> None:
    schema = json_schema()
    batch = schema["$defs"]["DataConfig"]["properties"]["batch_size"]
    assert batch["description"] == "Clips in one step of each model device."
    assert (batch["minimum"], batch["default"]) == (1, 16)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["preset"]["enum"] == sorted(PRESETS)


def test_every_setting_and_section_says_what_it_is() -> None:
    silent = [key for key, field in leaves().items() if not (field.description or "").endswith(".")]
    assert silent == []
    assert all(section.__doc__ for section in sections().values())


@pytest.mark.parametrize("name", PRESETS)
def test_preset_loads_with_exactly_its_own_values(name: str) -> None:
    config = load_config(preset=name)
    assert {key: value_at(config, key) for key in PRESETS[name]} == PRESETS[name]
    size = "tiny" if "tiny" in name else "normal"
    changed = {line.split(":")[0] for line in differences(load_config(size=size), config)}
    assert changed <= set(PRESETS[name])


def test_only_presets_whose_guide_command_isolates_turn_isolation_on() -> None:
    isolated = {name for name in PRESETS if load_config(preset=name).devices.memory_isolation}
    assert isolated == {"12-16gb-tiny", "rtx-4090-tiny"}


def test_unknown_preset_names_the_nearest_and_all(file: Path) -> None:
    (problem,) = problems_of(file, "preset: rtx4090")
    assert problem.startswith("FILE:1: preset: no preset is called rtx4090; did you mean rtx-4090?")
    assert all(name in problem for name in PRESETS)


@pytest.mark.parametrize(
    ("size", "shape"),
    [("tiny", (256, 6, 4)), ("small", (512, 8, 8)), ("normal", (768, 16, 12))],
)
def test_size_sets_width_layers_and_heads(size: str, shape: tuple[int, int, int]) -> None:
    gpt = load_config(size=size).model.gpt
    assert (gpt.width, gpt.layers, gpt.heads) == shape
    assert (gpt.text_tokens, gpt.audio_tokens) == (6681, 1026)


def test_big_is_the_released_xtts_v2() -> None:
    assert load_config(size="big").model.model_dump() == {
        "size": "big",
        "gpt": {
            "layers": 30,
            "width": 1024,
            "heads": 16,
            "text_tokens": 6681,
            "text_start": 261,
            "text_stop": 0,
            "max_text_tokens": 402,
            "audio_tokens": 1026,
            "max_audio_tokens": 605,
        },
        "codec": {"codes": 1024, "code_width": 512, "width": 512, "residual_blocks": 3},
        "vocoder": {
            "width": 512,
            "upsample_rates": (8, 8, 2, 2),
            "upsample_kernels": (16, 16, 4, 4),
            "residual_kernels": (3, 7, 11),
            "residual_dilations": (1, 3, 5),
        },
        "discriminator": {
            "periods": (2, 3, 5, 7, 11),
            "period_width": 32,
            "scales": 3,
            "scale_width": 128,
            "scale_groups": 16,
        },
        "speaker": {"width": 512, "filters": (32, 64, 128, 256), "blocks": (3, 4, 6, 3)},
    }


def test_sizes_grow_in_every_part() -> None:
    models = [load_config(size=size).model for size in SIZES]
    for key in ("gpt.width", "gpt.layers", "codec.width", "vocoder.width", "speaker.width"):
        values: list[Any] = [value_at(model, key) for model in models]
        assert values == sorted(values)
