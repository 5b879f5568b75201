//! Which runs there are.

use std::fmt;

use clap::ValueEnum;

use super::calls::{CALLS, Call};
use super::injector::{Counts, Phase, Target};
use super::options::Options;
use super::script::{Over, ROLES, Role};
use crate::Failure;

/// A run: the participant with the fault, and its call that fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) over: Over,
    pub(super) role: Role,
    pub(super) target: Target,
}

/// The command line that repeats a run.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target {
            phase,
            call,
            place,
            position,
            errno,
        } = self.target;
        write!(
            f,
            "processes faults --fabric {} --role {:?} --phase {} --call '{}' --place '{place}' \
             --position {position} --errno {}",
            name_of(self.over),
            self.role,
            name_of(phase),
            call.name,
            errno.name,
        )
    }
}

/// As it stands on the command line.
pub(super) fn name_of(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// All runs that the options ask for, of calls that were counted, for each of the roles.
pub(super) fn points(options: &Options, counts: &[Counts]) -> Result<Vec<Point>, Failure> {
    if let Some(name) = &options.call
        && Call::named(name).is_none()
    {
        let names: Vec<&str> = CALLS.iter().map(|call| call.name).collect();
        let text = format!("there is no call {name}, but {}", names.join(" "));
        return Err(Failure::Run(text));
    }
    let mut points = Vec::new();
    for (role, counts) in ROLES.into_iter().zip(counts) {
        for (&(phase, name, place), &counted) in counts {
            let Some(call) = Call::named(name) else {
                continue;
            };
            let positions = counted
                .min(call.positions_max)
                .min(options.first.unwrap_or(usize::MAX));
            // One that is asked for may lie beyond those that were counted this time.
            let positions = match options.position {
                Some(position) => position..position + 1,
                None => 0..positions,
            };
            let errnos = || call.errnos.iter().copied();
            points.extend(
                positions
                    .flat_map(|position| errnos().map(move |errno| (position, errno)))
                    .map(|(position, errno)| Point {
                        over: options.fabric,
                        role,
                        target: Target {
                            phase,
                            call,
                            place,
                            position,
                            errno,
                        },
                    }),
            );
        }
    }
    points.retain(|point| is_asked_for(options, point));
    if options.quick {
        points.retain(|point| point.target.position == 0 && is_quick(point));
    }
    if let Some([count, seed]) = options.sample.as_deref() {
        draw(&mut points, *count as usize, *seed);
    }
    Ok(points)
}

/// Whether a run is one of the few that show each kind of fault.
fn is_quick(point: &Point) -> bool {
    let target = &point.target;
    let (call, errno) = (target.call.name, target.errno.name);
    match point.over {
        Over::Shm | Over::Tcp => QUICK.contains(&(call, errno)),
        Over::Logged => QUICK_OF_LOGS.contains(&(point.role, target.phase, call, errno)),
    }
}

/// The same of logs.
const QUICK_OF_LOGS: &[(Role, Phase, &str, &str)] = &[
    (Role::A, Phase::Join, "pwritev", "ENOSPC"),
    (Role::A, Phase::Join, "openat(create)", "EMFILE"),
    (Role::B, Phase::Join, "fdatasync", "EIO"),
    (Role::B, Phase::Change, "fdatasync", "EINTR"),
    (Role::A, Phase::End, "rename", "EROFS"),
    (Role::C, Phase::Join, "mkdir", "EACCES"),
    (Role::C, Phase::Join, "flock", "ENOLCK"),
    (Role::C, Phase::Join, "clone3", "EAGAIN"),
    (Role::C, Phase::Return, "openat", "EMFILE"),
    (Role::C, Phase::Return, "pread", "EIO"),
];

/// Calls and errnos: one pair for each way in which the product handles a failure.
const QUICK: &[(&str, &str)] = &[
    ("openat", "EMFILE"),
    ("openat", "EACCES"),
    ("read(file)", "EIO"),
    ("readlink", "EACCES"),
    ("pread", "EIO"),
    ("pwrite", "ENOSPC"),
    ("fcntl(lock)", "ENOLCK"),
    ("unlinkat", "EACCES"),
    ("memfd_create", "EMFILE"),
    ("ftruncate", "ENOSPC"),
    ("mmap(file)", "ENOMEM"),
    ("clone3", "EAGAIN"),
    ("ppoll", "ENOMEM"),
    ("poll", "ENOMEM"),
    ("recvmsg", "ENOMEM"),
    ("sendmsg", "ENOBUFS"),
    ("accept4", "EMFILE"),
    ("socket", "EMFILE"),
    ("connect", "ECONNREFUSED"),
    ("getsockopt", "ENOBUFS"),
    ("setsockopt", "ENOBUFS"),
    ("epoll_ctl", "ENOMEM"),
    ("fcntl(duplicate)", "EMFILE"),
    ("sendto", "ENOBUFS"),
];

fn is_asked_for(options: &Options, point: &Point) -> bool {
    let target = &point.target;
    options.role.is_none_or(|role| role == point.role)
        && options.phase.is_none_or(|phase| phase == target.phase)
        && (options.call.as_deref()).is_none_or(|call| call == target.call.name)
        && (options.place.as_deref()).is_none_or(|place| place == target.place.to_string())
        && (options.errno.as_deref()).is_none_or(|errno| errno == target.errno.name)
}

/// Keeps `count` of them, by the seed, in their order.
fn draw(points: &mut Vec<Point>, count: usize, seed: u64) {
    let mut state = seed;
    let mut left_to_draw = count;
    let mut left = points.len();
    points.retain(|_| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = state;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^= drawn >> 31;
        let keep = drawn % left as u64 <= left_to_draw.wrapping_sub(1) as u64 && left_to_draw > 0;
        left -= 1;
        left_to_draw -= usize::from(keep);
        keep
    });
}

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &str) -> Options {
        // As a shell takes it: blanks within quotes part no words.
        let quoted = line
            .split('\'')
            .enumerate()
            .flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
        Line::parse_from(["faults"].into_iter().chain(quoted)).options
    }

    fn all(line: &str) -> Vec<Point> {
        let counts = Counts::from([
            ((Phase::Join, "openat", Place::named("main N")), 3),
            ((Phase::Join, "poll", Place::named("main")), 1000),
            ((Phase::Leave, "fsync", Place::named("main N")), 1),
        ]);
        points(&options(line), &[counts.clone(), counts, Counts::new()]).expect("a plan")
    }

    #[test]
    fn each_position_fails_with_each_errno() {
        let check = |line: &str, expected: usize| assert_eq!(all(line).len(), expected, "{line}");
        // Loops come by too many times.
        check("", 2 * (3 * 4 + 3 * 2 + 2));
        check("--role A", 3 * 4 + 3 * 2 + 2);
        check("--role C", 0);
        check("--phase leave", 2 * 2);
        check("--call openat --errno EMFILE", 2 * 3);
        check("--first 1", 2 * (4 + 2 + 2));
        check("--sample 5 1", 5);
        check("--sample 500 1", 40);
        check("--quick", 2 * (2 + 1));
        check(
            "--role A --phase join --call openat --position 7 --errno EIO",
            1,
        );
    }

    #[test]
    fn a_run_is_repeated_by_its_command_line() {
        for point in all("--fabric tcp") {
            let line = point.to_string();
            let line = line.trim_start_matches("processes faults ");
            let again = all(line);
            assert_eq!(again.len(), 1, "{line}");
            assert_eq!(again[0].to_string(), point.to_string());
        }
    }

    #[test]
    fn a_sample_depends_on_its_seed() {
        let lines = |seed: &str| {
            let points = all(&format!("--sample 10 {seed}"));
            points.iter().map(Point::to_string).collect::<Vec<_>>()
        };
        assert_eq!(lines("1"), lines("1"));
        assert_ne!(lines("1"), lines("2"));
    }
}
