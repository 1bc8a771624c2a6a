//! Settings of the kernel under /proc/sys/net.

/// A setting, without white space around it.
pub(super) fn read(key: &str) -> Option<String> {
    let path = format!("/proc/sys/net/{}", key.replace('.', "/"));
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The setting of an interface, whose name may hold dots.
pub(super) fn of_interface(interface: &str, key: &str) -> Option<u32> {
    let path = format!("/proc/sys/net/ipv4/conf/{interface}/{key}");
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The command that changes a setting now.
pub(super) fn set(key: &str, value: &str) -> String {
    let value = if value.contains(' ') { format!("'{value}'") } else { value.to_owned() };
    format!("sysctl -w net.{key}={value}")
}
