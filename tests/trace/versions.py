"""A trace of the first version, and what an earlier and a later one would have made of it."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

KEPT = Path(__file__).parent / "data" / "version_1.parquet"
"""A capture and a run of ours, as version 1 wrote them before anything was added to it."""

KEPT_DETAILS = KEPT.with_name("version_1_details.parquet")
"""A run with faults and a capture with a gap: in version 1, details stood in the column `frame`."""

LACKS = {"frame": {"more", "link_credit"}, "ledger": {"available"}, "clause": set(), "queue": set()}
"""What the earlier version lacks: fields of a struct, or a column."""


def more(table):
    """A table as a later version may write it: a column more, and a field more in each struct."""
    for name in ("frame", "ledger"):
        column = table.column(name).combine_chunks()
        inner = [pa.nulls(len(column), pa.list_(pa.float64())), *column.flatten()]
        names = ["later", *(field.name for field in column.type)]
        place = table.schema.get_field_index(name)
        struct = pa.StructArray.from_arrays(inner, names=names, mask=column.is_null())
        table = table.set_column(place, name, struct)
    table = table.add_column(0, "mood", pa.array([{"good": True}] * table.num_rows))
    return table.replace_schema_metadata({"workbench.trace.version": "1.7"})


def less(table):
    """A table of a version before some columns and fields were added."""
    for name, lacks in LACKS.items():
        place = table.schema.get_field_index(name)
        if not lacks:
            table = table.remove_column(place)
            continue
        column = table.column(name).combine_chunks()
        kept = [field.name for field in column.type if field.name not in lacks]
        inner = [pc.struct_field(column, each) for each in kept]
        struct = pa.StructArray.from_arrays(inner, names=kept, mask=column.is_null())
        table = table.set_column(place, name, struct)
    return table


def lacking(row):
    """What is left of a row in that version."""
    found = {name: getattr(row, name) for name in LACKS}
    for name, lacks in LACKS.items():
        if not lacks:
            found[name] = None
        elif found[name] is not None:
            found[name] = {key: one for key, one in found[name].items() if key not in lacks}
    return replace(row, **found)
