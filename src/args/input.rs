//! The inputs of `run` and `plan`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::values::{InputFormat, input_format_parser, parse_jobs};
use toolq_core::text::parse_bytes;

/// The inputs of `run` and `plan`.
#[derive(Debug, Args)]
pub struct InputArguments {
    /// Model responses: JSON, JSONL, or streams of server-sent events; `-` is stdin [default: stdin]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Input format [default: auto-detect]
    #[arg(long, value_name = "DIALECT", value_parser = input_format_parser())]
    pub from: Option<InputFormat>,
    /// Include calls that already have a result in the input, and abandoned ones
    #[arg(long)]
    pub all: bool,
    /// Largest JSON document to accept
    #[arg(long = "max-input", value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub max_document: u64,
    /// Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
}

impl InputArguments {
    /// Returns the path of each input; `-` is stdin.
    pub fn paths(&self) -> Vec<PathBuf> {
        match self.files.as_slice() {
            [] => vec![PathBuf::from("-")],
            files => files.to_vec(),
        }
    }
}
