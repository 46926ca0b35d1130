//! The signers file (D8): who may sign, in which role and groups, and how many are needed. Its metadata (D10) say where it
//! came from.

use std::{borrow::Cow, collections::BTreeMap, collections::BTreeSet, fmt, time::Duration};

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::documents::{
    fields::parse_path, fields::parse_threshold, index::AssetName, transparency::Transparency,
};
use crate::values::bounds::{
    FORMAT_NAME_BYTES, METADATA_BYTES, REBUILD_PATTERN_BYTES, REBUILD_PATTERNS, REBUILDS,
    ROTATION_DELAY_HOURS, SERVER_URL_BYTES, SIGNER_NAME_CHARS, SIGNERS_FILE_BYTES, SIGNERS_FILE_ENTRIES,
    SIGNERS_FILE_FORMATS, SIGNERS_FILE_REGISTRARS, SIGNERS_FILE_SERVERS,
};
use crate::values::json::{Field, ParseError};
use crate::values::shown::{is_unseen, quoted, shown_text};
use crate::values::{
    digest::Sha512, json, key::KeyFormat, key::PublicKey, other_format::OtherFormat, path::RepoPath,
    time::Timestamp,
};
use crate::{json_fields, json_words};

const VERSION: u64 = 1;

/// A signers file that has passed every rule of D8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignersFile {
    timestamp: Timestamp,
    artifact_signers: Vec<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_keys: Option<Vec<Group>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    master_keys: Option<Vec<Group>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revocation_keys: Option<Vec<Group>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    registrars: Vec<Signer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rebuilds: Option<RebuildPolicy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    servers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transparency: Option<Transparency>,
    #[serde(skip_serializing_if = "AskedFormats::is_empty")]
    formats: AskedFormats,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation_delay_hours: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Artifact,
    Admin,
    Master,
    Revocation,
    /// Builders make releases anew from their source. They sign nothing but what they got (D259).
    Builder,
}

json_words!(Role {
    Artifact = "artifact", Admin = "admin", Master = "master", Revocation = "revocation", Builder = "builder",
} "must be artifact, admin, master, revocation or builder");

impl Role {
    /// The field that lists the role.
    pub fn field(self) -> &'static str {
        match self {
            Self::Artifact => "artifact_signers",
            Self::Admin => "admin_keys",
            Self::Master => "master_keys",
            Self::Revocation => "revocation_keys",
            Self::Builder => "rebuilds.builders",
        }
    }
}

/// The role in words: `artifact signers`.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builder => f.write_str("builders"),
            Self::Artifact | Self::Admin | Self::Master | Self::Revocation => {
                f.write_str(&self.field().replace('_', " "))
            }
        }
    }
}

const REGISTRARS: &str = "registrars";

json_fields!(object SignersFile version VERSION {
    timestamp, artifact_signers: with(parse_role), admin_keys: maybe_with(parse_role),
    master_keys: maybe_with(parse_role), revocation_keys: maybe_with(parse_role),
    registrars: or_default_with(parse_registrars), rebuilds: maybe, servers: or_default_with(parse_servers), transparency: maybe,
    formats: or_default_with(parse_formats), rotation_delay_hours: maybe_with(parse_delay),
} then check);

