//! Networks in C: loops over their layers, forward for the outputs and back for their derivatives.

use latens::model::network::Activation;

use super::{C, number};
use crate::exported::Weights;
use crate::names::rows;

impl C<'_> {
    /// A network as a function: its outputs and, where asked for, their derivatives by the arguments.
    pub(super) fn network(&mut self, name: &str, weights: &Weights) -> String {
        let (network, scaling) = (weights.network, &weights.network.scaling);
        let (arguments, outputs) = (network.arguments, network.outputs.len());
        let head = format!(
            "static void network_{name}(const double *a, double *out, double *slope)\n{{\n"
        );
        if weights.layers.is_empty() {
            return format!(
                "{head}    int i;\n    (void)a;\n    for (i = 0; i < {outputs}; i++)\n        out[i] = 0.0;\n    \
                 for (i = 0; slope && i < {}; i++)\n        slope[i] = 0.0;\n}}\n\n",
                outputs * arguments
            );
        }
        let array = |name: &str, values: &[f64]| {
            format!(
                "    static const double {name}[] = {{\n{}\n    }};\n",
                rows(values, "        ", number)
            )
        };
        let mut text = head + &array("center", &scaling.center) + &array("scale", &scaling.scale);
        text += &array("size", &scaling.output);
        let last = weights.layers.len();
        let mut rooms = vec![format!("z0[{arguments}]")];
        for (l, layer) in (1..).zip(&weights.layers) {
            let to = layer.bias.len();
            let transposed: Vec<f64> = (0..layer.from * to)
                .map(|i| layer.weights[i % to * layer.from + i / to])
                .collect();
            text += &array(&format!("w{l}"), &transposed);
            text += &array(&format!("b{l}"), layer.bias);
            if l < last {
                rooms.push(format!("z{l}[{to}], s{l}[{to}], d{l}[{to}]"));
            }
        }
        if let Some(skip) = weights.skip {
            text += &array("direct", skip);
        }
        text += &format!("    double {};\n    int i, j, k;\n", rooms.join(", "));
        text += &format!(
            "    for (j = 0; j < {arguments}; j++)\n        z0[j] = (a[j] - center[j]) / scale[j];\n"
        );
        let dense = self.need("dense");
        for (l, layer) in (1..).zip(&weights.layers) {
            let (from, to) = (layer.from, layer.bias.len());
            let out = if l < last {
                format!("z{l}")
            } else {
                "out".into()
            };
            text += &format!(
                "    {dense}({from}, {to}, w{l}, b{l}, z{}, {out});\n",
                l - 1
            );
            if l < last {
                let activation = self.need(layer_function(layer.activation));
                text += &format!("    {activation}({to}, z{l}, s{l});\n");
            }
        }
        text += &format!("    for (k = 0; k < {outputs}; k++) {{\n");
        if weights.skip.is_some() {
            text += &format!(
                "        for (j = 0; j < {arguments}; j++)\n            out[k] += direct[k * {arguments} + j] * z0[j];\n"
            );
        }
        text +=
            "        out[k] *= size[k];\n    }\n    (void)i;\n    if (!slope)\n        return;\n";
        text += &self.slopes(weights);
        text + "}\n\n"
    }

    /// The derivatives of a network, one sweep down for each output.
    fn slopes(&mut self, weights: &Weights) -> String {
        let (arguments, outputs) = (weights.network.arguments, weights.network.outputs.len());
        let last = weights.layers.len();
        let mut text = format!("    for (k = 0; k < {outputs}; k++) {{\n");
        let mut below = "slope + k * ".to_string() + &arguments.to_string();
        if last > 1 {
            let units = weights.layers[last - 1].from;
            let l = last - 1;
            text += &format!(
                "        for (i = 0; i < {units}; i++)\n            d{l}[i] = size[k] * w{last}[i * {outputs} + k] * s{l}[i];\n"
            );
            let back = self.need("back");
            for l in (1..last).rev() {
                let (from, to) = (weights.layers[l - 1].from, weights.layers[l - 1].bias.len());
                let into = if l > 1 {
                    format!("d{}", l - 1)
                } else {
                    std::mem::take(&mut below)
                };
                text += &format!("        {back}({from}, {to}, w{l}, d{l}, {into});\n");
                if l > 1 {
                    text += &format!(
                        "        for (i = 0; i < {from}; i++)\n            d{0}[i] *= s{0}[i];\n",
                        l - 1
                    );
                }
            }
        } else {
            text += &format!(
                "        for (j = 0; j < {arguments}; j++)\n            slope[k * {arguments} + j] = size[k] * w1[j * {outputs} + k];\n"
            );
        }
        let direct = if weights.skip.is_some() {
            format!(" + size[k] * direct[k * {arguments} + j]")
        } else {
            String::new()
        };
        text += &format!(
            "        for (j = 0; j < {arguments}; j++)\n            slope[k * {arguments} + j] = (slope[k * {arguments} + j]{direct}) / scale[j];\n    }}\n"
        );
        text
    }
}

fn layer_function(activation: Activation) -> &'static str {
    match activation {
        Activation::Tanh => "layer_tanh",
        Activation::Sigmoid => "layer_sigmoid",
        Activation::Elu => "layer_elu",
        Activation::Softplus => "layer_softplus",
        Activation::Silu => "layer_silu",
        Activation::Relu => "layer_relu",
        Activation::Identity => "layer_identity",
    }
}
