//! Options of a connection.

use crate::error::{Error, Result};
use crate::sys::{self, Setting};
use std::ffi::{CStr, CString};

/// Seconds to wait for a host, unless the connection string, the environment or
/// a service sets another time.
const CONNECT_TIMEOUT_S: &CStr = c"10";

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct Options {
    conninfo: String,
    application: String,
    settings: Vec<Setting>,
    /// Encoding of everything read, whatever the connection string says.
    pub client_encoding: Option<String>,
    /// Shell command that prints the password; it runs before each connection.
    pub password_command: Option<String>,
}

impl Options {
    /// Reads an argument of a command as psql does: keywords, a URI, or the
    /// name of a database. `application` is the session's name unless the
    /// string or `PGAPPNAME` gives another.
    ///
    /// # Errors
    /// libpq does not understand the text, or it has a password: every user of a host
    /// can read the arguments of its processes.
    pub fn from_argument(conninfo: &str, application: &str) -> Result<Options> {
        let settings = read(conninfo)?;
        let secret = settings.iter().find(|s| s.secret && s.value.is_some());
        if let Some(secret) = secret {
            let what = format!("connection string contains \"{}\"", secret.keyword);
            return Err(Error::new("22023", what)
                .detail("Every user of this host can read the arguments of its processes.")
                .hint("Put it into a password file (~/.pgpass), a service file or PGPASSWORD, or give --password-command."));
        }
        Options::with(conninfo, application, settings)
    }

    /// Reads a string from a place that others cannot read: it may have a
    /// password.
    ///
    /// # Errors
    /// libpq does not understand the string.
    pub fn from_file(conninfo: &str, application: &str) -> Result<Options> {
        Options::with(conninfo, application, read(conninfo)?)
    }

    fn with(conninfo: &str, application: &str, settings: Vec<Setting>) -> Result<Options> {
        Ok(Options {
            conninfo: conninfo.to_string(),
            application: application.to_string(),
            settings,
            client_encoding: None,
            password_command: None,
        })
    }

    /// True if the word is a keyword of connection strings.
    pub fn is_keyword(word: &str) -> bool {
        sys::parse(c"").is_ok_and(|known| known.iter().any(|s| s.keyword == word))
    }

    /// The value of a keyword in the connection string itself.
    pub fn given(&self, keyword: &str) -> Option<&str> {
        let found = self.settings.iter().find(|s| s.keyword == keyword);
        found.and_then(|s| s.value.as_deref())
    }

    /// The server in words without secrets, for messages: service, host, port
    /// and database of the string.
    pub fn describe(&self) -> String {
        let words = ["service", "host", "hostaddr", "port", "dbname"];
        let said = words
            .iter()
            .filter_map(|w| Some(format!("{w}={}", self.given(w)?)));
        match said.collect::<Vec<_>>().join(" ") {
            empty if empty.is_empty() => "the default server".to_string(),
            said => said,
        }
    }

    /// Parameters for libpq; later ones override earlier ones.
    pub(crate) fn parameters(&self, password: Option<&str>) -> Result<Vec<(CString, CString)>> {
        let mut parameters = vec![("fallback_application_name", self.application.as_str())];
        parameters.push(("dbname", &self.conninfo));
        parameters.extend(
            self.client_encoding
                .iter()
                .map(|e| ("client_encoding", e.as_str())),
        );
        parameters.extend(password.map(|password| ("password", password)));
        let parameters = parameters
            .into_iter()
            .map(|(keyword, value)| Ok((c_string(keyword)?, c_string(value)?)));
        parameters.collect()
    }
}

/// Adds the time to connect, unless the parameters, their service or the environment give one.
/// May wait for the look-up of a service.
pub(crate) fn with_connect_timeout(
    mut parameters: Vec<(CString, CString)>,
) -> Vec<(CString, CString)> {
    let settings = sys::resolved(&parameters);
    if sys::value_of(&settings, "connect_timeout").is_none() {
        parameters.push((c"connect_timeout".to_owned(), CONNECT_TIMEOUT_S.to_owned()));
    }
    parameters
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new("22023", "connection options contain a zero byte"))
}