impl SignersFile {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        json::check_len(bytes, SIGNERS_FILE_BYTES, "a signers file has")?;
        json::read(bytes)
    }

    fn check(&self) -> Result<(), ParseError> {
        self.check_entry_count()?;
        self.check_names()?;
        let masters: BTreeSet<PublicKey> = keys_of(self.master_groups()).collect();
        self.check_apart(Role::Master.field(), "master key", |key| masters.contains(key))?;
        self.check_apart(REGISTRARS, "registrar", |key| self.has_registrar(key))?;
        let builders: BTreeSet<PublicKey> = keys_of(self.builder_groups()).collect();
        self.check_apart(Role::Builder.field(), "builder", |key| builders.contains(key))?;
        if builders.len() > REBUILDS {
            let reason = format!("{} builders; at most {REBUILDS} are allowed", builders.len());
            return Err(ParseError::new(Role::Builder.field(), reason));
        }
        self.check_log_keys()
    }

    pub fn write(&self) -> Vec<u8> {
        json::write_versioned(VERSION, self)
    }

    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// Keys that can register new releases and do nothing else (D105). They are no signers: `keys` and `lists` leave them
    /// out, so that no other rule knows them.
    pub fn registrars(&self) -> &[Signer] {
        &self.registrars
    }

    /// Whether the key is that of a registrar.
    pub fn has_registrar(&self, key: &PublicKey) -> bool {
        self.registrars.iter().any(|registrar| registrar.key == *key)
    }

    /// Whether the key can register releases: signers and registrars can.
    pub fn may_register(&self, key: &PublicKey) -> bool {
        self.has_signer(key) || self.has_registrar(key)
    }

    /// Whether the file names the key at all.
    pub fn names(&self, key: &PublicKey) -> bool {
        self.lists(key) || self.has_registrar(key)
    }

    /// Who builds releases anew, which files, and whether a download needs it (D259).
    pub fn rebuilds(&self) -> Option<&RebuildPolicy> {
        self.rebuilds.as_ref()
    }

    /// The groups of builders. Without them no one rebuilds.
    pub fn builder_groups(&self) -> &[Group] {
        self.rebuilds.as_ref().map(|rebuilds| &rebuilds.builders[..]).unwrap_or_default()
    }

    /// The signing servers to ask about this project, the best first (D61). Empty if the file names none.
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// The log that proves the newest state of the project, and its witnesses (D91).
    pub fn transparency(&self) -> Option<&Transparency> {
        self.transparency.as_ref()
    }

    /// The formats besides our own in which artifact signers are asked to sign as well (D100). Nothing depends on them.
    pub fn formats(&self) -> &[OtherFormat] {
        &self.formats.known
    }

    /// The names of formats that only a newer version knows. This one ignores them (D252).
    pub fn unknown_formats(&self) -> &[String] {
        &self.formats.unknown
    }

    /// How long a rotation of these signers waits that the masters have not agreed to (D130).
    pub fn rotation_delay(&self) -> Option<Duration> {
        self.rotation_delay_hours.map(|hours| Duration::from_secs(hours * 60 * 60))
    }

    pub fn rotation_delay_hours(&self) -> Option<u64> {
        self.rotation_delay_hours
    }

    pub fn artifact_groups(&self) -> &[Group] {
        &self.artifact_signers
    }

    /// The groups of `admin_keys`, or the artifact signers if the file has none.
    pub fn admin_groups(&self) -> &[Group] {
        self.admin_keys.as_deref().unwrap_or(&self.artifact_signers)
    }

    /// The groups of `master_keys`. Without them the project has no masters.
    pub fn master_groups(&self) -> &[Group] {
        self.master_keys.as_deref().unwrap_or_default()
    }

    /// The groups of `revocation_keys`, or one group of all admins, any one of whom is enough (D20).
    pub fn revocation_groups(&self) -> Cow<'_, [Group]> {
        match &self.revocation_keys {
            Some(groups) => Cow::Borrowed(groups),
            None => Cow::Owned(vec![Group::of_keys(1, &keys_of(self.admin_groups()).collect())]),
        }
    }

    /// A role as written; `None` where its field is absent.
    pub fn explicit_groups(&self, role: Role) -> Option<&[Group]> {
        match role {
            Role::Artifact => Some(&self.artifact_signers),
            Role::Admin => self.admin_keys.as_deref(),
            Role::Master => self.master_keys.as_deref(),
            Role::Revocation => self.revocation_keys.as_deref(),
            Role::Builder => self.rebuilds.as_ref().map(|rebuilds| &rebuilds.builders[..]),
        }
    }

    /// Every key of every role.
    pub fn keys(&self) -> BTreeSet<PublicKey> {
        self.roles().flat_map(|(_, groups)| keys_of(groups)).collect()
    }

    /// Whether the key is in a role.
    pub fn lists(&self, key: &PublicKey) -> bool {
        self.roles().any(|(_, groups)| has_member(groups, key))
    }

    /// Every key of a role in which people sign: all but the builders.
    pub fn signers(&self) -> BTreeSet<PublicKey> {
        let signing = self.roles().filter(|(role, _)| *role != Role::Builder);
        signing.flat_map(|(_, groups)| keys_of(groups)).collect()
    }

    /// Whether the key is in a role in which people sign.
    pub fn has_signer(&self, key: &PublicKey) -> bool {
        let mut signing = self.roles().filter(|(role, _)| *role != Role::Builder);
        signing.any(|(_, groups)| has_member(groups, key))
    }

    /// The key with its name, wherever in the file that stands: not every entry of a key has to repeat it. An empty name
    /// is none.
    pub fn named_signer(&self, key: PublicKey) -> Signer {
        let entries: Vec<&Signer> = self.entries().filter(|signer| signer.key == key).collect();
        let mut signer = entries.first().map_or_else(|| Signer::nameless(key), |signer| (*signer).clone());
        signer.name = entries.iter().find_map(|signer| signer.name.clone().filter(|name| !name.is_empty()));
        signer
    }

    /// Every entry of every list, registrars too.
    fn entries(&self) -> impl Iterator<Item = &Signer> {
        let groups = self.roles().flat_map(|(_, groups)| groups);
        groups.flat_map(|group| &group.signers).chain(&self.registrars)
    }

    /// The roles whose fields are there.
    fn roles(&self) -> impl Iterator<Item = (Role, &[Group])> {
        Role::ALL.into_iter().filter_map(|role| Some((role, self.explicit_groups(role)?)))
    }

    fn check_entry_count(&self) -> Result<(), ParseError> {
        let entries: usize =
            self.roles().flat_map(|(_, groups)| groups).map(|group| group.signers.len()).sum();
        if entries > SIGNERS_FILE_ENTRIES {
            let reason =
                format!("{entries} in all roles together; at most {SIGNERS_FILE_ENTRIES} are allowed");
            return Err(ParseError::new("signers", reason));
        }
        Ok(())
    }

    /// Checks that a key has one format and one name, and a name one key, over the whole file.
    fn check_names(&self) -> Result<(), ParseError> {
        let (mut by_key, mut by_name, mut formats) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let in_roles = self.roles().flat_map(|(role, groups)| {
            groups.iter().flat_map(|group| &group.signers).map(move |signer| (role.field(), signer))
        });
        let registrars = self.registrars.iter().map(|registrar| (REGISTRARS, registrar));
        for (list, signer) in in_roles.chain(registrars) {
            let key = signer.key;
            if *formats.entry(key).or_insert(signer.format) != signer.format {
                let reason = format!("the key {key} is listed as a FIDO key in one place and not in another");
                return Err(ParseError::new(list, reason));
            }
            let Some(name) = &signer.name else { continue };
            let field = format!("{list}.name");
            if *by_key.entry(key).or_insert(name) != name {
                return Err(ParseError::new(field, format!("the key {key} has two names")));
            }
            if *by_name.entry(name).or_insert(key) != key {
                return Err(ParseError::new(field, format!("{name:?} names two keys")));
            }
        }
        Ok(())
    }

    /// Checks that none of some keys is in another role. The keys of registrars and builders lie on machines that build:
    /// they must not be able to do anything else (D105, D259).
    fn check_apart(
        &self,
        list: &str,
        title: &str,
        is_in: impl Fn(&PublicKey) -> bool,
    ) -> Result<(), ParseError> {
        for (role, groups) in self.roles().filter(|(role, _)| role.field() != list) {
            if let Some(key) = keys_of(groups).find(&is_in) {
                let reason = format!("the key {key} is also among the {role}; a {title} has no other role");
                return Err(ParseError::new(list, reason));
            }
        }
        Ok(())
    }

    /// What one key signs is never taken for what another kind of key signs (D34, D84).
    fn check_log_keys(&self) -> Result<(), ParseError> {
        let keys = self.keys();
        match self
            .transparency
            .iter()
            .flat_map(Transparency::verifier_keys)
            .find(|named| named.ed25519().is_some_and(|key| keys.contains(&key) || self.has_registrar(&key)))
        {
            None => Ok(()),
            Some(key) => {
                let reason = format!(
                    "the key of the {} {} is also a signer's, builder's or registrar's",
                    key.kind(),
                    quoted(key.name())
                );
                Err(ParseError::new("transparency", reason))
            }
        }
    }
}

