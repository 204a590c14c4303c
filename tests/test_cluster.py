"""What TF_CONFIG says of the machines, and what is refused before one of them waits for another."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from myxtts.config import load_config
from myxtts.devices import Cluster, read_cluster
from myxtts.errors import UserError
from myxtts.pipeline import Team
from myxtts.train.abreast import agreed_folder, check_settings
from myxtts.train.resume import GoingOn

HERE, THERE = "10.0.0.1:2222", "10.0.0.2:2222"
TWO = Cluster((HERE, THERE), 1)


def tf_config(cluster: Any, task: Any) -> str:
    return json.dumps({"cluster": cluster, "task": task})


def worker(index: Any) -> dict[str, Any]:
    return {"type": "worker", "index": index}


def test_workers_are_numbered_behind_the_chief() -> None:
    both = {"worker": [THERE], "chief": [HERE]}
    assert read_cluster(tf_config(both, worker(0))) == TWO
    assert read_cluster(tf_config({"worker": [HERE, THERE]}, worker(1))) == TWO


@pytest.mark.parametrize("text", ["", "{}", tf_config({"worker": [HERE]}, worker(0))])
def test_one_machine_is_no_cluster(text: str) -> None:
    assert read_cluster(text) is None


REFUSED = {
    "is not JSON": "{worker",
    "is not an object": "[1]",
    "jobs are chief and worker": tf_config({"ps": [HERE], "worker": [THERE]}, worker(0)),
    "not all HOST:PORT": tf_config({"worker": ["10.0.0.1", THERE]}, worker(0)),
    "an address twice": tf_config({"worker": [HERE, HERE]}, worker(0)),
    "two chiefs": tf_config({"chief": [HERE, THERE]}, {"type": "chief", "index": 0}),
    "worker 2 is not in the cluster": tf_config({"worker": [HERE, THERE]}, worker(2)),
    "the task None None is not": tf_config({"worker": [HERE, THERE]}, {}),
}


@pytest.mark.parametrize("problem", REFUSED)
def test_a_wrong_tf_config_is_told_with_a_right_one(problem: str) -> None:
    with pytest.raises(UserError, match=problem) as raised:
        read_cluster(REFUSED[problem])
    assert "10.0.0.1:2222" in raised.value.remedy


class Hearing(Team):
    """A worker whose chief says what it is told to."""

    def __init__(self, heard: str) -> None:
        super().__init__(TWO)
        self._heard = heard

    def told(self, text: str) -> str:
        del text
        return self._heard

    def any(self, *, flag: bool) -> bool:
        return flag


def saying(**flags: Any) -> Hearing:
    return Hearing(load_config(flags=dotted(flags)).model_dump_json())


def dotted(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "."): value for name, value in flags.items()}


def test_other_settings_than_the_chiefs_are_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"training\.lr is 0\.1 here and None there"):
        check_settings(load_config(flags={"training.lr": 0.1}), saying())


def test_devices_and_folders_are_each_machines_own() -> None:
    team = saying(data__train="/one", pipeline__depth=2, devices__emulate=2)
    check_settings(load_config(flags={"data.train": "/two", "pipeline.depth": 5}), team)
    with pytest.raises(UserError, match="replay_share"):
        check_settings(load_config(flags={"data.replay_share": 0.5}), team)


def test_a_worker_takes_the_chiefs_folder_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "run 7").mkdir()
    team = Hearing("run 7")
    assert agreed_folder(None, Path, tmp_path, team) == tmp_path / "run 7"
    with pytest.raises(UserError, match=r"goes on with .*run 6, and the chief with run 7"):
        agreed_folder(GoingOn(tmp_path / "run 6"), Path, tmp_path, team)


def test_a_folder_that_the_disk_does_not_show_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("myxtts.train.abreast.APPEAR_SECONDS", 0.0)
    with pytest.raises(UserError, match="worker 1 sees no") as raised:
        agreed_folder(None, Path, tmp_path, Hearing("run 8"))
    assert "a disk that all machines share" in raised.value.remedy
