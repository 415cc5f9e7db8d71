//! One file per command.

pub mod agent;
pub mod check;
pub mod generate;
pub mod init;
pub mod log;
pub mod plan;
pub mod replay;
pub mod run;
pub mod tools;

pub mod inputs;
