//! Mutants of real files, a few thousand of the campaign of `cargo xtask mutants`.

use halite_tests::fuzz::Outcome;
use halite_tests::mutants::{kinds, mutant};

/// Mutants that are tried here.
const COUNT: u64 = 3_000;

/// Numbers of this test, apart from those of the campaign.
const FIRST: u64 = 1 << 40;

#[test]
fn mutants_of_real_files_are_refused_or_harmless() {
    let kinds = kinds(Vec::new());
    let threads = 2;
    let tallies: Vec<[u64; 3]> = std::thread::scope(|scope| {
        let part = |thread| {
            let kinds = &kinds;
            move || {
                let mut tally = [0; 3];
                for number in (FIRST + thread..FIRST + COUNT).step_by(threads) {
                    let mutant = mutant(kinds, number);
                    let _shown = Shown(number, &mutant.history);
                    tally[mutant.exercise() as usize] += 1;
                }
                tally
            }
        };
        let threads: Vec<_> = (0..threads as u64)
            .map(|thread| scope.spawn(part(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let total = |outcome: Outcome| {
        tallies
            .iter()
            .map(|tally| tally[outcome as usize])
            .sum::<u64>()
    };
    // Both happen often: the mutants are neither all absurd nor all as good as the files.
    assert!(total(Outcome::Refused) > COUNT / 10, "{tallies:?}");
    assert!(total(Outcome::Taken) > COUNT / 20, "{tallies:?}");
    assert!(total(Outcome::Ran) > COUNT / 60, "{tallies:?}");
}

/// Tells which mutant it was when a panic passes by.
struct Shown<'a>(u64, &'a str);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("mutant {}: {}", self.0, self.1);
        }
    }
}
