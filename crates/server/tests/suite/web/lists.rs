use countersign_server::web::{parts::count, visit::Paging};

#[test]
fn pages_cover_a_list_without_gaps() {
    let of = |page, total| Paging::of(Some(page), 50, total).map(|paging| paging.range());
    assert_eq!((of(1, 0), of(2, 0)), (Some(0..0), None));
    assert_eq!((of(1, 50), of(2, 50)), (Some(0..50), None));
    assert_eq!((of(2, 51), of(3, 51)), (Some(50..51), None));
    assert_eq!(of(usize::MAX, 51), None);
    assert_eq!(Paging::of(None, 50, 51), None);
    assert_eq!(Paging::of(Some(2), 50, 51).unwrap().range_from_end(), 0..1);
    assert_eq!(Paging::of(Some(1), 50, 51).unwrap().range_from_end(), 1..51);
}

#[test]
fn the_way_to_other_pages_is_short() {
    let links = Paging::of(Some(50), 10, 1_000).unwrap().links("x", "/?page=").into_string();
    for page in [1, 49, 51, 100] {
        assert!(links.contains(&format!("href=\"/?page={page}\"")), "{links}");
    }
    assert_eq!(links.matches("<a ").count(), 6);
    assert!(links.contains("aria-current=\"page\">50<"), "{links}");
    assert_eq!(Paging::of(Some(1), 10, 10).unwrap().links("x", "/").into_string(), "");
}

#[test]
fn numbers_are_easy_to_read() {
    assert_eq!(count(1_000, "key", "keys"), "1,000 keys");
    assert_eq!((count(1, "key", "keys"), count(2, "key", "keys")), ("1 key".into(), "2 keys".into()));
}
