//! 10,000 POSTs to a server on loopback that answers with what it got, 64 at a time.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::Result;
use crate::bar::Bar;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

const CALLS: usize = 10_000;

pub fn ten_thousand_posts(bench: &Workbench) -> Result<Vec<Line>> {
    let response = bench.file("posts.json", |out| {
        inputs::response(out, "post_note", CALLS)
    })?;
    let lines = bench.file("posts.jsonl", |out| inputs::lines(out, CALLS))?;
    let server = Server::start()?;

    let ours = programs::toolq_run(bench, 64, &response)
        .variable("BENCH_SERVER", format!("http://{}", server.address))
        .prints(inputs::PROOF, CALLS)?;
    let hyper = programs::floor("raw hyper connections", "posts")?;
    let aiohttp = programs::python("aiohttp", "posts.py", "aiohttp");
    let rivals = [(hyper, Bar::rate(0.3, 0.6)), (aiohttp, Bar::rate(3.0, 5.0))]
        .into_iter()
        .map(|(rival, bar)| {
            let rival = rival.arg(&server.address).arg(&lines);
            Ok(Rival::new(rival.prints(inputs::PROOF, CALLS)?, bar))
        })
        .collect::<Result<Vec<_>>>()?;
    race(
        "10,000 POSTs on loopback, 64 at a time",
        bench.rounds,
        &ours,
        &rivals,
    )
}

/// The echo floor in a process of its own; it ends with this value.
struct Server {
    process: Child,
    address: String,
}

impl Server {
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

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        debug_assert!(ended.is_ok(), "the server can't be ended: {ended:?}");
    }
}
