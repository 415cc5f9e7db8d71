"""Asks Phoenix for its spans until they are the tree that an agent's run has: check_tree.py URL."""

import json
import sys
import time
import urllib.request

WANTED = """\
toolq
  execute_tool expert
    invoke_agent expert 220 tokens
      chat model-1 110 tokens
      chat model-1 110 tokens
      execute_tool fail ERROR failed
      execute_tool look
"""


def fetch_spans(url):
    with urllib.request.urlopen(f"{url}/v1/projects/default/spans?limit=100") as response:
        return json.load(response)["data"]


def tree(spans, parent=None, depth=0):
    lines = []
    children = [span for span in spans if (span["parent_id"] or None) == parent]
    for span in sorted(children, key=lambda span: span["name"]):
        attributes = span["attributes"]
        words = [span["name"]]
        usage = [attributes.get(f"gen_ai.usage.{kind}_tokens") for kind in ("input", "output")]
        if None not in usage:
            words.append(f"{sum(usage)} tokens")
        if span["status_code"] == "ERROR":
            words += ["ERROR", attributes["error.type"]]
        lines.append("  " * depth + " ".join(words) + "\n")
        lines += tree(spans, span["context"]["span_id"], depth + 1)
    return lines


url = sys.argv[1]
seen = ""
# Phoenix stores spans some time after it took them.
for _ in range(150):
    try:
        spans = fetch_spans(url)
        seen = "".join(tree(spans))
    except urllib.error.HTTPError as error:
        seen = f"{error}\n"
    if seen == WANTED:
        print(f"Phoenix shows the tree:\n{seen}", end="")
        sys.exit(0)
    time.sleep(0.2)
sys.exit(f"Phoenix shows another tree:\n{seen}and not\n{WANTED}")
