//! Notes about where a file lies.

use countersign_store::objects::spot::{Known, MAX_OFFSET, MAX_PACK, Spot};

#[test]
fn what_fits_is_kept_and_what_does_not_is_unknown() {
    let at = |pack, offset| Known::At { pack, offset };
    let last = at(MAX_PACK - 1, MAX_OFFSET);
    for known in [Known::Nothing, Known::Elsewhere, at(0, 0), at(0, 12), at(7, MAX_OFFSET), last] {
        let spot = Spot::default();
        spot.note(known);
        assert_eq!((spot.known(), spot.clone().known(), Spot::of(known).known()), (known, known, known));
    }
    for too_large in [at(MAX_PACK, 0), at(u64::MAX, 0), at(0, MAX_OFFSET + 1)] {
        assert_eq!(Spot::of(too_large).known(), Known::Nothing);
    }
}
