//! `toolq log export`: a session log in another form: a page, trace events, or a recording in the form of a vendor's API.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::commands::log::log_files::{read_timeline, select_logs, warn_torn};
use crate::commands::log::stats::load_prices;
use crate::commands::log::{ExportFormat, LogExportArguments};
use crate::context::CommandContext;
use crate::input::files;
use crate::log_view::doubt_notices;
use crate::log_view::timeline::{LogTimeline, TimelineCall};
use crate::output::{CommandError, Exit, check_output_file, replace_file, stdout, unwritten_file};
use crate::pages::timeline_page;
use toolq_core::answer::render_answers;
use toolq_core::json::{Input, expect_json};
use toolq_core::transcript::{InputError, Recording, invalid_input_object};
use toolq_core::types::{AnswerForm, Call, CallAnswer, CallKind, CallReport, Dialect};

/// Writes a line of an export.
type WriteLine<'w> = dyn FnMut(&str) -> Result<(), CommandError> + 'w;

/// Prints the logs in another form, or writes them to a file.
///
/// # Errors
/// A file isn't a session log or is damaged, or the export can't be written.
pub fn export_logs(
    arguments: &LogExportArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let logs = select_logs(&arguments.logs, context)?;
    let output = arguments.output.as_deref();
    if arguments.follow {
        if arguments.format != ExportFormat::Html {
            return Err(CommandError::usage("only a page can follow a log")
                .with_hint("add `--format html`, or leave out `--follow`"));
        }
        return follow_log(only_log(&logs)?, output, context);
    }
    write_export(output, &logs, context, |write_line| {
        let form = match arguments.format {
            ExportFormat::Html => {
                let (timeline, name) = read_only_log(&logs, context)?;
                let doubts = doubt_notices(name.as_ref(), context).unwrap_or_default();
                let prices = load_prices(context).unwrap_or_default();
                let page = timeline_page(&timeline, &name, &doubts, &prices, None);
                return write_line(&page);
            }
            ExportFormat::Trace => {
                let (timeline, name) = read_only_log(&logs, context)?;
                return write_line(&write_trace_events(&timeline, &name));
            }
            ExportFormat::Messages => AnswerForm::Message,
            ExportFormat::OpenaiChat => AnswerForm::OpenAiChat,
            ExportFormat::OpenaiResponses => AnswerForm::OpenAiResponses,
        };
        logs.iter()
            .try_for_each(|log| export_recording(log, form, context, write_line))
    })?;
    Ok(Exit::Ok)
}

/// Returns the log that a page or a trace shows.
fn only_log(logs: &[PathBuf]) -> Result<&Path, CommandError> {
    match logs {
        [log] => Ok(log),
        _ => {
            Err(CommandError::usage("a page or a trace has one log").with_hint("name one of them"))
        }
    }
}

/// Reads the calls of the only log, and warns if it ends in an incomplete record. Returns its name, too.
fn read_only_log(
    logs: &[PathBuf],
    context: &CommandContext,
) -> Result<(LogTimeline, String), CommandError> {
    let log = only_log(logs)?;
    let (timeline, torn_end) = read_timeline(log)?;
    if let Some(torn_end) = torn_end {
        warn_torn(log, &torn_end, context);
    }
    Ok((timeline, log.display().to_string()))
}

/// Writes what `export` makes of `logs` to a file, or to stdout without one or for `-`.
///
/// # Errors
/// `export` fails, or the file can't be written, is a log, or part of the tools file.
fn write_export(
    file: Option<&Path>,
    logs: &[PathBuf],
    context: &CommandContext,
    export: impl FnOnce(&mut WriteLine<'_>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let Some(path) = file.filter(|file| *file != Path::new("-")) else {
        return export(&mut |line| Ok(stdout::write_line(line)?));
    };
    let inputs = logs.iter().map(PathBuf::as_path);
    check_output_file(path, inputs, &context.find_tools_files())?;
    let mut exported = Ok(());
    let replaced = replace_file(path, |file| {
        exported = export(&mut |line| {
            writeln!(file, "{line}").map_err(|error| unwritten_file(path, &error))
        });
        // An export that failed doesn't replace the file.
        match exported {
            Ok(()) => Ok(()),
            Err(_) => Err(io::ErrorKind::Other.into()),
        }
    });
    exported?;
    replaced.map_err(|error| unwritten_file(path, &error))
}

