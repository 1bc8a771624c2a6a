//! Compiles what is tested in user space for it, and the eBPF programs with clang.
//!
//! Without clang the crate builds all the same and says at run time what is missing.

use std::path::Path;
use std::process::Command;

const PROGRAMS: [&str; 4] = ["lia", "olia", "balia", "reno"];

fn main() {
    println!("cargo:rustc-check-cfg=cfg(programs)");
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    cc::Build::new()
        .files(["bpf/arithmetic.c", "bpf/subflow.c"])
        .warnings_into_errors(true)
        .flag("-Wno-unused-parameter")
        .compile("sumrate_cc_tested");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    if Command::new(&clang).arg("--version").output().is_err() {
        println!("cargo:warning={clang} is missing: lia, olia and balia are not built in");
        return;
    }
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let build = number_of_sources();
    println!("cargo:rustc-env=SUMRATE_CC_BUILD={build}");
    for name in PROGRAMS {
        let object = Path::new(&out).join(format!("{name}.bpf.o"));
        let status = Command::new(&clang)
            .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c"])
            .arg(format!("-DBUILD={build}"))
            .arg(format!("bpf/{name}.bpf.c"))
            .arg("-o")
            .arg(&object)
            .status();
        assert!(
            status.as_ref().is_ok_and(std::process::ExitStatus::success),
            "{clang} does not compile bpf/{name}.bpf.c ({status:?}); it must be 12 or newer"
        );
    }
    println!("cargo:rustc-cfg=programs");
}

/// Six hexadecimal digits of everything that the programs are made of (FNV-1a).
fn number_of_sources() -> String {
    let mut files: Vec<_> = std::fs::read_dir("bpf")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    let bytes = files.iter().flat_map(|file| std::fs::read(file).unwrap_or_default());
    let hash = bytes
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{:06x}", hash >> 8)
}
