//! The projects, directories and files of a run, and the spellings of their paths.

use super::choices::Choices;

/// The part of the server that belongs to one sequence.
#[derive(Debug, Clone)]
pub(crate) struct FilePlace {
    pub(crate) port: u16,
    pub(crate) run: String,
}

/// Projects: two unrelated ones, one that differs only in letter case, one inside another, and one around all.
const PROJECTS: [&str; 10] =
    ["/alpha", "/alpha", "/beta", "/alpha", "/beta", "/alpha", "/Alpha", "/alpha/inner", "", "/alpha"];
/// Directories below a project.
const DIRS: [&str; 6] = ["/v1", "/v1", "/v2", "", "/v1/sub", "/v2"];

impl FilePlace {
    pub(crate) fn root(&self) -> String {
        format!("http/127.0.0.1/{}/{}", self.port, self.run)
    }

    pub(crate) fn choose_project(&self, choices: &mut Choices<'_>) -> String {
        format!("{}{}", self.root(), choices.of(&PROJECTS))
    }

    pub(crate) fn choose_dir(&self, choices: &mut Choices<'_>) -> String {
        self.choose_project(choices) + choices.of(&DIRS)
    }

    /// The URL that maps to this path.
    pub(crate) fn url_of(&self, path: &str) -> String {
        let below = path.splitn(4, '/').nth(3).expect("a path of a server");
        format!("http://127.0.0.1:{}/{below}", self.port)
    }
}

pub(crate) fn pending_signers(project: &str) -> String {
    format!("{project}/svc.signers.pending/svc.signers.json")
}

pub(crate) fn active_signers(project: &str) -> String {
    format!("{project}/svc.signers/svc.signers.json")
}

pub(crate) fn index_in(dir: &str) -> String {
    format!("{dir}/svc.index.json")
}

/// A spelling of a path that means the same (D6), or one that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spelling {
    Same(String),
    Refused(String),
}

pub(crate) fn choose_spelling(choices: &mut Choices<'_>, path: &str) -> Spelling {
    match choices.byte() {
        0..=219 => Spelling::Same(path.to_owned()),
        220..=229 => Spelling::Same(path.replacen("http/", "HTTP/", 1)),
        230..=239 => Spelling::Same(format!("{path}/")),
        240..=243 => Spelling::Refused(path.replacen("http/", "http/./", 1)),
        244..=247 => Spelling::Refused(format!("{path}/../svc.index.json")),
        248..=249 => Spelling::Refused(path.replacen('/', "//", 1)),
        250..=251 => Spelling::Refused(format!("{path}/.GIT")),
        252..=253 => Spelling::Refused(format!("{path}/a\\b")),
        254..=255 => Spelling::Refused(String::new()),
    }
}

/// Encodes a path for the target of a request.
pub(crate) fn encode(path: &str) -> String {
    path.replace('%', "%25").replace('\\', "%5C").replace("svc.index", "svc%2Eindex")
}
