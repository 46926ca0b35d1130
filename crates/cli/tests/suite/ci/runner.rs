//! A stand-in for the runners of GitHub and Forgejo: it reads our files, and runs their steps as those do.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::{collections::BTreeMap, fs, path::Path, path::PathBuf, process::Command, process::Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::yaml;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) struct Runner {
    dir: TempDir,
    /// What every step gets.
    pub(crate) env: BTreeMap<String, String>,
    /// The shell that steps ask for as `sh`.
    pub(crate) shell: &'static str,
}

/// What a step or an action left.
#[derive(Debug, Default)]
pub(crate) struct StepEnd {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) outputs: BTreeMap<String, String>,
    pub(crate) summary: String,
    /// Lines that a real runner would have obeyed.
    pub(crate) commands: Vec<String>,
}

impl StepEnd {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.failed(0)
    }

    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(self.commands.is_empty(), "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stdout.contains(word) || self.stderr.contains(word), "no {word:?} in {self:#?}");
        }
        self
    }
}

impl Runner {
    /// One with our program on its path, which runs for a tag.
    pub(crate) fn new(server: &str, tag: &str) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        for name in ["work", "bin", "temp", "files"] {
            fs::create_dir(dir.path().join(name)).expect("an empty directory");
        }
        symlink(env!("CARGO_BIN_EXE_countersign"), dir.path().join("bin/countersign")).expect("a link");
        let at = |name: &str| dir.path().join(name).to_str().expect("a plain name").to_owned();
        let path = format!("{}:{}", at("bin"), std::env::var("PATH").unwrap_or_default());
        let env = [
            ("PATH", path.as_str()),
            ("HOME", &at("temp")),
            ("TMPDIR", &at("temp")),
            ("RUNNER_TEMP", &at("temp")),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_SERVER_URL", server),
            ("GITHUB_REPOSITORY", "acme/app"),
            ("GITHUB_REF_TYPE", "tag"),
            ("GITHUB_REF_NAME", tag),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { dir, env, shell: "sh" }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn temp(&self) -> PathBuf {
        self.dir.path().join("temp")
    }

    /// A program of this name that only notes what it is told, a line for each call.
    pub(crate) fn stub(&self, name: &str) {
        let path = self.dir.path().join("bin").join(name);
        let log = self.dir.path().join(format!("{name}.log"));
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$*\" >>'{}'\n", log.display());
        fs::write(&path, script).expect("a writable directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }

    /// How a stub was called, a line for each time.
    pub(crate) fn calls_of(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    /// Takes our program off the path.
    pub(crate) fn forget_program(&self) {
        fs::remove_file(self.dir.path().join("bin/countersign")).expect("it was there");
    }

    /// Runs a composite action of this repository.
    #[track_caller]
    pub(crate) fn action(&self, dir: &str, with: &[(&str, &str)]) -> StepEnd {
        let action = yaml::read(&read(&format!("{dir}/action.yml")));
        let mut inputs = serde_json::Map::new();
        for (name, input) in action["inputs"].as_object().expect("inputs") {
            inputs.insert(name.clone(), input["default"].clone());
        }
        for (name, value) in with {
            assert!(inputs.insert((*name).to_owned(), json!(value)).is_some(), "{dir} has no input {name}");
        }
        assert_eq!(action["runs"]["using"], "composite");
        let mut context = json!({ "inputs": inputs, "steps": {} });
        let mut all = StepEnd::default();
        for step in action["runs"]["steps"].as_array().expect("steps") {
            assert_eq!(step["shell"], "sh", "{dir}");
            let mut env = evaluated(&step["env"], &context);
            let path = root().join(dir).to_str().expect("a plain name").to_owned();
            env.insert("GITHUB_ACTION_PATH".to_owned(), path);
            let end = self.run(step["run"].as_str().expect("a script"), &env);
            let id = step["id"].as_str().expect("an id");
            context["steps"][id] = json!({ "outputs": end.outputs });
            all.code = end.code;
            all.stdout += &end.stdout;
            all.stderr += &end.stderr;
            all.summary += &end.summary;
            all.commands.extend(end.commands);
            if end.code != 0 {
                break;
            }
        }
        if let Some(outputs) = action["outputs"].as_object() {
            let value = |output: &Value| evaluate(output["value"].as_str().expect("a value"), &context);
            all.outputs = outputs.iter().map(|(name, output)| (name.clone(), value(output))).collect();
        }
        all
    }

    /// Runs the text of a step, which contains no expression: what is in those would be part of the script.
    #[track_caller]
    pub(crate) fn run(&self, script: &str, env: &BTreeMap<String, String>) -> StepEnd {
        assert!(!script.contains("${{") && !script.contains("$[["), "spliced: {script}");
        let file = |name: &str| self.dir.path().join("files").join(name);
        for name in ["script", "output", "path", "env", "summary"] {
            fs::write(file(name), if name == "script" { script } else { "" }).expect("a writable directory");
        }
        let mut command = Command::new(self.shell);
        command.arg("-e").arg(file("script")).current_dir(self.work()).stdin(Stdio::null());
        command.env_clear().envs(&self.env).envs(env);
        if self.env.contains_key("GITHUB_ACTIONS") {
            command.env("GITHUB_OUTPUT", file("output")).env("GITHUB_PATH", file("path"));
            command.env("GITHUB_ENV", file("env")).env("GITHUB_STEP_SUMMARY", file("summary"));
        }
        let output = command.output().expect("a shell");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        let written = |name: &str| fs::read_to_string(file(name)).expect("UTF-8");
        assert_eq!(written("env"), "", "no step sets variables for others");
        let mut commands = find_commands(&stdout);
        commands.extend(find_commands(&stderr));
        StepEnd {
            code: output.status.code().unwrap_or(-1),
            outputs: read_outputs(&written("output")),
            summary: written("summary"),
            stdout,
            stderr,
            commands,
        }
    }

    /// The lines that the last step added to the path.
    pub(crate) fn added_path(&self) -> String {
        fs::read_to_string(self.dir.path().join("files/path")).expect("UTF-8")
    }
}

/// The values of a map of expressions.
pub(crate) fn evaluated(map: &Value, context: &Value) -> BTreeMap<String, String> {
    let members = map.as_object().cloned().unwrap_or_default();
    members
        .into_iter()
        .map(|(name, value)| (name, evaluate(value.as_str().expect("a scalar"), context)))
        .collect()
}

/// A plain text, or one expression that names a value of the context. What is not there is empty.
pub(crate) fn evaluate(text: &str, context: &Value) -> String {
    let Some(inner) = text.strip_prefix("${{ ").and_then(|text| text.strip_suffix(" }}")) else {
        assert!(!text.contains("${{"), "{text}");
        return text.to_owned();
    };
    let found = context.pointer(&format!("/{}", inner.replace('.', "/")));
    found.map(|value| value.as_str().expect("text").to_owned()).unwrap_or_default()
}

/// Reads the file as GitHub's runner does: `name=value`, or `name<<END`, lines, `END`.
fn read_outputs(text: &str) -> BTreeMap<String, String> {
    let mut outputs = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match (line.find('='), line.find("<<")) {
            (Some(equals), heredoc) if heredoc.is_none_or(|heredoc| equals < heredoc) => {
                let is_new =
                    outputs.insert(line[..equals].to_owned(), line[equals + 1..].to_owned()).is_none();
                assert!(is_new, "twice: {text}");
            }
            (_, Some(heredoc)) => {
                let value: Vec<&str> =
                    lines.by_ref().take_while(|next| *next != &line[heredoc + 2..]).collect();
                outputs.insert(line[..heredoc].to_owned(), value.join("\n"));
            }
            (_, None) => panic!("no output: {line}"),
        }
    }
    outputs
}

/// Looks for commands as GitHub's runner does, of both forms, except while they are switched off.
fn find_commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut stopped: Option<String> = None;
    for line in text.split(['\n', '\r']) {
        let trimmed = line.trim_start();
        if let Some(word) = &stopped {
            if trimmed == format!("::{word}::") {
                stopped = None;
            }
        } else if let Some(word) = trimmed.strip_prefix("::stop-commands::") {
            assert!(word.len() >= 32, "a word that can be guessed: {word}");
            stopped = Some(word.to_owned());
        } else if trimmed.strip_prefix("::").is_some_and(|rest| rest.contains("::")) || line.contains("##[") {
            found.push(line.to_owned());
        }
    }
    assert!(stopped.is_none(), "commands stay switched off: {text}");
    found
}
