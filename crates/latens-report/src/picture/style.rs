//! What classes look like, read from the style sheet that [`crate::colours`] writes.

use super::scene::{Colour, Fill, Stroke};

/// The properties of an element; elements inside it inherit them.
#[derive(Debug, Clone)]
pub struct Style {
    fill: Option<Colour>,
    opacity: f64,
    stroke: Option<Colour>,
    width: f64,
    dashes: Vec<f64>,
    round: bool,
    /// Height of letters.
    pub size: f64,
    /// Thick letters.
    pub bold: bool,
}

impl Default for Style {
    /// As SVG has it where nothing is said.
    fn default() -> Self {
        Self {
            fill: Some([0; 3]),
            opacity: 1.0,
            stroke: None,
            width: 1.0,
            dashes: vec![],
            round: false,
            size: 16.0,
            bold: false,
        }
    }
}

impl Style {
    /// How insides are painted, if at all.
    pub fn fill(&self) -> Option<Fill> {
        self.fill.map(|colour| Fill {
            colour,
            opacity: self.opacity,
        })
    }

    /// How lines are drawn, if at all.
    pub fn stroke(&self) -> Option<Stroke> {
        self.stroke.map(|colour| Stroke {
            colour,
            width: self.width,
            dashes: self.dashes.clone(),
            round: self.round,
        })
    }

    /// Sets one property.
    ///
    /// # Errors
    /// A property or value that pictures cannot show.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("pictures cannot show the style {name}:{value}");
        let number = |text: &str| text.parse::<f64>().map_err(|_| wrong());
        match name {
            "fill" => self.fill = colour(value).ok_or_else(wrong)?,
            "stroke" => self.stroke = colour(value).ok_or_else(wrong)?,
            "fill-opacity" => self.opacity = number(value)?,
            "stroke-width" => self.width = number(value)?,
            "stroke-linejoin" => self.round = value == "round",
            "stroke-dasharray" => {
                let lengths = value.split_whitespace().map(number);
                self.dashes = lengths.collect::<Result<_, _>>()?;
            }
            "font-size" => self.size = number(value.trim_end_matches("px"))?,
            "font-weight" => self.bold = number(value)? >= 600.0,
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

/// `#rrggbb`, or none.
fn colour(text: &str) -> Option<Option<Colour>> {
    if text == "none" {
        return Some(None);
    }
    let digits = text.strip_prefix('#').filter(|d| d.len() == 6)?;
    let all = u32::from_str_radix(digits, 16).ok()?;
    let [_, red, green, blue] = all.to_be_bytes();
    Some(Some([red, green, blue]))
}

/// Rules in the order in which they hold: what comes later wins.
#[derive(Debug, Default)]
pub struct Sheet(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    /// An element needs all of them.
    classes: Vec<String>,
    properties: Vec<(String, String)>,
}

impl Sheet {
    /// From rules such as `.plot .line.data,.plot .dots.data{stroke:#000000}`: the last part of each
    /// selector counts. Rules for elements say what font a browser takes; pictures have their own.
    pub fn read(css: &str) -> Self {
        let mut rules = vec![];
        for rule in css.split('}') {
            let Some((selectors, body)) = rule.split_once('{') else {
                continue;
            };
            for selector in selectors.split(',') {
                let last = selector.split_whitespace().last().unwrap_or_default();
                let Some(classes) = last.strip_prefix('.') else {
                    continue;
                };
                let properties = body.split(';').filter_map(|p| p.split_once(':'));
                rules.push(Rule {
                    classes: classes.split('.').map(String::from).collect(),
                    properties: properties.map(|(n, v)| (n.into(), v.into())).collect(),
                });
            }
        }
        Self(rules)
    }

    /// Gives an element of these classes its style, over what it inherits.
    ///
    /// # Errors
    /// A property that pictures cannot show.
    pub fn apply(&self, classes: &str, style: &mut Style) -> Result<(), String> {
        let element_classes: Vec<&str> = classes.split_whitespace().collect();
        for rule in &self.0 {
            if rule
                .classes
                .iter()
                .all(|c| element_classes.contains(&c.as_str()))
            {
                for (name, value) in &rule.properties {
                    style.set(name, value)?;
                }
            }
        }
        Ok(())
    }
}
