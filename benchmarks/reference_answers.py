"""Run by the reference's own Python: loads what we exported into its classes, and answers.

    REF/bin/python reference_answers.py FOLDER

In FOLDER lie `exported` (by `myxtts export --pth`), `safetensors` (by `myxtts export`), given.json
and given.safetensors. Everything is loaded strictly: a name or a shape that is not the
reference's own ends it. Writes answers.safetensors, and what torch itself saves to `saved`.
"""

import json
import shutil
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

torch: Any = import_module("torch")
files: Any = import_module("safetensors.torch")

RATE = 22050


def main() -> None:
    """All answers by name."""
    folder = Path(sys.argv[1])
    given = files.load_file(folder / "given.safetensors")
    facts = json.loads((folder / "given.json").read_text(encoding="utf-8"))
    model = load_model(folder / "exported")
    dvae = load_dvae(folder / "exported", facts["codec"])
    compare_forms(folder)
    save(model, dvae, folder / "saved", folder / "exported")
    with torch.inference_mode():
        answers = {
            **train(model.gpt, given),
            **hear(model, dvae, given, facts),
            **speak(model, given, facts),
        }
    ready = {name: answer.contiguous().clone() for name, answer in answers.items()}
    files.save_file(ready, folder / "answers.safetensors")


def load_model(folder: Path) -> Any:
    """The class that speaks, with all its weights."""
    module = import_module("TTS.tts.models.xtts")
    config = import_module("TTS.tts.configs.xtts_config").XttsConfig()
    config.load_json(str(folder / "config.json"))
    model = module.Xtts(config)
    model.load_checkpoint(config, checkpoint_dir=str(folder), eval=True, strict=True)
    return model


def load_dvae(folder: Path, sizes: dict[str, int]) -> Any:
    """The codec with the released one's options."""
    dvae = import_module("TTS.tts.layers.xtts.dvae").DiscreteVAE(
        channels=80,
        normalization=None,
        positional_dims=1,
        num_tokens=sizes["codes"],
        codebook_dim=sizes["code_width"],
        hidden_dim=sizes["width"],
        num_resnet_blocks=sizes["residual_blocks"],
        kernel_size=3,
        num_layers=2,
        use_transposed_convs=False,
    )
    dvae.load_state_dict(torch.load(folder / "dvae.pth", weights_only=True), strict=True)
    return dvae.eval()


def compare_forms(folder: Path) -> None:
    """Both forms of an export hold the same bits."""
    for stem in ("model", "dvae"):
        ours = files.load_file(folder / "safetensors" / f"{stem}.safetensors")
        loaded = torch.load(folder / "exported" / f"{stem}.pth", weights_only=True)
        loaded = loaded.get("model", loaded)
        unlike = [n for n in ours.keys() | loaded.keys() if not same(ours.get(n), loaded.get(n))]
        if unlike:
            sys.exit(f"{stem}.safetensors and {stem}.pth differ in {', '.join(sorted(unlike)[:5])}")


def same(one: Any, other: Any) -> bool:
    """Two tensors of the same kind, shape and bits."""
    there = one is not None and other is not None
    return bool(there and one.dtype == other.dtype and torch.equal(one, other))


def save(model: Any, dvae: Any, folder: Path, exported: Path) -> None:
    """What the reference writes of the same model, by torch itself."""
    folder.mkdir()
    kept = {n: v for n, v in model.state_dict().items() if not n.startswith("gpt.gpt_inference.")}
    kept.pop("gpt.gpt.wte.weight", None)
    torch.save({"model": kept}, folder / "model.pth")
    torch.save(dvae.state_dict(), folder / "dvae.pth")
    torch.save(model.mel_stats, folder / "mel_stats.pth")
    for name in ("config.json", "vocab.json"):
        shutil.copyfile(exported / name, folder / name)


def train(gpt: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Losses and logits of a padded batch, without dropout."""
    heard: dict[str, Any] = {}
    hook = gpt.text_head.register_forward_hook(lambda _module, _in, out: heard.update(text=out))
    clips = [given[name].clone() for name in ("text", "text_lengths", "codes", "samples")]
    loss_text, loss_mel, logits = gpt(*clips, cond_mels=given["mel"])
    hook.remove()
    return {
        "loss, text": loss_text,
        "loss, audio": loss_mel,
        "logits, text": heard["text"],
        "logits, audio": logits.transpose(1, 2),
    }


def hear(model: Any, dvae: Any, given: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """What becomes of a recording: latents, a speaker vector, codes."""
    dvae_wav_to_mel = import_module("TTS.tts.layers.xtts.dvae").dvae_wav_to_mel
    mel = dvae_wav_to_mel(given["wave"], mel_norms=model.mel_stats)
    codes = dvae.get_codebook_indices(mel)
    seconds = facts["chunk_seconds"]
    return {
        "conditioning latents": model.get_gpt_cond_latents(
            given["wave"], RATE, length=30, chunk_length=seconds
        ),
        "speaker vector": model.get_speaker_embedding(given["wave"], RATE)[..., 0],
        "DVAE mel": mel.transpose(1, 2),
        "DVAE codes": codes,
        "DVAE mel of codes": dvae.decode(codes)[0].transpose(1, 2),
    }


def speak(model: Any, given: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Codes, latents and sound, part by part and by `inference`, which does all of it."""
    gpt, voice, speaker = model.gpt, given["voice"], given["speaker"][..., None]
    gpt.max_gen_mel_tokens = facts["codes"]
    greedy = {"do_sample": False, "num_beams": 1}
    penalised = {**greedy, "repetition_penalty": facts["penalty"]}
    ids = torch.tensor([model.tokenizer.encode(facts["words"], lang="en")], dtype=torch.int32)
    codes = gpt.generate(voice, ids, **greedy)
    lengths = [torch.tensor([ids.shape[1]]), torch.tensor([codes.shape[1] * 1024])]
    latents = gpt(ids, lengths[0], codes, lengths[1], cond_latents=voice, return_latent=True)
    whole = model.inference(facts["words"], "en", voice, speaker, **penalised)
    return {
        "text ids": ids,
        "greedy codes": codes,
        "greedy latents": latents,
        "penalised codes": gpt.generate(voice, ids, **penalised),
        "sound of latents": model.hifigan_decoder(given["latents"], g=speaker)[:, 0],
        "sound of words": torch.from_numpy(whole["wav"])[None],
    }


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
