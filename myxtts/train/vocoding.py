"""What a stage needs before it begins: the parts that it goes on from, and clips of some length."""

from myxtts.audio import CODEC_HZ
from myxtts.clips import Part
from myxtts.config import Config
from myxtts.devices import Say
from myxtts.errors import UserError
from myxtts.train.resume import MODEL, GoingOn

NEEDED = {"gpt": ("codec",), "vocoder": ("codec", "gpt")}
"""Parts that are frozen while a stage learns."""
STAGE_OF = {"codec": "dvae", "gpt": "gpt"}


def check_needed(config: Config, going_on: GoingOn | None) -> None:
    """Raises where a stage is asked for whose other parts are not finished yet."""
    stage, start = config.training.stage, config.training.start_from
    where = going_on.folder / MODEL if going_on else start
    parts = NEEDED.get(stage or "", ())
    missing = [p for p in parts if where is None or not (where / f"{p}.safetensors").is_file()]
    if not missing:
        return
    both = " and ".join(missing)
    problem = f"--stage {stage} needs a finished {both}"
    found = f", and {where} has none" if where else ", and no model is named"
    raise UserError(problem + found, _remedy(stage or "", missing, going_on))


def _remedy(stage: str, missing: list[str], going_on: GoingOn | None) -> str:
    """In the run that goes on the missing stages can be trained; else a model may have them."""
    if going_on:
        commands = [
            f"myxtts train --resume {going_on.folder} --stage {STAGE_OF[part]}" for part in missing
        ]
        return "\n".join(["train what is missing first, with the same settings:", *commands])
    parts = " and ".join(NEEDED[stage])
    return (
        f"train in a run that has them: --resume RUN --stage {stage}\n"
        f"or name a model's folder with {parts}: --start-from FOLDER --stage {stage}\n"
        "neither is there yet? `myxtts train` without --stage trains codec and gpt"
    )


def long_enough(parts: tuple[Part, Part], samples: int, say: Say) -> tuple[Part, Part]:
    """Without the clips that are shorter than a piece: nothing could be cut out of them."""
    train, judging = (part.of_at_least(samples) for part in parts)
    for part, kept in zip(parts, (train, judging), strict=True):
        if short := len(part.rows) - len(kept.rows):
            say(
                f"{short} of {len(part.rows)} clips of {part.name} are shorter than "
                f"{samples / CODEC_HZ:.2f} s, a piece of stages.vocoder.window: they are left out"
            )
        if len(part.rows) and not len(kept.rows):
            raise UserError(
                f"no clip of {part.name} has {samples / CODEC_HZ:.2f} s",
                "shorter pieces: stages.vocoder.window=8; or longer clips",
            )
    return train, judging
