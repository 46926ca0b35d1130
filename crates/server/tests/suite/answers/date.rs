//! The `Date` header.

use countersign_server::serve::answer::write_date;
use countersign_store::machine::clock::LAST_SECOND;

#[test]
fn a_date_is_written_as_far_as_its_calendar_goes() {
    assert_eq!(write_date(784_887_151).unwrap(), "Tue, 15 Nov 1994 08:12:31 GMT");
    assert_eq!(write_date(0).unwrap(), "Thu, 01 Jan 1970 00:00:00 GMT");
    let last = u64::try_from(LAST_SECOND).unwrap();
    assert_eq!(write_date(last).unwrap(), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(write_date(last + 1), None);
}
