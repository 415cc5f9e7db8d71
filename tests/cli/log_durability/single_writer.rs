//! Many toolq processes and one log.

use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use serde_json::json;

use crate::log_durability::toolq;
use crate::support::model_response;

/// Of fifty processes that open the same log at once, exactly one runs. The others fail immediately.
#[test]
fn one_log_has_one_writer() {
    let wait = "echo ran >> ran; while [ ! -e go ]; do sleep 0.02; done";
    let toolq = toolq().file("input", model_response(&[("sh", json!({"script": wait}))]));
    let start = |_| {
        let mut command = toolq.command(&["run", "-q", "--log", "log", "input"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let mut children: Vec<_> = (0..50).map(start).collect();
    let mut codes = Vec::new();
    while children.len() > 1 {
        children.retain_mut(|child| {
            let ended = child.try_wait().unwrap();
            codes.extend(ended.map(|status| status.code()));
            ended.is_none()
        });
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(codes, [Some(4); 49]);
    fs::write(toolq.path().join("go"), "").unwrap();
    assert_eq!(children[0].wait().unwrap().code(), Some(0));
    assert_eq!(
        fs::read_to_string(toolq.path().join("ran")).unwrap(),
        "ran\n"
    );
}
