//! Building blocks of pages. Every text from a stranger passes `shown_text` or one of its relatives (D39), stands in a
//! `bdi`, and the templates escape it. A name never appears without its key, short and with a link to its page (D54),
//! but in sentences about progress (D240).

use countersign_api::catalogue::ListedRebuilds;
use countersign_core::documents::layout;
use countersign_core::documents::signers::{Group, Role, Signer, keys_of};
use countersign_core::rules::{quorum::Tally, reproduction::Reproduction, stored::ReleaseState};
use countersign_core::values::shown::{marked_name, shown_count, shown_text, shown_within};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp, verifier_key::VerifierKey};
use countersign_explain::describe::release::{
    ObjectionDescription, ReleaseDescription, ReleaseSummary, RevocationDescription,
};
use countersign_explain::log_strength::LogStrength;
use countersign_explain::progress::{GroupProgress, Member, Names};
use countersign_explain::reproduction::{builder_text, count_different, different_text, reproduction_text};
use countersign_explain::words::{rule_text, shown_age, shown_signer_name, witness_rule};
use maud::{Markup, html};

use crate::web::links;

/// How many colours the style sheet has for faces, `face-0` and so on.
const FACE_COLOURS: u8 = 12;
/// A row of more dots says less than the number.
const MOST_DOTS: usize = 8;
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
];

/// The way from all projects to here. Each directory has its own page.
pub(super) fn crumbs(to: Option<&RepoPath>) -> Markup {
    let mut above: Vec<RepoPath> = to.into_iter().flat_map(RepoPath::self_and_ancestors).collect();
    above.reverse();
    // Scheme, host and port count as one directory.
    let above = above.get(2..).unwrap_or_default();
    html! {
        nav.crumbs aria-label="Where this is" {
            ol {
                li { a href=(links::PROJECTS) { "Projects" } }
                @for (i, dir) in above.iter().enumerate() {
                    @let name = if i == 0 { links::shown_path(dir) } else { marked_name(dir.file_name()) };
                    li { a href=(links::page(dir)) { bdi { (name) } } }
                }
            }
        }
    }
}

/// The state of a release, and what builders got. A begun revocation takes the place of the state, and nothing beside
/// it is green (D238), nor beside what builders got that is something else (D262).
pub(super) fn state(state: ReleaseState, has_begun: bool, rebuilds: Option<&ListedRebuilds>) -> Markup {
    let is_doubted = has_begun || rebuilds.is_some_and(is_unsettled);
    html! {
        @match state {
            _ if has_begun => span.state.open { "revocation begun" },
            ReleaseState::Collecting => span.state.open { "collecting" },
            ReleaseState::Complete => span.state.open[is_doubted].good[!is_doubted] { "complete" },
            ReleaseState::Revoked => span.state.bad { "revoked" },
        }
        @if let Some(rebuilds) = rebuilds.filter(|_| state != ReleaseState::Revoked) {
            @if let Some(different) = count_different(rebuilds.different) {
                " " span.state.bad { (different) }
            } @else if rebuilds.reproduced {
                " " span.state.plain[is_doubted].good[!is_doubted] { "reproduced" }
            } @else if rebuilds.required && state == ReleaseState::Complete {
                " " span.state.open { "not reproduced" }
            }
        }
    }
}

/// Whether builders got something else, or too few got the same where the project needs them.
pub(super) fn is_unsettled(rebuilds: &ListedRebuilds) -> bool {
    rebuilds.different > 0 || rebuilds.is_lacking()
}

/// Whether nothing on the page is green: some want the release revoked (D238), builders got something else, or too few
/// have reproduced it where the project needs that (D262).
pub(super) fn is_doubted(release: &ReleaseDescription) -> bool {
    let is_unsettled = |found| is_unsettled(&ListedRebuilds::of(found));
    release.begun_revocation.is_some() || release.reproduction.as_ref().is_some_and(is_unsettled)
}

/// A table of this class. On a narrow screen the rows become blocks. The roles keep it a table for those who do not see
/// it.
pub(super) fn table(class: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        table class=(class) role="table" {
            thead role="rowgroup" {
                tr role="row" { @for column in columns { th scope="col" role="columnheader" { (column) } } }
            }
            tbody role="rowgroup" { (rows) }
        }
    }
}

/// The columns of `standing_cells`.
pub(super) const STANDING_COLUMNS: [&str; 4] = ["Release", "State", "Progress", "Last signature"];

