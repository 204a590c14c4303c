"""Clips on disk to batches on the data device, in TensorFlow's own threads."""

from myxtts.reader.feed import ReadAhead, Reader, clips_on_data_device, read_ahead, read_batches
from myxtts.reader.mapping import MappingError
from myxtts.reader.rows import Codes, Texts
from myxtts.reader.shards import Clips, ShardSource
from myxtts.reader.source import Source, open_source
from myxtts.reader.wavs import NativeLoadingError, Wavs, WavSource, list_wavs

__all__ = [
    "Clips",
    "Codes",
    "MappingError",
    "NativeLoadingError",
    "ReadAhead",
    "Reader",
    "ShardSource",
    "Source",
    "Texts",
    "WavSource",
    "Wavs",
    "clips_on_data_device",
    "list_wavs",
    "open_source",
    "read_ahead",
    "read_batches",
]
