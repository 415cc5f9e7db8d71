//! Clients that send too much, too slowly, or too many.

use std::collections::HashMap;
use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::serve_http::http_client::{HttpClient, HttpRequest};
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{PATIENCE, call, legacy, modern, text_of, wait_until};
use crate::support::full_or_short;

const MAX_BODY_BYTES: usize = 4 << 20;

fn list() -> HttpRequest {
    HttpRequest::post(&modern(1, "tools/list", &json!({})))
}

/// Returns a call by the client of this name, which lasts until the file `go` exists.
fn waiting_call(client: &str) -> HttpRequest {
    let wait = call("wait_for", &json!({"file": "go"}));
    let mut request = modern(1, "tools/call", &wait);
    let info = &mut request["params"]["_meta"]["io.modelcontextprotocol/clientInfo"];
    info["name"] = json!(client);
    HttpRequest::post(&request)
}

/// Connects `count` clients, and then one more, which gets the place of the first. The first sends nothing, so it was silent
/// for longest.
fn connect_one_too_many(server: &HttpServer, count: usize) -> Vec<HttpClient> {
    let mut clients: Vec<HttpClient> = (0..count).map(|_| server.connect()).collect();
    for client in &mut clients[1..] {
        assert_eq!(client.ask(&list()).status, 200);
    }
    let mut newcomer = server.connect();
    // Silence alone ends a connection after 30 s.
    newcomer.set_patience(Duration::from_secs(20));
    assert_eq!(newcomer.ask(&list()).status, 200);
    newcomer.set_patience(PATIENCE);
    assert!(clients[0].is_closed());
    clients[0] = newcomer;
    clients
}

/// Returns a call whose body has this many bytes.
fn call_of_size(bytes: usize) -> HttpRequest {
    let request = |text: &str| {
        HttpRequest::post(&modern(
            1,
            "tools/call",
            &call("pay", &json!({"file": text})),
        ))
    };
    let rest = request("").body.len();
    request(&"x".repeat(bytes - rest))
}

/// What is too large or of another type is refused; others are served.
#[test]
fn a_body_has_a_size_and_types() {
    let server = HttpServer::start(&[]);
    let largest = call_of_size(MAX_BODY_BYTES);
    assert_eq!(largest.body.len(), MAX_BODY_BYTES);
    // The argument is too long for a program, which is the matter of the call.
    assert_eq!(server.ask(&largest).status, 200);
    server
        .ask(&call_of_size(MAX_BODY_BYTES + 1))
        .assert_error(413, -32600);
    let mut client = server.connect();
    let announced = HttpRequest {
        body: Vec::new(),
        ..list()
    };
    client.send(&announced.with("content-length", "99999999999"));
    client.read_response().assert_error(413, -32600);
    // Without a length, it counts as it comes.
    let mut client = server.connect();
    client.send(
        &HttpRequest {
            body: Vec::new(),
            ..list()
        }
        .with("transfer-encoding", "chunked"),
    );
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    client.set_patience(Duration::from_secs(1));
    while client.send_bytes(chunk.as_bytes()).is_ok() && !client.has_response() {}
    client.read_response().assert_error(413, -32600);
    let list = list();
    let as_text = list.clone().with("content-type", "text/plain");
    server.ask(&as_text).assert_error(415, -32600);
    server
        .ask(&list.clone().without("content-type"))
        .assert_error(415, -32600);
    let with_charset = list
        .clone()
        .with("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(server.ask(&with_charset).status, 200);
    let html = list.clone().with("accept", "text/html");
    server.ask(&html).assert_error(406, -32600);
    for accept in ["*/*", "application/json;q=0.5", "text/html, Application/*"] {
        assert_eq!(server.ask(&list.clone().with("accept", accept)).status, 200);
    }
    assert_eq!(server.ask(&list.without("accept")).status, 200);
}

/// Its connection ends; others are served.
#[test]
#[cfg_attr(
    not(feature = "slow-tests"),
    ignore = "it waits for 30 s: --features slow-tests"
)]
fn a_request_that_never_ends_is_given_up() {
    let server = HttpServer::start(&[]);
    let (mut headers, mut body, mut many) = (server.connect(), server.connect(), server.connect());
    let mut silent = server.connect();
    assert_eq!(silent.ask(&list()).status, 200);
    headers
        .send_bytes(b"POST /mcp HTTP/1.1\r\nhost: loc")
        .unwrap();
    body.send(&list().with("content-length", "1000"));
    let _ = many.send_bytes(format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(200_000)).as_bytes());
    let refused = many.read_head();
    assert_eq!(refused.status, 431);
    assert!(headers.is_closed() && silent.is_closed());
    body.read_response().assert_error(408, -32600);
    assert_eq!(server.ask(&list()).status, 200);
}