/// The cells that say how far a release is. A begun revocation takes the place of the rest.
pub(super) fn standing_cells(summary: &ReleaseSummary) -> Markup {
    let ReleaseSummary { begun, last_signed_at, .. } = summary;
    let objections = summary.objections.standing().len();
    let rebuilds = summary.reproduction.as_ref().map(ListedRebuilds::of);
    html! {
        td role="cell" {
            (state(summary.state, begun.is_some(), rebuilds.as_ref()))
            @if objections > 0 { " " (objected(objections)) }
        }
        td.is-doubted[rebuilds.as_ref().is_some_and(is_unsettled)] role="cell" {
            // This is not how far the release is.
            @match begun {
                Some(begun) => { (begun.tally.collected) " of " (begun.tally.needed) " revokers" }
                None => (progress(summary.tally)),
            }
        }
        td role="cell" { @match last_signed_at { Some(at) => (when(*at)), None => "none yet" } }
    }
}

/// How many want a release revoked, in the words of every verdict (D238).
pub(super) fn how_many_revoke(begun: &RevocationDescription) -> Markup {
    html! { (begun.tally.collected) " of " (begun.tally.needed) " revokers want it revoked" }
}

/// The mark of objections beside the state.
pub(super) fn objected(objections: usize) -> Markup {
    html! { span.state.bad { (count(objections, "objection", "objections")) } }
}

/// What builders got that is something else; nothing if none did.
pub(super) fn differences(release: &ReleaseDescription) -> Markup {
    let different = release.reproduction.as_ref().and_then(|found| Some((found, different_text(found)?)));
    html! {
        @if let Some((reproduction, text)) = different {
            section.card.hero.is-open role="alert" aria-labelledby="different" {
                h2.wrap #different { bdi { (text) } }
                (difference_list(reproduction, &release.names))
                p.meta { "It blocks nothing. Find out why before you sign or use this release." }
            }
        }
    }
}

/// The builders who got something else, each with these files and the commit.
pub(super) fn difference_list(reproduction: &Reproduction, names: &Names) -> Markup {
    let builders = names.in_order(reproduction.different.keys().copied());
    people_who(&builders, &|builder: &Signer| html! { bdi { (builder_text(reproduction, &builder.key)) } })
}

/// Says in a sentence how far builders have reproduced a release. A commit that is cut short ends it.
pub(super) fn how_reproduced(reproduction: &Reproduction, names: &Names) -> Markup {
    let text = reproduction_text(reproduction, names);
    html! { "It is " bdi { (text) } @if !text.ends_with('…') { "." } }
}

/// What builders make of a release: each with what it got, and from which commit.
pub(super) fn rebuilds(reproduction: &Reproduction, names: &Names) -> Markup {
    html! {
        section.card aria-labelledby="rebuilds" {
            h2 #rebuilds { "Rebuilds" }
            p { (how_reproduced(reproduction, names)) }
            @if reproduction.is_lacking() {
                p { "The project wants it reproduced before anyone uses it, so clients refuse it." }
            }
            @for group in reproduction.groups() {
                @let builders = names.in_order(keys_of(std::slice::from_ref(group)));
                p.role-line { strong { "Builders" } span.rule { (rule_of(group)) } }
                (people_who(&builders, &|builder: &Signer| html! { bdi { (builder_text(reproduction, &builder.key)) } }))
            }
        }
    }
}

/// What signers hold against a release; nothing if no one does.
pub(super) fn objections(objections: &[ObjectionDescription]) -> Markup {
    html! {
        @if !objections.is_empty() {
            section.card.hero.is-bad role="alert" aria-labelledby="objections" {
                h2 #objections { (count(objections.len(), "signer objects", "signers object")) }
                (objection_list(objections))
                p.meta { "An objection blocks nothing. Its author can take it back." }
            }
        }
    }
}

/// What signers held against contents that a release had before: history, so it is not marked as bad.
pub(super) fn earlier_objections(path: &RepoPath, objections: &[ObjectionDescription]) -> Markup {
    html! {
        @if !objections.is_empty() {
            section.card aria-labelledby="earlier-objections" {
                h2 #earlier-objections {
                    (count(objections.len(), "objection", "objections")) " to an earlier content of this release"
                }
                (objection_list(objections))
                p.meta {
                    "That content was corrected or withdrawn. "
                    a href=(links::file(&layout::earlier_objections_of(path))) { "The signed objections" }
                    " say which content each of them is about."
                }
            }
        }
    }
}

pub(super) fn objection_list(objections: &[ObjectionDescription]) -> Markup {
    html! {
        @for ObjectionDescription { signer, is_listed, text, timestamp, .. } in objections {
            p.reason { q.wrap { bdi { (shown_within(text, usize::MAX)) } } }
            p.meta {
                (who(signer)) @if !is_listed { ", who is no longer a signer" } ", " (when(*timestamp))
            }
        }
    }
}

