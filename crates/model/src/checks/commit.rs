//! Commits of a repository that came from elsewhere, as `fsck` and the log read them.

use countersign_store::commit::Commit;

pub fn check(data: &[u8]) {
    let commit = match Commit::parse(data) {
        Ok(commit) => commit,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    let text = String::from_utf8_lossy(data);
    let (head, message) = text.split_once("\n\n").expect("a commit has a message");
    assert_eq!(commit.message, message);
    let parents: Vec<String> = commit.parents.iter().map(ToString::to_string).collect();
    let named = head.split('\n').filter_map(|line| line.strip_prefix("parent "));
    assert!(named.map(|id| id.trim_end_matches('\r').to_ascii_lowercase()).eq(parents.iter().cloned()));
    assert!(head.contains(&format!("{}", commit.time.unix_seconds())) || head.contains('+'));
    // Only bytes that the store writes have an author, so reading them again tells nothing new.
    if commit.author.is_some() {
        assert_eq!(commit.odd_headers, None);
        assert!(parents.len() <= 1, "the store merges nothing");
        let line = |name| head.lines().find_map(|line| line.strip_prefix(name)).expect("it has both");
        assert_eq!(line("author "), line("committer "));
        assert_eq!(text.as_bytes(), data, "the store writes text");
        let more = [data, b"x"].concat();
        assert_eq!(Commit::parse(&more).map(|more| more.author), Ok(commit.author));
    }
}
