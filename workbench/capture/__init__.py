"""Captures of real connections into traces: files, packets, TCP streams, frames, rows, a report.

Light to import: Arrow is loaded by the first capture that is read.
"""
