# Builds rows, writes them as JSON, reads them back and compares. SIZE: how many.
import json
import sys

rows = [{"id": i, "name": "row %d" % i, "tags": ["a", "b", str(i % 7)], "value": i / 3}
        for i in range(int(sys.argv[1]))]
text = json.dumps(rows)
again = json.loads(text)
assert again == rows
print(len(text), sum(len(row["tags"]) for row in again))
