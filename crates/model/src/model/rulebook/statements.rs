//! `POST /v1/revoke` (spec §4.9; D20).

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::model::cast::{Person, canonical, index_in, public, signature};
use crate::model::request::{MINUTE, SECOND};
use crate::model::rulebook::state::{
    ExpectedAnswer, ModelIndex, ModelIndexState, ModelObjection, ModelObjections, ModelRebuild, ModelVeto,
    Project, Published, RevocationOf, Signatures, Spec, ok, refuse, refuse_saying, signed_by,
};
use crate::model::rulebook::{
    sign::SignedPath, signers::Config, signers::ModelGroup, signers::is_met, signers::people_of,
};

#[derive(Debug, Clone)]
pub(crate) struct Revoking {
    pub(crate) path: String,
    pub(crate) revoker: Person,
    pub(crate) caller: Person,
    pub(crate) document: String,
    pub(crate) signature: String,
    pub(crate) is_document_valid: bool,
    /// The subject in the document, in hexadecimal with its prefix.
    pub(crate) subject: Option<String>,
    pub(crate) initiator: Option<Person>,
    /// The signed request, as the server would keep it.
    pub(crate) request: String,
}

impl Spec {
    /// Who can revoke the index at a path, and has not signed a pending revocation of it.
    pub(crate) fn revokers(&self, path: &str) -> Vec<Person> {
        let Some(dir) = path.strip_suffix("/svc.index.json") else { return Vec::new() };
        let Some((_, current)) = self.governing(dir) else { return Vec::new() };
        let pending = self.indexes.get(dir).and_then(|index| index.revocation.as_ref());
        let signed = pending.map(|pending| signed_by(&pending.signatures)).unwrap_or_default();
        authorised(current).difference(&signed).copied().collect()
    }

    /// The indexes whose begun revocation a person can join or, once it has enough signatures, carry out.
    pub(crate) fn begun_revocations(&self, person: Person) -> impl Iterator<Item = String> {
        let is_asked = move |dir: &str, begun: &RevocationOf| {
            let Some((_, current)) = self.governing(dir) else { return false };
            let signed = signed_by(&begun.signatures);
            authorised(current).contains(&person)
                && (!signed.contains(&person) || is_enough(current, &signed))
        };
        let complete = self.indexes.iter().filter(|(_, index)| index.state == ModelIndexState::Complete);
        let begun = complete.filter_map(|(dir, index)| Some((dir, index.revocation.as_ref()?)));
        begun.filter(move |(dir, begun)| is_asked(dir, begun)).map(|(dir, _)| index_in(dir))
    }

    pub(crate) fn revoke(&mut self, revoking: &Revoking) -> ExpectedAnswer {
        let Revoking { path, revoker, document, .. } = revoking;
        let now = self.seconds();
        if !self.served().contains_key(path) {
            return refuse(404);
        }
        let Some(dir) = path.strip_suffix("/svc.index.json") else { return refuse(400) };
        let (_, current) = self.governing(dir).expect("an index is governed");
        let current = current.clone();
        let index = self.indexes.get_mut(dir).expect("the file is there");
        match index.state {
            ModelIndexState::Collecting => {
                return refuse_saying(409, format!("File has not been fully signed: {path}"));
            }
            ModelIndexState::Revoked => return refuse(400),
            ModelIndexState::Complete => {}
        }
        // A pending document stays only if it has signatures that count. A submission of the same document joins it in
        // any case.
        let counts =
            |pending: &RevocationOf| !signed_by(&pending.signatures).is_disjoint(&authorised(&current));
        let pending =
            index.revocation.as_ref().filter(|pending| pending.document == *document || counts(pending));
        let is_conflict = pending.is_some_and(|pending| {
            // A rotation can make the collected signatures enough. Then a signer can submit again, since each
            // submission counts anew.
            let is_again = pending.signatures.contains_key(revoker)
                && !is_enough(&current, &signed_by(&pending.signatures));
            pending.document != *document || is_again
        });
        let is_first = pending.is_none();
        let is_not_initiator = is_first && revoking.initiator.is_some_and(|initiator| initiator != *revoker);
        match (is_wrong(revoking, &index.text, &current) || is_not_initiator, is_conflict) {
            (true, false) => return refuse(400),
            // The specification does not decide which of the two comes first.
            (true, true) => return ExpectedAnswer::Error { statuses: vec![400, 409], says: None },
            (false, true) => return refuse(409),
            (false, false) => {}
        }
        let mut revocation = pending.cloned().unwrap_or_else(|| RevocationOf {
            document: document.clone(),
            signatures: Signatures::new(),
            request: None,
            allowed_by: None,
        });
        if revoking.subject.is_none() {
            revocation.request = Some(revoking.request.clone());
        }
        revocation.signatures.entry(*revoker).or_insert((revoking.signature.clone(), now));
        let is_revoked = is_enough(&current, &signed_by(&revocation.signatures));
        if is_revoked {
            revocation.allowed_by = Some(current);
            index.state = ModelIndexState::Revoked;
            index.formats.clear();
        }
        index.revocation = Some(revocation);
        let (status, message) = match is_revoked {
            true => (200, "File revoked successfully"),
            false => (202, "Revocation recorded. More signatures are required."),
        };
        let body = json!({ "success": true, "message": message, "revoked": is_revoked });
        ExpectedAnswer::Json { status, body }
    }
}

