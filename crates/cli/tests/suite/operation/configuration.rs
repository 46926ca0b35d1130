//! Flags, environment and file: flag > environment > file > default; unknown keys are errors (D37).

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{Launch, Person, SignersFile, TestServer, World};

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn config(&self, text: &str) -> String {
        std::fs::write(self.path("countersign.toml"), text).unwrap();
        self.text("countersign.toml")
    }
}

fn is_data_dir(path: &Path) -> bool {
    path.join("repo.git/HEAD").exists()
}

#[test]
fn every_flag_has_a_key_in_the_file() {
    let alice = Person::named("alice");
    let place = Place::new();
    let data = place.text("from-file");
    let world = World::start_with(|_, files| {
        let text = format!(
            "listen = \"127.0.0.1:0\"\ndata_dir = {data:?}\ndev = false\n\
             allow_fetch = [\"10.0.0.0/8\", \"127.0.0.1:*\"]\nfile_server = [\"127.0.0.1:{}\"]\nlog_format = \"json\"\n",
            files.port()
        );
        Launch::bare().args(["--config", &place.config(&text)])
    });
    assert!(is_data_dir(&place.path("from-file")));
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    let dev = place
        .config(&format!("listen = \"127.0.0.1:0\"\ndata_dir = {:?}\ndev = true\n", place.text("other")));
    let server = TestServer::start_with(|_| Launch::bare().args(["--config", &dev]));
    assert!(server.ready_line().to_lowercase().contains("dev"));
}

#[test]
fn every_flag_has_an_environment_variable() {
    let alice = Person::named("alice");
    let place = Place::new();
    let world = World::start_with(|_, files| {
        Launch::bare()
            .env("COUNTERSIGN_LISTEN", "127.0.0.1:0")
            .env("COUNTERSIGN_DATA_DIR", &place.text("from-env"))
            .env("COUNTERSIGN_DEV", "false")
            .env("COUNTERSIGN_ALLOW_FETCH", "10.0.0.1,127.0.0.1:*")
            .env("COUNTERSIGN_FILE_SERVER", &format!("x.example,127.0.0.1:{}", files.port()))
            .env("COUNTERSIGN_LOG_FORMAT", "json")
    });
    assert!(is_data_dir(&place.path("from-env")));
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    let config = place.config(&format!("listen = \"127.0.0.1:0\"\ndata_dir = {:?}\n", place.text("by-file")));
    let launch = Launch::bare().env("COUNTERSIGN_CONFIG", &config).env("COUNTERSIGN_DEV", "true");
    let server = TestServer::start_with(|_| launch);
    assert!(is_data_dir(&place.path("by-file")));
    assert!(server.ready_line().to_lowercase().contains("dev"));
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let place = Place::new();
    let text = format!("dev = true\nlisten = \"127.0.0.1:0\"\ndata_dir = {:?}\n", place.text("file"));
    let file = place.config(&text);
    let from_file = Launch::bare().args(["--config", &file]);
    let from_env =
        from_file.clone().env("COUNTERSIGN_DATA_DIR", &place.text("env")).env("COUNTERSIGN_DEV", "false");
    let from_flag = from_env.clone().args(["--data-dir", &place.text("flag")]);

    let flag = TestServer::start_with(|_| from_flag);
    assert_eq!(["flag", "env", "file"].map(|name| is_data_dir(&place.path(name))), [true, false, false]);
    let env = TestServer::start_with(|_| from_env);
    assert_eq!(["flag", "env", "file"].map(|name| is_data_dir(&place.path(name))), [true, true, false]);
    let file = TestServer::start_with(|_| from_file);
    assert_eq!(["flag", "env", "file"].map(|name| is_data_dir(&place.path(name))), [true, true, true]);
    let is_dev = |server: &TestServer| server.ready_line().to_lowercase().contains("dev");
    assert_eq!([&flag, &env, &file].map(is_dev), [false, false, true]);
}

#[test]
fn wrong_flags_and_variables_are_errors() {
    let place = Place::new();
    let missing = place.text("none.toml");
    let said = Launch::serve(&place.path("data")).args(["--config", &missing]).refusal();
    assert!(said.contains("none.toml"), "{said}");
    let launch = || Launch::bare().args(["--data-dir", &place.text("data")]);
    let refused = launch().args(["--listen", "3000"]).refusal();
    assert!(refused.contains("write an address and a port, as in 127.0.0.1:3000"), "{refused}");
    launch().args(["--unheard"]).refusal();
    launch().env("COUNTERSIGN_LISTEN", "nowhere").refusal();
    launch().env("COUNTERSIGN_DEV", "perhaps").refusal();
    launch().args(["--allow-fetch", "10.0.0.0/99"]).refusal();
}

#[test]
fn dev_mode_refuses_to_listen_where_others_can_reach_it() {
    let place = Place::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let launch = Launch::bare().args(["--dev", "--listen", address, "--data-dir", &place.text("data")]);
        let said = launch.refusal();
        assert!(said.contains("dev"), "{said}");
    }
    let file = place.config("dev = true\n");
    Launch::bare()
        .args(["--config", &file, "--listen", "0.0.0.0:0", "--data-dir", &place.text("data")])
        .refusal();
    assert!(!place.path("data").exists());
}

#[test]
fn the_author_of_commits_and_the_largest_limits_can_be_configured() {
    let place = Place::new();
    // And limits can be as large as they may; what is more is refused (`scenarios/mistakes.txt`).
    let limits = "assets = 10000\nchecksums_file_bytes = 4194304\nrequest_body_bytes = 4194304\nsigners_file_bytes = 262144";
    let commits = "[commits]\nname = \"Release Robot\"\nemail = \"robot@example.org\"";
    let file =
        place.config(&format!("{commits}\n[limits]\n{limits}\n[fetch]\ntotal_timeout_seconds = 3600\n"));
    let server = TestServer::start_with(|launch| launch.args(["--config", &file]));
    let git = crate::support::Git::at(server.repository());
    let identity = git.run(&["log", "-1", "--format=%an %ae %cn %ce"]);
    server.get("/v1/ping").ok();
    assert_eq!(identity, "Release Robot robot@example.org Release Robot robot@example.org");
}
