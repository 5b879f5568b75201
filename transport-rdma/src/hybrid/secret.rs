//! A domain's secret, read from a file.

use core::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Longest secret, in bytes.
const SECRET_LEN_MAX: u64 = 4096;

/// A domain's secret. Its bytes are overwritten when it is dropped, and are not printed.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

/// Omits the bytes.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

/// Why a file does not hold a usable secret.
#[derive(Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub struct SecretError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// Reads a domain's secret, of at most 4096 bytes, from a file that only its owner may read.
/// White space at its end is ignored. May block like any file access.
pub fn read_secret(path: &Path) -> Result<Secret, SecretError> {
    let fail = |problem: String| {
        Err(SecretError {
            path: path.to_owned(),
            problem,
        })
    };
    let read = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.permissions().mode();
        // It does not grow, and so leaves no part of the secret elsewhere.
        let mut secret = Zeroizing::new(Vec::with_capacity(2 * SECRET_LEN_MAX as usize));
        file.take(SECRET_LEN_MAX + 1).read_to_end(&mut secret)?;
        Ok::<_, std::io::Error>((mode, secret))
    };
    let (mode, secret) = match read() {
        Ok(read) => read,
        Err(error) => return fail(format!("cannot be read: {error}")),
    };
    let mode = mode & 0o777;
    if mode & 0o077 != 0 {
        return fail(format!(
            "has mode {mode:03o}; only its owner may have access: chmod 600"
        ));
    }
    let secret = secret.trim_ascii_end();
    if secret.is_empty() {
        return fail("is empty".to_owned());
    }
    if secret.len() as u64 > SECRET_LEN_MAX {
        return fail(format!("is longer than {SECRET_LEN_MAX} bytes"));
    }
    Ok(secret.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_must_be_readable_by_its_owner_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("secret");
        let set = |text: &str, mode: u32| {
            std::fs::write(&path, text).expect("written");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("set");
            read_secret(&path)
        };
        let secret = set("open sesame\n", 0o600).expect("read");
        assert_eq!(secret.as_bytes(), b"open sesame");
        assert_eq!(format!("{secret:?}"), "Secret { .. }");
        let long = "x".repeat(SECRET_LEN_MAX as usize + 1);
        for (text, mode, wanted) in [
            ("open", 0o640, "chmod 600"),
            ("open", 0o604, "mode 604"),
            ("", 0o600, "empty"),
            (" \n", 0o600, "empty"),
            (&long, 0o600, "longer"),
        ] {
            let why = set(text, mode).expect_err("refused").to_string();
            assert!(why.contains(wanted) && why.contains("secret"), "{why}");
        }
        std::fs::remove_file(&path).expect("removed");
        let why = read_secret(&path).expect_err("refused").to_string();
        assert!(why.contains("cannot be read"), "{why}");
    }
}
