//! Generates signers files, mostly valid ones.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::documents::signatures::FormatTexts;
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{other_format::OtherFormat, path::RepoPath, time::Timestamp};
use serde_json::{Map, Value, json};

use crate::model::cast::{
    Choices, MASTER, PEOPLE, Person, RunBase, STRANGER, base64, canonical, format_text, index_in, openssh,
    pending_signers, signature,
};
use crate::model::request::{MINUTE, SECOND};
use crate::model::rulebook::{
    Config, ModelGroup, ModelIndex, ModelIndexState, ModelProposal, ModelRole, Objecting, Project, Published,
    Rebuilding, Revoking, SignedPath, Spec, Submitted, Vetoing, Withdrawing,
};

/// What an upstream server publishes, and its meaning.
#[derive(Debug, Clone)]
pub(crate) struct PublishedSigners {
    /// The content; `None` if there is no file.
    pub(crate) content: Option<String>,
    /// The configuration; `None` if the text has a fault that this type cannot hold.
    pub(crate) config: Option<Config>,
}

impl PublishedSigners {
    pub(crate) fn of(config: &Config) -> Self {
        Self { content: Some(config.text.clone()), config: Some(config.clone()) }
    }
}

/// Faults in the text of a signers file, not in its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Missing,
    NotJson,
    UnknownField,
    FieldTwice,
    KeyTwice,
    NullRole,
}

