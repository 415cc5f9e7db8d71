//! Asks on the terminal whether a call may start, one question after another. A question that isn't needed anymore is
//! withdrawn.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;
use tokio::task;

use crate::approval::question_text::render_question;
use crate::approval::typed_reply::{TypedReply, discard_typed_ahead, read_line};
use crate::terminal::ProgressScreen;
use redact::Mask;
use toolq_core::types::{Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest};
use toolq_engine::{ApprovalFuture, ApprovalPrompt, ApprovalReply};

/// The controlling terminal, even if stdin and stderr are redirected.
const TERMINAL: &str = "/dev/tty";

/// Asks a person on the terminal.
pub(crate) struct TerminalPrompt {
    terminal: Arc<File>,
    mask: Arc<Mask>,
    screen: Option<ProgressScreen>,
    user: Option<String>,
    /// Tools all of whose calls were approved.
    approved_tools: Mutex<HashSet<String>>,
    /// Held from a question to the end of reading its reply: agents ask at the same time, and what is typed must never
    /// reach the question of another call.
    turn_to_ask: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for TerminalPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalPrompt").finish_non_exhaustive()
    }
}

impl TerminalPrompt {
    /// Opens the terminal.
    ///
    /// # Errors
    /// toolq has no terminal.
    pub(crate) fn open(
        mask: Arc<Mask>,
        screen: Option<ProgressScreen>,
        user: Option<String>,
    ) -> io::Result<Self> {
        let terminal = File::options().read(true).write(true).open(TERMINAL)?;
        Ok(Self {
            terminal: Arc::new(terminal),
            mask,
            screen,
            user,
            approved_tools: Mutex::default(),
            turn_to_ask: Arc::default(),
        })
    }

    fn lock_approved_tools(&self) -> MutexGuard<'_, HashSet<String>> {
        self.approved_tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_person(&self, request: &ApprovalRequest) -> ApprovalReply {
        let tool = &request.accepted.tool.name;
        let turn = Arc::clone(&self.turn_to_ask).lock_owned().await;
        if self.lock_approved_tools().contains(tool) {
            return self.decided(ApprovalDecision::Yes, None);
        }
        let question = render_question(request, &self.mask);
        let hidden = HiddenScreen::hide(self.screen.as_ref());
        let typed = self.ask_until_known(question, turn).await;
        drop(hidden);
        match typed {
            Ok(TypedReply::Yes) => self.decided(ApprovalDecision::Yes, None),
            Ok(TypedReply::AllOfTool) => {
                self.lock_approved_tools().insert(tool.clone());
                self.decided(ApprovalDecision::Yes, None)
            }
            Ok(TypedReply::No(reason)) => self.decided(ApprovalDecision::No, reason),
            Ok(TypedReply::Quit | TypedReply::Unknown) => {
                ApprovalReply::Stopped("you quit at the question".to_owned())
            }
            Err(error) => ApprovalReply::Stopped(format!("the terminal can't be read: {error}")),
        }
    }

    fn decided(&self, decision: ApprovalDecision, reason: Option<String>) -> ApprovalReply {
        ApprovalReply::Decided(Approval {
            decision,
            means: ApprovalMeans::Terminal,
            reason,
            user: self.user.clone(),
        })
    }

    /// Asks until the reply is understood. Dropping the future withdraws the question.
    async fn ask_until_known(
        &self,
        question: String,
        turn: OwnedMutexGuard<()>,
    ) -> io::Result<TypedReply> {
        let mut withdrawal = Withdrawal::new(Arc::clone(&self.terminal));
        let is_withdrawn = Arc::clone(&withdrawal.is_withdrawn);
        let terminal = Arc::clone(&self.terminal);
        let reading = task::spawn_blocking(move || -> io::Result<Option<TypedReply>> {
            // A withdrawn question is still read for a moment.
            let _turn = turn;
            discard_typed_ahead(&terminal);
            (&*terminal).write_all(question.as_bytes())?;
            loop {
                let Some(line) = read_line(&terminal, &is_withdrawn)? else {
                    return Ok(None);
                };
                match TypedReply::parse(&line) {
                    TypedReply::Unknown => (&*terminal).write_all(b"  y, n, a or q? ")?,
                    typed => return Ok(Some(typed)),
                }
            }
        });
        let typed = reading.await.map_err(io::Error::other)??;
        withdrawal.has_reply = typed.is_some();
        Ok(typed.unwrap_or(TypedReply::Quit))
    }
}

impl ApprovalPrompt for TerminalPrompt {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a> {
        Box::pin(self.ask_person(request))
    }
}

/// Keeps the progress off the terminal until it is dropped, also if the question is withdrawn.
struct HiddenScreen<'s>(Option<&'s ProgressScreen>);

impl<'s> HiddenScreen<'s> {
    fn hide(screen: Option<&'s ProgressScreen>) -> Self {
        if let Some(screen) = screen {
            screen.hide();
        }
        Self(screen)
    }
}

impl Drop for HiddenScreen<'_> {
    fn drop(&mut self) {
        if let Some(screen) = self.0 {
            screen.show();
        }
    }
}

/// When dropped, tells the thread that reads the terminal that its question was withdrawn. If the question has no reply,
/// also ends its line, so that later output begins on a new one.
struct Withdrawal {
    is_withdrawn: Arc<AtomicBool>,
    terminal: Arc<File>,
    /// Whether the user has replied, which ended the line.
    has_reply: bool,
}

impl Withdrawal {
    fn new(terminal: Arc<File>) -> Self {
        Self {
            is_withdrawn: Arc::default(),
            terminal,
            has_reply: false,
        }
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.is_withdrawn.store(true, Ordering::Relaxed);
        if !self.has_reply {
            // A terminal that is gone needs no line break.
            let _ = (&*self.terminal).write_all(b"\n");
        }
    }
}
