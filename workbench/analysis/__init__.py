"""Questions about traces of any size, answered by PySpark.

`session` starts Spark, `reading` opens a trace, `ingest` makes traces of captures. A question is
the function of a module with its name (`stalls.stalls`): it gives a transformer, `DataFrame` to
`DataFrame`, with named schemas at both ends (`schemas`). The other modules are steps of several
questions. Nothing here is imported before somebody asks: `import workbench` starts no Java.
"""
