use super::*;

/// A connection whose server was just ended because it had no calls, while its task still holds the channel.
fn idle_connection() -> (ServerConnection, mpsc::UnboundedReceiver<ConnectionRequest>) {
    let (requests, receiver) = mpsc::unbounded_channel();
    let connection = ServerConnection {
        requests,
        was_idle: Arc::new(Mutex::new(true)),
        is_expired: Arc::default(),
    };
    (connection, receiver)
}

#[tokio::test]
async fn an_idle_server_that_is_ended_is_not_asked_for_its_tools() {
    let (connection, mut requests) = idle_connection();
    let listed = connection.list_tools().await;
    assert_eq!(listed.map(|_| ()), Err(ConnectionEnded));
    assert!(requests.try_recv().is_err(), "the request would be lost");
}
