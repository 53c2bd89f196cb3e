//! Smaller schemas and documents with the same fault.

use serde_json::Value;

/// One step towards a place in a value.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

/// Makes a value smaller as long as `is_bad` says that it still shows the
/// fault: parts are taken out, or take the place of what they are part of.
pub fn shrink(value: &Value, is_bad: &mut dyn FnMut(&Value) -> bool) -> Value {
    let mut value = value.clone();
    // Each round makes the value smaller.
    while let Some(smaller) =
        candidates(&value).into_iter().find(|smaller| is_bad(smaller))
    {
        value = smaller;
    }
    value
}

/// Values that are a little smaller, the smallest first.
fn candidates(value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    for path in paths(value) {
        let inner = at(value, &path);
        match inner {
            Value::Object(members) => found.extend(
                members
                    .values()
                    .cloned()
                    .chain([
                        Value::Bool(true),
                        Value::Object(serde_json::Map::new()),
                    ])
                    .map(|part| with(value, &path, Some(part))),
            ),
            Value::Array(items) => found.extend(
                items
                    .iter()
                    .map(|part| with(value, &path, Some(part.clone()))),
            ),
            Value::String(text) if text.len() > 1 => {
                found.push(with(value, &path, Some(Value::from("a"))));
            }
            _ => {}
        }
        if !path.is_empty() {
            found.push(with(value, &path, None));
        }
    }
    let size = value.to_string().len();
    let mut sized: Vec<(usize, Value)> = found
        .into_iter()
        .map(|value| (value.to_string().len(), value))
        .filter(|(len, _)| *len < size)
        .collect();
    sized.sort_by_key(|(len, _)| *len);
    sized.into_iter().map(|(_, value)| value).collect()
}

fn paths(value: &Value) -> Vec<Vec<Step>> {
    let mut found = Vec::new();
    let mut pending = vec![(Vec::new(), value)];
    while let Some((path, value)) = pending.pop() {
        let mut push = |step: Step, inner| {
            let mut path = path.clone();
            path.push(step);
            pending.push((path, inner));
        };
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| push(Step::Index(index), item)),
            Value::Object(members) => members
                .iter()
                .for_each(|(key, inner)| push(Step::Key(key.clone()), inner)),
            _ => {}
        }
        found.push(path);
    }
    found
}

fn at<'a>(value: &'a Value, path: &[Step]) -> &'a Value {
    path.iter().fold(value, |value, step| match step {
        Step::Key(key) => &value[key],
        Step::Index(index) => &value[index],
    })
}

/// Puts a part in the place that a path leads to, or takes it out.
fn with(value: &Value, path: &[Step], part: Option<Value>) -> Value {
    let mut value = value.clone();
    let Some((last, before)) = path.split_last() else {
        return part.unwrap_or_default();
    };
    let mut place = &mut value;
    for step in before {
        place = match step {
            Step::Key(key) => &mut place[key],
            Step::Index(index) => &mut place[index],
        };
    }
    match (last, part) {
        (Step::Key(key), Some(part)) => place[key] = part,
        (Step::Index(index), Some(part)) => place[index] = part,
        (Step::Key(key), None) => {
            place.as_object_mut().map(|members| members.shift_remove(key));
        }
        (Step::Index(index), None) => {
            place.as_array_mut().map(|items| items.remove(*index));
        }
    }
    value
}
