"""Codes of clips, kept on the disk: what a frozen codec says of a clip is computed once."""

from myxtts.cache.maker import cache_folder, maker_of
from myxtts.cache.store import CacheError, CodeCache, Key, open_cache

__all__ = ["CacheError", "CodeCache", "Key", "cache_folder", "maker_of", "open_cache"]
