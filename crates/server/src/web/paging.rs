//! Long lists, a page at a time.

use std::ops::Range;

use maud::{Markup, html};

/// One page of a list, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    page: usize,
    per_page: usize,
    total: usize,
}

impl Paging {
    /// The page with this number; `None` if there is no such page. The first page always exists.
    pub fn of(page: Option<usize>, per_page: usize, total: usize) -> Option<Self> {
        let paging = Self { page: page?, per_page, total };
        (paging.page <= paging.pages()).then_some(paging)
    }

    /// The positions of the page in the list.
    pub fn range(&self) -> Range<usize> {
        let from = (self.page - 1) * self.per_page;
        from..self.total.min(from + self.per_page)
    }

    /// The range of the page in a list in reverse order.
    pub fn range_from_end(&self) -> Range<usize> {
        let Range { start, end } = self.range();
        self.total - end..self.total - start
    }

    pub(super) fn page(&self) -> usize {
        self.page
    }

    fn pages(&self) -> usize {
        self.total.div_ceil(self.per_page).max(1)
    }

    /// Links to the other pages, if there are any. `target` is the address up to the number.
    pub fn links(&self, what: &str, target: &str) -> Markup {
        self.links_named(what, target, ["Previous", "Next"])
    }

    /// Links to the neighbouring pages of a list with the newest first.
    pub(super) fn links_by_age(&self, what: &str, target: &str) -> Markup {
        self.links_named(what, target, ["Newer", "Older"])
    }

    fn links_named(&self, what: &str, target: &str, [back, on]: [&str; 2]) -> Markup {
        let Self { page, .. } = *self;
        let pages = self.pages();
        let link = |to: usize, name: &str, rel: &str| {
            html! { a href={ (target) (to) } rel=(rel) { (name) } }
        };
        let near: Vec<usize> =
            (1..=pages).filter(|other| *other == 1 || *other == pages || other.abs_diff(page) <= 1).collect();
        html! {
            @if pages > 1 {
                nav.pager aria-label={ "Pages of " (what) } {
                    @if page > 1 { (link(page - 1, back, "prev")) }
                    @for (i, other) in near.iter().enumerate() {
                        @if i > 0 && near[i - 1] + 1 < *other { span aria-hidden="true" { "…" } }
                        @if *other == page {
                            span aria-current="page" { (page) }
                        } @else {
                            a href={ (target) (other) } aria-label={ "Page " (other) } { (other) }
                        }
                    }
                    @if page < pages { (link(page + 1, on, "next")) }
                }
            }
        }
    }
}
