//! Reads results back from the log.

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::value::RawValue;

use crate::read::{Corruption, LineExtent, RecordReader};
use crate::records::{BlobError, CallEndRecord, Record};
use crate::resume::history::{CallPosition, TaskHistory};
use crate::resume::logged_call::{LoggedAnswer, LoggedCall};
use toolq_core::types::{Call, RestoredResult, ResultContent};

/// Why content of the log can't be read again.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A record has changed since the log was opened.
    #[error("the session log {} can no longer be read: {corruption}", path.display())]
    Corrupt {
        /// The log.
        path: PathBuf,
        /// What is wrong now.
        corruption: Corruption,
    },
    /// A blob is missing or was changed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The log has no result for a call that must not run.
    #[error("the session log has no result for a call of this input")]
    NoResult,
    /// There is no log to read.
    #[error("there is no session log")]
    NoLog,
    /// A result is neither a text nor a list of content blocks.
    #[error("the session log {} has a result that is neither text nor content blocks", .0.display())]
    InvalidAnswer(PathBuf),
}

impl RestoreError {
    /// Returns the path of the log that can't be read again.
    pub fn log_path(&self) -> Option<PathBuf> {
        match self {
            Self::Corrupt { path, .. } | Self::InvalidAnswer(path) => Some(path.clone()),
            Self::Blob(error) => Some(error.log_path()),
            Self::NoLog | Self::NoResult => None,
        }
    }
}

impl TaskHistory {
    /// Returns the result of a call exactly as the log has it, even if the call was rejected.
    ///
    /// # Errors
    /// There is no result, or it can't be read.
    pub fn logged_result(&self, call: &Call) -> Result<RestoredResult, RestoreError> {
        let logged_call = self.find_logged_call(call).ok_or(RestoreError::NoResult)?;
        if let Some(answer) = &logged_call.answer {
            return self.restore_result(logged_call, answer);
        }
        let extent = logged_call.last_rejection.ok_or(RestoreError::NoResult)?;
        let record = self.read_record(extent)?;
        let rejection: CallEndRecord<'_> = record
            .parse_metadata()
            .map_err(|_| RestoreError::InvalidAnswer(self.source_path()))?;
        let answer = LoggedAnswer {
            extent,
            status: rejection.status,
            is_error: rejection.is_error,
            cut_output: None,
        };
        self.restore_result(logged_call, &answer)
    }

    /// Returns whether the latest rejection of a call in the log has exactly this content.
    pub(crate) fn has_same_rejection(&self, position: CallPosition, json: &str) -> bool {
        let rejection = self
            .call_at(position)
            .and_then(|logged_call| logged_call.last_rejection);
        let logged_json = rejection.and_then(|extent| self.read_answer(extent).ok());
        logged_json.is_some_and(|logged_json| logged_json == json)
    }

    pub(super) fn restore_result(
        &self,
        logged_call: &LoggedCall,
        answer: &LoggedAnswer,
    ) -> Result<RestoredResult, RestoreError> {
        let json = self.read_answer(answer.extent)?;
        let text = serde_json::from_str(&json).map(ResultContent::Text);
        let content = text.or_else(|_| serde_json::from_str(&json).map(ResultContent::Blocks));
        let record = logged_call
            .log
            .is_agent_call()
            .then(|| self.read_record(answer.extent));
        let record = record.transpose()?;
        let end = record
            .as_ref()
            .map(Record::parse_metadata::<CallEndRecord<'_>>);
        let agent = end.and_then(|end| end.ok()?.agent);
        Ok(RestoredResult {
            status: answer.status.clone(),
            is_error: answer.is_error,
            cut_output: answer.cut_output.clone(),
            content: content.map_err(|_| RestoreError::InvalidAnswer(self.source_path()))?,
            agent_usage: agent.map(|agent| Box::new(agent.into())),
        })
    }

    /// Returns the result of a call as JSON, from the cache or from the file.
    fn read_answer(&self, extent: LineExtent) -> Result<Cow<'_, str>, RestoreError> {
        if let Some(json) = self.answer_cache.get(extent.offset) {
            return Ok(Cow::Borrowed(json));
        }
        let json: Box<str> = self.read_content(extent)?.into();
        Ok(Cow::Owned(json.into()))
    }

    pub(crate) fn read_content(&self, extent: LineExtent) -> Result<Box<RawValue>, RestoreError> {
        let record = self.read_record(extent)?;
        Ok(record.content.load(&self.source_path())?)
    }

    fn read_record(&self, extent: LineExtent) -> Result<Record<'static>, RestoreError> {
        let read_error = |corruption| RestoreError::Corrupt {
            path: self.source_path(),
            corruption,
        };
        let (_, file) = self.source.as_ref().ok_or(RestoreError::NoLog)?;
        RecordReader::read_again(file, extent).map_err(read_error)
    }

    fn source_path(&self) -> PathBuf {
        let path = self.source.as_ref().map(|(path, _)| path.clone());
        path.unwrap_or_default()
    }
}
