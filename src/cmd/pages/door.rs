//! What `apply` and `undo` share: the state directory, and the exit status of each failure.

use crate::act::door::{DoorError, store};
use crate::cmd::Failure;
use std::path::{Path, PathBuf};

/// --state, $MARUSA_STATE, or the usual one.
pub fn state_directory(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let directory = match given {
        Some(directory) => directory.to_path_buf(),
        None => std::env::var_os("MARUSA_STATE")
            .filter(|one| !one.is_empty())
            .map_or_else(|| store::DIRECTORY.into(), PathBuf::from),
    };
    std::path::absolute(&directory)
        .map_err(|error| Failure::usage(format!("{}: {error}", directory.display())))
}

pub fn failure(error: DoorError) -> anyhow::Error {
    let status = match error {
        DoorError::No(_) => 1,
        DoorError::Refused(_) => 2,
        DoorError::Broken(_) => 3,
        DoorError::Rights(_) => 4,
    };
    Failure { status, message: error.to_string() }.into()
}
