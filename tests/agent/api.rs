//! A model's API on loopback that answers by a script.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "scripts read well without references, and tests may unwrap"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the API does with one request.
#[derive(Clone)]
pub enum Act {
    /// A status with headers and a body.
    Say(u16, &'static str, String),
    /// Closes without a word.
    Close,
    /// Says nothing, and does not close.
    Hang,
    /// Waits until so many requests are here at the same time, then does the other.
    Meet(usize, Box<Act>),
    /// A stream, step by step, that ends behind the last.
    Speak(Vec<Step>),
}

/// What the API does while it speaks.
#[derive(Clone)]
pub enum Step {
    /// Sends these events.
    Say(String),
    /// Waits until there is this file; where it never comes, the stream breaks off.
    Until(PathBuf),
    /// Makes this file.
    Touch(PathBuf),
    /// Says nothing more until the client goes.
    Hold,
}

/// A request as it came.
#[derive(Clone)]
pub struct Asked {
    /// Request line and headers.
    pub head: String,
    pub body: Value,
}

type Script = dyn Fn(usize, &Value) -> Act + Send + Sync;

/// An API on loopback. It answers the n-th request by the n-th act.
pub struct Api {
    pub url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    heard: Mutex<Vec<Asked>>,
    /// Requests that wait for others, and the most there were.
    here: Mutex<usize>,
    came: Condvar,
}

impl Api {
    /// The last act is done again and again.
    pub fn new(acts: &[Act]) -> Self {
        let acts = acts.to_vec();
        Self::by(move |number, _| acts.get(number).or(acts.last()).cloned().unwrap())
    }

    /// Acts by number and body of the request.
    pub fn by(script: impl Fn(usize, &Value) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let (keeping, script): (_, Arc<Script>) = (Arc::clone(&state), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (state, script) = (Arc::clone(&keeping), Arc::clone(&script));
                // What the client breaks off is no fault of the API's.
                thread::spawn(move || drop(state.serve(stream.unwrap(), &*script)));
            }
        });
        Self { url, state }
    }

    /// The requests so far.
    pub fn heard(&self) -> Vec<Asked> {
        self.state.heard.lock().unwrap().clone()
    }

    /// The messages of the request of this number.
    pub fn messages(&self, number: usize) -> Vec<Value> {
        self.heard()[number].body["messages"]
            .as_array()
            .unwrap()
            .clone()
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream, script: &Script) -> std::io::Result<()> {
        let (head, body) = read(&mut stream)?;
        // Who is killed while it speaks has asked for nothing.
        let Ok(body) = serde_json::from_str::<Value>(&body) else {
            return Ok(());
        };
        let number = {
            let mut heard = self.heard.lock().unwrap();
            heard.push(Asked {
                head,
                body: body.clone(),
            });
            heard.len() - 1
        };
        self.perform(script(number, &body), stream)
    }

    fn perform(&self, act: Act, mut stream: TcpStream) -> std::io::Result<()> {
        match act {
            Act::Say(status, headers, body) => {
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
                )
            }
            Act::Close => Ok(()),
            Act::Hang => std::io::copy(&mut stream, &mut std::io::sink()).map(drop),
            Act::Meet(count, then) => {
                let mut here = self.here.lock().unwrap();
                *here += 1;
                self.came.notify_all();
                let met = |here: &mut usize| *here < count;
                let (here, waited) = self.came.wait_timeout_while(here, PATIENCE, met).unwrap();
                drop(here);
                if waited.timed_out() {
                    return Ok(());
                }
                self.perform(*then, stream)
            }
            Act::Speak(steps) => speak(steps, stream),
        }
    }
}

fn speak(steps: Vec<Step>, mut stream: TcpStream) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    for step in steps {
        match step {
            Step::Say(events) => write!(stream, "{:x}\r\n{events}\r\n", events.len())?,
            Step::Until(file) => {
                let since = Instant::now();
                while !file.exists() {
                    if since.elapsed() > PATIENCE {
                        return Ok(());
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            }
            Step::Touch(file) => fs::write(file, "")?,
            Step::Hold => return std::io::copy(&mut stream, &mut std::io::sink()).map(drop),
        }
    }
    stream.write_all(b"0\r\n\r\n")
}

fn read(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.push(byte[0].into());
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    Ok((head, String::from_utf8(body).unwrap()))
}

/// A body with status 200.
pub fn ok(body: impl ToString) -> Act {
    Act::Say(200, "", body.to_string())
}

/// An answer of the Messages API.
pub fn message(content: Value, stop_reason: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "model-1-20260101",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1}
    })
}

/// A final answer.
pub fn text(text: &str) -> Act {
    ok(message(json!([{"type": "text", "text": text}]), "end_turn"))
}

/// `tool_use` blocks with ids `a0`, `a1` …
pub fn uses(calls: &[(&str, Value)]) -> Vec<Value> {
    let uses = calls.iter().enumerate().map(|(at, (name, input))| {
        json!({"type": "tool_use", "id": format!("a{at}"), "name": name, "input": input})
    });
    uses.collect()
}

/// An answer that calls.
pub fn calls(calls: &[(&str, Value)]) -> Act {
    let mut content = vec![json!({"type": "text", "text": "Let me see."})];
    content.extend(uses(calls));
    ok(message(Value::Array(content), "tool_use"))
}

/// An error in the Messages API's form.
pub fn error(status: u16, headers: &'static str, kind: &str, message: &str) -> Act {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    Act::Say(status, headers, body.to_string())
}

/// An answer of chat completions.
pub fn completion(message: Value, finish_reason: &str) -> Act {
    ok(json!({
        "id": "c", "object": "chat.completion", "model": "gpt-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 20}}
    }))
}

/// The same answer of the Messages API, block by block.
pub fn streamed(answer: Act) -> Act {
    let Act::Say(200, _, body) = answer else {
        return answer;
    };
    let whole: Value = serde_json::from_str(&body).unwrap();
    let say = |event: Value| Step::Say(format!("data: {event}\n\n"));
    let begun = json!({"model": whole["model"], "usage": whole["usage"]});
    let mut steps = vec![say(json!({"type": "message_start", "message": begun}))];
    for (index, block) in whole["content"].as_array().unwrap().iter().enumerate() {
        let mut begin = block.clone();
        let input = begin.get_mut("input").map(Value::take);
        steps.push(say(
            json!({"type": "content_block_start", "index": index, "content_block": begin}),
        ));
        // On several lines, as models write, too.
        if let Some(input) = input {
            let delta = json!({"partial_json": format!("{input:#}")});
            steps.push(say(
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
        }
        steps.push(say(json!({"type": "content_block_stop", "index": index})));
    }
    let delta = json!({"stop_reason": whole["stop_reason"]});
    steps.push(say(json!({"type": "message_delta", "delta": delta})));
    steps.push(say(json!({"type": "message_stop"})));
    Act::Speak(steps)
}
