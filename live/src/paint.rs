//! Colours and characters. They depend on names, never on ranks: a wait class
//! looks the same in every picture, and on the page of `tacho web`. Without
//! colours, characters distinguish classes.

use ratatui::style::{Color, Modifier, Style};
use std::collections::BTreeMap;

/// Number of colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Red, green and blue.
    True,
    /// 256 colours.
    Many,
    /// 16 colours.
    Sixteen,
    /// No colours: only bold, dim and reversed.
    None,
}

impl Depth {
    /// The colours that `NO_COLOR`, `TERM` and `COLORTERM` allow.
    pub fn of(environment: &BTreeMap<&str, String>) -> Depth {
        let get = |name| environment.get(name).map_or("", String::as_str);
        let (term, more) = (get("TERM"), get("COLORTERM"));
        match () {
            () if !get("NO_COLOR").is_empty() => Depth::None,
            () if more.contains("truecolor") || more.contains("24bit") => Depth::True,
            () if term.ends_with("-direct") => Depth::True,
            () if term.contains("256") => Depth::Many,
            () if term.is_empty() || term == "dumb" || term.starts_with("vt") => Depth::None,
            () => Depth::Sixteen,
        }
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Depth::True => "truecolor",
            Depth::Many => "256",
            Depth::Sixteen => "16",
            Depth::None => "none",
        }
    }
}

/// Look of a wait class: name, colour, nearest of 16 colours, character without
/// colours, character in ASCII.
struct Look(&'static str, (u8, u8, u8), Color, char, char);

/// The looks of all wait classes in the order of stacking, bottom first.
const LOOKS: [Look; 11] = [
    Look("CPU", (0x35, 0xad, 0x88), Color::Green, '█', 'C'),
    Look("IO", (0x4f, 0x94, 0xda), Color::Blue, '▓', 'I'),
    Look("LWLock", (0xcf, 0x82, 0xb3), Color::Magenta, '▞', 'W'),
    Look("Lock", (0xe2, 0x6d, 0x40), Color::Red, '▒', 'L'),
    Look("BufferPin", (0x50, 0xb3, 0xad), Color::Cyan, '▛', 'B'),
    Look("Buffer", (0x50, 0xb3, 0xad), Color::Cyan, '▛', 'B'),
    Look("IPC", (0x79, 0xc2, 0xe8), Color::LightCyan, '▚', 'P'),
    Look("Client", (0xdc, 0xc3, 0x4d), Color::Yellow, '▌', 'N'),
    Look("Timeout", (0xe0, 0xa6, 0x40), Color::LightYellow, '▙', 'T'),
    Look(
        "Extension",
        (0x97, 0x7f, 0xd8),
        Color::LightMagenta,
        '▟',
        'E',
    ),
    OTHER,
];
const OTHER: Look = Look("other", (0x7d, 0x87, 0x91), Color::DarkGray, '▜', 'o');

/// Characters that are not classes.
#[derive(Clone, Copy)]
pub enum Sign {
    /// Nothing was recorded.
    Gap,
    /// CPUs of the server.
    Cpus,
    /// The load of the earlier window.
    Earlier,
    /// The line below a picture, and the place of a marker or the cursor on it.
    Base,
    Marker,
    Cursor,
    /// The column of the cursor.
    Column,
    /// The view is live.
    Live,
    /// The line beside a picture, and the place of a number on it.
    Side,
    Tick,
    /// Text was cut off here.
    Cut,
    /// The sign between two times.
    To,
}

/// Abilities of a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    pub depth: Depth,
    pub ascii: bool,
}

/// Characters filled by eighths, from the bottom and from the left.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const EIGHTHS_WIDE: [&str; 9] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

fn look(class: &str) -> &'static Look {
    let class = class.split(':').next().unwrap_or(class);
    let class = class.trim_end_matches('*');
    LOOKS
        .iter()
        .find(|look| look.0 == class)
        .unwrap_or(&LOOKS[LOOKS.len() - 1])
}

/// Position of a class in a stack.
pub fn rank(class: &str) -> usize {
    let found = LOOKS.iter().position(|look| look.0 == look_name(class));
    found.unwrap_or(LOOKS.len())
}

fn look_name(class: &str) -> &'static str {
    look(class).0
}

impl Paint {
    /// True if colours distinguish classes and a cell can show parts of two.
    pub fn has_parts(self) -> bool {
        self.depth != Depth::None && !self.ascii
    }

    /// The colour of a class, or of a wait event by its class.
    pub fn color(self, class: &str) -> Color {
        let look = look(class);
        match self.depth {
            Depth::True => Color::Rgb(look.1.0, look.1.1, look.1.2),
            Depth::Many => Color::Indexed(nearest(look.1)),
            Depth::Sixteen => look.2,
            Depth::None => Color::Reset,
        }
    }

