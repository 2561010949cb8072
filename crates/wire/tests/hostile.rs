//! Millions of broken frames: none makes a decoder panic, recurse, dawdle, or reserve more memory
//! than the frame's own size implies.
//!
//! The frames are thrown in a process of their own with an address space that one reckless
//! reservation would exceed. `KOHORT_HOSTILE_FRAMES` says how many, `KOHORT_TEST_SEED` which;
//! `KOHORT_FUZZ_SECONDS` has more thrown, of the next seed each time, for so long.

mod support;

use std::{
    env,
    process::Command,
    time::{Duration, Instant},
};

use bytes::Bytes;
use kohort_wire::{
    ApiKey,
    codec::{DecodeError, Decoder},
    frame,
};
use support::{AnyMessage, Generator, Shape, case_rng, every_message, hex, seed};

/// How many frames are thrown unless `KOHORT_HOSTILE_FRAMES` says otherwise.
const FRAMES: u64 = 3_000_000;

/// What a decode may reserve for each byte of the frame: what lists may, and the bookkeeping of
/// shared byte strings on top.
const MEMORY_PER_BYTE: u64 = 48;
const MEMORY_CONSTANT: u64 = 1024;

/// The address space of the child: enough for the test itself, too little for a gigabyte.
const ADDRESS_SPACE: u64 = 768 << 20;

const CHILD: &str = "KOHORT_HOSTILE_CHILD";

