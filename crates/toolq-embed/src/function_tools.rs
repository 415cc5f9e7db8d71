//! Tools that are functions of the program.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use toolq_core::tools_file::{HostToolDeclarations, HostToolProblem};
use toolq_engine::{HostCall, HostFuture, HostReply};

/// A call of a tool that is a function of the program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that the model gave the call.
    pub tool_use_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The input, a JSON object. It matches the tool's schema, defaults are filled in, and secrets in it aren't masked.
    pub input: String,
    /// Counted from 1.
    pub attempt: u32,
    /// The same for all attempts of the call.
    pub idempotency_key: String,
    /// How long the attempt may take. After that, the future of the function is dropped.
    pub timeout: Duration,
}

/// What a function returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolOutput {
    /// A text.
    Text(String),
    /// JSON: any, if the tool declares `output: json`, or else a list of content blocks.
    Json(String),
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

type FunctionFuture = Pin<Box<dyn Future<Output = Result<ToolOutput, String>> + Send>>;

/// A function, and the keys that its tool would have in tools.yaml.
#[derive(Clone)]
pub(crate) struct FunctionTool {
    name: String,
    keys: String,
    function: Arc<dyn Fn(ToolCall) -> FunctionFuture + Send + Sync>,
}

impl fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("FunctionTool");
        debug.field("name", &self.name).finish_non_exhaustive()
    }
}

impl FunctionTool {
    pub(crate) fn new<F, R, O>(name: String, keys: String, function: F) -> Self
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, String>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let function = move |call| {
            let result = function(call);
            Box::pin(async move { result.await.map(Into::into) }) as FunctionFuture
        };
        Self {
            name,
            keys,
            function: Arc::new(function),
        }
    }

    /// Returns the tool's name and keys as a member of a JSON object.
    ///
    /// # Errors
    /// The keys aren't a JSON object.
    fn declaration(&self) -> Result<String, HostToolProblem> {
        let keys = self.keys.trim();
        let is_object = keys.starts_with('{') && serde_json::from_str::<&RawValue>(keys).is_ok();
        let rest = keys
            .strip_prefix('{')
            .filter(|_| is_object)
            .map(str::trim_start);
        let Some(rest) = rest else {
            return Err(HostToolProblem {
                at: vec![self.name.clone()],
                message: "the keys of the tool aren't a JSON object".to_owned(),
                hint: Some(r#"write the keys that it would have in tools.yaml: {"effect": "read", "input_schema": {…}}"#.to_owned()),
            });
        };
        let comma = if rest == "}" { "" } else { "," };
        let name = serde_json::Value::from(self.name.as_str());
        Ok(format!("{name}:{{\"backing\":\"host\"{comma}{rest}"))
    }
}

/// Declares the functions as tools. Returns `None` if there are no functions.
///
/// # Errors
/// The keys of one aren't a JSON object.
pub(crate) fn declare_functions(
    functions: &[FunctionTool],
) -> Result<Option<HostToolDeclarations>, HostToolProblem> {
    if functions.is_empty() {
        return Ok(None);
    }
    let members = functions.iter().map(FunctionTool::declaration);
    let members: Vec<String> = members.collect::<Result<_, _>>()?;
    let json = format!("{{{}}}", members.join(","));
    let json = RawValue::from_string(json).map_err(|error| HostToolProblem {
        at: Vec::new(),
        message: format!("the tools can't be declared: {error}"),
        hint: None,
    })?;
    HostToolDeclarations::new(&json).map(Some)
}

/// Runs the functions.
#[derive(Debug)]
pub(crate) struct FunctionRunner(HashMap<String, FunctionTool>);

impl FunctionRunner {
    pub(crate) fn new(functions: Vec<FunctionTool>) -> Self {
        let named = functions.into_iter();
        Self(named.map(|tool| (tool.name.clone(), tool)).collect())
    }
}

impl toolq_engine::HostTools for FunctionRunner {
    fn run<'a>(&'a self, call: &'a HostCall) -> HostFuture<'a> {
        Box::pin(async move {
            let Some(tool) = self.0.get(&*call.call.tool_name) else {
                let why = "it has no such function".to_owned();
                return HostReply::Lost {
                    was_sent: false,
                    why,
                };
            };
            let result = (tool.function)(ToolCall {
                tool_use_id: call.call.tool_use_id.clone(),
                tool_name: call.call.tool_name.to_string(),
                input: call.input.text().to_owned(),
                attempt: call.attempt,
                idempotency_key: call.idempotency_key.to_string(),
                timeout: call.timeout,
            });
            reply(result.await)
        })
    }
}

fn reply(result: Result<ToolOutput, String>) -> HostReply {
    let text = |text: String| {
        let json = serde_json::Value::from(text).to_string();
        RawValue::from_string(json).ok()
    };
    match result {
        Ok(ToolOutput::Text(output)) => HostReply::Done {
            content: text(output),
            is_error: false,
        },
        Ok(ToolOutput::Json(json)) => match RawValue::from_string(json) {
            Ok(json) => HostReply::Done {
                content: Some(json),
                is_error: false,
            },
            Err(error) => HostReply::Done {
                content: text(format!("the function returned invalid JSON: {error}")),
                is_error: true,
            },
        },
        Err(message) => HostReply::Done {
            content: text(message),
            is_error: true,
        },
    }
}
