//! The JavaScript module in a browser: in a page with the points and the inputs, which writes what comes of
//! them into itself. A module of its own could not be read from a disk.

use std::fs;
use std::path::Path;
use std::process::Command;

use latens::Error;
use serde_json::{Value, json};

use super::clients::output_of;
use crate::files::file_error;

/// Appended to the module: the same as `check.mjs` does in Node.
const SCRIPT: &str = "
const { points, driving, states: n, inputs: m } = JSON.parse(document.getElementById(\"given\").textContent);
const values = points.map(([t, ...row]) => {
  const [x, u, v] = [row.slice(0, n), row.slice(n, n + m), row.slice(n + m)];
  return [...f(x, u, t), ...step(x, u, t, v), ...h(x, u, t)];
});
const run = [start];
for (let k = 0; k + 1 < driving.length; k++) {
  const [t, ...u] = driving[k];
  run.push(step(run[k], u, t, driving[k + 1].slice(1)));
}
document.body.innerHTML = \"\";
const found = document.body.appendChild(document.createElement(\"pre\"));
found.textContent = JSON.stringify({ values, run });
";

/// Runs the module of a folder; `false` where there is no browser.
pub(super) fn run(folder: &Path) -> Result<bool, Error> {
    let page = folder.join("check.html");
    fs::write(&page, html(folder)?).map_err(|e| file_error("write", &page, e))?;
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let place = format!("file://{}", page.canonicalize().unwrap_or(page).display());
    let Some(printed) = output_of(command.arg(profile).arg(place))? else {
        return Ok(false);
    };
    let printed = String::from_utf8_lossy(&printed);
    let found = printed
        .split_once("<pre>")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    let found: Value = found
        .and_then(|(text, _)| serde_json::from_str(text).ok())
        .ok_or_else(|| {
            Error::Setting(format!(
                "the page {place} came to nothing in Chromium",
                place = folder.display()
            ))
        })?;
    for part in ["values", "run"] {
        let rows = found[part].as_array().into_iter().flatten();
        // what is no number is null in JSON
        let numbers = rows.flat_map(|row| row.as_array().into_iter().flatten());
        let bytes = numbers.flat_map(|v| v.as_f64().unwrap_or(f64::NAN).to_le_bytes());
        let path = folder.join(format!("chromium-{part}.bin"));
        let bytes: Vec<u8> = bytes.collect();
        fs::write(&path, bytes).map_err(|e| file_error("write", &path, e))?;
    }
    Ok(true)
}

fn html(folder: &Path) -> Result<String, Error> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).map_err(|e| file_error("read", &path, e))
    };
    let shape: Value = serde_json::from_slice(&read("shape.json")?).unwrap_or(Value::Null);
    let size = |name: &str| shape[name].as_u64().unwrap_or(0) as usize;
    let (n, m) = (size("states"), size("inputs"));
    let rows = |bytes: Vec<u8>, width: usize| -> Vec<Vec<f64>> {
        let (numbers, _) = bytes.as_chunks::<8>();
        let numbers: Vec<f64> = numbers.iter().map(|b| f64::from_le_bytes(*b)).collect();
        numbers.chunks_exact(width).map(<[f64]>::to_vec).collect()
    };
    let given = json!({
        "states": n,
        "inputs": m,
        "points": rows(read("points.bin")?, 1 + n + 2 * m),
        "driving": rows(read("driving.bin")?, 1 + m),
    });
    let module = String::from_utf8_lossy(&read("exported.js")?)
        .replace("</", "< /")
        .replace("<!", "< !");
    Ok(format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<body>\n<script type=\"application/json\" id=\"given\">{given}</script>\n<script type=\"module\">\n{module}{SCRIPT}</script>\n</body>\n"
    ))
}
