"""Synthetic English and Persian speech, to try out the whole way from clips to a voice."""

from myxtts.demo_corpus.corpus import CLIPS, make_corpus

__all__ = ["CLIPS", "make_corpus"]
