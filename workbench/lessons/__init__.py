"""Lessons as data: `languages` holds the words, `lesson_NN.py` what a run says to them.

`table` reads what every lesson is about, `declare` makes questions of words and facts. The
machinery that asks, compares and records is `workbench.exercises`.
"""