/// Calls need descriptors, too.
#[test]
fn a_new_connection_finds_room_unless_all_have_requests() {
    let server = HttpServer::with_open_files(200);
    let mut clients = connect_one_too_many(&server, 100);
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&waiting_call(&number.to_string()));
    }
    wait_until("the server has read all requests", || {
        connections(&server).values().all(|is_unread| !is_unread)
    });
    let mut waiting = server.connect();
    waiting.set_patience(Duration::from_millis(500));
    waiting.send(&list());
    assert!(!waiting.has_response());
    server.create("go");
    for client in &mut clients {
        assert_eq!(text_of(&client.read_response().json()), "found go");
    }
    waiting.set_patience(PATIENCE);
    assert_eq!(waiting.read_response().status, 200);
}

/// Others are still served.
#[test]
fn one_client_has_only_so_many_calls() {
    let server = HttpServer::start(&[]);
    let wait = |id: u64| legacy(id, "tools/call", &call("wait_for", &json!({"file": "go"})));
    let mut session = server.initialize("2025-03-26");
    let batch: Vec<Value> = (0..66).map(wait).collect();
    let batch = session.post(&json!(batch));
    session.client.send(&batch);
    let mut clients: Vec<HttpClient> = (0..65)
        .map(|id| {
            let mut client = server.connect();
            let params = call("wait_for", &json!({"file": "go"}));
            client.send(&HttpRequest::post(&modern(id, "tools/call", &params)));
            client.set_patience(Duration::from_millis(1));
            client
        })
        .collect();
    let mut refused = None;
    wait_until("one is refused", || {
        refused = clients.iter_mut().position(HttpClient::has_response);
        refused.is_some()
    });
    let refused = clients.remove(refused.unwrap()).read_response().json();
    assert_eq!(refused["result"]["isError"], true);
    let text = "Not executed: 64 calls are open. Wait for one of them.";
    assert_eq!(text_of(&refused), text);
    let mut stranger = modern(1, "tools/call", &call("wait_for", &json!({"file": "go"})));
    stranger["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!("other");
    let mut other = server.connect();
    other.send(&HttpRequest::post(&stranger));
    server.create("go");
    assert_eq!(text_of(&other.read_response().json()), "found go");
    for mut client in clients {
        client.set_patience(PATIENCE);
        assert_eq!(text_of(&client.read_response().json()), "found go");
    }
    let answers = session.client.read_response().json();
    let answers = answers.as_array().unwrap();
    let refused = answers.iter().filter(|answer| text_of(answer) == text);
    assert_eq!((answers.len(), refused.count()), (66, 2));
}

#[test]
fn all_clients_together_have_only_so_many_calls() {
    let server = HttpServer::start(&[]);
    let wait = call("wait_for", &json!({"file": "go"}));
    let mut sessions: Vec<_> = (0..16).map(|_| server.initialize("2025-03-26")).collect();
    for session in &mut sessions {
        let batch: Vec<Value> = (0..64).map(|id| legacy(id, "tools/call", &wait)).collect();
        let batch = session.post(&json!(batch));
        session.client.send(&batch);
    }
    // Those who aren't refused wait, too.
    let mut strangers: Vec<HttpClient> = Vec::new();
    wait_until("one more client is refused", || {
        let mut stranger = server.connect();
        stranger.send(&waiting_call(&strangers.len().to_string()));
        stranger.set_patience(Duration::from_millis(500));
        let is_refused = stranger.has_response();
        strangers.push(stranger);
        is_refused
    });
    let refused = strangers.pop().unwrap().read_response().json();
    let text = "Not executed: 1024 calls of all clients are open. Try again later.";
    assert_eq!(
        (text_of(&refused), &refused["result"]["isError"]),
        (text, &json!(true))
    );
    server.end();
}

/// Each message of a batch may ask for all tools.
#[test]
fn a_batch_has_at_most_a_hundred_messages() {
    let server = HttpServer::start(&[]);
    let mut session = server.initialize("2025-03-26");
    for (count, status) in [(100, 200), (101, 400), (20_000, 400)] {
        let list = |id: u64| legacy(id, "tools/list", &json!({}));
        let batch: Vec<Value> = (0..count).map(list).collect();
        let request = session.post(&json!(batch));
        session.client.send(&request);
        assert_eq!(session.client.read_response().status, status, "{count}");
    }
    server.end();
}

/// Bodies that never come keep those of others waiting, but only until their clients leave.
#[test]
fn the_bodies_that_are_being_read_have_a_size_together() {
    let server = HttpServer::start(&[]);
    let unfinished = list().with("content-length", &MAX_BODY_BYTES.to_string());
    let mut readers: Vec<HttpClient> = (0..16)
        .map(|_| {
            let mut client = server.connect();
            client.send(&unfinished);
            client
        })
        .collect();
    let mut waiting = None;
    wait_until("no memory is left for a body", || {
        let mut client = server.connect();
        client.send(&list());
        client.set_patience(Duration::from_millis(300));
        let is_served = client.has_response();
        waiting = Some(client);
        !is_served
    });
    let mut waiting = waiting.unwrap();
    readers.pop();
    // Unfinished bodies are given up after 30 s.
    waiting.set_patience(Duration::from_secs(20));
    assert_eq!(waiting.read_response().status, 200);
}

#[test]
fn there_are_at_most_1024_connections() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: Some(limit.maximum.map_or(4096, |maximum| maximum.min(4096))),
        ..limit
    };
    setrlimit(Resource::Nofile, wanted).unwrap();
    let server = HttpServer::with_open_files(4096);
    let _clients = connect_one_too_many(&server, 1024);
    assert!(connections(&server).len() <= 1024);
}

