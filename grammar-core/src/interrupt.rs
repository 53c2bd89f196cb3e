//! Breaking off: a limit on time, and a flag that another thread may set.
//!
//! An [`Interrupt`] says until when some work may go on. While
//! [`Interrupt::run`] does that work, the loops inside of it that may take
//! long ask [`check`], and end with an error when the time is over. Nothing is
//! stopped by force, so whatever was complete stays, and what was not is
//! dropped: the same work can be asked for again, and goes on from there.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use maskwright_grammar_core::interrupt::{self, CancelFlag, Interrupt};
//!
//! let flag = CancelFlag::new();
//! let interrupt = Interrupt::after(Duration::from_secs(60)).or_on(&flag);
//! let sum = interrupt.run(|| {
//!     (0..1_000).take_while(|_| interrupt::check().is_ok()).sum::<u32>()
//! });
//! assert_eq!(sum, Ok(499_500));
//! // Another thread may do this at any time.
//! flag.cancel();
//! assert!(interrupt.run(|| interrupt::check()).is_err());
//! ```
//!
//! # What is remembered
//!
//! A search that is broken off may have an answer that is not the one it
//! would have come to. So whoever stores an answer asks [`confirm`] before:
//! it fails in the rest of a scope once any [`check`] of it has failed.
//!
//! # The road not taken
//!
//! The interrupt of a scope is in a variable of the thread, and not a
//! parameter. A parameter would go through every method of
//! [`Automaton`](crate::automaton::Automaton) and all that these call, down to
//! the searches of regular languages, for a question that is asked every few
//! microseconds. Without a scope, [`check`] reads one flag.

use std::{
    cell::{Cell, RefCell},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// A flag that says to break off, shared by all its clones.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag {
    is_set: Arc<AtomicBool>,
}

impl CancelFlag {
    /// Creates a flag that is not set.
    pub fn new() -> CancelFlag {
        CancelFlag::default()
    }

    /// Sets the flag, for good.
    pub fn cancel(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Returns whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

/// Until when some work may go on.
///
/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct Interrupt {
    /// When this was made: times are said from here.
    start: Instant,
    limit: Option<Duration>,
    flags: Vec<CancelFlag>,
    /// How often it may still be asked for.
    checks: Option<Arc<AtomicUsize>>,
}

impl Interrupt {
    /// Creates an interrupt that never comes.
    pub fn never() -> Interrupt {
        Interrupt {
            start: Instant::now(),
            limit: None,
            flags: Vec::new(),
            checks: None,
        }
    }

    /// Creates an interrupt that comes when so much time has passed from now
    /// on.
    pub fn after(limit: Duration) -> Interrupt {
        Interrupt { limit: Some(limit), ..Interrupt::never() }
    }

    /// Creates an interrupt that comes at a moment.
    pub fn at(deadline: Instant) -> Interrupt {
        let interrupt = Interrupt::never();
        let limit = deadline.saturating_duration_since(interrupt.start);
        Interrupt { limit: Some(limit), ..interrupt }
    }

    /// Creates an interrupt that comes when a flag is set.
    pub fn on(flag: &CancelFlag) -> Interrupt {
        Interrupt::never().or_on(flag)
    }

    /// Creates an interrupt that comes after so many checks: at one and the
    /// same place each time, for tests of what is left behind.
    #[doc(hidden)]
    pub fn after_checks(n_checks: usize) -> Interrupt {
        let checks = Some(Arc::new(AtomicUsize::new(n_checks)));
        Interrupt { checks, ..Interrupt::never() }
    }

    /// Has the interrupt come when a flag is set, too.
    #[must_use]
    pub fn or_on(mut self, flag: &CancelFlag) -> Interrupt {
        self.flags.push(flag.clone());
        self
    }

    /// Does some work on this thread, which may be broken off.
    ///
    /// Scopes may lie in one another: the inner one ends with the outer one.
    ///
    /// # Errors
    ///
    /// Fails when the work was broken off. What it returned is dropped then,
    /// as it may not be what it would be otherwise.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> Result<R, Interrupted> {
        let scope = Scope::enter(self);
        let result = work();
        let met = MET.get();
        drop(scope);
        if met { Err(self.interrupted()) } else { Ok(result) }
    }

    fn is_over(&self) -> bool {
        self.flags.iter().any(CancelFlag::is_cancelled)
            || self.limit.is_some_and(|limit| self.start.elapsed() >= limit)
            || self.checks.as_ref().is_some_and(|left| {
                let one_less = |left: usize| left.checked_sub(1);
                let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
                left.fetch_update(set, get, one_less).is_err()
            })
    }

    fn interrupted(&self) -> Interrupted {
        let elapsed = self.start.elapsed();
        let limit = self.limit.filter(|&limit| elapsed >= limit);
        Interrupted { limit, elapsed }
    }
}

thread_local! {
    /// Whether this thread is in any scope.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    /// Whether a check has failed in the innermost scope.
    static MET: Cell<bool> = const { Cell::new(false) };
    /// The interrupts of all scopes that this thread is in.
    static SCOPES: RefCell<Vec<Interrupt>> = const { RefCell::new(Vec::new()) };
}

/// Leaves a scope when it is dropped, by a panic too.
struct Scope {
    was_active: bool,
    was_met: bool,
}

impl Scope {
    fn enter(interrupt: &Interrupt) -> Scope {
        SCOPES.with_borrow_mut(|scopes| scopes.push(interrupt.clone()));
        Scope { was_active: ACTIVE.replace(true), was_met: MET.get() }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        SCOPES.with_borrow_mut(Vec::pop);
        ACTIVE.set(self.was_active);
        MET.set(self.was_met);
    }
}

/// Asks whether the work of this thread may go on.
///
/// It takes a nanosecond outside of [`Interrupt::run`], and a look at the
/// clock inside: ask every few microseconds.
///
/// # Errors
///
/// Fails when it may not, and from then on in the rest of the scope.
#[inline]
pub fn check() -> Result<(), Interrupted> {
    if ACTIVE.get() { look() } else { Ok(()) }
}

fn look() -> Result<(), Interrupted> {
    SCOPES.with_borrow(|scopes| {
        let over = scopes.iter().find(|interrupt| interrupt.is_over());
        let over = over.or(scopes.last().filter(|_| MET.get()));
        match over {
            Some(interrupt) => {
                MET.set(true);
                Err(interrupt.interrupted())
            }
            None => Ok(()),
        }
    })
}

/// Returns whether this thread is in a scope, so that [`check`] may fail.
pub fn is_active() -> bool {
    ACTIVE.get()
}

/// Asks whether everything in this scope has gone on to its end so far. To be
/// asked before an answer is stored.
///
/// # Errors
///
/// Fails when any [`check`] of this scope has failed.
#[inline]
pub fn confirm() -> Result<(), Interrupted> {
    if MET.get() { look() } else { Ok(()) }
}

/// The error of work that was broken off. What was there before it is as it
/// was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Interrupted {
    limit: Option<Duration>,
    elapsed: Duration,
}

