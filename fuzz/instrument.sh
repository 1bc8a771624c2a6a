#!/bin/sh
# A compiler for this workspace's own crates (RUSTC_WORKSPACE_WRAPPER): with the counters that libFuzzer
# reads, debug assertions and overflow checks. It needs no nightly compiler; only the sanitizers would.
case " $* " in
*" --crate-name build_script_build "* | *" --print "*) exec "$@" ;;
esac
exec "$@" -C passes=sancov-module -C codegen-units=1 \
    -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares \
    -C debug-assertions=on -C overflow-checks=on
