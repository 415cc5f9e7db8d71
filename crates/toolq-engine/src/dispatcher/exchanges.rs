//! Attempts that do little more than wait for an answer: the requests to a server. The dispatcher's own task drives them. As
//! tasks of their own they would cost more than they do, because each start and each end would wake another thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::attempt::AttemptResult;

/// What a panic said.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The running exchanges. Dropping this drops them.
#[derive(Default)]
pub(crate) struct Exchanges {
    running: FuturesUnordered<Exchange>,
}

impl Exchanges {
    /// Adds an exchange. Nothing is sent until [`Self::next_ended`] is awaited.
    pub(crate) fn begin(
        &mut self,
        call_number: usize,
        work: impl Future<Output = AttemptResult> + Send + 'static,
    ) {
        self.running.push(Exchange {
            call_number,
            work: Box::pin(work),
        });
    }

    /// Drives all exchanges until one ends. Returns its call with its result, or with what it panicked with. Returns
    /// `None` if no exchange is running.
    pub(crate) async fn next_ended(&mut self) -> Option<(usize, Result<AttemptResult, Panic>)> {
        self.running.next().await
    }
}

/// One exchange. It isn't polled again once it has ended or panicked.
struct Exchange {
    call_number: usize,
    work: Pin<Box<dyn Future<Output = AttemptResult> + Send>>,
}

impl Future for Exchange {
    type Output = (usize, Result<AttemptResult, Panic>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let work = &mut self.work;
        let result = match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => Ok(result),
            Err(panic) => Err(panic),
        };
        Poll::Ready((self.call_number, result))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use toolq_core::types::Outcome;

    #[tokio::test]
    async fn each_exchange_ends_with_its_call_and_a_panic_ends_only_its_own() {
        let mut exchanges = Exchanges::default();
        assert!(exchanges.next_ended().await.is_none());
        let mut ends = Vec::new();
        for number in 0..3 {
            let (end, ended) = oneshot::channel::<()>();
            ends.push(end);
            exchanges.begin(number, async move {
                ended.await.unwrap();
                assert!(number != 1, "panics on purpose");
                Outcome::NoBacking.into()
            });
        }
        for number in [1, 2, 0] {
            ends.remove(if number == 2 { 1 } else { number })
                .send(())
                .unwrap();
            let (ended, result) = exchanges.next_ended().await.unwrap();
            assert_eq!((ended, result.is_err()), (number, number == 1));
        }
        assert!(exchanges.next_ended().await.is_none());
    }
}
