//! Builds the preload library, which becomes a part of this one: `sumrate` is a single file.
//!
//! It is another kind of artifact than Cargo can have as a dependency, so Cargo is asked once more, in
//! a target folder of its own.

use std::path::Path;
use std::process::Command;

/// What is meant for the build that this script is a part of.
const OURS: [&str; 6] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTFLAGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "CLIPPY_ARGS",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET",
];

/// Environment variable: the program that links the preload library.
const LINKER: &str = "SUMRATE_PRELOAD_LINKER";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../sumrate-preload/src");
    println!("cargo:rerun-if-changed=../sumrate-preload/Cargo.toml");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let folder = Path::new(&variable("OUT_DIR")).join("preload");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["rustc", "--quiet", "--locked", "--release", "--crate-type", "cdylib"])
        .args(["--manifest-path", "../sumrate-preload/Cargo.toml", "--features", "interpose"])
        .args(["--config", "profile.release.panic=\"abort\""])
        .args(["--config", "profile.release.strip=true", "--config", "profile.release.debug=false"])
        .arg("--target-dir")
        .arg(&folder);
    let mut built = folder.clone();
    // The programs that it goes before have glibc, also where this one is static with musl.
    let target = variable("TARGET").replace("-musl", "-gnu");
    if target != variable("HOST") {
        cargo.args(["--target", &target]);
        built.push(&target);
    }
    for name in OURS {
        cargo.env_remove(name);
    }
    // The library has to load beside older glibc than the build machine's: tools/static.sh names a
    // linker for that.
    println!("cargo:rerun-if-env-changed={LINKER}");
    if let Ok(linker) = std::env::var(LINKER) {
        let name = target.replace('-', "_").to_uppercase();
        cargo.env(format!("CARGO_TARGET_{name}_LINKER"), linker);
    }
    let status = cargo.status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "the preload library could not be built ({status:?})"
    );
    let library = built.join("release/libsumrate_preload.so");
    println!("cargo:rustc-env=SUMRATE_PRELOAD_LIBRARY={}", library.display());
}
