//! Ten sentences to classify, and the labels.

/// The labels.
pub const LABELS: [&str; 3] = ["positive", "negative", "mixed"];

/// The sentences.
pub const TEXTS: [&str; 10] = [
    "I loved every minute of it.",
    "Terrible. I want my money back.",
    "The food was good but the service was slow.",
    "Best purchase I have made this year!",
    "It broke on the second day.",
    "Some chapters shine, others drag.",
    "Absolutely wonderful staff.",
    "Never again.",
    "Great screen, awful battery.",
    "It does what it says, and does it well.",
];
