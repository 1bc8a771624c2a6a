//! What a disk, a backup or an editor can leave in the state directory.
#![allow(clippy::panic, clippy::expect_used)] // this is what finds

use std::path::Path;

use super::credential::CredentialFile;
use super::server_key::ServerKey;
use super::state::{StateError, UsageFile, check_version_file, parse, parse_credential};

/// Longest text of an error: place, line and column, and nothing of the file's content.
const ERROR_MAX: usize = 200;

fn place() -> &'static Path {
    Path::new("state/fuzz.json")
}

fn says_little(error: &StateError) {
    let text = error.to_string();
    assert!(text.len() <= ERROR_MAX, "an error quotes the file: {text}");
}

/// A credential's file: what is read is what would be written, and no secret is shown.
pub fn credential(data: &[u8]) {
    let credential = match parse_credential(place(), data) {
        Ok(credential) => credential,
        Err(error) => return says_little(&error),
    };
    let written =
        serde_json::to_vec(&CredentialFile::from(&credential)).expect("it can be written");
    let again = parse_credential(place(), &written).ok();
    assert_eq!(again.as_ref(), Some(&credential));
    let shown = format!("{:?}", credential.secret);
    assert!(!shown.contains(&credential.secret.to_base64()), "a secret is shown");
}

/// What a credential has used.
pub fn usage(data: &[u8]) {
    match parse::<UsageFile>(place(), data) {
        Ok(file) => {
            let written = serde_json::to_vec(&file).expect("it can be written");
            let again = parse::<UsageFile>(place(), &written).map(|file| file.bytes);
            assert_eq!(again.ok(), Some(file.bytes));
        }
        Err(error) => says_little(&error),
    }
}

/// The version of the whole directory.
pub fn version(data: &[u8]) {
    if let Err(error) = check_version_file(place(), data) {
        says_little(&error);
    }
}

/// The server's key and its certificate, in this order, divided by the first byte.
pub fn server_key(data: &[u8]) {
    let Some((&length, data)) = data.split_first() else { return };
    let (key, certificate) = data.split_at(usize::from(length).min(data.len()));
    if let Ok(parsed) = ServerKey::from_parts(key.to_vec(), certificate.to_vec()) {
        assert_eq!((parsed.pkcs8(), parsed.certificate().as_ref()), (key, certificate));
    }
}
