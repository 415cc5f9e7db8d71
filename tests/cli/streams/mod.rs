//! Calls that run while the input is still arriving, as a stream of events or line by line.

mod aborted_streams;
mod early_start;
mod follow;
mod interactive_run;
mod partial_inputs;
mod stream_equivalence;
