//! The short block that says what was verified, by whom, and what was not.

use countersign_core::documents::{index::PublishedFile, said::ObjectionsFile};
use countersign_core::proof::{trust::Root, verify::GroupCount, verify::VerifiedArtifact};
use countersign_core::rules::{place::path_of_url, place::release_tag};
use countersign_core::values::{path::RepoPath, shown::marked_name, shown::shown_text};
use countersign_explain::describe::release::{ObjectionDescription, RevocationDescription, list_objections};
use countersign_explain::progress::Names;
use countersign_explain::reproduction::{different_text, not_built_text, reproduction_text};
use countersign_explain::words::{Doubts, shown_release, shown_url};
use serde_json::{Value, json};

use crate::client::turns::PassedOver;
use crate::evidence::freshness::{LogReport, ShownFreshness};
use crate::evidence::release::{
    describe_different, objections_json, reproduction_json, say_objection, shown_name,
};
use crate::evidence::{download::Expected, proof::Accepted};
use crate::words::{error::CliError, error::shown_path, output::Output, table::People};

/// A file of a release that is on this computer, and right.
pub(crate) struct CheckedFile<'a> {
    pub(crate) file: &'a PublishedFile,
    pub(crate) size: u64,
    pub(crate) path: &'a std::path::Path,
}

impl CheckedFile<'_> {
    fn text(&self) -> String {
        let expected = Expected::of(self.file).map(|expected| expected.to_string()).unwrap_or_default();
        format!("{}, {} bytes, {expected}", shown_name(&self.file.file_name), self.size)
    }

    fn json(&self) -> Value {
        json!({
            "file": self.path.display().to_string(),
            "file_name": self.file.file_name.as_str(),
            "size": self.size,
            "digests": {
                "sha256": self.file.digests.sha256.map(|digest| digest.to_string()),
                "sha512": self.file.digests.sha512.map(|digest| digest.to_string()),
            },
        })
    }
}

/// A release that is what its signers signed, and what is known of it beyond that.
pub(crate) struct AcceptedRelease {
    pub(crate) accepted: Accepted,
    /// What the server's log proves of the newest state (D97).
    pub(crate) log: LogReport,
    /// A revocation that waits for signatures. The headline says so.
    pub(crate) begun: Option<RevocationDescription>,
    /// What signers said against the release, all of which verifies.
    pub(crate) objections: ObjectionsFile,
    /// Servers that were asked before the one that this is from.
    pub(crate) passed_over: Vec<PassedOver>,
}

/// What was verified: files of one release.
pub(crate) struct Report<'a> {
    pub(crate) release: &'a AcceptedRelease,
    pub(crate) files: Vec<CheckedFile<'a>>,
    /// Other projects that list the same file.
    pub(crate) also_in: Vec<AlsoIn>,
    /// The time of the offline bundle that the release was verified with.
    pub(crate) bundled_at: Option<String>,
}

impl AcceptedRelease {
    /// What every answer about it says to programs, beside what is its own.
    pub(crate) fn json(&self, mut own: Value) -> Value {
        let artifact = &self.accepted.artifact;
        own["index_path"] = json!(artifact.path);
        own["project_id"] = json!(artifact.index.project_id);
        own["freshness_proven"] = json!(self.log.shown().is_some_and(ShownFreshness::is_fresh));
        own["freshness"] = self.log.json();
        own["reproduction"] = reproduction_json(artifact.reproduction.as_ref());
        if !self.passed_over.is_empty() {
            own["servers_passed_over"] = self.passed_over.iter().map(PassedOver::json).collect();
        }
        own
    }

    /// Refuses a release that some of its revokers want revoked.
    pub(crate) fn refuse_begun(self) -> Result<Self, CliError> {
        if self.begun.is_none() {
            return Ok(self);
        }
        let (name, why) = (self.name(), self.doubts().text().unwrap_or_default());
        Err(CliError::unverified(
            format!("{name}: {why}"),
            "wait until the revokers have decided, or leave out --strict to be warned instead",
        ))
    }

    /// Whether signers speak against it.
    pub(crate) fn has_doubts(&self) -> bool {
        self.doubts().text().is_some()
    }

    /// Warns of a revocation that waits for signatures, where no report does.
    pub(crate) fn warn_if_begun(&self, output: Output) {
        if self.begun.is_some() {
            let why = self.doubts().text().unwrap_or_default();
            output.warn(&format!("{} {}: {why}", output.bad("warning:"), self.name()));
        }
    }

