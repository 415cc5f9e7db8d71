"""Sends the messages of a file to an MCP server, each when the one before is answered: client.py MESSAGES COMMAND..."""

import json
import subprocess
import sys

server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for message in open(sys.argv[1]):
    print(">", message, end="", flush=True)
    server.stdin.write(message)
    server.stdin.flush()
    wanted = json.loads(message).get("id")
    while wanted is not None:
        answer = server.stdout.readline()
        if not answer:
            sys.exit("the server has ended")
        print("<", answer, end="", flush=True)
        if json.loads(answer).get("id") == wanted:
            break
server.stdin.close()
sys.exit(server.wait())
