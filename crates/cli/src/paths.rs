//! Paths of files, as they are shown.

use std::path::Path;

use countersign_core::values::shown::shown_text;

pub(crate) fn shown_path(path: &Path) -> String {
    shown_text(&path.display().to_string())
}
