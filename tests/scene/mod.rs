//! A turn on the real engine: tools and calls in, outcomes, events and the order of delivery out.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses a part of it, and tests may unwrap"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redact::Mask;
use toolq_core::json::Input;
use toolq_core::os::Environment;
use toolq_core::types::{
    Accepted, Answer, Backing, Body, Call, CallRef, Checked, CommandBacking, CommandInvocation,
    Compare, Content, DecidedBy, Draft, Effect, Event, HttpBacking, HttpInvocation, HttpMethod,
    Invocation, JsonDraft, Leftovers, Limits, OnFailure, Outcome, OutputKind, Past, Piece, Refused,
    Retry, Safety, Sink, Status, Stdin, StdinDraft, Template, Timeout, Tool, Tools, Verdict,
};
use toolq_engine::{Budgets, Delivery, Engine, EngineSettings, Resolver};

/// A tool with wide limits and no backing.
pub fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: String::new(),
        display_name: None,
        category: None,
        input_schema: serde_json::Value::Bool(true),
        describe: None,
        safety: Safety::Declared(true),
        effect: Effect::Read,
        timeout: Timeout {
            after: Duration::from_mins(1),
            grace: Duration::from_secs(20),
            slow: None,
            total: None,
        },
        estimate: None,
        paths: Vec::new(),
        status: Status::default(),
        backing: None,
        probe: None,
        output: OutputKind::Text,
        max_output: 64 << 10,
        max_saved: 64 << 20,
        retry: Retry {
            times: 0,
            on: Vec::new(),
            backoff: Duration::ZERO,
            max_backoff: Duration::from_secs(1),
        },
        on_failure: OnFailure::Continue,
        pause_after_failures: None,
        coerce: false,
        compare: Compare::Json,
        ignore: Vec::new(),
        messages: BTreeMap::new(),
    }
}

/// A call that is ready to run.
pub struct Asked {
    pub tool: Tool,
    pub input: String,
    pub safe: bool,
    pub invocation: Option<Invocation>,
}

/// A call of a command.
pub fn command(argv: &[&str]) -> Asked {
    let mut tool = tool("command");
    tool.backing = Some(Backing::Command(CommandBacking {
        program: argv[0].to_owned(),
        arguments: Vec::new(),
        stdin: Stdin::Input,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: std::env::temp_dir(),
        success_exit: vec![0],
        leftovers: Leftovers::default(),
        limits: Limits::default(),
    }));
    Asked {
        tool,
        input: "{}".to_owned(),
        safe: true,
        invocation: Some(Invocation::Command(CommandInvocation {
            argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
            stdin: StdinDraft::Input,
            env: Vec::new(),
        })),
    }
}

/// A call of a shell script; `arguments` are its `$1`, `$2` …
pub fn sh(script: &str, arguments: &[&str]) -> Asked {
    command(&[&["sh", "-c", script, "sh"], arguments].concat())
}

/// A call of a request without body.
pub fn http(method: HttpMethod, url: &str) -> Asked {
    let mut tool = tool("http");
    tool.backing = Some(Backing::Http(HttpBacking {
        method,
        url: Template::text(url),
        hosts: None,
        query: Vec::new(),
        headers: Vec::new(),
        body: Body::None,
        success_status: vec![200..=299],
        select: None,
        redirects: 0,
        proxy: None,
    }));
    Asked {
        tool,
        input: "{}".to_owned(),
        safe: true,
        invocation: Some(Invocation::Http(HttpInvocation {
            url: text(url),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
        })),
    }
}

/// A draft that is a text.
pub fn text(text: &str) -> Draft {
    Draft(vec![Piece::Text(text.to_owned())])
}

impl Asked {
    pub fn tool(mut self, change: impl FnOnce(&mut Tool)) -> Self {
        change(&mut self.tool);
        self
    }

    pub fn timeout(self, after_ms: u64, grace_ms: u64) -> Self {
        self.tool(|tool| {
            tool.timeout.after = Duration::from_millis(after_ms);
            tool.timeout.grace = Duration::from_millis(grace_ms);
        })
    }

    pub fn input(mut self, input: &str) -> Self {
        input.clone_into(&mut self.input);
        self
    }

    pub fn unsafely(mut self) -> Self {
        self.safe = false;
        self
    }

    pub fn backing(mut self, change: impl FnOnce(&mut CommandBacking)) -> Self {
        if let Some(Backing::Command(backing)) = &mut self.tool.backing {
            change(backing);
        }
        self
    }

    pub fn command(mut self, change: impl FnOnce(&mut CommandInvocation)) -> Self {
        if let Some(Invocation::Command(command)) = &mut self.invocation {
            change(command);
        }
        self
    }

    pub fn http_backing(mut self, change: impl FnOnce(&mut HttpBacking)) -> Self {
        if let Some(Backing::Http(backing)) = &mut self.tool.backing {
            change(backing);
        }
        self
    }

    pub fn request(mut self, change: impl FnOnce(&mut HttpInvocation)) -> Self {
        if let Some(Invocation::Http(request)) = &mut self.invocation {
            change(request);
        }
        self
    }

    pub fn body(self, json: &str) -> Self {
        let raw = serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
        self.request(|request| request.body = Some(JsonDraft::Raw(raw)))
    }

    /// Runs it alone.
    pub fn run(self) -> Ran {
        Scene::default().call(self).run()
    }

