//! Generates what host and device share about the arguments of kernels, from the Rust text of the `view` files: a C++
//! header for each room, and the layout of every struct as both languages see it.
//!
//! It reads what rustfmt writes: `pub const`, `pub type`, and `#[repr(C)] pub struct`, with their doc comments. Text of
//! another form stops the build.
//!
//! A doc line "Kernels: `a`, `b`." gives the names in C++. For a constant or a field that is one
//! name, for a field that is an array one name can stand for each element. A type alias with one
//! name is this type; with several it is a struct.

use std::fmt::Write as _;
use std::iter::zip;

/// A header: its name, the headers that it includes, and its Rust modules with their texts.
pub struct Room<'a> {
    pub name: &'a str,
    pub includes: &'a [&'a str],
    /// Path of the module in the crate, and its text.
    pub modules: Vec<(&'a str, String)>,
}

/// The generated text of a room.
pub struct Generated {
    /// The C++ header.
    pub header: String,
    /// The same layout as a Rust expression of type `&[usize]`.
    pub layout: String,
}

struct Item {
    path: String,
    doc: Vec<String>,
    names: Vec<String>,
    name: String,
    kind: Kind,
}

enum Kind {
    Const { of: String, value: String },
    Alias(Type),
    Struct { align: Option<String>, fields: Vec<Field> },
}

struct Field {
    doc: Vec<String>,
    names: Vec<String>,
    name: String,
    of: Type,
}

#[derive(Clone)]
enum Type {
    Named(String),
    Array(Box<Type>, String),
    Pointer { constant: bool, to: Box<Type> },
}

impl Type {
    fn parse(text: &str) -> Type {
        let inner = |open: &str, close: char| text.strip_prefix(open)?.strip_suffix(close);
        if let Some((of, len)) = inner("[", ']').and_then(|s| s.rsplit_once("; ")) {
            return Type::Array(Box::new(Type::parse(of)), len.to_string());
        }
        for (open, constant) in [("DevicePointer<", false), ("ReadOnly<", true)] {
            if let Some(to) = inner(open, '>') {
                return Type::Pointer { constant, to: Box::new(Type::parse(to)) };
            }
        }
        assert!(text.chars().all(|c| c.is_alphanumeric() || c == '_'), "the arguments of kernels have no type {text}");
        Type::Named(text.to_string())
    }

    /// The innermost element of nested arrays.
    fn element(&self) -> &Type {
        if let Type::Array(of, _) = self { of.element() } else { self }
    }
}

/// Reads a module's text.
fn items(path: &str, text: &str) -> Vec<Item> {
    let mut all = vec![];
    let (mut doc, mut repr) = (vec![], None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("///") {
            doc.push(comment.trim().to_string());
            continue;
        }
        if let Some(rest) = line.strip_prefix("#[repr(C") {
            let align = rest.strip_prefix(", align(").map(|s| s.split(')').next().unwrap_or_default().to_string());
            repr = Some(align);
        }
        if line.starts_with("#[") {
            continue;
        }
        let (doc, repr) = (std::mem::take(&mut doc), repr.take());
        let declared = |keyword: &str| line.strip_prefix("pub ")?.strip_prefix(keyword);
        let (name, kind) = if let Some(rest) = declared("const ") {
            let (name, rest) = rest.split_once(": ").expect("a constant has a type");
            let (of, value) = rest.split_once(" = ").expect("a constant has a value");
            let value = value.strip_suffix(';').unwrap_or_else(|| panic!("{path}: {name} takes more than a line"));
            (name, Kind::Const { of: of.to_string(), value: value.to_string() })
        } else if let Some((name, of)) = declared("type ").and_then(|rest| rest.strip_suffix(';')?.split_once(" = ")) {
            if name.contains('<') {
                continue;
            }
            (name, Kind::Alias(Type::parse(of)))
        } else if let (Some(name), Some(align)) = (declared("struct ").and_then(|r| r.strip_suffix(" {")), repr.clone())
        {
            (name, Kind::Struct { align, fields: fields(path, name, &mut lines) })
        } else {
            assert!(repr.is_none(), "{path}: a struct with repr(C) must be public and have fields: {line}");
            continue;
        };
        let (doc, names) = kernel_names(doc, name);
        all.push(Item { path: path.to_string(), doc, names, name: name.to_string(), kind });
    }
    all
}