/// The day and the time. Where scripts run, it says how long ago.
pub(super) fn when(time: Timestamp) -> Markup {
    let exact = time.to_string();
    let (date, clock) = split_time(&exact);
    html! { time.ago datetime=(exact) { (date) " " (clock) " UTC" } }
}

/// A time, as in `14:02 UTC`, with its day if that is not today.
pub(super) fn moment(time: Timestamp, now: Timestamp) -> Markup {
    let exact = time.to_string();
    let (date, clock) = split_time(&exact);
    html! { time datetime=(exact) { @if !now.to_string().starts_with(date) { (date) " " } (clock) " UTC" } }
}

/// The date, and the hour and minute.
fn split_time(exact: &str) -> (&str, &str) {
    let (date, clock) = exact.split_once('T').unwrap_or((exact, ""));
    (date, clock.get(..5).unwrap_or_default())
}

/// A day, as in `10 November 2026`.
pub(super) fn day(time: Timestamp) -> String {
    let exact = time.to_string();
    let mut numbers = exact.split(['-', 'T']);
    let (year, month, day) = (numbers.next(), numbers.next(), numbers.next());
    let month = month.and_then(|month| MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?));
    match (day, month, year) {
        (Some(day), Some(month), Some(year)) => format!("{} {month} {year}", day.trim_start_matches('0')),
        _ => exact,
    }
}

/// A short key with a link to its page, where all of it stands.
pub(super) fn key(key: PublicKey) -> Markup {
    html! { a.key href=(links::key(key)) title=(key) { (key.short()) } }
}

/// The whole key. It never breaks inside its prefix.
pub(super) fn whole_key(key: PublicKey) -> Markup {
    let text = key.to_string();
    let (prefix, code) = text.split_at(text.find(':').map_or(0, |colon| colon + 1));
    html! { code.whole-key data-copies="the key" { span.together { (prefix) } (code) } }
}

/// A digest that can be copied whole.
pub(super) fn digest(prefixed: &str, what: &str) -> Markup {
    html! { code.wrap data-copies=(what) { (prefixed) } }
}

pub(super) fn who(signer: &Signer) -> Markup {
    html! {
        span.who {
            @if let Some(name) = shown_signer_name(signer) { bdi.name { (name) } " " }
            (key(signer.key))
        }
    }
}

/// A list of people in a sentence.
pub(super) fn who_list(signers: &[Signer]) -> Markup {
    html! { @for (i, signer) in signers.iter().enumerate() { @if i > 0 { ", " } (who(signer)) } }
}

pub(super) fn people<'a>(signers: impl IntoIterator<Item = &'a Signer>) -> Markup {
    people_who(signers, &|_| html! {})
}

/// A list of people with what each of them did.
pub(super) fn people_who<'a>(
    signers: impl IntoIterator<Item = &'a Signer>,
    did: &impl Fn(&Signer) -> Markup,
) -> Markup {
    html! { ul.people { @for signer in signers { (person(signer, &did(signer), false)) } } }
}

pub(super) fn members<'a>(members: impl IntoIterator<Item = &'a Member>) -> Markup {
    html! {
        ul.people {
            @for Member { signer, signed_at, .. } in members {
                (person(signer, &html! { @if let Some(at) = signed_at { "signed " (when(*at)) } }, false))
            }
        }
    }
}

/// A line with a round initial, the name, the key, and what this signer did.
fn person(signer: &Signer, did: &Markup, is_missing: bool) -> Markup {
    let name = shown_signer_name(signer);
    let letter = name.as_deref().and_then(|name| name.chars().find(|c| c.is_alphanumeric()));
    let letter = letter.map_or_else(|| "·".to_owned(), |letter| letter.to_uppercase().to_string());
    let face = format!("face face-{}", signer.key.as_bytes()[0] % FACE_COLOURS);
    html! {
        li.missing[is_missing] {
            span class=(face) aria-hidden="true" { (letter) }
            (who(signer))
            span.did { (did) }
        }
    }
}

/// Says how far something has come, as in `has 1 of 2; 1 more`.
pub(super) fn progress(tally: Tally) -> Markup {
    progress_saying(tally, &tally.to_string())
}

/// Says how far a group has come, as in `has 1 of 2; 1 more from bob or carol`.
pub(super) fn group_progress(group: &GroupProgress) -> Markup {
    progress_saying(group.tally(), &group.to_string())
}

fn progress_saying(Tally { collected, needed }: Tally, said: &str) -> Markup {
    html! {
        span.progress {
            @if needed <= MOST_DOTS {
                span.dots aria-hidden="true" { @for i in 0..needed { span.on[i < collected] {} } }
            }
            span { (said) }
        }
    }
}

