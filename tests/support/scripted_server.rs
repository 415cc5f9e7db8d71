//! An MCP server over streamable HTTP on loopback, which speaks one era and does what the names of its tools say.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a test waits for something that should happen at once.
const DEADLINE: Duration = Duration::from_secs(20);

/// What a server is like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Script {
    pub is_modern: bool,
    /// It answers with event streams instead of JSON documents.
    pub streams: bool,
    /// The number of calls after which it forgets a session.
    pub calls_per_session: usize,
    /// A tool asks for another header after its tools were listed once.
    pub header_moves: bool,
}

pub const MODERN: Script = Script {
    is_modern: true,
    streams: false,
    calls_per_session: usize::MAX,
    header_moves: false,
};
pub const LEGACY: Script = Script {
    is_modern: false,
    ..MODERN
};

/// A request that came.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    pub http_method: String,
    pub headers: HashMap<String, String>,
    pub message: Value,
}

impl SeenRequest {
    pub fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or(&self.http_method)
    }
}

/// A running server. It serves until the test ends.
pub struct ScriptedServer {
    pub url: String,
    state: Arc<ServerState>,
}

#[derive(Default)]
struct ServerState {
    script: Option<Script>,
    seen: Mutex<SeenTraffic>,
    changed: Condvar,
}

#[derive(Default)]
struct SeenTraffic {
    requests: Vec<SeenRequest>,
    /// How many responses the client stopped reading before their end.
    aborted: usize,
    /// How many calls each session has made.
    sessions: Vec<usize>,
}

impl ScriptedServer {
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let state = Arc::new(ServerState {
            script: Some(script),
            ..ServerState::default()
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                // Clients may abort the connection, so errors are ignored.
                thread::spawn(move || drop(state.serve(stream.unwrap())));
            }
        });
        Self { url, state }
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.state.seen.lock().unwrap().requests.clone()
    }

    /// Returns the methods of all messages, and of requests without one.
    pub fn methods(&self) -> Vec<String> {
        let requests = self.requests();
        requests
            .iter()
            .map(|request| request.method().to_owned())
            .collect()
    }

    /// Returns the calls of tools.
    pub fn calls(&self) -> Vec<SeenRequest> {
        let is_call = |request: &SeenRequest| request.method() == "tools/call";
        self.requests().into_iter().filter(is_call).collect()
    }

    /// Waits until the client has stopped reading a response.
    pub fn wait_for_abort(&self) {
        let seen = self.state.seen.lock().unwrap();
        let waited = self
            .state
            .changed
            .wait_timeout_while(seen, DEADLINE, |seen| seen.aborted == 0);
        assert!(!waited.unwrap().1.timed_out(), "no response was aborted");
    }
}

type IoResult<T> = std::io::Result<T>;

