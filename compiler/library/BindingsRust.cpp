// SPDX-License-Identifier: Apache-2.0
//
// Writes NAME.rs: the C functions, and a safe interface to them that checks slices against the shapes of tensors.
#include "compiler/library/Bindings.h"
#include "compiler/library/Headers.h"

#include "kiln/runtime.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

/// The keywords of all editions, followed by `more`.
static std::vector<llvm::StringRef> keywordsAnd(std::initializer_list<llvm::StringRef> more) {
  std::vector<llvm::StringRef> words{
      "abstract", "as",     "async",   "await",  "become",  "box",    "break", "const", "continue", "crate", "do",
      "dyn",      "else",   "enum",    "extern", "false",   "final",  "fn",    "for",   "gen",      "if",    "impl",
      "in",       "let",    "loop",    "macro",  "match",   "mod",    "move",  "mut",   "override", "priv",  "pub",
      "ref",      "return", "self",    "Self",   "static",  "struct", "super", "trait", "true",     "try",   "type",
      "typeof",   "unsafe", "unsized", "use",    "virtual", "where",  "while", "yield"};
  words.insert(words.end(), more);
  return words;
}

/// Names that no parameter may have: constants that no variable can hide, and the variables of the methods. The methods
/// call functions of the module by paths, which no variable hides.
static const std::vector<llvm::StringRef> &parameterWords() {
  static const auto words =
      keywordsAnd({"None", "Some", "Ok", "Err", "ABI_VERSION", "call", "sequences", "status", "table"});
  return words;
}

/// Names that no entry's method may have: other methods of Session.
static const std::vector<llvm::StringRef> &methodWords() {
  static const auto words = keywordsAnd({"call", "drop"});
  return words;
}

static constexpr const char *head = R"RS(// SPDX-License-Identifier: {license}
//! {name}.rs: written by Kiln; do not edit. This module is the model "{name}": `{module}`.
//!
//! A build.rs must name the folder of the library, which is a shared object or an archive:
//!     println!("cargo:rustc-link-search=native=FOLDER");
//!     println!("cargo:rustc-link-lib={name}");          // or static={name}, with rustc-link-lib=m
//!
//!     let mut model = {path}::Model::new()?;
//!     model.bind("{name}.safetensors")?;
//!     let mut session = model.session()?;
#![allow(dead_code, non_snake_case, unused_parens, unused_variables)]

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fmt;
use std::ptr;

/// The error of a function: a kiln_status_t and a message.
#[derive(Debug, Clone)]
pub struct Error {
    pub status: i32,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[repr(C)]
struct Message {
    status: c_int,
    message: [c_char; 252],
}

#[repr(C)]
struct Call {
    arena: *mut c_void,
    arena_bytes: usize,
    executor: *const c_void,
    error: *mut Message,
    stream: *mut c_void,
    memory: usize,
    trace: *const c_void,
    communicator: *const c_void,
    replicas: *const c_void,
    stages: *const c_void,
    reserved: [*mut c_void; 1],
}

#[repr(C)]
struct Rename {
    from: *const c_char,
    to: *const c_char,
    rotary_heads: u32,
    flags: u32,
}

#[repr(C)]
struct Sequence {
    states: *mut c_void,
    extents: *const i64,
}

mod raw {
    use super::*;
    extern "C" {
        pub fn {name}_create(allocator: *const c_void, model: *mut *mut c_void, error: *mut Message) -> c_int;
        pub fn {name}_destroy(model: *mut c_void);
        pub fn {name}_bind_weights(model: *mut c_void, path: *const c_char, error: *mut Message) -> c_int;
        pub fn {name}_bind_weights_renamed(model: *mut c_void, path: *const c_char, renames: *const Rename, count: usize, error: *mut Message) -> c_int;
        pub fn {name}_bind_weights_from_memory(model: *mut c_void, image: *const c_void, bytes: usize, error: *mut Message) -> c_int;
        pub fn {name}_bind_packed(model: *mut c_void, path: *const c_char, error: *mut Message) -> c_int;
        pub fn {name}_allocate_memory(model: *const c_void, bytes: usize, memory: *mut *mut c_void, error: *mut Message) -> c_int;
        pub fn {name}_zero_memory(model: *const c_void, memory: *mut c_void, bytes: usize, error: *mut Message) -> c_int;
        pub fn {name}_release_memory(model: *const c_void, memory: *mut c_void);
        pub fn {name}_pool_create(threads: u32, pool: *mut *mut c_void, error: *mut Message) -> c_int;
        pub fn {name}_pool_executor(pool: *const c_void) -> *const c_void;
        pub fn {name}_pool_destroy(pool: *mut c_void);
        pub fn {name}_abi_version() -> u32;
)RS";

static constexpr const char *body = R"RS(    }
}

const ABI_VERSION: u32 = {abi};

fn empty() -> Message {
    Message { status: 0, message: [0; 252] }
}

fn result(status: c_int, message: &Message) -> Result<(), Error> {
    if status == 0 {
        return Ok(());
    }
    // A function that fails ends the message with a zero byte.
    let text = unsafe { CStr::from_ptr(message.message.as_ptr()) };
    Err(Error { status, message: text.to_string_lossy().into_owned() })
}

fn wrong(message: String) -> Error {
    Error { status: 2, message } // KILN_EXTENT_OUT_OF_RANGE
}

/// The product, or the nearest number of 64 bits; no slice has so many elements.
fn product(factors: &[i64]) -> i64 {
    factors.iter().fold(1, |value: i64, factor| value.saturating_mul(*factor))
}

fn check(name: &str, got: usize, expected: i64) -> Result<(), Error> {
    if i64::try_from(got) == Ok(expected) {
        return Ok(());
    }
    Err(wrong(format!("{}: wrong size; expected {} elements, got {}", name, expected, got)))
}

fn path_text(path: impl AsRef<std::path::Path>) -> Result<CString, Error> {
    CString::new(path.as_ref().to_string_lossy().as_bytes()).map_err(|_| wrong("path: has a zero byte".to_string()))
}

fn name_text(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| wrong("rename: has a zero byte".to_string()))
}

