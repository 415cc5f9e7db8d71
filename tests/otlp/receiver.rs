//! A receiver of OTLP over HTTP on loopback, which decodes what it gets.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::protobuf::Message;

/// What the receiver does with a request.
#[derive(Debug, Clone, Copy)]
pub enum ReceiverBehavior {
    Accept,
    /// Answers with this status.
    Refuse(u16),
    /// Reads the request, and never answers.
    Hang,
}

/// A request that the receiver got.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub path: String,
    /// With lowercase names.
    pub headers: BTreeMap<String, String>,
    pub body: Message,
}

/// A span as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedSpan {
    pub trace_id: String,
    pub span_id: String,
    pub parent_id: String,
    pub trace_state: String,
    pub name: String,
    /// 1 is internal, 3 a client.
    pub kind: u64,
    pub started_ns: u64,
    pub ended_ns: u64,
    pub attributes: BTreeMap<String, String>,
    /// Names and attributes.
    pub events: Vec<(String, BTreeMap<String, String>)>,
    /// 2 is an error.
    pub status: u64,
    /// The name of the service.
    pub service: String,
}

/// A receiver that runs until the tests end.
pub struct OtlpReceiver {
    pub url: String,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl OtlpReceiver {
    pub fn new() -> Self {
        Self::with_behavior(ReceiverBehavior::Accept)
    }

    pub fn with_behavior(behavior: ReceiverBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::default();
        let shared = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&stream.unwrap(), behavior, &shared));
            }
        });
        Self { url, requests }
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the spans that arrived, those that began first before the others.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        let requests = self.requests();
        let traces = requests
            .iter()
            .filter(|request| request.path == "/v1/traces");
        let mut spans: Vec<ReceivedSpan> = traces
            .flat_map(|request| request.body.messages(1).collect::<Vec<_>>())
            .flat_map(|resource_spans| {
                let service = attributes(&resource_spans.message(1), 1).remove("service.name");
                let service = service.unwrap_or_default();
                let scopes: Vec<Message> = resource_spans.messages(2).collect();
                let spans = scopes
                    .into_iter()
                    .flat_map(|scope| scope.messages(2).collect::<Vec<_>>());
                let spans = spans.map(|span| read_span(&span, &service));
                spans.collect::<Vec<_>>()
            })
            .collect();
        spans.sort_by_key(|span| (span.started_ns, std::cmp::Reverse(span.ended_ns)));
        spans
    }

    /// Returns the data points of a metric: its attributes, and a count.
    pub fn metric(&self, name: &str) -> Vec<(BTreeMap<String, String>, u64)> {
        let requests = self.requests();
        let last = requests
            .iter()
            .rfind(|request| request.path == "/v1/metrics");
        let Some(request) = last else {
            return Vec::new();
        };
        let resources: Vec<Message> = request.body.messages(1).collect();
        let scopes = resources
            .iter()
            .flat_map(|resource| resource.messages(2).collect::<Vec<_>>());
        let metrics = scopes.flat_map(|scope| scope.messages(2).collect::<Vec<_>>());
        let mut points = Vec::new();
        for metric in metrics.filter(|metric| metric.text(1) == name) {
            for point in metric.message(7).messages(1) {
                points.push((attributes(&point, 7), point.number(6).unwrap()));
            }
            for point in metric.message(9).messages(1) {
                points.push((attributes(&point, 9), point.number(4).unwrap()));
            }
        }
        points.sort();
        points
    }
}

fn serve(
    stream: &TcpStream,
    behavior: ReceiverBehavior,
    requests: &Mutex<Vec<ReceivedRequest>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
        let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        requests.lock().unwrap().push(ReceivedRequest {
            path,
            headers,
            body: Message::decode(&body),
        });
        let status = match behavior {
            ReceiverBehavior::Accept => 200,
            ReceiverBehavior::Refuse(status) => status,
            ReceiverBehavior::Hang => loop {
                thread::park();
            },
        };
        let head = format!("HTTP/1.1 {status} \r\ncontent-length: 0\r\n\r\n");
        (&*stream).write_all(head.as_bytes()).ok()?;
    }
}

fn read_span(span: &Message, service: &str) -> ReceivedSpan {
    let events = span
        .messages(11)
        .map(|event| (event.text(2), attributes(&event, 3)));
    ReceivedSpan {
        trace_id: span.hex(1),
        span_id: span.hex(2),
        trace_state: span.text(3),
        parent_id: span.hex(4),
        name: span.text(5),
        kind: span.number(6).unwrap(),
        started_ns: span.number(7).unwrap(),
        ended_ns: span.number(8).unwrap(),
        attributes: attributes(span, 9),
        events: events.collect(),
        status: span.message(15).number(3).unwrap_or(0),
        service: service.to_owned(),
    }
}

/// Returns the attributes in the fields with this number, as texts.
fn attributes(message: &Message, number: u64) -> BTreeMap<String, String> {
    let pairs = message.messages(number).map(|pair| {
        let value = pair.message(2);
        let text = match value.number(3) {
            Some(number) => number.to_string(),
            None => value.text(1),
        };
        (pair.text(1), text)
    });
    pairs.collect()
}
