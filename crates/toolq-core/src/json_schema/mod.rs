//! JSON Schema: finds the errors of a declared schema, or compiles it to a validator that reports every problem of an
//! input.
//!
//! Only this module uses the `jsonschema` crate. It opens no connections and no files, matches patterns in linear time, and
//! doesn't assert `format`.

mod defaults;
mod keywords;
mod library;
mod patterns;
mod problem_details;
mod schema;
mod schema_errors;
mod schema_graph;
mod subschemas;

pub(crate) use defaults::find_invalid_defaults;
pub(crate) use keywords::{find_unknown_keywords, type_of_keyword};
pub(crate) use patterns::PatternSyntax;
pub use problem_details::ProblemDetail;
pub(crate) use problem_details::TypeError;
pub use schema::CompiledSchema;
pub use schema_errors::find_schema_errors;
pub(crate) use schema_errors::leave_out_unusable;
pub(crate) use subschemas::SchemaError;