/// Whether a revocation is wrong. `text` is that of the index.
fn is_wrong(revoking: &Revoking, text: &str, current: &Config) -> bool {
    let Revoking { revoker, document, .. } = revoking;
    let right_subject = Sha512::of(text.as_bytes()).to_prefixed();
    let is_other_file = revoking.subject.as_ref().is_some_and(|subject| *subject != right_subject);
    let is_signed = revoking.signature == signature(*revoker, document.as_bytes());
    let is_authorised = authorised(current).contains(revoker);
    let lacks_subject = revoking.subject.is_none()
        && (revoking.caller != *revoker || !is_enough(current, &BTreeSet::from([*revoker])));
    !revoking.is_document_valid || is_other_file || !is_signed || !is_authorised || lacks_subject
}

fn authorised(current: &Config) -> BTreeSet<Person> {
    people_of(current.explicit_revocation().unwrap_or(current.admin()))
}

fn is_enough(current: &Config, signed: &BTreeSet<Person>) -> bool {
    match current.explicit_revocation() {
        Some(groups) => is_met(groups, signed),
        None => !authorised(current).is_disjoint(signed),
    }
}

// `POST /v1/withdraw` and `POST /v1/object` (D120–D125).

#[derive(Debug, Clone)]
pub(crate) struct Withdrawing {
    pub(crate) path: String,
    pub(crate) caller: Person,
    /// The subject, in hexadecimal with its prefix.
    pub(crate) subject: Option<String>,
    pub(crate) is_valid: bool,
    /// The signed request, as the server would keep it.
    pub(crate) request: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Objecting {
    pub(crate) path: String,
    pub(crate) objector: Person,
    pub(crate) document: String,
    pub(crate) is_document_valid: bool,
    pub(crate) signature: String,
    /// What the document says.
    pub(crate) text: Option<String>,
    pub(crate) subject: String,
    /// Nanoseconds since 1970.
    pub(crate) timestamp: i128,
}

impl Spec {
    pub(crate) fn withdraw(&mut self, withdrawing: &Withdrawing) -> ExpectedAnswer {
        let Withdrawing { path, caller, subject, is_valid, request } = withdrawing;
        if !is_valid {
            return refuse(400);
        }
        let dir = match self.find_index(path) {
            Ok(dir) => dir,
            Err(404) if self.withdrawn.contains_key(path) => return refuse(409),
            Err(status) => return refuse(status),
        };
        let index = &self.indexes[&dir];
        if index.state != ModelIndexState::Collecting {
            return refuse(409);
        }
        let (_, current) = self.governing(&dir).expect("an index is governed");
        let is_admin = people_of(current.admin()).contains(caller);
        let is_registrant = index.registrant == *caller && current.can_register().contains(caller);
        // A registrar does not undo what people said (D223).
        let is_objected_to = index.objections.values().any(|said| said.text.is_some());
        let is_touched = !index.signatures.is_empty() || !index.rebuilds.is_empty() || is_objected_to;
        let is_held = current.registrar == Some(*caller) && is_touched;
        let is_other =
            subject.as_ref().is_some_and(|seen| *seen != Sha512::of(index.text.as_bytes()).to_prefixed());
        if let Some(refused) = refuse_for(&[(!is_admin && !is_registrant || is_held, 403), (is_other, 409)]) {
            return refused;
        }
        let withdrawn = self.indexes.remove(&dir).expect("the file is there");
        self.retire_objections(&dir, &withdrawn.objections);
        self.withdrawn.insert(path.clone(), request.clone());
        ok(json!({ "success": true, "message": "Release withdrawn. Its path is free again." }))
    }

