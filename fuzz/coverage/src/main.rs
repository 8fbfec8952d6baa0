//! Runs the target that `MANGROVE_FUZZ_TARGET` names, under libFuzzer.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use mangrove_fuzz::Target;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fuzz_target!(|input: &[u8]| -> Corpus {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("MANGROVE_FUZZ_TARGET").expect("MANGROVE_FUZZ_TARGET names a target");
        Target::find(&name).unwrap_or_else(|| panic!("there is no target {name}"))
    });
    // Inputs that the target refuses are kept, too, if they reach a new branch: half of a decoder is refusals.
    (target.run)(input);
    Corpus::Keep
});
