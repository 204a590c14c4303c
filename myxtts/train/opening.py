"""What a training says of its devices, and the wait until the first batches are ready."""

from myxtts.config import Config
from myxtts.devices import DevicePlan, Say
from myxtts.pipeline import Feed
from myxtts.reader import clips_on_data_device


def pipeline_lines(config: Config, plan: DevicePlan) -> list[str]:
    """The guides' lines on the pipeline and on the model's place."""
    if len(plan.devices) == 1 or plan.arrangement == "single":
        return [f"Single-device mode: data and model on {plan.data} and {plan.model}"]
    indices = ", ".join(str(index) for index in plan.model_indices)
    datas = ", ".join(str(index) for index in plan.data_indices)
    ahead = clips_on_data_device(config.data)
    return [
        "🚀 Intelligent GPU Pipeline: Multi-GPU Mode",
        f"   - Data Processing GPU: {datas}",
        f"   - Model Training GPU: {indices}",
        f"   - Prefetching to {', '.join(plan.datas)} with buffer_size={ahead}",
        f"🎯 Multi-GPU Mode: Model will be placed on {', '.join(plan.models)}",
        f"   (Original GPU {indices} is now mapped to {', '.join(d[1:] for d in plan.models)})",
        *(f"Creating model on device: {device}" for device in plan.models),
    ]


def wait_for_batches(ahead: Feed, config: Config, plan: DevicePlan, say: Say) -> None:
    """Lets the ring fill before the first step, at most `pipeline.model_start_delay` seconds."""
    delay = config.pipeline.model_start_delay
    if plan.apart:
        say(f"🕐 Multi-GPU Mode: Waiting {delay}s for data pipeline to warm up...")
    full = ahead.fill(delay)
    if not full:
        say(f"   only {ahead.waiting} of {ahead.depth} batches are ready after {delay} s")
    say("✅ Model training starting now")
