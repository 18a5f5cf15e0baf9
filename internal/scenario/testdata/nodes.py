"""Writes nodes.json: what Python's own slicing selects for the node slices below.

python3 nodes.py > nodes.json
"""
import json

TEXTS = ["all", ":", "::", "0", "1", "-1", "-2", "5", "n-1", "n", "-n", "n/2", ":n", ":n-1", ":n/2", "n/2:", "1:", "0:", "1:3", "0:2",
         "-2:", ":-1", ":-2", "1:-1", "::2", "1::2", "::-1", "3::-1", ":1:-1", "-1:-3:-1", "5:1:-2", "::3", "::-2", "10:", ":10", "-10:",
         ":-10", "3:1", "0,1", "0, 2:4", "1,0", "0,0", ":2,1:3", "::-1,0", "0, 1, 2", "2*1", "n*2-1", "(n+1)/2", "(n-1)/2:n-1", "1+1",
         "-(1)", "--1", "+1", "n-n", "(n)", "((1))", "n/3:2*n/3", "-n/2:", "7/2", "-7/2", "1:n:n", "0:n:(n/2+1)", " 1 : 3 ", "n//2"]


def select(text, n):
    nodes = list(range(n))
    out = []
    for part in text.replace("all", ":").split(","):
        bounds = [eval(b.replace("/", "//").replace("////", "//"), {"n": n}) if b.strip() else None for b in part.split(":")]
        chosen = nodes[slice(*bounds)] if len(bounds) > 1 else [nodes[bounds[0]]]
        out += [i for i in chosen if i not in out]
    return out


def row(text, n):
    try:
        return {"text": text, "n": n, "nodes": select(text, n)}
    except Exception:
        return {"text": text, "n": n}


print("[\n" + ",\n".join(json.dumps(row(t, n)) for t in TEXTS for n in (0, 1, 2, 3, 4, 7)) + "\n]")
