//! `tacho query`: a reader function as the server calls it.

use crate::readers::server;
use std::ffi::OsString;
use std::process::ExitCode;
use tacho_source::memory;

/// Arguments of `tacho query`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Name of the function
    function: String,

    /// Arguments of the function: --tape DIR, --since TIME, …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Reads the words after the program's name if they are a `query`, as the server calls it.
/// Each question in SQL starts this program. Clap would first describe all commands to itself,
/// which takes as long as a short answer.
pub fn of_server(words: impl Iterator<Item = OsString>) -> Option<Args> {
    let mut words = words.map(OsString::into_string);
    let is_question = words.next()?.ok()? == "query";
    let function = words.next()?.ok().filter(|word| !word.starts_with('-'));
    let rest: Vec<String> = words.collect::<Result<_, _>>().ok()?;
    let asks_help = rest.iter().any(|word| word == "--help" || word == "-?");
    let is_plain = !asks_help && rest.first().is_none_or(|word| word != "--");
    (is_question && is_plain).then_some(Args {
        function: function?,
        rest,
    })
}

/// Prints the answer in the format of COPY.
pub fn run(args: &Args) -> ExitCode {
    memory::keep();
    server::run(&args.function, &args.rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(String, Vec<String>)> {
        let question = of_server(line.split(' ').map(OsString::from))?;
        Some((question.function, question.rest))
    }

    #[test]
    fn questions_of_the_server_are_not_commands_of_people() {
        let rest = ["--n=10", "--tape", "x"].map(String::from).to_vec();
        assert_eq!(of("query top --n=10 --tape x"), Some(("top".into(), rest)));
        let others = [
            "",
            "top --n=10",
            "query",
            "query --help",
            "query top --help",
            "query top -?",
            "query -- top",
            "query top -- --n=1",
        ];
        for line in others {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
