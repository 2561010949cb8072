//! Values that compress about as well as events do.

/// How many different ones there are.
const COUNT: usize = 4096;

/// Values of one length, the same in every run.
pub(crate) struct Values(Vec<Vec<u8>>);

impl Values {
    pub(crate) fn new(size: usize) -> Values {
        let mut random = fastrand::Rng::with_seed(7);
        Values((0..COUNT).map(|_| value(&mut random, size)).collect())
    }

    pub(crate) fn get(&self, number: u64) -> &[u8] {
        &self.0[number as usize % COUNT]
    }
}

fn value(random: &mut fastrand::Rng, size: usize) -> Vec<u8> {
    const CITIES: [&str; 6] = ["Lisbon", "Oslo", "Quito", "Hanoi", "Dakar", "Turin"];
    let mut text = String::new();
    while text.len() < size {
        let city = random.choice(CITIES).unwrap_or_default();
        let (order, amount) = (random.u32(..), random.u16(..));
        text += &format!(r#"{{"order":{order},"city":"{city}","amount":{amount}}}"#);
    }
    text.truncate(size);
    text.into_bytes()
}
