//! An MCP server for the rows that need one with a list of tools: each call returns its arguments, as text and as JSON.

use std::io::{self, BufRead as _, BufReader, BufWriter, Write};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Result;

/// Names of its tools, as the server itself has them.
pub const TOOL_NAMES: [&str; 5] = [
    "read_note",
    "list_notes",
    "find_note",
    "count_notes",
    "outline_note",
];

/// A request or a notification.
#[derive(Deserialize)]
struct ClientMessage<'t> {
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    method: &'t str,
    params: Option<CallParams<'t>>,
}

#[derive(Deserialize)]
struct CallParams<'t> {
    #[serde(borrow)]
    arguments: Option<&'t RawValue>,
}

/// Serves the client on stdin and stdout until it leaves.
///
/// # Errors
/// The client sends what isn't a message, or can't be written to.
pub fn run() -> Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        answer(&serde_json::from_slice(&line)?, &mut output)?;
        line.clear();
        // Answers are sent together if the client has sent several requests.
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    Ok(())
}

fn answer(message: &ClientMessage<'_>, output: &mut impl Write) -> Result<()> {
    let Some(id) = message.id else {
        return Ok(());
    };
    write!(output, r#"{{"jsonrpc":"2.0","id":{id},"#)?;
    let arguments = message.params.as_ref().and_then(|params| params.arguments);
    match message.method {
        "initialize" => write!(
            output,
            r#""result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench","version":"1"}}}}"#
        )?,
        "tools/list" => write!(output, r#""result":{}"#, tool_list())?,
        "tools/call" => write_echo(output, arguments.map_or("{}", RawValue::get))?,
        _ => write!(output, r#""error":{{"code":-32601,"message":"unknown"}}"#)?,
    }
    output.write_all(b"}\n")?;
    Ok(())
}

fn write_echo(output: &mut impl Write, arguments: &str) -> Result<()> {
    write!(output, r#""result":{{"content":[{{"type":"text","text":"#)?;
    serde_json::to_writer(&mut *output, arguments)?;
    write!(output, r#"}}],"structuredContent":{arguments}}}"#)?;
    Ok(())
}

fn tool_list() -> Value {
    let note = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "Where the note is, below the directory of the notes"},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2, "maxItems": 2},
            "mode": {"enum": ["text", "outline"]},
            "question": {"type": "string", "maxLength": 2000},
        },
        "required": ["path", "mode"],
        "additionalProperties": false,
    });
    let tools = TOOL_NAMES.map(|name| {
        json!({
            "name": name,
            "description": "Read some lines of a note. The server returns the input itself.",
            "inputSchema": note,
            "outputSchema": note,
            "annotations": {"readOnlyHint": true},
        })
    });
    json!({"tools": tools})
}
