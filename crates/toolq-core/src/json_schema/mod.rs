//! JSON Schema: finds the errors of a declared schema, or compiles it to a validator that reports every problem of an
//! input.
//!
//! Only this module uses the `jsonschema` crate. It opens no connections and no files, matches patterns in linear time, and
//! doesn't assert `format`.

mod defaults;
mod error_messages;
mod exact_keywords;
mod exact_numbers;
mod keywords;
mod lenient;
mod library;
mod meta_schemas;
mod pattern_syntax;
mod patterns;
mod problem_details;
mod references;
mod schema;
mod schema_error;
mod schema_errors;
mod schema_graph;
mod subschemas;
mod type_errors;
mod validation_options;

pub(crate) use defaults::find_invalid_defaults;
pub(crate) use keywords::{find_unknown_keywords, type_of_keyword};
pub(crate) use lenient::leave_out_unusable;
pub(crate) use pattern_syntax::PatternSyntax;
pub use schema::CompiledSchema;
pub(crate) use schema_error::SchemaError;
pub use schema_errors::find_schema_errors;
pub(crate) use type_errors::TypeError;
