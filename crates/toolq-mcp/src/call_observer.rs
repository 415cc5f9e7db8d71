//! Watches a connection between others: which tools the client calls, and what the server answers.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call_result::CallToolResult;
use crate::call_result_kind::CallResultKind;
use crate::client::CallError;
use crate::message::{Message, parse_messages};

/// The calls on a connection between two other processes. Pass it every line of either side, in the order in which they
/// arrive.
#[derive(Debug, Default)]
pub struct CallObserver {
    /// The calls without an answer, by the id of their request.
    open: HashMap<String, usize>,
    observed: usize,
}

/// A call of a tool that a client makes.
#[derive(Debug)]
pub struct ObservedCall {
    /// Tells the calls of a connection apart: their number, counted from 0.
    pub number: usize,
    /// The id of the client's request, as JSON.
    pub request_id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, as they came; `None` if the call has no arguments.
    pub arguments: Option<Box<RawValue>>,
}

/// The server's answer to a call.
#[derive(Debug)]
pub struct ObservedAnswer {
    /// The number of the call.
    pub number: usize,
    /// What the tool answered, or why there is no result.
    pub result: Result<CallToolResult, CallError>,
}

#[derive(Deserialize)]
struct CallParams {
    name: String,
    arguments: Option<Box<RawValue>>,
}

impl CallObserver {
    /// Takes a line from the client, and returns the calls in it.
    pub fn take_client_line(&mut self, line: &[u8]) -> Vec<ObservedCall> {
        let messages = parse_messages(line).unwrap_or_default().into_iter();
        messages
            .filter_map(|message| self.observe_request(&message))
            .collect()
    }

    /// Takes a line from the server, and returns the answers to calls in it.
    pub fn take_server_line(&mut self, line: &[u8]) -> Vec<ObservedAnswer> {
        let messages = parse_messages(line).unwrap_or_default().into_iter();
        messages
            .filter_map(|message| self.observe_response(message))
            .collect()
    }

    fn observe_request(&mut self, message: &Message<'_>) -> Option<ObservedCall> {
        let Message::Request { id, method, params } = message else {
            return None;
        };
        if method != "tools/call" {
            return None;
        }
        let params: CallParams = serde_json::from_str((*params)?.get()).ok()?;
        let request_id = id.as_json().to_owned();
        let number = self.observed;
        self.observed += 1;
        self.open.insert(request_id.clone(), number);
        Some(ObservedCall {
            number,
            request_id,
            name: params.name,
            arguments: params.arguments,
        })
    }

    fn observe_response(&mut self, message: Message<'_>) -> Option<ObservedAnswer> {
        let Message::Response {
            id: Some(id),
            result,
        } = message
        else {
            return None;
        };
        let number = self.open.remove(id.as_json())?;
        let result = match result {
            Ok(result) => read_result(result),
            Err(error) => Err(CallError::Refused(error)),
        };
        Some(ObservedAnswer { number, result })
    }
}

/// Reads the result of a call. A client that is asked for something makes another call, so this one has no result.
fn read_result(json: &RawValue) -> Result<CallToolResult, CallError> {
    match CallResultKind::read(json)? {
        CallResultKind::Complete(result) => Ok(result),
        CallResultKind::InputRequired { .. } => Err(CallError::InputRequired),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"n":1.50}}}}}}"#
        )
    }

    fn answer(id: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"a"}}]}}}}"#
        )
    }

    #[test]
    fn answers_belong_to_the_calls_with_their_ids() {
        let mut observer = CallObserver::default();
        let batch = format!("[{},{}]", call("1"), call("\"1\""));
        let calls = observer.take_client_line(batch.as_bytes());
        assert_eq!([calls[0].number, calls[1].number], [0, 1]);
        assert_eq!(calls[0].arguments.as_ref().unwrap().get(), r#"{"n":1.50}"#);
        let answers = observer.take_server_line(answer("\"1\"").as_bytes());
        assert_eq!(answers[0].number, 1);
        assert!(answers[0].result.is_ok());
        let error = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#;
        let answers = observer.take_server_line(error);
        assert_eq!(answers[0].number, 0);
        assert!(answers[0].result.is_err());
        assert!(
            observer.take_server_line(answer("1").as_bytes()).is_empty(),
            "it has its answer"
        );
    }

    #[test]
    fn everything_else_is_not_a_call() {
        let mut observer = CallObserver::default();
        for line in [
            "hello",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
        ] {
            assert!(observer.take_client_line(line.as_bytes()).is_empty());
        }
        assert!(observer.take_server_line(answer("1").as_bytes()).is_empty());
        assert!(
            observer.take_server_line(call("2").as_bytes()).is_empty(),
            "a request of the server"
        );
    }

    #[test]
    fn what_is_not_a_result_is_an_error() {
        let mut observer = CallObserver::default();
        for result in [
            r#"{"resultType":"input_required","inputRequests":{}}"#,
            r#"{"resultType":"task"}"#,
            r#"{"content":1}"#,
        ] {
            observer.take_client_line(call("1").as_bytes());
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let answers = observer.take_server_line(line.as_bytes());
            assert!(answers[0].result.is_err(), "{result}");
        }
    }
}
