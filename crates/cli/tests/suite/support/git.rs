//! The repository as the operator's own `git` sees it, and as a saboteur changes it.

use std::process::{Command, Output, Stdio};
use std::{collections::BTreeSet, ffi::OsString, fs, io::Write as _, path::Path, path::PathBuf};

pub(crate) struct Git {
    dir: PathBuf,
}

impl Git {
    pub(crate) fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub(crate) fn init_bare(dir: &Path) -> Self {
        fs::create_dir_all(dir).expect("a directory");
        let git = Self::at(dir);
        git.run(&["init", "--quiet", "--bare", "--initial-branch=main"]);
        git
    }

    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> String {
        self.run_with_input(args, b"")
    }

    #[track_caller]
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> String {
        String::from_utf8_lossy(&self.bytes(args, input)).trim_end().to_owned()
    }

    /// What it prints, as it is.
    #[track_caller]
    pub(crate) fn bytes(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        let output = self.output(args, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {said}");
        output.stdout
    }

    fn output(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Test", "-c", "user.email=test@example.org"]);
        command.arg("-C").arg(&self.dir).args(args);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("`git` is on the path");
        child.stdin.take().expect("piped").write_all(input).expect("git reads its input");
        child.wait_with_output().expect("git ends")
    }

    /// Strict, complete, and without a word about what it found. A server at work may remove packs that it has folded
    /// after Git listed them: then Git is asked again, as docs/operations.md says.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        const CHECK: [&str; 4] = ["fsck", "--strict", "--full", "--no-dangling"];
        loop {
            let listed = self.packs();
            let output = self.output(&CHECK, b"");
            let (found, said) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            if output.status.success() || listed == self.packs() {
                assert!(
                    output.status.success() && found.is_empty(),
                    "git fsck found something: {found}{said}"
                );
                return;
            }
        }
    }

    fn packs(&self) -> BTreeSet<OsString> {
        let dir = PathBuf::from(self.run(&["rev-parse", "--absolute-git-dir"])).join("objects/pack");
        let files = fs::read_dir(dir).expect("a repository");
        files.map(|file| file.expect("a file").file_name()).collect()
    }

    pub(crate) fn commit_count(&self) -> usize {
        self.run(&["rev-list", "--count", "main"]).parse().expect("a number")
    }

    /// The whole message of the newest commit.
    pub(crate) fn last_message(&self) -> String {
        self.run(&["log", "-1", "--format=%B", "main"])
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        let listed = self.run(&["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "main"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// Commits a file behind the server's back.
    pub(crate) fn commit_file(&self, path: &str, bytes: &[u8]) {
        self.commit_entry("100644", path, bytes);
    }

    /// The object with the content of a file that was committed behind the server's back.
    pub(crate) fn loose_object(&self, path: &str) -> PathBuf {
        let id = self.run(&["rev-parse", &format!("main:{path}")]);
        let (dir, rest) = id.split_at(2);
        self.dir.join("objects").join(dir).join(rest)
    }

    pub(crate) fn commit_symlink(&self, path: &str, target: &str) {
        self.commit_entry("120000", path, target.as_bytes());
    }

    fn commit_entry(&self, mode: &str, path: &str, bytes: &[u8]) {
        let blob = self.run_with_input(&["hash-object", "-w", "--stdin"], bytes);
        let main = ["rev-parse", "--verify", "--quiet", "refs/heads/main"];
        let parent = Command::new("git").arg("-C").arg(&self.dir).args(main).output().expect("git runs");
        let parent = String::from_utf8_lossy(&parent.stdout).trim_end().to_owned();
        if !parent.is_empty() {
            self.run(&["read-tree", &parent]);
        }
        self.run(&["update-index", "--add", "--cacheinfo", &format!("{mode},{blob},{path}")]);
        let tree = self.run(&["write-tree"]);
        let mut commit = vec!["commit-tree", &tree, "-m", "behind the server's back"];
        if !parent.is_empty() {
            commit.extend(["-p", &parent]);
        }
        let commit = self.run(&commit);
        self.run(&["update-ref", "refs/heads/main", &commit]);
        let _ = fs::remove_file(self.dir.join("index"));
    }
}