/// Parses a connection string as psql does: a text that is neither a URI nor keywords
/// is the name of a database.
fn read(conninfo: &str) -> Result<Vec<Setting>> {
    let is_uri = ["postgresql://", "postgres://"]
        .iter()
        .any(|p| conninfo.starts_with(p));
    if !is_uri && !conninfo.contains('=') {
        return Ok(vec![Setting {
            keyword: "dbname".to_string(),
            value: Some(conninfo.to_string()).filter(|name| !name.is_empty()),
            secret: false,
        }]);
    }
    let settings = sys::parse(&c_string(conninfo)?);
    settings.map_err(|e| Error::new("22023", "invalid connection string").detail(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(conninfo: &str) -> Error {
        Options::from_argument(conninfo, "test").unwrap_err()
    }

    #[test]
    fn a_password_in_an_argument_is_refused_in_any_form() {
        let uri = "postgresql://joe:s3cret@db/app";
        for conninfo in [
            "host=db password=s3cret",
            uri,
            "postgres://db/?password=s3cret",
        ] {
            let error = refused(conninfo);
            assert_eq!(error.message, "connection string contains \"password\"");
            assert_eq!(error.code, "22023");
            assert!(error.hint.clone().unwrap().contains("--password-command"));
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        }
        let error = refused("host=db sslpassword=x");
        assert_eq!(error.message, "connection string contains \"sslpassword\"");
        let options = Options::from_file(uri, "test").unwrap();
        assert_eq!(options.describe(), "host=db dbname=app");
    }

    #[test]
    fn options_that_libpq_refuses_are_reported() {
        let error = refused("host=db nonsense=1");
        assert_eq!(error.message, "invalid connection string");
        let detail = error.detail.unwrap();
        assert_eq!(detail, "invalid connection option \"nonsense\"");
    }

    #[test]
    fn a_word_alone_is_a_database_and_the_password_comes_last() {
        let options = Options::from_argument("app", "tacho record").unwrap();
        assert_eq!(options.describe(), "dbname=app");
        let parameters = options.parameters(Some("secret")).unwrap();
        let said: Vec<_> = parameters
            .iter()
            .map(|p| (p.0.to_str().unwrap(), p.1.to_str().unwrap()))
            .collect();
        assert_eq!(
            said.first(),
            Some(&("fallback_application_name", "tacho record"))
        );
        assert_eq!(said.last(), Some(&("password", "secret")));
        assert!(said.contains(&("dbname", "app")));
    }

    #[test]
    fn a_time_to_connect_is_given_unless_the_user_gave_one() {
        let time = |conninfo: &str| {
            let options = Options::from_argument(conninfo, "test").unwrap();
            let parameters = with_connect_timeout(options.parameters(None).unwrap());
            let settings = sys::resolved(&parameters);
            let time = sys::value_of(&settings, "connect_timeout");
            time.unwrap().to_string()
        };
        assert_eq!(time("host=db"), "10");
        assert_eq!(time("host=db connect_timeout=3"), "3");
        if std::env::var_os("PGSERVICEFILE").is_some() {
            assert_eq!(time("service=patient"), "60");
            assert_eq!(time("service=silent"), "10");
            assert_eq!(time("service=silent connect_timeout=4"), "4");
            return;
        }
        // the file of services is named by the environment, so a process of its own reads it
        let file = std::env::temp_dir().join(format!("tacho-services-{}", std::process::id()));
        std::fs::write(
            &file,
            "[patient]\nhost=db\nconnect_timeout=60\n[silent]\nhost=db\n",
        )
        .unwrap();
        let name = "options::tests::a_time_to_connect_is_given_unless_the_user_gave_one";
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env("PGSERVICEFILE", &file)
            .output()
            .unwrap();
        std::fs::remove_file(file).unwrap();
        let said = String::from_utf8_lossy(&again.stdout).into_owned();
        assert!(
            again.status.success() && said.contains("1 passed"),
            "{said}"
        );
    }
}
