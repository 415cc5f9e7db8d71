//! Resuming runs that were killed, interrupted or finished: results in the log are printed, missing calls run, and
//! calls that may have run are in doubt.

mod changed_inputs;
mod in_doubt;
mod kill_and_resume;
mod log_input;
mod probes;
mod repetition;
mod restored_results;
mod streaming_input;
mod user_messages;
