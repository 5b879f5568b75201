//! The progress of a series of runs, on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of so many steps: the time so far, the steps, the time left, and a message of so many
/// columns. It draws nothing where standard error is no terminal.
pub fn bar(steps: u64, message_columns: usize) -> ProgressBar {
    let progress = ProgressBar::new(steps);
    let style = format!(
        "{{elapsed:>4}} {{wide_bar}} {{pos}}/{{len}} {{eta:>4}} {{msg:<{message_columns}}}"
    );
    if let Ok(style) = ProgressStyle::with_template(&style) {
        progress.set_style(style);
    }
    progress
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_is_understood() {
        let style = "{elapsed:>4} {wide_bar} {pos}/{len} {eta:>4} {msg:<7}";
        ProgressStyle::with_template(style).expect("a style");
        assert_eq!(bar(9, 7).length(), Some(9));
    }
}
