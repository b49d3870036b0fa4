#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    latens_fuzz::folder(bytes);
});