    fn name(&self) -> String {
        let artifact = &self.accepted.artifact;
        shown_release(&artifact.path, &artifact.index.project_id)
    }

    fn doubts(&self) -> Doubts {
        Doubts {
            begun: self.begun.as_ref().map(|begun| (begun.tally, begun.reason.clone())),
            objections: self
                .objections
                .standing()
                .into_iter()
                .map(|objection| objection.text.to_owned())
                .collect(),
            different: self.accepted.artifact.reproduction.as_ref().and_then(different_text),
        }
    }

    /// What the log proves about it, a line for each.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        let lines = self.log.lines(&self.accepted.artifact.chain.project, None).into_iter();
        lines.map(|(name, text)| format!("  {name:<11} {text}\n")).collect()
    }
}

impl Report<'_> {
    pub(crate) fn show(&self, output: Output) -> Result<(), CliError> {
        self.warn_if_quiet(output);
        output.result(&self.text(output), &self.json())
    }

    /// The report has the doubts, which are read also where the report is not.
    pub(crate) fn warn_if_quiet(&self, output: Output) {
        if output.is_terse() {
            self.release.warn_if_begun(output);
            self.list_different(output).iter().for_each(|different| output.warn(different));
            self.list_objections()
                .iter()
                .for_each(|objection| output.warn(&format!("OBJECTION {objection}")));
        }
    }

    fn list_objections(&self) -> Vec<String> {
        self.standing().iter().map(|objection| say_objection(objection, None)).collect()
    }

    fn list_different(&self, output: Output) -> Vec<String> {
        let artifact = &self.release.accepted.artifact;
        let names = Names::of([&artifact.governing().signers]);
        describe_different(artifact.reproduction.as_ref(), &names, output)
    }

    fn standing(&self) -> Vec<ObjectionDescription> {
        let current = &self.release.accepted.artifact.chain.last().signers;
        list_objections(current, self.release.objections.standing())
    }

    /// The verdict, with the release and the project of each file (D238, D239).
    fn headline(&self, output: Output) -> Vec<String> {
        let name = self.release.name();
        let about = self.files.iter().map(|file| format!("{}: {name}", shown_path(file.path)));
        match self.release.doubts().text() {
            Some(doubt) => [output.bad(&format!("Verified, but {doubt}"))]
                .into_iter()
                .chain(about.map(|line| format!("  {line}")))
                .collect(),
            None => about.map(|line| format!("{} {line}", output.good("Verified"))).collect(),
        }
    }

    /// How far the release is reproduced, and each verified file that builders do not make.
    fn describe_rebuilds(&self, names: &Names) -> Vec<String> {
        let Some(reproduction) = &self.release.accepted.artifact.reproduction else { return Vec::new() };
        let not_built = |file: &CheckedFile<'_>| not_built_text(reproduction, &file.file.file_name);
        let mut lines: Vec<String> = self.files.iter().filter_map(not_built).collect();
        if lines.is_empty() || lines.len() < self.files.len() {
            lines.insert(0, reproduction_text(reproduction, names));
        }
        lines
    }

    pub(crate) fn text(&self, output: Output) -> String {
        let Accepted { artifact, root, since, is_first_use } = &self.release.accepted;
        let mut lines = self.headline(output);
        lines.extend(self.list_different(output).into_iter().map(|different| format!("  {different}")));
        let mut line = |name: &str, text: String| lines.push(format!("  {name:<11} {text}"));
        for objection in self.list_objections() {
            line("OBJECTION", objection);
        }
        for file in &self.files {
            line("file", file.text());
        }
        line("release", release_name(artifact));
        let names = Names::of([&artifact.governing().signers]);
        let signed = People { names: &names, you: None }.list(artifact.signed_by.keys().copied());
        line("signed by", output.list(&signed));
        line(
            "thresholds",
            artifact.groups().iter().map(GroupCount::to_string).collect::<Vec<_>>().join("; "),
        );
        for text in self.describe_rebuilds(&names) {
            line("rebuilds", text);
        }
        let begin = match root {
            Root::Origin(url) => {
                let path = path_of_url(url);
                let is_far = path.is_some_and(|path| !path.as_str().starts_with("http/127."));
                let unprotected = if url.starts_with("http://") && is_far { " over plain http" } else { "" };
                format!("the signers file was read from {}{unprotected}", shown_text(url))
            }
            Root::Digest(digest) => {
                format!("the signers file with {}… was given", &digest.to_prefixed()[..23])
            }
        };
        let when =
            if *is_first_use { "now, for the first time".to_owned() } else { format!("since {since}") };
        line("trusted", format!("{when}: {begin}"));
        if let Some(others) = also_in_text(&self.also_in) {
            line("note", others);
        }
        line("signers", history_text(artifact));
        if let Some(newer) = artifact.replaced_by() {
            let time = newer.signers.timestamp();
            line("note", format!("it was signed under signers who were replaced by a file of {time}"));
        }
        for (name, text) in self.release.log.lines(&artifact.chain.project, self.bundled_at.as_deref()) {
            line(name, text);
        }
        lines.join("\n")
    }

    pub(crate) fn json(&self) -> Value {
        let Accepted { artifact, root, since, is_first_use } = &self.release.accepted;
        let signers = &artifact.governing().signers;
        let signed_by = artifact.signed_by.iter().map(|(key, at)| {
            let signer = signers.named_signer(*key);
            json!({"public_key": key.to_string(), "name": signer.name, "collected_at": at.to_string()})
        });
        let groups = artifact.groups();
        let groups = groups
            .iter()
            .map(|group| json!({"threshold": group.threshold, "size": group.size, "signed": group.signed}));
        let root = match root {
            Root::Origin(url) => json!({"kind": "origin", "url": url}),
            Root::Digest(digest) => json!({"kind": "digest", "signers_digest": digest.to_prefixed()}),
        };
        let mut value = json!({
            "verified": true,
            "files": self.files.iter().map(CheckedFile::json).collect::<Vec<_>>(),
            "index_digest": artifact.index_digest.to_prefixed(),
            "release_url": artifact.index.release_url,
            "signed_by": signed_by.collect::<Vec<_>>(),
            "thresholds": groups.collect::<Vec<_>>(),
            "signers_history": artifact.chain.links.len(),
            "signers_digest": artifact.governing().digest.to_prefixed(),
            "replaced_by_signers_of": artifact.replaced_by().map(|link| link.signers.timestamp().to_string()),
            "root": root,
            "trusted_since": since.to_string(),
            "first_use": is_first_use,
            "objections": objections_json(&self.standing()),
            "pending_revocation": self.release.begun.as_ref().map(|begun| json!({
                "reason": begun.reason,
                "timestamp": begun.timestamp.to_string(),
                "collected": begun.tally.collected,
                "needed": begun.tally.needed,
            })),
            "also_in": self.also_in.iter().map(|other| &other.project).collect::<Vec<_>>(),
            "bundled_at": self.bundled_at,
        });
        value = self.release.json(value);
        // Of a single file, what is said of it stands beside the rest.
        if let ([only], Some(value)) = (self.files.as_slice(), value.as_object_mut())
            && let Value::Object(file) = only.json()
        {
            value.extend(file);
        }
        value
    }
}

