use super::*;
use crate::http::SendGuard;
use crate::mcp::sent_call::SentCall;

/// A connection whose server was just ended because it had no calls, while its task still holds the channel.
fn idle_connection() -> (ServerConnection, mpsc::UnboundedReceiver<ConnectionRequest>) {
    let (requests, receiver) = mpsc::unbounded_channel();
    let state = Arc::new(ConnectionState {
        was_idle: Mutex::new(true),
        ..ConnectionState::default()
    });
    (ServerConnection { requests, state }, receiver)
}

#[tokio::test]
async fn an_idle_server_that_is_ended_is_not_asked_for_its_tools() {
    let (connection, mut requests) = idle_connection();
    let listed = connection.list_tools().await;
    assert_eq!(listed.map(|_| ()), Err(ConnectionEnded));
    assert!(requests.try_recv().is_err(), "the request would be lost");
}

/// A call goes to another server only if this one has ended by itself after it had answered calls, and nothing was sent. From then
/// on, nothing can be sent.
#[tokio::test]
async fn only_a_call_that_was_not_sent_goes_to_another_server() {
    for (may_be_replaced, is_sent) in [(true, false), (true, true), (false, false)] {
        let (requests, _) = mpsc::unbounded_channel();
        let guard = SendGuard::default();
        let state = Arc::new(ConnectionState {
            may_be_replaced: may_be_replaced.into(),
            ..ConnectionState::default()
        });
        let sent = SentCall {
            connection: ServerConnection { requests, state },
            ticket: 0,
            guard: guard.clone(),
            reply: oneshot::channel().1,
        };
        assert!(!is_sent || guard.mark_sent());
        let expected = may_be_replaced && !is_sent;
        assert_eq!(sent.may_be_resent(), expected);
        assert_eq!(guard.mark_sent(), !expected);
    }
}

/// A start that nobody reports takes no longer than the limit. A program that runs is reported before or while it is waited for.
#[tokio::test(start_paused = true)]
async fn a_program_is_waited_for_until_it_runs_or_takes_too_long() {
    let (connection, _requests) = idle_connection();
    let begin = Instant::now();
    connection.wait_for_program().await;
    assert_eq!(begin.elapsed(), DRAIN_TIMEOUT);
    let report = async { connection.state.program_runs.send_replace(true) };
    let begin = Instant::now();
    tokio::join!(connection.wait_for_program(), report);
    connection.wait_for_program().await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}