    pub(crate) fn object(&mut self, objecting: &Objecting) -> ExpectedAnswer {
        let now = self.seconds();
        let Objecting { path, objector, document, text, timestamp, .. } = objecting;
        let dir = match self.find_index(path) {
            Ok(dir) => dir,
            Err(status) => return refuse(status),
        };
        let index = &self.indexes[&dir];
        if index.state == ModelIndexState::Revoked {
            return refuse(409);
        }
        if !objecting.is_document_valid {
            return refuse(400);
        }
        let (_, current) = self.governing(&dir).expect("an index is governed");
        let earlier = index.objections.get(objector);
        let takes_back = text.is_none() && earlier.is_some();
        let stands = earlier.is_some_and(|earlier| earlier.text.is_some());
        let refused = refuse_for(&[
            (objecting.signature != signature(*objector, document.as_bytes()), 400),
            (objecting.subject != Sha512::of(index.text.as_bytes()).to_prefixed(), 409),
            (*timestamp > i128::from(now) * SECOND + 10 * MINUTE, 400),
            (!takes_back && !current.signers().contains(objector), 403),
            (earlier.is_some_and(|earlier| *timestamp <= earlier.timestamp), 409),
            (text.is_none() && !stands, 409),
        ]);
        if let Some(refused) = refused {
            return refused;
        }
        let said = ModelObjection {
            document: document.clone(),
            signature: objecting.signature.clone(),
            text: text.clone(),
            timestamp: *timestamp,
            at: now,
        };
        let index = self.indexes.get_mut(&dir).expect("the file is there");
        index.objections.insert(*objector, said);
        let message = if text.is_some() { "Objection recorded" } else { "Objection taken back" };
        ok(json!({ "success": true, "message": message }))
    }

    /// The content goes, and what stands against it is kept. No run comes near the bound of the list.
    pub(super) fn retire_objections(&mut self, dir: &str, objections: &ModelObjections) {
        let mut standing: Vec<_> = objections.iter().filter(|(_, said)| said.text.is_some()).collect();
        if standing.is_empty() {
            return;
        }
        standing.sort_by_key(|(person, said)| (said.timestamp, public(**person)));
        let standing = standing.into_iter().map(|(person, said)| (*person, said.clone()));
        self.earlier_objections.entry(index_in(dir)).or_default().extend(standing);
    }

    /// The directory of the index at a path, or the status of an answer about something else.
    fn find_index(&self, path: &str) -> Result<String, u16> {
        match path.strip_suffix("/svc.index.json") {
            Some(dir) if self.indexes.contains_key(dir) => Ok(dir.to_owned()),
            None if self.served().contains_key(path) => Err(400),
            Some(_) | None => Err(404),
        }
    }

    /// What stands against the releases that wait for a person: the path, who says it, and what.
    pub(crate) fn standing_objections(&self, dirs: &[String]) -> Vec<Value> {
        let mut standing = Vec::new();
        for dir in dirs {
            for (person, said) in &self.indexes[dir].objections {
                if let Some(text) = &said.text {
                    standing.push(json!([index_in(dir), canonical(*person), text]));
                }
            }
        }
        standing.sort_by_key(Value::to_string);
        standing
    }
}

/// The decisions do not say which of several faults comes first.
fn refuse_for(faults: &[(bool, u16)]) -> Option<ExpectedAnswer> {
    let statuses: Vec<u16> =
        faults.iter().filter(|(is_fault, _)| *is_fault).map(|(_, status)| *status).collect();
    (!statuses.is_empty()).then_some(ExpectedAnswer::Error { statuses, says: None })
}

// `POST /v1/rebuild` (D259–D262).

#[derive(Debug, Clone)]
pub(crate) struct Rebuilding {
    pub(crate) path: String,
    pub(crate) builder: Person,
    pub(crate) document: String,
    pub(crate) is_document_valid: bool,
    pub(crate) signature: String,
    /// The path in the document.
    pub(crate) of: String,
    pub(crate) subject: String,
    pub(crate) commit: String,
    /// The digests of each file by the name of the algorithm, in hexadecimal.
    pub(crate) files: BTreeMap<String, BTreeMap<&'static str, String>>,
    /// Nanoseconds since 1970.
    pub(crate) timestamp: i128,
}

impl ModelRebuild {
    /// Whether the builder got this file; `None` if it says nothing of it.
    fn is_same(&self, file: &Published) -> Option<bool> {
        let found = self.files.get(&file.name)?;
        let mut common =
            found.iter().filter_map(|(kind, hex)| Some(file.digests.get(kind)? == hex)).peekable();
        common.peek()?;
        Some(common.all(|is_same| is_same))
    }
}

impl Rebuilding {
    fn adds_to(&self, earlier: &ModelRebuild) -> bool {
        let is_kept = |(name, digests): (&String, &BTreeMap<_, _>)| self.files.get(name) == Some(digests);
        self.commit == earlier.commit
            && self.files.len() > earlier.files.len()
            && earlier.files.iter().all(is_kept)
    }

