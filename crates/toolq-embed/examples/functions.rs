//! Tools that are functions of the program, and approvals by another function. There is no tools.yaml.
//!
//! ```sh
//! cargo run -p toolq-embed --example functions
//! ```
//!
//! Prints each question to stderr, and the reply to stdout.

use std::error::Error;

use toolq_embed::{ApprovalAnswer, ApprovalQuestion, ToolCall, Toolq};

/// What a model asks for.
const MESSAGE: &str = r#"{"role": "assistant", "content": [
    {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}},
    {"type": "tool_use", "id": "t2", "name": "pay", "input": {"amount": 5}},
    {"type": "tool_use", "id": "t3", "name": "pay", "input": {"amount": 900}}
]}"#;

/// The keys that the tools would have in tools.yaml.
const WEATHER: &str = r#"{
    "description": "The weather in a city.",
    "effect": "read",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
}"#;
const PAY: &str = r#"{
    "description": "Pay an amount.",
    "approve": true,
    "input_schema": {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
}"#;

#[tokio::main]
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example for people"
)]
async fn main() -> Result<(), Box<dyn Error>> {
    let toolq = Toolq::builder()
        .tool("weather", WEATHER, weather)
        .tool("pay", PAY, async |call| {
            Ok::<_, String>(format!("paid: {}", call.input))
        })
        .approve(async |question| {
            eprintln!("approve? {}", question.json);
            if is_small_payment(&question) {
                return ApprovalAnswer::Yes;
            }
            let reason = Some("too much".to_owned());
            ApprovalAnswer::No { reason }
        })
        .build()?;
    let reply = toolq.answer(MESSAGE).await?;
    println!("{reply}");
    toolq.close()?;
    Ok(())
}

async fn weather(call: ToolCall) -> Result<String, String> {
    match serde_json::from_str::<serde_json::Value>(&call.input) {
        Ok(input) if input["city"] == "Oslo" => Ok("Rain, 7 °C".to_owned()),
        Ok(_) => Err("only the weather in Oslo is known".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn is_small_payment(question: &ApprovalQuestion) -> bool {
    let question = serde_json::from_str::<serde_json::Value>(&question.json);
    let amount = question
        .ok()
        .and_then(|question| question["input"]["amount"].as_u64());
    amount.is_some_and(|amount| amount < 100)
}