// The page of a session that may still be running: it is written again as the log grows.

/// Time between two checks of a growing log. Also how often its page is loaded again.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const RELOAD_SECONDS: u32 = 1;

/// Writes the page whenever the log has grown, and once more when its session has ended or its process is gone.
///
/// # Errors
/// The log can't be read, or the page can't be written.
fn follow_log(
    path: &Path,
    output: Option<&Path>,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let is_stdin = |path: &Path| path == Path::new("-");
    let Some(output) = output.filter(|output| !is_stdin(output) && !is_stdin(path)) else {
        return Err(
            CommandError::usage("only a page in a file can follow a log")
                .with_hint("name both: `toolq log export --format html --follow LOG -o PAGE`"),
        );
    };
    check_output_file(output, [path], &context.find_tools_files())?;
    // Without prices, the page has all but the cost.
    let prices = load_prices(context).unwrap_or_default();
    let mut written = None;
    loop {
        let state = file_state(path);
        let (timeline, torn_end) = read_timeline(path)?;
        // Until the session has ended, a torn end is expected: its process may be in the middle of writing a record.
        let has_ended = has_ended(&timeline);
        if has_ended || written != Some(state) {
            let reload_after = (!has_ended).then_some(RELOAD_SECONDS);
            let name = path.display().to_string();
            let doubts = doubt_notices(path, context).unwrap_or_default();
            let page = timeline_page(&timeline, &name, &doubts, &prices, reload_after);
            // No browser reads half of it.
            let replaced = replace_file(output, |file| writeln!(file, "{page}"));
            replaced.map_err(|error| unwritten_file(output, &error))?;
            written = Some(state);
        }
        if has_ended {
            if let Some(torn_end) = torn_end {
                warn_torn(path, &torn_end, context);
            }
            return Ok(Exit::Ok);
        }
        sleep(POLL_INTERVAL);
    }
}

