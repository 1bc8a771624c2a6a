//! The functions of the C library that this one stands in for.
#![allow(unsafe_code)] // exported C functions: their callers keep the C library's promises
#![allow(unreachable_pub)] // reached by the dynamic loader

use std::sync::OnceLock;

use libc::{
    addrinfo, c_char, c_int, hostent, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t,
    sockaddr, socklen_t,
};

use crate::config::{Config, VARIABLE};
use crate::original::{self, Exec, ExecEnv, Original, Spawn, Strings, set_errno};
use crate::{connect, exec, resolve};

static CONFIG: OnceLock<Option<Config>> = OnceLock::new();

/// Runs when the library is loaded, before the program has threads.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

extern "C" fn on_load() {
    original::look_up_all();
    if let Some(file) = config().and_then(|config| config.names.as_deref()) {
        crate::names::share(file);
    }
}

/// What the environment says; nothing is stood in for without it.
fn config() -> Option<&'static Config> {
    CONFIG.get_or_init(|| Config::parse(std::env::var(VARIABLE).ok()?.as_str())).as_ref()
}

fn missing() -> c_int {
    set_errno(libc::ENOSYS);
    -1
}

/// `connect(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(
    socket: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller's promise, here and in all that follow.
    let ours =
        config().and_then(|config| unsafe { connect::connect(config, socket, address, length) });
    match (ours, original::CONNECT.get()) {
        (Some(outcome), _) => outcome,
        (None, Some(original)) => unsafe { original(socket, address, length) },
        (None, None) => missing(),
    }
}

/// `getpeername(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(
    socket: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    unsafe { connect::getpeername(socket, address, length) }
}

/// `getaddrinfo(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfo(
    name: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    let Some(original) = original::GETADDRINFO.get() else { return libc::EAI_SYSTEM };
    let (family, numeric) = match unsafe { hints.as_ref() } {
        Some(hints) => (hints.ai_family, hints.ai_flags & libc::AI_NUMERICHOST != 0),
        None => (libc::AF_UNSPEC, false),
    };
    let stand_in = config()
        .filter(|_| !numeric)
        .and_then(|config| unsafe { resolve::stand_in(config, name, family) });
    match stand_in {
        Some(numeric) => unsafe {
            resolve::getaddrinfo(original, (name, &numeric), service, hints, result)
        },
        None => unsafe { original(name, service, hints, result) },
    }
}

/// `gethostbyname(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname(name: *const c_char) -> *mut hostent {
    let Some(original) = original::GETHOSTBYNAME.get() else { return std::ptr::null_mut() };
    let stand_in =
        config().and_then(|config| unsafe { resolve::stand_in(config, name, libc::AF_INET) });
    unsafe { original(stand_in.as_ref().map_or(name, resolve::Numeric::as_ptr)) }
}

/// `gethostbyname_r(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname_r(
    name: *const c_char,
    entry: *mut hostent,
    buffer: *mut c_char,
    length: usize,
    result: *mut *mut hostent,
    error: *mut c_int,
) -> c_int {
    let Some(original) = original::GETHOSTBYNAME_R.get() else { return libc::ENOSYS };
    let stand_in =
        config().and_then(|config| unsafe { resolve::stand_in(config, name, libc::AF_INET) });
    let name = stand_in.as_ref().map_or(name, resolve::Numeric::as_ptr);
    unsafe { original(name, entry, buffer, length, result, error) }
}

/// The error of a program that is not to be started.
unsafe fn refused(program: *const c_char, search: bool) -> Option<c_int> {
    config().and_then(|config| unsafe { exec::check(config, program, search) })
}

unsafe fn exec(
    original: &Original<Exec>,
    (program, search): (*const c_char, bool),
    arguments: Strings,
) -> c_int {
    if let Some(error) = unsafe { refused(program, search) } {
        set_errno(error);
        return -1;
    }
    match original.get() {
        Some(original) => unsafe { original(program, arguments) },
        None => missing(),
    }
}

unsafe fn exec_env(
    original: &Original<ExecEnv>,
    (program, search): (*const c_char, bool),
    (arguments, environment): (Strings, Strings),
) -> c_int {
    if let Some(error) = unsafe { refused(program, search) } {
        set_errno(error);
        return -1;
    }
    match original.get() {
        Some(original) => unsafe { original(program, arguments, environment) },
        None => missing(),
    }
}

/// `execv(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(program: *const c_char, arguments: Strings) -> c_int {
    unsafe { exec(&original::EXECV, (program, false), arguments) }
}

/// `execvp(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(program: *const c_char, arguments: Strings) -> c_int {
    unsafe { exec(&original::EXECVP, (program, true), arguments) }
}

/// `execve(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    program: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    unsafe { exec_env(&original::EXECVE, (program, false), (arguments, environment)) }
}

/// `execvpe(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(
    program: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    unsafe { exec_env(&original::EXECVPE, (program, true), (arguments, environment)) }
}

/// What `posix_spawn` is given besides the program.
type SpawnRest = (*const posix_spawn_file_actions_t, *const posix_spawnattr_t, Strings, Strings);

unsafe fn spawn(
    original: &Original<Spawn>,
    pid: *mut pid_t,
    (program, search): (*const c_char, bool),
    (actions, attributes, arguments, environment): SpawnRest,
) -> c_int {
    if let Some(error) = unsafe { refused(program, search) } {
        return error;
    }
    match original.get() {
        Some(original) => unsafe {
            original(pid, program, actions, attributes, arguments, environment)
        },
        None => libc::ENOSYS,
    }
}

/// `posix_spawn(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    program: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    let rest = (actions, attributes, arguments, environment);
    unsafe { spawn(&original::POSIX_SPAWN, pid, (program, false), rest) }
}

/// `posix_spawnp(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    program: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    let rest = (actions, attributes, arguments, environment);
    unsafe { spawn(&original::POSIX_SPAWNP, pid, (program, true), rest) }
}
