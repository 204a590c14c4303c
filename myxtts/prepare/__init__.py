"""A folder of recordings and their texts → shards, a manifest, and a verdict on every clip."""

from myxtts.prepare.check import check_prepared
from myxtts.prepare.court import CharacterSet, Vocabulary
from myxtts.prepare.detect import FORMATS, Source, recognise
from myxtts.prepare.job import RATE, Order, prepare
from myxtts.prepare.report import REFUSED, SUSPECTS

__all__ = [
    "FORMATS",
    "RATE",
    "REFUSED",
    "SUSPECTS",
    "CharacterSet",
    "Order",
    "Source",
    "Vocabulary",
    "check_prepared",
    "prepare",
    "recognise",
]