fn parse_registrars(field: &Field<'_>) -> Result<Vec<Signer>, ParseError> {
    let mut registrars: Vec<Signer> = Vec::new();
    for entry in field.array()? {
        let registrar = parse_signer(&entry)?;
        if registrars.iter().any(|other| other.key == registrar.key) {
            return Err(entry.error(format!("the key {} is a registrar already", registrar.key)));
        }
        registrars.push(registrar);
        // Each is compared with all before it.
        check_count(field, registrars.len(), SIGNERS_FILE_REGISTRARS, "registrar")?;
    }
    check_count(field, registrars.len(), SIGNERS_FILE_REGISTRARS, "registrar").map(|()| registrars)
}

// Who builds releases anew (D259).

/// What a project wants of those who build its releases anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RebuildPolicy {
    pub builders: Vec<Group>,
    /// The files that builders make. Empty: all files of a release.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePattern>,
    /// Whether a release counts only once it is reproduced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

json_fields!(object RebuildPolicy {
    builders: with(parse_role), files: or_default_with(parse_patterns), required: or_default,
});

impl RebuildPolicy {
    /// Whether builders make the file with this name.
    pub fn covers(&self, file_name: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|pattern| pattern.matches(file_name))
    }

    /// Whether builders make every file that they make under the other policy. What a star of the other stands for can only be
    /// matched by a star here, so its patterns are compared as if they were names.
    pub fn covers_all_of(&self, other: &Self) -> bool {
        match other.files.as_slice() {
            [] => self.covers("*"),
            patterns => patterns.iter().all(|pattern| self.covers(pattern.as_str())),
        }
    }
}

