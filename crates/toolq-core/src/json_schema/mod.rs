//! JSON Schema: a declared schema → its problems, or a validator that reports every problem of an input.
//!
//! Only this module knows the validating crate. It opens no connection, reads no file outside the directory of tools.yaml,
//! matches patterns in linear time, and asserts no `format`.

mod bundle;
mod details;
mod faults;
mod keywords;
mod library;
mod links;
mod patterns;
mod schema;
mod type_errors;
mod walk;
mod wording;

pub(crate) use bundle::bundled;
pub use faults::schema_faults;
pub(crate) use keywords::{strays, type_of};
pub use schema::Schema;
pub(crate) use schema::SchemaFault;
pub(crate) use type_errors::Wanted;
pub(crate) use walk::{escaped, pointer};
