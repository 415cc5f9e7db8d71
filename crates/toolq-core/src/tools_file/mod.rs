//! Parses, checks and resolves tools.yaml. The result is the tools that it declares, or every problem in it, each with
//! a position and a hint: text ── `yaml` ──► nodes ── `spanned` ──► `tables` ──► `ToolsConfig`.

mod argv;
mod context;
mod include;
mod input_values;
mod key_hints;
mod lints;
mod load;
mod spanned;
mod tables;
mod templates;
mod write;
mod yaml;

pub use argv::{StartedFile, find_started_files};
pub use context::{SourceMap, SourcePosition};
pub use include::{HostToolDeclarations, HostToolProblem};
pub use lints::find_warnings;
pub use load::{ParsedToolsFile, parse_locked_tools_file, parse_tools_file, parse_with_host_tools};
pub use tables::agent_tools::select_agent_tools;
pub use tables::builtins::OUTPUT_READER;
pub use tables::file::generate_tools_schema;
pub use write::{servers_tools_file, starter_tools_file};
pub use yaml::parse::parse_yaml;
pub use yaml::{YamlContent, YamlNode};
