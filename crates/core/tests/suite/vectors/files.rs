//! The files in which the vectors lie.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

fn directory(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

/// The files of a directory, by name without ending.
#[expect(
    clippy::disallowed_methods,
    reason = "core does no I/O, but these vectors are files; nothing else here is"
)]
pub(super) fn read_files(directory_name: &str) -> BTreeMap<String, String> {
    let files = fs::read_dir(directory(directory_name)).expect("the directory").map(|entry| {
        let file = entry.expect("an entry").path();
        let name = file.file_stem().expect("a name").to_str().expect("text").to_owned();
        (name, fs::read_to_string(file).expect("a file"))
    });
    files.collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "core does no I/O, but these vectors are files; nothing else here is"
)]
fn write_files_if_asked(directory_name: &str, made: &BTreeMap<String, String>) {
    if env::var("COUNTERSIGN_WRITE_VECTORS").as_deref() != Ok("1") {
        return;
    }
    for name in read_files(directory_name).keys().filter(|name| !made.contains_key(*name)) {
        fs::remove_file(directory(directory_name).join(format!("{name}.json"))).expect("removed");
    }
    for (name, text) in made {
        fs::write(directory(directory_name).join(format!("{name}.json")), text).expect("written");
    }
}

/// Compares the files with what they should be, or writes them where that is asked for.
pub(super) fn assert_fresh_files(directory_name: &str, made: &BTreeMap<String, String>) {
    write_files_if_asked(directory_name, made);
    let found = read_files(directory_name);
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(made), "write them anew with COUNTERSIGN_WRITE_VECTORS=1");
    for (name, text) in made {
        assert!(found[name] == *text, "{name} is stale: write it anew with COUNTERSIGN_WRITE_VECTORS=1");
    }
}
