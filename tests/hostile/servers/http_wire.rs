//! The server's side of streamable HTTP, and what a decent server does.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::servers::script::HttpScript;
use crate::servers::wire::{Request, discovery, initialization, tools};

/// A connection.
pub struct HttpWire {
    script: HttpScript,
    dir: PathBuf,
    pub stream: TcpStream,
    reader: BufReader<TcpStream>,
    /// The headers of the current request.
    pub headers: HashMap<String, String>,
    /// How many requests for calls the server got before, on all connections.
    pub earlier_calls: usize,
    counter: Arc<AtomicUsize>,
}

/// Starts a server that serves until the test ends. Returns its address.
pub fn start_endpoint(script: HttpScript, dir: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (dir, counter) = (dir.to_owned(), Arc::new(AtomicUsize::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reader = BufReader::new(stream.try_clone().unwrap());
            let mut wire = HttpWire {
                script,
                dir: dir.clone(),
                stream,
                reader,
                headers: HashMap::new(),
                earlier_calls: 0,
                counter: Arc::clone(&counter),
            };
            // The client may end the connection at any time.
            thread::spawn(move || drop(wire.serve()));
        }
    });
    url
}

impl HttpWire {
    fn serve(&mut self) -> io::Result<()> {
        while let Some((http_method, request)) = self.read()? {
            let script = self.script;
            let action = match (http_method.as_str(), request.method()) {
                ("GET", _) => script.on_get,
                ("POST", "server/discover" | "initialize") => script.on_handshake,
                ("POST", "tools/list") => script.on_list,
                ("POST", "tools/call") if request.tool() == "act" => {
                    self.earlier_calls = self.counter.fetch_add(1, Ordering::SeqCst);
                    script.on_call
                }
                ("POST", "tools/call") => Self::answer_call,
                _ => |wire: &mut Self, _: &Request| wire.respond("202 Accepted", ""),
            };
            action(self, &request);
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<Option<(String, Request)>> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let http_method = line.split(' ').next().unwrap_or_default().to_owned();
        self.headers.clear();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            self.headers
                .insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = self
            .headers
            .get("content-length")
            .and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.reader.read_exact(&mut body)?;
        let message = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Some((http_method, Request(message))))
    }

    /// Writes bytes, even if the client has closed the connection. Returns whether the write succeeded.
    pub fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Ends the connection after these bytes.
    pub fn break_off(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Sends nothing more until the client ends the connection.
    pub fn hang(&mut self) {
        let _ = self.reader.read(&mut [0]);
    }

    /// Responds with a status, with further lines of the head, and a body.
    pub fn respond(&mut self, head: &str, body: &str) {
        let length = body.len();
        let response = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
        self.bytes(response.as_bytes());
    }

    /// Responds with a stream of events that ends after them.
    pub fn stream_events(&mut self, events: &str) {
        let length = events.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.bytes(format!("{head}{length:x}\r\n{events}\r\n0\r\n\r\n").as_bytes());
    }

    pub fn answer(&mut self, request: &Request, result: Value) {
        let body = self.answer_text(request, result);
        self.respond("200 OK\r\ncontent-type: application/json", &body);
    }

    /// Returns an answer.
    pub fn answer_text(&self, request: &Request, mut result: Value) -> String {
        if self.script.is_modern {
            result["resultType"] = json!("complete");
        }
        json!({"jsonrpc": "2.0", "id": request.id(), "result": result}).to_string()
    }

    /// Returns the answer to a call.
    pub fn text_of(&self, call: &Request) -> String {
        self.answer_text(call, call.result())
    }

    pub fn refuse(&mut self, status: &str, request: &Request, code: i64, message: &str) {
        let error = json!({"jsonrpc": "2.0", "id": request.id(), "error": {"code": code, "message": message}});
        self.respond(
            &format!("{status}\r\ncontent-type: application/json"),
            &error.to_string(),
        );
    }

    pub fn answer_handshake(&mut self, request: &Request) {
        match (request.method(), self.script.is_modern) {
            ("server/discover", true) => self.answer(request, discovery()),
            ("initialize", false) => self.answer(request, initialization("2025-11-25")),
            _ => self.refuse("400 Bad Request", request, -32601, "Method not found"),
        }
    }

    pub fn answer_list(&mut self, request: &Request) {
        self.answer(request, json!({ "tools": tools() }));
    }

    /// Does what the call asks for, and answers it.
    pub fn answer_call(&mut self, request: &Request) {
        self.apply(request);
        self.answer(request, request.result());
    }

    pub fn refuse_get(&mut self, _: &Request) {
        self.respond("405 Method Not Allowed", "");
    }

    /// Does what the call asks for: adds a line to a file.
    pub fn apply(&self, call: &Request) {
        if call.has_effect() {
            let path = self.dir.join("effects");
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .unwrap();
            file.write_all(format!("{}\n", call.text()).as_bytes())
                .unwrap();
        }
    }
}