#[test]
fn broken_frames_cost_nobody_anything() {
    if env::var_os(CHILD).is_some() {
        limit_address_space();
        let seconds = env::var("KOHORT_FUZZ_SECONDS").map_or(0, |text| {
            text.parse().expect("KOHORT_FUZZ_SECONDS is a number")
        });
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut seed = seed();
        throw_frames(seed);
        while Instant::now() < end {
            seed += 1;
            throw_frames(seed);
        }
        return;
    }
    let child = Command::new(env::current_exe().expect("the path of this test"))
        .args([
            "--exact",
            "broken_frames_cost_nobody_anything",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .output()
        .expect("the test starts itself");
    let said = String::from_utf8_lossy(&child.stdout);
    println!("{said}{}", String::from_utf8_lossy(&child.stderr));
    assert!(
        child.status.success(),
        "the decoding process ended by {}",
        child.status
    );
}

#[cfg(target_os = "linux")]
fn limit_address_space() {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let limit = Rlimit {
        current: Some(ADDRESS_SPACE),
        maximum: Some(ADDRESS_SPACE),
    };
    setrlimit(Resource::As, limit).expect("a limit can be lowered");
}

/// Elsewhere the counting of every reservation has to do.
#[cfg(not(target_os = "linux"))]
fn limit_address_space() {}

type Decode = Box<dyn Fn(&Bytes) -> Result<(), DecodeError>>;

/// Something that reads frames.
struct Target {
    name: &'static str,
    version: i16,
    decode: Decode,
    seeds: Vec<Bytes>,
}

fn throw_frames(seed: u64) {
    let frames: u64 = env::var("KOHORT_HOSTILE_FRAMES").map_or(FRAMES, |text| {
        text.parse().expect("KOHORT_HOSTILE_FRAMES is a number")
    });
    let targets = targets(seed);
    let each = frames.div_ceil(targets.len() as u64);
    println!(
        "{each} frames at each of {} versions of messages, KOHORT_TEST_SEED={seed}",
        targets.len()
    );
    let start = Instant::now();
    let mut worst = Worst::default();
    let (mut thrown, mut read) = (0u64, 0u64);
    for target in &targets {
        // The last line before an abort says what was decoded.
        println!("{} v{}", target.name, target.version);
        for case in 0..each {
            let mut rng = case_rng(seed, target.name, target.version, case);
            let frame = break_frame(&mut rng, &target.seeds);
            thrown += 1;
            read += u64::from(throw(target, &frame, case, &mut worst));
        }
    }
    let nanoseconds = start.elapsed().as_nanos() as u64 / thrown.max(1);
    println!(
        "{thrown} frames in {:.1?}, {nanoseconds} ns each with their making; {read} were read as \
         messages; at most {} bytes reserved for a frame of {} bytes by {}, at most {:?} for one",
        start.elapsed(),
        worst.reserved,
        worst.length,
        worst.name,
        worst.time,
    );
}

#[derive(Default)]
struct Worst {
    reserved: u64,
    length: usize,
    name: String,
    time: Duration,
}

/// Decodes a frame. Whether it could be read.
fn throw(target: &Target, frame: &Bytes, case: u64, worst: &mut Worst) -> bool {
    let context = || {
        format!(
            "{} v{}, case {case}, frame {}",
            target.name,
            target.version,
            hex(frame)
        )
    };
    let start = Instant::now();
    let mut outcome = None;
    let memory = allocation_counter::measure(|| {
        let decode = std::panic::AssertUnwindSafe(|| (target.decode)(frame));
        outcome = Some(std::panic::catch_unwind(decode));
    });
    let time = start.elapsed();
    let Some(Ok(result)) = outcome else {
        panic!("a panic: {}", context());
    };
    let reserved = memory.bytes_total;
    let allowed = frame.len() as u64 * MEMORY_PER_BYTE + MEMORY_CONSTANT;
    assert!(
        reserved <= allowed,
        "{reserved} bytes reserved: {}",
        context()
    );
    assert!(time < Duration::from_secs(5), "{time:?}: {}", context());
    worst.time = worst.time.max(time);
    if reserved > worst.reserved {
        worst.reserved = reserved;
        worst.length = frame.len();
        worst.name = format!("{} v{}", target.name, target.version);
    }
    result.is_ok()
}

fn targets(seed: u64) -> Vec<Target> {
    let mut targets = Vec::new();
    for message in every_message() {
        for version in message.every_version() {
            let AnyMessage { name, decode, .. } = message;
            targets.push(Target {
                name,
                version,
                decode: Box::new(move |frame| decode(frame, version)),
                seeds: seeds(seed, &message, version),
            });
        }
    }
    // A frame as it comes from a connection: whatever its header says, it is read as that.
    let mut requests = Vec::new();
    for &api in ApiKey::ALL {
        for version in api.versions().first..=api.versions().last {
            let mut header = Vec::new();
            header.extend((api as i16).to_be_bytes());
            header.extend(version.to_be_bytes());
            header.extend([0, 0, 0, 9, 0, 3, b'a', b'b', b'c', 0]);
            requests.push(Bytes::from(header));
        }
    }
    targets.push(Target {
        name: "a request with its header",
        version: 0,
        decode: Box::new(|frame| request(frame.clone())),
        seeds: requests,
    });
    macro_rules! responses {
        ($($name:ident: $request:ident => $response:ident;)*) => {
            $(
                targets.push(Target {
                    name: concat!(stringify!($response), " with its header"),
                    version: ApiKey::$name.versions().last,
                    decode: Box::new(|frame| {
                        let version = ApiKey::$name.versions().last;
                        frame::decode_response::<kohort_wire::messages::$request>(
                            frame.clone(),
                            version,
                        )
                        .map(drop)
                    }),
                    seeds: vec![Bytes::from_static(&[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1])],
                });
            )*
        };
    }
    kohort_wire::for_each_api!(responses);
    targets
}

fn request(frame: Bytes) -> Result<(), DecodeError> {
    let mut input = Decoder::new(frame);
    let header = frame::RequestHeader::decode(&mut input)?;
    macro_rules! decode {
        ($($name:ident: $request:ident => $response:ident;)*) => {
            match ApiKey::try_from(header.api_key) {
                $(
                    Ok(ApiKey::$name) => frame::decode_request::<kohort_wire::messages::$request>(
                        input,
                        header.api_version,
                    )
                    .map(drop),
                )*
                Err(_) => Ok(()),
            }
        };
    }
    kohort_wire::for_each_api!(decode)
}

/// Frames that are right, to be broken.
fn seeds(seed: u64, message: &AnyMessage, version: i16) -> Vec<Bytes> {
    let mut seeds: Vec<Bytes> = (0..6)
        .map(|case| {
            let shape = match case {
                0 => Shape::Full,
                1 => Shape::SmallElements,
                _ => Shape::Random,
            };
            let rng = case_rng(seed, message.name, version, case);
            Generator::new(rng, shape).frame(&message.schema, version)
        })
        .collect();
    // Long frames say nothing that short ones do not, and take the time of many.
    seeds.retain(|frame| frame.len() <= 600);
    seeds.push(Bytes::new());
    seeds
}

/// Breaks one of the frames, in one way or in several at once.
fn break_frame(rng: &mut fastrand::Rng, seeds: &[Bytes]) -> Bytes {
    let pick = |rng: &mut fastrand::Rng| &seeds[rng.usize(..seeds.len())];
    let mut frame = pick(rng).to_vec();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..=frame.len());
        match rng.u8(..12) {
            0 => frame.truncate(at),
            1 | 2 if !frame.is_empty() => {
                let at = at.min(frame.len() - 1);
                frame[at] ^= 1 << rng.u8(..8);
            }
            3 if !frame.is_empty() => {
                let at = at.min(frame.len() - 1);
                frame[at] = rng.u8(..);
            }
            // A length that claims everything, over what stood there or before it.
            4 => overwrite(&mut frame, at, &lengths(rng)),
            5 => insert(&mut frame, at, &lengths(rng)),
            // Bytes that stand in another place in another frame.
            6 => {
                let other = pick(rng);
                let start = rng.usize(..=other.len());
                let end = rng.usize(start..=other.len().min(start + 64));
                insert(&mut frame, at, &other[start..end]);
            }
            7 => {
                let end = frame.len().min(at + rng.usize(..16));
                frame.drain(at..end);
            }
            8 => {
                let random: Vec<u8> = (0..rng.usize(1..24)).map(|_| rng.u8(..)).collect();
                insert(&mut frame, at, &random);
            }
            // Tagged fields: many, known and unknown, within each other, each too long or empty.
            9 => {
                let mut tags = vec![rng.u8(..)];
                for _ in 0..rng.usize(1..30) {
                    tags.extend([rng.u8(..6), rng.u8(..12), rng.u8(..3)]);
                }
                insert(&mut frame, at, &tags);
            }
            // As many elements as there are bytes, none of which takes much room.
            10 => {
                let zeros = rng.usize(1..300);
                frame.truncate(at);
                if rng.bool() {
                    frame.extend((zeros as u32).to_be_bytes());
                } else {
                    frame.extend([zeros as u8 | 0x80, (zeros >> 7) as u8]);
                }
                let filler = *rng.choice(&[0u8, 1, 0xff]).expect("a filler");
                frame.extend(std::iter::repeat_n(filler, zeros));
            }
            _ => frame = (0..rng.usize(..64)).map(|_| rng.u8(..)).collect(),
        }
    }
    frame.into()
}

/// The spelling of a length that no frame justifies.
fn lengths(rng: &mut fastrand::Rng) -> Vec<u8> {
    let wide = [i32::MAX, i32::MIN, -1, -2, 0x4000_0000, 0x00ff_ffff, 0xffff];
    match rng.u8(..3) {
        0 => rng.choice(wide).expect("a length").to_be_bytes().to_vec(),
        1 => rng
            .choice([i16::MAX, i16::MIN, -1, -2])
            .expect("a length")
            .to_be_bytes()
            .to_vec(),
        _ => rng
            .choice([
                &[0xff, 0xff, 0xff, 0xff, 0x0f][..],
                &[0xff, 0xff, 0xff, 0xff, 0x7f],
                &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
                &[0xff, 0xff, 0x7f],
                &[0xff, 0x01],
                &[0x80, 0x00],
            ])
            .expect("a length")
            .to_vec(),
    }
}

fn overwrite(frame: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    frame.truncate(frame.len().max(at));
    let end = frame.len().min(at + bytes.len());
    frame.splice(at..end, bytes.iter().copied());
}

fn insert(frame: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    frame.splice(at..at, bytes.iter().copied());
}