/// A model. Several threads may share it, with a session each.
pub struct Model {
    handle: *mut c_void,
    pool: *mut c_void,
    threads: u32,
}

unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Model {
    /// Creates a model without weights. A call runs on the calling thread only.
    pub fn new() -> Result<Model, Error> {
        Model::with_threads(1)
    }

    /// Creates a model without weights, whose calls share a pool of this many threads.
    pub fn with_threads(threads: u32) -> Result<Model, Error> {
        let got = unsafe { raw::{name}_abi_version() };
        if got != ABI_VERSION {
            return Err(wrong(format!("library: wrong version of the binary interface; expected {}, got {}", ABI_VERSION, got)));
        }
        let mut model = Model { handle: ptr::null_mut(), pool: ptr::null_mut(), threads: threads.max(1) };
        let mut message = empty();
        result(unsafe { raw::{name}_create(ptr::null(), &mut model.handle, &mut message) }, &message)?;
        if threads > 1 {
            result(unsafe { raw::{name}_pool_create(threads, &mut model.pool, &mut message) }, &message)?;
        }
        Ok(model)
    }

    /// Binds the weights of a safetensors file, or of the index of several.
    pub fn bind(&mut self, path: impl AsRef<std::path::Path>) -> Result<(), Error> {
        let (path, mut message) = (path_text(path)?, empty());
        result(unsafe { raw::{name}_bind_weights(self.handle, path.as_ptr(), &mut message) }, &message)
    }

    /// Binds a file some of whose names differ: pairs of a name of the file and of the model's; None drops the tensor.
    /// One * matches any characters: ("module.*", Some("*")). The first that matches a tensor applies.
    pub fn bind_renamed(&mut self, path: impl AsRef<std::path::Path>, renames: &[(&str, Option<&str>)]) -> Result<(), Error> {
        let (path, mut message) = (path_text(path)?, empty());
        let mut names = Vec::new();
        for (from, to) in renames {
            names.push((name_text(from)?, to.map(name_text).transpose()?));
        }
        let table: Vec<Rename> = names
            .iter()
            .map(|(from, to)| {
                let to = to.as_ref().map_or(ptr::null(), |name| name.as_ptr());
                Rename { from: from.as_ptr(), to, rotary_heads: 0, flags: 0 }
            })
            .collect();
        let status = unsafe {
            raw::{name}_bind_weights_renamed(self.handle, path.as_ptr(), table.as_ptr(), table.len(), &mut message)
        };
        result(status, &message)
    }

    /// Binds the weights of a safetensors file that is in memory.
    pub fn bind_from_memory(&mut self, image: &[u8]) -> Result<(), Error> {
        let mut message = empty();
        let status = unsafe {
            raw::{name}_bind_weights_from_memory(self.handle, image.as_ptr().cast(), image.len(), &mut message)
        };
        result(status, &message)
    }

    /// Maps the weights of a file that `kiln pack` or save_packed wrote.
    pub fn bind_packed(&mut self, path: impl AsRef<std::path::Path>) -> Result<(), Error> {
        let (path, mut message) = (path_text(path)?, empty());
        result(unsafe { raw::{name}_bind_packed(self.handle, path.as_ptr(), &mut message) }, &message)
    }
{bind_embedded}
    /// Returns memory for calls, one at a time. The model's states begin as zeros.
    pub fn session(&self) -> Result<Session<'_>, Error> {
        let mut session = Session { model: self, arena: ptr::null_mut(), bytes: 64, message: Box::new(empty()) };
        unsafe {
{sizes}        }
        let mut message = empty();
        unsafe {
            let status = raw::{name}_allocate_memory(self.handle, session.bytes, &mut session.arena, &mut message);
            result(status, &message)?;
            result(raw::{name}_zero_memory(self.handle, session.arena, session.bytes, &mut message), &message)?;
        }
        Ok(session)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe {
            raw::{name}_destroy(self.handle);
            if !self.pool.is_null() {
                raw::{name}_pool_destroy(self.pool);
            }
        }
    }
}

