//! One file for each dialect: what its documents look like, and how its calls and results are read.
//!
//! To add a dialect, add a file here, an arm in each function of `dispatch` and in `detect`, and a variant of
//! [`Dialect`](crate::types::Dialect).

pub(crate) mod anthropic;
mod call_input;
pub(crate) mod claude_code;
pub(crate) mod codex;
pub(crate) mod dispatch;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
mod plain_result;
mod session_log;

pub(crate) use session_log::is_record;
