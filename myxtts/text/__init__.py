"""Transcripts into ids: cleaning, splitting, vocabularies. Imports no TensorFlow."""

from myxtts.text.audit import Audit, UnknownCharacter, audit
from myxtts.text.characters import described
from myxtts.text.cleaner import Cleaned, clean, clean_text
from myxtts.text.sentences import split_sentences
from myxtts.text.tokenizer import Tokenizer
from myxtts.text.training import extend_vocabulary, train_vocabulary
from myxtts.text.vocabulary import Vocabulary, read_vocabulary, write_vocabulary

__all__ = [
    "Audit",
    "Cleaned",
    "Tokenizer",
    "UnknownCharacter",
    "Vocabulary",
    "audit",
    "clean",
    "clean_text",
    "described",
    "extend_vocabulary",
    "read_vocabulary",
    "split_sentences",
    "train_vocabulary",
    "write_vocabulary",
]
