//! The names of topics, types and entities.

use std::ffi::OsStr;

use crate::error::{Error, Result};

/// The longest name of a topic, a type or an entity, in bytes: as `string<256>` in the data of
/// discovery (PID_TOPIC_NAME and PID_TYPE_NAME of RTPS 2.5 §9.6).
const NAME_LEN_MAX: usize = 256;

/// Refuses what cannot be a name; no string of IDL has a NUL in it.
///
/// # Errors
/// BAD_PARAMETER.
pub(crate) fn check_name(of: &str, name: &str) -> Result<()> {
    let wrong = if name.is_empty() {
        format!("the name of a {of} is empty")
    } else if name.len() > NAME_LEN_MAX {
        let length = name.len();
        let start: String = name.chars().take(40).collect();
        format!("the name of a {of} has {length} bytes, more than {NAME_LEN_MAX}: {start:?}...")
    } else if let Some(at) = name.find('\0') {
        format!("the name of a {of} has a NUL, at byte {at}: {name:?}")
    } else {
        return Ok(());
    };
    Err(Error::BadParameter(wrong))
}

/// The name that an entity is given, if it is given one.
///
/// # Errors
/// BAD_PARAMETER for what cannot be a name.
pub(crate) fn checked_name(of: &str, name: Option<String>) -> Result<Option<String>> {
    if let Some(name) = &name {
        check_name(of, name)?;
    }
    Ok(name)
}

/// The name of a participant that is given none: that of its executable, and the process id.
pub(crate) fn of_this_process() -> String {
    let executable = std::env::current_exe().ok();
    let name = executable.as_deref().and_then(std::path::Path::file_name);
    let name = name
        .unwrap_or_else(|| OsStr::new("process"))
        .to_string_lossy();
    // As the kernel calls a file that was replaced.
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    format!("{name}/{}", std::process::id())
}
