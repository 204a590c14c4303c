"""Reads the released XTTS-v2 files, and writes them again under the same names."""
