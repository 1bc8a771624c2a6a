//! The terminal: taken over, and given back however this ends.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use super::{Key, TopState, draw};

/// How soon the thread that reads keys sees that nobody wants them any more.
const LOOK: Duration = Duration::from_millis(200);

/// What comes from the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A key that means something.
    Key(Key),
    /// Ctrl-C, which raw mode turns into a key.
    Interrupt,
    /// The size changed.
    Resized,
}

/// The terminal in raw mode on its second screen.
pub struct Terminal {
    terminal: DefaultTerminal,
    inputs: mpsc::Receiver<Input>,
}

impl Terminal {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// What the system says.
    pub fn take() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let (sender, inputs) = mpsc::channel(16);
        std::thread::spawn(move || read_keys(&sender));
        Ok(Self { terminal, inputs })
    }

    /// Draws.
    ///
    /// # Errors
    /// What the system says.
    pub fn show(&mut self, state: &TopState) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, state)).map(drop)
    }

    /// The next thing that the user does; `None` when the terminal is gone.
    pub async fn next(&mut self) -> Option<Input> {
        self.inputs.recv().await
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn read_keys(sender: &mpsc::Sender<Input>) {
    while !sender.is_closed() {
        let input = match event::poll(LOOK) {
            Ok(true) => event::read().map(|event| meaning(&event)),
            Ok(false) => continue,
            Err(error) => Err(error),
        };
        let Ok(input) = input else { return };
        if let Some(input) = input
            && sender.blocking_send(input).is_err()
        {
            return;
        }
    }
}

fn meaning(event: &Event) -> Option<Input> {
    let key = match event {
        Event::Resize(..) => return Some(Input::Resized),
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        _ => return None,
    };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(Input::Key(match key.code {
        KeyCode::Char('c') if control => return Some(Input::Interrupt),
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::Char('p' | ' ') => Key::Pause,
        KeyCode::Char('e') | KeyCode::Enter => Key::Explain,
        KeyCode::Char('i') => Key::Internals,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyEvent;

    #[test]
    fn keys_mean_what_the_last_line_says() {
        let press = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        let plain = KeyModifiers::NONE;
        assert_eq!(press(KeyCode::Char('q'), plain), Some(Input::Key(Key::Quit)));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Input::Interrupt));
        assert_eq!(press(KeyCode::Down, plain), Some(Input::Key(Key::Down)));
        assert_eq!(press(KeyCode::Char('x'), plain), None);
        assert_eq!(meaning(&Event::Resize(1, 1)), Some(Input::Resized));
    }
}
