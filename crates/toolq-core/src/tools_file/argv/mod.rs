//! Finds the arguments of a command that name a program or contain code. Values from the input must not become part of
//! them. What programs do with their arguments is in a table, `programs.txt`; a program that isn't there is assumed to treat
//! them as data.

pub(crate) mod programs;
pub(crate) mod roles;
