"""Lessons as data: `lesson_NN.toml` holds the words, `lesson_NN.py` what a run says.

`table` reads what every lesson is about, `declare` makes questions of words and facts. The
machinery that asks, compares and records is `workbench.exercises`.
"""
