//! Two clocks read around one piece of work, each with its own cost measured
//! beforehand and subtracted.
//!
//! The thread's processor clock is a system call (about a microsecond) and is
//! what the tables quote: on a busy machine the tail of the wall clock belongs
//! to the scheduler. The wall clock is read inside it, so a processor reading
//! also holds two wall readings; an empty piece of work measures both at once.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds that one piece of work took on both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Thread processor time.
    pub cpu: u64,
    /// Wall time.
    pub wall: u64,
}

impl Span {
    /// The two spans one after the other.
    pub fn plus(self, other: Span) -> Span {
        Span { cpu: self.cpu + other.cpu, wall: self.wall + other.wall }
    }
}

/// The clocks with their measured cost.
#[derive(Debug)]
pub struct Clock {
    /// What an empty piece of work reads; subtracted from every reading.
    pub cost: Span,
}

/// Empty pieces of work timed to learn the clocks' cost.
const CALIBRATION: usize = 100_000;

impl Clock {
    /// Measures the clocks' own cost: the median of many empty readings.
    pub fn calibrated() -> Clock {
        let raw = Clock { cost: Span::default() };
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        for _ in 0..CALIBRATION {
            let ((), span) = raw.time(|| ());
            cpu.push(span.cpu);
            wall.push(span.wall);
        }
        cpu.sort_unstable();
        wall.sort_unstable();
        let middle = CALIBRATION / 2;
        Clock { cost: Span { cpu: cpu[middle], wall: wall[middle] } }
    }

    /// Runs `work` and says how long it took beyond the clocks' cost.
    pub fn time<T>(&self, work: impl FnOnce() -> T) -> (T, Span) {
        let cpu_start = thread_nanos();
        let wall_start = Instant::now();
        let value = work();
        let wall = wall_start.elapsed();
        let cpu = thread_nanos() - cpu_start;
        let wall = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        let span = Span {
            cpu: cpu.saturating_sub(self.cost.cpu),
            wall: wall.saturating_sub(self.cost.wall),
        };
        (value, span)
    }
}

/// The processor time of this thread so far.
pub fn thread_nanos() -> u64 {
    nanos(ClockId::ThreadCPUTime)
}

/// The processor time of all threads of this process so far.
pub fn process_nanos() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
