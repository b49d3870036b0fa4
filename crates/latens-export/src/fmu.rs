//! Functional mock-up units, FMI 2.0 and 3.0: the C files, their description, and a library compiled of
//! them where there is a compiler.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use latens::Error;

use crate::c;
use crate::exported::{Exported, Listed};
use crate::names::xml_text;
use crate::zip::archive;

const COMMON_CODE: &str = include_str!("fmu/common.c");

/// A version of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fmi {
    /// 2.0, which every tool reads.
    Two,
    /// 3.0.
    Three,
}

/// The unit, and whether a library is in it.
pub fn unit(exported: &Exported, version: Fmi) -> Result<(Vec<u8>, bool), Error> {
    let stem = exported.names.model.as_str();
    let (header, model) = (format!("{stem}.h"), format!("{stem}.c"));
    let source = c::source(exported, &header);
    let token = token(&source);
    let (interface, name) = match version {
        Fmi::Two => (include_str!("fmu/fmi2.c"), "fmi2.c"),
        Fmi::Three => (include_str!("fmu/fmi3.c"), "fmi3.c"),
    };
    let nominal = exported.fit.facts.scales.scale.iter();
    let nominal: Vec<String> = nominal.map(|s| c::number(*s)).collect();
    let fields = [
        ("STEM", stem),
        ("TOKEN", &token),
        ("NOMINAL", &nominal.join(", ")),
    ];
    let interface = c::fill(
        &format!("{COMMON_CODE}{interface}"),
        &c::prefix(exported),
        &fields,
    );
    let sources = [
        (model, source),
        (header, c::header(exported)),
        (name.to_string(), interface),
    ];
    let compiled: Vec<&str> = vec![&sources[0].0, name];
    let description = match version {
        Fmi::Two => describe_2(exported, &token, &compiled),
        Fmi::Three => describe_3(exported, &token),
    };
    let mut files = vec![("modelDescription.xml".to_string(), description.into_bytes())];
    for (name, text) in &sources {
        files.push((format!("sources/{name}"), text.clone().into_bytes()));
    }
    if version == Fmi::Three {
        let build = build_description(exported, &compiled);
        files.push(("sources/buildDescription.xml".into(), build.into_bytes()));
    }
    let library = library(&sources, &compiled)?;
    let is_compiled = library.is_some();
    if let Some(bytes) = library {
        let (folder, ending) = platform(version);
        files.push((format!("binaries/{folder}/{stem}.{ending}"), bytes));
    }
    Ok((archive(&files), is_compiled))
}

/// A name for what is in the sources, which description and library must share.
fn token(source: &str) -> String {
    // FNV-1a from two beginnings
    let hash = |start: u64| {
        source.bytes().fold(start, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let (a, b) = (hash(0xcbf2_9ce4_8422_2325), hash(0x9e37_79b9_7f4a_7c15));
    let digits = format!("{a:016x}{b:016x}");
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    format!("{{{}}}", parts.join("-"))
}

/// Where a library for this machine lies, and its ending.
fn platform(version: Fmi) -> (String, &'static str) {
    let (system, ending) = match env::consts::OS {
        "macos" => ("darwin", "dylib"),
        "windows" => ("win", "dll"),
        _ => ("linux", "so"),
    };
    let folder = match version {
        Fmi::Two => format!("{system}64"),
        Fmi::Three => {
            let system = if system == "win" { "windows" } else { system };
            format!("{}-{system}", env::consts::ARCH)
        }
    };
    (folder, ending)
}

/// Compiles the sources; `None` where there is no compiler.
fn library(sources: &[(String, String)], compiled: &[&str]) -> Result<Option<Vec<u8>>, Error> {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let is_there = Command::new(&compiler).arg("--version").output();
    if !is_there.is_ok_and(|o| o.status.success()) {
        return Ok(None);
    }
    let folder = env::temp_dir().join(format!("latens-fmu-{}-{:p}", std::process::id(), sources));
    let library = compile(&compiler, &folder, sources, compiled);
    let _ = fs::remove_dir_all(&folder);
    library.map(Some).map_err(|source| Error::Io {
        action: "compile",
        path: folder,
        source,
    })
}

fn compile(
    compiler: &std::ffi::OsStr,
    folder: &Path,
    sources: &[(String, String)],
    compiled: &[&str],
) -> io::Result<Vec<u8>> {
    fs::create_dir(folder)?;
    for (name, text) in sources {
        fs::write(folder.join(name), text)?;
    }
    let output = Command::new(compiler)
        .current_dir(folder)
        .args(["-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"])
        .args(compiled)
        .args(["-o", "library", "-lm"])
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(said));
    }
    fs::read(folder.join("library"))
}

