//! Workers that are processes of this machine, asked through their standard input and output.

use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use super::{Fleet, Line};

/// A frame is its length and its bytes; `None` where there are no more.
pub(super) fn read_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut bytes = vec![];
    let length = u64::from_le_bytes(length);
    // what is not there asks for no memory
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length {
        Ok(Some(bytes))
    } else {
        Ok(None)
    }
}

pub(super) fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Starts so many processes of a command that [`serve`](super::serve)s.
pub struct Processes {
    command: Vec<String>,
    workers: usize,
    threads: usize,
}

impl Processes {
    /// `command` is the program and its arguments; each worker has so many threads.
    pub fn new(command: Vec<String>, workers: usize, threads: usize) -> Self {
        Self {
            command,
            workers,
            threads,
        }
    }
}

impl Fleet for Processes {
    fn wanted(&self) -> usize {
        self.workers
    }

    fn start(&self, _: bool) -> Result<Option<Box<dyn Line>>, String> {
        let (program, arguments) = self.command.split_first().ok_or("there is no command")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("RAYON_NUM_THREADS", self.threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // Ctrl-C is for the fit, which ends its workers
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        #[cfg(windows)]
        std::os::windows::process::CommandExt::creation_flags(&mut command, 0x200);
        let mut child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
        let ends = child.stdin.take().zip(child.stdout.take());
        let (to, from) = ends.ok_or("it has no pipes")?;
        Ok(Some(Box::new(Process {
            to: BufWriter::new(to),
            from: BufReader::new(from),
            child,
        })))
    }
}

/// A process; killed when it is dropped, unless it has ended.
struct Process {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Process {
    /// Why it does not answer.
    fn ended(&mut self) -> String {
        // whatever it still does, it is not heard any more
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => how(status),
            Err(error) => format!("does not answer: {error}"),
        }
    }
}

fn how(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("was killed by signal {signal}");
    }
    format!("ended with code {}", status.code().unwrap_or(-1))
}

impl Line for Process {
    fn send(&mut self, request: &[u8]) -> Result<(), String> {
        write_frame(&mut self.to, request).map_err(|_| self.ended())
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        let frame = read_frame(&mut self.from);
        frame.ok().flatten().ok_or_else(|| self.ended())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.ended();
    }
}
