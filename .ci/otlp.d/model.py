"""A model's API on loopback: it first asks for two calls, then answers. Writes its port to the file that is named."""

import http.server
import json
import os
import sys

CALLS = [
    {"type": "tool_use", "id": "a0", "name": "look", "input": {}},
    {"type": "tool_use", "id": "a1", "name": "fail", "input": {}},
]


class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_first = len(request["messages"]) == 1
        content = CALLS if is_first else [{"type": "text", "text": "It is so."}]
        body = {
            "id": "msg_1" if is_first else "msg_2",
            "type": "message",
            "role": "assistant",
            "model": "model-1",
            "content": content,
            "stop_reason": "tool_use" if is_first else "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
with open("port.new", "w") as file:
    file.write(str(server.server_port))
os.rename("port.new", sys.argv[1])
server.serve_forever()
