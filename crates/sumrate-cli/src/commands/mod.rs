//! Each command in a file of its own; `setup` turns flags into configurations and refuses bad ones
//! before anything starts.

mod bench;
mod capture;
mod cc;
mod config;
mod cp;
mod cp_progress;
mod credential;
mod dial;
mod doctor;
mod doors;
mod error;
mod event;
mod explain;
mod far;
mod first;
mod keep;
mod manual;
mod observe;
mod operand;
mod outage;
mod path;
mod reach;
mod reload;
mod reloading;
mod reports;
mod run;
#[cfg(test)]
mod secrets_tests;
mod serve;
mod servers;
mod setup;
mod status;
mod stopping;
mod top;
mod up;
mod wishes;

pub use bench::bench;
pub use cc::{AlgorithmReport, CC_SCHEMA, CcReport, GroupReport, cc};
pub use config::{CONFIG_SCHEMA, ConfigReport, config};
pub use cp::{CP_SCHEMA, CpError, CpEvent, CpLine, cp};
pub use credential::{CREDENTIAL_SCHEMA, CredentialReport, CredentialSummary, credential};
pub use doctor::{DOCTOR_SCHEMA, DoctorReport, doctor};
pub use error::{CommandError, ERROR_SCHEMA, ErrorReport};
pub use event::{PathSummary, SERVE_SCHEMA, ServeEvent, ServeLine, UP_SCHEMA, UpEvent, UpLine};
pub use explain::explain;
pub use manual::{MAN_SCHEMA, ManReport, completions, man};
pub use operand::OperandError;
pub use path::{PATH_SCHEMA, PathListReport, PathSummaryReport, path};
pub use reload::{RELOAD_SCHEMA, ReloadAnswer, ReloadError, reload};
pub use run::{RunError, run};
pub use serve::serve;
pub use setup::SetupError;
pub use status::status;
pub use top::top;
pub use up::up;

use sumrate_cc::Algorithm;

use crate::args::{Command, CongestionArg, ProtocolArgs};
use crate::coupling::CouplingState;
use crate::privileges::{Needs, lower};

/// What has to be done before there are threads: daemons give up what they do not need.
///
/// # Errors
/// [`CommandError`]
pub fn prepare(command: &mut Command) -> Result<(), CommandError> {
    let protocol = match command {
        Command::Serve(args) => &mut args.protocol,
        Command::Up(args) => &mut args.protocol,
        Command::Bench(args) => &mut args.protocol,
        Command::Cp(args) => &mut args.protocol,
        _ => return Ok(()),
    };
    couple(protocol);
    let needs = match command {
        Command::Serve(args) => Needs {
            user: args.user.as_deref(),
            ports: args
                .listen
                .iter()
                .map(std::net::SocketAddr::port)
                .chain(args.observe.ports())
                .collect(),
            congestion_controls: congestion_controls(&args.protocol),
            marks: false,
        },
        Command::Up(args) => {
            if args.user.is_some() {
                for link in &mut args.link {
                    *link = setup::link_text(link.expose())?.into();
                }
            }
            capture::prepare(&mut args.capture)?;
            let proxies = [args.socks, args.http];
            let proxies = proxies.iter().filter_map(|proxy| Some(proxy.address()?.port()));
            Needs {
                user: args.user.as_deref(),
                ports: proxies.chain(args.observe.ports()).collect(),
                congestion_controls: congestion_controls(&args.protocol),
                marks: args.capture.guardian.is_some(),
            }
        }
        _ => return Ok(()),
    };
    Ok(lower(&needs)?)
}

/// Loads a coupled congestion control while there may be the privilege for it.
fn couple(args: &mut ProtocolArgs) {
    if let Some(CongestionArg(wish)) = &args.congestion_control {
        args.coupling = CouplingState::of(wish);
        match &args.coupling {
            CouplingState::None => {}
            CouplingState::Kernel(coupler) => {
                let name = coupler.algorithm().kernel_name().to_owned();
                args.congestion_control = Some(CongestionArg(name));
            }
            CouplingState::Scaled => args.congestion_control = None,
            CouplingState::OwnReno => {
                let name = Algorithm::Reno.name().to_owned();
                args.congestion_control = Some(CongestionArg(name));
            }
        }
    }
}

fn congestion_controls(args: &ProtocolArgs) -> Vec<&str> {
    match args.congestion_control.as_ref().map(|name| name.0.as_str()) {
        None => Vec::new(),
        Some("auto") => vec!["cubic", "bbr"],
        // Everybody may choose what was loaded.
        Some(_) if matches!(args.coupling, CouplingState::Kernel(_)) => Vec::new(),
        Some(name) => vec![name],
    }
}
