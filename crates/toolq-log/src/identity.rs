//! Which calls are the same. An id that a vendor has drawn at random names one call for ever. Any other id, or none, says
//! little, so the call is known by what it does and, as far as possible, by where it stands.

use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use toolq_core::json::{JsonText, meaning_digest};
use toolq_core::types::{CallContext, ContextDigest, RecalledCall, is_generated_id, is_random_id};

/// What says which call a call is.
#[derive(Debug, Clone, Copy)]
pub struct CallDescription<'a> {
    /// Its id, as it came or as toolq made it.
    pub id: &'a str,
    /// Its tool.
    pub tool: &'a str,
    /// Its position in the turn.
    pub position: usize,
    /// What its input means, as it came: see [`Input::meaning`].
    pub meaning: [u8; 32],
    /// The directory in which it runs.
    pub root: &'a Path,
    /// Calls with other inputs have the same id in its conversation.
    pub shares_id: bool,
}

/// What names a call over runs.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The keys under which it is found.
    pub keys: CallKeys,
    /// Where it stands.
    pub context: CallContext,
    /// A digest of what its input means, as it came.
    pub input_digest: String,
    /// The same of the input that is executed, if it differs.
    pub executed_digest: Option<String>,
}

/// Which calls of a session are remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Remembered {
    /// All: their ids last.
    #[default]
    ById,
    /// Those of tools that run once for some of their values. Others are new each time.
    ByValues,
}

impl Identity {
    /// Returns what names a call. `None` if nothing does that lasts, or if its input isn't one.
    pub fn of(
        request: &RecalledCall<'_>,
        root: &Path,
        before: Option<ContextDigest>,
        remembered: Remembered,
    ) -> Option<Self> {
        let RecalledCall {
            call,
            accepted,
            origin,
        } = *request;
        let input = call.input.as_ref().ok()?;
        let executed = accepted.map_or(input, |accepted| &accepted.input);
        let meaning = input.meaning();
        let once =
            accepted.and_then(|accepted| Some((&accepted.tool.name, accepted.tool.once.as_ref()?)));
        let lasting = (remembered == Remembered::ById).then(|| {
            CallKeys::of(&CallDescription {
                id: &call.id,
                tool: &call.name,
                position: call.position,
                meaning,
                root,
                shares_id: origin.shared_ids.contains(&call.id),
            })
        });
        let keys = match once {
            Some((tool, once)) => {
                let values = once.names.iter().map(|path| executed.value_at(path));
                CallKeys::Once {
                    values: MemoryKey::of_values(&once.scope, tool, values),
                    earlier: lasting.map(Box::new),
                }
            }
            None => lasting?,
        };
        let executed_meaning = (executed.text() != input.text()).then(|| executed.meaning());
        Some(Self {
            keys,
            context: CallContext::new(origin.message_id.as_deref(), before.or(origin.before)),
            executed_digest: executed_meaning
                .filter(|executed| *executed != meaning)
                .map(meaning_hex),
            input_digest: meaning_hex(meaning),
        })
    }
}

/// Returns the digest of what an input means, as records have it.
pub(crate) fn meaning_hex(meaning: [u8; 32]) -> String {
    HEXLOWER.encode(&meaning[..16])
}

/// The keys under which a call is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallKeys {
    /// It runs once for some values of its input.
    Once {
        /// The key of the values.
        values: MemoryKey,
        /// The keys that it had before its tool ran once for them.
        earlier: Option<Box<CallKeys>>,
    },
    /// Its id is random.
    Id {
        /// The key of the id.
        id: MemoryKey,
        /// The key that it has where its id didn't look like it.
        call: MemoryKey,
    },
    /// Its id says little.
    Call {
        /// The key of what it does.
        call: MemoryKey,
        /// The key of its id, which looks random, but which other calls have, too.
        shared_id: Option<MemoryKey>,
    },
}

impl CallKeys {
    /// The keys of a call that has an id which lasts, or none.
    pub fn of(call: &CallDescription<'_>) -> Self {
        let id = is_random_id(call.id, call.tool).then(|| MemoryKey::of_random_id(call.id));
        let CallDescription {
            tool,
            position,
            meaning,
            root,
            ..
        } = *call;
        let call_key = MemoryKey::of_call(root, tool, call.id, position, meaning);
        match id {
            Some(id) if !call.shares_id => Self::Id { id, call: call_key },
            shared_id => Self::Call {
                call: call_key,
                shared_id,
            },
        }
    }

    /// Returns the key that a call gets that has not been made before.
    pub fn new_key(&self) -> &MemoryKey {
        match self {
            Self::Once { values: key, .. }
            | Self::Id { id: key, .. }
            | Self::Call { call: key, .. } => key,
        }
    }

    /// Returns whether the key names the call in all memories.
    pub fn is_name(&self, key: &MemoryKey) -> bool {
        match self {
            Self::Once { values, earlier } => {
                values == key || earlier.as_ref().is_some_and(|earlier| earlier.is_name(key))
            }
            Self::Id { id, .. } => id == key,
            Self::Call { .. } => false,
        }
    }
}

/// What a call is known by in the memory: 128 bits, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub struct MemoryKey(String);

impl MemoryKey {
    /// The key of a call with a random id: the id alone.
    pub fn of_random_id(id: &str) -> Self {
        Self::from_parts(&[b"id", id.as_bytes()])
    }

    /// The key of any other call: the directory in which it runs, its tool, its id or else its position, and its input as it
    /// came. Several calls may have it.
    pub fn of_call(root: &Path, tool: &str, id: &str, position: usize, meaning: [u8; 32]) -> Self {
        let position = position.to_string();
        let place = if id.is_empty() || is_generated_id(id) {
            [b"position", position.as_bytes()]
        } else {
            [b"id", id.as_bytes()]
        };
        let root = root.as_os_str().as_encoded_bytes();
        let tool = tool.as_bytes();
        Self::from_parts(&[b"call", root, tool, place[0], place[1], &meaning])
    }

    /// The key of a call that is to run once for these values of its input.
    pub fn of_values<'v>(
        scope: &str,
        tool: &str,
        values: impl IntoIterator<Item = Option<JsonText<'v>>>,
    ) -> Self {
        let mut parts = vec![b"once".to_vec(), scope.into(), tool.into()];
        for value in values {
            let digest = value.map(|value| meaning_digest(value).to_vec());
            parts.push(digest.unwrap_or_default());
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Self::from_parts(&parts)
    }

    /// Reads a key as [`Display`](std::fmt::Display) writes it.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        (text.len() == 32 && text.chars().all(is_hex)).then(|| Self(text.to_owned()))
    }

    /// Returns the key that the callee gets: the same for all attempts at one call, and another one each time that it is repeated on
    /// purpose. `origin` is the run that made it first, where nothing else tells it from calls of other memories.
    pub fn callee_key(&self, instance: u32, generation: u32, origin: &str) -> String {
        let parts = [
            self.0.as_bytes(),
            &instance.to_le_bytes(),
            &generation.to_le_bytes(),
            origin.as_bytes(),
        ];
        HEXLOWER.encode(&digest_of(&parts))
    }

    fn from_parts(parts: &[&[u8]]) -> Self {
        Self(HEXLOWER.encode(&digest_of(parts)[..16]))
    }
}

fn digest_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
