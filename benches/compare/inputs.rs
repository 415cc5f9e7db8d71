//! The inputs of the benchmarks: realistic turns of any size, identical on every run, and written as they're generated.

use std::io::{Result, Write};

/// Appears once in the input of each call, and so once in each result that echoes its input.
pub const OUTPUT_MARKER: &str = "notes/call-";

/// Text with what is hard to parse: quotes, line breaks, and non-ASCII letters. Escaped for JSON, about 240 bytes.
const PROSE: &str = concat!(
    r#"The café on the corner opens at 7:30 and \"never\" closes before midnight.\n\tIts owner, Zoë, keeps two cats; "#,
    r#"the grey one sleeps on the till.\nAsk her about C:\\notes\\may.txt, or see https://example.org/?q=a&b=c … \u00b5"#,
);

/// Returns the input of call `number`, valid for `tools.yaml`.
pub fn call_input(number: usize) -> String {
    format!(
        r#"{{"path":"{OUTPUT_MARKER}{number}.md","lines":[1,{}],"mode":"text","question":"Who wrote note {number}, and \"why\"?\nOne line."}}"#,
        number % 400 + 1
    )
}

/// Returns the input of call `number` for the `echo` of servers that are used to test MCP clients.
pub fn echo_input(number: usize) -> String {
    format!(r#"{{"message":"Who wrote note {number}, and \"why\"?"}}"#)
}

/// Writes one input per line, for programs that know nothing about models.
pub fn write_inputs(out: &mut impl Write, calls: usize) -> Result<()> {
    (0..calls).try_for_each(|number| writeln!(out, "{}", call_input(number)))
}

/// Writes a response with `calls` calls of `tool`.
pub fn write_response(out: &mut impl Write, tool: &str, calls: usize) -> Result<()> {
    write_response_of(out, &[tool], calls, call_input)
}

/// Writes a response with `calls` calls of these tools in turn. `input` returns the input of each.
pub fn write_response_of(
    out: &mut impl Write,
    tools: &[&str],
    calls: usize,
    input: fn(usize) -> String,
) -> Result<()> {
    write!(
        out,
        r#"{{"id":"msg_bench","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":["#
    )?;
    write_call_blocks(out, tools, calls, input)?;
    write!(
        out,
        r#"],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":2051,"output_tokens":{calls}}}}}"#
    )
}

/// Writes at least `bytes` bytes of JSONL. Each line is a message with some text and two calls, one with a long input.
/// Returns the number of lines.
pub fn write_turns(out: &mut impl Write, bytes: usize) -> Result<usize> {
    let content = PROSE.repeat(24);
    let mut written = 0;
    let mut number = 0;
    while written < bytes {
        let input = call_input(number);
        let line = format!(
            concat!(
                r#"{{"id":"msg_{n}","type":"message","role":"assistant","content":[{{"type":"text","text":"{text}"}},"#,
                r#"{{"type":"tool_use","id":"toolu_{n}_a","name":"read_note","input":{input}}},"#,
                r#"{{"type":"tool_use","id":"toolu_{n}_b","name":"write_note","input":{{"path":"a.md","content":"{content}"}}}}],"#,
                r#""stop_reason":"tool_use"}}"#
            ),
            n = number,
            text = PROSE,
            input = input,
            content = content,
        );
        writeln!(out, "{line}")?;
        written += line.len() + 1;
        number += 1;
    }
    Ok(number)
}

/// Writes a tools.yaml with `count` tools of typical size, all like `read_note`.
pub fn write_tools_file(out: &mut impl Write, count: usize) -> Result<()> {
    writeln!(out, "version: 1\ntools:")?;
    (0..count).try_for_each(|number| {
        writeln!(
            out,
            r#"  tool_{number}:
    description: Read some lines of a note, number {number} of many tools that look alike.
    input_schema:
      type: object
      properties:
        path: {{type: string, minLength: 1, description: "Where the note is, below the working directory"}}
        lines: {{type: array, items: {{type: integer, minimum: 1}}, minItems: 2, maxItems: 2}}
        mode: {{enum: [text, outline], default: text}}
        question: {{type: string, maxLength: 2000}}
      required: [path, mode]
      additionalProperties: false
    effect: read
    timeout: 5s
    estimate: 10ms
    status: {{doing: "reading {{path}}"}}
    command: [cat, --, "{{path}}"]"#
        )
    })
}

/// Writes a tools.yaml with `count` tools, each with six texts that must match a pattern.
pub fn write_patterned_tools_file(out: &mut impl Write, count: usize) -> Result<()> {
    writeln!(out, "version: 1\ntools:")?;
    (0..count).try_for_each(|number| {
        writeln!(
            out,
            r#"  tool_{number}:
    description: Change a record, number {number} of many tools that look alike.
    input_schema:
      type: object
      properties:
        name: {{type: string, pattern: "^[a-z][a-z0-9_-]{{0,62}}$"}}
        date: {{type: string, pattern: "^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$"}}
        note: {{type: string, pattern: "^notes/[a-z]+-[0-9]+\\.md$"}}
        ticket: {{type: string, pattern: "^[A-Z]{{2,3}}-[0-9]{{1,6}}$"}}
        states: {{type: string, pattern: "^(open|closed|draft)(,(open|closed|draft))*$"}}
        mail: {{type: string, pattern: "^[^\\s@]+@[^\\s@]+\\.[a-z]{{2,}}$"}}
      required: [name]
      additionalProperties: false
    effect: read
    command: [cat, --, "{{name}}"]"#
        )
    })
}

/// Returns the input of call `number`, valid for the tools of [`write_patterned_tools_file`].
pub fn patterned_input(number: usize) -> String {
    format!(r#"{{"name":"record-{number}","date":"2026-11-24"}}"#)
}

fn write_call_blocks(
    out: &mut impl Write,
    tools: &[&str],
    calls: usize,
    input: fn(usize) -> String,
) -> Result<()> {
    (0..calls).try_for_each(|number| {
        let comma = if number == 0 { "" } else { "," };
        let tool = tools[number % tools.len()];
        let input = input(number);
        write!(
            out,
            r#"{comma}{{"type":"tool_use","id":"toolu_{number:08}","name":"{tool}","input":{input}}}"#
        )
    })
}