pub(super) fn rule_of(group: &Group) -> String {
    rule_text(group.threshold, group.signers.len())
}

/// Shows how far a group has come: its rule, and who has signed, in the order of the signers file.
pub(super) fn group(group: &GroupProgress) -> Markup {
    let did = |member: &Member| match member.signed_at {
        Some(at) => html! { "signed " (when(at)) },
        None if group.is_met() => html! { "not needed" },
        None => html! { "not yet" },
    };
    html! {
        div.group {
            p.role-line {
                (group_progress(group))
                span.rule { (rule_text(group.threshold, group.members.len())) }
            }
            ul.people {
                @for member in &group.members {
                    (person(&member.signer, &did(member), member.signed_at.is_none()))
                }
            }
        }
    }
}

/// The project and the release in it, each with its page.
pub(super) fn release_link(project: &RepoPath, index: &RepoPath) -> Markup {
    html! {
        a href=(links::page(project)) { bdi { (links::shown_path(project)) } } " "
        a href=(links::page(index)) { bdi { (links::release_name(project, index)) } }
    }
}

/// A link to a web address outside; any other address is plain text.
pub(super) fn outside(url: &str) -> Markup {
    html! {
        @match links::outside(url) {
            Some(address) => a.wrap href=(address) rel="nofollow noopener noreferrer" { bdi { (shown_text(url)) } },
            None => bdi.wrap { (shown_text(url)) },
        }
    }
}

/// A command of the client, and where to get the client.
pub(super) fn command(line: Option<String>) -> Markup {
    html! {
        (copyable(line))
        p.meta.get { a href=(links::CLIENT) { "Get the client" } }
    }
}

/// A line to paste.
pub(super) fn copyable(line: Option<String>) -> Markup {
    html! {
        @match line {
            Some(line) => div.command {
                pre tabindex="0" data-copies="the command" {
                    code {
                        // Browsers break lines after hyphens.
                        @for (i, word) in line.split(' ').enumerate() {
                            @if i > 0 { " " }
                            @if word.starts_with("--") { span.together { (word) } } @else { (word) }
                        }
                    }
                }
            },
            None => p { "Not shown, since it would contain invisible characters." },
        }
    }
}

/// A picture for other sites, and how to show it there.
pub(super) fn badge(picture: &str, markdown: String) -> Markup {
    html! {
        a href=(picture) { "The picture" }
        details { summary { "For a README" } (copyable(Some(markdown))) }
    }
}

pub fn count(number_of: usize, one: &str, many: &str) -> String {
    format!("{} {}", shown_count(number_of), if number_of == 1 { one } else { many })
}

/// A size in the unit that people use: `8.4 MB`.
pub(super) fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let Some((exponent, unit)) = (1u32..).zip(units).filter(|(e, _)| bytes >= 1_000u64.pow(*e)).last() else {
        return count(usize::try_from(bytes).unwrap_or(usize::MAX), "byte", "bytes");
    };
    // Rounded to one digit after the point.
    let tenths = (u128::from(bytes) * 10 + u128::from(1_000u64.pow(exponent)) / 2)
        / u128::from(1_000u64.pow(exponent));
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Artifact => "Artifact signers",
        Role::Admin => "Admins",
        Role::Master => "Masters",
        Role::Revocation => "Revokers",
        Role::Builder => "Builders",
    }
}

// The log and the witnesses that a signers file names (D91).

/// The facts about the log, for a list.
pub(super) fn log_facts(log: &LogStrength) -> Markup {
    let file = &log.transparency;
    html! {
        dt { "Log that proves the newest state" }
        dd { (verifier_key(file.log())) }
        @for group in file.witnesses() {
            dt { "Witnesses, " (witness_rule(group)) " must have seen it" }
            dd { ul { @for key in &group.keys { li { (verifier_key(key)) @if group.replays(key) { ", which replays the rules" } } } } }
        }
        @if file.witnesses().is_empty() {
            dt { "Witnesses" }
            dd { "None: the log's word is enough." }
        }
        @if let Some(age) = file.max_age() {
            dt { "Oldest proof that counts" }
            dd { (shown_age(age)) }
            dt { "Witnesses that can be down" }
            dd { (log.outage_text()) }
        }
        dt { "Who could show different people different states" }
        dd { (log.collusion_text()) }
        dt { "Who could show everyone a false state" }
        dd { (log.lie_text()) }
    }
}

/// A name never stands without its key (D39).
fn verifier_key(key: &VerifierKey) -> Markup {
    html! { code.wrap data-copies="the key" { bdi { (shown_text(&key.to_string())) } } }
}