    /// Whether the builder got the files of the index; `None` if they cannot be compared.
    fn is_same(&self, index: &ModelIndex) -> Option<bool> {
        let mut is_same = true;
        for (name, digests) in &self.files {
            let published = &index.published.iter().find(|file| file.name == *name)?.digests;
            let mut common =
                digests.iter().filter_map(|(kind, hex)| Some(published.get(kind)? == hex)).peekable();
            common.peek()?;
            is_same &= common.all(|is_same| is_same);
        }
        Some(is_same)
    }
}

impl Spec {
    /// The releases that this person is asked to build, in order: others did not get all of it, and it can still agree.
    pub(crate) fn unbuilt(&self, caller: Person) -> impl Iterator<Item = String> {
        let asked = self.indexes.iter().filter(move |(dir, index)| {
            let builds = |config: &Config| config.builders().contains(&caller);
            let is_builder =
                builds(&index.governed_by) && self.governing(dir).is_some_and(|(_, current)| builds(current));
            let got = |person: &Person, file: &Published| index.rebuilds.get(person)?.is_same(file);
            let is_built = |file: &Published| {
                let builders = index.governed_by.builders.iter();
                let enough = |group: &ModelGroup| {
                    let agreed = group.people.iter().filter(|person| got(person, file) == Some(true));
                    agreed.count() >= group.threshold
                };
                builders.clone().all(enough)
            };
            let mut words = index.published.iter().map(|file| got(&caller, file));
            let can_agree = words.clone().any(|word| word.is_none()) && words.all(|word| word != Some(false));
            let is_open = !matches!(index.state, ModelIndexState::Revoked);
            is_builder && is_open && can_agree && !index.published.iter().all(is_built)
        });
        asked.map(|(dir, _)| index_in(dir))
    }

