//! Where a file stands, as the server shows it to everyone.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::{
    documents::{
        layout,
        objections::{EarlierObjections, ObjectionsFile},
        other_formats::OtherFormatsFile,
        revocation::Revocation,
        signatures::SignatureSet,
        signers::SignersFile,
    },
    rules::{consent::Consent, quorum, tally::Tally},
    values::{
        digest::Sha512,
        key::PublicKey,
        other_format::OtherFormat,
        path::RepoPath,
        shown::{plural, quoted},
        time::Timestamp,
    },
};
use countersign_explain::progress::{
    ConditionProgress, GroupProgress, Names, WayProgress, condition_text, describe_conditions,
    describe_groups, way_name,
};
use serde_json::{Map, Value, json};

use crate::{
    client::{now, state::Shown},
    error::CliError,
    output::Output,
    people::{People, when_text},
    shown_release::{
        describe_earlier_objections, describe_objections, earlier_objections_json, find_earlier_objections,
        find_objections, objections_json,
    },
    waiting::{DroppedSignatures, Waiting, due_text},
};

/// Where a file stands. The server's word, except that signatures which do not verify are not counted.
pub(super) struct Status {
    pub(super) state: SigningState,
    /// Of the file itself.
    pub(super) digest: Sha512,
    pub(super) signed: BTreeSet<PublicKey>,
    /// Whose signature brings it nearer.
    pub(super) missing: BTreeSet<PublicKey>,
    pub(super) names: Names,
    pub(super) tally: Tally,
    /// All must hold.
    pub(super) needs: Needs,
    /// A revocation that waits for more signatures.
    pub(super) begun: Option<Begun>,
    /// Signatures for other programs, all of which verify.
    formats: OtherFormatsFile,
    objections: Objections,
    /// When signers take effect that have all signatures.
    waits_until: Option<Timestamp>,
    /// Whether masters are in force, who can veto.
    has_masters: bool,
    /// A veto of signers that waits for more signatures.
    veto: Option<Begun>,
    /// Of new signers: which signatures on releases they drop.
    drops: DroppedSignatures,
}

/// What signers said against a release, all of which verifies.
#[derive(Default)]
struct Objections {
    file: ObjectionsFile,
    /// To contents that it had before.
    earlier: EarlierObjections,
    /// `None` only where there is nothing to say of anyone.
    current: Option<SignersFile>,
}

/// What a file needs.
pub(super) enum Needs {
    /// A release: every group of artifact signers.
    Groups(Vec<GroupProgress>),
    /// A signers file, as its page shows it.
    Conditions(Vec<ConditionProgress>),
}

pub(super) struct Begun {
    reason: String,
    signed: BTreeSet<PublicKey>,
    tally: Tally,
}

pub(super) enum SigningState {
    Collecting,
    Complete,
    Revoked { reason: String },
}

impl SigningState {
    /// For programs.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Collecting => "waiting",
            Self::Complete => "complete",
            Self::Revoked { .. } => "revoked",
        }
    }
}

impl Begun {
    /// `command`: what joins it.
    fn describe(&self, title: &str, people: &People<'_>, command: &str) -> String {
        let Self { reason, signed, tally } = self;
        let signed = people.list(signed.iter().copied());
        let reason = quoted(reason);
        format!("  {title:<11} begun by {signed}, {tally}, for the reason {reason}; join it with `{command}`")
    }

    fn json(&self) -> Value {
        json!({
            "reason": self.reason,
            "signed_by": self.signed.iter().map(PublicKey::to_string).collect::<Vec<_>>(),
            "collected": self.tally.collected,
            "needed": self.tally.needed,
        })
    }
}

