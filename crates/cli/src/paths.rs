//! Paths of files, as they are shown.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use countersign_core::values::shown::shown_text;

pub(crate) fn shown_path(path: &Path) -> String {
    shown_text(&path.display().to_string())
}

/// A file beside another one, such as `FILE.pub`.
pub(crate) fn add_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
