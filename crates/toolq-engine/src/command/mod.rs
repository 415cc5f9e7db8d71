//! Command backings: start a program with a call's arguments, feed its stdin, collect its output, and terminate its
//! whole process tree.

mod child;
mod pipes;
mod program_lookup;
mod runner;
mod sandbox;
mod spec;

pub(crate) use child::{ChildExit, ChildProcess};
pub(crate) use pipes::ParentEnds;
pub use program_lookup::{find_interpreter, find_program};
pub(crate) use runner::CommandRunner;
pub use sandbox::{find_sandbox_gaps, hides_file};