impl Status {
    /// `name`: what can be typed for the file.
    pub(super) fn text(&self, name: &str, you: Option<PublicKey>, output: Output) -> String {
        let people = People { names: &self.names, you };
        let mut lines = vec![format!("{name}: {}", self.state_text(output))];
        if let Some(current) = &self.objections.current {
            let names = Names::of([current]);
            let people = People { names: &names, you };
            let mut shown = describe_objections(&self.objections.file, current, &people, output);
            shown.extend(describe_earlier_objections(&self.objections.earlier, current, &people));
            lines.extend(shown.iter().map(|line| format!("  {line}")));
        }
        if let SigningState::Revoked { reason } = &self.state {
            lines.push(format!("  reason      {}", quoted(reason)));
        }
        lines.extend(self.waits_until.map(|until| self.describe_wait(until, name)));
        match &self.needs {
            Needs::Groups(groups) => {
                lines.extend(groups.iter().map(|group| format!("  needs       {group}")));
            }
            Needs::Conditions(conditions) => {
                let (count, s) = (conditions.len(), plural(conditions.len()));
                lines.push(format!("  needs       {}, in {count} condition{s}", self.tally));
                lines.extend(conditions.iter().flat_map(|condition| describe(condition, &people, output)));
            }
        }
        lines.push(format!("  signed      {}", people.list_or(self.signed.iter().copied(), "no one")));
        if matches!(self.state, SigningState::Collecting) {
            let missing = people.list_or(self.missing.iter().copied(), "no one who is needed");
            lines.push(format!("  not signed  {missing}"));
        }
        lines.extend(self.describe_formats());
        if let Some(dropped) = self.drops.text() {
            lines.push(format!("  drops       the signatures on {dropped}"));
        }
        let (veto, revoke) = (format!("countersign veto {name}"), format!("countersign revoke {name}"));
        lines.extend(self.veto.as_ref().map(|begun| begun.describe("veto", &people, &veto)));
        lines.extend(self.begun.as_ref().map(|begun| begun.describe("revocation", &people, &revoke)));
        lines.join("\n")
    }

    fn state_text(&self, output: Output) -> String {
        match &self.state {
            SigningState::Collecting if self.waits_until.is_some() => {
                output.strong("all signatures are there; waiting")
            }
            SigningState::Collecting => output.strong("collecting signatures"),
            SigningState::Complete => output.good("complete"),
            SigningState::Revoked { .. } => output.bad("REVOKED"),
        }
    }

    fn describe_wait(&self, until: Timestamp, name: &str) -> String {
        if now().is_ok_and(|now| until <= now) {
            return format!("  in force    it {}", due_text(until));
        }
        let masters = match self.has_masters {
            true => {
                format!(
                    ", unless the masters veto it (`countersign veto {name}`), or at once if they sign it"
                )
            }
            false => "; there are no masters who could veto it, but an admin can replace it".to_owned(),
        };
        format!("  in force    on {}{masters}", when_text(until))
    }

    fn describe_formats(&self) -> Option<String> {
        let counted = |format: OtherFormat| (self.formats.count(format), format);
        let counts = OtherFormat::ALL.map(counted).into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, format)| format!("{count} for {format}")).collect();
        (!counts.is_empty()).then(|| format!("  also        {}", counts.join(", ")))
    }

    pub(super) fn json(&self, path: &RepoPath) -> Value {
        let keys = |keys: &BTreeSet<PublicKey>| keys.iter().map(PublicKey::to_string).collect::<Vec<_>>();
        let mut value = json!({
            "file_path": path.as_str(),
            "is_complete": matches!(self.state, SigningState::Complete),
            "revoked": matches!(self.state, SigningState::Revoked { .. }),
            "reason": match &self.state {
                SigningState::Revoked { reason } => Some(reason),
                SigningState::Collecting | SigningState::Complete => None,
            },
            "collected": self.tally.collected,
            "needed": self.tally.needed,
            "signed_by": keys(&self.signed),
            "missing": keys(&self.missing),
            "formats": OtherFormat::ALL.map(|format| (format.name(), self.formats.count(format))).into_iter().collect::<BTreeMap<_, _>>(),
            "objections": objections_json(&self.objections.file),
            "earlier_objections": earlier_objections_json(&self.objections.earlier),
            "waits_until": self.waits_until.map(|until| until.to_string()),
            "pending_veto": self.veto.as_ref().map(Begun::json),
            "pending_revocation": self.begun.as_ref().map(Begun::json),
        });
        match &self.needs {
            Needs::Groups(groups) => value["groups"] = groups.iter().map(group_json).collect(),
            Needs::Conditions(conditions) => {
                value["conditions"] = conditions.iter().map(condition_json).collect();
            }
        }
        value
    }
}