/// An arena, which holds the states between calls, and the entries of the model.
pub struct Session<'model> {
    model: &'model Model,
    arena: *mut c_void,
    bytes: usize,
    message: Box<Message>,
}

unsafe impl Send for Session<'_> {}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        unsafe { raw::{name}_release_memory(self.model.handle, self.arena) }
    }
}

impl Session<'_> {
    fn call(&mut self) -> Call {
        let executor = match self.model.pool.is_null() {
            true => ptr::null(),
            false => unsafe { raw::{name}_pool_executor(self.model.pool) },
        };
        Call {
            arena: self.arena,
            arena_bytes: self.bytes,
            executor,
            error: &mut *self.message,
            stream: ptr::null_mut(),
            memory: 0,
            trace: ptr::null(),
            communicator: ptr::null(),
            replicas: ptr::null(),
            stages: ptr::null(),
            reserved: [ptr::null_mut()],
        }
    }
)RS";

static const char *rustType(ElementType element) {
  switch (element) {
  case ElementType::f32:
    return "f32";
  case ElementType::f16:
  case ElementType::bf16:
    return "u16";
  case ElementType::i32:
    return "i32";
  case ElementType::i8:
    return "i8";
  default:
    return "u8";
  }
}

/// Returns a dimension as an expression over the function's parameters that does not wrap around.
static std::string extent(const Dim &dim, const BindingNames &names) {
  if (dim.fixed())
    return std::to_string(dim.offset);
  std::string value;
  for (int i = 0; i < dim.terms(); ++i) {
    std::vector<std::string> factors;
    if (const std::int64_t factor = i == 0 ? dim.factor : dim.second; factor != 1)
      factors.push_back(std::to_string(factor));
    for (int k = 2 * i; k < 2 * i + 2; ++k)
      if (dim.symbols[k].present())
        factors.push_back(names.extent(dim.symbols[k]));
    const std::string term =
        factors.size() == 1 ? factors.front() : fmt::format("self::product(&[{}])", fmt::join(factors, ", "));
    value = i == 0 ? term : fmt::format("{}.saturating_add({})", value, term);
  }
  return dim.offset == 0 ? value : fmt::format("{}.saturating_add({})", value, dim.offset);
}

/// Returns the product of the dimensions.
static std::string elements(const ArgumentInterface &argument, const BindingNames &names) {
  std::vector<std::string> extents;
  for (const Dim &dim : argument.shape)
    extents.push_back(extent(dim, names));
  return extents.size() == 1 ? extents.front() : fmt::format("self::product(&[{}])", fmt::join(extents, ", "));
}

static std::string declaration(const ModelInterface &model, const EntryInterface &entry) {
  std::string text = fmt::format("        pub fn {0}_{1}_arena_bytes(workers: u32) -> usize;\n"
                                 "        pub fn {0}_{1}(model: *const c_void, call: *const Call",
                                 model.name, entry.name);
  if (entry.isBatch())
    text += ", count: usize, sequences: *const Sequence";
  else
    for (size_t i = 0; i < entry.symbols.size(); ++i)
      text += fmt::format(", extent_{}: i64", i);
  for (size_t i = 0; i < entry.arguments.size(); ++i)
    text += fmt::format(", tensor_{}: *{} {}", i, entry.arguments[i].isOutput ? "mut" : "const",
                        rustType(entry.arguments[i].element));
  return text + ") -> c_int;\n";
}

