//! What a tool printed of itself → the tool with it, or why that can't be used. Nobody vouches for it: the rules for it are
//! those of the file.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::faults;
use super::schema::bundled;
use crate::model::{Said, Tool};

/// Bytes that a tool may print of itself.
pub const MAX_DESCRIPTION: u64 = 256 << 10;

/// What `describe` prints. Other members are passed over.
#[derive(Deserialize)]
struct Printed {
    description: Option<String>,
    input_schema: Value,
}

/// `tool` with what its `describe` printed. Files that its schema refers to stand in `dir`.
///
/// # Errors
/// What is wrong with `printed`.
pub fn described(tool: &Tool, printed: &str, dir: &Path) -> Result<Tool, String> {
    let printed: Printed = serde_json::from_str(printed).map_err(|error| {
        format!("what it prints is no {{\"description\": …, \"input_schema\": …}}: {error}")
    })?;
    let mut schema = printed.input_schema;
    if let Some(fault) = faults(&schema, dir).into_iter().next() {
        return Err(format!(
            "its input_schema can't be used: {}{}{}",
            fault.pointer,
            if fault.pointer.is_empty() { "" } else { ": " },
            fault.message
        ));
    }
    if schema.get("type").is_none_or(|kind| kind != "object") {
        return Err("its input_schema does not say `\"type\": \"object\"`".to_owned());
    }
    if let Ok(Some(whole)) = bundled(&schema, dir) {
        schema = whole;
    }
    let mut tool = tool.clone();
    tool.description = printed.description.unwrap_or(tool.description);
    tool.input_schema = schema;
    if let Some(describe) = &mut tool.describe {
        describe.said = Said::Well;
    }
    Ok(tool)
}
