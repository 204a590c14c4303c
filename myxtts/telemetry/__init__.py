"""Spans, counters, memory and alarms of one run, as JSON lines."""
