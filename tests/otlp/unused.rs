//! Without `--otlp`, nothing of it exists: no thread, whatever the environment says.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::receiver::OtlpReceiver;
use crate::support::{CliSandbox, model_response};

/// Returns the names of the threads of a toolq while it runs a call.
fn threads(flags: &[&str], receiver: &OtlpReceiver) -> Vec<String> {
    let sandbox = CliSandbox::new()
        .tools(
            r#"
version: 1
tools:
  wait: {input_schema: {type: object}, effect: read, command: [sh, -c, "touch running; read line < go"]}
"#,
        )
        .file("in.json", model_response(&[("wait", json!({}))]))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url);
    let go = sandbox.path().join("go");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &go,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let arguments = [&["run", "-q", "in.json"], flags].concat();
    let mut command = sandbox.command(&arguments);
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    while !sandbox.path().join("running").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    }
    let tasks = Path::new("/proc").join(child.id().to_string()).join("task");
    let names = fs::read_dir(tasks).unwrap().map(|task| {
        let name = fs::read_to_string(task.unwrap().path().join("comm")).unwrap();
        name.trim().to_owned()
    });
    let names = names.collect();
    fs::write(go, "\n").unwrap();
    assert!(child.wait().unwrap().success());
    names
}

#[test]
fn without_the_flag_there_is_no_thread_for_it() {
    let receiver = OtlpReceiver::new();
    let is_exporter = |name: &&String| name.starts_with("OpenTelemetry");
    let plain = threads(&[], &receiver);
    assert_eq!(plain.iter().filter(is_exporter).count(), 0, "{plain:?}");
    assert!(receiver.requests().is_empty());
    let traced = threads(&["--otlp"], &receiver);
    assert_eq!(traced.iter().filter(is_exporter).count(), 2, "{traced:?}");
    assert!(!receiver.requests().is_empty());
}
