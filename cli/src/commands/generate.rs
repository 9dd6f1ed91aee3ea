//! `tacho generate`: completions for shells and manual pages, made from the
//! description of the command line. `make install` runs it.

use super::say;
use crate::Cli;
use clap::{Command, CommandFactory, ValueHint};
use clap_complete::{Shell, generate};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where below a `share` directory each shell looks for what completes `tacho`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/tacho"),
    (Shell::Zsh, "zsh/site-functions/_tacho"),
    (Shell::Fish, "fish/vendor_completions.d/tacho.fish"),
];

/// Arguments of `tacho generate`.
#[derive(clap::Args)]
pub struct Args {
    /// A share directory, such as /usr/local/share
    #[arg(value_hint = ValueHint::DirPath)]
    share: PathBuf,
}

/// Writes them; what is there is replaced.
pub fn run(args: &Args) -> ExitCode {
    match completions(&args.share).and_then(|()| manual(&args.share.join("man/man1"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let share = args.share.display();
            say(format_args!(
                "error: could not write into \"{share}\": {error}"
            ));
            ExitCode::FAILURE
        }
    }
}

fn completions(share: &Path) -> io::Result<()> {
    for (shell, name) in COMPLETIONS {
        let path = share.join(name);
        fs::create_dir_all(path.parent().unwrap_or(share))?;
        generate(shell, &mut command(), "tacho", &mut File::create(path)?);
    }
    Ok(())
}

/// A page for the program and one for each command.
fn manual(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command(), directory)
}

/// What people call: without the commands of the server.
fn command() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|each| !each.is_hide_set());
    let subcommands: Vec<Command> = shown.cloned().collect();
    Command::new("tacho")
        .about(all.get_about().cloned().unwrap_or_default())
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned().collect::<Vec<_>>())
        .subcommands(subcommands)
}