/// Reads the fields of a struct to its closing brace.
fn fields<'a>(path: &str, of: &str, lines: &mut impl Iterator<Item = &'a str>) -> Vec<Field> {
    let (mut all, mut doc) = (vec![], vec![]);
    for line in lines.map(str::trim).take_while(|line| *line != "}") {
        if let Some(comment) = line.strip_prefix("///") {
            doc.push(comment.trim().to_string());
            continue;
        }
        let field = line.strip_prefix("pub ").and_then(|rest| rest.strip_suffix(',')?.split_once(": "));
        let (name, ty) = field.unwrap_or_else(|| panic!("{path}::{of}: not a public field on one line: {line}"));
        let (doc, names) = kernel_names(std::mem::take(&mut doc), name);
        all.push(Field { doc, names, name: name.to_string(), of: Type::parse(ty) });
    }
    all
}

/// Takes the line "Kernels: `a`, `b`." out of a doc comment.
fn kernel_names(doc: Vec<String>, name: &str) -> (Vec<String>, Vec<String>) {
    let (named, mut doc): (Vec<_>, Vec<_>) = doc.into_iter().partition(|line| line.starts_with("Kernels: `"));
    while doc.last().is_some_and(String::is_empty) {
        doc.pop();
    }
    let names = named
        .first()
        .map_or(vec![name.to_string()], |line| line.split('`').skip(1).step_by(2).map(str::to_string).collect());
    (doc, names)
}

/// Doc lines as C++ comments: without the marks of code and links.
fn comment(to: &mut String, indent: &str, doc: &[String]) {
    for line in doc {
        let mut text = String::new();
        let mut rest = line.as_str();
        while let Some((before, (label, after))) =
            rest.split_once("[`").and_then(|(before, tail)| Some((before, tail.split_once("`]")?)))
        {
            text += before;
            text += label.rsplit("::").next().unwrap_or(label);
            rest = after.strip_prefix('(').and_then(|target| Some(target.split_once(')')?.1)).unwrap_or(after);
        }
        text += rest;
        writeln!(to, "{indent}// {}", text.replace('`', "")).expect("text grows");
    }
}

/// The C++ side of all items that a room can name.
struct Names<'a>(Vec<&'a Item>);

impl Names<'_> {
    fn find(&self, name: &str) -> Option<&Item> {
        self.0.iter().rev().find(|item| item.name == name).copied()
    }

    /// The name of a type in C++.
    fn base(&self, of: &Type) -> String {
        let Type::Named(name) = of else { panic!("only pointers to values can be arguments of kernels") };
        let primitive = match name.as_str() {
            "f32" => "float",
            "f64" => "double",
            "u8" => "uint8_t",
            "u16" => "uint16_t",
            "u32" => "uint32_t",
            "u64" => "uint64_t",
            "i16" => "int16_t",
            "i32" => "int32_t",
            _ => "",
        };
        if !primitive.is_empty() {
            return primitive.to_string();
        }
        let item = self.find(name).unwrap_or_else(|| panic!("no view file declares the type {name}"));
        match (&item.kind, item.names.as_slice()) {
            (Kind::Alias(_), [name]) | (Kind::Struct { .. }, [name]) => name.clone(),
            (Kind::Alias(_), _) => name.clone(),
            _ => panic!("{name} is no type of a field"),
        }
    }

    /// A declaration without its semicolon.
    fn declare(&self, of: &Type, name: &str) -> String {
        match of {
            Type::Array(of, len) => self.declare(of, &format!("{name}[{}]", self.expression(len))),
            Type::Pointer { constant, to } => {
                format!("{}{} *{name}", if *constant { "const " } else { "" }, self.base(to.element()))
            }
            Type::Named(_) => format!("{} {name}", self.base(of)),
        }
    }

    /// A constant expression, with the names that constants have in C++.
    fn expression(&self, text: &str) -> String {
        let text = text.replace("u32::MAX", "UINT32_MAX");
        let mut out = String::new();
        let mut word = String::new();
        for c in text.chars().chain([' ']) {
            if c.is_alphanumeric() || c == '_' {
                word.push(c);
                continue;
            }
            assert!(" +-*/()".contains(c), "the headers of kernels have no constant {text}");
            out += &self.find(&word).map_or(word.clone(), |item| item.names[0].clone());
            out.push(c);
            word.clear();
        }
        out.trim_end().to_string()
    }
}

