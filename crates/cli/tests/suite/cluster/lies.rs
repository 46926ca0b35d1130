//! A database that lies: a node stops following, says at which commit, and goes on serving what it has.

use super::nodes::{Cluster, await_that, read};
use crate::support::{Person, SignersFile};

/// Three batches of one commit each, of which a node knows none; what the database makes of them; how many of them the
/// node accepts.
#[track_caller]
fn check_lie(name: &str, tamper: &str, accepted: usize) {
    let Some(cluster) = Cluster::start(2) else { return };
    let alice = Person::named("alice");
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let known = cluster.world.add_signed_release("acme/app/v0", &[&alice]);
    cluster.check_at_rest();

    cluster.cut_off(1);
    let mut heads = vec![cluster.served(0)];
    for n in 1..=3 {
        cluster.world.add_release(&alice, &format!("acme/app/v{n}"));
        heads.push(cluster.served(0));
    }
    let first: usize = cluster.postgres.sql("select max(seq) - 2 from svc_batch").parse().unwrap();
    cluster.postgres.sql(&tamper.replace("FIRST", &first.to_string()));
    cluster.ways[1].restore();

    let told = || cluster.node(1).get("/readyz");
    await_that(name, || told().status == 503 && heads.iter().any(|commit| told().text().contains(commit)));
    assert_eq!(cluster.head(1), heads[accepted], "{name}");
    read(cluster.node(1), &known);
    assert_eq!(cluster.node(1).get("/").status, 200, "{name}");
    assert_eq!(cluster.get_as(1, &alice, "/v1/pending_signatures").status, 503, "{name}");
    cluster.git(1).assert_sound();
}

#[test]
fn a_row_whose_content_was_changed_stops_a_node_before_it() {
    let tamper = "update svc_batch set body = set_byte(body, length(body) - 20, 88) where seq = FIRST + 1";
    check_lie("changed", tamper, 1);
}

#[test]
fn rows_in_another_order_stop_a_node_before_the_first_of_them() {
    let tamper = "update svc_batch as one set body = other.body, base = other.base, head = other.head \
                  from svc_batch as other \
                  where (one.seq, other.seq) in ((FIRST, FIRST + 1), (FIRST + 1, FIRST))";
    check_lie("reordered", tamper, 0);
}

#[test]
fn a_row_that_was_removed_stops_a_node_before_it_until_a_node_gives_it_back() {
    let Some(mut cluster) = Cluster::start(2) else { return };
    let alice = Person::named("alice");
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    cluster.check_at_rest();
    cluster.cut_off(1);
    for n in 1..=3 {
        cluster.world.add_release(&alice, &format!("acme/app/v{n}"));
    }
    cluster.node_mut(0).stop();
    cluster.postgres.sql("delete from svc_batch where seq = (select max(seq) - 1 from svc_batch)");
    cluster.ways[1].restore();
    let told = || cluster.node(1).get("/readyz");
    await_that("removed", || told().status == 503 && told().text().contains("is missing"));
    assert_eq!(cluster.get_as(1, &alice, "/v1/pending_signatures").status, 503);
    cluster.git(1).assert_sound();
    cluster.node_mut(0).start_again();
    cluster.check_at_rest();
}

#[test]
fn a_row_that_repeats_an_old_one_stops_a_node_before_it() {
    let tamper = "update svc_batch set body = (select body from svc_batch where seq = FIRST - 1) \
                  where seq = FIRST + 2";
    check_lie("repeated", tamper, 2);
}

#[test]
fn a_row_without_content_stops_a_node_before_it() {
    check_lie("emptied", "update svc_batch set body = '' where seq = FIRST + 1", 1);
}

#[test]
fn a_row_of_another_project_stops_a_node_before_it() {
    let Some(other) = Cluster::start(1) else { return };
    let bob = Person::named("bob");
    other.world.activate("acme/other", &SignersFile::of(1, &[&bob]), &[&bob]);
    let body = other.postgres.sql("select encode(body, 'hex') from svc_batch order by seq desc limit 1");
    let tamper = format!("update svc_batch set body = decode('{body}', 'hex') where seq = FIRST + 1");
    check_lie("another project's", &tamper, 1);
}
