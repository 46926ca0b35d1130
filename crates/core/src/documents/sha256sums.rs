//! The `SHA256SUMS` of a release, rendered from its index (D110): for tools that know nothing of an index. It is stored
//! nowhere. The same index always gives the same bytes.

use thiserror::Error;

use crate::{
    documents::index::{AssetName, ReleaseIndex},
    values::shown::quoted,
};

/// Why an index has no such file: each line of it must mean to every reader what the index says.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotInSha256Sums {
    #[error("the release has no files")]
    Empty,
    #[error("its index has no SHA-256 of {}", quoted(.0.as_str()))]
    Undigested(AssetName),
    #[error(
        "the name {} cannot be in a SHA256SUMS file: it is `-`, begins with a space or `*`, or ends with a space",
        quoted(.0.as_str())
    )]
    Name(AssetName),
}

/// Renders one line for each file, as `sha256sum` prints it, in the order of the index.
pub fn render_sha256sums(index: &ReleaseIndex) -> Result<String, NotInSha256Sums> {
    if index.published_files.is_empty() {
        return Err(NotInSha256Sums::Empty);
    }
    let lines = index.published_files.iter().map(|file| {
        let name = &file.file_name;
        if !is_printed_plainly(name) {
            return Err(NotInSha256Sums::Name(name.clone()));
        }
        let digest = file.digests.sha256.ok_or_else(|| NotInSha256Sums::Undigested(name.clone()))?;
        Ok(format!("{digest}  {name}\n"))
    });
    lines.collect()
}

/// Whether `sha256sum` prints the name plainly. It escapes a backslash and a line break, which no name has (D24). Some
/// readers take the first character for a sign of the mode, or cut spaces off; and `-` is what comes from the standard
/// input.
fn is_printed_plainly(name: &AssetName) -> bool {
    let name = name.as_str();
    name != "-" && !name.starts_with([' ', '*']) && !name.ends_with(' ')
}