/// The texts of all rooms; a room comes after those that it includes.
pub fn generate(rooms: &[Room]) -> Vec<Generated> {
    let items: Vec<Vec<Item>> =
        rooms.iter().map(|room| room.modules.iter().flat_map(|(path, text)| items(path, text)).collect()).collect();
    let text = |(room, own): (&Room, &Vec<Item>)| {
        let included = zip(rooms, &items).filter(|(other, _)| room.includes.contains(&other.name));
        text(room, own, &Names(included.flat_map(|(_, items)| items).chain(own).collect()))
    };
    zip(rooms, &items).map(text).collect()
}

fn text(room: &Room, own: &[Item], names: &Names) -> Generated {
    let mut header = format!("// Generated by build.rs from the view files of fmm-cuda: {}.\n", room.name);
    header += "#pragma once\n#include <cstddef>\n#include <cstdint>\n";
    for name in room.includes {
        header += &format!("#include \"arguments/{name}.cuh\"\n");
    }
    // What the two languages must agree on, each in its own words.
    let (mut there, mut here) = (vec![], vec![]);
    for item in own {
        if let Kind::Const { of, value } = &item.kind {
            let kind = match of.as_str() {
                "usize" => "unsigned",
                "u32" => "uint32_t",
                _ => panic!("{}::{}: constants of kernels are usize or u32", item.path, item.name),
            };
            header.push('\n');
            comment(&mut header, "", &item.doc);
            header += &format!("constexpr {kind} {} = {};\n", item.names[0], names.expression(value));
            there.push(item.names[0].clone());
            let cast = if of == "usize" { "" } else { " as usize" };
            here.push(format!("{}::{}{cast}", item.path, item.name));
        }
    }
    header.push('\n');
    for item in own.iter().filter(|item| matches!(item.kind, Kind::Struct { .. })) {
        header += &format!("struct {};\n", item.name);
    }
    for item in own {
        let full = format!("{}::{}", item.path, item.name);
        let mut body = String::new();
        let mut add = |field: &str, offset: String| {
            there.push(format!("offsetof({}, {field})", item.name));
            here.push(offset);
        };
        let align = match &item.kind {
            Kind::Alias(Type::Array(of, _)) if item.names.len() > 1 => {
                for (k, name) in item.names.iter().enumerate() {
                    body += &format!("  {};\n", names.declare(of, name));
                    let size = format!("size_of::<{full}>() / {}", item.names.len());
                    let offset = match k {
                        0 => "0".to_string(),
                        1 => size,
                        _ => format!("{k} * ({size})"),
                    };
                    add(name, offset);
                }
                &None
            }
            Kind::Struct { align, fields } => {
                for field in fields {
                    comment(&mut body, "  ", &field.doc);
                    let offset = format!("offset_of!({full}, {})", field.name);
                    match (&field.of, field.names.as_slice()) {
                        (of, [name]) => {
                            body += &format!("  {};\n", names.declare(of, name));
                            add(name, offset);
                        }
                        (Type::Array(of, _), several) => {
                            for (k, name) in several.iter().enumerate() {
                                body += &format!("  {};\n", names.declare(of, name));
                                // Elements of 8 bytes: doubles and pointers.
                                add(name, if k == 0 { offset.clone() } else { format!("{offset} + {}", 8 * k) });
                            }
                        }
                        _ => panic!("{full}::{}: only an array can have several names", field.name),
                    }
                }
                align
            }
            _ => continue,
        };
        there.push(format!("sizeof({})", item.name));
        here.push(format!("size_of::<{full}>()"));
        header.push('\n');
        comment(&mut header, "", &item.doc);
        let align = align.as_ref().map_or(String::new(), |n| format!("alignas({n}) "));
        header += &format!("struct {align}{} {{\n{body}}};\n", item.name);
    }
    let list = |of: &[String]| of.iter().map(|entry| format!("    {entry},\n")).collect::<String>();
    header += &format!(
        "\n// Compared with the host's by tests/layout.rs.\nextern \"C\" __device__ const unsigned {}_layout[] = {{\n{}}};\n",
        room.name,
        list(&there)
    );
    Generated { header, layout: format!("&[\n{}]", list(&here)) }
}
