//! The memory of a session: where its entries and the logs are, and what they say about a call.

use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::claims::{Claim, ClaimsDir, EntryName, log_name};
use crate::error::LogError;
use crate::identity::{Identity, MemoryKey};
use crate::memory::decision::LogAccess;
use crate::memory::known_call::{KnownCall, add_entries, read_call};
use crate::memory::log_index::{AttemptFacts, CallFacts, LogIndex, ReadFacts};
use crate::memory::{MemoryUse, RememberedIn, RunAgain};
use redact::Mask;
use toolq_core::os::{Clock, sync_parent};
use toolq_core::types::{CallKey, CallRef, ContextDigest, RecalledCall};

/// The memory that a session has, or that people read. What the calls of this process are is known to it alone.
#[derive(derive_more::Debug)]
#[debug("MemoryStore({place:?})")]
pub struct MemoryStore {
    pub(crate) place: RememberedIn,
    pub(crate) usage: MemoryUse,
    /// The directory in which its calls run.
    pub(crate) root: PathBuf,
    pub(crate) mask: Arc<Mask>,
    pub(crate) clock: Clock,
    /// The name of the session's own log.
    pub(crate) own_log: String,
    own_path: PathBuf,
    /// `None` for people, who make no calls.
    session: Option<Uuid>,
    /// The latest run in a named log, if that had no end when this session began.
    pub(crate) unfinished: Option<Uuid>,
    logs: Mutex<HashMap<String, LogIndex>>,
    own_calls: Mutex<OwnCalls>,
}

/// What the calls of a session are.
#[derive(Default)]
struct OwnCalls {
    /// The earlier calls that they are. A call may be looked up more than once.
    taken: HashMap<(MemoryKey, u32), CallKey>,
    /// The reads of earlier runs that they are, each by its log and its place there.
    taken_reads: HashMap<(String, u64), CallKey>,
    /// The attempts that this session has made, where its lock is the claim.
    claimed: HashSet<String>,
    /// The idempotency keys of the calls that agents work on.
    agents: HashMap<CallKey, String>,
}

impl MemoryStore {
    /// The memory of a session, whose log was read up to its beginning.
    pub(crate) fn new(
        (place, usage): (RememberedIn, MemoryUse),
        root: PathBuf,
        (mask, clock): (Arc<Mask>, Clock),
        own_path: &Path,
        session: Uuid,
        own_index: LogIndex,
    ) -> Self {
        Self {
            usage,
            root: root.canonicalize().unwrap_or(root),
            mask,
            clock,
            session: Some(session),
            unfinished: own_index.calls.unfinished_session(),
            logs: Mutex::new(HashMap::from([(log_name(own_path), own_index)])),
            ..Self::at(place, own_path.to_owned())
        }
    }

    /// The memory as people read it. `log` is the one that is the memory, if one is.
    pub(crate) fn for_people(place: RememberedIn, log: &Path) -> Self {
        let own_path = match &place {
            // No log has this name.
            RememberedIn::State { sessions, .. } => sessions.join(".jsonl"),
            RememberedIn::Log { .. } => log.to_owned(),
        };
        Self::at(place, own_path)
    }

    fn at(place: RememberedIn, own_path: PathBuf) -> Self {
        Self {
            place,
            usage: MemoryUse::default(),
            root: PathBuf::new(),
            mask: Arc::default(),
            clock: Clock::system(),
            own_log: log_name(&own_path),
            own_path,
            session: None,
            unfinished: None,
            logs: Mutex::default(),
            own_calls: Mutex::default(),
        }
    }

