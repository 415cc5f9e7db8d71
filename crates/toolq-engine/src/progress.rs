use tokio::sync::mpsc;

/// How many notes may wait for the dispatcher. A tool that says more at once is not listened to: its words are for
/// people, who could not read them, and must not fill the memory.
pub(crate) const NOTES: usize = 256;

/// A word for people about a running call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Note {
    pub(crate) tip: Option<String>,
    /// From 0 to 1.
    pub(crate) progress: Option<f64>,
}

/// Lets an attempt speak to people while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    pub(crate) call: usize,
    pub(crate) notes: mpsc::Sender<(usize, Note)>,
}

impl Voice {
    pub(crate) fn say(&self, note: Note) {
        // Where too many wait, this one is dropped on purpose.
        let _ = self.notes.try_send((self.call, note));
    }

    pub(crate) fn tip(&self, tip: String) {
        self.say(Note {
            tip: Some(tip),
            progress: None,
        });
    }
}