impl Interrupted {
    /// Returns the limit on time that was met; none where a flag was set.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Returns how much time had passed when it was broken off.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = self.elapsed;
        match self.limit {
            Some(limit) => write!(
                f,
                "broken off after {elapsed:.1?}, at the limit of \
                 {limit:.1?}; allow more time, or ask again: what was \
                 finished is kept"
            ),
            None => write!(
                f,
                "cancelled after {elapsed:.1?}; ask again to go on: what was \
                 finished is kept"
            ),
        }
    }
}

impl std::error::Error for Interrupted {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_scope_everything_goes_on() {
        assert_eq!(check(), Ok(()));
        assert_eq!(confirm(), Ok(()));
        assert_eq!(Interrupt::never().run(check), Ok(Ok(())));
    }

    #[test]
    fn a_limit_is_met_for_the_rest_of_its_scope() {
        let interrupt = Interrupt::after(Duration::ZERO);
        let result = interrupt.run(|| {
            assert_eq!(confirm(), Ok(()), "nothing was asked");
            assert!(check().is_err());
            assert!(confirm().is_err());
        });
        let error = result.expect_err("no time");
        assert_eq!(error.limit(), Some(Duration::ZERO));
        assert!(error.to_string().contains("limit of 0.0ns"), "{error}");
        assert_eq!(confirm(), Ok(()));
        // Work that never asks is not broken off.
        assert_eq!(interrupt.run(|| 1), Ok(1));
    }

    #[test]
    fn scopes_end_with_those_around_them() {
        let (outer, inner) = (CancelFlag::new(), CancelFlag::new());
        let result = Interrupt::on(&outer).run(|| {
            inner.cancel();
            assert!(Interrupt::on(&inner).run(check).is_err());
            assert_eq!(check(), Ok(()), "that was the inner one");
            outer.cancel();
            assert!(Interrupt::never().run(check).is_err());
            check()
        });
        assert_eq!(result.expect_err("cancelled").limit(), None);
    }

    #[test]
    fn a_panic_leaves_the_scope() {
        let work = || -> () { std::panic::resume_unwind(Box::new(())) };
        let interrupt = Interrupt::after(Duration::ZERO);
        assert!(std::panic::catch_unwind(|| interrupt.run(work)).is_err());
        assert_eq!(check(), Ok(()));
    }
}
