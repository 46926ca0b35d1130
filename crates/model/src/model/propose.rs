//! Generates signers files, mostly valid ones.

use std::collections::BTreeSet;

use countersign_core::values::time::Timestamp;

use super::{
    choices::Choices,
    people::{MASTER, Person, STRANGER, base64, canonical, openssh},
    spec::{Config, ModelGroup, ModelRole},
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
    let config =
        (fault == Fault::None).then(|| Config { text: text.clone(), timestamp, roles, delay, registrar });
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
