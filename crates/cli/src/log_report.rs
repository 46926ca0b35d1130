//! What a log proves about a release, in words and for programs.

use countersign_core::proof::freshness::{Freshness, LoggedSigners};
use countersign_core::values::path::RepoPath;
use countersign_core::values::shown::{plural, shown_text};
use countersign_core::{documents::layout, log::record::LoggedState};
use countersign_explain::logs::shown_age;
use serde_json::{Value, json};

use crate::freshness::{LogReport, ShownFreshness, shown_time};
use crate::log_policy::PolicySource;

const NOT_PROVEN: &str = "that this is the newest release, and that it was not revoked a moment ago";

impl LogReport {
    /// Names and texts of lines: what is proven, and what is not. `bundled_at`: of an offline bundle.
    pub(crate) fn lines(&self, project: &RepoPath, bundled_at: Option<&str>) -> Vec<(&'static str, String)> {
        let unknown = match bundled_at {
            None => NOT_PROVEN.to_owned(),
            Some(time) => format!(
                "what happened after {time}, when the bundle says it was made: a revocation or a change of signers \
                 since then only the network could show"
            ),
        };
        match self {
            Self::NotChecked => vec![("not proven", format!("{unknown} (--no-log-check)"))],
            Self::Absent { .. } if bundled_at.is_none() => {
                vec![("not proven", format!("{unknown}: the server shows no log of its changes"))]
            }
            Self::Absent { wanted_by: Some(source) } => {
                vec![("log", without_proof(source)), ("not proven", unknown)]
            }
            Self::Absent { wanted_by: None } => vec![("not proven", unknown)],
            Self::Unmet(why) => {
                vec![("log", format!("a staple is there, but {why}")), ("not proven", unknown)]
            }
            Self::Shown(shown) => vec![("log", shown.text(project)), ("not proven", shown.not_proven())],
        }
    }

    /// Whether witnesses prove a time that is not too long ago.
    pub(crate) fn is_proven(&self) -> bool {
        self.shown().is_some_and(ShownFreshness::is_fresh)
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Absent { wanted_by: Some(source) } => {
                json!({"word": "none", "unmet": without_proof(source)})
            }
            Self::NotChecked | Self::Absent { wanted_by: None } => Value::Null,
            Self::Unmet(why) => json!({"word": "none", "unmet": why}),
            Self::Shown(shown) => shown.json(),
        }
    }
}

fn without_proof(source: &PolicySource) -> String {
    format!("no proof is there, although {} names a log", source.text())
}

impl ShownFreshness {
    /// Says the freshness, as in `fresh as of 14:02 UTC, by 3 of 4 witnesses; the release completed last; not revoked`.
    pub(crate) fn text(&self, project: &RepoPath) -> String {
        let Freshness { as_of, newer, newer_indexes, signers, state, .. } = &self.freshness;
        let fresh = if as_of.is_some() { "fresh " } else { "" };
        let mut parts = vec![format!("{fresh}{}", self.by_whom())];
        if let (Some(_), Some(limit)) = (as_of, self.max_age.as_ref().filter(|_| !self.is_fresh())) {
            parts.push(format!("OLDER than {} allows, {}", limit.whose, shown_age(limit.age)));
        }
        parts.push(newer_text(*newer, newer_indexes, project));
        parts.push(
            match state {
                LoggedState::Complete => "not revoked",
                LoggedState::Revoked(_) => "REVOKED",
            }
            .to_owned(),
        );
        match signers {
            LoggedSigners::Newest => {}
            LoggedSigners::Replaced { .. } => parts.push("the signers have changed since".to_owned()),
            LoggedSigners::Earlier { .. } => {
                parts.push("from before the last change of signers".to_owned());
            }
        }
        parts.join("; ")
    }

    /// Whether the proof is fresh. Only that of a bundle can be too old: then it is told, and proves nothing about now.
    fn is_fresh(&self) -> bool {
        let Some(as_of) = self.freshness.as_of else { return false };
        let age = self.now.ahead_of(as_of).unwrap_or_default();
        self.max_age.as_ref().is_none_or(|limit| age <= limit.age)
    }

    fn not_proven(&self) -> String {
        match (self.freshness.as_of, &self.policy) {
            (Some(as_of), _) => format!(
                "what happened after {}: a revocation, a change of signers or a newer release",
                shown_time(as_of, self.now)
            ),
            (None, Some(source)) => format!(
                "that this is the newest state, and that everyone is shown the same: {} names a log, but no witnesses",
                source.text()
            ),
            (None, None) => {
                "that this is the newest state, and that everyone is shown the same: the project's signers \
                             file names no log and no witnesses, and no policy of yours does (--policy)"
                    .to_owned()
            }
        }
    }

    fn json(&self) -> Value {
        let Freshness { checkpoint, log_key, as_of, cosignatures, quorum, state, number, newer, .. } =
            &self.freshness;
        let word = match (as_of, &self.policy) {
            (Some(_), _) => "witnesses",
            (None, Some(_)) => "log",
            (None, None) => "server",
        };
        let policy = self.policy.as_ref().map(|source| match source {
            PolicySource::File(path) => path.display().to_string(),
            PolicySource::SignersFile => "signers file".to_owned(),
        });
        let (signers, history) = match self.freshness.signers {
            LoggedSigners::Newest => ("newest", None),
            LoggedSigners::Replaced { history } => ("replaced", Some(history)),
            LoggedSigners::Earlier { history } => ("earlier", Some(history)),
        };
        let cosignatures = cosignatures.iter().map(|cosignature| {
            json!({
                "name": cosignature.witness.name(), "key": cosignature.witness.to_string(), "time": cosignature.time,
            })
        });
        let newer_indexes = self.freshness.newer_indexes.iter().map(RepoPath::as_str);
        json!({
            "word": word,
            "as_of": as_of.map(|time| time.to_string()),
            "age_seconds": as_of.map(|time| self.now.ahead_of(time).unwrap_or_default().as_secs()),
            "max_age_seconds": self.max_age.as_ref().map(|limit| limit.age.as_secs()),
            "policy": policy,
            "origin": checkpoint.origin,
            "log_key": log_key.as_ref().map(ToString::to_string),
            "size": checkpoint.size,
            "root": countersign_core::log::tree::write_hash(&checkpoint.root),
            "needed": quorum.needed,
            "cosigned": quorum.cosigned,
            "witnesses": quorum.witnesses,
            "replaying": quorum.replaying,
            "cosignatures": cosignatures.collect::<Vec<_>>(),
            "revoked": matches!(state, LoggedState::Revoked(_)),
            "number": number,
            "newer": newer,
            "newer_indexes": newer_indexes.collect::<Vec<_>>(),
            "signers": signers,
            "signers_in_log": history,
        })
    }
}

fn newer_text(newer: u32, indexes: &[RepoPath], project: &RepoPath) -> String {
    if newer == 0 {
        return "the release completed last".to_owned();
    }
    let names: Vec<String> =
        indexes.iter().map(|index| shown_text(&layout::release_name(index, project))).collect();
    let count = usize::try_from(newer).unwrap_or(usize::MAX);
    let verb = if count == 1 { "was" } else { "were" };
    let later = format!("{newer} release{} {verb} completed later", plural(count));
    match names.len() {
        0 => later,
        listed if listed < count => format!("{later}, the last of them {}", names.join(", ")),
        _ => format!("{later}: {}", names.join(", ")),
    }
}