/// A pattern for names of files, in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePattern(String);

impl FilePattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > REBUILD_PATTERN_BYTES {
            return Err(format!("must have between 1 and {REBUILD_PATTERN_BYTES} bytes"));
        }
        if text.chars().any(is_unseen) {
            return Err("must have no control, blank or invisible characters".to_owned());
        }
        let pattern = Self(text.to_owned());
        match AssetName::parse(&pattern.example()) {
            Ok(_) => Ok(pattern),
            Err(error) => Err(format!("can match no file: {error}")),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a file that the pattern matches.
    pub fn example(&self) -> String {
        self.0.replace('*', "a")
    }

    /// Text between two stars is looked for as far left as it can be, which never keeps what follows from fitting.
    fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        let after = parts.try_fold(rest, |rest, part| rest.find(part).map(|at| &rest[at + part.len()..]));
        after.is_some_and(|rest| rest.ends_with(last))
    }
}

fn parse_patterns(field: &Field<'_>) -> Result<Vec<FilePattern>, ParseError> {
    let patterns: Vec<FilePattern> = field.list(|entry| entry.parsed(FilePattern::parse))?;
    check_count(field, patterns.len(), REBUILD_PATTERNS, "pattern").map(|()| patterns)
}

fn parse_servers(field: &Field<'_>) -> Result<Vec<String>, ParseError> {
    let mut servers: Vec<String> = Vec::new();
    for entry in field.array()? {
        let server = entry.string()?;
        if !is_server(server) {
            return Err(entry.error(format!(
                "must be an http(s) URL of at most {SERVER_URL_BYTES} visible ASCII characters"
            )));
        }
        servers.push(server.to_owned());
    }
    check_count(field, servers.len(), SIGNERS_FILE_SERVERS, "server").map(|()| servers)
}

