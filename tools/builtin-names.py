#!/usr/bin/env python3
"""Makes the names of PostgreSQL's own functions, operators and types.

usage: tools/builtin-names.py BKI...

BKI is postgres.bki of an installation, one for each major version. Writes
extension/src/plans/builtin_functions.h, builtin_operators.h and builtin_types.h: lines
NAME(OID, "name"), sorted by OID. An OID that has different names in two versions is left out.
"""
import pathlib
import shlex
import sys

OUT = pathlib.Path(__file__).resolve().parent.parent / "extension/src/plans"
# types of functions that no query can call
INTERNAL = {32, 269, 325, 2275, 2279, 2280, 2281, 3115, 3310, 3838}
# types whose SQL name is not the name in the catalog
SQL_TYPES = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint",
    "float4": "real", "float8": "double precision", "varchar": "character varying",
    "varbit": "bit varying", "time": "time without time zone",
    "timetz": "time with time zone", "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}


def rows(path):
    """The catalog and the values of each row."""
    catalog = ""
    for line in path.read_text().splitlines():
        if line.startswith("create "):
            catalog = line.split()[1]
        elif line.startswith("insert "):
            yield catalog, shlex.split(line[line.index("(") + 1 : line.rindex(")")])


def is_called(values):
    """True if queries can call the function."""
    arguments = values[19].split()
    types = {int(values[18]), *map(int, arguments)}
    return not types & INTERNAL and not values[1].startswith(("pg_stat", "binary_upgrade"))


def type_name(name):
    """The type in SQL: an array type begins with an underscore."""
    if name.startswith("_"):
        return type_name(name[1:]) + "[]"
    return SQL_TYPES.get(name, name)


def collect(paths):
    """For each catalog, the names that each OID has in any version."""
    names = {"pg_operator": {}, "pg_proc": {}, "pg_type": {}}
    for path in paths:
        for catalog, values in rows(path):
            if catalog not in names or not values[0].isdigit():
                continue
            if catalog == "pg_proc" and not is_called(values):
                continue
            name = type_name(values[1]) if catalog == "pg_type" else values[1]
            names[catalog].setdefault(int(values[0]), set()).add(name)
    return names


def write(kind, names):
    """Writes one file, several names a line."""
    own = [f'NAME({oid}, "{min(n)}")' for oid, n in sorted(names.items()) if len(n) == 1 and oid < 10000]
    lines = [""]
    for entry in own:
        if len(lines[-1]) + len(entry) > 150:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + entry
    head = f"/* Made by tools/builtin-names.py: PostgreSQL's own {kind}, by OID. */\n"
    (OUT / f"builtin_{kind}.h").write_text(head + "\n".join(lines) + "\n")


def main():
    names = collect([pathlib.Path(path) for path in sys.argv[1:]])
    write("operators", names["pg_operator"])
    write("functions", names["pg_proc"])
    write("types", names["pg_type"])


main()
