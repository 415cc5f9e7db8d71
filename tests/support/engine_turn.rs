//! Runs a turn on the real engine, without the binary: takes tools and calls, returns outcomes, status events and the order
//! of delivery.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of this module, and tests may unwrap"
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
    AcceptedCall, ApprovalPolicy, Backing, Call, CallAnswer, CallKind, CallRef, CallTimeouts,
    CheckedCall, CommandBacking, CommandInvocation, CommandLimits, Compare, Effect, EmitError,
    Event, EventSink, HttpBacking, HttpInvocation, HttpMethod, Invocation, Leftovers, OnDoubt,
    OnFailure, Outcome, OutputKind, PartialJson, PartialTemplate, RequestBody, ResultContent,
    RetryPolicy, SafetyPolicy, SafetySource, Segment, StartLimits, StatusTemplates, StderrUse,
    StdinContent, StdinSource, Template, Tool, ToolsConfig, Verdict,
};
use toolq_engine::{AnswerDelivery, BudgetLimits, Engine, EngineSettings, Resolver};

/// Returns a tool with generous limits and no backing.
pub fn tool_without_backing(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: String::new(),
        display_name: None,
        category: None,
        input_schema: serde_json::Value::Bool(true),
        describe: None,
        awaits_list: false,
        safety: SafetyPolicy::Declared(true),
        effect: Effect::Read,
        approve: ApprovalPolicy::Never,
        locks: None,
        start_limits: StartLimits::default(),
        destructive: None,
        open_world: None,
        timeout: CallTimeouts {
            after: Duration::from_mins(1),
            kill_grace: Duration::from_secs(20),
            slow_after: None,
            total: None,
        },
        estimate: None,
        paths: Vec::new(),
        status: StatusTemplates::default(),
        backing: None,
        probe: None,
        output: OutputKind::Text,
        raw_output: false,
        empty_output: None,
        output_schema: None,
        max_output: 64 << 10,
        max_saved: 64 << 20,
        retry: RetryPolicy {
            max_retries: 0,
            conditions: Vec::new(),
            initial_backoff: Duration::ZERO,
            max_backoff: Duration::from_secs(1),
        },
        on_failure: OnFailure::Continue,
        on_doubt: OnDoubt::default(),
        pause_after_failures: None,
        coerce: false,
        compare: Compare::Json,
        ignore: Vec::new(),
        normalize: Vec::new(),
        cache: None,
        once: None,
        messages: BTreeMap::new(),
    }
}

/// A call that is ready to run.
pub struct TestCall {
    pub tool: Tool,
    pub input: String,
    pub safe: bool,
    pub invocation: Option<Invocation>,
}

/// Returns a call that runs a command.
pub fn command_call(argv: &[&str]) -> TestCall {
    let mut tool = tool_without_backing("command");
    tool.backing = Some(Backing::Command(CommandBacking {
        program: argv[0].to_owned(),
        arguments: Vec::new(),
        dashes: Vec::new(),
        stdin: StdinSource::Input,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: std::env::temp_dir(),
        success_exit: vec![0],
        stderr: StderrUse::default(),
        leftovers: Leftovers::default(),
        limits: CommandLimits::default(),
        sandbox: None,
        wrapper: None,
    }));
    TestCall {
        tool,
        input: "{}".to_owned(),
        safe: true,
        invocation: Some(Invocation::Command(CommandInvocation {
            argv: argv.iter().collect(),
            stdin: StdinContent::Input,
            env: Box::default(),
            sandbox: None,
        })),
    }
}

/// Returns a call that runs a shell script, with `arguments` as `$1`, `$2` …
pub fn shell_call(script: &str, arguments: &[&str]) -> TestCall {
    command_call(&[&["sh", "-c", script, "sh"], arguments].concat())
}

/// Returns a call that sends a request without body.
pub fn http_call(method: HttpMethod, url: &str) -> TestCall {
    let mut tool = tool_without_backing("http");
    tool.backing = Some(Backing::Http(HttpBacking {
        method,
        url: Template::from_text(url),
        allowed_hosts: None,
        query: Vec::new(),
        headers: Vec::new(),
        body: RequestBody::None,
        success_status: vec![200..=299],
        select: None,
        max_redirects: 0,
        proxy: None,
    }));
    TestCall {
        tool,
        input: "{}".to_owned(),
        safe: true,
        invocation: Some(Invocation::Http(Box::new(HttpInvocation {
            url: text_template(url),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
        }))),
    }
}

