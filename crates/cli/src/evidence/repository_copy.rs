//! A repository on this computer, without a network: the newest state of a data directory, a bare repository or a
//! clone.

use std::path::Path;

use countersign_core::documents::layout;
use countersign_core::values::{path::RepoPath, shown::quoted, shown::shown_text, wire};
use countersign_store::{Head, audit::walk::read_newest};

use crate::words::{error::CliError, error::shown_path, output::Output};

pub(crate) struct RepositoryView {
    pub(crate) head: Head,
}

impl RepositoryView {
    /// Opens a repository without checking its past, which `countersign fsck` does.
    pub(crate) fn open(dir: &Path, output: Output) -> Result<Self, CliError> {
        let (head, warnings) = read_newest(dir)?;
        for warning in warnings {
            output.note(&format!("warning: {}", shown_text(&warning)));
        }
        output.note(&format!(
            "note: what is in {} is taken as it is; `countersign fsck` checks how it came to be",
            shown_path(dir)
        ));
        Ok(Self { head })
    }

    pub(crate) fn projects(&self) -> Vec<RepoPath> {
        self.head.index.projects().map(|(_, project)| project.clone()).collect()
    }

    /// Finds a project by its path, or by its last names, in any letter case.
    pub(crate) fn find_project(&self, name: &str) -> Result<RepoPath, CliError> {
        let wanted = format!("/{}", name.to_ascii_lowercase());
        let projects = self.head.index.projects();
        let found = projects.filter(|(folded, _)| format!("/{folded}").ends_with(&wanted));
        let found: Vec<&RepoPath> = found.map(|(_, project)| project).collect();
        match found.as_slice() {
            [project] => Ok((*project).clone()),
            [] => {
                let known: Vec<String> = self.projects().iter().take(20).map(ToString::to_string).collect();
                Err(CliError::usage(
                    format!("the repository has no project {}", quoted(name)),
                    format!("name one that it has, such as {}", known.join(", ")),
                ))
            }
            _ => Err(CliError::usage(
                format!("{} can be more than one project", quoted(name)),
                "name it in full, as in https/github.com/443/acme/app",
            )),
        }
    }

    /// The indexes below a project, sorted.
    pub(crate) fn releases(&self, project: &RepoPath) -> Vec<RepoPath> {
        let mut found = Vec::new();
        self.head.walk_below(project, &mut |path| {
            if path.ends_with(wire::INDEX_FILE) {
                let path = RepoPath::parse(path).ok();
                found.extend(path.filter(|path| layout::signable(path) == Some(layout::Signable::Index)));
            }
        });
        found
    }
}
