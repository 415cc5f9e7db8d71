//! The arguments of `toolq replay`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{BudgetFlags, InputFormat, OtlpFlags, parse_jobs, recording_format_parser};
use crate::replay::{ExecutePolicy, Shard};
use toolq_core::text::parse_bytes;
use toolq_core::types::{IgnorePattern, TextNormalizer};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub struct ReplayArguments {
    /// Recordings: files, directories (searched recursively), or globs; `-` is stdin
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Which calls to run; the results of the others are served from the recording
    #[arg(long, value_name = "WHICH", default_value = "read")]
    pub execute: ExecutePolicy,
    /// Run commands with all their effects on a throw-away copy of `root`, one for each recording
    #[arg(long, conflicts_with = "execute")]
    pub(super) on_copy: bool,
    /// With --on-copy: keep the copies, and print where they are
    #[arg(long, requires = "on_copy")]
    pub keep: bool,
    /// Let stale results count as differences: those of reads after a call that would have changed something, but was
    /// served
    #[arg(long)]
    pub strict: bool,
    /// Ignore differences in this part of each result: `/pointer`, or `//name` at any depth; can be repeated
    #[arg(long, value_name = "PART", value_parser = IgnorePattern::parse)]
    pub ignore: Vec<IgnorePattern>,
    /// Ignore text that matches this regular expression, such as times and hashes; can be repeated
    #[arg(long, value_name = "REGEX", value_parser = TextNormalizer::removing)]
    pub(super) ignore_text: Vec<TextNormalizer>,
    /// Write a JSON report; `-` is stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write a JUnit report: a suite per recording, a case per call
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Write a Markdown summary, for the page of a CI run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
    /// Write a page with what holds and what differs, for a reviewer (HTML)
    ///
    /// Recorded and current results stand side by side. The page needs no network and no other file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write new results into the recordings
    ///
    /// Only the results that differ are edited; every other byte of a recording stays.
    #[arg(long)]
    pub update: bool,
    /// Replay only part K of N of the sorted recordings
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// Stop after the first turn in which a call differs
    #[arg(long)]
    pub fail_fast: bool,
    /// Format of the recordings [default: auto-detect]
    #[arg(long, value_name = "DIALECT", value_parser = recording_format_parser())]
    pub from: Option<InputFormat>,
    /// Largest JSON document to accept
    #[arg(long = "max-input", value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub max_document: u64,
    /// Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Append a session log of the calls that run to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    #[command(flatten)]
    pub otlp: OtlpFlags,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}
