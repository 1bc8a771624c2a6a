//! The functions of the C library that this one stands in for.
#![allow(unsafe_code)] // exported C functions: their callers keep the C library's promises
#![allow(unreachable_pub)] // reached by the dynamic loader

use std::sync::OnceLock;

use libc::{
    addrinfo, c_char, c_int, c_uint, c_void, hostent, mmsghdr, msghdr, pid_t,
    posix_spawn_file_actions_t, posix_spawnattr_t, sockaddr, socklen_t, ssize_t,
};

use crate::config::{Config, VARIABLE};
use crate::original::{self, Exec, ExecEnv, Original, Spawn, Strings, set_errno, set_h_errno};
use crate::resolve::Answer;
use crate::{connect, datagram, exec, notice, resolve};

unsafe extern "C" {
    /// The environment of this process (environ(7)).
    static environ: Strings;
}

static CONFIG: OnceLock<Config> = OnceLock::new();
/// Values of `h_errno` (netdb.h).
const NO_RECOVERY: c_int = 3;

/// Runs when the library is loaded, before the program has threads.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

extern "C" fn on_load() {
    original::look_up_all();
    if let Some(file) = config().names.as_deref() {
        crate::names::share(file);
    }
}

/// The configuration from the environment. Where it is missing or damaged, nothing leaves this machine.
fn config() -> &'static Config {
    CONFIG.get_or_init(|| {
        let found = std::env::var(VARIABLE).ok().and_then(|text| Config::parse(&text));
        found.unwrap_or_else(|| {
            notice::write(&[
                VARIABLE.as_bytes(),
                b" is missing from the environment, or damaged: this program reaches nothing but this \
                  machine; start it with `sumrate run`, or without LD_PRELOAD",
            ]);
            Config::closed()
        })
    })
}

fn failed(error: c_int) -> c_int {
    set_errno(error);
    -1
}

fn missing() -> c_int {
    failed(libc::ENOSYS)
}

/// `connect(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(
    socket: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller's promise, here and in all that follow.
    let ours = unsafe { connect::connect(config(), socket, address, length) };
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
    // A name that must be a number is asked of nobody.
    let answer =
        if numeric { Answer::Here } else { unsafe { resolve::look(config(), name, family) } };
    match (answer.ask_for(name), &answer) {
        (Err(error), _) => error,
        (Ok(numeric), Answer::StandIn(_)) => unsafe {
            resolve::getaddrinfo(original, (name, numeric), service, hints, result)
        },
        (Ok(name), _) => unsafe { original(name, service, hints, result) },
    }
}

/// `getaddrinfo_a(3)`, which asks in threads of the C library: refused for names of the far end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfo_a(
    mode: c_int,
    list: *const *const resolve::Request,
    count: c_int,
    event: *mut c_void,
) -> c_int {
    match original::GETADDRINFO_A.get() {
        Some(original) if !unsafe { resolve::has_far(config(), list, count) } => unsafe {
            original(mode, list, count, event)
        },
        _ => {
            set_errno(libc::ENOSYS);
            libc::EAI_SYSTEM
        }
    }
}

/// The failure of a `gethostbyname`.
fn no_host() -> *mut hostent {
    set_h_errno(NO_RECOVERY);
    std::ptr::null_mut()
}

/// `gethostbyname(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname(name: *const c_char) -> *mut hostent {
    let answer = unsafe { resolve::look(config(), name, libc::AF_INET) };
    match (answer.ask_for(name), original::GETHOSTBYNAME.get()) {
        (Ok(name), Some(original)) => unsafe { original(name) },
        _ => no_host(),
    }
}

/// `gethostbyname2(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname2(name: *const c_char, family: c_int) -> *mut hostent {
    let answer = unsafe { resolve::look(config(), name, family) };
    match (answer.ask_for(name), original::GETHOSTBYNAME2.get()) {
        (Ok(name), Some(original)) => unsafe { original(name, family) },
        _ => no_host(),
    }
}

/// The failure of a `gethostbyname_r`.
unsafe fn no_host_r(result: *mut *mut hostent, error: *mut c_int) -> c_int {
    unsafe {
        if let Some(result) = result.as_mut() {
            *result = std::ptr::null_mut();
        }
        if let Some(error) = error.as_mut() {
            *error = NO_RECOVERY;
        }
    }
    libc::EAGAIN
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
    let answer = unsafe { resolve::look(config(), name, libc::AF_INET) };
    match (answer.ask_for(name), original::GETHOSTBYNAME_R.get()) {
        (Ok(name), Some(original)) => unsafe {
            original(name, entry, buffer, length, result, error)
        },
        _ => unsafe { no_host_r(result, error) },
    }
}

/// `gethostbyname2_r(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname2_r(
    name: *const c_char,
    family: c_int,
    entry: *mut hostent,
    buffer: *mut c_char,
    length: usize,
    result: *mut *mut hostent,
    error: *mut c_int,
) -> c_int {
    let answer = unsafe { resolve::look(config(), name, family) };
    match (answer.ask_for(name), original::GETHOSTBYNAME2_R.get()) {
        (Ok(name), Some(original)) => unsafe {
            original(name, family, entry, buffer, length, result, error)
        },
        _ => unsafe { no_host_r(result, error) },
    }
}

/// `sendto(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    socket: c_int,
    bytes: *const c_void,
    length: usize,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    let to = (address, address_length);
    match (unsafe { datagram::refusal(config(), (socket, flags), to) }, original::SENDTO.get()) {
        (Some(error), _) => failed(error) as ssize_t,
        (None, Some(original)) => unsafe {
            original(socket, bytes, length, flags, address, address_length)
        },
        (None, None) => missing() as ssize_t,
    }
}

/// `sendmsg(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let refusal = unsafe { datagram::refusal_of_message(config(), (socket, flags), message) };
    match (refusal, original::SENDMSG.get()) {
        (Some(error), _) => failed(error) as ssize_t,
        (None, Some(original)) => unsafe { original(socket, message, flags) },
        (None, None) => missing() as ssize_t,
    }
}

/// `sendmmsg(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(
    socket: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    let all = (messages.cast_const(), count);
    let refusal = unsafe { datagram::refusal_of_messages(config(), (socket, flags), all) };
    let count = match refusal {
        Some((0, error)) => return failed(error),
        Some((before, _)) => before,
        None => count,
    };
    match original::SENDMMSG.get() {
        Some(original) => unsafe { original(socket, messages, count, flags) },
        None => missing(),
    }
}

unsafe fn exec(
    original: &Original<Exec>,
    (program, search): (*const c_char, bool),
    arguments: Strings,
) -> c_int {
    let own = unsafe { environ };
    if let Some(error) = unsafe { exec::check(config(), (program, search), own) } {
        return failed(error);
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
    if let Some(error) = unsafe { exec::check(config(), (program, search), environment) } {
        return failed(error);
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
    if let Some(error) = unsafe { exec::check(config(), (program, search), environment) } {
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
