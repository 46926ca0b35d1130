//! What a change needs, and whose budget allows it.

use std::time::{Duration, Instant};

use countersign_core::values::path::RepoPath;
use countersign_store::budget::{Charge, MAX_HOSTS, MAX_OWNERS, MAX_PROJECTS, Need};
use countersign_store::{BudgetScope, StorageBudget, StorageLimits, machine::clock::uptime_nanos};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SECOND: Duration = Duration::from_secs(1);

/// A byte comes back to a project in a second.
const LIMITS: StorageLimits = StorageLimits {
    project: 86_400,
    owner: 2 * 86_400,
    host: 3 * 86_400,
    total: 4 * 86_400,
    project_reserved: 1_000,
};

fn budget() -> StorageBudget {
    // Starts the clock before any test looks at it.
    uptime_nanos(Instant::now());
    StorageBudget::new(LIMITS)
}

fn need(project: &str, bytes: u64) -> Need {
    let project = RepoPath::parse(project).unwrap();
    Need { project, is_established: false, is_protection: false, is_of_masters: false, bytes }
}

fn established(project: &str, bytes: u64) -> Need {
    Need { is_established: true, ..need(project, bytes) }
}

/// Stores it, or says whose budget does not allow it.
fn store(budget: &StorageBudget, need: &Need, now: Instant) -> Result<(), (BudgetScope, String)> {
    budget.charge(need, now).map(Charge::keep).map_err(|over| (over.scope, over.whose))
}

fn over(scope: BudgetScope, whose: &str) -> Result<(), (BudgetScope, String)> {
    Err((scope, whose.to_owned()))
}

const APP: &str = "https/forge.example/443/acme/app";

#[test]
fn a_day_may_be_used_at_once_and_comes_back_steadily() {
    let (budget, now) = (budget(), Instant::now());
    store(&budget, &need(APP, 86_399), now).unwrap();
    store(&budget, &need(APP, 1), now).unwrap();
    let refused = budget.charge(&need(APP, 1), now).unwrap_err();
    assert_eq!((refused.scope, refused.seconds), (BudgetScope::Project, 1));
    let refused = budget.charge(&need(APP, 100), now + SECOND).unwrap_err();
    assert_eq!(refused.seconds, 99);
    assert!(budget.charge(&need(APP, 100), now + 100 * SECOND - Duration::from_nanos(1)).is_err());
    store(&budget, &need(APP, 100), now + 100 * SECOND).unwrap();
    // However long the rest was, no more than a day's.
    let later = now + 10 * DAY;
    assert_eq!(store(&budget, &need(APP, 86_401), later), over(BudgetScope::Project, APP));
    store(&budget, &need(APP, 86_400), later).unwrap();
    assert_eq!(budget.refusals(BudgetScope::Project), 4);
}

#[test]
fn owner_host_and_all_together_have_budgets_of_their_own() {
    let (budget, now, day) = (budget(), Instant::now(), LIMITS.project);
    for project in ["https/a.example/443/x/1", "https/a.example/443/x/2"] {
        store(&budget, &need(project, day), now).unwrap();
    }
    let full = over(BudgetScope::Owner, "https/a.example/443/x");
    assert_eq!(store(&budget, &need("https/a.example/443/x/3", 1), now), full);
    assert_eq!(store(&budget, &need("https/a.example/443/x/deep/er", 1), now), full);
    let other_case = over(BudgetScope::Owner, "https/a.example/443/X");
    assert_eq!(store(&budget, &need("https/a.example/443/X/3", 1), now), other_case);
    store(&budget, &need("https/a.example/443/y/1", day), now).unwrap();
    let full = over(BudgetScope::Host, "https/a.example/443");
    assert_eq!(store(&budget, &need("https/a.example/443/z", 1), now), full);
    assert_eq!(budget.bytes_left(now), day);
    store(&budget, &need("https/a.example/444/z", day - 1), now).unwrap();
    assert_eq!(budget.bytes_left(now), 1);
    assert_eq!(store(&budget, &need("https/b.example/443/z", 2), now).unwrap_err().0, BudgetScope::Total);
    store(&budget, &need("https/b.example/443/z", 1), now).unwrap();
    assert_eq!(BudgetScope::ALL.map(|scope| budget.refusals(scope)), [0, 3, 1, 1]);
}

#[test]
fn a_change_that_one_budget_refuses_takes_nothing_from_the_others() {
    let (budget, now) = (budget(), Instant::now());
    store(&budget, &need("https/a.example/443/x/1", LIMITS.project), now).unwrap();
    store(&budget, &need("https/a.example/443/x/2", LIMITS.project), now).unwrap();
    let left = budget.bytes_left(now);
    for _ in 0..1_000 {
        assert!(store(&budget, &need("https/a.example/443/x/3", 1_000), now).is_err());
        assert!(store(&budget, &need("https/a.example/443/x/1", 1_000), now).is_err());
    }
    assert_eq!(budget.bytes_left(now), left);
    // Its own budget is whole as well, once its owner has room.
    store(&budget, &need("https/a.example/443/x/3", LIMITS.project), now + DAY).unwrap();
}