/// The formats besides our own that a signers file asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct AskedFormats {
    known: Vec<OtherFormat>,
    unknown: Vec<String>,
}

impl AskedFormats {
    fn is_empty(&self) -> bool {
        self.known.is_empty() && self.unknown.is_empty()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|format| format.name()).chain(self.unknown.iter().map(String::as_str))
    }
}

impl Serialize for AskedFormats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

fn parse_formats(field: &Field<'_>) -> Result<AskedFormats, ParseError> {
    let mut formats = AskedFormats::default();
    for entry in field.array()? {
        let name = entry.string()?;
        if formats.names().any(|named| named == name) {
            return Err(entry.error(format!("{} is in this list already", shown_text(name))));
        }
        match OtherFormat::parse(name) {
            Ok(format) => formats.known.push(format),
            Err(_) if is_format_name(name) => formats.unknown.push(name.to_owned()),
            Err(error) => return Err(entry.error(error)),
        }
    }
    check_count(field, formats.names().count(), SIGNERS_FILE_FORMATS, "format").map(|()| formats)
}

/// Whether a later version can have a format with this name.
fn is_format_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=FORMAT_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Refuses a list that is empty or too long.
fn check_count(field: &Field<'_>, count: usize, most: usize, noun: &str) -> Result<(), ParseError> {
    match count {
        0 => Err(field.error(format!("must name at least one {noun}; leave it out for none"))),
        _ if count > most => Err(field.error(format!("must name at most {most} {noun}s"))),
        _ => Ok(()),
    }
}

fn parse_delay(field: &Field<'_>) -> Result<u64, ParseError> {
    let hours = usize::try_from(field.integer()?).unwrap_or(usize::MAX);
    match hours {
        1..=ROTATION_DELAY_HOURS => Ok(hours as u64),
        _ => {
            let reason = format!("must be between 1 and {ROTATION_DELAY_HOURS}; leave it out for none");
            Err(field.error(reason))
        }
    }
}

/// The client that goes there reads the rest.
fn is_server(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    url.len() <= SERVER_URL_BYTES && !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic())
}

// The metadata of a signers file (D10): where it came from, whose it is, and what it replaces.

const METADATA_VERSION: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Metadata {
    pub origin: SignersOrigin,
    pub project_id: RepoPath,
    pub signers_file_digest: Sha512,
    /// The signers file that this one replaces; `None` for a project's first.
    pub previous: Option<Sha512>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignersOrigin {
    pub kind: SourceKind,
    /// The URL as the submitter gave it.
    pub url: String,
    /// The URL as requested, not where a redirect led.
    pub retrieval_url: String,
    pub retrieved_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    Github,
    Gitlab,
    Forgejo,
    FileServer,
}

json_words!(SourceKind {
    Github = "github", Gitlab = "gitlab", Forgejo = "forgejo", FileServer = "file_server",
} "must be github, gitlab, forgejo or file_server");
json_fields!(document Metadata version METADATA_VERSION within METADATA_BYTES "metadata have" {
    origin, project_id: with(parse_path), signers_file_digest, previous,
});
json_fields!(object SignersOrigin { kind, url, retrieval_url, retrieved_at });

// Groups of signers: keys, their names, and how many of them must sign.

/// A group of distinct keys, of which `threshold` must sign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub threshold: usize,
    pub signers: Vec<Signer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    pub key: PublicKey,
    pub name: Option<String>,
    /// What the file says that it is. A signature counts by its own length, whatever stands here (D256).
    pub format: KeyFormat,
}

