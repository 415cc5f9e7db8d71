//! A model API on loopback that responds according to a script.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "scripts read well without references, and tests may unwrap"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long the API waits for files and other requests.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// What the API does with one request.
#[derive(Clone)]
pub enum ApiBehavior {
    /// A status with headers and a body.
    Respond(u16, &'static str, String),
    /// Closes the connection without a response.
    Close,
    /// Sends nothing, and keeps the connection open.
    Hang,
    /// Waits until this many requests are waiting, then does the inner behavior.
    Rendezvous(usize, Box<ApiBehavior>),
}

/// A request that the API received.
#[derive(Clone)]
pub struct ApiRequest {
    /// Request line and headers.
    pub head: String,
    pub body: Value,
}

type BehaviorScript = dyn Fn(usize, &Value) -> ApiBehavior + Send + Sync;

/// A scripted API. The script decides its behavior by number and body of each request.
pub struct ScriptedApi {
    pub url: String,
    state: Arc<ApiState>,
}

#[derive(Default)]
struct ApiState {
    requests: Mutex<Vec<ApiRequest>>,
    /// How many requests have arrived at a [`ApiBehavior::Rendezvous`] so far.
    waiting: Mutex<usize>,
    arrival: Condvar,
}

impl ScriptedApi {
    /// Does the n-th behavior for the n-th request, and the last one for all further requests.
    pub fn new(behaviors: &[ApiBehavior]) -> Self {
        let behaviors = behaviors.to_vec();
        Self::with_script(move |number, _| {
            behaviors.get(number).or(behaviors.last()).cloned().unwrap()
        })
    }

    /// Does what `script` returns for the number and body of a request. The body has no marks for the prompt cache.
    pub fn with_script(
        script: impl Fn(usize, &Value) -> ApiBehavior + Send + Sync + 'static,
    ) -> Self {
        // Every API listens until the last test has ended, and a user's default limit may be lower than their number.
        let _ = procfence::raise_open_file_limit();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(ApiState::default());
        let (shared_state, script): (_, Arc<BehaviorScript>) =
            (Arc::clone(&state), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (state, script) = (Arc::clone(&shared_state), Arc::clone(&script));
                // Clients may abort the connection, so errors are ignored.
                thread::spawn(move || drop(state.handle_connection(stream.unwrap(), &*script)));
            }
        });
        Self { url, state }
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Returns the messages of a request by its number, without the marks for the prompt cache.
    pub fn messages(&self, number: usize) -> Vec<Value> {
        let body = without_cache_marks(self.requests()[number].body.clone());
        body["messages"].as_array().unwrap().clone()
    }
}

/// Removes the marks for the prompt cache from the messages of a request. A marked text becomes a string again.
fn without_cache_marks(mut body: Value) -> Value {
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        let blocks = message["content"].as_array_mut();
        let last = blocks.and_then(|blocks| blocks.last_mut()?.as_object_mut());
        if let Some(last) = last
            && last.remove("cache_control").is_some()
            && last["type"] == "text"
        {
            message["content"] = message["content"][0]["text"].clone();
        }
    }
    body
}

impl ApiState {
    fn handle_connection(
        &self,
        mut stream: TcpStream,
        script: &BehaviorScript,
    ) -> std::io::Result<()> {
        let (head, body) = read_request(&mut stream)?;
        // A client that is killed while it connects sends no complete request. That doesn't count.
        let Ok(body) = serde_json::from_str::<Value>(&body) else {
            return Ok(());
        };
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(ApiRequest {
                head,
                body: body.clone(),
            });
            requests.len() - 1
        };
        self.run_behavior(script(number, &without_cache_marks(body)), stream)
    }

    fn run_behavior(&self, behavior: ApiBehavior, mut stream: TcpStream) -> std::io::Result<()> {
        match behavior {
            ApiBehavior::Respond(status, headers, body) => {
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
                )
            }
            ApiBehavior::Close => Ok(()),
            ApiBehavior::Hang => std::io::copy(&mut stream, &mut std::io::sink()).map(drop),
            ApiBehavior::Rendezvous(count, then) => {
                let mut waiting = self.waiting.lock().unwrap();
                *waiting += 1;
                self.arrival.notify_all();
                let is_incomplete = |waiting: &mut usize| *waiting < count;
                let (waiting, waited) = self
                    .arrival
                    .wait_timeout_while(waiting, WAIT_TIMEOUT, is_incomplete)
                    .unwrap();
                drop(waiting);
                if waited.timed_out() {
                    return Ok(());
                }
                self.run_behavior(*then, stream)
            }
        }
    }
}

fn read_request(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.push(byte[0].into());
    }
    // Some clients capitalize the names of headers.
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then_some(value)
    });
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    Ok((head, String::from_utf8(body).unwrap()))
}

/// Returns a response with status 200.
pub fn ok_response(body: impl ToString) -> ApiBehavior {
    ApiBehavior::Respond(200, "", body.to_string())
}

/// Returns the body of a Messages API response.
pub fn message_body(content: Value, stop_reason: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "model-1-20260101",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1}
    })
}

/// Returns a response that ends the conversation with a text.
pub fn text_response(text: &str) -> ApiBehavior {
    ok_response(message_body(
        json!([{"type": "text", "text": text}]),
        "end_turn",
    ))
}

/// Returns `tool_use` blocks with the ids `a0`, `a1` …
pub fn tool_use_blocks(calls: &[(&str, Value)]) -> Vec<Value> {
    let uses = calls.iter().enumerate().map(|(at, (name, input))| {
        json!({"type": "tool_use", "id": format!("a{at}"), "name": name, "input": input})
    });
    uses.collect()
}

/// Returns a response with a text and these calls.
pub fn calls_response(calls: &[(&str, Value)]) -> ApiBehavior {
    let mut content = vec![json!({"type": "text", "text": "Let me see."})];
    content.extend(tool_use_blocks(calls));
    ok_response(message_body(Value::Array(content), "tool_use"))
}

/// Returns an error in the format of the Messages API.
pub fn error_response(
    status: u16,
    headers: &'static str,
    kind: &str,
    message: &str,
) -> ApiBehavior {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    ApiBehavior::Respond(status, headers, body.to_string())
}

/// Returns a chat completions response.
pub fn chat_response(message: Value, finish_reason: &str) -> ApiBehavior {
    ok_response(json!({
        "id": "c", "object": "chat.completion", "model": "gpt-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 20}}
    }))
}
