//! Where domains are recorded by default.

use std::path::PathBuf;

/// Largest id of a system user, to which logins and their ends mean nothing (systemd).
const SYSTEM_USER_MAX: u32 = 999;

/// The default directory in which domains are recorded: `$SPINDLE_DDS_DIR`, else
/// `/dev/shm/spindle-dds-UID` for root and the system's users (UID up to 999), and
/// `/tmp/spindle-dds-UID` for all others, whose files in `/dev/shm` and whose
/// `$XDG_RUNTIME_DIR` the system removes when they log out. It depends on nothing else, so
/// that services and logins of a user have the same one. Creates nothing.
pub fn default_domain_directory() -> PathBuf {
    if let Some(path) = std::env::var_os("SPINDLE_DDS_DIR").filter(|value| !value.is_empty()) {
        return path.into();
    }
    directory_of(rustix::process::geteuid().as_raw()).into()
}

fn directory_of(user: u32) -> String {
    match user <= SYSTEM_USER_MAX {
        true => format!("/dev/shm/spindle-dds-{user}"),
        false => format!("/tmp/spindle-dds-{user}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_directory_outlives_logins() {
        assert_eq!(directory_of(0), "/dev/shm/spindle-dds-0");
        assert_eq!(directory_of(999), "/dev/shm/spindle-dds-999");
        assert_eq!(directory_of(1000), "/tmp/spindle-dds-1000");
    }
}