/// Returns a template that consists of plain text.
pub fn text_template(text: &str) -> PartialTemplate {
    PartialTemplate(vec![Segment::Text(text.to_owned())])
}

impl TestCall {
    pub fn tool(mut self, change: impl FnOnce(&mut Tool)) -> Self {
        change(&mut self.tool);
        self
    }

    pub fn timeout(self, after_ms: u64, grace_ms: u64) -> Self {
        self.tool(|tool| {
            tool.timeout.after = Duration::from_millis(after_ms);
            tool.timeout.kill_grace = Duration::from_millis(grace_ms);
        })
    }

    pub fn input(mut self, input: &str) -> Self {
        input.clone_into(&mut self.input);
        self
    }

    pub fn not_concurrency_safe(mut self) -> Self {
        self.safe = false;
        self
    }

    pub fn command_backing(mut self, change: impl FnOnce(&mut CommandBacking)) -> Self {
        if let Some(Backing::Command(backing)) = &mut self.tool.backing {
            change(backing);
        }
        self
    }

    pub fn command_invocation(mut self, change: impl FnOnce(&mut CommandInvocation)) -> Self {
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

    pub fn http_invocation(mut self, change: impl FnOnce(&mut HttpInvocation)) -> Self {
        if let Some(Invocation::Http(request)) = &mut self.invocation {
            change(request);
        }
        self
    }

    pub fn body(self, json: &str) -> Self {
        let raw = serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
        self.http_invocation(|request| request.body = Some(PartialJson::Raw(raw.into())))
    }

    /// Runs the call in a turn of its own.
    pub fn run(self) -> TurnReport {
        TestTurn::default().call(self).run()
    }

    fn into_checked_call(self, position: usize) -> CheckedCall {
        let input = Input::parse(&self.input).unwrap();
        CheckedCall {
            call: Call {
                turn: 0,
                position,
                id: format!("call_{position}"),
                name: self.tool.name.as_str().into(),
                input: Ok(input.clone()),
                parent: None,
                has_number_id: false,
                kind: CallKind::Function,
            },
            verdict: Verdict::Accepted(Box::new(AcceptedCall {
                tool: Arc::new(self.tool),
                input,
                before_coercion: None,
                is_coerced: false,
                safe: self.safe,
                safety_source: SafetySource::Declared,
                locks: None,
                needs_approval: false,
                invocation: self.invocation,
                probe: None,
            })),
            known: None,
            approval: None,
            unsettled: None,
            is_renewed: false,
            repeats: None,
        }
    }
}

/// A turn and the environment in which it runs.
#[derive(Default)]
pub struct TestTurn {
    calls: Vec<TestCall>,
    jobs: Option<usize>,
    environment: BTreeMap<OsString, OsString>,
    secrets: Vec<String>,
    outputs: Option<PathBuf>,
    touch_on_status: Option<PathBuf>,
    unsupervised: bool,
    resolver: Option<Resolver>,
}

impl TestTurn {
    pub fn call(mut self, call: TestCall) -> Self {
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

    pub fn outputs(mut self, dir: PathBuf) -> Self {
        self.outputs = Some(dir);
        self
    }

    /// Runs commands without the supervisor.
    pub fn unsupervised(mut self) -> Self {
        self.unsupervised = true;
        self
    }

    /// Resolves host names with `resolver`.
    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Creates this file on each status event of a running call.
    pub fn touch_on_status(mut self, file: PathBuf) -> Self {
        self.touch_on_status = Some(file);
        self
    }

    /// Runs the turn to its end.
    pub fn run(mut self) -> TurnReport {
        let mut ran = TurnReport {
            touch_on_status: self.touch_on_status.take(),
            ..TurnReport::default()
        };
        let (mut engine, calls) = self.build();
        let mut delivered = DeliveryRecorder::default();
        let started_at = Instant::now();
        let runtime = build_runtime();
        runtime.block_on(engine.run_turn(0, calls, &mut ran, &mut delivered));
        ran.elapsed = started_at.elapsed();
        ran.delivery_order = delivered.0;
        ran
    }

    /// Runs the turn and drops it as soon as `file` exists.
    pub fn drop_when_exists(self, file: &Path) {
        let (mut engine, calls) = self.build();
        let (mut ran, mut delivered) = (TurnReport::default(), DeliveryRecorder::default());
        let file_appears = async {
            while !file.exists() {
                tokio::task::yield_now().await;
            }
        };
        build_runtime().block_on(async {
            tokio::select! {
                () = engine.run_turn(0, calls, &mut ran, &mut delivered) => {}
                () = file_appears => {}
            }
        });
    }

    fn build(mut self) -> (Engine, Vec<CheckedCall>) {
        let path = "/usr/local/bin:/usr/bin:/bin";
        self.environment
            .entry("PATH".into())
            .or_insert_with(|| path.into());
        let jobs = self.jobs.unwrap_or(8).try_into().unwrap();
        let engine = Engine::new(EngineSettings {
            approver: None,
            host_tools: None,
            tools: Arc::new(ToolsConfig {
                tools: Vec::new(),
                concurrency: jobs,
                root: std::env::temp_dir(),
                dir: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests"),
                own_files: Vec::new(),
                env_file: toolq_core::types::EnvFile::default(),
                secrets: Vec::new(),
                messages: BTreeMap::default(),
                prices: toolq_core::types::PriceTable::default(),
                digest: String::new(),
                servers: Vec::new(),
                unlocked: Vec::new(),
            }),
            jobs,
            output_dir: self.outputs,
            log_files: Vec::new(),
            supervisor_program: (!self.unsupervised).then(|| env!("CARGO_BIN_EXE_toolq").into()),
            held_file: None,
            environment: Arc::new(self.environment.into_iter().collect::<Environment>()),
            resolver: self.resolver.unwrap_or_else(Resolver::system),
            mask: Arc::new(Mask::new(self.secrets.iter().map(String::as_str))),
            trace: None,
            task_id: "task".to_owned(),
            budget_limits: BudgetLimits::default(),
            memory: None,
        });
        let calls = self.calls.into_iter().enumerate();
        let calls = calls.map(|(position, call)| call.into_checked_call(position));
        (engine, calls.collect())
    }
}

/// Builds a runtime like the one of the binary.
fn build_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// What a turn led to.
#[derive(Default)]
pub struct TurnReport {
    /// By position in the turn.
    pub outcomes: BTreeMap<usize, Outcome>,
    pub attempts: BTreeMap<usize, u32>,
    /// From each call's start to its result, by position.
    pub durations: BTreeMap<usize, Duration>,
    /// Tips and progress, in the order in which they were emitted.
    pub statuses: Vec<(Option<String>, Option<f64>)>,
    pub delivery_order: Vec<usize>,
    pub elapsed: Duration,
    touch_on_status: Option<PathBuf>,
}

#[derive(Default)]
struct DeliveryRecorder(Vec<usize>);

impl AnswerDelivery for DeliveryRecorder {
    fn deliver(&mut self, call: &Arc<CallRef>, _answer: CallAnswer, _sink: &mut dyn EventSink) {
        self.0.push(call.position);
    }
}

impl EventSink for TurnReport {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            match event {
                Event::Status {
                    message: tip,
                    progress,
                    ..
                } => {
                    self.statuses.push((tip.map(str::to_owned), *progress));
                    if let Some(file) = &self.touch_on_status {
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
                    let earlier = self.outcomes.insert(call.position, (*outcome).clone());
                    assert!(earlier.is_none(), "{call:?} finished twice");
                    self.attempts.insert(call.position, *attempts);
                    self.durations.insert(call.position, *duration);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl TurnReport {
    /// Returns the outcome of the only call.
    pub fn outcome(&self) -> &Outcome {
        assert_eq!(self.outcomes.len(), 1);
        &self.outcomes[&0]
    }

    /// Returns the text of the only call, which must have succeeded.
    pub fn text(&self) -> &str {
        success_text(self.outcome())
    }
}

/// Returns the text of an outcome, which must be a success.
pub fn success_text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Succeeded {
            content: ResultContent::Text(text),
            ..
        } => text,
        other => panic!("{other:?}"),
    }
}
