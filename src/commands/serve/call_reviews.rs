//! The questions in the results of calls, until clients make the calls again with what people said.

use std::collections::HashMap;
use std::time::Instant;

use toolq_mcp::server::{ElicitationReply, InputResponse};

use crate::commands::serve::client_approver::{QUESTION_TIMEOUT, QuestionDigest};
use crate::commands::serve::random_id::new_random_id;
use crate::commands::serve::served_client::ClientIdentity;

/// How many questions may be without an answer. Clients often never come back.
const MAX_QUESTIONS: usize = 1024;

/// The questions, by the states of their results. Each is answered once.
#[derive(Default)]
pub(crate) struct CallReviews(HashMap<String, AskedQuestion>);

struct AskedQuestion {
    identity: ClientIdentity,
    digest: QuestionDigest,
    asked_at: Instant,
}

/// What a person replied to a question.
#[derive(Debug, Clone)]
pub(crate) struct CallReview {
    /// The digest of the question.
    pub(crate) digest: QuestionDigest,
    /// The person's reply.
    pub(crate) reply: ElicitationReply,
}

impl CallReviews {
    /// Adds a question that is sent to a client `now`. Returns its state, which can't be guessed, or `None` if the system
    /// has no random numbers.
    pub(crate) fn add(
        &mut self,
        identity: ClientIdentity,
        digest: QuestionDigest,
        now: Instant,
    ) -> Option<String> {
        let state = new_random_id()?;
        self.0.retain(|_, question| !question.is_over(now));
        if self.0.len() >= MAX_QUESTIONS {
            let oldest = self.0.iter().min_by_key(|(_, question)| question.asked_at);
            let oldest = oldest.map(|(state, _)| state.clone());
            oldest.and_then(|state| self.0.remove(&state));
        }
        let question = AskedQuestion {
            identity,
            digest,
            asked_at: now,
        };
        self.0.insert(state.clone(), question);
        Some(state)
    }

    /// Returns the person's reply to a question that was sent to this client and hasn't expired by `now`. A question is
    /// removed with its reply, so that the reply counts once.
    pub(crate) fn take(
        &mut self,
        response: InputResponse,
        identity: &ClientIdentity,
        now: Instant,
    ) -> Option<CallReview> {
        let question = self.0.get(&response.state)?;
        if question.identity != *identity || question.is_over(now) {
            return None;
        }
        let question = self.0.remove(&response.state)?;
        Some(CallReview {
            digest: question.digest,
            reply: response.reply,
        })
    }
}

impl AskedQuestion {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked_at) >= QUESTION_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(state: &str) -> InputResponse {
        InputResponse {
            state: state.to_owned(),
            reply: ElicitationReply::Declined,
        }
    }

    #[test]
    fn a_review_counts_once_in_time_and_for_the_client_that_was_asked() {
        let (mut reviews, now) = (CallReviews::default(), Instant::now());
        let digest = QuestionDigest::of_text("pay?");
        let other = ClientIdentity::Session("s".to_owned());
        let add = |reviews: &mut CallReviews| reviews.add(ClientIdentity::Pipe, digest, now);
        let first = add(&mut reviews).unwrap();
        assert!(reviews.take(response(&first), &other, now).is_none());
        assert!(
            reviews
                .take(response("0"), &ClientIdentity::Pipe, now)
                .is_none()
        );
        let taken = reviews.take(response(&first), &ClientIdentity::Pipe, now);
        assert_eq!(taken.unwrap().digest, digest);
        assert!(
            reviews
                .take(response(&first), &ClientIdentity::Pipe, now)
                .is_none()
        );
        let second = add(&mut reviews).unwrap();
        let late = now + QUESTION_TIMEOUT;
        assert!(
            reviews
                .take(response(&second), &ClientIdentity::Pipe, late)
                .is_none()
        );
    }

    #[test]
    fn the_oldest_question_makes_room() {
        let (mut reviews, now) = (CallReviews::default(), Instant::now());
        let digest = QuestionDigest::of_text("pay?");
        let at = |seconds| now + std::time::Duration::from_secs(seconds);
        let mut states = (0..=MAX_QUESTIONS as u64)
            .map(|second| {
                reviews
                    .add(ClientIdentity::Pipe, digest, at(second))
                    .unwrap()
            })
            .collect::<Vec<_>>();
        let last = states.pop().unwrap();
        let later = at(MAX_QUESTIONS as u64);
        assert!(
            reviews
                .take(response(&states[0]), &ClientIdentity::Pipe, later)
                .is_none()
        );
        assert!(
            reviews
                .take(response(&last), &ClientIdentity::Pipe, later)
                .is_some()
        );
    }
}
