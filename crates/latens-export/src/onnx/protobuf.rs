//! As much of protocol buffers and of ONNX's messages as a graph takes.

/// A message on its way to bytes.
#[derive(Default, Clone)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A whole number.
    pub fn number(mut self, field: u32, value: i64) -> Self {
        self.varint(u64::from(field << 3));
        self.varint(value as u64);
        self
    }

    /// Bytes, or a text.
    pub fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.varint(u64::from(field << 3 | 2));
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    /// Another message.
    pub fn message(self, field: u32, value: &Message) -> Self {
        self.bytes(field, &value.0)
    }
}

/// The kinds of numbers that are used.
#[derive(Clone, Copy)]
pub enum Kind {
    Float = 1,
    Int64 = 7,
    Bool = 9,
    Double = 11,
}

/// Numbers with a name and a shape.
pub fn tensor(name: &str, kind: Kind, shape: &[usize], raw: &[u8]) -> Message {
    let mut tensor = Message::default();
    for length in shape {
        tensor = tensor.number(1, *length as i64);
    }
    tensor.number(2, kind as i64).bytes(8, name).bytes(9, raw)
}

/// An operation; attributes are whole numbers.
pub fn node(op: &str, inputs: &[&str], output: &str, attributes: &[(&str, i64)]) -> Message {
    const INTEGER_ATTRIBUTE: i64 = 2;
    let mut node = Message::default();
    for input in inputs {
        node = node.bytes(1, input);
    }
    node = node.bytes(2, output).bytes(4, op);
    for (name, value) in attributes {
        let attribute = Message::default().bytes(1, name).number(3, *value);
        node = node.message(5, &attribute.number(20, INTEGER_ATTRIBUTE));
    }
    node
}

/// An input or output: any number of rows of doubles.
pub fn table(name: &str, columns: usize) -> Message {
    let rows = Message::default().bytes(2, "rows");
    let columns = Message::default().number(1, columns as i64);
    let shape = Message::default().message(1, &rows).message(1, &columns);
    let tensor = Message::default().number(1, Kind::Double as i64);
    let tensor = Message::default().message(1, &tensor.message(2, &shape));
    Message::default().bytes(1, name).message(2, &tensor)
}

/// The parts of a graph.
#[derive(Default)]
pub struct Graph {
    pub nodes: Vec<Message>,
    pub tensors: Vec<Message>,
    pub inputs: Vec<Message>,
    pub outputs: Vec<Message>,
}

/// The file of a graph.
pub fn model(name: &str, about: &str, graph: &Graph) -> Vec<u8> {
    // of 2022: read by all runtimes since, and by those to come
    const OPERATOR_SET: i64 = 17;
    const FORMAT_VERSION: i64 = 8;
    let mut inside = Message::default();
    for node in &graph.nodes {
        inside = inside.message(1, node);
    }
    inside = inside.bytes(2, name);
    for (field, messages) in [
        (5, &graph.tensors),
        (11, &graph.inputs),
        (12, &graph.outputs),
    ] {
        for message in messages {
            inside = inside.message(field, message);
        }
    }
    let operators = Message::default().bytes(1, "").number(2, OPERATOR_SET);
    let model = Message::default()
        .number(1, FORMAT_VERSION)
        .bytes(2, "latens")
        .bytes(3, env!("CARGO_PKG_VERSION"))
        .bytes(6, about)
        .message(7, &inside)
        .message(8, &operators);
    model.0
}
