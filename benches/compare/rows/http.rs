//! 10,000 POSTs to an echo server on loopback, 64 at a time.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::{Result, inputs, programs};

const CALLS: usize = 10_000;

pub fn ten_thousand_posts(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let response = bench.write_file("posts.json", |out| {
        inputs::write_response(out, "post_note", CALLS)
    })?;
    let lines = bench.write_file("posts.jsonl", |out| inputs::write_inputs(out, CALLS))?;
    let server = EchoServer::start()?;

    let ours = programs::toolq_run(bench, 64, &response)
        .env("BENCH_SERVER", format!("http://{}", server.address))
        .expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    let hyper = programs::floor("raw hyper connections", "posts")?;
    let aiohttp = programs::python("aiohttp", "posts.py", "aiohttp");
    let baselines = [
        (hyper, PerformanceBar::rate(0.25, 0.6)),
        (aiohttp, PerformanceBar::rate(3.0, 5.0)),
    ]
    .into_iter()
    .map(|(program, bar)| {
        let program = program.arg(&server.address).arg(&lines);
        Ok(Baseline::new(
            program.expect_output(inputs::OUTPUT_MARKER, CALLS)?,
            bar,
        ))
    })
    .collect::<Result<Vec<_>>>()?;
    compare_rounds(
        "10,000 POSTs on loopback, 64 at a time",
        bench.rounds,
        &ours,
        &baselines,
    )
}

/// The echo floor in a process of its own, which is killed when this value is dropped.
struct EchoServer {
    process: Child,
    address: String,
}

impl EchoServer {
    fn start() -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["floor", "echo"])
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = process.stdout.take().ok_or("the server has no stdout")?;
        let mut address = String::new();
        BufReader::new(stdout).read_line(&mut address)?;
        Ok(Self {
            process,
            address: address.trim_end().to_owned(),
        })
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        let result = self.process.kill().and_then(|()| self.process.wait());
        debug_assert!(result.is_ok(), "can't stop the server: {result:?}");
    }
}