/// A signers file, mostly with a time after `after`.
pub(crate) fn choose_signers(choices: &mut Choices<'_>, after: i64, now: i64) -> PublishedSigners {
    let chosen = choices.byte();
    // 14 days are a step of the clock.
    let delay = match chosen {
        0..=99 | 180..=255 => None,
        100..=119 => Some(1),
        120..=139 => Some(24),
        140..=159 => Some(336),
        160..=175 => Some(720),
        176..=177 => Some(0),
        178..=179 => Some(721),
    };
    let registrar = (60..=99).contains(&chosen).then_some(STRANGER);
    let builders = match chosen {
        20..=39 | 200..=255 => Some((1, vec![STRANGER])),
        40..=49 => Some((2, vec![MASTER, STRANGER])),
        50..=55 => Some((1, vec![MASTER, STRANGER])),
        56..=57 => Some((1, vec![4, STRANGER])),
        58..=59 => Some((0, vec![STRANGER])),
        0..=19 | 60..=199 => None,
    };
    let builders =
        builders.map(|(threshold, people)| ModelGroup { threshold, people: people.into_iter().collect() });
    let timestamp = match chosen {
        0..=179 => after + 1,
        180..=209 => now.max(after + 1),
        210..=219 => now + 600,
        220..=229 => now + 601,
        230..=242 => after,
        243..=255 => after - 1,
    };
    let artifact = choose_groups(choices);
    let admin = choices.one_in(3).then(|| choose_groups(choices));
    let master = choices.one_in(3).then(|| choose_masters(choices));
    let revocation = choices.one_in(3).then(|| choose_groups(choices));
    let roles = [Some(artifact), admin, master, revocation];
    let fault = match choices.byte() {
        0..=239 => Fault::None,
        240..=243 => Fault::Missing,
        244..=246 => Fault::NotJson,
        247..=248 => Fault::UnknownField,
        249..=250 => Fault::FieldTwice,
        251..=252 => Fault::KeyTwice,
        253..=255 => Fault::NullRole,
    };
    let text = write(choices, timestamp, &roles, fault);
    let text = match delay {
        Some(hours) => {
            text.trim_end_matches("}\n").to_owned() + &format!(", \"rotation_delay_hours\": {hours}}}\n")
        }
        None => text,
    };
    let text = match registrar {
        Some(person) => {
            let (end, key) = ("}\n", canonical(person));
            let entry = format!(r#"{{"kind": "key", "data": {{"pubkey": "{key}"}}}}"#);
            text.trim_end_matches(end).to_owned() + &format!(", \"registrars\": [{entry}]{end}")
        }
        None => text,
    };
    let text = match &builders {
        Some(ModelGroup { threshold, people }) => {
            let entry =
                |key: &Person| format!(r#"{{"kind": "key", "data": {{"pubkey": "{}"}}}}"#, canonical(*key));
            let entries: Vec<String> = people.iter().map(entry).collect();
            let group = format!(r#"{{"threshold": {threshold}, "signers": [{}]}}"#, entries.join(", "));
            text.trim_end_matches("}\n").to_owned()
                + &format!(", \"rebuilds\": {{\"builders\": [{group}]}}}}\n")
        }
        None => text,
    };
    let config = (fault == Fault::None).then(|| Config {
        text: text.clone(),
        timestamp,
        roles,
        delay,
        registrar,
        builders,
    });
    PublishedSigners { content: (fault != Fault::Missing).then_some(text), config }
}

fn choose_groups(choices: &mut Choices<'_>) -> Vec<ModelGroup> {
    let mut groups = vec![choose_group(choices)];
    if choices.one_in(4) {
        groups.push(choose_group(choices));
    }
    groups
}

/// Chooses a group from the first five people, each of which has a bit.
fn choose_group(choices: &mut Choices<'_>) -> ModelGroup {
    let mask = choices.byte();
    let mut people: BTreeSet<Person> = (0..5).filter(|person| mask & (1 << person) != 0).collect();
    if people.is_empty() {
        people.insert(0);
    }
    let threshold = match choices.byte() {
        byte @ 0..=247 => 1 + usize::from(byte) % people.len(),
        248..=251 => 0,
        252..=255 => people.len() + 1,
    };
    ModelGroup { threshold, people }
}

fn choose_masters(choices: &mut Choices<'_>) -> Vec<ModelGroup> {
    let people = choices.of(&[vec![MASTER], vec![MASTER], vec![MASTER], vec![4, MASTER]]);
    vec![ModelGroup { threshold: 1 + choices.below(people.len()), people: people.into_iter().collect() }]
}

fn write(
    choices: &mut Choices<'_>,
    timestamp: i64,
    roles: &[Option<Vec<ModelGroup>>; 4],
    fault: Fault,
) -> String {
    let spell = choices.of(&[canonical, canonical, base64, openssh]);
    let signer =
        |person: &Person| format!(r#"{{"kind": "key", "data": {{"pubkey": "{}"}}}}"#, spell(*person));
    let group = |group: &ModelGroup| {
        let mut signers: Vec<String> = group.people.iter().map(signer).collect();
        if fault == Fault::KeyTwice {
            signers.push(signers[0].clone());
        }
        format!(r#"{{"threshold": {}, "signers": [{}]}}"#, group.threshold, signers.join(", "))
    };
    let time = Timestamp::from_unix_seconds(timestamp).expect("a time");
    let mut text = format!("{{\"version\": 1, \"timestamp\": \"{time}\"");
    for (role, groups) in ModelRole::ALL.into_iter().zip(roles) {
        match groups {
            Some(groups) => {
                let groups: Vec<String> = groups.iter().map(group).collect();
                text += &format!(",\n\"{}\": [{}]", role.field(), groups.join(", "));
            }
            None if fault == Fault::NullRole => text += &format!(", \"{}\": null", role.field()),
            None => {}
        }
    }
    match fault {
        Fault::None | Fault::Missing | Fault::KeyTwice => {}
        // Makes a fault even if all roles are present.
        Fault::NullRole => text += ", \"note\": null",
        Fault::NotJson => text += ",",
        Fault::UnknownField => text += ", \"note\": 1",
        Fault::FieldTwice => text += ", \"version\": 1",
    }
    text + "}\n"
}

// Generates checksums files, mostly valid ones.

/// Chooses two checksums files, with their combined meaning.
pub(crate) fn choose_checksums(
    choices: &mut Choices<'_>,
    base: &RunBase,
    dir: &str,
) -> ([Option<String>; 2], Option<Vec<Published>>) {
    let variant = choices.below(3);
    let names = choices.of(&[vec!["app.tar.gz"], vec!["b c.zip", "app.tar.gz"], vec!["sub/é.bin"]]);
    let (mut sha256, mut sha512, mut published) = (String::new(), "# none here\n".to_owned(), Vec::new());
    let both = choices.one_in(2);
    for name in names {
        let content = format!("{name} {variant}");
        let hex = Sha256::of(content.as_bytes()).to_string();
        let long = Sha512::of(content.as_bytes()).to_string();
        sha256 += &format!("{hex}  ./{name}\r\n");
        sha512 += &format!("SHA512 ({name}) = {}\n", long.to_uppercase());
        let encoded = name.replace(' ', "%20").replace('é', "%C3%A9");
        let mut digests = BTreeMap::from([("sha256", hex)]);
        if both {
            digests.insert("sha512", long);
        }
        let source = base.url_of(&format!("{dir}/{encoded}"));
        published.push(Published { name: name.to_owned(), source, digests });
    }
    published.sort_by(|a, b| a.name.cmp(&b.name));
    let second = if both { sha512 } else { sha256.replace("  ./", " *") };
    match choices.byte() {
        0..=239 => ([Some(sha256), Some(second)], Some(published)),
        240..=245 => ([Some(sha256), None], None),
        246..=250 => ([Some(sha256 + "what?\n"), Some(second)], None),
        251..=255 => ([Some(format!("{}  ../up\n{sha256}", "0".repeat(64))), Some(second)], None),
    }
}

// Generates revocations, mostly valid ones.

/// A revocation document, and its meaning.
#[derive(Debug, Clone)]
struct Document {
    text: String,
    is_valid: bool,
    subject: Option<String>,
    initiator: Option<Person>,
}

/// An index to revoke, mostly a complete one.
pub(crate) fn choose_index(choices: &mut Choices<'_>, spec: &Spec) -> Option<String> {
    let is_complete = |(_, index): &(&String, &ModelIndex)| index.state == ModelIndexState::Complete;
    let mut dirs: Vec<&String> = spec.indexes.iter().filter(is_complete).map(|(dir, _)| dir).collect();
    if dirs.is_empty() || choices.one_in(8) {
        dirs = spec.indexes.keys().collect();
    }
    if dirs.is_empty() { None } else { Some(choices.of(&dirs).clone()) }
}

pub(crate) fn make_revocation(
    choices: &mut Choices<'_>,
    spec: &Spec,
    path: &str,
    revoker: Person,
    caller: Person,
) -> Revoking {
    let index = path.strip_suffix("/svc.index.json").and_then(|dir| spec.indexes.get(dir));
    let pending = index.and_then(|index| index.revocation.as_ref()).map(|pending| pending.document.clone());
    let document = match pending.filter(|_| !choices.one_in(5)) {
        Some(text) => read(&text),
        None => choose_document(choices, index, revoker),
    };
    let signs =
        choices.of(&[revoker, revoker, revoker, revoker, revoker, revoker, revoker, (revoker + 1) % 5]);
    Revoking {
        path: path.to_owned(),
        revoker,
        caller,
        signature: signature(signs, document.text.as_bytes()),
        document: document.text,
        is_document_valid: document.is_valid,
        subject: document.subject,
        initiator: document.initiator,
        request: String::new(),
    }
}

/// Parses a pending document, which is valid.
fn read(text: &str) -> Document {
    let value: Value = serde_json::from_str(text).expect("a pending document is JSON");
    let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let initiator = field("initiator");
    Document {
        text: text.to_owned(),
        is_valid: true,
        subject: field("subject_digest"),
        initiator: initiator.and_then(|key| (0..PEOPLE).find(|person| canonical(*person) == key)),
    }
}

fn choose_document(choices: &mut Choices<'_>, index: Option<&ModelIndex>, revoker: Person) -> Document {
    let right = Sha512::of(index.map_or("", |index| &index.text).as_bytes()).to_prefixed();
    let subject = match choices.byte() {
        0..=159 => Some(right),
        160..=239 => None,
        240..=255 => Some(Sha512::of(b"another file").to_prefixed()),
    };
    let initiator = choices.of(&[None, None, None, Some(revoker), Some((revoker + 1) % 5)]);
    let mut document = Map::new();
    document.insert("reason".to_owned(), json!(choices.of(&["a bad build", "withdrawn \"by us\""])));
    document
        .insert("timestamp".to_owned(), choices.of(&[json!("2026-01-31T10:00:00Z"), json!(1_769_853_600)]));
    if let Some(subject) = &subject {
        document.insert("subject_digest".to_owned(), json!(subject));
    }
    if let Some(initiator) = initiator {
        document.insert("initiator".to_owned(), json!(canonical(initiator)));
    }
    let fault = choices.byte();
    match fault {
        0..=239 => {}
        240..=247 => drop(document.insert("reason".to_owned(), json!(""))),
        248..=251 => drop(document.insert("note".to_owned(), json!(1))),
        252..=255 => drop(document.remove("timestamp")),
    }
    Document { text: Value::Object(document).to_string(), is_valid: fault < 240, subject, initiator }
}

// Generates withdrawals and objections, mostly valid ones.

/// A directory with an index, mostly one that collects signatures.
pub(crate) fn choose_index_to_withdraw(choices: &mut Choices<'_>, spec: &Spec) -> Option<String> {
    let is_open = |(_, index): &(&String, &ModelIndex)| index.state == ModelIndexState::Collecting;
    let mut dirs: Vec<&String> = spec.indexes.iter().filter(is_open).map(|(dir, _)| dir).collect();
    if dirs.is_empty() || choices.one_in(4) {
        dirs = spec.indexes.keys().collect();
    }
    if dirs.is_empty() { None } else { Some(choices.of(&dirs).clone()) }
}

fn index_at<'a>(spec: &'a Spec, path: &str) -> Option<&'a ModelIndex> {
    path.strip_suffix("/svc.index.json").and_then(|dir| spec.indexes.get(dir))
}

fn choose_subject(choices: &mut Choices<'_>, index: Option<&ModelIndex>) -> String {
    let right = Sha512::of(index.map_or("", |index| &index.text).as_bytes()).to_prefixed();
    if choices.one_in(8) { Sha512::of(b"another file").to_prefixed() } else { right }
}

/// Makes a withdrawal with its body.
pub(crate) fn withdraw(choices: &mut Choices<'_>, spec: &Spec, path: &str) -> (Withdrawing, Value) {
    let index = index_at(spec, path);
    let registrant = index.map(|index| index.registrant);
    let caller = registrant.filter(|_| !choices.one_in(3)).unwrap_or_else(|| choices.below(PEOPLE));
    let subject = choose_subject(choices, index);
    let subject = (!choices.one_in(3)).then_some(subject);
    let fault = choices.byte();
    let reason = if fault >= 250 { "" } else { "the wrong \"tag\"" };
    let mut body = json!({ "file_path": path, "reason": reason, "more": 1 });
    if let Some(subject) = &subject {
        body["subject_digest"] = json!(subject);
    }
    if fault == 249 {
        body["subject_digest"] = json!("sha512:");
    }
    let request = String::new();
    (Withdrawing { path: path.to_owned(), caller, subject, is_valid: fault < 249, request }, body)
}

pub(crate) fn object(choices: &mut Choices<'_>, spec: &Spec, path: &str, objector: Person) -> Objecting {
    let index = index_at(spec, path);
    let earlier = index.and_then(|index| index.objections.get(&objector));
    let takes_back = match earlier {
        Some(earlier) if earlier.text.is_some() => choices.one_in(2),
        Some(_) | None => choices.one_in(6),
    };
    let text = (!takes_back).then(|| choices.of(&["not my build", "<b>\"no\"\u{202e}", "é"]).to_owned());
    let offsets = [0, SECOND, -SECOND, -MINUTE, 10 * MINUTE, 10 * MINUTE + SECOND];
    let timestamp = spec.now + choices.of(&offsets);
    let subject = choose_subject(choices, index);
    let mut document = Map::new();
    document.insert("objection".to_owned(), json!(text));
    document.insert("subject_digest".to_owned(), json!(subject));
    let time = Timestamp::from_unix_nanos(timestamp).expect("a time");
    document.insert("timestamp".to_owned(), json!(time.to_string()));
    let fault = choices.byte();
    match fault {
        0..=239 => {}
        240..=247 => drop(document.insert("objection".to_owned(), json!(""))),
        248..=251 => drop(document.insert("note".to_owned(), json!(1))),
        252..=255 => drop(document.remove("subject_digest")),
    }
    let document = Value::Object(document).to_string();
    let signs = if choices.one_in(12) { (objector + 1) % PEOPLE } else { objector };
    Objecting {
        path: path.to_owned(),
        objector,
        signature: signature(signs, document.as_bytes()),
        document,
        is_document_valid: fault < 240,
        text,
        subject,
        timestamp,
    }
}

/// What a builder states, mostly about the files that are there.
pub(crate) fn rebuild(choices: &mut Choices<'_>, spec: &Spec, path: &str, builder: Person) -> Rebuilding {
    let index = index_at(spec, path);
    let published = index.map(|index| index.published.clone()).unwrap_or_default();
    let mut files: BTreeMap<String, BTreeMap<&'static str, String>> =
        published.into_iter().map(|file| (file.name, file.digests)).collect();
    let other = Sha256::of(b"another build").to_string();
    match choices.byte() {
        0..=159 => {}
        160..=199 => {
            files.values_mut().take(1).for_each(|digests| drop(digests.insert("sha256", other.clone())))
        }
        200..=219 => files = files.into_iter().take(1).collect(),
        220..=239 => files.values_mut().for_each(|digests| drop(digests.remove("sha256"))),
        240..=255 => drop(files.insert("zz".to_owned(), BTreeMap::from([("sha256", other)]))),
    }
    let is_formed = !files.is_empty() && files.values().all(|digests| !digests.is_empty());
    let offsets = [0, SECOND, -SECOND, -MINUTE, 10 * MINUTE, 10 * MINUTE + SECOND];
    let timestamp = spec.now + choices.of(&offsets);
    let subject = choose_subject(choices, index);
    let of = if choices.one_in(16) { format!("{path}x") } else { path.to_owned() };
    let listed = files.iter().map(|(name, digests)| json!({ "file_name": name, "digests": digests }));
    let commit = choices.of(&["0123456789abcdef0123456789abcdef01234567", &"ab".repeat(32)]).to_owned();
    let mut document = Map::new();
    document.insert("rebuild_of".to_owned(), json!(of));
    document.insert("subject_digest".to_owned(), json!(subject));
    document.insert("source_commit".to_owned(), json!(&commit));
    document.insert("files".to_owned(), json!(listed.collect::<Vec<_>>()));
    let time = Timestamp::from_unix_nanos(timestamp).expect("a time");
    document.insert("timestamp".to_owned(), json!(time.to_string()));
    let fault = choices.byte();
    match fault {
        0..=239 => {}
        240..=247 => drop(document.insert("source_commit".to_owned(), json!("0123abc"))),
        248..=251 => drop(document.insert("note".to_owned(), json!(1))),
        252..=255 => drop(document.remove("subject_digest")),
    }
    let document = Value::Object(document).to_string();
    let signs = if choices.one_in(12) { (builder + 1) % PEOPLE } else { builder };
    // A release can be anywhere, and a path that is none is no path of a document.
    let is_document_valid = fault < 240 && is_formed && RepoPath::parse(&of).is_ok();
    Rebuilding {
        path: path.to_owned(),
        builder,
        signature: signature(signs, document.as_bytes()),
        document,
        is_document_valid,
        of,
        subject,
        commit,
        files,
        timestamp,
    }
}

// Generates submissions of signatures, mostly valid ones.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Right,
    ByAnother,
    /// The signature is on other content.
    OnOther,
    /// The signatures of signers file and metadata are swapped.
    Swapped,
    WithoutPrimary,
    WithoutMetadata,
    WithAnother,
    NotBase64,
    InTwoSpellings,
}

pub(crate) fn choose_how(choices: &mut Choices<'_>) -> How {
    match choices.byte() {
        0..=215 => How::Right,
        216..=220 => How::ByAnother,
        221..=226 => How::OnOther,
        227..=231 => How::Swapped,
        232..=236 => How::WithoutPrimary,
        237..=241 => How::WithoutMetadata,
        242..=246 => How::WithAnother,
        247..=250 => How::NotBase64,
        251..=255 => How::InTwoSpellings,
    }
}

/// Signatures for other programs: mostly none, sometimes of another person or on something else.
pub(crate) fn choose_formats(
    choices: &mut Choices<'_>,
    spec: &Spec,
    path: &str,
    signer: Person,
) -> FormatTexts {
    const NONE: &[OtherFormat] = &[];
    let formats =
        choices.of(&[NONE, NONE, NONE, &[OtherFormat::Ssh], &[OtherFormat::Openpgp], &OtherFormat::ALL]);
    let index = path.strip_suffix("/svc.index.json").and_then(|dir| spec.indexes.get(dir));
    if formats.is_empty() || RepoPath::parse(path).map_or(true, |parsed| parsed.as_str() != path) {
        return FormatTexts::new();
    }
    let mut sums = index.and_then(ModelIndex::sums).unwrap_or_default();
    let mirrored_on = index.map_or(0, |index| index.mirrored_on);
    let (is_of_another, is_on_another) = (choices.one_in(8), choices.one_in(8));
    if is_on_another {
        sums.push('\n');
    }
    let signing = if is_of_another { (signer + 1) % PEOPLE } else { signer };
    let text = |format| format_text(signing, format, path, mirrored_on, &sums);
    formats.iter().map(|format| (*format, text(*format))).collect()
}

pub(crate) fn open_files(spec: &Spec) -> Vec<String> {
    let pending = |(id, project): (&String, &Project)| project.pending.as_ref().map(|_| pending_signers(id));
    let collecting = |(dir, index): (&String, &ModelIndex)| {
        (index.state == ModelIndexState::Collecting).then(|| index_in(dir))
    };
    let proposals = spec.projects.iter().filter_map(pending);
    proposals.chain(spec.indexes.iter().filter_map(collecting)).collect()
}

/// What a signer signs at a path: the file and, for a signers file, its metadata.
fn contents(spec: &Spec, path: &str) -> Vec<(String, String)> {
    let metadata = format!("{path}.metadata.json");
    match SignedPath::at(path) {
        SignedPath::Index(dir) => {
            let text = spec.indexes.get(&dir).map(|index| index.text.clone());
            vec![(path.to_owned(), text.unwrap_or_default())]
        }
        SignedPath::Proposal(project) => {
            let pending = spec.projects.get(&project).and_then(|project| project.pending.as_ref());
            let texts = |pending: &ModelProposal| (pending.config.text.clone(), pending.metadata.clone());
            let (signers, text) = pending.map(texts).unwrap_or_default();
            vec![(path.to_owned(), signers), (metadata, text)]
        }
        SignedPath::Nothing => {
            vec![(path.to_owned(), spec.files().get(path).cloned().unwrap_or_default())]
        }
    }
}

/// A submission, and its signatures by the paths in the request.
pub(crate) fn make_signature(
    spec: &Spec,
    path: &str,
    signer: Person,
    how: How,
) -> (Submitted, Vec<(String, String)>) {
    let mut contents = contents(spec, path);
    let signing = if how == How::ByAnother { (signer + 1) % PEOPLE } else { signer };
    if how == How::Swapped && contents.len() == 2 {
        let (first, second) = contents.split_at_mut(1);
        std::mem::swap(&mut first[0].1, &mut second[0].1);
    }
    match how {
        How::OnOther => contents[0].1.push(' '),
        How::WithoutPrimary => drop(contents.remove(0)),
        How::WithoutMetadata => contents.truncate(1),
        How::WithAnother => contents.push((format!("{path}.signers.json"), String::new())),
        How::Right | How::ByAnother | How::Swapped | How::NotBase64 | How::InTwoSpellings => {}
    }
    let sign = |(path, content): (String, String)| (path, signature(signing, content.as_bytes()));
    let mut sent: Vec<(String, String)> = contents.into_iter().map(sign).collect();
    let signatures: BTreeMap<String, String> = sent.iter().cloned().collect();
    match how {
        How::NotBase64 => sent.iter_mut().for_each(|(_, signature)| signature.replace_range(..1, "-")),
        How::InTwoSpellings => sent.push((format!("{}/", sent[0].0), sent[0].1.clone())),
        _ => {}
    }
    (Submitted { path: path.to_owned(), signer, signatures, formats: FormatTexts::new() }, sent)
}

// Generates vetoes, mostly valid ones.

pub(crate) fn make_veto(
    choices: &mut Choices<'_>,
    spec: &Spec,
    id: &str,
    path: &str,
    master: Person,
) -> Vetoing {
    let mut names = spec.veto_names(id);
    let begun = spec.projects.get(id).and_then(|project| project.pending.as_ref()?.veto.as_ref());
    let fault = choices.byte();
    match fault {
        232..=235 => names[0] += "x",
        236..=239 => names[1] = names[2].clone(),
        240..=243 => names[2] = names[1].clone(),
        0..=231 | 244..=255 => {}
    }
    let mut document = Map::new();
    let reason = choices.of(&["not by us", "not \"by\" us", "not by us", "not by us"]);
    document.insert("veto".to_owned(), json!(if fault == 244 { "" } else { reason }));
    document.insert("project_id".to_owned(), json!(names[0]));
    document.insert("signers_file_digest".to_owned(), json!(names[1]));
    document.insert("previous".to_owned(), json!(names[2]));
    document.insert("timestamp".to_owned(), json!("2026-01-31T10:00:00Z"));
    match fault {
        245 => drop(document.remove("previous")),
        246 => drop(document.insert("reason".to_owned(), json!("x"))),
        0..=244 | 247..=255 => {}
    }
    let is_document_valid = !matches!(fault, 244..=246);
    let text = json!(document).to_string();
    // Who joins signs the same bytes.
    let joins = fault < 200 && begun.is_some();
    let document = begun.filter(|_| joins).map_or(text, |begun| begun.document.clone());
    let signs = if fault == 247 { (master + 1) % PEOPLE } else { master };
    Vetoing {
        path: path.to_owned(),
        master,
        signature: signature(signs, document.as_bytes()),
        document,
        is_document_valid,
        names,
    }
}
