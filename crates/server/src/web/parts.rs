//! Building blocks of pages. Every text from a stranger passes `shown_text` or one of its relatives (D39), and the
//! templates escape it. A name never appears without its key.

use crate::web::overview::{GroupProgress, Member, release::ReleaseState};
use countersign_core::{
    documents::signers::Signer,
    values::{key::PublicKey, path::RepoPath, shown::shown_text, time::Timestamp},
};
use countersign_explain::signers::shown_signer_name;
use maud::{Markup, html};

use super::links;

pub(super) fn search_form(words: &str) -> Markup {
    html! {
        form.search role="search" action="/" method="get" {
            label for="q" { "Search projects" }
            div {
                input #q type="search" name="q" value=(words) maxlength="200" autocomplete="off"
                    placeholder="github.com/acme";
                button { "Search" }
            }
        }
    }
}

/// The path from all projects to here. Each directory above has its own page.
pub(super) fn crumbs(path: &RepoPath) -> Markup {
    let mut above: Vec<RepoPath> = path.self_and_ancestors().collect();
    above.reverse();
    // Scheme, host and port count as one directory.
    let above = above.get(2..).unwrap_or_default();
    html! {
        nav.crumbs aria-label="Where this is" {
            ol {
                li { a href="/" { "Projects" } }
                @for (i, dir) in above.iter().enumerate() {
                    li {
                        @let name = if i == 0 { links::shown_path(dir) } else { shown_text(dir.file_name()) };
                        @if dir == path {
                            span aria-current="page" { (name) }
                        } @else {
                            a href=(links::page(dir)) { (name) }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn state(state: ReleaseState) -> Markup {
    match state {
        ReleaseState::Collecting => html! { span.state.open { "collecting" } },
        ReleaseState::Complete => html! { span.state.good { "complete" } },
        ReleaseState::Revoked => html! { span.state.bad { "revoked" } },
    }
}

pub(super) fn when(time: Timestamp) -> Markup {
    let exact = time.to_string();
    let (date, clock) = exact.split_once('T').unwrap_or((&exact, ""));
    let clock = clock.split(['.', 'Z']).next().unwrap_or_default();
    html! { time datetime=(exact) { (date) " " (clock) " UTC" } }
}

pub(super) fn key(key: PublicKey) -> Markup {
    html! { code.key { (key) } }
}

pub(super) fn who(signer: &Signer) -> Markup {
    html! {
        span.who {
            @if let Some(name) = shown_signer_name(signer) { span.name { (name) } " " }
            (key(signer.key))
        }
    }
}

pub(super) fn people<'a>(signers: impl IntoIterator<Item = &'a Signer>) -> Markup {
    html! { ul.people { @for signer in signers { li { (who(signer)) } } } }
}

pub(super) fn members<'a>(members: impl IntoIterator<Item = &'a Member>) -> Markup {
    html! {
        ul.people {
            @for member in members {
                li {
                    (who(&member.signer))
                    @if let Some(at) = member.signed_at { span.at { "signed " (when(at)) } }
                }
            }
        }
    }
}

/// A bar with its meaning in words beside it.
pub(super) fn bar(collected: usize, needed: usize, what: &str) -> Markup {
    html! {
        div.bar {
            progress max=(needed) value=(collected.min(needed)) aria-label=(what) {}
            span { (collected) " of " (needed) " needed" }
        }
    }
}

/// How far a group has come: who has signed and who has not.
pub(super) fn group(group: &GroupProgress, what: &str) -> Markup {
    let not_signed = group.not_signed().count();
    html! {
        div.group {
            (bar(group.collected, group.threshold, what))
            @if group.collected > 0 { (members(group.signed())) }
            @if not_signed > 0 {
                p.open-part.enough[group.is_met()] {
                    @if group.is_met() {
                        "Not needed any more:"
                    } @else if group.missing_count() == not_signed {
                        "Still missing:"
                    } @else {
                        "Still missing, any " (group.missing_count()) " of:"
                    }
                }
                (people(group.not_signed().map(|member| &member.signer)))
            }
        }
    }
}

/// A link to a web address outside; any other address is plain text.
pub(super) fn outside(url: &str) -> Markup {
    html! {
        @match links::outside(url) {
            Some(address) => a.wrap href=(address) rel="nofollow noopener noreferrer" { (shown_text(url)) },
            None => span.wrap { (shown_text(url)) },
        }
    }
}

pub(super) fn command(line: Option<String>) -> Markup {
    html! {
        @match line {
            Some(line) => pre.command tabindex="0" { code { (line) } },
            None => p { "Not shown, since it would contain invisible characters." },
        }
    }
}

/// With separators for thousands.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

pub(super) fn count(number_of: usize, one: &str, many: &str) -> String {
    format!("{} {}", number(number_of as u64), if number_of == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        for (given, shown) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(given), shown);
        }
        assert_eq!((count(1, "key", "keys"), count(2, "key", "keys")), ("1 key".into(), "2 keys".into()));
    }
}