    fn checked(self, position: usize) -> Checked {
        let input = Input::parse(&self.input).unwrap();
        Checked {
            call: Call {
                turn: 0,
                position,
                id: format!("call_{position}"),
                name: self.tool.name.clone(),
                input: Ok(input.clone()),
                within: None,
            },
            verdict: Verdict::Accepted(Box::new(Accepted {
                tool: Arc::new(self.tool),
                input,
                before_coercion: None,
                safe: self.safe,
                decided_by: DecidedBy::Declared,
                invocation: self.invocation,
                probe: None,
            })),
            past: Past::None,
        }
    }
}

/// A turn and what surrounds it.
#[derive(Default)]
pub struct Scene {
    calls: Vec<Asked>,
    jobs: Option<usize>,
    environment: BTreeMap<OsString, OsString>,
    secrets: Vec<String>,
    outputs: Option<PathBuf>,
    touch: Option<PathBuf>,
    alone: bool,
    resolver: Option<Resolver>,
}

impl Scene {
    pub fn call(mut self, call: Asked) -> Self {
        self.calls.push(call);
        self
    }

    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = Some(jobs);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    pub fn secret(mut self, secret: &str) -> Self {
        self.secrets.push(secret.to_owned());
        self
    }

    pub fn outputs(mut self, folder: PathBuf) -> Self {
        self.outputs = Some(folder);
        self
    }

    /// Without a supervisor.
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Looks up every host with this.
    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Makes this file when something is said of a running call.
    pub fn touch_at_status(mut self, file: PathBuf) -> Self {
        self.touch = Some(file);
        self
    }

    /// Runs the turn.
    pub fn run(mut self) -> Ran {
        let mut ran = Ran {
            touch: self.touch.take(),
            ..Ran::default()
        };
        let (mut engine, calls) = self.ready();
        let mut delivered = Order::default();
        let since = Instant::now();
        let runtime = runtime();
        runtime.block_on(engine.turn(0, calls, &mut ran, &mut delivered));
        ran.took = since.elapsed();
        ran.delivered = delivered.0;
        ran
    }

    /// Runs the turn and drops it as soon as `file` is there.
    pub fn drop_at(self, file: &Path) {
        let (mut engine, calls) = self.ready();
        let (mut ran, mut delivered) = (Ran::default(), Order::default());
        let there = async {
            while !file.exists() {
                tokio::task::yield_now().await;
            }
        };
        runtime().block_on(async {
            tokio::select! {
                () = engine.turn(0, calls, &mut ran, &mut delivered) => {}
                () = there => {}
            }
        });
    }

    fn ready(mut self) -> (Engine, Vec<Checked>) {
        let path = "/usr/local/bin:/usr/bin:/bin";
        self.environment
            .entry("PATH".into())
            .or_insert_with(|| path.into());
        let jobs = self.jobs.unwrap_or(8).try_into().unwrap();
        let engine = Engine::new(EngineSettings {
            tools: Arc::new(Tools {
                tools: Vec::new(),
                concurrency: jobs,
                root: std::env::temp_dir(),
                dir: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests"),
                secrets: Vec::new(),
                messages: BTreeMap::default(),
                prices: toolq_core::types::Prices::default(),
                digest: String::new(),
            }),
            jobs,
            outputs: self.outputs,
            supervisor: (!self.alone).then(|| env!("CARGO_BIN_EXE_toolq").into()),
            environment: Arc::new(self.environment.into_iter().collect::<Environment>()),
            resolver: self.resolver.unwrap_or_else(Resolver::system),
            mask: Arc::new(Mask::new(self.secrets.iter().map(String::as_str))),
            task: "task".to_owned(),
            budgets: Budgets::default(),
            memory: None,
        });
        let calls = self.calls.into_iter().enumerate();
        let calls = calls.map(|(position, call)| call.checked(position));
        (engine, calls.collect())
    }
}

/// One like the program's.
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// What came of a turn.
#[derive(Default)]
pub struct Ran {
    /// By position.
    pub outcomes: BTreeMap<usize, Outcome>,
    pub attempts: BTreeMap<usize, u32>,
    /// From its start to its answer, by position.
    pub durations: BTreeMap<usize, Duration>,
    /// Tips and progress in the order in which they were told.
    pub statuses: Vec<(Option<String>, Option<f64>)>,
    pub delivered: Vec<usize>,
    pub took: Duration,
    touch: Option<PathBuf>,
}

#[derive(Default)]
struct Order(Vec<usize>);

impl Delivery for Order {
    fn deliver(&mut self, call: &CallRef, _answer: Answer, _sink: &mut dyn Sink) {
        self.0.push(call.position);
    }

    fn drained(&mut self, _sink: &mut dyn Sink) {}
}

impl Sink for Ran {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        for event in events {
            match event {
                Event::Status { tip, progress, .. } => {
                    self.statuses.push((tip.map(str::to_owned), *progress));
                    if let Some(file) = &self.touch {
                        std::fs::write(file, "").unwrap();
                    }
                }
                Event::Finished {
                    call,
                    outcome,
                    attempts,
                    duration,
                    ..
                } => {
                    let twice = self.outcomes.insert(call.position, (*outcome).clone());
                    assert!(twice.is_none(), "{call:?} finished twice");
                    self.attempts.insert(call.position, *attempts);
                    self.durations.insert(call.position, *duration);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Ran {
    /// The outcome of the only call.
    pub fn outcome(&self) -> &Outcome {
        assert_eq!(self.outcomes.len(), 1);
        &self.outcomes[&0]
    }

    /// The text of the only call, which succeeded.
    pub fn text(&self) -> &str {
        text_of(self.outcome())
    }
}

/// The text of a call that succeeded.
pub fn text_of(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Succeeded {
            content: Content::Text(text),
            ..
        } => text,
        other => panic!("{other:?}"),
    }
}
