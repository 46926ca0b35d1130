//! A repository that was restored from a clone still has the clone as its remote. A `git remote update` there would put
//! the old state in the place of the new one, so the server forgets its remotes (D58).

use std::{fs, path::Path};

use crate::disk::{Disk, DiskError, UNFINISHED};

/// Removes the remotes from the configuration of the repository, and returns their names.
pub(crate) fn forget(disk: &Disk, dir: &Path) -> Result<Vec<String>, DiskError> {
    let path = dir.join("config");
    let Ok(text) = fs::read_to_string(&path) else { return Ok(Vec::new()) };
    let (kept, names) = without_remotes(&text);
    if !names.is_empty() {
        let new = dir.join(format!("config.{UNFINISHED}"));
        disk.remove(&new)?;
        disk.write_new(&new, kept.as_bytes())?;
        disk.rename(&new, &path)?;
        disk.sync_dir(dir)?;
    }
    Ok(names)
}

fn without_remotes(text: &str) -> (String, Vec<String>) {
    let (mut kept, mut names) = (String::with_capacity(text.len()), Vec::new());
    let (mut is_remote, mut goes_on) = (false, false);
    for line in text.split_inclusive('\n') {
        // The end of a value can begin with a bracket.
        if let Some(header) = line.trim_start().strip_prefix('[').filter(|_| !goes_on) {
            let header = header.split(']').next().unwrap_or_default();
            let (section, name) = header.split_once([' ', '\t', '.']).unwrap_or((header, ""));
            is_remote = section.eq_ignore_ascii_case("remote");
            if is_remote {
                names.push(name.trim().trim_matches('"').to_owned());
            }
        }
        goes_on = line.trim_end_matches(['\r', '\n']).ends_with('\\');
        if !is_remote {
            kept.push_str(line);
        }
    }
    (kept, names)
}