/// Of several ways, one is enough. Once one is taken, the others do not matter.
fn describe(condition: &ConditionProgress, people: &People<'_>, output: Output) -> Vec<String> {
    let mark = if condition.is_met { output.good("met ") } else { output.strong("open") };
    let mut lines = vec![format!("    {mark} {}: {}", condition_text(condition.kind), condition.tally)];
    let shown = |way: &&WayProgress| !condition.is_met || way.is_met;
    for (i, way) in condition.ways.iter().filter(shown).enumerate() {
        let or = if i > 0 { "or instead " } else { "" };
        let role = way.role.filter(|_| condition.ways.len() > 1).map(|role| format!("{}: ", way_name(role)));
        for group in &way.groups {
            let missing = people.list_missing(group);
            let missing = if group.is_met() { String::new() } else { format!(", not signed: {missing}") };
            lines.push(format!("           {or}{}{group}{missing}", role.as_deref().unwrap_or_default()));
        }
    }
    lines
}

fn condition_json(condition: &ConditionProgress) -> Value {
    let way = |way: &WayProgress| {
        let mut value = Map::new();
        value.insert("role".to_owned(), json!(way.role.map(|role| role.to_string())));
        value.insert("is_met".to_owned(), json!(way.is_met));
        value.insert("groups".to_owned(), way.groups.iter().map(group_json).collect());
        Value::Object(value)
    };
    json!({
        "condition": condition_text(condition.kind),
        "is_met": condition.is_met,
        "collected": condition.tally.collected,
        "needed": condition.tally.needed,
        "ways": condition.ways.iter().map(way).collect::<Vec<_>>(),
    })
}

fn group_json(group: &GroupProgress) -> Value {
    let member = |member: &countersign_explain::progress::Member| {
        json!({
            "key": member.signer.key.to_string(),
            "name": member.signer.name,
            "signed_at": member.signed_at.map(|at| at.to_string()),
        })
    };
    json!({
        "threshold": group.threshold,
        "collected": group.tally().collected,
        "signers": group.members.iter().map(member).collect::<Vec<_>>(),
    })
}

/// `None` where there is no such release.
pub(super) fn index_status(shown: &Shown, path: &RepoPath) -> Result<Option<Status>, CliError> {
    let Some(index) = shown.document(path) else { return Ok(None) };
    let signers = shown.parsed(&layout::signers_copy_of(path), SignersFile::parse)?;
    let signers = signers.ok_or_else(|| not_found(path))?;
    let revocation = shown.parsed(&layout::revocation_of(path), Revocation::parse)?;
    let collecting = shown.parsed(&layout::pending_signatures_of(path), SignatureSet::parse)?;
    let (state, set) = match (revocation, collecting) {
        (Some(document), _) => {
            let set = shown.parsed(&layout::revoked_signatures_of(path), SignatureSet::parse)?;
            (SigningState::Revoked { reason: document.reason }, set.unwrap_or_default())
        }
        (None, Some(set)) => (SigningState::Collecting, set),
        (None, None) => {
            let set = shown.parsed(&layout::signatures_of(path), SignatureSet::parse)?;
            (SigningState::Complete, set.unwrap_or_default())
        }
    };
    let signed = set.signers();
    let groups = signers.artifact_groups();
    if matches!(state, SigningState::Complete) && !quorum::is_met(groups, &signed) {
        return Err(CliError::unverified(
            format!("the server shows {path} as complete, but the signatures are not enough"),
            "check --server: it lies or is broken",
        ));
    }
    // A group that has enough signatures asks its members for nothing more.
    let open = groups.iter().filter(|group| quorum::count(group, &signed) < group.threshold);
    let missing = open.flat_map(|group| group.signers.iter().map(|signer| signer.key));
    let missing = missing.filter(|key| !signed.contains(key)).collect();
    let begun = begun_revocation(shown, path, &signers)?;
    let formats = shown.parsed(&layout::other_formats_of(path), OtherFormatsFile::parse)?;
    // The signers in force say who may object, also to what earlier ones signed.
    let objections = Objections {
        file: find_objections(shown, path)?,
        earlier: find_earlier_objections(shown, path)?,
        current: shown.signers()?,
    };
    let names = Names::of([&signers]);
    Ok(Some(Status {
        state,
        digest: Sha512::of(index.as_bytes()),
        missing,
        tally: Tally::of(groups, &signed),
        needs: Needs::Groups(describe_groups(groups, &set, &names)),
        signed,
        begun,
        names,
        formats: formats.unwrap_or_default(),
        objections,
        waits_until: None,
        has_masters: false,
        veto: None,
        drops: DroppedSignatures::default(),
    }))
}

