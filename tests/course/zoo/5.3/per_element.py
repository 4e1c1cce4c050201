"""what belongs to the row is computed for each element"""

right = emit_rows


def emit_rows(graph):
    lines, of_row = [], []
    for line in right(graph).splitlines():
        lines.append(line)
        if line.startswith("        t") and not line.endswith((" = 0.0", " = -inf")):
            of_row.append(line)
        if line == "        for j in range(n):":
            lines += ["    " + one for one in of_row]
    return "\n".join(lines)
