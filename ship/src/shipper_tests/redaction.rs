//! Redacted values stay on the server, even if a later program redacts
//! differently.

use super::{FIRST_MS, directory, objects, settings, tape};
use crate::redact::{Redaction, Rule};
use crate::shipper::{Settings, Shipper};

fn redacted(server: &str, rules: &[Rule], salt: Option<&[u8]>) -> Settings {
    let mut settings = settings(server);
    settings.redaction = Redaction {
        rules: rules.to_vec(),
        salt: salt.map(<[u8]>::to_vec),
    };
    settings
}

#[test]
fn objects_with_other_redaction_are_not_continued() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tape());
    let place = directory(root.path());
    let ship = |settings: Settings, go_on: bool| {
        let mut shipper = Shipper::new(&place, settings);
        shipper
            .ship_due_hours(&tape, FIRST_MS, &|| go_on)
            .map(|d| d.hours)
    };
    // The program ended after it had put only its redaction.
    assert_eq!(ship(settings("shop"), false), Ok(0));
    let rules = [Rule::Texts, Rule::Addresses];
    let error = ship(redacted("shop", &rules, None), true).unwrap_err();
    let wanted = "server \"shop\" was shipped with a different redaction\nDETAIL:  It was shipped with \"none\", and is now to be shipped with \"addresses_texts\".\nHINT:  ";
    assert!(error.starts_with(wanted), "{error}");
    assert_eq!(objects(root.path()).len(), 1);
    assert_eq!(ship(settings("shop"), true), Ok(1));
    assert!(ship(redacted("shop", &rules, None), true).is_err());
    // Another server; the order of the rules does not matter.
    assert_eq!(ship(redacted("till", &rules, None), true), Ok(1));
    let rules = [Rule::Addresses, Rule::Texts, Rule::Texts];
    assert_eq!(ship(redacted("till", &rules, None), true), Ok(0));
    let salts = [Some(&b"0123456789abcdef"[..]), Some(b"0123456789abcdeg")];
    assert!(ship(redacted("till", &rules, salts[0]), true).is_err());
    assert_eq!(ship(redacted("desk", &rules, salts[0]), true), Ok(1));
    assert_eq!(ship(redacted("desk", &rules, salts[0]), true), Ok(0));
    assert!(ship(redacted("desk", &rules, salts[1]), true).is_err());
}

#[test]
fn two_shippers_with_different_redaction_do_not_both_go_on() {
    let tape = tape();
    for _ in 0..50 {
        let root = tempfile::tempdir().unwrap();
        let both = std::thread::scope(|threads| {
            let two = [vec![], vec![Rule::Texts]].map(|rules| {
                let settings = redacted("shop", &rules, None);
                threads.spawn(|| {
                    let place = directory(root.path());
                    let mut shipper = Shipper::new(&place, settings);
                    shipper.ship_due_hours(&tape, FIRST_MS, &|| false).is_ok()
                })
            });
            two.map(|shipper| shipper.join().unwrap())
        });
        assert!(!(both[0] && both[1]));
    }
}
