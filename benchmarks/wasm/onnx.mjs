// SPDX-License-Identifier: Apache-2.0
//
// ONNX graphs (https://onnx.ai, onnx.proto3) as bytes: only the parts of the format that an encoder block needs.

const text = new TextEncoder();

function varint(value) {
  const bytes = [];
  for (value = BigInt(value); ; value >>= 7n) {
    if (value < 128n) return [...bytes, Number(value)];
    bytes.push(Number(value & 127n) | 128);
  }
}

// A message is a list of byte chunks.
const sizeOf = chunks => chunks.reduce((sum, chunk) => sum + chunk.length, 0);
const integer = (field, value) => [Uint8Array.from([...varint(field << 3), ...varint(value)])];
const nested = (field, chunks) => [Uint8Array.from([...varint((field << 3) | 2), ...varint(sizeOf(chunks))]), ...chunks];
const string = (field, value) => nested(field, [text.encode(value)]);

const FLOAT = 1, INT64 = 7;

function tensor(name, dims, type, values) {
  const raw = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return [...dims.flatMap(dim => integer(1, dim)), ...integer(2, type), ...string(8, name), ...nested(9, [raw])];
}

function attribute(name, value) {
  if (Array.isArray(value)) return [...string(1, name), ...value.flatMap(v => integer(8, v)), ...integer(20, 7)];
  if (Number.isInteger(value)) return [...string(1, name), ...integer(3, value < 0 ? BigInt.asUintN(64, BigInt(value)) : value), ...integer(20, 2)];
  const bits = new Uint8Array(Float32Array.of(value).buffer);
  return [...string(1, name), Uint8Array.from([...varint((2 << 3) | 5), ...bits]), ...integer(20, 1)];
}

const valueInfo = (name, dims) => {
  const shape = dims.flatMap(dim => nested(1, integer(1, dim)));
  return [...string(1, name), ...nested(2, nested(1, [...integer(1, FLOAT), ...nested(2, shape)]))];
};

export class Graph {
  #nodes = [];
  #initializers = [];
  #count = 0;

  constructor(name, dims) {
    this.input = [name, dims];
  }
  constant(dims, values) {
    const name = `c${this.#count++}`;
    this.#initializers.push(tensor(name, dims, values instanceof BigInt64Array ? INT64 : FLOAT, values));
    return name;
  }
  node(type, inputs, attributes = {}) {
    const name = `v${this.#count++}`;
    this.#nodes.push([
      ...inputs.flatMap(input => string(1, input)), ...string(2, name), ...string(4, type),
      ...Object.entries(attributes).flatMap(([key, value]) => nested(5, attribute(key, value)))]);
    return name;
  }
  reshape(x, dims) {
    return this.node('Reshape', [x, this.constant([dims.length], BigInt64Array.from(dims, BigInt))]);
  }
  bytes(output, dims) {
    const last = [...string(1, output), ...string(2, 'y'), ...string(4, 'Identity')];
    const graph = [
      ...[...this.#nodes, last].flatMap(node => nested(1, node)), ...string(2, 'graph'),
      ...this.#initializers.flatMap(value => nested(5, value)), ...nested(11, valueInfo(...this.input)),
      ...nested(12, valueInfo('y', dims))];
    const model = [...integer(1, 9), ...nested(8, integer(2, 20)), ...nested(7, graph)];
    const bytes = new Uint8Array(sizeOf(model));
    model.reduce((at, chunk) => (bytes.set(chunk, at), at + chunk.length), 0);
    return bytes;
  }
}
