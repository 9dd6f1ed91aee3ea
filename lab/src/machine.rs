//! The machine of the measurements.

use serde::{Deserialize, Serialize};
use std::fs;

/// A machine, as far as it can be known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in MB.
    pub memory_mb: u64,
    /// Kernel release.
    pub kernel: String,
    /// Frequency governor, if there is one.
    pub governor: Option<String>,
    /// True if the machine is virtual.
    pub virtual_machine: bool,
    /// Day of the measurement, UTC.
    pub date: String,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn here() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = text("/proc/cpuinfo");
        let governor = text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let memory = field(&text("/proc/meminfo"), "MemTotal");
        let memory_kb: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
        Self {
            cpu: field(&cpuinfo, "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mb: memory_kb / 1024,
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            governor: Some(governor.trim().to_owned()).filter(|g| !g.is_empty()),
            virtual_machine: field(&cpuinfo, "flags")
                .split(' ')
                .any(|f| f == "hypervisor"),
            date: jiff::Zoned::now()
                .with_time_zone(jiff::tz::TimeZone::UTC)
                .date()
                .to_string(),
        }
    }

    /// The machine on one line.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{} × {}, {:.0} GB, Linux {}",
            self.cores,
            self.cpu,
            self.memory_mb as f64 / 1024.0,
            self.kernel
        );
        if self.virtual_machine {
            line.push_str(", virtual machine");
        }
        if let Some(governor) = &self.governor {
            line.push_str(&format!(", governor {governor}"));
        }
        line
    }
}

/// The first value of a `name : value` line.
fn field(text: &str, name: &str) -> String {
    let value = text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "MemTotalX: 1\nMemTotal:    2048 kB\n";
        assert_eq!(field(text, "MemTotal"), "2048 kB");
        assert_eq!(field(text, "Mem"), "");
    }

    #[test]
    fn a_machine_is_described_in_one_line() {
        let machine = Machine {
            cpu: "X".into(),
            cores: 2,
            memory_mb: 2048,
            kernel: "6.1".into(),
            virtual_machine: true,
            ..Machine::default()
        };
        assert_eq!(machine.line(), "2 × X, 2 GB, Linux 6.1, virtual machine");
    }
}
