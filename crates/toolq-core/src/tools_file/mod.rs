//! Parses, checks and resolves tools.yaml. The result is the tools that it declares, or every problem in it, each with
//! a position and a hint.
//!
//! ```text
//! text ── yaml ──► nodes ── spanned ──► keys ── resolve ──► Tools
//! ```

mod agent_tools;
mod argv;
mod env_file;
mod keys;
mod lints;
mod resolve;
mod secret_names;
mod source_map;
mod spanned;
mod write;
mod yaml;

pub use agent_tools::select_agent_tools;
pub use argv::{StartedFile, find_started_files};
pub use keys::generate_tools_schema;
pub use lints::{SandboxSurroundings, find_header_warnings, find_sandbox_warnings, find_warnings};
pub use resolve::{
    HostToolDeclarations, HostToolProblem, OUTPUT_READER, ParsedToolsFile, parse_locked_tools_file,
    parse_tools_file, parse_with_host_tools,
};
pub use source_map::{SourceMap, SourcePosition};
pub use write::{servers_tools_file, starter_tools_file};
pub use yaml::{YamlContent, parse_yaml};
