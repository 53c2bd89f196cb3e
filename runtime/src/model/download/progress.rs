//! Who is told what a download is doing.

/// Is told what a download is doing.
///
/// One transfer is under way at a time: [`start`](Progress::start), any number
/// of [`advance`](Progress::advance), [`finish`](Progress::finish).
pub trait Progress: Sync {
    /// Something worth a line happened.
    fn note(&self, text: &str);

    /// A transfer of `total` bytes begins.
    fn start(&self, what: &str, total: u64);

    /// So many bytes of the transfer are here.
    fn advance(&self, position: u64);

    /// The transfer is over, well or badly.
    fn finish(&self);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn note(&self, _text: &str) {}
    fn start(&self, _what: &str, _total: u64) {}
    fn advance(&self, _position: u64) {}
    fn finish(&self) {}
}