    /// Reads the memory at `place`, which is the log at `log` if a log is its own memory, as a run that begins now would find it.
    /// `root` is the directory in which its calls would run. `None` if nothing is there.
    ///
    /// # Errors
    /// The named log can't be read.
    pub fn open_history(
        (place, log): (RememberedIn, &Path),
        usage: MemoryUse,
        root: PathBuf,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<Option<Self>, LogError> {
        let is_there = match &place {
            RememberedIn::State { claims, .. } => claims.exists(),
            RememberedIn::Log { .. } => log.exists(),
        };
        if !is_there {
            return Ok(None);
        }
        let mut store = Self {
            usage,
            root: root.canonicalize().unwrap_or(root),
            mask,
            clock,
            ..Self::for_people(place, log)
        };
        if store.is_own_log() {
            let unfinished = store.with_index(&store.own_log, |index| {
                Ok(index.update()?.unfinished_session())
            })?;
            store.unfinished = unfinished.flatten();
        }
        Ok(Some(store))
    }

    /// Whether everything is in the session's own log.
    pub(crate) fn is_own_log(&self) -> bool {
        matches!(self.place, RememberedIn::Log { .. })
    }

    /// Returns what names a call, if anything does. The calls of an agent stand where the agent's call stands.
    pub(crate) fn identify(&self, request: &RecalledCall<'_>) -> Option<Identity> {
        let agent = request.call.parent.as_ref();
        let before = agent.map(|agent| self.place_of_agent(agent, request.call.turn));
        Identity::of(request, &self.root, before, self.usage.remembered)
    }

    fn place_of_agent(&self, agent: &CallRef, turn: usize) -> ContextDigest {
        let turn = turn.to_le_bytes();
        if let Some(idempotency_key) = self.own_calls.lock().agents.get(&agent.key()) {
            // Whichever attempt it is, but not if the agent's call is repeated on purpose.
            return ContextDigest::of(&[idempotency_key.as_bytes(), &turn]);
        }
        let path = format!("{:?}", agent.path());
        let session = self.session.unwrap_or_default();
        ContextDigest::of(&[session.as_bytes(), path.as_bytes(), &turn])
    }

    /// Notes that an agent begins to work on a call.
    pub(crate) fn begin_agent(&self, call: &CallRef, idempotency_key: &str) {
        let key = idempotency_key.to_owned();
        self.own_calls.lock().agents.insert(call.key(), key);
    }

    /// Notes that a call has ended.
    pub(crate) fn end_agent(&self, call: &CallRef) {
        self.own_calls.lock().agents.remove(&call.key());
    }

    /// Returns the folder with the entries.
    pub(crate) fn entries_dir(&self) -> &Path {
        match &self.place {
            RememberedIn::State { claims, .. } => claims,
            RememberedIn::Log { entries } => entries,
        }
    }

    /// Returns whether `id` names a call that is to run again.
    pub(crate) fn runs_again(&self, id: &str) -> bool {
        match &self.usage.again {
            RunAgain::None => false,
            RunAgain::All => true,
            RunAgain::Ids(ids) => ids.contains(id),
        }
    }

    /// Opens the folder with the entries. `None` if there is none: nothing was said.
    pub(crate) fn open_entries(&self) -> Result<Option<ClaimsDir>, LogError> {
        let dir = self.entries_dir();
        ClaimsDir::open(dir).map_err(LogError::io(dir, "read"))
    }

    /// Makes an entry that says something about others, which it must not outlive.
    pub(crate) fn make_entry<T>(
        &self,
        make: impl FnOnce(&ClaimsDir) -> io::Result<T>,
    ) -> Result<T, LogError> {
        let dir = self.entries_dir();
        let made = ClaimsDir::create(dir).and_then(|entries| {
            entries.sync()?;
            let made = make(&entries)?;
            entries.sync()?;
            Ok(made)
        });
        made.map_err(LogError::io(dir, "written"))
    }

    /// Whether another call of this session than `call` is this one.
    pub(crate) fn is_taken(&self, key: &MemoryKey, instance: u32, call: &CallKey) -> bool {
        let own = self.own_calls.lock();
        let taker = own.taken.get(&(key.clone(), instance));
        taker.is_some_and(|taker| taker != call)
    }

    /// Whether `call` is one that an agent makes for this call of the session, which would wait for itself.
    pub(crate) fn is_ancestor(&self, key: &MemoryKey, instance: u32, call: &CallRef) -> bool {
        let own = self.own_calls.lock();
        let taker = own.taken.get(&(key.clone(), instance));
        call.ancestors().any(|agent| Some(&agent.key()) == taker)
    }

    /// Notes that a call of this session is this one, so that another one that looks the same isn't.
    pub(crate) fn take(&self, key: &MemoryKey, instance: u32, call: CallKey) {
        let mut own = self.own_calls.lock();
        own.taken.insert((key.clone(), instance), call);
    }

    /// Notes that a call of this session is this one, or else the next one of which no other is. Two that look the same may ask at once.
    pub(crate) fn take_free(&self, key: &MemoryKey, mut instance: u32, call: &CallKey) -> u32 {
        let mut own = self.own_calls.lock();
        while let Some(taker) = own.taken.get(&(key.clone(), instance))
            && taker != call
        {
            instance += 1;
        }
        own.taken.insert((key.clone(), instance), call.clone());
        instance
    }

    /// Whether another call of this session than `call` is this read.
    pub(crate) fn is_read_taken(&self, log: &str, read: &ReadFacts, call: &CallKey) -> bool {
        let own = self.own_calls.lock();
        let taker = own.taken_reads.get(&(log.to_owned(), read.result.offset));
        taker.is_some_and(|taker| taker != call)
    }

    /// Notes that a call of this session is this read.
    pub(crate) fn take_read(&self, log: &str, read: &ReadFacts, call: CallKey) {
        let place = (log.to_owned(), read.result.offset);
        self.own_calls.lock().taken_reads.insert(place, call);
    }

    /// Claims an attempt in a named log, which nobody else writes. Returns whether no other call of this session has.
    pub(crate) fn claim_in_own_log(&self, name: &str) -> bool {
        self.own_calls.lock().claimed.insert(name.to_owned())
    }

    /// Returns the calls with a key, each with its latest attempt.
    pub(crate) fn known_calls(&self, key: &MemoryKey) -> Result<Vec<KnownCall>, LogError> {
        let entries = self.open_entries()?;
        match &self.place {
            RememberedIn::State { .. } => match entries {
                Some(entries) => self.calls_of_entries(&entries, key),
                None => Ok(Vec::new()),
            },
            RememberedIn::Log { .. } => self.calls_of_own_log(entries.as_ref(), key),
        }
    }

    fn calls_of_entries(
        &self,
        entries: &ClaimsDir,
        key: &MemoryKey,
    ) -> Result<Vec<KnownCall>, LogError> {
        let fail = LogError::io(entries.path(), "read");
        let mut found = Vec::new();
        for instance in 1.. {
            match read_call(entries, key, instance).map_err(fail)? {
                Some(call) => found.push(call),
                None => break,
            }
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // What is decided now must not rest on an entry that a power loss would take away.
        entries.sync().map_err(fail)?;
        let mut calls = Vec::new();
        for (mut call, claim) in found {
            let needs_log = call.settlement.as_ref().is_none_or(|settled| settled.done);
            if let Some(claim) = claim.filter(|_| needs_log) {
                let name = EntryName {
                    key: key.clone(),
                    instance: call.instance,
                    attempt: call.attempt,
                };
                (call.access, call.facts) = self.attempt_facts(entries, &name, &claim)?;
            }
            calls.push(call);
        }
        Ok(calls)
    }

    /// Returns what the log of an attempt says. Its lock is tested before it is read: if nobody holds it then, what is missing in it
    /// will never come.
    fn attempt_facts(
        &self,
        entries: &ClaimsDir,
        name: &EntryName,
        claim: &Claim,
    ) -> Result<(LogAccess, Option<AttemptFacts>), LogError> {
        for _ in 0..2 {
            if let Some(found) = self.facts_in_log(&claim.log, |index| {
                index
                    .attempt(&name.key, name.instance, name.attempt)
                    .cloned()
            })? {
                return Ok(found);
            }
            // The log is gone, or was replaced just now.
            let now = entries
                .read_claim(name)
                .map_err(LogError::io(entries.path(), "read"))?;
            if now.as_ref() != Some(claim) {
                break;
            }
        }
        Ok((LogAccess::Gone, None))
    }

    /// Returns how a log can be used, and what it says. `None` if it is gone.
    fn facts_in_log<T>(
        &self,
        log: &str,
        find: impl Fn(&CallFacts) -> Option<T>,
    ) -> Result<Option<(LogAccess, Option<T>)>, LogError> {
        self.with_index(log, |index| {
            let access = if log == self.own_log {
                LogAccess::Own
            } else {
                lock_state(&index.file, &index.path)?
            };
            Ok((access, find(index.update()?)))
        })
    }

    /// Passes the index of a log to `read`. `None` if the log is gone.
    pub(crate) fn with_index<T>(
        &self,
        log: &str,
        read: impl FnOnce(&mut LogIndex) -> Result<T, LogError>,
    ) -> Result<Option<T>, LogError> {
        let path = self.log_path(log);
        let mut logs = self.logs.lock();
        // A log that was pruned is another file.
        let is_current = logs.get(log).is_some_and(|index| is_at(&index.file, &path));
        if !is_current {
            logs.remove(log);
            match LogIndex::open(&path)? {
                Some(index) => drop(logs.insert(log.to_owned(), index)),
                None => return Ok(None),
            }
        }
        logs.get_mut(log).map(read).transpose()
    }

    /// Returns the name of a log.
    pub(crate) fn log_name(&self, log: &Path) -> String {
        if log == self.own_path {
            self.own_log.clone()
        } else {
            log_name(log)
        }
    }

    /// Returns the path of a log.
    pub(crate) fn log_path(&self, log: &str) -> PathBuf {
        match &self.place {
            _ if log == self.own_log => self.own_path.clone(),
            RememberedIn::State { sessions, .. } => sessions.join(format!("{log}.jsonl")),
            RememberedIn::Log { .. } => self.own_path.clone(),
        }
    }

    fn calls_of_own_log(
        &self,
        entries: Option<&ClaimsDir>,
        key: &MemoryKey,
    ) -> Result<Vec<KnownCall>, LogError> {
        let attempts = self.with_index(&self.own_log, |index| {
            Ok(index.update()?.attempts(key).to_vec())
        })?;
        let mut found: Vec<KnownCall> = Vec::new();
        for facts in attempts.unwrap_or_default() {
            let known = KnownCall {
                instance: facts.instance,
                attempt: facts.number,
                generation: facts.generation,
                context: facts.context,
                settlement: facts.settlement.clone(),
                access: self.access_in_own_log(&facts)?,
                log: self.own_log.clone(),
                origin: facts
                    .session
                    .map(|session| session.to_string())
                    .unwrap_or_default(),
                facts: Some(facts),
            };
            match found
                .iter_mut()
                .find(|other| other.instance == known.instance)
            {
                // Of calls that wanted to make an attempt at once, one has.
                Some(earlier)
                    if (earlier.attempt, !earlier.did_nothing()) > (known.attempt, false) => {}
                Some(earlier) if earlier.generation == known.generation => {
                    let origin = std::mem::take(&mut earlier.origin);
                    *earlier = KnownCall { origin, ..known };
                }
                Some(earlier) => *earlier = known,
                None => found.push(known),
            }
        }
        if let Some(entries) = entries {
            add_entries(entries, key, &mut found)?;
        }
        found.sort_by_key(|known| known.instance);
        Ok(found)
    }

    /// A named log is held by the session that asks, unless people ask.
    fn access_in_own_log(&self, facts: &AttemptFacts) -> Result<LogAccess, LogError> {
        match self.session {
            Some(session) if facts.session == Some(session) => Ok(LogAccess::Own),
            Some(_) => Ok(LogAccess::Free),
            None => {
                let state = |index: &mut LogIndex| lock_state(&index.file, &index.path);
                Ok(self
                    .with_index(&self.own_log, state)?
                    .unwrap_or(LogAccess::Gone))
            }
        }
    }

    /// Returns what stands for this session as the first that makes a call.
    pub(crate) fn own_origin(&self) -> String {
        match self.place {
            RememberedIn::State { .. } => self.own_log.clone(),
            RememberedIn::Log { .. } => self
                .session
                .map(|session| session.to_string())
                .unwrap_or_default(),
        }
    }

    /// Blocks until what another run's log says survives a power loss. Nobody may read it before.
    pub(crate) fn sync_log(&self, log: &str) -> Result<(), LogError> {
        self.with_index(log, |index| {
            index
                .file
                .sync_data()
                .and_then(|()| sync_parent(&index.path))
                .map_err(LogError::io(&index.path, "synced"))
        })?;
        Ok(())
    }
}

/// Returns whether another run holds the lock of a log.
fn lock_state(file: &File, path: &Path) -> Result<LogAccess, LogError> {
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            Ok(LogAccess::Free)
        }
        Err(TryLockError::WouldBlock) => Ok(LogAccess::Held),
        Err(TryLockError::Error(source)) => Err(LogError::io(path, "locked")(source)),
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    file.metadata()
        .is_ok_and(|metadata| crate::sessions::is_file_at(&metadata, path))
}