/// Returns the code that computes a batched entry's extents: the number of sequences, and the sum of their rows.
static std::string batchExtents(const EntryInterface &entry, const BindingNames &names) {
  std::string text = fmt::format("        let {} = sequences.len() as i64;\n", names.extent(entry.symbols.front()));
  text += fmt::format(
      "        if sequences.iter().any(|(_, extents)| extents.len() != {0}) {{\n"
      "            return Err(self::wrong(\"sequences: wrong count of extents; expected {0} each\".to_string()));\n"
      "        }}\n",
      entry.ownSymbols.size());
  if (const int64_t own = ownRowsIndex(entry); own >= 0)
    text += fmt::format("        let {}: i64 = sequences\n"
                        "            .iter()\n"
                        "            .fold(0, |rows: i64, (_, extents)| rows.saturating_add(extents[{}]));\n",
                        names.extent(entry.symbols.back()), own);
  return text + fmt::format("        let table: Vec<Sequence> = sequences\n"
                            "            .iter()\n"
                            "            .map(|(session, extents)| Sequence {{ states: session.arena, extents: {} }})\n"
                            "            .collect();\n",
                            entry.ownSymbols.empty() ? "if extents.is_empty() { ptr::null() } else { extents.as_ptr() }"
                                                     : "extents.as_ptr()");
}

static std::string method(const ModelInterface &model, const EntryInterface &entry, const std::string &methodName) {
  const BindingNames names(entry, parameterWords());
  std::string words = fmt::format("\n    /// Runs entry \"{}\"{}\n", entry.isBatch() ? entry.single : entry.name,
                                  entry.isBatch() ? " for several sequences, whose rows follow each other." : ".");
  std::string parameters = "&mut self", checks, passed;
  for (const Symbol &symbol : entry.isBatch() ? entry.ownSymbols : entry.symbols)
    words += fmt::format("    /// - {}: {} to {}\n", symbol.name, symbol.min, symbol.max);
  if (entry.isBatch()) {
    parameters += ", sequences: &mut [(&mut Session<'_>, &[i64])]";
    checks += batchExtents(entry, names);
    passed += ", table.len(), table.as_ptr()";
  } else {
    for (const Symbol &symbol : entry.symbols) {
      parameters += fmt::format(", {}: i64", names.extent(symbol));
      passed += ", " + names.extent(symbol);
    }
  }
  for (const auto &[i, argument] : llvm::enumerate(entry.arguments)) {
    const std::string &name = names.argument(i);
    words += fmt::format("    /// - {}{}\n", describeArgument(argument), argument.isOutput ? ", written" : "");
    parameters += fmt::format(", {}: &{}[{}]", name, argument.isOutput ? "mut " : "", rustType(argument.element));
    checks +=
        fmt::format("        self::check(\"{}\", {}.len(), {})?;\n", argument.name, name, elements(argument, names));
    passed += fmt::format(", {}.as_{}ptr()", name, argument.isOutput ? "mut_" : "");
  }
  return words + fmt::format("    #[allow(clippy::too_many_arguments)]\n"
                             "    pub fn {}({}) -> Result<(), Error> {{\n{}"
                             "        let call = self.call();\n"
                             "        let status = unsafe {{ raw::{}_{}(self.model.handle, &call{}) }};\n"
                             "        self::result(status, &self.message)\n    }}\n",
                             methodName, parameters, checks, model.name, entry.name, passed);
}

static std::string replaced(std::string text, llvm::StringRef from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string writeRust(const ModelInterface &model) {
  const bool isKeyword = llvm::is_contained(keywordsAnd({}), model.name);
  std::string text = replaced(head, "{license}", licenseOfLibraries), sizes;
  text = replaced(text, "{path}", isKeyword ? "model" : "{name}");
  text = replaced(text, "{module}", isKeyword ? "#[path = \"{name}.rs\"] mod model;" : "mod {name};");
  for (const EntryInterface &entry : model.entries) {
    text += declaration(model, entry);
    sizes += fmt::format("            session.bytes = session.bytes.max(raw::{}_{}_arena_bytes(self.threads));\n",
                         model.name, entry.name);
  }
  const char *embedded = "";
  if (model.embedsWeights) {
    text += "        pub fn {name}_bind_embedded(model: *mut c_void, error: *mut Message) -> c_int;\n";
    embedded = R"RS(
    /// Binds the weights that are embedded in the library.
    pub fn bind_embedded(&mut self) -> Result<(), Error> {
        let mut message = empty();
        result(unsafe { raw::{name}_bind_embedded(self.handle, &mut message) }, &message)
    }
)RS";
  }
  text += replaced(replaced(body, "{bind_embedded}", embedded), "{sizes}", sizes);
  text = replaced(replaced(text, "{name}", model.name), "{abi}", std::to_string(KILN_ABI_VERSION));
  for (const auto &[entry, name] : llvm::zip_equal(model.entries, methodNames(model, methodWords())))
    text += method(model, entry, name);
  return text + "}\n";
}

} // namespace kiln
