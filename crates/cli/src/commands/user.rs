//! `mangrove user`: changes the users file.
//!
//! Passwords come from standard input and never from the command line, which every process on the machine can read. At
//! a terminal they are asked for twice and not shown.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use mangrove::{Error, Result, Value};
use mangrove_server::Users;
use mangrove_server::{Access, Rights};

use crate::args::UserCommand;
use crate::client::terminal::{ask, line};
use crate::output::ResultFormat;
use crate::{Failure, output};

/// `mangrove user`.
pub fn run(command: &UserCommand) -> Result<(), Failure> {
    match command {
        UserCommand::Add { name, roles, file } => {
            let mut users = if file.file.exists() { Users::read(&file.file)? } else { Users::default() };
            let levels = roles.iter().map(|role| parse(role)).collect::<Result<Vec<_>>>()?;
            let is_idle = levels.iter().all(|(_, level)| level.is_none());
            users.add(name, &password()?, Rights::default())?;
            grant(&mut users, name, levels)?;
            users.write(&file.file)?;
            if is_idle {
                let path = file.file.display();
                eprintln!(
                    "`{name}` has no role, and so may log in and do nothing: mangrove user grant --file {path} {name} \
                     '*=read'"
                );
            }
        }
        UserCommand::Remove { name, file } => change(&file.file, |users| users.remove(name))?,
        UserCommand::Passwd { name, file } => {
            change(&file.file, |users| {
                // Checked before the password is asked for.
                users.grant(name, "*", users.get(name).and_then(|user| user.rights.on("*")))?;
                users.set_password(name, &password()?)
            })?;
        }
        UserCommand::Grant { name, roles, file } => {
            let levels = roles.iter().map(|role| parse(role)).collect::<Result<Vec<_>>>()?;
            change(&file.file, |users| grant(users, name, levels))?;
        }
        UserCommand::List { file, format } => list(&Users::read(&file.file)?, *format)?,
    }
    Ok(())
}

fn change(path: &Path, change: impl FnOnce(&mut Users) -> Result<()>) -> Result<()> {
    let mut users = Users::read(path)?;
    change(&mut users)?;
    users.write(path)
}

fn grant(users: &mut Users, name: &str, levels: Vec<(&str, Option<Access>)>) -> Result<()> {
    levels.into_iter().try_for_each(|(graph, level)| users.grant(name, graph, level))
}

/// Parses `GRAPH=ROLE`. The role `none` removes a role.
fn parse(text: &str) -> Result<(&str, Option<Access>)> {
    let (graph, role) = text
        .split_once('=')
        .ok_or_else(|| Error::invalid(format!("{text}: write GRAPH=ROLE, as in books=read or '*=admin'")))?;
    Ok((graph, if role == "none" { None } else { Some(role.parse()?) }))
}

fn list(users: &Users, format: ResultFormat) -> Result<(), Failure> {
    let row = |(name, user): (&smol_str::SmolStr, &mangrove_server::User)| {
        let roles = user.rights.iter().map(|(graph, level)| (Value::String(graph.clone()), level.name().into()));
        Value::map(vec![("user".into(), Value::String(name.clone())), ("roles".into(), Value::map(roles.collect()))])
    };
    let mut out = io::stdout().lock();
    output::print(&mut users.iter().map(|user| Ok(row(user))), format, &mut out)?;
    out.flush()?;
    Ok(())
}

fn password() -> Result<String> {
    let password = match io::stdin().is_terminal() {
        false => line()?,
        true => {
            let first = ask("Password: ")?;
            if ask("Again: ")? != first {
                return Err(Error::invalid("the two passwords differ; nothing was changed"));
            }
            first
        }
    };
    let length = password.chars().count();
    if length < PASSWORD_CHARACTERS_MIN {
        eprintln!("warning: {length} characters are soon guessed; take {PASSWORD_CHARACTERS_MIN} or more");
    }
    Ok(password)
}

/// A password with fewer characters gets a warning.
const PASSWORD_CHARACTERS_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_given_by_graph() {
        assert_eq!(parse("books=read").unwrap(), ("books", Some(Access::Read)));
        assert_eq!(parse("*=none").unwrap(), ("*", None));
        for (wrong, part) in [("books", "GRAPH=ROLE"), ("books=reader", "did you mean `read`")] {
            assert!(parse(wrong).unwrap_err().message().contains(part), "{wrong}");
        }
    }
}
