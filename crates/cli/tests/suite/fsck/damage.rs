//! `countersign fsck`: objects that are damaged, missing, or written by hand.

use std::{fs, path::Path, path::PathBuf};

use tempfile::TempDir;

use crate::support::{Git, fsck::fsck, past::past, rewriting::import};

/// The past with all its objects loose, and the ids of its commits.
fn loose() -> (TempDir, Git, Vec<String>) {
    let dir = TempDir::new().unwrap();
    let ids = import(dir.path(), &past().commits);
    let git = Git::at(dir.path());
    unpack(dir.path(), &git);
    (dir, git, ids)
}

/// Makes all objects loose.
pub(super) fn unpack(repository: &Path, git: &Git) {
    let packs: Vec<PathBuf> =
        fs::read_dir(repository.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let pack = packs.iter().find(|path| path.extension().is_some_and(|ending| ending == "pack"));
    if let Some(pack) = pack {
        let bytes = fs::read(pack).unwrap();
        packs.iter().for_each(|path| fs::remove_file(path).unwrap());
        git.run_with_input(&["unpack-objects", "-q"], &bytes);
    }
}

fn object_file(dir: &TempDir, id: &str) -> PathBuf {
    let (first, rest) = id.split_at(2);
    dir.path().join("objects").join(first).join(rest)
}

/// Puts another object into the place of this one.
fn replace(dir: &TempDir, git: &Git, id: &str, content: &[u8]) {
    let other = git.run_with_input(&["hash-object", "-w", "--stdin"], content);
    fs::remove_file(object_file(dir, id)).unwrap();
    fs::copy(object_file(dir, &other), object_file(dir, id)).unwrap();
}

#[test]
fn a_blob_with_other_content_than_its_id_says_is_found() {
    let (dir, git, ids) = loose();
    let at = past().find("Add", "acme/app/v1/svc.index.json");
    let path = past().path("acme/app/v1/svc.index.json");
    let blob = git.run(&["rev-parse", &format!("{}:{path}", ids[at])]);
    replace(&dir, &git, &blob, b"{}");
    fsck(dir.path(), &[]).finds(&ids[at], &path, "damaged");
    // One that no later change reads is checked as well.
    let (dir, git, ids) = loose();
    let at = past().find("Revoke", "acme/app/v1/svc.index.json");
    let path = past().path("acme/app/v1/svc.index.json.revocation.json.signatures.json");
    let blob = git.run(&["rev-parse", &format!("{}:{path}", ids[at])]);
    fs::remove_file(object_file(&dir, &blob)).unwrap();
    fsck(dir.path(), &[]).finds(&ids[at], &path, "missing");
}

#[test]
fn a_missing_tree_and_a_missing_commit_are_found() {
    let (dir, git, ids) = loose();
    let at = past().find("Add", "acme/app/v3/svc.index.json");
    let tree = git.run(&["rev-parse", &format!("{}^{{tree}}", ids[at])]);
    fs::remove_file(object_file(&dir, &tree)).unwrap();
    fsck(dir.path(), &[]).finds(&ids[at], "", "cannot be read");
    fs::remove_file(object_file(&dir, &ids[at])).unwrap();
    fsck(dir.path(), &[]).finds(&ids[at], "", "missing");
    // What came after is checked nevertheless, from where it is whole.
    fsck(dir.path(), &["--since", &ids[at + 1]]).is_clean();
}

#[test]
fn a_shallow_clone_is_told_to_get_the_rest() {
    let dir = TempDir::new().unwrap();
    let to = dir.path().join("clone");
    let to_text = to.to_str().unwrap();
    past().git().run(&["clone", "--quiet", "--bare", "--no-local", "--depth=3", ".", to_text]);
    let checked = fsck(&to, &[]);
    assert_eq!(checked.code, Some(1), "{}", checked.json);
    assert!(checked.json["error"].as_str().unwrap().contains("it is shallow"), "{}", checked.json);
    assert!(checked.json["hint"].as_str().unwrap().contains("--unshallow"), "{}", checked.json);
    let oldest = Git::at(&to).run(&["rev-list", "--max-parents=0", "main"]);
    assert_eq!(fsck(&to, &["--since", &oldest]).is_clean(), Git::at(&to).run(&["rev-parse", "main"]));
}

#[test]
fn a_missing_commit_is_not_excused_by_a_list_of_others_that_are_missing() {
    let (dir, _, ids) = loose();
    fs::write(dir.path().join("shallow"), format!("{}\n", ids[3])).unwrap();
    fsck(dir.path(), &[]).is_clean();
    fs::remove_file(object_file(&dir, &ids[5])).unwrap();
    fsck(dir.path(), &[]).finds(&ids[5], "", "missing");
}

/// The newest commit in another spelling.
fn respell(git: &Git, respell: impl FnOnce(String) -> String) -> String {
    let commit = git.bytes(&["cat-file", "commit", "main"], b"");
    let text = respell(String::from_utf8(commit).unwrap());
    let id =
        git.run_with_input(&["hash-object", "-t", "commit", "-w", "--stdin", "--literally"], text.as_bytes());
    git.run(&["update-ref", "refs/heads/main", &id]);
    id
}

#[test]
fn a_header_that_the_server_does_not_write_is_found_and_a_name_is_not() {
    let (dir, git, _) = loose();
    respell(&git, |text| text.replace(" Countersign <", " Some Body <"));
    fsck(dir.path(), &[]).is_clean();
    let id = respell(&git, |text| text.replace("author Some", "author Any"));
    fsck(dir.path(), &[]).finds(&id, "", "not written as the server writes a commit");
    let id = respell(&git, |text| text.replace("author Any", "author Some").replace("+0000", "+0200"));
    fsck(dir.path(), &[]).finds(&id, "", "not written as the server writes a commit");
    respell(&git, |text| text.replace("+0200", "+0000"));
    let id = respell(&git, |text| text.replacen("\n\n", "\nencoding latin1\n\n", 1));
    fsck(dir.path(), &[]).finds(&id, "", "encoding");
    let id = respell(&git, |text| {
        text.replace("\nencoding latin1", "")
            .replacen("tree ", "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ntree ", 1)
    });
    fsck(dir.path(), &[]).finds(&id, "", "tree, tree");

    let (dir, git, _) = loose();
    let tree = git.run(&["rev-parse", "main^{tree}"]);
    let bytes = git.bytes(&["cat-file", "tree", "main^{tree}"], b"");
    let mode = bytes.windows(7).position(|window| window == b"100644 ").unwrap();
    let mut respelled = bytes.clone();
    respelled[mode..mode + 6].copy_from_slice(b"100664");
    let other =
        git.run_with_input(&["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &respelled);
    let id = respell(&git, |text| text.replace(&tree, &other));
    fsck(dir.path(), &[]).finds(&id, "", "not written as the server writes it");

    let (dir, git, _) = loose();
    let tree = git.run(&["rev-parse", "main^{tree}"]);
    let empty = git.run_with_input(&["hash-object", "-t", "tree", "-w", "--stdin"], b"");
    let listed = git.run(&["ls-tree", "main"]) + &format!("\n040000 tree {empty}\tempty\n");
    let other = git.run_with_input(&["mktree"], listed.as_bytes());
    let id = respell(&git, |text| text.replace(&tree, &other));
    fsck(dir.path(), &[]).finds(&id, "empty/", "empty directory");
}
