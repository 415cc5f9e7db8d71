use super::*;
use crate::http::SendGuard;

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
