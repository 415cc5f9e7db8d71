//! Running an input again, after whatever happened: what has run is answered from memory, what may have run is in doubt, and the
//! rest runs.

mod in_doubt;
mod kill_and_resume;
mod log_input;
mod once;
mod planned;
mod probes;
mod pruned;
mod restored_results;
mod same_call;
mod streaming_input;
mod user_messages;
