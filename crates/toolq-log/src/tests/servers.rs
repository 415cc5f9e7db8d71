//! Records of servers.

use std::time::Duration;

use super::*;

use toolq_core::types::{ServerEnd, ServerEndCause, ServerStart};

fn started(earlier_starts: u32) -> ServerStart {
    ServerStart {
        server: "notes".to_owned(),
        earlier_starts,
        pid: None,
        introduction: None,
        duration: Duration::ZERO,
    }
}

fn ended(earlier_starts: u32, cause: ServerEndCause) -> ServerEnd {
    ServerEnd {
        server: "notes".to_owned(),
        earlier_starts,
        cause,
        detail: None,
        ending: None,
        duration: Duration::ZERO,
        calls: 0,
        unexpected_answers: 0,
        noise_lines: 0,
        stderr_bytes: 0,
        stderr_path: None,
    }
}

/// A server that forgot its session gets a new one, which may be ready before the old one has been ended.
#[test]
fn each_end_belongs_to_its_own_start() {
    let (_dir, path, lines) = write_log(|log| {
        let (first, second) = (started(0), started(1));
        let (given_up, run_ended) = (
            ended(0, ServerEndCause::GivenUp),
            ended(1, ServerEndCause::RunEnded),
        );
        let events = [
            Event::ServerStarted(&first),
            Event::ServerStarted(&second),
            Event::ServerEnded(&given_up),
            Event::ServerEnded(&run_ended),
        ];
        log.emit(&events).unwrap();
    });
    let of_kind =
        |kind: &str| -> Vec<&Value> { lines.iter().filter(|line| line["type"] == kind).collect() };
    let (starts, ends) = (of_kind("server_start"), of_kind("server_end"));
    assert_eq!(ends.len(), 2, "{lines:#?}");
    for (start, end) in starts.iter().zip(&ends) {
        assert_eq!(start["id"], end["parentId"]);
    }
    let check = verify_log(&path, fs::File::open(&path).unwrap());
    assert!(check.is_ok(), "{:?}", check.err());
}