/// A variable of a unit. They are numbered as `common.c` has them.
struct Variable<'a> {
    name: String,
    listed: &'a Listed<'a>,
    causality: &'static str,
    variability: &'static str,
    start: Option<f64>,
    /// The number of the state whose derivative it is.
    derivative_of: Option<usize>,
}

impl Variable<'_> {
    /// How its value begins, in words of both versions.
    fn initial(&self) -> &'static str {
        match (self.causality, self.derivative_of) {
            ("input", _) => "",
            ("output", _) | (_, Some(_)) => " initial=\"calculated\"",
            _ => " initial=\"exact\"",
        }
    }

    fn unit(&self) -> String {
        match unit_text(self.listed.unit) {
            // the unit of a rate is not in the file
            Some(unit) if self.derivative_of.is_none() => format!(" unit=\"{unit}\""),
            _ => String::new(),
        }
    }

    fn start(&self) -> String {
        let start = self.start.map(|v| format!(" start=\"{v:?}\""));
        start.unwrap_or_default()
    }
}

fn unit_text(unit: &str) -> Option<String> {
    let text = xml_text(unit.trim()).trim().to_string();
    (!text.is_empty()).then_some(text)
}

fn variables<'a>(
    exported: &Exported,
    listed: &'a [(&str, Vec<Listed<'a>>); 4],
) -> Vec<Variable<'a>> {
    let [(_, states), (_, inputs), (_, outputs), (_, constants)] = listed;
    let mut found: Vec<Variable> = vec![];
    let mut add = |name: String, listed, causality, variability, start, derivative_of| {
        let mut name = name;
        // a measurement may be called like a state
        while found.iter().any(|v| v.name == name) {
            name += ".measured";
        }
        found.push(Variable {
            name,
            listed,
            causality,
            variability,
            start,
            derivative_of,
        });
    };
    for (state, start) in states.iter().zip(&exported.start) {
        add(
            state.name.into(),
            state,
            "local",
            "continuous",
            Some(*start),
            None,
        );
    }
    for (i, state) in states.iter().enumerate() {
        add(
            format!("der({})", state.name),
            state,
            "local",
            "continuous",
            None,
            Some(i),
        );
    }
    for input in inputs {
        add(
            input.name.into(),
            input,
            "input",
            "continuous",
            Some(0.0),
            None,
        );
    }
    for output in outputs {
        add(
            output.name.into(),
            output,
            "output",
            "continuous",
            None,
            None,
        );
    }
    for (constant, value) in constants.iter().zip(&exported.constants) {
        add(
            constant.name.into(),
            constant,
            "parameter",
            "tunable",
            Some(*value),
            None,
        );
    }
    found
}

