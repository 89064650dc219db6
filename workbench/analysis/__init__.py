"""Questions about traces of any size, answered by PySpark.

`session` starts Spark, `reading` opens a trace, `ingest` makes traces of captures. Every other
module is one question: a function that gives a transformer, `DataFrame` to `DataFrame`, with named
schemas at both ends (`schemas`). Nothing here is imported before somebody asks: `import workbench`
starts no Java.
"""
