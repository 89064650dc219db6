"""What a learner sees: JupyterLab and pages in Chromium."""
