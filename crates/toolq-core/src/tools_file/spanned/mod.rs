//! Deserializes YAML nodes into typed fields that know their position. Every invalid value is reported, and no error
//! hides another.

mod field;
mod field_error;
mod node_deserializer;

pub(crate) use field::{Field, Spanned, SpannedTable, deserialize_node};