/// Says which other projects list a file, if there are any.
pub(crate) fn also_in_text(others: &[AlsoIn]) -> Option<String> {
    let name = |other: &AlsoIn| {
        format!(
            "{}{}",
            shown_url(&other.project),
            if other.is_revoked { ", where it was REVOKED" } else { "" }
        )
    };
    let names: Vec<String> = others.iter().map(name).collect();
    (!names.is_empty()).then(|| format!("the same file is also in releases of {}", names.join(", ")))
}

/// Another project that lists the same file.
pub(crate) struct AlsoIn {
    pub(crate) project: RepoPath,
    /// Whether every release of the project that lists it is revoked.
    pub(crate) is_revoked: bool,
}

/// Project and tag, or the directory of the release.
pub(crate) fn release_name(artifact: &VerifiedArtifact) -> String {
    let index = &artifact.index;
    match index.release_url.as_deref().and_then(|url| release_tag(url, &index.project_id)) {
        Some(tag) => format!("{} of {}", marked_name(&tag), marked_name(index.project_id.as_str())),
        None => marked_name(artifact.path.parent().as_ref().unwrap_or(&artifact.path).as_str()),
    }
}

fn history_text(artifact: &VerifiedArtifact) -> String {
    let links = &artifact.chain.links;
    // The times in the files are signed; when they took effect is the server's word.
    let first = links[0].signers.timestamp();
    match links.len() {
        1 => format!("the project's first, of {first}"),
        count => format!("{count} in the history, each agreed to by those before it; the first of {first}"),
    }
}
