//! `nbody completions` and `nbody man`: made from the definition of the command line, so that they cannot differ
//! from it.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use crate::console;
use crate::failure::Failure;

const COMPLETIONS: &str = "\
Examples:
  bash: nbody completions bash > ~/.local/share/bash-completion/completions/nbody
  zsh:  nbody completions zsh > ~/.zfunc/_nbody      (with fpath+=~/.zfunc before compinit in ~/.zshrc)
  fish: nbody completions fish > ~/.config/fish/completions/nbody.fish";

/// Options of `nbody completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

const MAN: &str = "\
Examples:
  nbody man | man -l -
  nbody man ~/.local/share/man/man1 && man nbody-run";

/// Options of `nbody man`.
#[derive(Debug, Args)]
#[command(after_help = MAN)]
pub struct Man {
    /// Folder for one page for each command; made if need be [default: the main page on standard output]
    dir: Option<PathBuf>,
}

/// Prints the completions of `command` for a shell.
///
/// # Errors
/// 74 where standard output cannot take them.
pub fn completions(options: &Completions, command: &mut clap::Command) -> Result<(), Failure> {
    let mut text = vec![];
    clap_complete::generate(options.shell, command, "nbody", &mut text);
    console::print(&String::from_utf8_lossy(&text))
}

/// Prints the main manual page of `command`, or writes all of them.
///
/// # Errors
/// 74 where they cannot be written.
pub fn man(options: &Man, command: clap::Command) -> Result<(), Failure> {
    let Some(dir) = &options.dir else {
        let mut text = vec![];
        console::outcome(clap_mangen::Man::new(command).render(&mut text))?;
        return console::print(&String::from_utf8_lossy(&text));
    };
    let cannot = |e| Failure::new(74, format!("{}: cannot write the manual pages: {e}", dir.display()));
    std::fs::create_dir_all(dir).map_err(cannot)?;
    let pages = pages(&command);
    clap_mangen::generate_to(command, dir).map_err(cannot)?;
    console::print(&format!("wrote {pages} pages to {}\n", dir.display()))
}

/// A page for the command and for each of its subcommands.
fn pages(command: &clap::Command) -> usize {
    1 + command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(pages).sum::<usize>()
}