    pub(crate) fn rebuild(&mut self, rebuilding: &Rebuilding) -> ExpectedAnswer {
        let now = self.seconds();
        let Rebuilding { path, builder, document, timestamp, .. } = rebuilding;
        let dir = match self.find_index(path) {
            Ok(dir) => dir,
            Err(status) => return refuse(status),
        };
        let index = &self.indexes[&dir];
        let is_complete = match index.state {
            ModelIndexState::Revoked => return refuse(409),
            ModelIndexState::Complete => true,
            ModelIndexState::Collecting => false,
        };
        if !rebuilding.is_document_valid {
            return refuse(400);
        }
        let (_, current) = self.governing(&dir).expect("an index is governed");
        // While a release collects, they are the same.
        let builders = index.governed_by.builders();
        let is_builder = current.builders().contains(builder) && builders.contains(builder);
        let earlier = index.rebuilds.get(builder);
        let is_same = rebuilding.is_same(index);
        let refused = refuse_for(&[
            (rebuilding.signature != signature(*builder, document.as_bytes()), 400),
            (rebuilding.of != *path, 409),
            (rebuilding.subject != Sha512::of(index.text.as_bytes()).to_prefixed(), 409),
            (*timestamp > i128::from(now) * SECOND + 10 * MINUTE, 400),
            (!is_builder, 403),
            (is_same.is_none(), 400),
            (earlier.is_some_and(|earlier| *timestamp <= earlier.timestamp), 409),
            (is_complete && earlier.is_some_and(|earlier| !rebuilding.adds_to(earlier)), 409),
        ]);
        if let Some(refused) = refused {
            return refused;
        }
        let said = ModelRebuild {
            document: document.clone(),
            signature: rebuilding.signature.clone(),
            commit: rebuilding.commit.clone(),
            files: rebuilding.files.clone(),
            timestamp: *timestamp,
            at: now,
        };
        let index = self.indexes.get_mut(&dir).expect("the file is there");
        index.rebuilds.insert(*builder, said);
        let is_same = is_same == Some(true);
        let message = match is_same {
            true => "Rebuild recorded: the same files",
            false => "Rebuild recorded: it differs from the release, and everyone sees that",
        };
        ok(json!({ "success": true, "message": message, "is_same": is_same }))
    }
}

// `POST /v1/veto` (D135, D136).

#[derive(Debug, Clone)]
pub(crate) struct Vetoing {
    pub(crate) path: String,
    pub(crate) master: Person,
    pub(crate) document: String,
    pub(crate) signature: String,
    pub(crate) is_document_valid: bool,
    /// The names in the document: project, digest of the proposed file, digest of the file in force.
    pub(crate) names: [String; 3],
}

impl Spec {
    /// Projects with a pending update and masters who could veto it.
    pub(crate) fn vetoable(&self) -> Vec<String> {
        let has_masters =
            |project: &Project| project.active.as_ref().is_some_and(|active| !active.master().is_empty());
        let open = self.projects.iter().filter(|(_, p)| p.pending.is_some() && has_masters(p));
        open.map(|(id, _)| id.clone()).collect()
    }

    /// What a right veto of a project's pending file names.
    pub(crate) fn veto_names(&self, id: &str) -> [String; 3] {
        let digest = |text: Option<&String>| Sha512::of(text.map_or("", |t| t).as_bytes()).to_prefixed();
        let project = self.projects.get(id);
        let pending = project.and_then(|project| project.pending.as_ref());
        let active = project.and_then(|project| project.active.as_ref());
        [id.to_owned(), digest(pending.map(|p| &p.config.text)), digest(active.map(|active| &active.text))]
    }

    pub(crate) fn veto(&mut self, vetoing: &Vetoing) -> ExpectedAnswer {
        let Vetoing { path, master, document, .. } = vetoing;
        let now = self.seconds();
        let SignedPath::Proposal(id) = SignedPath::at(path) else { return refuse(400) };
        let names = self.veto_names(&id);
        let Some(project) = self.projects.get_mut(&id) else { return refuse(404) };
        let Some(pending) = &mut project.pending else { return refuse(404) };
        let Some(active) = &project.active else { return refuse(409) };
        let is_signed = vetoing.signature == signature(*master, document.as_bytes());
        let is_master = people_of(active.master()).contains(master);
        let is_begun = pending
            .veto
            .as_ref()
            .is_some_and(|veto| veto.document != *document || veto.signatures.contains_key(master));
        let is_other = vetoing.is_document_valid && vetoing.names != names;
        // The specification does not decide which of them comes first.
        let faults =
            [(!vetoing.is_document_valid || !is_signed, 400), (!is_master, 403), (is_other || is_begun, 409)];
        let statuses: Vec<u16> = faults.into_iter().filter(|(is, _)| *is).map(|(_, status)| status).collect();
        if !statuses.is_empty() {
            return ExpectedAnswer::Error { statuses, says: None };
        }
        let mut veto = pending
            .veto
            .take()
            .unwrap_or_else(|| ModelVeto { document: document.clone(), signatures: Default::default() });
        veto.signatures.insert(*master, (vetoing.signature.clone(), now));
        let is_vetoed = is_met(active.master(), &signed_by(&veto.signatures));
        if is_vetoed {
            let text = pending.config.text.clone();
            project.pending = None;
            project.vetoed.insert(text, veto);
        } else {
            pending.veto = Some(veto);
        }
        let (status, message) = match is_vetoed {
            true => (200, "The pending signers are vetoed and gone."),
            false => (202, "Veto recorded. More signatures are required."),
        };
        let body = json!({ "success": true, "message": message, "vetoed": is_vetoed });
        ExpectedAnswer::Json { status, body }
    }
}