#[test]
fn others_do_not_keep_an_established_project_from_its_reserve() {
    let (budget, now) = (budget(), Instant::now());
    for n in 0..4 {
        store(&budget, &need(&format!("https/h{n}.example/443/x/1"), LIMITS.project), now).unwrap();
    }
    assert_eq!(store(&budget, &need(APP, 1), now).unwrap_err().0, BudgetScope::Total);
    store(&budget, &established(APP, 600), now).unwrap();
    store(&budget, &established(APP, 400), now).unwrap();
    assert_eq!(store(&budget, &established(APP, 1), now).unwrap_err().0, BudgetScope::Total);
    store(&budget, &established("https/forge.example/443/acme/other", 1_000), now).unwrap();
    assert!(store(&budget, &established("https/forge.example/443/acme/third", 1_001), now).is_err());
    // A project that has used up its own has no reserve.
    let full = established("https/h0.example/443/x/1", 1);
    assert_eq!(store(&budget, &full, now).unwrap_err().0, BudgetScope::Project);
}

#[test]
fn a_project_that_has_used_up_its_own_can_still_revoke_and_change_its_signers() {
    let (budget, now) = (budget(), Instant::now());
    let protect = |bytes| Need { is_protection: true, ..established(APP, bytes) };
    store(&budget, &established(APP, LIMITS.project), now).unwrap();
    assert_eq!(store(&budget, &established(APP, 1), now), over(BudgetScope::Project, APP));
    store(&budget, &protect(999), now).unwrap();
    assert_eq!(store(&budget, &established(APP, 1), now), over(BudgetScope::Project, APP));
    store(&budget, &protect(1), now).unwrap();
    assert_eq!(store(&budget, &protect(1), now), over(BudgetScope::Project, APP));
    let new = Need { is_established: false, ..protect(1) };
    assert_eq!(store(&budget, &new, now), over(BudgetScope::Project, APP), "a registration has no reserve");
}

#[test]
fn reserves_are_bounded_together() {
    let (budget, now) = (budget(), Instant::now());
    let projects = |count: u64| (0..count).map(|n| format!("https/h{n}.example/443/x/1"));
    for project in projects(4) {
        store(&budget, &need(&project, LIMITS.project), now).unwrap();
    }
    let many = LIMITS.total / LIMITS.project_reserved + 100;
    let reserve = |project: String| established(&format!("{project}/new"), LIMITS.project_reserved);
    let stored = projects(many).filter(|project| store(&budget, &reserve(project.clone()), now).is_ok());
    assert_eq!(stored.count() as u64, LIMITS.total / LIMITS.project_reserved);
}

#[test]
fn what_was_not_published_is_given_back() {
    let (budget, now) = (budget(), Instant::now());
    let charge = budget.charge(&need(APP, 86_400), now).unwrap();
    assert!(budget.charge(&need(APP, 1), now).is_err());
    assert_eq!(budget.bytes_left(now), LIMITS.total - 86_400);
    drop(charge);
    assert_eq!(budget.bytes_left(now), LIMITS.total);
    store(&budget, &need(APP, 86_400), now).unwrap();
}

#[test]
fn messages_name_whose_budget_it_is_and_the_way_out() {
    let (budget, now) = (budget(), Instant::now());
    store(&budget, &need(APP, 86_400), now).unwrap();
    let told = |need: &Need| budget.charge(need, now).unwrap_err();
    assert_eq!(
        told(&need(APP, 3)).to_string(),
        format!(
            "the project {APP} has stored what it may in a day (86400 bytes): try again in 3 s, or ask the \
             operator to raise limits.project_bytes_per_day"
        )
    );
    let large = told(&need("https/a.example/443/x", 86_401));
    assert_eq!(
        large.to_string(),
        "the project https/a.example/443/x may store 86400 bytes in a day, and this change alone has 86401: make \
         it smaller, or ask the operator to raise limits.project_bytes_per_day"
    );
    assert_eq!(large.seconds, 86_400);
}

#[test]
fn projects_without_number_are_forgotten_not_collected() {
    let now = Instant::now();
    let day = LIMITS.project;
    let app = |n: usize| format!("https/h{n}.example/443/o{n}/app");
    let filled = || {
        uptime_nanos(now);
        let budget = StorageBudget::new(StorageLimits { owner: day, host: day, ..LIMITS });
        for n in 0..MAX_PROJECTS * 2 {
            store(&budget, &need(&app(n), 1), now).unwrap();
        }
        assert_eq!(
            budget.bytes_left(now),
            LIMITS.total - 2 * MAX_PROJECTS as u64,
            "the total forgets nothing"
        );
        budget
    };
    // Whatever is remembered has no whole day left.
    let remembered = |scope: BudgetScope, project: &dyn Fn(usize) -> String| {
        let budget = filled();
        let refused = |n: &usize| {
            let charged = budget.charge(&need(&project(*n), day), now);
            charged.is_err_and(|over| over.scope == scope)
        };
        (0..MAX_PROJECTS * 2).rev().filter(refused).count()
    };
    let projects = remembered(BudgetScope::Project, &app);
    assert!((1..=MAX_PROJECTS).contains(&projects), "{projects}");
    let owners = remembered(BudgetScope::Owner, &|n| format!("https/h{n}.example/443/o{n}/new"));
    assert!((1..=MAX_OWNERS).contains(&owners), "{owners}");
    let hosts = remembered(BudgetScope::Host, &|n| format!("https/h{n}.example/443/new/new"));
    assert!((1..=MAX_HOSTS).contains(&hosts), "{hosts}");
}
