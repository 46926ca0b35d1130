//! What a rotation delay is good for (D130), in words.

use countersign_core::documents::signers::SignersFile;

pub fn shown_hours(hours: u64) -> String {
    match hours {
        1 => "1 hour".to_owned(),
        hours if hours > 48 && hours.is_multiple_of(24) => format!("{hours} hours ({} days)", hours / 24),
        hours => format!("{hours} hours"),
    }
}

/// What the delay of a file protects against, and what it does not. Empty for a file without one.
pub fn describe_delay(file: &SignersFile) -> Vec<String> {
    let Some(hours) = file.rotation_delay_hours() else { return Vec::new() };
    let hours = shown_hours(hours);
    let mut lines = vec![format!("Rotations by admins wait {hours} once all have signed:")];
    if file.master_groups().is_empty() {
        lines.push(
            "  everyone is told meanwhile, but there are no master keys, so no one can veto".to_owned(),
        );
        lines.push(
            "  each admin can replace what waits: one stolen admin key can hold up every rotation".to_owned(),
        );
    } else {
        lines.push(
            "  against stolen admin keys: everyone is told, and the masters can veto meanwhile \
             (`countersign veto`)"
                .to_owned(),
        );
        lines.push("  a rotation that the masters sign as well does not wait".to_owned());
        lines.push(
            "  each admin can replace what waits, until one master signs it: one stolen admin key holds up the others"
                .to_owned(),
        );
    }
    lines.push("  a shorter delay, none, or other masters wait just as long".to_owned());
    lines.push(
        "  not against a server that lies about times: for that, name a log with witnesses, and run \
         `countersign monitor`"
            .to_owned(),
    );
    lines
}
