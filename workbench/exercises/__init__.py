"""Predictions, checks and progress: what makes a lesson more than something to look at.

Answers are in no notebook and in no module: a question is answered by looking at a run, and so is
the learner's answer. `question` holds the model, `predict` the widget, `checks` what checks share;
what the lessons ask stands in `workbench.lessons`.
"""