fn begun_revocation(
    shown: &Shown,
    path: &RepoPath,
    signers: &SignersFile,
) -> Result<Option<Begun>, CliError> {
    let Some(document) = shown.parsed(&layout::pending_revocation_of(path), Revocation::parse)? else {
        return Ok(None);
    };
    let signatures = layout::pending_revocation_signatures_of(path);
    let signed = shown.parsed(&signatures, SignatureSet::parse)?.unwrap_or_default().signers();
    // The signers in force revoke, also what earlier ones signed.
    let current = shown.signers()?;
    let tally = Tally::of_revocation(current.as_ref().unwrap_or(signers), &signed);
    Ok(Some(Begun { reason: document.reason, signed, tally }))
}

/// `None` where nothing is pending.
pub(super) fn proposal_status(shown: &Shown, path: &RepoPath) -> Result<Option<Status>, CliError> {
    let Some(text) = shown.document(path) else { return Ok(None) };
    let proposed = SignersFile::parse(text.as_bytes()).map_err(|error| {
        CliError::unverified(
            format!("what the server shows as {path} is not a signers file"),
            "check --server",
        )
        .because(error)
    })?;
    let current = shown.signers()?;
    let set = shown.parsed(&layout::pending_signatures_of(path), SignatureSet::parse)?.unwrap_or_default();
    let signed = set.signers();
    let consent = Consent { current: current.as_ref(), proposed: &proposed };
    let names = Names::of(current.iter().chain([&proposed]));
    let waiting = Waiting::find(shown)?;
    let masters = current.as_ref().map_or(&[][..], SignersFile::master_groups);
    let veto = waiting.veto.and_then(|veto| {
        let signed = veto.signed();
        Some(Begun { reason: veto.reason()?, tally: Tally::of(masters, &signed), signed })
    });
    Ok(Some(Status {
        state: SigningState::Collecting,
        digest: Sha512::of(text.as_bytes()),
        missing: consent.missing_signers(&signed),
        tally: Tally::of_consent(&consent, &signed),
        needs: Needs::Conditions(describe_conditions(&consent, &set, &names)),
        signed,
        begun: None,
        names,
        formats: OtherFormatsFile::default(),
        objections: Objections::default(),
        waits_until: waiting.until,
        has_masters: !masters.is_empty(),
        veto,
        drops: waiting.drops,
    }))
}

pub(super) fn not_pending(path: &RepoPath) -> CliError {
    CliError::other(
        format!("no signers file is pending at {path}"),
        "it may be in force already: `countersign chain PROJECT` shows the history",
    )
}

pub(super) fn not_found(path: &RepoPath) -> CliError {
    CliError::other(
        format!("the server has no {path}"),
        "check the path: `countersign pending` lists what waits for you",
    )
}