/// Returns what changes with each record.
fn file_state(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// Returns whether nothing more is going to be written.
fn has_ended(timeline: &LogTimeline) -> bool {
    let last = timeline.runs.last();
    last.is_some_and(|run| !run.is_running)
}

// A session log as a recording in the form of a vendor's API.

/// Writes a line with the calls of each turn of a log, and a line with their results. `form` is that of the results, and says which
/// API the messages are of.
///
/// # Errors
/// The file isn't a session log or is damaged, or a line can't be written.
fn export_recording(
    log: &Path,
    form: AnswerForm,
    context: &CommandContext,
    write_line: &mut WriteLine<'_>,
) -> Result<(), CommandError> {
    let source = files::open_source(log)?;
    let recording = Recording::read(source, Some(Dialect::Toolq), u64::MAX)?;
    let (recording, torn_end) = files::verify_session_log(recording, log)?;
    if let Some(torn_end) = torn_end {
        warn_torn(log, &torn_end, context);
    }
    let mut exported = 0;
    for number in 0..recording.len() {
        let turn = recording.turn(number, true)?;
        if turn.calls.is_empty() {
            continue;
        }
        let mut answers = Vec::with_capacity(turn.calls.len());
        for call in &turn.calls {
            answers.extend(recorded_answer(&recording, number, call)?);
        }
        write_line(&calls_line(form, &turn.calls))?;
        if !answers.is_empty() {
            write_line(&render_answers(form, &answers))?;
        }
        exported += 1;
    }
    if exported == 0 {
        let message = format!("{} has no calls to export", log.display());
        return Err(CommandError::usage(message));
    }
    Ok(())
}

/// Returns what the model got for a call, or `None` if the log has no result.
fn recorded_answer(
    recording: &Recording,
    turn: usize,
    call: &Call,
) -> Result<Option<CallAnswer>, InputError> {
    let reply = recording.reply(turn, call.position)?;
    Ok(reply.map(|reply| CallAnswer {
        tool_use_id: call.id.clone(),
        tool_name: call.name.to_string(),
        content: reply.result.content,
        is_error: reply.result.is_error.unwrap_or_default(),
        for_clients: None,
        report: CallReport::default(),
        has_number_id: false,
        kind: CallKind::Function,
    }))
}

/// Returns the model's message with the calls. Inputs keep their digits and the order of their keys.
fn calls_line(form: AnswerForm, calls: &[Call]) -> String {
    let calls = calls.iter();
    match form {
        AnswerForm::OpenAiChat => {
            let call = |call: &Call| {
                let function = json!({"name": *call.name, "arguments": input_text(call)});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.map(call).collect();
            json!({"role": "assistant", "tool_calls": calls}).to_string()
        }
        AnswerForm::OpenAiResponses => {
            let item = |call: &Call| {
                json!({"type": "function_call", "call_id": call.id, "name": *call.name,
                    "arguments": input_text(call)})
            };
            calls.map(item).collect::<Value>().to_string()
        }
        _ => {
            let content = calls.map(|call| ToolUseBlock {
                kind: "tool_use",
                id: &call.id,
                name: &call.name,
                input: input_object(call),
            });
            let content = expect_json(serde_json::to_string(&content.collect::<Vec<_>>()));
            format!(r#"{{"role":"assistant","content":{content}}}"#)
        }
    }
}

#[derive(Serialize)]
struct ToolUseBlock<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a str,
    name: &'a str,
    input: Box<RawValue>,
}

/// Returns an input, or an object with the reason why it wasn't one. The API refuses any other value.
fn input_object(call: &Call) -> Box<RawValue> {
    match &call.input {
        Ok(input) => input.as_raw().to_owned(),
        Err(fault) => expect_json(to_raw_value(&invalid_input_object(&fault.to_string()))),
    }
}

/// Returns the text of an input, or `null` if it wasn't an object.
fn input_text(call: &Call) -> &str {
    call.input.as_ref().map_or("null", Input::text)
}

// A session log as Chrome trace events, which Perfetto and `chrome://tracing` open.
//
// Calls that ran at the same time are in different lanes. An agent's call and those that it made, one after the other, may share
// one: within a lane, spans nest or follow each other, as viewers require.
//
// <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU> is the description of the format.

/// The process of all events. Lanes are its threads, numbered after it: viewers take thread 0 for an idle processor, and a thread
/// with the number of its process for the main one.
const PROCESS: u64 = 1;

/// Returns the trace of a log as one JSON object with an event per line. `title` names the process in the viewer.
fn write_trace_events(timeline: &LogTimeline, title: &str) -> String {
    let lanes = assign_lanes(timeline);
    let mut events = vec![name_event("process_name", 0, title)];
    let count = lanes.iter().max().map_or(0, |last| last + 1);
    for lane in 0..count {
        events.push(name_event(
            "thread_name",
            lane,
            &format!("lane {}", lane + 1),
        ));
    }
    for run in &timeline.runs {
        events.push(json!({
            "name": "run begins", "cat": "run", "ph": "i", "s": "p",
            "ts": micros(run.started_ms), "pid": PROCESS, "tid": thread(0),
        }));
    }
    for (call, lane) in timeline.calls.iter().zip(lanes) {
        push_call(call, timeline, lane, &mut events);
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    format!(
        "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}",
        lines.join(",\n")
    )
}

/// Returns when a call began and ended. One that never ran takes no time.
fn span(call: &TimelineCall, timeline: &LogTimeline) -> (u64, u64) {
    let start = call.started_ms().unwrap_or(call.requested_ms);
    let end = timeline.end_of(call).max(start);
    (start, if call.attempts.is_empty() { start } else { end })
}

/// Adds the event of a call, and one for each attempt if there are several.
fn push_call(call: &TimelineCall, timeline: &LogTimeline, lane: usize, events: &mut Vec<Value>) {
    let (start, end) = span(call, timeline);
    let complete = |name: &str, category: &str, from: u64, to: u64, arguments: Value| {
        json!({
            "name": name, "cat": category, "ph": "X", "ts": micros(from), "dur": micros(to - from),
            "pid": PROCESS, "tid": thread(lane), "args": arguments,
        })
    };
    let output = call.end.as_ref().map(|end| end.output.as_str());
    let arguments = json!({
        "tool_use_id": call.tool_use_id,
        "outcome": call.outcome.label(),
        "end": call.end.as_ref().map(|end| end.label.as_str()),
        "turn": call.turn,
        "position": call.position,
        "batch": call.batch,
        "waited_ms": start - call.requested_ms.min(start),
        "attempts": call.attempts.len(),
        "input": call.input,
        "output": output,
        "log_line": call.line,
    });
    events.push(complete(
        &call.tool_name,
        call.outcome.label(),
        start,
        end,
        arguments,
    ));
    if call.was_retried() {
        for (index, attempt) in call.attempts.iter().enumerate() {
            let failure = attempt.failure.as_ref();
            let to = failure
                .map_or(end, |(_, ended)| *ended)
                .clamp(attempt.started_ms, end.max(attempt.started_ms));
            let status = failure.map(|(status, _)| status.as_str().to_owned());
            let name = format!("attempt {}", index + 1);
            events.push(complete(
                &name,
                "attempt",
                attempt.started_ms,
                to,
                json!({"status": status}),
            ));
        }
    }
}

fn name_event(kind: &str, lane: usize, name: &str) -> Value {
    json!({"name": kind, "ph": "M", "pid": PROCESS, "tid": thread(lane), "args": {"name": name}})
}

/// Returns the number of the thread that a lane is.
fn thread(lane: usize) -> u64 {
    PROCESS + 1 + lane as u64
}

/// Trace events count in microseconds.
fn micros(ms: u64) -> u64 {
    ms.saturating_mul(1000)
}

/// Calls that are open in a lane, the innermost last: each with its end.
type OpenSpans = Vec<(usize, u64)>;

/// Returns the lane of each call, counted from 0.
fn assign_lanes(timeline: &LogTimeline) -> Vec<usize> {
    let calls = &timeline.calls;
    let span = |index: usize| span(&calls[index], timeline);
    let mut order: Vec<usize> = (0..calls.len()).collect();
    // A call that contains others comes before them.
    order.sort_by_key(|index| {
        let (start, end) = span(*index);
        (start, Reverse(end), *index)
    });
    let mut lanes: Vec<OpenSpans> = Vec::new();
    let mut assigned = vec![0; calls.len()];
    for index in order {
        let (start, end) = span(index);
        for lane in &mut lanes {
            while lane.last().is_some_and(|(_, ended)| *ended <= start) {
                lane.pop();
            }
        }
        let parent = calls[index].parent;
        let fits = |lane: &OpenSpans| match lane.last() {
            None => true,
            Some((outer, outer_end)) => parent == Some(*outer) && end <= *outer_end,
        };
        // Best below its agent, else in a free lane.
        let below = lanes.iter().position(|lane| !lane.is_empty() && fits(lane));
        let lane = below
            .or_else(|| lanes.iter().position(fits))
            .unwrap_or_else(|| {
                lanes.push(OpenSpans::new());
                lanes.len() - 1
            });
        lanes[lane].push((index, end));
        assigned[index] = lane;
    }
    assigned
}
