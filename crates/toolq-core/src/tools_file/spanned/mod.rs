//! YAML nodes → typed fields that know their position. Every wrong value is reported, and none hides another.

mod access;
mod fault;
mod field;
mod reader;

pub(crate) use field::{Placed, Setting, Table, read};