fn unit_definitions(variables: &[Variable]) -> String {
    let mut units: Vec<String> = vec![];
    for unit in variables.iter().filter_map(|v| unit_text(v.listed.unit)) {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    if units.is_empty() {
        return String::new();
    }
    let definitions: String = units
        .iter()
        .map(|u| format!("    <Unit name=\"{u}\"/>\n"))
        .collect();
    format!("  <UnitDefinitions>\n{definitions}  </UnitDefinitions>\n")
}

/// Attributes that both versions share.
fn about(exported: &Exported) -> String {
    format!(
        "modelName=\"{}\" description=\"{}\" generationTool=\"Latens {}\" variableNamingConvention=\"flat\"",
        xml_text(&exported.model.name),
        xml_text(&exported.model.description),
        env!("CARGO_PKG_VERSION")
    )
}

fn experiment(exported: &Exported) -> String {
    let track = exported.fit.tracks.first().map(|t| &t.record.time);
    let stop = track.and_then(|time| Some(time.last()? - time.first()?));
    let stop = stop.unwrap_or(1000.0 * exported.dt);
    format!(
        "  <DefaultExperiment startTime=\"0.0\" stopTime=\"{stop:?}\" stepSize=\"{:?}\"/>\n",
        exported.dt
    )
}

fn describe_2(exported: &Exported, token: &str, compiled: &[&str]) -> String {
    let listed = exported.listed();
    let variables = variables(exported, &listed);
    let stem = &exported.names.model;
    let files: String = compiled
        .iter()
        .map(|f| format!("<File name=\"{f}\"/>"))
        .collect();
    let able = "canGetAndSetFMUstate=\"true\" canSerializeFMUstate=\"true\"";
    let mut kinds = format!(
        "  <ModelExchange modelIdentifier=\"{stem}\" {able}><SourceFiles>{files}</SourceFiles></ModelExchange>\n"
    );
    if !exported.first_order() {
        kinds += &format!(
            "  <CoSimulation modelIdentifier=\"{stem}\" canHandleVariableCommunicationStepSize=\"true\" {able}><SourceFiles>{files}</SourceFiles></CoSimulation>\n"
        );
    }
    let mut elements = String::new();
    for (i, v) in variables.iter().enumerate() {
        let derivative = v
            .derivative_of
            .map(|s| format!(" derivative=\"{}\"", s + 1));
        elements += &format!(
            "    <ScalarVariable name=\"{}\" valueReference=\"{i}\" causality=\"{}\" variability=\"{}\"{}><Real{}{}{}/></ScalarVariable>\n",
            xml_text(&v.name),
            v.causality,
            v.variability,
            v.initial(),
            v.unit(),
            v.start(),
            derivative.unwrap_or_default()
        );
    }
    let unknowns = |wanted: fn(&Variable) -> bool| -> String {
        let places = variables.iter().enumerate().filter(|(_, v)| wanted(v));
        places
            .map(|(i, _)| format!("<Unknown index=\"{}\"/>", i + 1))
            .collect()
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fmiModelDescription fmiVersion=\"2.0\" guid=\"{token}\" numberOfEventIndicators=\"0\" {}>\n\
         {kinds}{}{}  <ModelVariables>\n{elements}  </ModelVariables>\n  <ModelStructure>\n    \
         <Outputs>{}</Outputs>\n    <Derivatives>{}</Derivatives>\n    <InitialUnknowns>{}</InitialUnknowns>\n  \
         </ModelStructure>\n</fmiModelDescription>\n",
        about(exported),
        unit_definitions(&variables),
        experiment(exported),
        unknowns(|v| v.causality == "output"),
        unknowns(|v| v.derivative_of.is_some()),
        unknowns(|v| v.causality == "output" || v.derivative_of.is_some()),
    )
}

fn describe_3(exported: &Exported, token: &str) -> String {
    let listed = exported.listed();
    let variables = variables(exported, &listed);
    let stem = &exported.names.model;
    let able = "canGetAndSetFMUState=\"true\" canSerializeFMUState=\"true\"";
    let mut kinds = format!("  <ModelExchange modelIdentifier=\"{stem}\" {able}/>\n");
    if !exported.first_order() {
        kinds += &format!(
            "  <CoSimulation modelIdentifier=\"{stem}\" canHandleVariableCommunicationStepSize=\"true\" {able}/>\n"
        );
    }
    let mut elements = String::new();
    for (i, v) in variables.iter().enumerate() {
        let derivative = v.derivative_of.map(|s| format!(" derivative=\"{s}\""));
        elements += &format!(
            "    <Float64 name=\"{}\" valueReference=\"{i}\" causality=\"{}\" variability=\"{}\"{}{}{}{}/>\n",
            xml_text(&v.name),
            v.causality,
            v.variability,
            v.initial(),
            v.unit(),
            v.start(),
            derivative.unwrap_or_default()
        );
    }
    // `t` is a word of the model language, so that no variable has this name
    elements += &format!(
        "    <Float64 name=\"t\" valueReference=\"{}\" causality=\"independent\" variability=\"continuous\"/>\n",
        variables.len()
    );
    let unknowns = |element: &str, wanted: fn(&Variable) -> bool| -> String {
        let places = variables.iter().enumerate().filter(|(_, v)| wanted(v));
        places
            .map(|(i, _)| format!("    <{element} valueReference=\"{i}\"/>\n"))
            .collect()
    };
    let is_output: fn(&Variable) -> bool = |v| v.causality == "output";
    let is_derivative: fn(&Variable) -> bool = |v| v.derivative_of.is_some();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fmiModelDescription fmiVersion=\"3.0\" instantiationToken=\"{token}\" {}>\n\
         {kinds}{}{}  <ModelVariables>\n{elements}  </ModelVariables>\n  <ModelStructure>\n{}{}{}{}  \
         </ModelStructure>\n</fmiModelDescription>\n",
        about(exported),
        unit_definitions(&variables),
        experiment(exported),
        unknowns("Output", is_output),
        unknowns("ContinuousStateDerivative", is_derivative),
        unknowns("InitialUnknown", is_output),
        unknowns("InitialUnknown", is_derivative),
    )
}

fn build_description(exported: &Exported, compiled: &[&str]) -> String {
    let files: String = compiled
        .iter()
        .map(|f| format!("<SourceFile name=\"{f}\"/>"))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fmiBuildDescription fmiVersion=\"3.0\">\n  \
         <BuildConfiguration modelIdentifier=\"{}\">\n    <SourceFileSet language=\"C99\">{files}</SourceFileSet>\n    \
         <Library name=\"m\"/>\n  </BuildConfiguration>\n</fmiBuildDescription>\n",
        exported.names.model
    )
}
