//! Generates submissions of signatures, mostly valid ones.

use std::collections::BTreeMap;

use countersign_core::{
    documents::other_formats::FormatTexts,
    values::{other_format::OtherFormat, path::RepoPath},
};

use super::{
    choices::Choices,
    people::{PEOPLE, Person, format_text, signature},
    spec::{ModelIndex, ModelIndexState, ModelProposal, Project, SignedPath, Spec, Submitted},
};

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
        choices.of(&[NONE, NONE, NONE, &[OtherFormat::Ssh], &[OtherFormat::Minisign], &OtherFormat::ALL]);
    let index = path.strip_suffix("/svc.index.json").and_then(|dir| spec.indexes.get(dir));
    if formats.is_empty() || RepoPath::parse(path).map_or(true, |parsed| parsed.as_str() != path) {
        return FormatTexts::new();
    }
    let mut sums = index.and_then(ModelIndex::sums).unwrap_or_default();
    let (is_of_another, is_on_another) = (choices.one_in(8), choices.one_in(8));
    if is_on_another {
        sums.push('\n');
    }
    let signing = if is_of_another { (signer + 1) % PEOPLE } else { signer };
    formats.iter().map(|format| (*format, format_text(signing, *format, path, &sums))).collect()
}

pub(crate) fn open_files(spec: &Spec) -> Vec<String> {
    let pending = |(id, project): (&String, &Project)| {
        project.pending.as_ref().map(|_| super::paths::pending_signers(id))
    };
    let collecting = |(dir, index): (&String, &ModelIndex)| {
        (index.state == ModelIndexState::Collecting).then(|| super::paths::index_in(dir))
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
pub(crate) fn make(spec: &Spec, path: &str, signer: Person, how: How) -> (Submitted, Vec<(String, String)>) {
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