/// Its connection ends; others are served.
#[test]
#[cfg_attr(
    not(feature = "slow-tests"),
    ignore = "it waits for 30 s: --features slow-tests"
)]
fn a_client_that_reads_nothing_is_left() {
    let server = HttpServer::start(&[]);
    let mut client = server.connect();
    client.set_patience(Duration::from_millis(500));
    let head = list();
    // It sends requests until the responses fill all buffers.
    while client.try_send(&head).is_ok() {}
    assert_eq!(connections(&server).len(), 1);
    wait_until("the connection is closed", || {
        connections(&server).is_empty()
    });
    assert_eq!(server.ask(&list()).status, 200);
}

/// The connections that the server holds, by the client's address, each with whether it has something to read. The list of the
/// system shows them to every user, unlike the server's descriptors, which toolq hides. It isn't read at one moment: a
/// connection may be in it twice.
fn connections(server: &HttpServer) -> HashMap<String, bool> {
    let port = format!(":{:04X}", server.address.port());
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
    let held = sockets.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (local, client) = (columns.get(1)?, columns.get(2)?);
        let (state, queues) = (columns.get(3)?, columns.get(4)?);
        // Established, or closed by the client only.
        let is_held = local.ends_with(&port) && ["01", "08"].contains(state);
        is_held.then(|| ((*client).to_owned(), !queues.ends_with(":00000000")))
    });
    held.collect()
}

/// Returns a number from the status of the server's process; memory is in KiB.
fn status(server: &HttpServer, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(key)).unwrap();
    value.split_whitespace().next().unwrap().parse().unwrap()
}

/// Often without a word: connections, sessions and memory stay bounded.
#[test]
fn clients_come_and_go_and_leave_nothing() {
    let server = HttpServer::start(&[]);
    let visit_all = || {
        thread::scope(|scope| {
            for part in 0..4 {
                let (server, count) = (&server, full_or_short(250, 50));
                scope.spawn(move || {
                    (0..count).for_each(|number| visit(server, part * count + number));
                });
            }
        });
    };
    // Caches are filled, and as many sessions are there as there may be.
    visit_all();
    visit_all();
    // A request that is sent when the others have left is served after them.
    let measure = || {
        let pause = || thread::sleep(Duration::from_millis(200));
        let mut held = usize::MAX;
        wait_until("no connection is left", || {
            let before = std::mem::replace(&mut held, connections(&server).len());
            pause();
            held == before
        });
        (held, status(&server, "Threads:"))
    };
    let (before, memory) = (measure(), status(&server, "VmRSS:"));
    visit_all();
    wait_until("nothing is left of them", || measure() <= before);
    let grown = status(&server, "VmRSS:").saturating_sub(memory);
    assert!(grown < 4096, "the memory has grown by {grown} KiB");
}

/// A client that comes, does something, and leaves, often without a word.
fn visit(server: &HttpServer, number: usize) {
    match number % 4 {
        0 => assert_eq!(server.ask(&list()).status, 200),
        1 => {
            let mut session = server.initialize("2025-11-25");
            assert_eq!(
                session.ask(&legacy(1, "tools/list", &json!({}))).status,
                200
            );
        }
        2 => {
            let session = server.initialize("2025-11-25");
            let delete = HttpRequest::bare("DELETE").with("mcp-session-id", &session.id);
            assert_eq!(server.ask(&delete).status, 204);
        }
        _ if number % 100 == 3 => {
            let params = call("wait_for", &json!({"file": "never"}));
            server
                .connect()
                .send(&HttpRequest::post(&modern(1, "tools/call", &params)));
        }
        _ => server
            .connect()
            .send_bytes(b"POST /mcp HTTP/1.1\r\n")
            .unwrap(),
    }
}