/// What the server does with a request.
enum Reply {
    /// A status with headers, and a body.
    Http(&'static str, String),
    /// A status alone.
    Empty(&'static str),
    /// The answer to the request, after these notifications.
    Answer(Vec<Value>, Value),
    /// These bytes, then the end of the connection.
    Break(String),
    /// Nothing, until the client has had enough.
    Hang,
}

impl ServerState {
    fn script(&self) -> Script {
        self.script.unwrap()
    }

    /// Serves the requests of a connection.
    fn serve(&self, mut stream: TcpStream) -> IoResult<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = read_request(&mut reader)? {
            let count = {
                let mut seen = self.seen.lock().unwrap();
                seen.requests.push(request.clone());
                seen.requests.len()
            };
            let reply = self.reply_to(&request, count);
            match reply {
                Reply::Http(head, body) => write_response(&mut stream, head, &body)?,
                Reply::Empty(status) => write_response(&mut stream, status, "")?,
                Reply::Answer(notifications, answer) => {
                    self.write_answer(&mut stream, &request, notifications, answer)?;
                }
                Reply::Break(bytes) => return stream.write_all(bytes.as_bytes()),
                Reply::Hang => {
                    // The client says nothing more on this connection until it closes it.
                    let _ = reader.read(&mut [0]);
                    self.note_abort();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn note_abort(&self) {
        self.seen.lock().unwrap().aborted += 1;
        self.changed.notify_all();
    }

    fn reply_to(&self, request: &SeenRequest, count: usize) -> Reply {
        let script = self.script();
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        if request.http_method == "GET" {
            return resume(request);
        }
        if request.http_method != "POST" {
            return Reply::Empty("200 OK");
        }
        let accept = header("accept").unwrap_or_default();
        assert!(accept.contains("application/json") && accept.contains("text/event-stream"));
        let refusal = if script.is_modern {
            refuse_modern(request, self.header_name(true))
        } else {
            self.refuse_legacy(request)
        };
        if let Some(refusal) = refusal {
            return refusal;
        }
        let params = &request.message["params"];
        match request.method() {
            "server/discover" => Reply::Answer(
                vec![],
                json!({"supportedVersions": ["2026-07-28"], "resultType": "complete", "capabilities": {"tools": {}}, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}}}),
            ),
            "initialize" => {
                let mut seen = self.seen.lock().unwrap();
                seen.sessions.push(0);
                let head = format!("200 OK\r\nmcp-session-id: s{}", seen.sessions.len());
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}});
                let body = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result});
                Reply::Http(
                    Box::leak(format!("{head}\r\ncontent-type: application/json").into_boxed_str()),
                    body.to_string(),
                )
            }
            "tools/list" => Reply::Answer(vec![], json!({"tools": tools(self.header_name(false))})),
            "tools/call" => reply_to_call(request, params, count),
            _ => Reply::Empty("202 Accepted"),
        }
    }

    /// Returns the name of the header of the tool `regional`: what it was when the tools were listed for the first time, or
    /// what the server wants `now`.
    fn header_name(&self, now: bool) -> &'static str {
        let seen = self.seen.lock().unwrap();
        let lists = seen
            .requests
            .iter()
            .filter(|request| request.method() == "tools/list");
        if self.script().header_moves && (now || lists.count() > 1) {
            "Zone"
        } else {
            "Region"
        }
    }

    /// Refuses what a server of the legacy era doesn't understand, and sessions that it doesn't know.
    fn refuse_legacy(&self, request: &SeenRequest) -> Option<Reply> {
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        let error = |status, code, message: &str| {
            let error =
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
            Some(Reply::Http(status, error.to_string()))
        };
        if request.method() == "initialize" {
            return None;
        }
        let Some(session) = header("mcp-session-id") else {
            let status = "400 Bad Request\r\ncontent-type: application/json";
            return error(status, -32000, "Bad Request: no session");
        };
        assert_eq!(header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(header("mcp-method"), None);
        let mut seen = self.seen.lock().unwrap();
        let index: usize = session[1..].parse().unwrap();
        let calls = &mut seen.sessions[index - 1];
        if request.method() == "tools/call" {
            if *calls >= self.script().calls_per_session {
                let status = "404 Not Found\r\ncontent-type: application/json";
                return error(status, -32001, "Session not found");
            }
            *calls += 1;
        }
        None
    }

    fn write_answer(
        &self,
        stream: &mut TcpStream,
        request: &SeenRequest,
        notifications: Vec<Value>,
        result: Value,
    ) -> IoResult<()> {
        let mut result = result;
        if self.script().is_modern {
            result["resultType"] = json!("complete");
        }
        let answer = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result});
        if !self.script().streams && notifications.is_empty() {
            return write_response(
                stream,
                "200 OK\r\ncontent-type: application/json; charset=utf-8",
                &answer.to_string(),
            );
        }
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        write_chunk(stream, ": hello\n\nid: 1\ndata:\n\n")?;
        for message in notifications.into_iter().chain([answer]) {
            let text = message.to_string();
            // A message may come in several pieces.
            let (start, rest) = text.split_at(text.len() / 2);
            write_chunk(stream, &format!("event: message\ndata: {start}"))?;
            write_chunk(stream, &format!("{rest}\r\n\r\n"))?;
        }
        stream.write_all(b"0\r\n\r\n")
    }
}

