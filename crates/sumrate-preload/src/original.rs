//! The functions that this library stands in for, as the C library has them.
#![allow(unsafe_code)] // dlsym gives an address of no type

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    RTLD_NEXT, addrinfo, c_char, c_int, c_uint, c_void, hostent, mmsghdr, msghdr, pid_t,
    posix_spawn_file_actions_t, posix_spawnattr_t, sockaddr, socklen_t, ssize_t,
};

use crate::resolve::Request;

pub(crate) type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;
pub(crate) type GetPeerName = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
pub(crate) type GetAddrInfo = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const addrinfo,
    *mut *mut addrinfo,
) -> c_int;
pub(crate) type GetHostByName = unsafe extern "C" fn(*const c_char) -> *mut hostent;
pub(crate) type GetHostByNameR = unsafe extern "C" fn(
    *const c_char,
    *mut hostent,
    *mut c_char,
    usize,
    *mut *mut hostent,
    *mut c_int,
) -> c_int;
pub(crate) type GetHostByName2 = unsafe extern "C" fn(*const c_char, c_int) -> *mut hostent;
pub(crate) type GetHostByName2R = unsafe extern "C" fn(
    *const c_char,
    c_int,
    *mut hostent,
    *mut c_char,
    usize,
    *mut *mut hostent,
    *mut c_int,
) -> c_int;
pub(crate) type GetAddrInfoA =
    unsafe extern "C" fn(c_int, *const *const Request, c_int, *mut c_void) -> c_int;
pub(crate) type SendTo =
    unsafe extern "C" fn(c_int, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> ssize_t;
pub(crate) type SendMsg = unsafe extern "C" fn(c_int, *const msghdr, c_int) -> ssize_t;
pub(crate) type SendMmsg = unsafe extern "C" fn(c_int, *mut mmsghdr, c_uint, c_int) -> c_int;
/// Arguments or environment of a program.
pub(crate) type Strings = *const *const c_char;
pub(crate) type Exec = unsafe extern "C" fn(*const c_char, Strings) -> c_int;
pub(crate) type ExecEnv = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
pub(crate) type Spawn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const posix_spawn_file_actions_t,
    *const posix_spawnattr_t,
    Strings,
    Strings,
) -> c_int;

/// One function, looked up once.
pub(crate) struct Original<F> {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    function: std::marker::PhantomData<F>,
}

impl<F: Copy> Original<F> {
    const fn new(name: &'static CStr) -> Self {
        let found = AtomicPtr::new(ptr::null_mut());
        Self { name, found, function: std::marker::PhantomData }
    }

    /// The function; `None` if the C library has none of this name.
    pub(crate) fn get(&self) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: the name ends with a zero byte.
            found = unsafe { libc::dlsym(RTLD_NEXT, self.name.as_ptr()) };
            self.found.store(found, Ordering::Relaxed);
        }
        // SAFETY: the C library's function of this name has the type that its static gives it.
        (!found.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
    }
}

pub(crate) static CONNECT: Original<Connect> = Original::new(c"connect");
pub(crate) static GETPEERNAME: Original<GetPeerName> = Original::new(c"getpeername");
pub(crate) static GETADDRINFO: Original<GetAddrInfo> = Original::new(c"getaddrinfo");
pub(crate) static GETHOSTBYNAME: Original<GetHostByName> = Original::new(c"gethostbyname");
pub(crate) static GETHOSTBYNAME_R: Original<GetHostByNameR> = Original::new(c"gethostbyname_r");
pub(crate) static GETHOSTBYNAME2: Original<GetHostByName2> = Original::new(c"gethostbyname2");
pub(crate) static GETHOSTBYNAME2_R: Original<GetHostByName2R> = Original::new(c"gethostbyname2_r");
pub(crate) static GETADDRINFO_A: Original<GetAddrInfoA> = Original::new(c"getaddrinfo_a");
pub(crate) static SENDTO: Original<SendTo> = Original::new(c"sendto");
pub(crate) static SENDMSG: Original<SendMsg> = Original::new(c"sendmsg");
pub(crate) static SENDMMSG: Original<SendMmsg> = Original::new(c"sendmmsg");
pub(crate) static EXECV: Original<Exec> = Original::new(c"execv");
pub(crate) static EXECVP: Original<Exec> = Original::new(c"execvp");
pub(crate) static EXECVE: Original<ExecEnv> = Original::new(c"execve");
pub(crate) static EXECVPE: Original<ExecEnv> = Original::new(c"execvpe");
pub(crate) static POSIX_SPAWN: Original<Spawn> = Original::new(c"posix_spawn");
pub(crate) static POSIX_SPAWNP: Original<Spawn> = Original::new(c"posix_spawnp");

/// Looks all of them up, so that none has to be between `vfork` and `exec`.
pub(crate) fn look_up_all() {
    let _ = (CONNECT.get(), GETPEERNAME.get(), GETADDRINFO.get(), GETHOSTBYNAME.get());
    let _ = (GETHOSTBYNAME_R.get(), EXECV.get(), EXECVP.get(), EXECVE.get(), EXECVPE.get());
    let _ = (POSIX_SPAWN.get(), POSIX_SPAWNP.get());
    let _ = (GETHOSTBYNAME2.get(), GETHOSTBYNAME2_R.get(), GETADDRINFO_A.get());
    let _ = (SENDTO.get(), SENDMSG.get(), SENDMMSG.get());
}

unsafe extern "C" {
    fn __h_errno_location() -> *mut c_int;
}

/// Sets the error of `gethostbyname` and its kin.
pub(crate) fn set_h_errno(error: c_int) {
    // SAFETY: the calling thread's own h_errno.
    unsafe { *__h_errno_location() = error };
}

/// Sets the error of a call that has failed.
pub(crate) fn set_errno(error: c_int) {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = error };
}

/// The error of the last call of this thread that failed.
pub(crate) fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}
