//! Who may do what, where it takes more than a look into the signers file.

use super::{
    documents::{Key, Keys, Reader, SignersDocument, read_key, read_time, union},
    said::read_said,
};
use crate::{
    contents::Contents,
    facts::{ProjectFacts, ReleaseSlots},
    roles::{AGREED, COLLECTING, FILE, INDEX, METADATA, OBJECTIONS, REGISTRANT, REGISTRATION, SET},
};

/// The key that registered a release, as long as it collects.
pub fn registrant(reader: &Reader, contents: &Contents, release: &ReleaseSlots) -> Option<Key> {
    read_key(reader.value(contents, release[REGISTRANT]?)?.get("registrant")?.as_str()?)
}

/// Whether someone has signed a release that collects, or objects to it.
pub fn is_touched(reader: &Reader, contents: &Contents, release: &ReleaseSlots) -> bool {
    let set = release[COLLECTING].zip(release[INDEX]);
    let signed =
        set.and_then(|(set, index)| reader.set(contents, set, index)).is_some_and(|set| !set.all.is_empty());
    let said = release[OBJECTIONS].and_then(|id| read_said(&*reader.value(contents, id)?));
    signed || said.is_some_and(|said| said.values().any(|said| said.objection.is_some()))
}

/// Who may withdraw a release that collects: admins, and the key that registered it, if it still may register. A registrar
/// only as long as no one has signed it or objects to it.
pub fn can_withdraw(
    reader: &Reader,
    contents: &Contents,
    active: &SignersDocument,
    release: &ReleaseSlots,
) -> Keys {
    let is_touched = is_touched(reader, contents, release);
    let still = registrant(reader, contents, release)
        .filter(|key| active.keys.contains(key) || (active.registrars.contains(key) && !is_touched));
    union(&active.admin).into_iter().chain(still).collect()
}

/// Whether only masters may replace what is pending.
pub fn is_kept_for_masters(reader: &Reader, contents: &Contents, project: &ProjectFacts, now: i64) -> bool {
    let active = project.active[FILE].and_then(|id| reader.signers(contents, id));
    let Some((active, hours)) = active.and_then(|active| active.delay_hours.map(|hours| (active, hours)))
    else {
        return false;
    };
    let masters = union(&active.master);
    let pending = &project.pending;
    let set = pending[SET].zip(pending[FILE]).and_then(|(set, file)| reader.set(contents, set, file));
    let signed = set.into_iter().flat_map(|set| set.collected.clone());
    let value = |slot: usize| pending[slot].and_then(|id| reader.value(contents, id));
    let proposer = value(REGISTRATION).and_then(|request| read_key(request.get("public_key")?.as_str()?));
    let retrieved =
        value(METADATA).and_then(|it| read_time(it.get("origin")?.get("retrieved_at")?.as_str()?));
    let words = signed.chain(proposer.zip(retrieved));
    let newest = words.filter(|(key, _)| masters.contains(key)).map(|(_, at)| at).max();
    newest.is_some_and(|at| project.beside[AGREED].is_some() || now < at + hours * 3_600)
}