impl Signer {
    /// A key of which nothing else is known.
    pub fn nameless(key: PublicKey) -> Self {
        Self { key, name: None, format: KeyFormat::Ed25519 }
    }
}

impl Group {
    /// Keys without names.
    pub fn of_keys(threshold: usize, keys: &BTreeSet<PublicKey>) -> Self {
        Self { threshold, signers: keys.iter().map(|key| Signer::nameless(*key)).collect() }
    }

    pub fn contains(&self, key: &PublicKey) -> bool {
        self.signers.iter().any(|signer| signer.key == *key)
    }
}

/// Whether a group lists the key.
pub fn has_member(groups: &[Group], key: &PublicKey) -> bool {
    groups.iter().any(|group| group.contains(key))
}

pub fn keys_of(groups: &[Group]) -> impl Iterator<Item = PublicKey> {
    groups.iter().flat_map(|group| group.signers.iter().map(|signer| signer.key))
}

fn parse_role(field: &Field<'_>) -> Result<Vec<Group>, ParseError> {
    let groups: Vec<Group> = field.list(parse_group)?;
    if groups.is_empty() {
        return Err(field.error("must have at least one group; leave the field out for no such role"));
    }
    Ok(groups)
}

fn parse_group(field: &Field<'_>) -> Result<Group, ParseError> {
    let object = field.object(&["threshold", "signers"])?;
    let list = object.required("signers")?;
    let mut keys = BTreeSet::new();
    let mut signers = Vec::new();
    for entry in list.array()? {
        let signer = parse_signer(&entry)?;
        if !keys.insert(signer.key) {
            return Err(entry.error(format!("the key {} is in this group already", signer.key)));
        }
        signers.push(signer);
    }
    if signers.is_empty() {
        return Err(list.error("must have at least one signer"));
    }
    let threshold = object.with("threshold", |field| parse_threshold(field, signers.len()))?;
    Ok(Group { threshold, signers })
}

fn parse_signer(field: &Field<'_>) -> Result<Signer, ParseError> {
    let object = field.object(&["kind", "data", "name"])?;
    object.text("kind", |kind| (kind == "key").then_some(()).ok_or("must be \"key\""))?;
    let data = object.required("data")?.object(&["format", "pubkey"])?;
    let stated: Option<KeyFormat> = data.maybe("format")?;
    let (key, spelled) = data.text("pubkey", PublicKey::parse_with_format)?;
    let format = stated.or(spelled).unwrap_or(KeyFormat::Ed25519);
    if spelled.is_some_and(|spelled| spelled != format) {
        let reason = format!("is not a line of a key whose format is {:?}", format.name());
        return Err(data.required("pubkey")?.error(reason));
    }
    Ok(Signer { key, name: object.maybe_text("name", parse_name)?, format })
}

fn parse_name(text: &str) -> Result<String, String> {
    if text.chars().count() > SIGNER_NAME_CHARS {
        return Err(format!("must have at most {SIGNER_NAME_CHARS} characters"));
    }
    if text.chars().any(is_unseen) {
        return Err("must have no control, blank or invisible characters".to_owned());
    }
    Ok(text.to_owned())
}

impl Serialize for Signer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Data {
            #[serde(skip_serializing_if = "Option::is_none")]
            format: Option<KeyFormat>,
            pubkey: PublicKey,
        }
        let format = Some(self.format).filter(|format| *format != KeyFormat::Ed25519);
        let mut entry = serializer.serialize_map(None)?;
        entry.serialize_entry("kind", "key")?;
        entry.serialize_entry("data", &Data { format, pubkey: self.key })?;
        if let Some(name) = &self.name {
            entry.serialize_entry("name", name)?;
        }
        entry.end()
    }
}