    /// The character for a cell full of a class.
    pub fn full(self, class: &str) -> char {
        match (self.ascii, self.depth) {
            (true, _) => look(class).4,
            (false, Depth::None) => look(class).3,
            (false, _) => '█',
        }
    }

    /// A character filled by eighths from the bottom.
    pub fn part(eighths: usize) -> &'static str {
        EIGHTHS[eighths.min(8)]
    }

    /// A character filled by eighths from the left.
    pub fn part_wide(eighths: usize) -> &'static str {
        EIGHTHS_WIDE[eighths.min(8)]
    }

    /// A character that is not a class.
    pub fn sign(self, sign: Sign) -> char {
        let (wide, plain) = match sign {
            Sign::Gap => ('░', ':'),
            Sign::Cpus => ('─', '-'),
            Sign::Earlier => ('•', '*'),
            Sign::Base => ('─', '-'),
            Sign::Marker => ('▼', 'v'),
            Sign::Cursor => ('▲', '^'),
            Sign::Column => ('│', '|'),
            Sign::Live => ('●', '*'),
            Sign::Side => ('│', '|'),
            Sign::Tick => ('┤', '+'),
            Sign::Cut => ('…', '~'),
            Sign::To => ('–', '-'),
        };
        if self.ascii { plain } else { wide }
    }

    /// Style of alarms.
    pub fn alarm(self) -> Style {
        self.on(Color::LightRed).add_modifier(Modifier::BOLD)
    }

    /// Style of good states.
    pub fn good(self) -> Style {
        self.on(Color::LightGreen)
    }

    /// Style of unimportant text.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Style of headings.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Style of the selection.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn on(self, color: Color) -> Style {
        match self.depth {
            Depth::None => Style::new(),
            _ => Style::new().fg(color),
        }
    }
}

/// The nearest of 256 colours: from the cube of six, or a grey.
fn nearest((r, g, b): (u8, u8, u8)) -> u8 {
    const STEPS: [i32; 6] = [0, 95, 135, 175, 215, 255];
    let far = |a: i32, b: u8| (a - i32::from(b)).pow(2);
    let step = |value: u8| {
        let steps = (0..6).min_by_key(|i| far(STEPS[*i], value));
        steps.unwrap_or(0)
    };
    let cube = [step(r), step(g), step(b)];
    let cube_far = far(STEPS[cube[0]], r) + far(STEPS[cube[1]], g) + far(STEPS[cube[2]], b);
    let grey = |i: &i32| far(8 + 10 * i, r) + far(8 + 10 * i, g) + far(8 + 10 * i, b);
    let nearest_grey = (0..24).min_by_key(grey).unwrap_or(0);
    let index = match grey(&nearest_grey) < cube_far {
        true => usize::try_from(232 + nearest_grey).unwrap_or(232),
        false => 16 + 36 * cube[0] + 6 * cube[1] + cube[2],
    };
    u8::try_from(index).unwrap_or(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_sets_the_number_of_colours() {
        for (variables, depth) in [
            (&[("TERM", "xterm-256color")][..], Depth::Many),
            (
                &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")],
                Depth::True,
            ),
            (&[("TERM", "xterm-direct")], Depth::True),
            (&[("TERM", "linux")], Depth::Sixteen),
            (&[("TERM", "xterm")], Depth::Sixteen),
            (&[("TERM", "vt100")], Depth::None),
            (&[("TERM", "dumb")], Depth::None),
            (&[], Depth::None),
            (
                &[("TERM", "xterm-256color"), ("NO_COLOR", "1")],
                Depth::None,
            ),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], Depth::Many),
        ] {
            let variables = variables.iter().map(|(n, v)| (*n, (*v).to_string()));
            assert_eq!(Depth::of(&variables.collect()), depth);
        }
    }

    #[test]
    fn the_nearest_of_256_colours_is_taken() {
        assert_eq!(nearest((0, 0, 0)), 16);
        assert_eq!(nearest((255, 255, 255)), 231);
        assert_eq!(nearest((95, 135, 175)), 67);
        assert_eq!(nearest((128, 128, 128)), 244);
    }

    #[test]
    fn an_event_looks_as_its_class_and_no_two_classes_alike() {
        for ascii in [false, true] {
            let paint = Paint {
                depth: Depth::None,
                ascii,
            };
            assert_eq!(paint.full("IO:DataFileRead"), paint.full("IO"));
            assert_eq!(paint.full("CPU*"), paint.full("CPU"));
            assert_eq!(paint.full("Somebody's"), paint.full("(other)"));
            let mut signs: Vec<char> = LOOKS.iter().map(|look| paint.full(look.0)).collect();
            signs.push(paint.sign(Sign::Gap));
            signs.sort_unstable();
            signs.dedup();
            // BufferPin and Buffer are two names of one class.
            assert_eq!(signs.len(), LOOKS.len());
        }
    }
}
