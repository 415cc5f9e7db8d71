//! The form of a plan file. Its id is a digest of everything else in it, so a plan can't be changed under its id.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::output::{CommandError, replace_file};
use toolq_core::json::to_json_line;

/// The version of the form.
pub const PLAN_FORMAT: u32 = 1;
/// Number of hexadecimal digits of an id.
const ID_DIGITS: usize = 40;
/// How far the clocks of two machines may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(5);
/// The largest plan file that is read, in bytes.
const MAX_PLAN_BYTES: u64 = 1 << 30;

/// A plan that `toolq plan --out` wrote for review, and that `toolq run --plan` applies.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Digest of `plan`. The session log has it where the plan was applied.
    pub id: String,
    /// What would run.
    pub plan: PlanBody,
}

/// What would run, and digests of all that decides it, except for the values of variables.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanBody {
    /// The version of this form.
    pub format: u32,
    /// The version of toolq that wrote the plan; only this version applies it.
    pub toolq: String,
    /// When the plan was made.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// When it can no longer be applied.
    #[schemars(with = "String")]
    pub valid_until: Timestamp,
    /// The directory in which commands run.
    pub root: String,
    /// The calls, in order.
    pub calls: Vec<CallEntry>,
    /// The tools of these calls, and those that agents among them may call: digests of their definitions, by aspect.
    pub tools: BTreeMap<String, BTreeMap<String, String>>,
    /// For reading: the lines of `toolq plan --format json`.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub turns: Vec<Box<RawValue>>,
}

/// A call of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallEntry {
    /// The number of its turn.
    pub turn: usize,
    /// Its position in the turn.
    pub position: usize,
    /// Its id.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// Digest of the call as it came.
    pub input: String,
    /// Digest of what becomes of it: what would run, or why nothing would.
    pub verdict: String,
}

impl PlanFile {
    /// Names a plan.
    ///
    /// # Errors
    /// It can't be serialized.
    pub fn new(plan: PlanBody) -> serde_json::Result<Self> {
        Ok(Self {
            id: plan.id()?,
            plan,
        })
    }

    /// Reads a plan. Whether it is still what would run is a question of its own.
    ///
    /// # Errors
    /// The file can't be read, isn't a plan, or was changed.
    pub fn read(path: &Path) -> Result<Self, CommandError> {
        let unusable = |why: String| {
            CommandError::usage(format!("the plan {} {why}; nothing ran", path.display()))
                .with_hint("`toolq plan --out FILE` writes a plan")
        };
        let bytes =
            read_limited(path).map_err(|error| unusable(format!("can't be read: {error}")))?;
        let mut file: Self = serde_json::from_slice(&bytes)
            .map_err(|error| unusable(format!("isn't a plan, or not a whole one: {error}")))?;
        for turn in &mut file.plan.turns {
            // Another layout is no change.
            let line = to_json_line(turn.get()).into_owned();
            *turn = RawValue::from_string(line).map_err(|error| unusable(error.to_string()))?;
        }
        if file.plan.format != PLAN_FORMAT {
            let format = file.plan.format;
            return Err(unusable(format!(
                "has a form that this toolq doesn't know ({format})"
            )));
        }
        let id = file
            .plan
            .id()
            .map_err(|error| unusable(error.to_string()))?;
        if id != file.id {
            let message = "was changed after it was written: its id doesn't fit its content";
            return Err(unusable(message.to_owned()));
        }
        Ok(file)
    }

    /// Writes the plan atomically, so that no reader sees half of it.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        // The plan has no secrets, so anybody may read it.
        replace_file(path, |file| {
            serde_json::to_writer_pretty(&mut *file, self)?;
            file.write_all(b"\n")
        })
    }

    /// Checks that the plan is neither too old nor from the future.
    ///
    /// # Errors
    /// It is.
    pub fn check_time(&self, now: Timestamp) -> Result<(), CommandError> {
        let PlanBody {
            created,
            valid_until,
            ..
        } = self.plan;
        if now > valid_until {
            return Err(CommandError::usage(format!(
                "the plan {} was valid until {valid_until}; nothing ran",
                self.id
            ))
            .with_hint("make a new one with `toolq plan --out FILE`"));
        }
        if now + CLOCK_TOLERANCE < created {
            return Err(CommandError::usage(format!(
                "the plan {} was made at {created}, which is in the future; nothing ran",
                self.id
            ))
            .with_hint("is the clock right?"));
        }
        Ok(())
    }
}

impl PlanBody {
    fn id(&self) -> serde_json::Result<String> {
        let mut id = HEXLOWER.encode(&Sha256::digest(serde_json::to_vec(self)?));
        id.truncate(ID_DIGITS);
        Ok(id)
    }
}

/// Returns the JSON Schema (2020-12) of a plan file.
pub fn plan_schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12();
    let schema = settings.into_generator().into_root_schema_for::<PlanFile>();
    schema.to_value()
}

fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_PLAN_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_PLAN_BYTES {
        return Err(io::Error::other("it is larger than 1 GiB"));
    }
    Ok(bytes)
}
