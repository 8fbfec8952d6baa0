//! Files to install with the program, made from its command line: the manual page, and completions for shells.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::Failure;
use crate::args::{Cli, CompletionsArgs};

/// The name under which it is called.
const NAME: &str = "mangrove";

/// `mangrove completions SHELL`.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut text);
    Ok(io::stdout().lock().write_all(&text)?)
}

/// `mangrove man`: one page, with a section for every command.
pub fn man() -> Result<(), Failure> {
    let mut text = Vec::new();
    let command = Cli::command();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let page = clap_mangen::Man::new(sub.clone());
        writeln!(text, ".SH \"MANGROVE {}\"", sub.get_name().to_uppercase())?;
        page.render_description_section(&mut text)?;
        page.render_options_section(&mut text)?;
    }
    Ok(io::stdout().lock().write_all(&text)?)
}
