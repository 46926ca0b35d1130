//! What `countersign drill` says of a signers file (D145). A file that a server shows is not believed: every valid one can
//! be played. Lines before the file choose the keys: `lost` and `stolen`, each with digits.

use std::collections::BTreeSet;

use countersign_core::{
    documents::signers::SignersFile,
    values::{key::PublicKey, shown::is_unseen, time::Timestamp},
};
use countersign_explain::{
    drill::{Drill, DrillQuestion, play},
    incident::list_powers,
    strength::{Act, assess},
};

/// A larger file shows little more, and takes its time.
const MAX_KEYS: usize = 8;

pub fn check(data: &[u8]) {
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let (Some(lost), Some(stolen), Some(document)) = (lines.next(), lines.next(), lines.next()) else {
        return;
    };
    let Ok(file) = SignersFile::parse(document) else { return };
    let keys: Vec<PublicKey> = file.keys().into_iter().collect();
    if keys.len() > MAX_KEYS || file.registrars().len() > 2 {
        return;
    }
    let choose = |line: &[u8]| -> BTreeSet<PublicKey> {
        let digits = line.iter().filter(|byte| byte.is_ascii_digit());
        digits.filter_map(|digit| keys.get(usize::from(digit - b'0')).copied()).collect()
    };
    let question = DrillQuestion { lost: choose(lost), stolen: choose(stolen) };
    let drill = play(
        &file,
        &question,
        Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps"),
    )
    .expect("every valid file can be played");
    check_outcome(&file, &question, &drill);
    let said = drill.team.iter().chain(&drill.thief).chain(drill.thief_after_rotation.iter().flatten());
    assert!(said.flat_map(|attempt| &attempt.steps).all(|step| !step.text.chars().any(is_unseen)));
}

/// A time in the year 9000. No file can replace one of the calendar's last second, and a rotation may have to wait.
const NO_TIME_LEFT: i64 = 221_845_392_000;

/// Compares two opinions: the decisions of core, played out, and the thresholds of the file, counted.
fn check_outcome(file: &SignersFile, question: &DrillQuestion, drill: &Drill) {
    let strength = assess(file);
    let left: BTreeSet<PublicKey> =
        file.keys().into_iter().filter(|key| !question.lost.contains(key)).collect();
    for attempt in &drill.team {
        let counted = strength
            .acts()
            .into_iter()
            .find(|counted| counted.act == attempt.act)
            .expect("every act is counted");
        let has_time = attempt.act != Act::Rotate || file.timestamp().unix_seconds() < NO_TIME_LEFT;
        if question.stolen.is_empty() && has_time {
            assert!(!attempt.takes_stolen_keys);
            assert_eq!(attempt.succeeds, counted.is_met(&left), "{:?}", attempt.act);
        }
        assert!(!attempt.succeeds || counted.is_met(&left), "too few keys for {:?}", attempt.act);
    }
    assert_eq!(drill.thief.is_empty(), question.stolen.is_empty());
    let powers = list_powers(file, &question.stolen);
    for attempt in &drill.thief {
        assert!(!attempt.succeeds || powers.contains(&attempt.act), "{:?}", attempt.act);
        assert!(attempt.act == Act::Rotate || attempt.succeeds == powers.contains(&attempt.act));
    }
}
