# The same two commands under the names that make users look for; all they do is in wb.py.
PYTHON ?= python3

.PHONY: lab test
lab:
	$(PYTHON) wb.py lab
test:
	$(PYTHON) wb.py test
