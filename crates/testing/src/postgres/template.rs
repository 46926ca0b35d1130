//! A data directory that is made once for a test program. Each cluster starts from a copy.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::OnceLock,
};

use tempfile::TempDir;

use super::{
    process::{Watch, feed},
    programs::{Programs, run},
};

/// The role that connects in tests. It owns the database and may do nothing else.
pub const ROLE: &str = "countersign";
pub const DATABASE: &str = "countersign";
pub const PASSWORD: &str = "for-tests-only";

#[derive(Debug)]
pub(super) struct Template {
    pub(super) programs: Programs,
    data: PathBuf,
    /// A static is never dropped: this removes the directory when the test program ends.
    _watch: Watch,
}

impl Template {
    pub(super) fn get() -> Option<&'static Self> {
        static TEMPLATE: OnceLock<Option<Template>> = OnceLock::new();
        let template = TEMPLATE.get_or_init(|| Programs::find().map(Self::make)).as_ref();
        if template.is_none() {
            println!("skipped: PostgreSQL is not installed");
        }
        template
    }

    fn make(programs: Programs) -> Self {
        let dir = new_dir(&programs);
        let watch = Watch::removing(dir.path());
        // From here on the watch removes it.
        let data = dir.keep().join("data");
        let mut initdb = programs.command("initdb");
        initdb.arg("-D").arg(&data).args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]);
        run(initdb.args(["--no-sync", "--wal-segsize=1"]));
        let mut single = programs.command("postgres");
        single.arg("--single").arg("-D").arg(&data).args(["-F", "-c", "password_encryption=scram-sha-256"]);
        single.arg("postgres").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        feed(
            &mut single,
            &format!(
                "create role {ROLE} login password '{PASSWORD}'\n\
                 create database {DATABASE} owner {ROLE}\n"
            ),
        );
        Self { programs, data, _watch: watch }
    }

    pub(super) fn copy_to(&self, data: &Path) {
        run(self.programs.any_command(Path::new("cp")).arg("-a").arg(&self.data).arg(data));
    }
}

/// A temporary directory that belongs to the user who runs PostgreSQL.
pub(super) fn new_dir(programs: &Programs) -> TempDir {
    let dir = TempDir::with_prefix("pg").expect("a temporary directory");
    programs.give(dir.path());
    dir
}
