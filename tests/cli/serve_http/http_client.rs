//! A client of HTTP/1.1 that sends exactly what a test says, and reads responses as they come.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::serve_http::PATIENCE;

/// A connection to the server.
pub struct HttpClient {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// A request: the method, headers and a body.
#[derive(Clone)]
pub struct HttpRequest {
    pub method: &'static str,
    pub path: &'static str,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A response, whose body may still be arriving.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body, if its length was known or it has ended.
    pub body: String,
}

impl HttpRequest {
    /// Returns a POST of a message, with the headers of its era.
    pub fn post(message: &Value) -> Self {
        let mut request = Self {
            method: "POST",
            path: "/mcp",
            headers: Vec::new(),
            body: message.to_string().into_bytes(),
        }
        .with("content-type", "application/json")
        .with("accept", "application/json, text/event-stream");
        let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        if let Some(version) = version.as_str() {
            request = request.with("mcp-protocol-version", version);
            request = request.with("mcp-method", message["method"].as_str().unwrap());
            if let Some(name) = message["params"]["name"].as_str() {
                request = request.with("mcp-name", name);
            }
        }
        request
    }

    /// Returns a request without a body.
    pub fn bare(method: &'static str) -> Self {
        Self {
            method,
            path: "/mcp",
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Sets a header, in place of what it was.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    fn head(&self, address: SocketAddr) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let mut add = |name: &str, value: &str| head += &[name, ": ", value, "\r\n"].concat();
        for (name, value) in &self.headers {
            add(name, value);
        }
        let has = |name: &str| self.headers.iter().any(|(other, _)| other == name);
        if !has("host") {
            add("host", &address.to_string());
        }
        if !has("transfer-encoding") && !has("content-length") {
            add("content-length", &self.body.len().to_string());
        }
        head + "\r\n"
    }
}

impl HttpResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(other, value)| (other == name).then_some(value.as_str()))
    }

    /// Returns the one JSON document in the body.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body).unwrap()
    }

    /// Asserts that the response is an error of JSON-RPC.
    #[track_caller]
    pub fn assert_error(&self, status: u16, code: i64) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        let error = self.json();
        assert_eq!(error["error"]["code"], code, "{error}");
        error
    }
}

impl HttpClient {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream: BufReader::new(stream),
            address,
        }
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Waits no longer than this for the server.
    pub fn set_patience(&mut self, patience: Duration) {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(Some(patience)).unwrap();
        stream.set_write_timeout(Some(patience)).unwrap();
    }

    /// Sends a request if the server takes it.
    pub fn try_send(&mut self, request: &HttpRequest) -> io::Result<()> {
        let head = request.head(self.address);
        self.send_bytes(&[head.as_bytes(), &request.body].concat())
    }

    /// Sends a request. The server may close the connection before it has read the body.
    pub fn send(&mut self, request: &HttpRequest) {
        let _ = self.try_send(request);
    }

    /// Sends a request and returns the whole response.
    #[track_caller]
    pub fn ask(&mut self, request: &HttpRequest) -> HttpResponse {
        self.send(request);
        self.read_response()
    }

    /// Reads a whole response.
    #[track_caller]
    pub fn read_response(&mut self) -> HttpResponse {
        let mut response = self.read_head();
        if response.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.read_chunk() {
                response.body.push_str(&chunk);
            }
        } else {
            let length = response.header("content-length").unwrap_or("0");
            let mut body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body).unwrap();
            response.body = String::from_utf8(body).unwrap();
        }
        response
    }

    /// Reads the beginning of a response.
    #[track_caller]
    pub fn read_head(&mut self) -> HttpResponse {
        let status = self.read_line().expect("a response");
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        while let Some((name, value)) = self.read_line().unwrap().split_once(": ") {
            headers.push((name.to_owned(), value.to_owned()));
        }
        HttpResponse {
            status,
            headers,
            body: String::new(),
        }
    }

    /// Reads the message of the next event, or nothing at the end of the stream.
    #[track_caller]
    pub fn read_event(&mut self) -> Option<Value> {
        let event = self.read_chunk()?;
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        Some(serde_json::from_str(data.unwrap()).unwrap())
    }

    /// Returns whether the server closes the connection without another word.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.fill_buf(), Ok([]))
    }

    /// Returns whether the server has something to say before the patience is over.
    pub fn has_response(&mut self) -> bool {
        matches!(self.stream.fill_buf(), Ok([_, ..]))
    }

    fn read_chunk(&mut self) -> Option<String> {
        let size = self.read_line().expect("a chunk");
        let size = usize::from_str_radix(&size, 16).unwrap();
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).unwrap();
        chunk.truncate(size);
        (size > 0).then(|| String::from_utf8(chunk).unwrap())
    }

    /// Returns a line, or nothing if the connection is closed.
    fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(1..) => Some(line.trim_end().to_owned()),
            Ok(0) => None,
            Err(error) => panic!("{error} after {line:?}"),
        }
    }
}
