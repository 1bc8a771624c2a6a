//! The status on a terminal, as it changes: what `sumrate top` shows.

mod area;
mod links;
mod state;
mod terminal;
mod view;
mod window;

pub use state::{Key, TopState};
pub use terminal::{Input, Terminal};
pub use view::draw;
