//! A line on stderr every few seconds: how far the run is, and which schema
//! holds it up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where the run is.
#[derive(Clone, Debug)]
pub struct Progress {
    place: Arc<Mutex<Place>>,
}

#[derive(Debug)]
struct Place {
    done: usize,
    what: String,
    since: Instant,
    finished: bool,
}

const INTERVAL: Duration = Duration::from_secs(10);

impl Progress {
    /// Starts reporting on `total` schemas.
    pub fn start(total: usize) -> Progress {
        let place = Place {
            done: 0,
            what: String::new(),
            since: Instant::now(),
            finished: false,
        };
        let progress = Progress { place: Arc::new(Mutex::new(place)) };
        let place = Arc::clone(&progress.place);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(INTERVAL);
                let place =
                    place.lock().unwrap_or_else(PoisonError::into_inner);
                if place.finished {
                    return;
                }
                let seconds = place.since.elapsed().as_secs();
                eprintln!(
                    "{} of {total}: {} ({seconds} s)",
                    place.done, place.what
                );
            }
        });
        progress
    }

    /// Says what is being run now.
    pub fn at(&self, done: usize, engine: &str, schema: &str) {
        let mut place =
            self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.done = done;
        place.what = format!("{engine} on {schema}");
        place.since = Instant::now();
    }

    /// Ends the reporting.
    pub fn finish(&self) {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).finished =
            true;
    }
}