/// Refuses requests whose headers don't say what the message says.
fn refuse_modern(request: &SeenRequest, header_name: &str) -> Option<Reply> {
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    let params = &request.message["params"];
    let meta = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let matches = header("mcp-protocol-version") == meta.as_str()
        && header("mcp-method") == Some(request.method())
        && header("mcp-name") == params["name"].as_str()
        && header(&format!("mcp-param-{}", header_name.to_lowercase()))
            == params["arguments"]["region"].as_str()
        && header("mcp-session-id").is_none();
    if matches {
        return None;
    }
    let error = json!({"jsonrpc": "2.0", "id": request.message["id"], "error": {"code": -32020, "message": "header mismatch"}});
    let status = "400 Bad Request\r\ncontent-type: application/json";
    Some(Reply::Http(status, error.to_string()))
}

/// The tools of every server.
pub const TOOLS: [&str; 11] = [
    "echo",
    "progress",
    "break_off",
    "page",
    "hang",
    "busy",
    "show_token",
    "redirect",
    "goes_on",
    "goes_on_in_pieces",
    "is_lost",
];

fn tools(header_name: &str) -> Value {
    let mut tools: Vec<Value> = TOOLS
        .iter()
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    tools.push(json!({"name": "regional", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": header_name}}}}));
    tools.push(json!({"name": "odd", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "not a token"}}}}));
    tools.into()
}

fn reply_to_call(request: &SeenRequest, params: &Value, count: usize) -> Reply {
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    match params["name"].as_str().unwrap() {
        "progress" => {
            let notification = |progress: u32| {
                let token = &params["_meta"]["progressToken"];
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": progress, "total": 2, "message": format!("step {progress}")}})
            };
            Reply::Answer(
                vec![notification(1), notification(2)],
                text("done".to_owned()),
            )
        }
        "break_off" => Reply::Break(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: {\"j\r\n".to_owned(),
        ),
        // The id of the event says what follows it.
        name @ ("goes_on" | "goes_on_in_pieces" | "is_lost") => {
            let id = &request.message["id"];
            Reply::Break(event_stream(&format!(
                "id: {name}/{id}/0\nretry: 10\ndata:\n\nid: never\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"con"
            )))
        }
        "page" => Reply::Http(
            "200 OK\r\ncontent-type: text/html",
            "<p>please log in</p>".to_owned(),
        ),
        "hang" => Reply::Hang,
        "busy" if count % 2 == 1 => Reply::Http(
            "429 Too Many Requests\r\nretry-after: 0\r\ncontent-type: text/plain",
            "slow down".to_owned(),
        ),
        "show_token" => Reply::Answer(vec![], text(request.headers["authorization"].clone())),
        "redirect" => Reply::Http(
            "307 Temporary Redirect\r\nlocation: http://elsewhere.example/mcp?token=1",
            String::new(),
        ),
        _ => Reply::Answer(vec![], text(params["arguments"].to_string())),
    }
}

/// Continues a stream after an event.
fn resume(request: &SeenRequest) -> Reply {
    assert_eq!(request.headers["accept"], "text/event-stream");
    assert_eq!(request.headers["mcp-protocol-version"], "2025-11-25");
    assert!(request.headers.contains_key("mcp-session-id"));
    let last = &request.headers["last-event-id"];
    let parts: Vec<&str> = last.split('/').collect();
    let [name, id, piece] = parts[..] else {
        panic!("{last}");
    };
    let answer = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"at last\"}}]}}}}\n\n"
    );
    match (name, piece) {
        ("is_lost", _) => Reply::Empty("405 Method Not Allowed"),
        ("goes_on_in_pieces", "5") | ("goes_on", _) => Reply::Break(event_stream(&answer)),
        _ => {
            let next = piece.parse::<u32>().unwrap() + 1;
            Reply::Break(event_stream(&format!(
                "id: {name}/{id}/{next}\n\n: still there\n\n"
            )))
        }
    }
}

/// Returns the beginning of a response that is a stream with these events, and doesn't end.
fn event_stream(events: &str) -> String {
    let length = events.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{events}\r\n"
    )
}

fn read_request(reader: &mut BufReader<TcpStream>) -> IoResult<Option<SeenRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let http_method = line.split(' ').next().unwrap().to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let message = serde_json::from_slice(&body).unwrap_or_default();
    Ok(Some(SeenRequest {
        http_method,
        headers,
        message,
    }))
}

fn write_response(stream: &mut TcpStream, head: &str, body: &str) -> IoResult<()> {
    let length = body.len();
    let response = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(response.as_bytes())
}

fn write_chunk(stream: &mut TcpStream, text: &str) -> IoResult<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}
